// SPDX-License-Identifier: Apache-2.0
// wait_any() and wait_all() over events, timers and custom sources: the contract, line by line.
// Descriptors: fd_test.cpp.
#include "allocations.hpp"
#include "clocks.hpp"
#include "countdown.hpp"
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
#include <deque>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using namespace support;
using namespace tocsin;

constexpr any_result timed_out{wait_status::timed_out};
constexpr any_result stopped{wait_status::stopped};
constexpr any_result taken(std::size_t index) { return {wait_status::signaled, index}; }

// What std::invalid_argument says, or "" if nothing is thrown.
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

template <class Event>
std::vector<source> sources_of(std::deque<Event>& events) {
    return {events.begin(), events.end()};
}

// --- any ----------------------------------------------------------------------------------------------------

TEST(WaitAny, TakesTheLowestIndexOfSeveralThatAreReady) {
    auto_reset_event a;
    auto_reset_event b(true);
    manual_reset_event c(true);
    EXPECT_EQ(wait_any(a, b, c), taken(1));
    EXPECT_EQ(wait_any(a, b, c), taken(2));
    EXPECT_EQ(wait_any(c, a, b), taken(0));
}

TEST(WaitAny, TakesExactlyOneAndLeavesTheOthers) {
    auto_reset_event a(true);
    auto_reset_event b(true);
    EXPECT_EQ(wait_any(a, b), taken(0));
    EXPECT_FALSE(a.is_set());
    EXPECT_TRUE(b.is_set());
}

TEST(WaitAny, PassesAManualEventAndLeavesItSet) {
    manual_reset_event gate(true);
    EXPECT_EQ(wait_any(gate), taken(0));
    EXPECT_TRUE(gate.is_set());
}

TEST(WaitAny, IsReleasedByTheOneThatIsSetAndSaysWhich) {
    for (std::size_t which = 0; which != 3; ++which) {
        auto_reset_event events[3];
        any_result result{};
        thread_group threads;
        threads.start("waiter", [&] { result = wait_any(events[0], events[1], events[2]); });
        for (auto& each : events) until_parked(&each, 1);
        events[which].set();
        threads.join();
        EXPECT_EQ(result, taken(which));
        for (auto& each : events) {
            EXPECT_FALSE(each.is_set());
            EXPECT_EQ(tocsin::waiting_on(&each), 0u);
        }
    }
}

TEST(WaitAny, LeavesASecondSetForOthers) {
    auto_reset_event a;
    auto_reset_event b;
    thread_group threads;
    threads.start("waiter", [&] { wait_any(a, b); });
    until_parked(&b, 1);
    a.set();
    b.set();
    threads.join();
    EXPECT_FALSE(a.is_set());
    EXPECT_TRUE(b.is_set());
}

TEST(WaitAny, IsReleasedBySetAndResetAtOnce) {
    manual_reset_event gate;
    auto_reset_event other;
    any_result result{};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_any(other, gate); });
    until_parked(&gate, 1);
    gate.set();
    gate.reset();
    threads.join();
    EXPECT_EQ(result, taken(1));
}

TEST(WaitAny, MayNameTheSameSourceTwice) {
    auto_reset_event a(true);
    EXPECT_EQ(wait_any(a, a), taken(0));
    EXPECT_FALSE(a.is_set());
    any_result result{};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_any(a, a); });
    until_parked(&a, 2);
    a.set();
    threads.join();
    EXPECT_EQ(result, taken(0));
    EXPECT_FALSE(a.is_set());
    EXPECT_EQ(tocsin::waiting_on(&a), 0u);
}

TEST(WaitAny, RefusesNoSourcesWithAMessage) {
    EXPECT_EQ(refusal([] { wait_any(std::span<const source>{}); }), "tocsin::wait_any: no sources");
}

