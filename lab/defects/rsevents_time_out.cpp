// SPDX-License-Identifier: Apache-2.0
// In each round one thread sets a manual-reset event while a timed wait on it ends. Nobody resets the event before both
// are done, so it must be set then.
#include "reproduction.hpp"

#include <tocsin/event.hpp>

#include <atomic>

extern "C" {
void lab_manual_new(void*);
void lab_manual_set(void*);
void lab_manual_reset(void*);
bool lab_manual_is_set(void*);
bool lab_manual_wait_for(void*, std::uint64_t nanoseconds);
}

namespace {

using namespace reproduction;

struct rsevents {
    alignas(8) std::byte storage[8];
    rsevents() { lab_manual_new(storage); }
    void set() { lab_manual_set(storage); }
    void reset() { lab_manual_reset(storage); }
    bool is_set() { return lab_manual_is_set(storage); }
    bool is_set_within(std::chrono::nanoseconds longest) {
        return lab_manual_wait_for(storage, static_cast<std::uint64_t>(longest.count()));
    }
};

struct ours : tocsin::manual_reset_event {
    bool is_set_within(std::chrono::nanoseconds longest) {
        return wait_for(longest) == tocsin::wait_status::signaled;
    }
};

template <class Event>
outcome play(double seconds, const std::string& version) {
    static Event event;
    static std::atomic<std::uint64_t> begun{0};
    static std::atomic<std::uint64_t> done{0};
    static std::atomic<bool> in_time{false};
    static std::atomic<bool> over{false};
    const auto reaches = [](const std::atomic<std::uint64_t>& count, std::uint64_t round) {
        for (unsigned looks = 0; count < round; ++looks) {
            if (over) return false;
            if (looks > 1000) std::this_thread::yield();
        }
        return true;
    };
    std::thread waiter([&] {
        for (std::uint64_t round = 1; reaches(begun, round); ++round) {
            in_time = event.is_set_within(std::chrono::microseconds(20));
            done = round;
        }
    });
    outcome found{.version = version};
    std::minstd_rand random(std::random_device{}());
    // When to set, counted from the beginning of the round. This time follows the end of the wait, so that about half
    // of the waits are in time.
    std::chrono::nanoseconds aim(80'000);
    for (const budget time(seconds); !time.spent();) {
        event.reset();
        begun = ++found.tries;
        const auto at = clock::now() + aim + std::chrono::nanoseconds(random() % 3000);
        while (clock::now() < at) pause_for(1);
        event.set();
        (void)reaches(done, found.tries);
        found.seen += !event.is_set();
        aim += std::chrono::nanoseconds(in_time ? 200 : -200);
    }
    over = true;
    waiter.join();
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    return run(
        count, arguments,
        [](double seconds) { return play<rsevents>(seconds, "rsevents " LAB_RSEVENTS_VERSION); },
        [](double seconds) { return play<ours>(seconds, "manual_reset_event"); });
}
