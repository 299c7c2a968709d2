// SPDX-License-Identifier: Apache-2.0
// The contract of events, line by line, for waits without a deadline. For timeouts see event_timeout_test.cpp, for
// stops event_stop_test.cpp.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

constinit manual_reset_event unset_at_compile_time;
constinit auto_reset_event set_at_compile_time{true};

template <class Event>
class EveryEvent : public testing::Test {};
// The same with a mode that is chosen at run time.
template <tocsin::reset_mode Mode>
struct chosen : tocsin::event {
    explicit chosen(bool initially_set = false) noexcept : event(at_run_time(), initially_set) {}
    static tocsin::reset_mode at_run_time() noexcept {
        static std::atomic<tocsin::reset_mode> mode{Mode};
        return mode.load();
    }
};
using chosen_manual = chosen<tocsin::reset_mode::manual_reset>;
using chosen_auto = chosen<tocsin::reset_mode::auto_reset>;
using all_events = testing::Types<manual_reset_event, auto_reset_event, chosen_manual, chosen_auto>;
TYPED_TEST_SUITE(EveryEvent, all_events);

template <class Event>
constexpr bool is_gate = std::is_same_v<Event, manual_reset_event> || std::is_same_v<Event, chosen_manual>;

TYPED_TEST(EveryEvent, IsOneByteOrTwo) {
    static_assert(sizeof(TypeParam) == (std::is_base_of_v<tocsin::event, TypeParam> ? 2 : 1));
    static_assert(alignof(TypeParam) == 1);
}

TYPED_TEST(EveryEvent, IsConsumedOrNotByItsMode) {
    TypeParam event{true};
    EXPECT_TRUE(event.try_wait());
    EXPECT_EQ(event.is_set(), is_gate<TypeParam>);
    event.set();
    EXPECT_EQ(event.wait_for(0s), wait_status::signaled);
    EXPECT_EQ(event.is_set(), is_gate<TypeParam>);
    event.set();
    EXPECT_EQ(tocsin::wait_any(event).index, 0u);
    EXPECT_EQ(event.is_set(), is_gate<TypeParam>);
    event.set();
    tocsin::wait_all(event);
    EXPECT_EQ(event.is_set(), is_gate<TypeParam>);
}

TYPED_TEST(EveryEvent, ASetReleasesAllOrOneByItsMode) {
    TypeParam event;
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) { event.wait(); });
    until_parked(&event, 3);
    event.set();
    threads.until_finished(1);
    if (!is_gate<TypeParam>) {
        EXPECT_EQ(tocsin::waiting_on(&event), 2u);
        event.set();
        event.set();
    }
    threads.join();
    EXPECT_EQ(event.is_set(), is_gate<TypeParam>);
}

constinit tocsin::event chosen_at_compile_time{tocsin::reset_mode::auto_reset, true};

TEST(ChosenEvent, SaysItsMode) {
    EXPECT_EQ(chosen_at_compile_time.mode(), tocsin::reset_mode::auto_reset);
    EXPECT_EQ(tocsin::event(tocsin::reset_mode::manual_reset).mode(), tocsin::reset_mode::manual_reset);
    EXPECT_TRUE(chosen_at_compile_time.try_wait());
    EXPECT_FALSE(chosen_at_compile_time.try_wait());
    static_assert(!std::is_default_constructible_v<tocsin::event>);
    static_assert(!std::is_convertible_v<tocsin::reset_mode, tocsin::event>);
}

TYPED_TEST(EveryEvent, IsNeitherCopiedNorMoved) {
    static_assert(!std::is_copy_constructible_v<TypeParam>);
    static_assert(!std::is_copy_assignable_v<TypeParam>);
    static_assert(!std::is_move_constructible_v<TypeParam>);
    static_assert(!std::is_move_assignable_v<TypeParam>);
    static_assert(!std::is_convertible_v<bool, TypeParam>);
}

TYPED_TEST(EveryEvent, HasATrivialDestructorUnlessMisuseIsChecked) {
#if !TOCSIN_CHECKED
    static_assert(std::is_trivially_destructible_v<TypeParam>);
#endif
    static_assert(std::is_nothrow_destructible_v<TypeParam>);
}

