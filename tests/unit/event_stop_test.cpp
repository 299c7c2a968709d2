// SPDX-License-Identifier: Apache-2.0
// Waits on events with a stop token: the stop comes before, during or after the wait, or races with a set.
#include "facts.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stop_token>
#include <thread>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

template <class Event>
class EveryStoppableEvent : public testing::Test {};
using both_events = testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(EveryStoppableEvent, both_events);

TYPED_TEST(EveryStoppableEvent, AStopRequestedBeforeEndsTheWaitAtOnce) {
    std::stop_source stop;
    stop.request_stop();
    TypeParam event;
    EXPECT_EQ(event.wait(stop.get_token()), wait_status::stopped);
    EXPECT_EQ(event.wait_for(1h, stop.get_token()), wait_status::stopped);
    EXPECT_EQ(event.wait_until(std::chrono::system_clock::now() + 1h, stop.get_token()),
              wait_status::stopped);
    EXPECT_EQ(event.wait_until(tocsin::deadline::never(), stop.get_token()), wait_status::stopped);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_FALSE(event.is_set());
}

TYPED_TEST(EveryStoppableEvent, ASetEventIsTakenBeforeAStopCounts) {
    std::stop_source stop;
    stop.request_stop();
    TypeParam event{true};
    EXPECT_EQ(event.wait(stop.get_token()), wait_status::signaled);
    EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
    event.set();
    EXPECT_EQ(event.wait_for(0s, stop.get_token()), wait_status::signaled);
    event.set();
    EXPECT_EQ(event.wait_for(1h, stop.get_token()), wait_status::signaled);
}

TYPED_TEST(EveryStoppableEvent, ADeadlinePassedAndAStopRequestedConsumeNothing) {
    std::stop_source stop;
    stop.request_stop();
    TypeParam event;
    EXPECT_NE(event.wait_for(0s, stop.get_token()), wait_status::signaled);
    EXPECT_NE(event.wait_for(-1s, stop.get_token()), wait_status::signaled);
    event.set();
    EXPECT_TRUE(event.try_wait());
}

TYPED_TEST(EveryStoppableEvent, AStopDuringTheWaitEndsIt) {
    TypeParam event;
    std::stop_source stop;
    thread_group threads;
    threads.start("endless", [&] { EXPECT_EQ(event.wait(stop.get_token()), wait_status::stopped); });
    threads.start("for", [&] { EXPECT_EQ(event.wait_for(1h, stop.get_token()), wait_status::stopped); });
    threads.start("until", [&] {
        EXPECT_EQ(event.wait_until(std::chrono::system_clock::now() + 1h, stop.get_token()),
                  wait_status::stopped);
    });
    until_parked(&event, 3);
    EXPECT_EQ(threads.finished(), 0u);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    event.set();
    EXPECT_TRUE(event.is_set()) << "a stopped wait took the set";
}

TYPED_TEST(EveryStoppableEvent, AStopAfterTheSetChangesNothing) {
    TypeParam event;
    std::stop_source stop;
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(event.wait(stop.get_token()), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    stop.request_stop();
    threads.join();
    EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
}

// The waiter provably does not run between the set and the stop.
TYPED_TEST(EveryStoppableEvent, TheFirstOfSetAndStopDecidesThoughTheWaiterCannotRun) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    for (const bool set_first : {true, false}) {
        TypeParam event;
        std::stop_source stop;
        thread_group threads;
        wait_status ended{};
        threads.start("waiter", [&] { ended = event.wait(stop.get_token()); });
        until_parked(&event, 1);
        threads.until_asleep(0);
        freezer frost;
        frost.freeze(threads.handle(0));
        if (set_first) event.set();
        stop.request_stop();
        if (!set_first) event.set();
        frost.thaw();
        threads.join();
        EXPECT_EQ(ended, set_first ? wait_status::signaled : wait_status::stopped);
        if (set_first) {
            EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
        } else {
            EXPECT_TRUE(event.is_set()) << "a stopped wait took the set";
        }
    }
}

TYPED_TEST(EveryStoppableEvent, AStopEndsOnlyTheWaitsOfItsToken) {
    TypeParam event;
    std::array<std::stop_source, 3> stops;
    std::array<wait_status, 3> ended{};
    thread_group threads;
    for (std::size_t i = 0; i < 3; ++i) {
        threads.start("waiter", [&, i] { ended[i] = event.wait(stops[i].get_token()); });
        until_parked(&event, i + 1);
    }
    stops[1].request_stop();
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(1));
    until_parked(&event, 2);
    event.set();
    event.set();
    threads.join();
    EXPECT_EQ(ended[0], wait_status::signaled);
    EXPECT_EQ(ended[1], wait_status::stopped);
    EXPECT_EQ(ended[2], wait_status::signaled);
}

