// SPDX-License-Identifier: Apache-2.0
// A wait_set as a descriptor for someone else's loop: what the header promises. Drivers: driver_loops_test.cpp.
#include "child.hpp"
#include "clocks.hpp"
#include "facts.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#if TOCSIN_TEST_EPOLL
#include <sys/epoll.h>
#else
#include <tocsin/driver.hpp>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using namespace support;
using namespace tocsin;

using tags = std::multiset<std::uint64_t>;

tags take(wait_set& set, std::size_t room = 16) {
    std::vector<ready_item> items(room);
    tags found;
    for (const ready_item& each : std::span(items).first(set.wait({.until = 0ns}, items).count))
        found.insert(each.tag);
    return found;
}

#if !TOCSIN_TEST_EPOLL
template <class Object>
void expect_refusal(Object& object) {
    try {
        ADD_FAILURE() << object.descriptor();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::operation_not_supported);
    }
}

TEST(WaitSetView, IsRefusedWhereNoDescriptorCanStandForOthers) {
    auto_reset_event event(true);
    wait_set set;
    tocsin::driver driver;
    expect_refusal(set);
    expect_refusal(driver);
    set.add(event, 1);
    EXPECT_EQ(take(set), tags{1}) << "a refusal changes nothing";
}
#else
// Whether the descriptor becomes readable within this time.
bool is_readable(int descriptor, int milliseconds = 0) {
    pollfd polled{descriptor, POLLIN, 0};
    return poll(&polled, 1, milliseconds) == 1;
}

TEST(WaitSetView, IsReadableAtFirstAndNotAfterAWaitThatFindsNothing) {
    wait_set set;
    const int view = set.descriptor();
    EXPECT_EQ(set.descriptor(), view);
    EXPECT_TRUE(is_readable(view));
    EXPECT_EQ(take(set), tags{});
    EXPECT_FALSE(is_readable(view));
    EXPECT_NE(fcntl(view, F_GETFD) & FD_CLOEXEC, 0) << "no child program inherits it";
}

TEST(WaitSetView, IsReadableWhenAnEventIsSet) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    const int view = set.descriptor();
    EXPECT_EQ(take(set), tags{});
    for (int round = 0; round != 3; ++round) {
        event.set();
        EXPECT_TRUE(is_readable(view));
        EXPECT_TRUE(is_readable(view)) << "until a wait";
        EXPECT_EQ(take(set), tags{1});
        EXPECT_FALSE(is_readable(view));
    }
}

TEST(WaitSetView, TakesNothingBeforeTheWait) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    const int view = set.descriptor();
    EXPECT_EQ(take(set), tags{});
    event.set();
    EXPECT_TRUE(event.try_wait()) << "the token is still there";
    EXPECT_TRUE(is_readable(view)) << "a wait has to find out";
    EXPECT_EQ(take(set), tags{});
    EXPECT_FALSE(is_readable(view));
}

TEST(WaitSetView, KeepsNobodyFromWaiting) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    (void)set.descriptor();
    EXPECT_EQ(take(set), tags{});
    thread_group other;
    other.start([&] { event.wait(tocsin::spin_policy::none()); });
    support::until_parked(&event, 1);
    event.set();
    other.join();
    EXPECT_EQ(take(set), tags{});
}

TEST(WaitSetView, AGateStaysReadableUntilItIsReset) {
    manual_reset_event gate;
    wait_set set;
    set.add(gate, 1);
    const int view = set.descriptor();
    gate.set();
    for (int round = 0; round != 3; ++round) {
        EXPECT_EQ(take(set), tags{1});
        EXPECT_TRUE(is_readable(view));
    }
    gate.reset();
    EXPECT_EQ(take(set), tags{});
    EXPECT_FALSE(is_readable(view));
    gate.set();
    EXPECT_TRUE(is_readable(view));
}