TYPED_TEST(EveryEvent, IsUnsetUnlessMadeSet) {
    TypeParam unset;
    EXPECT_FALSE(unset.is_set());
    TypeParam set{true};
    EXPECT_TRUE(set.is_set());
    TypeParam made_unset{false};
    EXPECT_FALSE(made_unset.is_set());
}

TEST(EventConstruction, HappensAtCompileTime) {
    EXPECT_FALSE(unset_at_compile_time.is_set());
    EXPECT_TRUE(set_at_compile_time.is_set());
}

TYPED_TEST(EveryEvent, NoCallThrows) {
    TypeParam event;
    const std::chrono::seconds second(1);
    static_assert(noexcept(event.set()));
    static_assert(noexcept(event.reset()));
    static_assert(noexcept(event.is_set()));
    static_assert(noexcept(event.try_wait()));
    static_assert(noexcept(event.wait()));
    static_assert(noexcept(event.wait_for(second)));
    static_assert(noexcept(event.wait_until(std::chrono::steady_clock::now())));
    (void)second;
}

TYPED_TEST(EveryEvent, SetStaysUntilReset) {
    TypeParam event;
    event.set();
    EXPECT_TRUE(event.is_set());
    event.reset();
    EXPECT_FALSE(event.is_set());
}

TYPED_TEST(EveryEvent, ResetOfAnUnsetEventDoesNothing) {
    TypeParam event;
    event.reset();
    event.reset();
    EXPECT_FALSE(event.is_set());
    event.set();
    EXPECT_TRUE(event.is_set());
}

TYPED_TEST(EveryEvent, LookingDoesNotConsume) {
    TypeParam event{true};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(event.is_set());
    EXPECT_TRUE(event.try_wait());
}

TYPED_TEST(EveryEvent, TryWaitOnAnUnsetEventFails) {
    TypeParam event;
    EXPECT_FALSE(event.try_wait());
    EXPECT_FALSE(event.is_set());
}

TYPED_TEST(EveryEvent, WaitOnASetEventReturnsAtOnce) {
    TypeParam event{true};
    event.wait();
    EXPECT_EQ(event.is_set(), (is_gate<TypeParam>));
}

TYPED_TEST(EveryEvent, SetReleasesAWaiter) {
    TypeParam event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    EXPECT_FALSE(threads.finished(0));
    event.set();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_EQ(event.is_set(), (is_gate<TypeParam>));
}

TYPED_TEST(EveryEvent, AWaiterIsReallyAsleep) {
    TypeParam event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    threads.until_asleep(0);
    event.set();
    threads.join();
}

TYPED_TEST(EveryEvent, CanBeUsedAgainAndAgain) {
    TypeParam event;
    for (int round = 0; round < 200; ++round) {
        thread_group threads;
        threads.start("waiter", [&] { event.wait(); });
        if (round % 2 == 0) until_parked(&event, 1);
        event.set();
        threads.join();
        event.reset();
    }
}

// Plain data: ThreadSanitizer reports a set() that does not publish.
TYPED_TEST(EveryEvent, WhatHappenedBeforeSetIsVisibleToTheWaiterItReleased) {
    for (int round = 0; round < 300; ++round) {
        TypeParam event;
        int data = 0;
        thread_group threads;
        threads.start("waiter", [&] {
            event.wait();
            EXPECT_EQ(data, round + 1);
        });
        if (round % 2 == 0) until_parked(&event, 1);
        data = round + 1;
        event.set();
        threads.join();
    }
}

TYPED_TEST(EveryEvent, WhatHappenedBeforeSetIsVisibleToWhoeverPolls) {
    for (int round = 0; round < 300; ++round) {
        TypeParam event;
        int data = 0;
        thread_group threads;
        threads.start("poller", [&] {
            while (!event.is_set()) std::this_thread::yield();
            EXPECT_EQ(data, round + 1);
        });
        data = round + 1;
        event.set();
        threads.join();
    }
}

