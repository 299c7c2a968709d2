// SPDX-License-Identifier: Apache-2.0
// The contract of the events and semaphores in shared memory: among threads, among processes, and after deaths.
#include "sanitizer.hpp"
#include "shared_objects.hpp"
#include "threads.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;
using gate = placed<tocsin::shared_manual_reset_event>;
using token = placed<tocsin::shared_auto_reset_event>;
using permits = placed<tocsin::shared_semaphore>;
using tocsin::wait_status;

// Whether as many threads as this have announced that they sleep on a gate: its second bit.
bool has_sleepers(const gate& event) {
    return (reinterpret_cast<const std::atomic<std::uint32_t>*>(event.bytes() + 4)->load() & 2) != 0;
}

TEST(SharedManualResetEvent, BeginsUnsetInZeroedMemory) {
    gate event;
    EXPECT_FALSE(event->is_set());
    event->set();
    EXPECT_TRUE(event->is_set());
    event->wait();
    event->reset();
    EXPECT_FALSE(event->try_wait());
}

TEST(SharedManualResetEvent, SetThenResetReleasesAllProcessesThatWaited) {
    gate event;
    std::vector<pid_t> children;
    for (int i = 0; i != 5; ++i) children.push_back(in_child([&] { event->wait(); }));
    for (const pid_t child : children) ASSERT_TRUE(comes_true([&] { return is_asleep(child); }));
    ASSERT_TRUE(has_sleepers(event));
    event->set();
    event->reset();
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
    EXPECT_FALSE(event->is_set());
}

TEST(SharedManualResetEvent, ADeadSleeperLeavesNothing) {
    gate event;
    for (int i = 0; i != 20; ++i) {
        const pid_t child = in_child([&] { event->wait(); });
        ASSERT_TRUE(comes_true([&] { return is_asleep(child); }));
        kill_now(child);
    }
    event->set();
    event->reset();
    EXPECT_FALSE(has_sleepers(event));
}

TEST(SharedManualResetEvent, WaitsEndByDeadlineAndByStop) {
    gate event;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(event->wait_for(20ms), wait_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_EQ(event->wait_until(std::chrono::system_clock::now() + 10ms), wait_status::timed_out);
    EXPECT_EQ(event->wait_for(0ms), wait_status::timed_out);
    std::stop_source stop;
    std::jthread stopper([&] {
        ASSERT_TRUE(comes_true([&] { return has_sleepers(event); }));
        stop.request_stop();
    });
    EXPECT_EQ(event->wait(stop.get_token()), wait_status::stopped);
    EXPECT_EQ(event->wait_for(1h, stop.get_token()), wait_status::stopped);
    event->set();
    EXPECT_EQ(event->wait(stop.get_token()), wait_status::signaled);
}

TEST(SharedAutoResetEvent, TwoSetsReleaseTwoProcesses) {
    token event;
    const pid_t first = in_child([&] { event->wait(); });
    const pid_t second = in_child([&] { event->wait(); });
    ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 2; }));
    event->set();
    event->set();
    EXPECT_EQ(end_of(first), 0);
    EXPECT_EQ(end_of(second), 0);
    EXPECT_FALSE(event->is_set());
}

TEST(SharedAutoResetEvent, SetOnASetEventIsAbsorbed) {
    token event;
    event->set();
    event->set();
    EXPECT_TRUE(event->try_wait());
    EXPECT_FALSE(event->try_wait());
}

TEST(SharedAutoResetEvent, ResetTakesNothingFromAThreadThatHasBeenReleased) {
    token event;
    std::jthread waiter([&] { event->wait(); });
    ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 1; }));
    event->set();
    event->reset();
    waiter.join();
    EXPECT_FALSE(event->try_wait());
    event->set();
    event->reset();
    EXPECT_FALSE(event->try_wait());
}

TEST(SharedAutoResetEvent, TheLongestWaitingThreadIsFirst) {
    token event;
    std::atomic<int> order{0};
    int place[3] = {};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i != 3; ++i) {
            threads.emplace_back([&, i] {
                event->wait();
                place[i] = order.fetch_add(1);
                event->set();
            });
            ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == static_cast<unsigned>(i + 1); }));
        }
        event->set();
    }
    for (int i = 0; i != 3; ++i) EXPECT_EQ(place[i], i);
    EXPECT_TRUE(event->try_wait());
}

TEST(SharedAutoResetEvent, ATimeoutEatsNoToken) {
    token event;
    std::atomic<bool> ends{false};
    std::atomic<long> taken{0};
    std::vector<std::jthread> waiters;
    for (int i = 0; i != 3; ++i) {
        waiters.emplace_back([&] {
            while (!ends)
                if (event->wait_for(std::chrono::microseconds(30)) == wait_status::signaled) ++taken;
        });
    }
    for (long set = 0; set != support::rounds(3000, 1000); ++set) {
        event->set();
        ASSERT_TRUE(comes_true([&] { return taken == set + 1; })) << "after " << set << " sets";
    }
    ends = true;
}

TEST(SharedAutoResetEvent, WaitsEndByStop) {
    token event;
    std::stop_source stop;
    std::jthread stopper([&] {
        ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 1; }));
        stop.request_stop();
    });
    EXPECT_EQ(event->wait(stop.get_token()), wait_status::stopped);
    EXPECT_EQ(event.slots_in(1), 0u);
    event->set();
    EXPECT_EQ(event->wait(stop.get_token()), wait_status::signaled);
}

