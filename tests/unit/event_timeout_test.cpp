// SPDX-License-Identifier: Apache-2.0
// Waits on events with a deadline. The tests check lower bounds exactly. Upper bounds only tell hanging from waiting.
#include "clocks.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <string>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using namespace support;
using namespace tocsin;

template <class Event>
class EveryTimedEvent : public testing::Test {};
using both_events = testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(EveryTimedEvent, both_events);

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

// Calls `check(name, deadline-or-duration)` with every kind of deadline or duration that has passed already.
template <class Check>
void for_each_passed(Check check) {
    check("zero", 0ns);
    check("zero hours", 0h);
    check("negative", -1ns);
    check("negative hours", -1h);
    check("least nanoseconds", nanoseconds::min());
    check("least hours", std::chrono::hours::min());
    check("negative zero", duration<double>(-0.0));
    check("negative fraction", duration<double>(-1e-12));
    check("least double", duration<double>(std::numeric_limits<double>::lowest()));
    check("minus infinity", duration<double>(-infinite));
    check("not a number", duration<double>(not_a_number));
    check("not a float", duration<float, std::milli>(std::numeric_limits<float>::quiet_NaN()));
    check("steady now", steady_clock::now());
    check("steady past", steady_clock::now() - 1h);
    check("steady epoch", steady_clock::time_point{});
    check("steady least", steady_clock::time_point::min());
    check("system now", system_clock::now());
    check("system past", system_clock::now() - 24h);
    check("system least", system_clock::time_point::min());
    check("system before its epoch", std::chrono::sys_days{std::chrono::year{1815} / 12 / 10});
    check("own clock now", slow_clock::now());
    check("own clock least", slow_clock::time_point::min());
    check("own clock in another unit",
          std::chrono::time_point_cast<std::chrono::hours>(slow_clock::now() - 2h));
}

// Does the same with every kind that never passes.
template <class Check>
void for_each_endless(Check check) {
    check("most nanoseconds", nanoseconds::max());
    check("a little less", nanoseconds::max() - 1ns);
    check("most microseconds", std::chrono::microseconds::max());
    check("most hours", std::chrono::hours::max());
    check("most unsigned", duration<std::uint64_t>::max());
    check("a million years", std::chrono::years(1'000'000));
    check("most double", duration<double>::max());
    check("most float hours", duration<float, std::ratio<3600>>::max());
    check("infinity", duration<double>(infinite));
    check("1e30", duration<double>(1e30));
    check("steady most", steady_clock::time_point::max());
    check("steady almost most", steady_clock::time_point::max() - 1ns);
    check("system most", system_clock::time_point::max());
    check("a far day", std::chrono::sys_days{std::chrono::year{30000} / 1 / 1});
    check("own clock most", slow_clock::time_point::max());
    check("own clock far", slow_clock::time_point(duration<double, std::micro>(1e25)));
}

// wait_for or wait_until, depending on the argument.
template <class Event, class Rep, class Period>
wait_status timed_wait(Event& event, duration<Rep, Period> longest) {
    return event.wait_for(longest);
}
template <class Event, class Clock, class Duration>
wait_status timed_wait(Event& event, const std::chrono::time_point<Clock, Duration>& at) {
    return event.wait_until(at);
}

TYPED_TEST(EveryTimedEvent, APassedDeadlineOnlyTries) {
    for_each_passed([](const char* name, const auto& when) {
        TypeParam event;
        EXPECT_EQ(timed_wait(event, when), wait_status::timed_out) << name;
        EXPECT_EQ(tocsin::waiting_on(&event), 0u);
        event.set();
        EXPECT_EQ(timed_wait(event, when), wait_status::signaled) << name;
        EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
    });
}

TYPED_TEST(EveryTimedEvent, AnEndlessDeadlineIsNoDeadline) {
    for_each_endless([](const char* name, const auto& when) {
        TypeParam event;
        thread_group threads;
        threads.start(name, [&] { EXPECT_EQ(timed_wait(event, when), wait_status::signaled) << name; });
        until_parked(&event, 1);
        threads.until_asleep(0);
        EXPECT_FALSE(threads.finished(0)) << name;
        event.set();
        threads.join();
    });
}

TYPED_TEST(EveryTimedEvent, AnEndlessDeadlineOnASetEventIsNotWaitedFor) {
    for_each_endless([](const char* name, const auto& when) {
        TypeParam event{true};
        EXPECT_EQ(timed_wait(event, when), wait_status::signaled) << name;
    });
}