// Two threads set, and the later finds the event set. The data of both must reach the one consumer that knows, by
// relaxed flags, that both have set.
TYPED_TEST(EveryEvent, SetOnASetEventStillPublishes) {
    for (int round = 0; round < 300; ++round) {
        TypeParam event;
        std::array<int, 2> data{};
        std::atomic<int> have_set{0};
        thread_group threads;
        threads.start_many(2, "setter", [&](int number) {
            data[static_cast<std::size_t>(number)] = round + 1;
            event.set();
            have_set.fetch_add(1, std::memory_order_relaxed);
        });
        threads.start("consumer", [&] {
            while (have_set.load(std::memory_order_relaxed) != 2) std::this_thread::yield();
            ASSERT_TRUE(event.try_wait());
            EXPECT_EQ(data[0], round + 1);
            EXPECT_EQ(data[1], round + 1);
        });
        threads.join();
    }
}

TYPED_TEST(EveryEvent, WaitersOfNeighboursInOneWordAreLeftAsleep) {
    std::array<TypeParam, 8> events;
    thread_group threads;
    threads.start_many(8, "waiter", [&](int i) { events[static_cast<std::size_t>(i)].wait(); });
    for (auto& each : events) until_parked(&each, 1);
    for (std::size_t i = 0; i < 8; ++i) support::until_sound_asleep(threads.id(i));
    const auto before = support::switches_of(threads.id(0));
    for (std::size_t i = 7; i > 0; --i) {
        events[i].set();
        threads.until_finished(8 - i);
        for (std::size_t other = 0; other < i; ++other) {
            EXPECT_EQ(tocsin::waiting_on(&events[other]), 1u);
            EXPECT_FALSE(threads.finished(other));
        }
    }
    EXPECT_EQ(support::switches_of(threads.id(0)).voluntary, before.voluntary);
    events[0].set();
    threads.join();
}

// Starts threads that wait and are certainly asleep. After their wait they sleep for ever, out of the way.
template <class Event>
void sleeping_waiters(Event& event, int count) {
    std::vector<std::atomic<pid_t>> ids(static_cast<std::size_t>(count));
    for (auto& id : ids) {
        std::thread([&] {
            id.store(support::thread_id());
            event.wait();
            support::sleep_for_ever();
        }).detach();
    }
    until_parked(&event, ids.size());
    for (auto& id : ids) support::until_asleep(id.load());
}

