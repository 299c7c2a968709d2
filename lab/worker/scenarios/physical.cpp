// SPDX-License-Identifier: Apache-2.0
#include "physical.hpp"

#include "../measure/machine.hpp"
#include "../measure/threads.hpp"

#include <algorithm>
#include <array>
#include <thread>

namespace lab::physical {

namespace {

// `waits` is what the waker calls again and again until the sleeper has run.
template <class Waits>
void wake_one_sleeper_on(context& run, const char* metric, std::size_t core, Waits waits) {
    histogram& times = run.distribution(metric);
    futex_word word{0};
    std::atomic<std::uint32_t> woken{0};
    std::atomic<bool> done{false};
    thread_group sleeper(1, [&](std::size_t) {
        pin_to_nth(core);
        if (core == 0) never_preempt_others();
        while (!done.load()) {
            while (word.load() == 0) futex_wait(word, 0);
            word.store(0);
            woken.fetch_add(1);
        }
    });
    pin_to_nth(0);
    sleeper.go();
    const std::int64_t end = now() + run.budget_ns();
    std::uint32_t wakes = 0;
    timed_section section(run, true);
    while (wakes < 3 || now() < end) {
        if (!wait_until_asleep(sleeper.ids())) break;
        word.store(1);
        section.resume();
        const std::int64_t start = now();
        futex_wake(word, 1);
        times.record_nanoseconds(now() - start);
        ++wakes;
        while (woken.load() != wakes) waits();
        section.pause();
    }
    section.stop(wakes);
    done = true;
    word.store(1);
    futex_wake(word);
    sleeper.join();
}

}  // namespace

void wake_one_sleeper(context& run, const char* metric) {
    wake_one_sleeper_on(run, metric, 1, [] { clobber(); });
}

void wake_one_sleeper_here(context& run, const char* metric) {
    wake_one_sleeper_on(run, metric, 0, [] { std::this_thread::yield(); });
}

void wakes_to_running_here(context& run, const char* metric, std::size_t came_from) {
    histogram& times = run.distribution(metric);
    futex_word word{0}, answered{0};
    std::int64_t ran_at = 0;  // written before `answered`
    thread_group sleeper(1, [&](std::size_t) {
        for (std::uint32_t wakes = 1;; ++wakes) {
            pin_to_nth(came_from);
            while (word.load() < wakes) futex_wait(word, wakes - 1);
            ran_at = now();
            const bool last = word.load() != wakes;
            answered.store(wakes);
            futex_wake(answered);
            if (last) return;
        }
    });
    pin_to_nth(0);
    sleeper.go();
    const std::int64_t end = now() + run.budget_ns();
    std::uint32_t wakes = 0;
    timed_section section(run, true);
    while (wakes < 3 || now() < end) {
        if (!wait_until_asleep(sleeper.ids())) break;
        // The kernel doesn't move a sleeping thread. When it is woken, the thread may run only here.
        if (!pin_thread_to_nth(sleeper.ids()[0], 0)) run.note("not permitted to pin threads to cores");
        section.resume();
        const std::int64_t start = now();
        word.store(++wakes);
        futex_wake(word, 1);
        for (std::uint32_t seen; (seen = answered.load()) != wakes;) futex_wait(answered, seen);
        section.pause();
        times.record_nanoseconds(ran_at - start);
    }
    section.stop(wakes);
    word.store(wakes + 2);  // beyond the next wake's number: that wake is the last
    futex_wake(word);
    sleeper.join();
}

namespace {

constexpr std::uint64_t trips_a_batch = 8;

// Way 0 leads to the partner, way 1 back. Records `share` of each round trip's time.
template <class Send, class Receive>
void round_trips(context& run, const char* metric, std::size_t partner_core, double share, Send send,
                 Receive receive) {
    histogram& times = run.distribution(metric);
    std::atomic<bool> done{false};
    thread_group partner(1, [&](std::size_t) {
        pin_to_nth(partner_core);
        for (;;) {
            receive(0);
            if (done.load(std::memory_order_relaxed)) return;
            send(1);
        }
    });
    pin_to_nth(0);
    partner.go();
    const auto batch = [&] {
        for (std::uint64_t i = 0; i < trips_a_batch; ++i) {
            send(0);
            receive(1);
        }
    };
    const std::int64_t warm = now() + run.budget_ns() / 10;
    while (now() < warm) batch();
    std::uint64_t batches = 0;
    timed_section section(run);
    const std::int64_t end = now() + run.budget_ns();
    std::int64_t start = now();
    while (start < end || batches == 0) {
        batch();
        const std::int64_t stop = now();
        times.record_batch(static_cast<std::int64_t>(static_cast<double>(stop - start) * share),
                           trips_a_batch);
        start = stop;
        ++batches;
    }
    section.stop(batches * trips_a_batch);
    done = true;
    send(0);
    partner.join();
}

struct alignas(128) line {
    futex_word word{0};
};

}  // namespace

// Each way is a counter that only its sender writes, so a trip moves one cache line there and one back, and no more.
void cache_line_round_trips(context& run, const char* metric) {
    std::array<line, 2> lines;
    struct alignas(128) own_count {
        std::uint32_t sent_or_received = 0;
    };
    std::array<own_count, 4> counts;  // sent and received, for each way; each used by one thread
    round_trips(
        run, metric, 1, 1.0,
        [&](std::size_t way) {
            lines[way].word.store(++counts[2 * way].sent_or_received, std::memory_order_release);
        },
        [&](std::size_t way) {
            const std::uint32_t expected = ++counts[2 * way + 1].sent_or_received;
            while (lines[way].word.load(std::memory_order_acquire) != expected) {
            }
        });
}

void hand_offs_on_one_core(context& run, const char* metric, double share) {
    std::array<line, 2> lines;
    round_trips(
        run, metric, 0, share,
        [&](std::size_t way) {
            lines[way].word.store(1, std::memory_order_release);
            futex_wake(lines[way].word, 1);
        },
        [&](std::size_t way) {
            while (lines[way].word.exchange(0, std::memory_order_acquire) == 0)
                futex_wait(lines[way].word, 0);
        });
}

}  // namespace lab::physical