TYPED_TEST(EveryStoppableEvent, OneStopEndsWaitsOnManyEvents) {
    std::array<TypeParam, 12> events;
    std::stop_source stop;
    thread_group threads;
    threads.start_many(12, "waiter", [&](int i) {
        EXPECT_EQ(events[static_cast<std::size_t>(i)].wait(stop.get_token()), wait_status::stopped);
    });
    for (auto& each : events) until_parked(&each, 1);
    stop.request_stop();
    threads.join();
    for (auto& each : events) EXPECT_EQ(tocsin::waiting_on(&each), 0u);
}

TYPED_TEST(EveryStoppableEvent, ATokenWithoutASourceNeverStops) {
    TypeParam event;
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(event.wait(std::stop_token{}), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    threads.join();
    event.reset();
    EXPECT_EQ(event.wait_for(1ms, std::stop_token{}), wait_status::timed_out);
}

TYPED_TEST(EveryStoppableEvent, ASourceDestroyedWithoutAStopLeavesTheWaiterWaiting) {
    TypeParam event;
    thread_group threads;
    {
        std::stop_source stop;
        threads.start("waiter", [&event, token = stop.get_token()] {
            EXPECT_EQ(event.wait(token), wait_status::signaled);
        });
        until_parked(&event, 1);
    }
    EXPECT_EQ(tocsin::waiting_on(&event), 1u);
    event.set();
    threads.join();
}

TYPED_TEST(EveryStoppableEvent, ADeadlineEndsAWaitThatNobodyStops) {
    TypeParam event;
    std::stop_source stop;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(event.wait_for(5ms, stop.get_token()), wait_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
    stop.request_stop();
    EXPECT_EQ(event.wait_for(5ms, stop.get_token()), wait_status::stopped);
}

TYPED_TEST(EveryStoppableEvent, TheTokenOfAJthreadWorks) {
    TypeParam event;
    wait_status ended{};
    {
        std::jthread waiter([&](const std::stop_token& stop) { ended = event.wait(stop); });
        until_parked(&event, 1);
    }
    EXPECT_EQ(ended, wait_status::stopped);
}

TYPED_TEST(EveryStoppableEvent, AStopCallbackMayTouchTheSameEvent) {
    TypeParam event;
    std::stop_source stop;
    std::stop_callback set_too(stop.get_token(), [&] { event.set(); });
    thread_group threads;
    threads.start("waiter", [&] {
        // The standard promises no order of callbacks, so either may come first. Nothing may be lost.
        const auto ended = event.wait(stop.get_token());
        if (ended == wait_status::stopped) {
            support::until("the callback's set", [&] { return event.is_set(); });
        }
    });
    until_parked(&event, 1);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

// However set and stop race, either the wait's result reports the set or the event still has it.
TEST(AStop, NeverEatsASignal) {
    auto_reset_event event;
    support::starting_line line(3);
    const int rounds = support::rounds(4000, 1000);
    std::array<std::stop_source, 2> stop;  // one is replaced while the other is in use
    int stopped = 0;
    wait_status ended{};
    thread_group threads;
    threads.start("waiter", [&] {
        for (int i = 0; i < rounds; ++i) {
            line.arrive();
            ended = event.wait(stop[i % 2].get_token());
            line.arrive();
        }
    });
    threads.start("stopper", [&] {
        support::random_source random(3);
        for (int i = 0; i < rounds; ++i) {
            line.arrive();
            const auto loops = random.below(2000);
            for (std::uint64_t k = 0; k < loops; ++k) asm volatile("" ::: "memory");
            stop[i % 2].request_stop();
            line.arrive();
        }
    });
    support::random_source random(4);
    for (int i = 0; i < rounds; ++i) {
        line.arrive();
        const auto loops = random.below(2000);
        for (std::uint64_t k = 0; k < loops; ++k) asm volatile("" ::: "memory");
        event.set();
        line.arrive();
        if (ended == wait_status::signaled) {
            EXPECT_FALSE(event.is_set()) << "one set, taken twice, in round " << i;
        } else {
            ++stopped;
            EXPECT_TRUE(event.try_wait()) << "a set is lost in round " << i;
        }
        event.reset();
        stop[i % 2] = std::stop_source{};
    }
    threads.join();
    std::printf("%d signaled, %d stopped\n", rounds - stopped, stopped);
}

}  // namespace
