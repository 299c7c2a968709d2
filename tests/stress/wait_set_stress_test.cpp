// SPDX-License-Identifier: Apache-2.0
// Sets of many events while other threads add, remove, take and set: tokens in = tokens out.
#include "facts.hpp"
#include "random.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

// An event that is set only while it is unset, so that no set is absorbed and each token can be counted.
struct counted_event {
    auto_reset_event event;
    std::atomic<bool> is_free{true};
    std::atomic<long> in{0};
    std::atomic<long> out{0};

    void put() {
        if (!is_free.exchange(false)) return;
        in.fetch_add(1);
        event.set();
    }
    void got() {
        out.fetch_add(1);
        EXPECT_FALSE(is_free.exchange(true)) << "a token out of nothing";
    }
};

// A set of many events, and what threads do with it; each event's tag is its index.
struct set_of_many {
    static constexpr std::uint64_t count = 24;
    counted_event all[count];
    auto_reset_event done;
    wait_set set;
    std::atomic<bool> enough{false};

    set_of_many() {
        for (std::uint64_t i = 0; i != count; ++i) set.add(all[i].event, i);
        set.add(done, count);
    }

    void wait_in_the_set() {
        random_source random(1);
        for (bool running = true; running;) {
            ready_item items[5];
            const auto some = std::span(items).first(1 + random.below(5));
            const auto found = random.below(4) == 0 ? set.wait({.until = 20us}, some) : set.wait(some);
            for (std::size_t i = 0; i != found.count; ++i) {
                if (items[i].tag == count) {
                    running = false;
                } else {
                    all[items[i].tag].got();
                }
            }
        }
    }
    void set_any(int number) {
        random_source random(static_cast<std::uint64_t>(10 + number));
        while (!enough.load()) {
            all[random.below(count)].put();
            jitter(random);
        }
    }
    void take_past_it() {
        random_source random(3);
        while (!enough.load()) {
            auto& one = all[random.below(count)];
            if (one.event.wait_for(std::chrono::microseconds(random.below(50)),
                                   tocsin::spin_policy::none()) == tocsin::wait_status::signaled)
                one.got();
            jitter(random);
        }
    }
    void add_and_remove() {
        random_source random(4);
        while (!enough.load()) {
            const auto i = random.below(count);
            EXPECT_TRUE(set.remove(all[i].event));
            jitter(random);
            set.add(all[i].event, i);
        }
    }
};

// One thread waits in the set, two set events, one takes some events past the set, and one removes events and adds them
// again all the time.
TEST(WaitSetStress, TokensInAreTokensOut) {
    const stress_time time;
    set_of_many many;
    thread_group threads;
    threads.start("waits in the set", [&] { many.wait_in_the_set(); });
    threads.start_many(2, "sets", [&](int number) { many.set_any(number); });
    threads.start("takes past it", [&] { many.take_past_it(); });
    threads.start("adds and removes", [&] { many.add_and_remove(); });
    while (!time.is_over()) std::this_thread::sleep_for(1ms);  // no fact to wait for
    many.enough.store(true);
    support::until("all but the set's thread have finished", [&] { return threads.finished() == 4; });
    many.done.set();
    threads.join();
    long in = 0;
    long out = 0;
    for (auto& each : many.all) {
        if (each.event.try_wait()) each.got();
        in += each.in.load();
        out += each.out.load();
    }
    EXPECT_EQ(in, out);
    std::printf("%ld tokens\n", in);
}

// Two threads set events all the time. Of eight waits in a row, one reports a descriptor that is always ready.
TEST(WaitSetStress, NoDescriptorStarvesWhileEventsAreSet) {
    const stress_time time;
    constexpr std::uint64_t count = 3;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    counted_event all[count];
    wait_set set;
    for (std::uint64_t i = 0; i != count; ++i) set.add(all[i].event, i);
    set.add(tocsin::readable(ends[0]), count);
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(2, "sets", [&](int number) {
        random_source random(static_cast<std::uint64_t>(20 + number));
        for (; !enough.load(); jitter(random)) all[random.below(count)].put();
    });
    random_source random(5);
    long waits = 0;
    for (int without = 0; !time.is_over(); ++waits) {
        ready_item items[5];
        const auto found = set.wait(std::span(items).first(1 + random.below(5)));
        ++without;
        for (std::size_t i = 0; i != found.count; ++i) {
            if (items[i].tag == count) {
                without = 0;
            } else {
                all[items[i].tag].got();
            }
        }
        EXPECT_LT(without, 8);
    }
    enough.store(true);
    threads.join();
    long in = 0;
    long out = 0;
    for (auto& each : all) {
        if (each.event.try_wait()) each.got();
        in += each.in.load();
        out += each.out.load();
    }
    EXPECT_EQ(in, out);
    close(ends[0]);
    close(ends[1]);
    std::printf("%ld waits, %ld tokens\n", waits, in);
}