TEST(WaitAny, TakesMoreThan64And128SourcesAndTenThousand) {
    for (const std::size_t count : {65u, 129u, 10'000u}) {
        std::deque<auto_reset_event> events(count);
        const auto sources = sources_of(events);
        events[count - 1].set();
        EXPECT_EQ(wait_any(sources), taken(count - 1));
        any_result result{};
        thread_group threads;
        threads.start("waiter", [&] { result = wait_any(sources); });
        until_parked(&events[count - 1], 1);
        events[count / 2].set();
        threads.join();
        EXPECT_EQ(result, taken(count / 2));
        for (auto& each : events) ASSERT_EQ(tocsin::waiting_on(&each), 0u);
    }
}

TEST(WaitAny, SharesAnEventWithManyOtherWaitsFirstInFirstOut) {
    auto_reset_event shared;
    auto_reset_event own[4];
    std::atomic<int> order{0};
    std::array<int, 4> position{};
    thread_group threads;
    for (int i = 0; i != 4; ++i) {
        threads.start([&, i] {
            if (i % 2 == 0) {
                wait_any(own[i], shared);
            } else {
                shared.wait();
            }
            position[static_cast<std::size_t>(i)] = order.fetch_add(1);
        });
        until_parked(&shared, static_cast<std::size_t>(i) + 1);
    }
    for (int i = 0; i != 4; ++i) {
        shared.set();
        threads.until_finished(static_cast<std::size_t>(i) + 1);
    }
    EXPECT_EQ(position, (std::array{0, 1, 2, 3}));
}

// --- all ----------------------------------------------------------------------------------------------------

TEST(WaitAll, TakesAllThatAreReady) {
    auto_reset_event a(true);
    auto_reset_event b(true);
    manual_reset_event gate(true);
    EXPECT_EQ(wait_all(a, gate, b), wait_status::signaled);
    EXPECT_FALSE(a.is_set());
    EXPECT_FALSE(b.is_set());
    EXPECT_TRUE(gate.is_set());
}

TEST(WaitAll, TakesNothingUntilTheLastIsReady) {
    auto_reset_event a;
    auto_reset_event b;
    thread_group threads;
    threads.start("waiter", [&] { wait_all(a, b); });
    until_parked(&b, 1);
    a.set();
    EXPECT_TRUE(a.is_set());
    EXPECT_EQ(tocsin::waiting_on(&a), 1u);
    b.set();
    threads.join();
    EXPECT_FALSE(a.is_set());
    EXPECT_FALSE(b.is_set());
}

TEST(WaitAll, LeavesWhatIsReadyToOthersUntilTheLastIsReady) {
    auto_reset_event a;
    auto_reset_event b;
    thread_group threads;
    threads.start("waiter", [&] { wait_all(a, b); });
    until_parked(&b, 1);
    a.set();
    EXPECT_TRUE(a.try_wait());
    b.set();
    EXPECT_TRUE(b.is_set());
    a.set();
    threads.join();
    EXPECT_FALSE(b.is_set());
}

// A clock that is set back once it has been read.
struct clock_set_back {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock_set_back>;

    static time_point now() noexcept { return time_point(reads++ == 0 ? 0ms : -1'000'000ms); }

    inline static int reads = 0;
};

TEST(WaitAll, IsNotEarlyWhenAClockIsSetBack) {
    const clock_set_back::time_point in_5_ms(5ms);
    EXPECT_EQ(tocsin::wait_all({.until = 60ms}, tocsin::after(20ms), tocsin::at(in_5_ms)),
              wait_status::timed_out);
}

TEST(WaitAll, IsNotSatisfiedBySourcesThatWereNeverReadyTogether) {
    manual_reset_event a;
    manual_reset_event b;
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] { wait_all(a, b); });
    until_parked(&b, 1);
    a.set();
    a.reset();
    b.set();
    EXPECT_EQ(tocsin::waiting_on(&a), 1u);
    EXPECT_FALSE(threads.finished(waiter));
    a.set();
    threads.join();
}

TEST(WaitAll, TakesNothingWhenItTimesOut) {
    auto_reset_event a(true);
    auto_reset_event b;
    EXPECT_EQ(wait_all({.until = 2ms}, a, b), wait_status::timed_out);
    EXPECT_TRUE(a.is_set());
    EXPECT_EQ(tocsin::waiting_on(&a), 0u);
    EXPECT_EQ(tocsin::waiting_on(&b), 0u);
    EXPECT_TRUE(a.try_wait());
}