TYPED_TEST(EveryEvent, NothingThatNeedNotSleepOrWakeMakesASystemCall) {
    const auto calls = support::system_calls_of([] {
        TypeParam event;
        for (int i = 0; i < 100; ++i) {
            event.set();
            event.set();
            if (!event.is_set()) _exit(1);
            event.wait();
            event.reset();
            if (event.try_wait()) _exit(2);
            event.set();
            if (!event.try_wait()) _exit(3);
            event.reset();
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

// One on Linux (tests/internal/futex_test.cpp). The portable futex may also have to unlock a mutex.
TYPED_TEST(EveryEvent, WakingOneWaiterIsOneSystemCallOrTwo) {
    TypeParam event;
    const auto calls = support::system_calls_of([&] { sleeping_waiters(event, 1); }, [&] { event.set(); });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_LE(calls.numbers.size(), 2u) << testing::PrintToString(calls);
}

// ---- manual reset -------------------------------------------------------------------------------

TEST(ManualResetEvent, SetReleasesEveryWaiter) {
    manual_reset_event event;
    thread_group threads;
    threads.start_many(20, "waiter", [&](int) { event.wait(); });
    until_parked(&event, 20);
    event.set();
    threads.join();
    EXPECT_TRUE(event.is_set());
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

TEST(ManualResetEvent, SetReleasesEveryWaiterEvenWhenResetFollowsAtOnce) {
    for (int round = 0; round < rounds(200, 40); ++round) {
        manual_reset_event event;
        thread_group threads;
        const int waiters = 1 + round % 12;
        threads.start_many(waiters, "waiter", [&](int) { event.wait(); });
        until_parked(&event, static_cast<std::size_t>(waiters));
        event.set();
        event.reset();
        EXPECT_FALSE(event.is_set());
        threads.join();
        EXPECT_FALSE(event.is_set());
    }
}

// The waiters provably don't run between set and reset, nor for long afterwards.
TEST(ManualResetEvent, SetReleasesWaitersThatCannotRunUntilLongAfterTheReset) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    manual_reset_event event;
    thread_group threads;
    threads.start_many(5, "waiter", [&](int) { event.wait(); });
    until_parked(&event, 5);
    freezer frost;
    for (std::size_t i = 0; i < 5; ++i) {
        threads.until_asleep(i);
        frost.freeze(threads.handle(i));
    }
    event.set();
    event.reset();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_EQ(threads.finished(), 0u);
    frost.thaw();
    threads.join();
    EXPECT_FALSE(event.is_set());
}

TEST(ManualResetEvent, LaterWaitersPassUntilReset) {
    manual_reset_event event;
    event.set();
    for (int i = 0; i < 3; ++i) {
        event.wait();
        EXPECT_TRUE(event.try_wait());
    }
    thread_group threads;
    threads.start_many(4, "later waiter", [&](int) { event.wait(); });
    threads.join();
    event.reset();
    EXPECT_FALSE(event.try_wait());
}

TEST(ManualResetEvent, AThreadThatComesAfterTheResetWaitsForTheNextSet) {
    manual_reset_event event;
    thread_group threads;
    threads.start("first", [&] { event.wait(); });
    until_parked(&event, 1);
    event.set();
    event.reset();
    threads.start("second", [&] { event.wait(); });
    threads.until_finished(1);
    until_parked(&event, 1);
    EXPECT_TRUE(threads.finished(0));
    EXPECT_FALSE(threads.finished(1));
    event.set();
    threads.join();
}

TEST(ManualResetEvent, SetOnASetEventReleasesNobodyTwice) {
    manual_reset_event event;
    event.set();
    event.set();
    event.reset();
    EXPECT_FALSE(event.is_set());
    EXPECT_FALSE(event.try_wait());
}

TEST(ManualResetEvent, SetIsNotHeldForLongHoweverManyWait) {
    manual_reset_event event;
    constexpr int waiters = 100;
    const auto calls =
        support::system_calls_of([&] { sleeping_waiters(event, waiters); }, [&] { event.set(); });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_LE(calls.numbers.size(), 8u) << testing::PrintToString(calls);
}

// ---- auto reset ---------------------------------------------------------------------------------

TEST(AutoResetEvent, SetWithNoWaiterStaysForExactlyOneConsumer) {
    auto_reset_event event;
    event.set();
    EXPECT_TRUE(event.is_set());
    event.wait();
    EXPECT_FALSE(event.is_set());
    EXPECT_FALSE(event.try_wait());
}

TEST(AutoResetEvent, SetOnASetEventIsAbsorbed) {
    auto_reset_event event;
    event.set();
    event.set();
    event.set();
    EXPECT_TRUE(event.try_wait());
    EXPECT_FALSE(event.try_wait());
    EXPECT_FALSE(event.is_set());
}

TEST(AutoResetEvent, SetReleasesExactlyOne) {
    auto_reset_event event;
    thread_group threads;
    threads.start_many(4, "waiter", [&](int) { event.wait(); });
    until_parked(&event, 4);
    for (std::size_t released = 1; released <= 4; ++released) {
        event.set();
        EXPECT_FALSE(event.is_set());
        threads.until_finished(released);
        until_parked(&event, 4 - released);
        EXPECT_EQ(threads.finished(), released);
    }
    EXPECT_FALSE(event.is_set());
}

TEST(AutoResetEvent, TwoSetsReleaseTwoWaiters) {
    for (int round = 0; round < rounds(300, 60); ++round) {
        auto_reset_event event;
        thread_group threads;
        threads.start_many(2, "waiter", [&](int) { event.wait(); });
        until_parked(&event, 2);
        event.set();
        event.set();
        EXPECT_EQ(tocsin::waiting_on(&event), 0u);
        EXPECT_FALSE(event.is_set());
        threads.join();
        EXPECT_FALSE(event.is_set());
    }
}

TEST(AutoResetEvent, TwoSetsReleaseTwoWaitersThoughNeitherRanInBetween) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    auto_reset_event event;
    thread_group threads;
    threads.start_many(2, "waiter", [&](int) { event.wait(); });
    until_parked(&event, 2);
    freezer frost;
    for (std::size_t i = 0; i < 2; ++i) {
        threads.until_asleep(i);
        frost.freeze(threads.handle(i));
    }
    event.set();
    event.set();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_FALSE(event.is_set());
    event.set();
    EXPECT_TRUE(event.is_set()) << "a third set finds nobody waiting and stays";
    frost.thaw();
    threads.join();
    EXPECT_TRUE(event.try_wait());
}

TEST(AutoResetEvent, WhatWasHandedOverCannotBeStolen) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    threads.until_asleep(0);
    freezer frost;
    frost.freeze(threads.handle(0));
    event.set();
    EXPECT_FALSE(event.is_set());
    EXPECT_FALSE(event.try_wait());
    event.reset();
    EXPECT_EQ(event.wait_for(std::chrono::milliseconds(1)), wait_status::timed_out);
    frost.thaw();
    threads.join();
}

TEST(AutoResetEvent, QueuedWaitersAreReleasedInTheOrderOfTheirArrival) {
    auto_reset_event event;
    constexpr std::size_t waiters = 10;
    thread_group threads;
    for (std::size_t i = 0; i < waiters; ++i) {
        threads.start("waiter", [&] { event.wait(); });
        until_parked(&event, i + 1);
    }
    for (std::size_t i = 0; i < waiters; ++i) {
        event.set();
        threads.until_finished(i + 1);
        EXPECT_TRUE(threads.finished(i)) << "after " << i + 1 << " sets";
        EXPECT_EQ(threads.finished(), i + 1);
    }
}

TEST(AutoResetEvent, OrderSurvivesAWaiterThatGivesUpInTheMiddle) {
    auto_reset_event event;
    thread_group threads;
    std::stop_source stop;
    std::array<wait_status, 5> ended{};
    for (std::size_t i = 0; i < 5; ++i) {
        threads.start("waiter", [&, i] {
            if (i == 2) {
                ended[i] = event.wait(stop.get_token());
            } else {
                event.wait();
            }
        });
        until_parked(&event, i + 1);
    }
    stop.request_stop();
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(2));
    until_parked(&event, 4);
    std::size_t released = 1;
    for (const std::size_t next : {0u, 1u, 3u, 4u}) {
        event.set();
        threads.until_finished(++released);
        EXPECT_TRUE(threads.finished(next));
    }
    threads.join();
    EXPECT_EQ(ended[2], wait_status::stopped);
}

TEST(AutoResetEvent, ResetTakesAwayWhatNobodyConsumed) {
    auto_reset_event event{true};
    event.reset();
    EXPECT_FALSE(event.try_wait());
    EXPECT_FALSE(event.is_set());
}

TEST(AutoResetEvent, ResetDoesNotTakeBackWhatWasHandedOver) {
    for (int round = 0; round < rounds(200, 40); ++round) {
        auto_reset_event event;
        thread_group threads;
        threads.start("waiter", [&] { event.wait(); });
        until_parked(&event, 1);
        event.set();
        event.reset();
        threads.join();
        EXPECT_FALSE(event.is_set());
    }
}

TEST(AutoResetEvent, ManyWaitersAreEachReleasedByOneSetOfMany) {
    auto_reset_event event;
    constexpr int waiters = 60;
    thread_group threads;
    threads.start_many(waiters, "waiter", [&](int) { event.wait(); });
    until_parked(&event, waiters);
    for (int i = 0; i < waiters; ++i) event.set();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_FALSE(event.is_set());
    threads.join();
}

// ---- misuse -------------------------------------------------------------------------------------

#if TOCSIN_CHECKED
template <class Event>
void destroy_with_a_waiter() {
    auto* const event = new Event;
    support::start_unjoined([event] { event->wait(); });
    until_parked(event, 1);
    delete event;
}

TEST(EventMisuse, DestroyingAManualResetEventWithAWaiterIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter<manual_reset_event>(),
                              "manual_reset_event.*destroy.*wait");
}

TEST(EventMisuse, DestroyingAnAutoResetEventWithAWaiterIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter<auto_reset_event>(), "auto_reset_event.*destroy.*wait");
}
#endif

TYPED_TEST(EveryEvent, MayBeDestroyedByTheWaiterItReleased) {
    for (int round = 0; round < rounds(300, 100); ++round) {
        auto* event = new TypeParam;
        thread_group threads;
        threads.start("waiter", [&] {
            event->wait();
            delete event;
        });
        if (round % 2 == 0) until_parked(event, 1);
        event->set();
        threads.join();
    }
}

}  // namespace