TYPED_TEST(EveryTimedEvent, TimeoutZeroOrPastMakesNoSystemCall) {
    const auto calls = support::system_calls_of([] {
        TypeParam event;
        for (int i = 0; i < 10; ++i) {
            if (event.wait_for(0ns) != wait_status::timed_out) _exit(1);
            if (event.wait_for(-1h) != wait_status::timed_out) _exit(2);
            if (event.wait_until(steady_clock::time_point{}) != wait_status::timed_out) _exit(3);
            if (event.wait_until(system_clock::time_point{}) != wait_status::timed_out) _exit(4);
            event.set();
            if (event.wait_for(0ns) != wait_status::signaled) _exit(5);
            event.set();
            if (event.wait_for(1h) != wait_status::signaled) _exit(6);
            event.reset();
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

// Waits until it times out, and compares the end exactly, on the clock of the deadline.
template <class Event, class Rep, class Period>
void expect_not_early(duration<Rep, Period> longest) {
    Event event;
    const auto begin = steady_clock::now();
    EXPECT_EQ(event.wait_for(longest), wait_status::timed_out);
    const auto waited = steady_clock::now() - begin;
    const duration<long double, std::nano> wanted = longest;
    EXPECT_GE(static_cast<long double>(nanoseconds(waited).count()), wanted.count());
    EXPECT_LT(waited, support::patience());
}

TYPED_TEST(EveryTimedEvent, ATimedOutWaitHasReallyWaitedThatLong) {
    expect_not_early<TypeParam>(1ns);
    expect_not_early<TypeParam>(999ns);
    expect_not_early<TypeParam>(1us);
    expect_not_early<TypeParam>(999us);
    expect_not_early<TypeParam>(1ms);
    expect_not_early<TypeParam>(1'999'999ns);
    expect_not_early<TypeParam>(20ms);
    expect_not_early<TypeParam>(duration<double>(0.0030000001));
    expect_not_early<TypeParam>(duration<float, std::milli>(1.7f));
    expect_not_early<TypeParam>(duration<double, std::nano>(1500.5));
    expect_not_early<TypeParam>(duration<int, std::ratio<1, 700>>(1));
    expect_not_early<TypeParam>(duration<std::int64_t, std::ratio<1, 3'000'000'000>>(1'000'001));
    expect_not_early<TypeParam>(duration<std::int64_t, std::pico>(1));
}

TYPED_TEST(EveryTimedEvent, RandomTimeoutsAreNeverEarly) {
    support::random_source random(1);
    for (int i = 0; i < 60; ++i) {
        expect_not_early<TypeParam>(nanoseconds(1 + random.below(2'000'000)));
    }
}

template <class Clock>
void expect_not_early_on(typename Clock::duration after) {
    auto_reset_event event;
    const auto at = Clock::now() + after;
    EXPECT_EQ(event.wait_until(at), wait_status::timed_out);
    EXPECT_GE(Clock::now(), at);
}

TEST(TimePoints, AreNeverReportedEarlyOnTheirOwnClock) {
    for (int i = 1; i <= 30; ++i) {
        expect_not_early_on<steady_clock>(i * 97us);
        expect_not_early_on<system_clock>(std::chrono::duration_cast<system_clock::duration>(i * 89us));
        expect_not_early_on<slow_clock>(i * 53us);
    }
}

TEST(TimePoints, MayBeCoarserThanTheirClock) {
    auto_reset_event event;
    const auto at = std::chrono::ceil<std::chrono::milliseconds>(system_clock::now() + 2ms);
    EXPECT_EQ(event.wait_until(at), wait_status::timed_out);
    EXPECT_GE(system_clock::now(), at);
    const std::chrono::time_point<steady_clock, duration<double>> fraction =
        steady_clock::now() + duration<double>(0.003);
    EXPECT_EQ(event.wait_until(fraction), wait_status::timed_out);
    EXPECT_GE(steady_clock::now(), fraction);
}

TYPED_TEST(EveryTimedEvent, ASetBeforeTheDeadlineReleases) {
    TypeParam event;
    thread_group threads;
    threads.start("for", [&] { EXPECT_EQ(event.wait_for(10min), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    threads.join();
    event.reset();
    threads.start("until",
                  [&] { EXPECT_EQ(event.wait_until(system_clock::now() + 10min), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    threads.join();
    event.reset();
    threads.start("own clock",
                  [&] { EXPECT_EQ(event.wait_until(slow_clock::now() + 10min), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    threads.join();
}

TYPED_TEST(EveryTimedEvent, ATimedOutWaitLeavesNothingBehindAndTakesNothingLater) {
    TypeParam event;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(event.wait_for(200us), wait_status::timed_out);
        EXPECT_EQ(tocsin::waiting_on(&event), 0u);
        event.set();
        EXPECT_TRUE(event.is_set());
        EXPECT_TRUE(event.try_wait());
        event.reset();
    }
}

TYPED_TEST(EveryTimedEvent, OneThatTimesOutDoesNotDisturbTheOthers) {
    TypeParam event;
    thread_group threads;
    threads.start("patient, first", [&] { event.wait(); });
    until_parked(&event, 1);
    threads.start("patient, second", [&] { EXPECT_EQ(event.wait_for(1h), wait_status::signaled); });
    until_parked(&event, 2);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(event.wait_for(300us), wait_status::timed_out);
    EXPECT_EQ(tocsin::waiting_on(&event), 2u);
    EXPECT_EQ(threads.finished(), 0u);
    event.set();
    event.set();
    threads.join();
}

// The waiter's deadline passes while the waiter can't run. Then the event is set. The set was handed to the waiter, so
// the wait must report it.
TYPED_TEST(EveryTimedEvent, ASetThatWasHandedOverIsReportedEvenPastTheDeadline) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    TypeParam event;
    freezer frost;
    thread_group threads;
    wait_status ended{};
    const auto deadline = hand_clock::now() + 1h;  // far away, so that the thread sleeps until it is frozen
    threads.start("waiter", [&] { ended = event.wait_until(deadline); });
    until_parked(&event, 1);
    // A thread that is frozen while it falls asleep might hold a mutex of the portable futex, which set() needs.
    threads.until_asleep(0);
    frost.freeze(threads.handle(0));
    hand_clock::set(deadline);
    EXPECT_EQ(tocsin::waiting_on(&event), 1u);
    event.set();
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
    frost.thaw();
    threads.join();
    EXPECT_EQ(ended, wait_status::signaled);
    EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
}

// However set and timeout race, either the wait's result reports the set or the event still has it.
TEST(ATimeout, NeverEatsASignal) {
    support::random_source random(2);
    int signaled = 0;
    int timed_out = 0;
    auto_reset_event event;
    for (int round = 0; round < support::rounds(3000, 800); ++round) {
        const nanoseconds longest(1 + random.below(120'000));
        const auto pause_loops = random.below(6000);
        wait_status ended{};
        std::atomic<bool> begun{false};
        std::thread waiter([&] {
            begun.store(true);
            ended = event.wait_for(longest);
        });
        while (!begun.load()) std::this_thread::yield();
        for (std::uint64_t i = 0; i < pause_loops; ++i) asm volatile("" ::: "memory");
        event.set();
        waiter.join();
        if (ended == wait_status::signaled) {
            ++signaled;
            ASSERT_FALSE(event.is_set()) << "one set, taken twice, in round " << round;
        } else {
            ++timed_out;
            ASSERT_TRUE(event.try_wait()) << "a set is lost in round " << round;
        }
    }
    std::printf("%d signaled, %d timed out\n", signaled, timed_out);
}

TEST(AUserDefinedClock, IsReadAgainUntilItReachesTheDeadline) {
    hand_clock::set(0);
    const long reads = hand_clock::reads.load();
    manual_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] {
        EXPECT_EQ(event.wait_until(hand_clock::time_point(3ms)), wait_status::timed_out);
        EXPECT_GE(hand_clock::now(), hand_clock::time_point(3ms));
    });
    support::until("the clock is read a few times", [&] { return hand_clock::reads.load() >= reads + 5; });
    EXPECT_FALSE(threads.finished(0));
    hand_clock::set(-20);  // backwards
    const long more = hand_clock::reads.load();
    support::until("the clock is read after its jump", [&] { return hand_clock::reads.load() >= more + 2; });
    EXPECT_FALSE(threads.finished(0));
    hand_clock::set(2);
    const long nearly = hand_clock::reads.load();
    support::until("the clock is read just before the time",
                   [&] { return hand_clock::reads.load() >= nearly + 2; });
    EXPECT_FALSE(threads.finished(0));
    hand_clock::set(1'000'000'000);  // far beyond
    threads.join();
}

TEST(AUserDefinedClock, MayStandStillWhileASetReleases) {
    hand_clock::set(0);
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter",
                  [&] { EXPECT_EQ(event.wait_until(hand_clock::time_point(1min)), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    threads.join();
}

TEST(AUserDefinedClock, MayHavePassedAlready) {
    hand_clock::set(1000);
    auto_reset_event event;
    EXPECT_EQ(event.wait_until(hand_clock::time_point(1s)), wait_status::timed_out);
    EXPECT_EQ(event.wait_until(hand_clock::time_point(-1s)), wait_status::timed_out);
    event.set();
    EXPECT_EQ(event.wait_until(hand_clock::time_point(-1s)), wait_status::signaled);
}

TEST(ADeadline, GivenAsAValueIsTheSamePointForEveryWait) {
    const auto begin = steady_clock::now();
    const tocsin::deadline until = 30ms;
    auto_reset_event event;
    EXPECT_EQ(event.wait_until(until), wait_status::timed_out);
    EXPECT_GE(steady_clock::now() - begin, 30ms);
    const auto again = steady_clock::now();
    EXPECT_EQ(event.wait_until(until), wait_status::timed_out);
    EXPECT_EQ(event.wait_until(until), wait_status::timed_out);
    EXPECT_LT(steady_clock::now() - again, support::patience());
    EXPECT_TRUE(until.has_passed());
}

TEST(ADeadline, OfNeverWaitsForTheSet) {
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter",
                  [&] { EXPECT_EQ(event.wait_until(tocsin::deadline::never()), wait_status::signaled); });
    until_parked(&event, 1);
    event.set();
    threads.join();
}

}  // namespace