TEST(WaitAll, TakesNothingWhenItIsStopped) {
    auto_reset_event a(true);
    auto_reset_event b;
    std::stop_source stop;
    wait_status result{};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_all({.stop = stop.get_token()}, a, b); });
    until_parked(&b, 1);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(result, wait_status::stopped);
    EXPECT_TRUE(a.try_wait());
    b.set();
    EXPECT_TRUE(b.try_wait());
}

TEST(WaitAll, WakesOnceHoweverOftenSomeAreSet) {
    auto_reset_event a;
    auto_reset_event b;
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] { wait_all(a, b); });
    until_parked(&b, 1);
    support::until_sound_asleep(threads.id(waiter));
    const auto before = support::switches_of(threads.id(waiter));
    for (int i = 0; i != 1000; ++i) {
        a.set();
        a.reset();
    }
    EXPECT_EQ(support::switches_of(threads.id(waiter)).voluntary, before.voluntary);
    EXPECT_EQ(support::switches_of(threads.id(waiter)).forced, before.forced);
    a.set();
    EXPECT_EQ(support::state_of(threads.id(waiter)), 'S');
    b.set();
    threads.join();
}

TEST(WaitAll, RefusesNoSourcesAndTheSameTwiceAndNamesBoth) {
    auto_reset_event a(true);
    auto_reset_event b(true);
    EXPECT_EQ(refusal([] { wait_all(std::span<const source>{}); }), "tocsin::wait_all: no sources");
    EXPECT_EQ(refusal([&] { wait_all(a, b, a); }), "tocsin::wait_all: sources 0 and 2 are the same");
    EXPECT_TRUE(a.is_set());
    EXPECT_TRUE(b.is_set());
}

TEST(WaitAll, FindsTheSameTwiceAmongMany) {
    std::deque<manual_reset_event> events(1000);
    auto sources = sources_of(events);
    sources.push_back(events[500]);
    EXPECT_EQ(refusal([&] { wait_all(sources); }), "tocsin::wait_all: sources 500 and 1000 are the same");
}

TEST(WaitAll, TakesMoreThan64And128SourcesAndTenThousand) {
    for (const std::size_t count : {65u, 129u, 10'000u}) {
        std::deque<auto_reset_event> events(count);
        const auto sources = sources_of(events);
        thread_group threads;
        threads.start("waiter", [&] { wait_all(sources); });
        until_parked(&events[count - 1], 1);
        for (auto each = events.rbegin(); each != events.rend(); ++each) each->set();
        threads.join();
        for (auto& each : events) {
            ASSERT_FALSE(each.is_set());
            ASSERT_EQ(tocsin::waiting_on(&each), 0u);
        }
    }
}

TEST(WaitAll, OverlappingWaitsAreServedInTheOrderInWhichTheyCanBe) {
    auto_reset_event a;
    auto_reset_event b;
    auto_reset_event c;
    thread_group threads;
    const auto first = threads.start("a b", [&] { wait_all(a, b); });
    until_parked(&b, 1);
    const auto second = threads.start("b a c", [&] { wait_all(b, a, c); });
    until_parked(&c, 1);
    const auto third = threads.start("a", [&] { a.wait(); });
    until_parked(&a, 3);
    a.set();  // only the last can take it
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(third));
    b.set();
    c.set();
    a.set();  // both can take it: the older does
    threads.until_finished(2);
    EXPECT_TRUE(threads.finished(first));
    EXPECT_TRUE(c.is_set());
    a.set();
    b.set();
    threads.until_finished(3);
    EXPECT_TRUE(threads.finished(second));
    threads.join();
}

TEST(WaitAll, OneOfItsSourcesMayBeTakenByAnOlderWaitForAny) {
    auto_reset_event a;
    auto_reset_event b(true);
    auto_reset_event other;
    any_result any{};
    thread_group threads;
    const auto older = threads.start("any", [&] { any = wait_any(other, a); });
    until_parked(&a, 1);
    const auto newer = threads.start("all", [&] { wait_all(a, b); });
    until_parked(&a, 2);
    a.set();
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(older));
    EXPECT_EQ(any, taken(1));
    EXPECT_TRUE(b.is_set());
    a.set();
    threads.until_finished(2);
    EXPECT_TRUE(threads.finished(newer));
    threads.join();
}

