// SPDX-License-Identifier: Apache-2.0
// 64 threads wait on 64 words, each on a cache line of its own. A 65th word, on which nobody waits, is notified. Every
// context switch of a waiting thread is a wake-up meant for somebody else.
#include "reproduction.hpp"

#include <tocsin/address.hpp>

#include <array>
#include <atomic>
#include <vector>

namespace {

using namespace reproduction;
using namespace std::chrono_literals;

constexpr std::size_t bystanders = 64;
constexpr std::uint64_t max_notifies = 1000;

struct alignas(64) word {
    std::atomic<std::uint64_t> value{0};
};

struct standard {
    static void wait(word& on) { on.value.wait(0); }
    static void wake_one(word& on) { on.value.notify_one(); }
};

struct ours {
    static void wait(word& on) { (void)tocsin::wait_until_changed(&on.value, std::uint64_t{0}); }
    static void wake_one(word& on) { (void)tocsin::wake_by_address_one(&on.value); }
};

struct scene {
    std::array<word, bystanders + 1> words;
    std::array<std::atomic<pid_t>, bystanders> ids{};

    std::uint64_t switches() const {
        std::uint64_t sum = 0;
        for (const auto& id : ids) sum += switches_of(id);
        return sum;
    }

    // False: they don't all sleep within 5 s.
    bool all_sleep() const {
        for (int look = 0; look < 500; ++look) {
            std::size_t asleep = 0;
            for (const auto& id : ids) asleep += id != 0 && sleeps(stat_of_thread(id));
            if (asleep == bystanders) return true;
            std::this_thread::sleep_for(10ms);
        }
        return false;
    }
};

template <class Kind>
outcome run_with(double seconds, const std::string& version) {
    static scene it;
    std::vector<std::jthread> threads;
    threads.reserve(bystanders);
    for (std::size_t i = 0; i < bystanders; ++i)
        threads.emplace_back([i] {
            it.ids[i] = this_thread();
            while (it.words[i].value == 0) Kind::wait(it.words[i]);
        });
    outcome found{.version = version};
    if (!it.all_sleep()) {
        found.note = "the waiting threads did not come to rest";
    } else {
        const std::uint64_t before = it.switches();
        for (const budget time(seconds); found.tries < max_notifies && !time.spent(); ++found.tries) {
            Kind::wake_one(it.words[bystanders]);
            std::this_thread::sleep_for(1ms);
        }
        (void)it.all_sleep();
        found.seen = it.switches() - before;
    }
    for (std::size_t i = 0; i < bystanders; ++i) {
        it.words[i].value = 1;
        Kind::wake_one(it.words[i]);
    }
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    return run(
        count, arguments, [](double seconds) { return run_with<standard>(seconds, libstdcxx()); },
        [](double seconds) { return run_with<ours>(seconds, "wait_until_changed"); });
}