TEST(WaitSetView, WhatAWaitLeavesBehindKeepsItReadable) {
    std::array<auto_reset_event, 5> events;
    tocsin::counting_semaphore<> permits(3);
    wait_set set;
    for (auto_reset_event& each : events) set.add(each, 1);
    set.add(permits, 2);
    const int view = set.descriptor();
    EXPECT_EQ(take(set, 1), tags{2});
    for (auto_reset_event& each : events) each.set();
    int found = 1;
    while (is_readable(view)) found += static_cast<int>(take(set, 1).size());
    EXPECT_EQ(found, 8);
}

TEST(WaitSetView, IsReadableForAMemberThatIsReadyWhenItJoins) {
    auto_reset_event event(true);
    wait_set set;
    const int view = set.descriptor();
    EXPECT_EQ(take(set), tags{});
    set.add(event, 1);
    EXPECT_TRUE(is_readable(view));
    EXPECT_EQ(take(set), tags{1});
    EXPECT_FALSE(is_readable(view));
}

TEST(WaitSetView, IsReadableWhenADescriptorIs) {
    const pipe_ends one;
    const pipe_ends later;
    wait_set set;
    set.add(readable(one.out()), 1);
    const int view = set.descriptor();
    set.add(readable(later.out()), 2);
    EXPECT_EQ(take(set), tags{});
    EXPECT_FALSE(is_readable(view));
    one.put();
    later.put();
    EXPECT_TRUE(is_readable(view));
    EXPECT_EQ(take(set), (tags{1, 2}));
    EXPECT_TRUE(is_readable(view)) << "they are still readable";
    one.get();
    later.get();
    EXPECT_FALSE(is_readable(view));
    one.put();
    EXPECT_TRUE(is_readable(view));
    EXPECT_TRUE(set.remove(readable(one.out())));
    EXPECT_FALSE(is_readable(view));
}

// linux_poller-1: the set replaces its epoll instance.
TEST(WaitSetView, OutlivesADescriptorThatWasClosedWithoutARemoval) {
    const pipe_ends kept;
    wait_set set;
    const int view = set.descriptor();
    set.add(readable(kept.out()), 1);
    {
        const pipe_ends gone;
        const int closed_soon = dup(gone.out());
        set.add(readable(closed_soon), 2);
        gone.put();
        close(closed_soon);  // `gone` keeps the pipe open
        (void)set.remove(readable(closed_soon));
        for (int round = 0; round != 20 && is_readable(view); ++round) EXPECT_EQ(take(set), tags{});
        EXPECT_FALSE(is_readable(view)) << "what no call can remove any more ends no sleep";
    }
    kept.put();
    EXPECT_TRUE(is_readable(view));
    EXPECT_EQ(take(set), tags{1});
}

TEST(WaitSetView, IsReadableWhenATimerIsDue) {
    const auto in_5_ms = [](auto clock) { return decltype(clock)::now() + 5ms; };
    for (const tocsin::deadline soon :
         {tocsin::deadline(in_5_ms(steady_clock())), tocsin::deadline(in_5_ms(system_clock()))}) {
        wait_timer timer;
        wait_set set;
        set.add(timer, 1);
        const int view = set.descriptor();
        EXPECT_EQ(take(set), tags{});
        timer.reset(tocsin::deadline(1h));
        EXPECT_EQ(take(set), tags{});
        EXPECT_FALSE(is_readable(view));
        timer.reset(soon);
        while (take(set).empty()) EXPECT_TRUE(is_readable(view, -1));
        EXPECT_TRUE(soon.has_passed());
        EXPECT_FALSE(is_readable(view));
    }
}

TEST(WaitSetView, ATimerThatAnotherThreadArmsEndsTheLoopsSleep) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    const int view = set.descriptor();
    EXPECT_EQ(take(set), tags{});
    thread_group other;
    other.start([&] { timer.reset(1ms); });
    while (take(set).empty()) EXPECT_TRUE(is_readable(view, -1));
    other.join();
}

TEST(WaitSetView, ATimerThatMovesToALaterTimeDoesNotEndTheLoopsSleep) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    timer.reset(1h);
    const int view = set.descriptor();
    EXPECT_EQ(take(set), tags{});
    timer.reset(2h);
    EXPECT_FALSE(is_readable(view));
    timer.cancel();
    EXPECT_FALSE(is_readable(view));
}