TEST(WaitAll, ItsEventsMayBeDestroyedAtOnce) {
    for (int i = 0; i < rounds(300, 50); ++i) {
        thread_group threads;
        auto* const a = new auto_reset_event;
        auto* const b = new auto_reset_event;
        threads.start("set a", [&] { a->set(); });
        threads.start("set b", [&] { b->set(); });
        wait_all(*a, *b);
        delete a;
        delete b;
        threads.join();
    }
}

// In odd phases all are set, and only the wait may take them.
TEST(WaitAll, NobodySeesOneTakenAndAnotherNot) {
    auto_reset_event a;
    auto_reset_event b;
    auto_reset_event last;
    std::atomic<int> phase{0};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(2, "looker", [&](int which) {
        auto_reset_event& one = which == 0 ? a : b;
        auto_reset_event& other = which == 0 ? b : a;
        while (!enough.load()) {
            const int before = phase.load();
            const bool one_there = one.is_set();
            const bool other_there = other.is_set();
            if (before % 2 == 0 || phase.load() != before) continue;
            EXPECT_TRUE(one_there || !other_there);
        }
    });
    for (int i = 0; i < rounds(2000, 200); ++i) {
        a.set();
        b.set();
        phase.fetch_add(1);
        thread_group setter;
        if (i % 8 == 0) {
            setter.start([&] { last.set(); });
        } else {
            last.set();
        }
        wait_all(a, last, b);
        phase.fetch_add(1);
        EXPECT_FALSE(a.is_set() || b.is_set() || last.is_set());
    }
    enough.store(true);
    threads.join();
}

// --- memory and system calls -----------------------------------------------------------------------------------

TEST(WaitMany, UpToSixteenSourcesNeedNoAllocation) {
    std::deque<auto_reset_event> events(16);
    const auto sources = sources_of(events);
    const auto until = tocsin::deadline(1ms);
    const long before = allocations();
    (void)wait_any({.until = until}, sources);
    (void)wait_all({.until = until}, sources);
    (void)wait_any({.until = 1ms}, events[0], after(1h), events[1]);
    EXPECT_EQ(allocations(), before);
}

TEST(WaitMany, MoreTakeOneBlock) {
    std::deque<auto_reset_event> events(17);
    const auto sources = sources_of(events);
    // How often a wait allocates that another thread ends once it is parked, by setting the first `count` events.
    const auto allocations_of = [&](auto wait, std::size_t count) {
        thread_group threads;
        threads.start("setter", [&] {
            until_parked(&events[0], 1);
            for (std::size_t i = 0; i != count; ++i) events[i].set();
        });
        (void)threads.id(0);  // the thread has begun, and allocates nothing from here on
        const long before = allocations();
        wait();
        return allocations() - before;
    };
    EXPECT_EQ(allocations_of([&] { EXPECT_EQ(wait_any(sources), taken(0)); }, 1), 1);
    EXPECT_EQ(allocations_of([&] { EXPECT_EQ(wait_all(sources), wait_status::signaled); }, 17), 1);
    events[16].set();
    const long before = allocations();
    EXPECT_EQ(wait_any(sources), taken(16));
    EXPECT_EQ(allocations(), before) << "a source that is ready is taken without an allocation";
}