TEST(SharedAutoResetEvent, MoreWaitersThanRoomIsAnError) {
    token event;
    {
        std::vector<std::jthread> waiters;
        for (unsigned i = 0; i != event->slots; ++i) waiters.emplace_back([&] { event->wait(); });
        ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == event->slots; }));
        try {
            (void)event->wait_for(1h);
            ADD_FAILURE() << "no error";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::no_buffer_space);
            EXPECT_NE(std::string(error.what()).find("31 slots"), std::string::npos) << error.what();
        }
        for (unsigned i = 0; i != event->slots; ++i) event->set();
    }
    EXPECT_FALSE(event->try_wait());
}

TEST(SharedSemaphore, CountsAsTheStandardOne) {
    permits many;
    EXPECT_FALSE(many->try_acquire());
    many->release(3);
    EXPECT_EQ(many->available(), 3);
    many->acquire();
    EXPECT_TRUE(many->try_acquire());
    EXPECT_TRUE(many->try_acquire_for(1h));
    EXPECT_FALSE(many->try_acquire_for(1ms));
    EXPECT_THROW(many->release(-1), std::system_error);
    many->release(many->max());
    EXPECT_THROW(many->release(), std::system_error);
    EXPECT_THROW(many->release(2), std::system_error);
    EXPECT_EQ(many->available(), many->max());
}

TEST(SharedSemaphore, HandsPermitsToProcessesAndKeepsTheRest) {
    permits many;
    std::vector<pid_t> children;
    for (int i = 0; i != 4; ++i) children.push_back(in_child([&] { many->acquire(); }));
    ASSERT_TRUE(comes_true([&] { return many.slots_in(1) == 4; }));
    many->release(6);
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
    EXPECT_EQ(many->available(), 2);
}

TEST(SharedSemaphore, NothingIsLostOrDoubledAmongProcesses) {
    permits many, taken;
    constexpr int processes = 3, rounds = 3000;
    std::vector<pid_t> children;
    for (int i = 0; i != processes; ++i) {
        children.push_back(in_child([&] {
            for (int round = 0; round != rounds; ++round) {
                if ((round & 1) != 0) {
                    many->acquire();
                } else {
                    while (!many->try_acquire_for(std::chrono::microseconds(20))) {
                    }
                }
                taken->release();
            }
        }));
    }
    for (int i = 0; i != processes * rounds; ++i) many->release();
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
    EXPECT_EQ(taken->available(), processes * rounds);
    EXPECT_EQ(many->available(), 0);
}

// A process waits, is stopped, is handed a permit, and is killed. The permit goes to the next process, which sleeps.
TEST(SharedSemaphore, WhatWasHandedToTheDeadGoesToASleeperAtOnce) {
    permits many;
    const pid_t first = in_child([&] { many->acquire(); });
    ASSERT_TRUE(comes_true([&] { return many.slots_in(1) == 1; }));
    ::kill(first, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(first, &status, WUNTRACED), first);
    const pid_t second = in_child([&] { many->acquire(); });
    ASSERT_TRUE(comes_true([&] { return many.slots_in(1) == 2 && is_asleep(second); }));
    many->release();
    EXPECT_EQ(many.slots_in(2), 1u);
    EXPECT_TRUE(is_asleep(second));
    kill_now(first);
    EXPECT_EQ(end_of(second), 0);
    EXPECT_FALSE(many->try_acquire());
}

TEST(SharedSemaphore, WhatWasHandedToTheDeadIsTakenByTheNextCall) {
    permits many;
    const pid_t first = in_child([&] { many->acquire(); });
    ASSERT_TRUE(comes_true([&] { return many.slots_in(1) == 1; }));
    ::kill(first, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(first, &status, WUNTRACED), first);
    many->release();
    kill_now(first);
    many->release();
    EXPECT_TRUE(many->try_acquire());
    EXPECT_TRUE(many->try_acquire());
    EXPECT_FALSE(many->try_acquire());
}

// A stopped process is not dead: what it was handed stays its own.
TEST(SharedSemaphore, AStoppedProcessKeepsItsPlaceAndHoldsNobodyUp) {
    permits many;
    const pid_t first = in_child([&] { many->acquire(); });
    ASSERT_TRUE(comes_true([&] { return many.slots_in(1) == 1; }));
    ::kill(first, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(first, &status, WUNTRACED), first);
    many->release(2);
    EXPECT_TRUE(many->try_acquire());
    EXPECT_FALSE(many->try_acquire());
    ::kill(first, SIGCONT);
    EXPECT_EQ(end_of(first), 0);
}

TEST(SharedSemaphore, ManyDeathsLeaveNothing) {
    permits many;
    for (int i = 0; i != 100; ++i) {
        const pid_t child = in_child([&] { many->acquire(); });
        ASSERT_TRUE(comes_true([&] { return many.slots_in(1) >= 1 && is_asleep(child); }));
        kill_now(child);
    }
    EXPECT_EQ(many.slots_in(1), 1u);  // the last one's, until somebody looks
    many->release();
    EXPECT_TRUE(many->try_acquire());
    EXPECT_FALSE(many->try_acquire());
    EXPECT_EQ(many.slots_in(1), 0u);
}

TEST(SharedObjects, AnotherKindIsRefused) {
    permits many;
    EXPECT_FALSE(many->try_acquire_for(1ms));
    try {
        (void)tocsin::shared_at<tocsin::shared_auto_reset_event>(many.bytes(), 8192);
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("holds a shared_semaphore, version 1"), std::string::npos)
            << error.what();
    }
    many->release();
    EXPECT_TRUE(many->try_acquire());
}

TEST(SharedObjects, AnotherVersionIsRefused) {
    permits many;
    many.bytes()[1] = 7;  // the version
    EXPECT_THROW((void)many->try_acquire_for(1ms), std::system_error);
}

}  // namespace