// Such as a connection's idle timer.
TEST(WaitSetView, ATimerThatRepeatsKeepsItReadableForEachTick) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    const int view = set.descriptor();
    timer.reset_every(tocsin::deadline(1ms), 1ms);
    for (std::uint64_t ticks = 0; ticks < 5;) {
        EXPECT_TRUE(is_readable(view, -1));
        if (!take(set).empty()) ticks += timer.ticks();
    }
}

TEST(WaitSetView, AThreadMaySleepInTheSetAllTheSame) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    const int view = set.descriptor();
    EXPECT_EQ(take(set), tags{});
    thread_group other;
    std::array<ready_item, 1> found;
    other.start([&] { EXPECT_EQ(set.wait({.spin = tocsin::spin_policy::none()}, found).count, 1u); });
    event.set();
    other.join();
    (void)take(set);
    EXPECT_FALSE(is_readable(view));
}

TEST(WaitSetView, ASetIntoAListMakesItReadableAtOnce) {
    auto_reset_event event;
    auto set = std::make_unique<wait_set>();
    set->add(event, 1);
    const int view = set->descriptor();
    EXPECT_EQ(take(*set), tags{});
    tocsin::wake_list freed;
    event.set(freed);
    EXPECT_TRUE(freed.empty()) << "a view is no wait";
    EXPECT_TRUE(is_readable(view));
    set.reset();
}

TEST(WaitSetView, AForkedChildMayDestroyIt) {
    auto_reset_event event;
    auto set = std::make_unique<wait_set>();
    set->add(event, 1);
    const int view = set->descriptor();
    EXPECT_EQ(take(*set), tags{});
    EXPECT_EQ(support::ending_of_child([&] {
                  set.reset();
                  return 0;
              }),
              "");
    event.set();
    EXPECT_TRUE(is_readable(view));
    EXPECT_EQ(take(*set), tags{1});
}

// Many threads set many events; the loop polls, with every kind of poll that reports levels or changes.
TEST(WaitSetView, NoSetOfManyIsLost) {
    constexpr int setters = 3;
    const int rounds = 2000;
    std::array<auto_reset_event, setters> events;
    std::array<auto_reset_event, setters> seen;
    wait_set set;
    for (std::uint64_t i = 0; i != setters; ++i) set.add(events[i], i);
    const int view = set.descriptor();
    thread_group threads;
    threads.start_many(setters, "setter", [&](int own) {
        for (int i = 0; i != rounds; ++i) {
            events[static_cast<std::size_t>(own)].set();
            seen[static_cast<std::size_t>(own)].wait();
        }
    });
    for (int left = setters * rounds; left != 0;) {
        ASSERT_TRUE(is_readable(view, -1));
        for (const std::uint64_t tag : take(set, 2)) {
            --left;
            seen[tag].set();
        }
    }
    threads.join();
    EXPECT_EQ(take(set), tags{});
    EXPECT_FALSE(is_readable(view));
}

TEST(WaitSetView, ALoopThatReportsOnlyChangesMissesNothing) {
    constexpr int rounds = 2000;
    auto_reset_event event;
    auto_reset_event seen;
    wait_set set;
    set.add(event, 1);
    const int loop = epoll_create1(EPOLL_CLOEXEC);
    epoll_event asked{.events = EPOLLIN | EPOLLET, .data = {.u64 = 0}};
    ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, set.descriptor(), &asked), 0);
    thread_group other;
    other.start([&] {
        for (int i = 0; i != rounds; ++i) {
            event.set();
            seen.wait();
        }
    });
    for (int left = rounds; left != 0;) {
        epoll_event found;
        ASSERT_EQ(epoll_wait(loop, &found, 1, -1), 1);
        while (!take(set).empty()) {
            --left;
            seen.set();
        }
    }
    other.join();
    close(loop);
}
#endif

}  // namespace