TEST(WaitMany, ATimeoutOfZeroMakesNoSystemCall) {
    auto_reset_event a;
    auto_reset_event b;
    const auto calls = support::system_calls_of([&] {
        if (wait_any({.until = 0s}, a, b) != timed_out) _exit(1);
        if (wait_all({.until = 0s}, a, b) != wait_status::timed_out) _exit(2);
        if (wait_any({.until = steady_clock::now() - 1s}, a, b) != timed_out) _exit(3);
        a.set();
        b.set();
        if (wait_any({.until = 0s}, a, b) != taken(0)) _exit(4);
        a.set();
        if (wait_all({.until = 0s}, a, b) != wait_status::signaled) _exit(5);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

// --- time and stop ---------------------------------------------------------------------------------------------

TEST(WaitMany, NeverTimesOutEarly) {
    auto_reset_event a;
    auto_reset_event b;
    for (const auto longest : {1ns, 1'000ns, 3'000'000ns}) {
        auto begin = steady_clock::now();
        EXPECT_EQ(wait_any({.until = longest}, a, b), timed_out);
        EXPECT_GE(steady_clock::now() - begin, longest);
        begin = steady_clock::now();
        EXPECT_EQ(wait_all({.until = longest}, a, b), wait_status::timed_out);
        EXPECT_GE(steady_clock::now() - begin, longest);
    }
}

// A mistake to avoid: if the index of a wait that timed out were 0, a switch over it would act as if the first source
// had ended the wait.
TEST(WaitAny, TheIndexOfAWaitThatTimedOutOrStoppedNamesNoSource) {
    auto_reset_event a;
    auto_reset_event b;
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(wait_any({.until = 0s}, a, b).index, any_result::npos);
    EXPECT_EQ(wait_any({.until = 1ms}, a, b).index, any_result::npos);
    EXPECT_EQ(wait_any({.stop = stop.get_token()}, a, b).index, any_result::npos);
}

TEST(WaitMany, LimitsWithANameCanBeUsedAgain) {
    auto_reset_event a(true);
    auto_reset_event b;
    std::stop_source stop;
    const std::stop_token token = stop.get_token();
    const tocsin::limits until_stopped{.stop = token};
    std::vector<source> both{a, b};
    EXPECT_EQ(wait_any(until_stopped, both), taken(0));
    b.set();
    EXPECT_EQ(wait_any(until_stopped, a, b), taken(1));
    stop.request_stop();
    EXPECT_EQ(wait_any(until_stopped, both), stopped);
    EXPECT_EQ(wait_all(until_stopped, both), wait_status::stopped);
    EXPECT_EQ(wait_all(until_stopped, a, b), wait_status::stopped);
}

TEST(WaitMany, ASetEventIsTakenBeforeAStopOrADeadlineCounts) {
    auto_reset_event a(true);
    auto_reset_event b(true);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(wait_any({.until = 0s, .stop = stop.get_token()}, a, b), taken(0));
    a.set();
    EXPECT_EQ(wait_all({.until = 0s, .stop = stop.get_token()}, a, b), wait_status::signaled);
    EXPECT_EQ(wait_any({.stop = stop.get_token()}, a, b), stopped);
    EXPECT_EQ(wait_all({.stop = stop.get_token()}, a, b), wait_status::stopped);
}

TEST(WaitAny, IsStoppedWhileItSleeps) {
    auto_reset_event a;
    auto_reset_event b;
    std::stop_source stop;
    any_result result{};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_any({.stop = stop.get_token()}, a, b); });
    until_parked(&b, 1);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(result, stopped);
    EXPECT_EQ(tocsin::waiting_on(&a), 0u);
}

TEST(Timer, EndsAWaitForAnyNotBeforeItsTime) {
    auto_reset_event a;
    const auto begin = steady_clock::now();
    EXPECT_EQ(wait_any(a, after(3ms)), taken(1));
    EXPECT_GE(steady_clock::now() - begin, 3ms);
    EXPECT_EQ(wait_any(after(1ms)), taken(0));
}

TEST(Timer, TheFirstOfSeveralEndsIt) {
    auto_reset_event a;
    EXPECT_EQ(wait_any(after(1h), a, after(2ms), after(2h)), taken(2));
    EXPECT_EQ(wait_any(after(1h), after(0s), after(0s)), taken(1));
}

TEST(Timer, BeforeTheDeadlineIsASignalAfterItATimeout) {
    auto_reset_event a;
    EXPECT_EQ(wait_any({.until = 1h}, a, after(2ms)), taken(1));
    EXPECT_EQ(wait_any({.until = 2ms}, a, after(1h)), timed_out);
    EXPECT_EQ(wait_all({.until = 2ms}, after(1h)), wait_status::timed_out);
    a.set();
    EXPECT_EQ(wait_all({.until = 2ms}, a, after(1h)), wait_status::timed_out);
    EXPECT_TRUE(a.is_set());
}

TEST(Timer, FollowsSteadySystemAndUserDefinedClocks) {
    auto_reset_event a;
    EXPECT_EQ(wait_any(a, at(steady_clock::now() + 2ms)), taken(1));
    EXPECT_EQ(wait_any(a, at(std::chrono::system_clock::now() + 2ms)), taken(1));
    using support::slow_clock;
    const auto until = slow_clock::now() + slow_clock::duration(500.0);
    EXPECT_EQ(wait_any(a, at(until)), taken(1));
    EXPECT_GE(slow_clock::now(), until);
    EXPECT_EQ(wait_any(a, at(steady_clock::now() - 1s)), taken(1));
}

// A timer follows its clock: if the clock has been set back, the wait reads it again instead of ending.
TEST(Timer, OfAClockThatIsSetBackPassesWhenTheClockReachesItsTime) {
    using support::hand_clock;
    hand_clock::set(1000);
    auto_reset_event a;
    const hand_clock::time_point when(hand_clock::duration(1003));
    any_result result{};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_any(a, at(when)); });
    until_parked(&a, 1);
    hand_clock::set(999);
    const long reads = hand_clock::reads.load();
    support::until("read again", [&] { return hand_clock::reads.load() > reads; });
    EXPECT_EQ(threads.finished(), 0u);
    hand_clock::set(1003);
    threads.join();
    EXPECT_EQ(result, taken(1));
}

