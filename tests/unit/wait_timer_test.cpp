// SPDX-License-Identifier: Apache-2.0
// Timers as members of a wait_set: what <tocsin/wait_set.hpp> promises of them.
#include "child.hpp"
#include "clocks.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#if TOCSIN_ON_POSIX
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using namespace support;
using namespace tocsin;

using tags = std::vector<std::uint64_t>;

// The tags that a wait reports, in its order.
tags found_in(wait_set& set, const tocsin::limits& how, std::size_t max = 64) {
    std::vector<ready_item> items(max);
    const auto found = set.wait(how, items);
    tags reported;
    for (std::size_t i = 0; i != found.count; ++i) {
        EXPECT_EQ(items[i].found, tocsin::readiness::none);
        reported.push_back(items[i].tag);
    }
    EXPECT_EQ(found.status, reported.empty() ? wait_status::timed_out : wait_status::signaled);
    return reported;
}

tags ready_in(wait_set& set, std::size_t max = 64) { return found_in(set, {.until = 0ns}, max); }

int error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

// Waits in a thread of its own.
struct waiting_thread {
    explicit waiting_thread(wait_set& set, tocsin::deadline until = 1h) {
        threads.start("waits in the set",
                      [&set, until, this] { reported = found_in(set, {.until = until}); });
        threads.until_asleep(0);
    }
    tags end() {
        threads.join();
        return reported;
    }

    tags reported;
    thread_group threads;
};

TEST(WaitTimer, IsReportedOncePerArmingAndNeverEarly) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 7);
    EXPECT_FALSE(timer.is_armed());
    EXPECT_EQ(ready_in(set), tags{});
    for (int i = 0; i != 3; ++i) {
        const auto begin = steady_clock::now();
        timer.reset(10ms);
        EXPECT_TRUE(timer.is_armed());
        EXPECT_EQ(found_in(set, {}), tags{7});
        EXPECT_GE(steady_clock::now() - begin, 10ms);
        EXPECT_FALSE(timer.is_armed());
        EXPECT_EQ(ready_in(set), tags{});
    }
}

TEST(WaitTimer, PassesOnEveryClock) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    const auto expect = [&](tocsin::deadline when) {
        timer.reset(when);
        EXPECT_EQ(found_in(set, {.until = 1h}), tags{1});
        EXPECT_TRUE(when.has_passed());
    };
    expect(0s);
    expect(-1h);
    expect(steady_clock::now() + 5ms);
    expect(system_clock::now() + 5ms);
    expect(system_clock::now() - 5h);
    const auto slow = support::slow_clock::now() + 5ms;
    expect(slow);
    support::hand_clock::set(0);
    const auto by_hand = support::hand_clock::now() + 5ms;
    timer.reset(by_hand);
    EXPECT_EQ(found_in(set, {.until = 30ms}), tags{}) << "its clock stands still";
    support::hand_clock::set(5);
    EXPECT_EQ(found_in(set, {.until = 1h}), tags{1});
}

TEST(WaitTimer, TheEarliestIsReportedFirst) {
    constexpr std::size_t count = 2'000;
    std::vector<wait_timer> timers(count);
    wait_set set;
    const auto past = steady_clock::now() - 10ms;  // steady_clock may have begun less than an hour ago
    for (std::size_t i = 0; i != count; ++i) {
        set.add(timers[i], i);
        timers[i].reset(past + std::chrono::microseconds(i * 769 % count));
    }
    tags order = ready_in(set, count);
    ASSERT_EQ(order.size(), count);
    EXPECT_TRUE(std::ranges::is_sorted(order, {}, [](std::uint64_t tag) { return tag * 769 % count; }));
    EXPECT_EQ(ready_in(set), tags{});
}

TEST(WaitTimer, IsMovedAndDisarmed) {
    wait_timer moved_later, moved_earlier, cancelled, never, other_clock;
    wait_set set;
    set.add(moved_later, 1);
    set.add(moved_earlier, 2);
    set.add(cancelled, 3);
    set.add(never, 4);
    set.add(other_clock, 5);
    moved_later.reset(-2s);
    moved_later.reset(1h);
    moved_earlier.reset(1h);
    moved_earlier.reset(-1s);
    cancelled.reset(-1s);
    cancelled.cancel();
    never.reset(-1s);
    never.reset(tocsin::deadline::never());
    EXPECT_FALSE(cancelled.is_armed());
    EXPECT_FALSE(never.is_armed());
    other_clock.reset(1h);
    other_clock.reset(system_clock::now() - 1s);
    tags found = ready_in(set);
    std::ranges::sort(found);
    EXPECT_EQ(found, (tags{2, 5}));
    EXPECT_TRUE(moved_later.is_armed());
    moved_later.reset(0s);
    EXPECT_EQ(ready_in(set), tags{1});
}