// Events and descriptors with the shortest possible lives: removed, and destroyed at once.
TEST(WaitSetStress, MembersMayGoAsSoonAsTheyAreRemoved) {
    const stress_time time;
    auto_reset_event done;
    wait_set set;
    set.add(done, 0);
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start("waits in the set", [&] {
        for (bool running = true; running;) {
            ready_item items[4];
            const auto found = set.wait(items);
            for (std::size_t i = 0; i != found.count; ++i) running = running && items[i].tag != 0;
        }
    });
    std::atomic<long> lives{0};
    threads.start_many(2, "short lives", [&](int number) {
        random_source random(static_cast<std::uint64_t>(10 + number));
        while (!enough.load()) {
            const auto event = std::make_unique<auto_reset_event>(random.below(2) == 0);
            set.add(*event, 1);
            event->set();
            jitter(random);
            EXPECT_TRUE(set.remove(*event));
            lives.fetch_add(1);
        }
    });
    threads.start("short descriptors", [&] {
        random_source random(6);
        while (!enough.load()) {
            const int descriptor =
                eventfd(static_cast<unsigned>(random.below(2)), EFD_CLOEXEC | EFD_NONBLOCK);
            set.add(tocsin::readable(descriptor), 2);
            jitter(random);
            EXPECT_TRUE(set.remove(tocsin::readable(descriptor)));
            close(descriptor);
        }
    });
    while (!time.is_over()) std::this_thread::sleep_for(1ms);  // no fact to wait for
    enough.store(true);
    support::until("all but the set's thread have finished", [&] { return threads.finished() == 3; });
    done.set();
    threads.join();
    std::printf("%ld lives\n", lives.load());
}

// Setters and a taker alongside a loop that polls the view: no token is lost, and the loop never sleeps while one is
// there.
TEST(PollableStress, TokensInAreTokensOut) {
    const stress_time time;
    counted_event one;
    std::atomic<bool> enough{false};
    std::atomic<bool> ended{false};
    thread_group threads;
    const auto view = std::make_unique<tocsin::pollable>(one.event);
    threads.start("polls", [&] {
        random_source random(7);
        while (!ended.load()) {
            pollfd polled{view->descriptor(), POLLIN, 0};
            (void)poll(&polled, 1, -1);
            if (polled.revents != 0 && view->try_wait()) one.got();
            jitter(random);
        }
    });
    threads.start_many(2, "sets", [&](int number) {
        random_source random(static_cast<std::uint64_t>(10 + number));
        while (!enough.load()) {
            one.put();
            jitter(random);
        }
    });
    threads.start("takes past it", [&] {
        random_source random(9);
        while (!enough.load()) {
            if (one.event.try_wait()) one.got();
            jitter(random);
        }
    });
    while (!time.is_over()) std::this_thread::sleep_for(1ms);  // no fact to wait for
    enough.store(true);
    support::until("the setters have finished", [&] { return threads.finished() == 3; });
    support::until("the loop has taken the last token", [&] { return one.is_free.load(); });
    ended.store(true);
    one.put();
    threads.join();
    if (one.event.try_wait()) one.got();
    EXPECT_EQ(one.in.load(), one.out.load());
    std::printf("%ld tokens\n", one.in.load());
}

// Views that are destroyed while other threads set their event: no set writes into a descriptor that the view
// has closed.
TEST(PollableStress, AViewMayGoWhileOthersSetItsEvent) {
    const stress_time time;
    auto_reset_event event;
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(2, "sets", [&](int number) {
        random_source random(static_cast<std::uint64_t>(10 + number));
        while (!enough.load()) {
            event.set();
            (void)event.try_wait();
            jitter(random);
        }
    });
    random_source random(11);
    while (!time.is_over()) {
        tocsin::pollable view(event);
        (void)view.try_wait();
        jitter(random);
    }
    enough.store(true);
}

// Timers that several threads arm, move and disarm alongside events. Each report was of an arming that nobody took back
// before, and none is early: whoever arms a timer notes its deadline first.
struct noted_timer {
    wait_timer timer;
    std::mutex mutex;  // for what is noted, and so that arming and noting are one step
    std::chrono::steady_clock::time_point due;
    long armed = 0;
    std::atomic<long> reported{0};

    void change(random_source& random) {
        const std::lock_guard held(mutex);
        armed += 1;
        due = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(300));
        timer.reset(due);
    }
};

TEST(WaitSetStress, EachTimerIsReportedForItsLastArming) {
    const stress_time time;
    constexpr std::uint64_t count = 32;
    std::deque<noted_timer> timers(count);
    auto_reset_event done;
    wait_set set;
    for (std::uint64_t i = 0; i != count; ++i) set.add(timers[i].timer, i);
    set.add(done, count);
    long early = 0;
    thread_group threads;
    threads.start("waiter", [&] {
        std::array<ready_item, 5> items;
        for (bool ends = false; !ends;) {
            const auto found = set.wait({.until = 10ms}, items);
            const auto now = std::chrono::steady_clock::now();
            for (const auto& each : std::span(items).first(found.count)) {
                if (each.tag == count) {
                    ends = true;
                    continue;
                }
                noted_timer& one = timers[each.tag];
                one.reported.fetch_add(1);
                const std::lock_guard held(one.mutex);
                // If it has been armed again since it was found, its deadline may lie ahead.
                if (one.due > now && !one.timer.is_armed()) ++early;
            }
        }
    });
    threads.start_many(3, "mover", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number + 1));
        while (!time.is_over()) {
            timers[random.below(count)].change(random);
            jitter(random);
        }
    });
    for (std::size_t i = 1; i != threads.size(); ++i) threads.until_finished(i);
    support::until("all that are armed to be reported", [&] {
        return std::ranges::none_of(timers, [](const noted_timer& each) { return each.timer.is_armed(); });
    });
    done.set();
    threads.join();
    long armed = 0;
    long reported = 0;
    for (const noted_timer& each : timers) {
        EXPECT_LE(each.reported.load(), each.armed);
        armed += each.armed;
        reported += each.reported.load();
    }
    EXPECT_EQ(early, 0);
    std::printf("%ld armed, %ld reported\n", armed, reported);
}

}  // namespace