TEST(Timer, InAWaitForAllCountsOnceItHasPassed) {
    auto_reset_event a(true);
    const auto begin = steady_clock::now();
    EXPECT_EQ(wait_all(a, after(3ms), after(1ms)), wait_status::signaled);
    EXPECT_GE(steady_clock::now() - begin, 3ms);
    EXPECT_FALSE(a.is_set());
}

TEST(Timer, InAWaitForAllTakesNothingBeforeItPasses) {
    auto_reset_event a;
    wait_status result{};
    std::stop_source stop;
    thread_group threads;
    threads.start("waiter", [&] { result = wait_all({.stop = stop.get_token()}, a, after(1h)); });
    until_parked(&a, 1);
    a.set();
    EXPECT_TRUE(a.is_set());
    stop.request_stop();
    threads.join();
    EXPECT_EQ(result, wait_status::stopped);
    EXPECT_TRUE(a.is_set());
}

TEST(Timer, InAWaitForAllMayPassBeforeTheEventIsSet) {
    auto_reset_event a;
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] { wait_all(after(1ms), a); });
    until_parked(&a, 1);
    support::until_sound_asleep(threads.id(waiter));
    a.set();
    threads.join();
    EXPECT_FALSE(a.is_set());
}

// --- custom sources -----------------------------------------------------------------------------------------------

TEST(Custom, WorksInAWaitForAnyBesideEvents) {
    countdown left(2);
    auto_reset_event event;
    any_result result{};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_any(event, left); });
    support::until("listed", [&] { return left.is_waited_for(); });
    left.count_down();
    EXPECT_EQ(threads.finished(), 0u);
    left.count_down();
    threads.join();
    EXPECT_EQ(result, taken(1));
    EXPECT_FALSE(left.is_waited_for());
    EXPECT_EQ(wait_any(event, left), taken(1));
}

TEST(Custom, WorksInAWaitForAllIfItStaysReady) {
    countdown left(1);
    auto_reset_event event(true);
    thread_group threads;
    threads.start("waiter", [&] { wait_all(left, event); });
    support::until("listed", [&] { return left.is_waited_for(); });
    EXPECT_TRUE(event.is_set());
    left.count_down();
    threads.join();
    EXPECT_FALSE(event.is_set());
}

TEST(Custom, ReadyAtTheStartCountsInAWaitForAll) {
    countdown left(0);
    countdown also(0);
    auto_reset_event event(true);
    EXPECT_EQ(wait_all(left, event, also), wait_status::signaled);
    EXPECT_FALSE(event.is_set());
}

TEST(Custom, ForgetsAWaitThatTimesOut) {
    countdown left(1);
    auto_reset_event event;
    EXPECT_EQ(wait_any({.until = 1ms}, event, left), timed_out);
    EXPECT_EQ(wait_all({.until = 1ms}, event, left), wait_status::timed_out);
    EXPECT_FALSE(left.is_waited_for());
}

TEST(Custom, OneThatCanBeTakenAwayIsRefusedByAWaitForAll) {
    support::semaphore tokens;
    auto_reset_event event(true);
    EXPECT_EQ(refusal([&] { wait_all(event, tocsin::source(tokens)); }),
              "tocsin::wait_all: source 1 can be taken away once it is ready (stays_ready)");
    EXPECT_TRUE(event.is_set());
}