// A timer is found due, but is not reported for lack of room. Moving it takes that back.
TEST(WaitTimer, AMoveTakesBackWhatNoWaitHasReported) {
    tocsin::manual_reset_event gate(true);
    wait_timer timers[2];
    wait_set set;
    set.add(gate, 9);
    for (std::uint64_t i = 0; i != 2; ++i) set.add(timers[i], i);
    for (auto& each : timers) each.reset(0s);
    EXPECT_EQ(ready_in(set, 1), tags{9}) << "which became ready first; one timer is behind it";
    timers[0].reset(1h);
    timers[1].cancel();
    EXPECT_EQ(ready_in(set), tags{9});
}

TEST(WaitTimer, TakesTurnsWithEventsThatStaySet) {
    tocsin::manual_reset_event gates[3];
    wait_timer timers[3];
    wait_set set;
    for (std::uint64_t i = 0; i != 3; ++i) {
        gates[i].set();
        set.add(gates[i], i);
        set.add(timers[i], 10 + i);
        timers[i].reset(-1s);
    }
    tags seen;
    for (int i = 0; i != 12; ++i) seen.push_back(ready_in(set, 1).at(0));
    for (std::uint64_t i = 0; i != 3; ++i) {
        EXPECT_EQ(std::ranges::count(seen, 10 + i), 1);
        EXPECT_GE(std::ranges::count(seen, i), 2);
    }
}

TEST(WaitTimer, WakesAThreadThatSleeps) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    for (const bool was_armed : {false, true}) {
        if (was_armed) timer.reset(1h);
        waiting_thread waits(set);
        const auto begin = steady_clock::now();
        timer.reset(5ms);
        EXPECT_EQ(waits.end(), tags{1});
        EXPECT_GE(steady_clock::now() - begin, 5ms);
    }
}

TEST(WaitTimer, OnEitherClockItWakesASleepOnTheOther) {
    wait_timer steady, system;
    wait_set set;
    set.add(steady, 1);
    set.add(system, 2);
    {
        steady.reset(1h);
        waiting_thread waits(set);
        system.reset(system_clock::now() + 2ms);
        EXPECT_EQ(waits.end(), tags{2});
    }
    system.reset(system_clock::now() + 1h);
    steady.cancel();
    waiting_thread waits(set);
    steady.reset(2ms);
    EXPECT_EQ(waits.end(), tags{1});
}

// Moves and removes the timers for which another thread sleeps. Returns whether it did so in time.
bool timers_leave_a_sleep(std::chrono::milliseconds lead) {
    wait_timer later, gone;
    wait_set set;
    set.add(later, 2);
    set.add(gone, 3);
    const auto due = steady_clock::now() + lead;
    later.reset(due);
    gone.reset(due);
    tags reported;
    thread_group threads;
    threads.start("waits", [&] { reported = found_in(set, {.until = due + 5ms}); });
    support::until("the wait to sleep or to end",
                   [&] { return threads.finished() == 1 || support::state_of(threads.id(0)) == 'S'; });
    later.reset(1h);
    EXPECT_TRUE(set.remove(gone));
    const bool in_time = steady_clock::now() < due;
    threads.join();
    EXPECT_TRUE(reported.empty() || !in_time);
    return in_time;
}

TEST(WaitTimer, AMoveToALaterTimeOrARemovalDoesNotEndTheWait) {
    for (auto lead = 20ms; !timers_leave_a_sleep(lead); lead *= 2) {
    }
}

TEST(WaitTimer, TheDeadlineAndTheStopOfTheWaitCountToo) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    timer.reset(1h);
    EXPECT_EQ(found_in(set, {.until = 5ms}), tags{});
    std::stop_source stop;
    thread_group threads;
    threads.start("waits", [&] {
        ready_item item;
        EXPECT_EQ(set.wait({.stop = stop.get_token()}, {&item, 1}).status, wait_status::stopped);
    });
    threads.until_asleep(0);
    stop.request_stop();
    threads.join();
    timer.reset(-1s);
    ready_item item;
    EXPECT_EQ(set.wait({.stop = stop.get_token()}, {&item, 1}).count, 1u) << "what is there is taken first";
}