TEST(EmptySource, IsRefusedByEveryWait) {
    const tocsin::source nothing;
    EXPECT_TRUE(nothing.empty());
    auto_reset_event event;
    EXPECT_FALSE(tocsin::source(event).empty());
    std::array<tocsin::source, 3> sources{event, nothing, event};
    EXPECT_EQ(refusal([&] { (void)wait_any(std::span<const tocsin::source>(sources)); }),
              "tocsin::wait_any: source 1 is empty");
    EXPECT_EQ(refusal([&] { (void)wait_any({.until = 0s}, nothing); }),
              "tocsin::wait_any: source 0 is empty");
    EXPECT_EQ(refusal([&] { wait_all(event, nothing); }), "tocsin::wait_all: source 1 is empty");
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

// Whose number is known at run time only: no allocation.
TEST(EmptySource, FillsAnArrayThatIsUsedInPart) {
    std::array<auto_reset_event, 8> events;
    std::array<tocsin::source, 8> sources;
    for (std::size_t used = 1; used <= events.size(); ++used) {
        for (std::size_t i = 0; i != used; ++i) sources[i] = events[i];
        events[used - 1].set();
        const std::span<const tocsin::source> list(sources.data(), used);
        EXPECT_EQ(wait_any(list), taken(used - 1));
    }
}

TEST(Custom, TokensInAreTokensOut) {
    support::semaphore tokens;
    auto_reset_event event;
    constexpr int each = 500;
    std::atomic<int> out{0};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) {
        for (int i = 0; i != each; ++i) out.fetch_add(wait_any(event, tokens) == taken(1) ? 1 : 0);
    });
    threads.start("giver", [&] {
        for (int i = 0; i != 3 * each; ++i) tokens.give();
    });
    threads.join();
    EXPECT_EQ(out.load(), 3 * each);
    EXPECT_FALSE(tokens.try_wait());
}

// Becomes ready, and has another thread set the event, between the first look of a wait and its second.
struct ready_at_the_second_look {
    auto_reset_event& event;
    bool ready = false;

    bool try_wait() noexcept { return std::exchange(ready, false); }
    bool enlist(tocsin::wait_entry&) noexcept {
        std::thread([this] { event.set(); }).join();
        ready = true;
        return false;
    }
    void delist(tocsin::wait_entry&) noexcept {}
};

TEST(Custom, IsLeftIfAnEventHasEndedTheWait) {
    auto_reset_event event;
    ready_at_the_second_look custom{event};
    EXPECT_EQ(wait_any(event, custom), taken(0));
    EXPECT_TRUE(custom.ready);
    EXPECT_FALSE(event.is_set());
}

TEST(Custom, ATokenPassesByAWaitThatHasEndedAndHasNotLeftYet) {
    if (!support::freezer::works) GTEST_SKIP() << "nothing stops a thread here";
    support::semaphore tokens;
    auto_reset_event event;
    any_result first{};
    thread_group threads;
    support::freezer freezer;
    threads.start("first", [&] { first = wait_any(event, tokens); });
    until_parked(&event, 1);
    support::until_sound_asleep(threads.id(0));
    threads.start("second", [&] { (void)wait_any(tokens); });
    support::until_sound_asleep(threads.id(1));
    freezer.freeze(threads.handle(0));
    event.set();
    tokens.give();
    threads.until_finished(1);
    EXPECT_FALSE(threads.finished(0));
    freezer.thaw();
    threads.join();
    EXPECT_EQ(first, taken(0));
    EXPECT_FALSE(tokens.try_wait());
}

struct begins_with_an_event {
    auto_reset_event event{true};
    bool try_wait() noexcept { return true; }
    bool enlist(tocsin::wait_entry&) noexcept { return false; }
    void delist(tocsin::wait_entry&) noexcept {}
    static constexpr bool stays_ready = true;
};

// An event that is the first member of a custom source has the same address, but is a different source.
TEST(Custom, MayBeginWithAnEvent) {
    begins_with_an_event object;
    EXPECT_EQ(wait_all(object, object.event), wait_status::signaled);
    EXPECT_FALSE(object.event.is_set());
}

}  // namespace