TEST(WaitTimer, IsArmedBeforeItIsAMember) {
    wait_timer timer;
    timer.reset(-1s);
    EXPECT_TRUE(timer.is_armed());
    wait_set set;
    set.add(timer, 1);
    EXPECT_EQ(ready_in(set), tags{1});
}

TEST(WaitTimer, LeavesWhenItIsRemovedOrDestroyedAndMayOutliveItsSet) {
    std::optional<wait_set> set(std::in_place);
    wait_timer stays;
    set->add(stays, 1);
    {
        wait_timer gone;
        set->add(gone, 2);
        gone.reset(0s);
    }
    stays.reset(0s);
    EXPECT_TRUE(set->remove(stays));
    EXPECT_FALSE(set->remove(stays));
    EXPECT_FALSE(stays.is_armed());
    EXPECT_EQ(ready_in(*set), tags{});
    set->add(stays, 3);
    stays.reset(1h);
    set.reset();
    EXPECT_FALSE(stays.is_armed());
    wait_set other;
    other.add(stays, 4);
    stays.reset(0s);
    EXPECT_EQ(ready_in(other), tags{4});
}

TEST(WaitTimer, IsInOneSetOnceAndHasATag) {
    wait_timer timer;
    wait_set set, other;
    EXPECT_EQ(error_of([&] { set.change(timer, 1); }), ENOENT);
    EXPECT_THROW(set.add(timer, ~std::uint64_t{0}), std::invalid_argument);
    set.add(timer, 1);
    EXPECT_EQ(error_of([&] { set.add(timer, 2); }), EEXIST);
    EXPECT_EQ(error_of([&] { other.add(timer, 2); }), EEXIST);
    EXPECT_FALSE(other.remove(timer));
    set.change(timer, 5);
    timer.reset(0s);
    EXPECT_EQ(ready_in(set), tags{5});
}

// Ten thousand connections, each of which is heard of again and again before it has been idle for too long.
TEST(WaitTimer, MovesCheaplyHoweverManyThereAre) {
    const auto cost_of_a_move = [](std::size_t count) {
        std::deque<wait_timer> timers(count);
        wait_set set;
        for (auto& each : timers) {
            set.add(each, 1);
            each.reset(30s);
        }
        auto least = std::chrono::nanoseconds::max();
        for (int round = 0; round != 50; ++round) {
            const auto begin = steady_clock::now();
            for (int i = 0; i != 100; ++i) timers[static_cast<std::size_t>(i * 7919) % count].reset(30s);
            least = std::min<std::chrono::nanoseconds>(least, (steady_clock::now() - begin) / 100);
        }
        return least;
    };
    const auto few = cost_of_a_move(10);
    const auto many = cost_of_a_move(10'000);
    std::printf("a move of one of 10 timers: %lld ns, of 10,000: %lld ns\n",
                static_cast<long long>(few.count()), static_cast<long long>(many.count()));
    EXPECT_LT(many, few * 20);
}

#if TOCSIN_ON_POSIX

TEST(WaitTimer, EndsASleepInThePoller) {
    pipe_ends idle;
    wait_timer timer;
    wait_set set;
    set.add(tocsin::readable(idle.out()), 1);
    set.add(timer, 2);
    timer.reset(5ms);
    EXPECT_EQ(found_in(set, {.until = 1h}), tags{2});
    EXPECT_EQ(found_in(set, {.until = 5ms}), tags{});
    waiting_thread waits(set);
    timer.reset(5ms);
    EXPECT_EQ(waits.end(), tags{2});
}

TEST(WaitTimer, AForkedChildMayDestroyItBeforeOrAfterTheSet) {
    for (const bool timer_first : {true, false}) {
        auto timer = std::make_unique<wait_timer>();
        auto set = std::make_unique<wait_set>();
        set->add(*timer, 1);
        timer->reset(1h);
        EXPECT_EQ(support::ending_of_child([&] {
                      if (timer_first) timer.reset();
                      set.reset();
                      timer.reset();
                      return 0;
                  }),
                  "");
        timer->reset(0s);
        EXPECT_EQ(ready_in(*set), tags{1}) << "and the parent's still works";
    }
}

TEST(WaitTimer, MakesNoSystemCallButToSleepAndWake) {
    const auto calls = support::system_calls_of([] {
        std::deque<wait_timer> timers(100);
        wait_set set;
        for (auto& each : timers) set.add(each, 1);
        ready_item items[4];
        for (int i = 0; i != 10; ++i) {
            for (auto& each : timers) each.reset(30s);
            timers[3].reset(0s);
            if (set.wait(items).count != 1) _exit(1);
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(calls.count(SYS_futex), 0u);
}
#endif

}  // namespace
