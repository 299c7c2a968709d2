// SPDX-License-Identifier: Apache-2.0
// Waitable timers.
#include "system.hpp"

#include <atomic>
#include <limits>

namespace {

using namespace win32;

LARGE_INTEGER at(std::int64_t units) {
    LARGE_INTEGER due{};
    due.QuadPart = units;
    return due;
}
LARGE_INTEGER in(std::chrono::milliseconds time) { return at(-time.count() * 10'000); }

std::int64_t now() {  // in 100 ns since 1601
    FILETIME time{};
    GetSystemTimeAsFileTime(&time);
    return static_cast<std::int64_t>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
}

testing::AssertionResult sets(HANDLE object, LARGE_INTEGER due, LONG period = 0) {
    return works(SetWaitableTimer, object, &due, period, nullptr, nullptr, FALSE);
}

// Runs the steps, which set a timer for so much later and do something before it is due. Does so again if they took
// longer.
template <class Steps>
void before_it_is_due(std::chrono::milliseconds time, Steps steps) {
    while (time_of(steps) >= time) {
    }
}

TEST(Timer, IsInactiveAndUnsetAtFirst) {
    for (const HANDLE made :
         {CreateWaitableTimerA(nullptr, FALSE, nullptr), CreateWaitableTimerW(nullptr, TRUE, nullptr),
          CreateWaitableTimerExA(nullptr, nullptr, 0, TIMER_ALL_ACCESS),
          CreateWaitableTimerExW(nullptr, nullptr, CREATE_WAITABLE_TIMER_MANUAL_RESET, TIMER_ALL_ACCESS)}) {
        const handle object(made);
        EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForSingleObject, object, 5u));
        EXPECT_TRUE(works(CancelWaitableTimer, object));
    }
}

TEST(Timer, MayBeOfHighResolution) {
    const handle object(CreateWaitableTimerExW(nullptr, nullptr, 2, TIMER_ALL_ACCESS));
    ASSERT_NE(HANDLE(object), nullptr);
    EXPECT_GE(time_of([&] {
                  EXPECT_TRUE(sets(object, in(5ms)));
                  EXPECT_EQ(wait(object), WAIT_OBJECT_0);
              }),
              at_least(5ms));
}

TEST(Timer, IsSetByItsDueTimeAndNotEarlier) {
    for (const bool is_manual : {false, true}) {
        const handle object = timer(is_manual);
        EXPECT_GE(time_of([&] {
                      EXPECT_TRUE(sets(object, in(20ms)));
                      EXPECT_EQ(wait(object), WAIT_OBJECT_0);
                  }),
                  at_least(20ms));
        EXPECT_EQ(look(object), is_manual ? WAIT_OBJECT_0 : DWORD{WAIT_TIMEOUT});
    }
}

TEST(Timer, MayHaveAnAbsoluteDueTime) {
    const handle object = timer();
    EXPECT_GE(time_of([&] {
                  EXPECT_TRUE(sets(object, at(now() + 300'000)));
                  EXPECT_EQ(wait(object), WAIT_OBJECT_0);
              }),
              at_least(29ms));
    EXPECT_TRUE(sets(object, at(std::numeric_limits<std::int64_t>::max())));
    EXPECT_EQ(WaitForSingleObject(object, 10), DWORD{WAIT_TIMEOUT});
}

TEST(Timer, IsDueAtOnceIfItsTimeIsOver) {
    const handle object = timer();
    for (const auto due : {at(0), at(1), at(now() - 10'000'000), at(-1)}) {
        EXPECT_TRUE(sets(object, due));
        EXPECT_EQ(WaitForSingleObject(object, 10'000), WAIT_OBJECT_0);
    }
}

TEST(Timer, MayBeDueInThousandsOfYears) {
    const handle object = timer();
    EXPECT_TRUE(sets(object, at(-std::numeric_limits<std::int64_t>::max() / 4)));
    EXPECT_EQ(WaitForSingleObject(object, 10), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(sets(object, at(-std::numeric_limits<std::int64_t>::max())));
    EXPECT_EQ(WaitForSingleObject(object, 10), DWORD{WAIT_TIMEOUT});
}

TEST(Timer, RefusesANegativePeriod) {
    if (under_wine()) GTEST_SKIP() << "Wine takes it without its sign";
    const handle object = timer();
    const LARGE_INTEGER due = at(-1);
    for (const LONG period : {LONG{-1}, std::numeric_limits<LONG>::min()}) {
        EXPECT_TRUE(
            fails(ERROR_INVALID_PARAMETER, SetWaitableTimer, object, &due, period, nullptr, nullptr, FALSE));
    }
    EXPECT_EQ(WaitForSingleObject(object, 10), DWORD{WAIT_TIMEOUT});
}

TEST(Timer, IsSetAgainInEachPeriod) {
    const handle object = timer();
    EXPECT_GE(time_of([&] {
                  EXPECT_TRUE(sets(object, in(10ms), 5));
                  for (int i = 0; i < 5; ++i) EXPECT_EQ(wait(object), WAIT_OBJECT_0);
              }),
              at_least(30ms));
    EXPECT_TRUE(works(CancelWaitableTimer, object));
}

TEST(Timer, OfAnAbsoluteTimeIsSetAgainAPeriodLater) {
    const handle object = timer();
    for (const auto due : {at(0), at(now() - 10'000'000), at(now() + 10'000)}) {
        EXPECT_GE(time_of([&] {
                      EXPECT_TRUE(sets(object, due, 300));
                      EXPECT_EQ(wait(object), WAIT_OBJECT_0);
                      EXPECT_EQ(wait(object), WAIT_OBJECT_0);
                  }),
                  at_least(300ms));
    }
    EXPECT_TRUE(works(CancelWaitableTimer, object));
}

TEST(Timer, OfManualResetStaysSetThroughItsPeriods) {
    const handle object = timer(true);
    EXPECT_TRUE(sets(object, at(-1), 1));
    EXPECT_EQ(wait(object), WAIT_OBJECT_0);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(look(object), WAIT_OBJECT_0);
    EXPECT_TRUE(sets(object, in(10'000ms)));
    EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT});
}

// Likely: periods that are missed count once.
TEST(Timer, AbsorbsPeriodsThatNobodyWaitedFor) {
    const handle object = timer();
    EXPECT_TRUE(sets(object, at(-1), 1));
    nap(20ms);
    until_timers_are_set();
    EXPECT_TRUE(works(CancelWaitableTimer, object));
    EXPECT_EQ(look(object), WAIT_OBJECT_0);
    EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT});
}

TEST(Timer, StopsAndIsUnsetWhenItIsSetAnew) {
    for (const bool is_manual : {false, true}) {
        const handle object = timer(is_manual);
        EXPECT_TRUE(sets(object, at(-1)));
        until_timers_are_set();
        EXPECT_TRUE(sets(object, in(10'000ms)));
        if (is_manual || !under_wine()) {  // Wine 8 leaves one set that is not manual
            EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT});
        }
        EXPECT_TRUE(sets(object, in(1ms)));
        EXPECT_EQ(WaitForSingleObject(object, 5'000), WAIT_OBJECT_0);
    }
}

TEST(Timer, KeepsWhoWaitsForTheNewDueTime) {
    const handle object = timer();
    EXPECT_TRUE(sets(object, in(60'000ms)));
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait(object), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    EXPECT_TRUE(sets(object, in(2ms)));
}

TEST(Timer, LeavesItsStateWhenItIsCancelled) {
    for (const bool is_manual : {false, true}) {
        const handle object = timer(is_manual);
        EXPECT_TRUE(sets(object, at(-1)));
        until_timers_are_set();
        EXPECT_TRUE(works(CancelWaitableTimer, object));
        EXPECT_EQ(look(object), WAIT_OBJECT_0);
        before_it_is_due(300ms, [&] {
            EXPECT_TRUE(sets(object, in(300ms)));
            EXPECT_TRUE(works(CancelWaitableTimer, object));
        });
        EXPECT_EQ(WaitForSingleObject(object, 350), DWORD{WAIT_TIMEOUT});
        EXPECT_TRUE(works(CancelWaitableTimer, object));
    }
}

TEST(Timer, KeepsWhoWaitsWhenItIsCancelled) {
    const handle object = timer();
    EXPECT_TRUE(sets(object, in(60'000ms)));
    EXPECT_TRUE(works(CancelWaitableTimer, object));
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait(object), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    EXPECT_TRUE(sets(object, in(1ms)));
}

TEST(Timer, ReleasesEveryoneIfManualAndOneIfNot) {
    for (const bool is_manual : {false, true}) {
        const handle object = timer(is_manual);
        thread_group threads;
        threads.start_many(3, "waiter", [&](int) { EXPECT_EQ(wait(object), WAIT_OBJECT_0); });
        until_all_wait(threads);
        for (std::size_t i = 1; i <= (is_manual ? 1u : 3u); ++i) {
            EXPECT_TRUE(sets(object, at(-1)));
            threads.until_finished(is_manual ? 3 : i);
            nap(2ms);
            EXPECT_EQ(threads.finished(), is_manual ? 3 : i);
        }
    }
}

// Documented: it succeeds, and the last error says that the computer can't be woken.
TEST(Timer, SaysThatItDoesNotWakeTheComputer) {
    if (!over_tocsin) GTEST_SKIP() << "a matter of the computer";
    const handle object = timer();
    const LARGE_INTEGER due = at(-1);
    SetLastError(untouched);
    EXPECT_TRUE(works(SetWaitableTimer, object, &due, 0, nullptr, nullptr, TRUE));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_NOT_SUPPORTED});
    EXPECT_EQ(wait(object), WAIT_OBJECT_0);
}

TEST(Timer, TakesATolerance) {
    const handle object = timer();
    const LARGE_INTEGER due = in(5ms);
    EXPECT_GE(time_of([&] {
                  EXPECT_TRUE(works(SetWaitableTimerEx, object, &due, 0, nullptr, nullptr, nullptr, 10u));
                  EXPECT_EQ(wait(object), WAIT_OBJECT_0);
              }),
              at_least(5ms));
    EXPECT_TRUE(
        fails(ERROR_INVALID_HANDLE, SetWaitableTimerEx, automatic(), &due, 0, nullptr, nullptr, nullptr, 0u));
}

struct completion {
    int calls = 0;
    std::int64_t time = 0;
    DWORD thread = 0;
};
void CALLBACK note_completion(void* argument, DWORD low, DWORD high) {
    auto& self = *static_cast<completion*>(argument);
    ++self.calls;
    self.time = static_cast<std::int64_t>(std::uint64_t{high} << 32 | low);
    self.thread = GetCurrentThreadId();
}

TEST(TimersRoutine, RunsInAnAlertableWaitOfTheThreadThatSetTheTimer) {
    const handle object = timer();
    completion seen;
    const LARGE_INTEGER due = in(5ms);
    const auto begin = now();
    EXPECT_TRUE(works(SetWaitableTimer, object, &due, 0, note_completion, &seen, FALSE));
    Sleep(20);
    EXPECT_EQ(seen.calls, 0) << "no alertable wait yet";
    EXPECT_EQ(SleepEx(10'000, TRUE), DWORD{WAIT_IO_COMPLETION});
    EXPECT_EQ(seen.calls, 1);
    EXPECT_EQ(seen.thread, GetCurrentThreadId());
    if (!under_wine()) {  // Wine 8 passes the due time as it was given, relative
        EXPECT_GE(seen.time, begin);
        EXPECT_LE(seen.time, now());
    }
    EXPECT_EQ(look(object), WAIT_OBJECT_0) << "the routine takes nothing";
    EXPECT_EQ(SleepEx(0, TRUE), 0u);
}

TEST(TimersRoutine, RunsInEachPeriod) {
    const handle object = timer();
    completion seen;
    const LARGE_INTEGER due = at(-1);
    EXPECT_TRUE(works(SetWaitableTimer, object, &due, 2, note_completion, &seen, FALSE));
    for (int i = 1; i <= 3; ++i) {
        while (seen.calls < i) EXPECT_EQ(SleepEx(10'000, TRUE), DWORD{WAIT_IO_COMPLETION});
    }
    EXPECT_TRUE(works(CancelWaitableTimer, object));
    const int calls = seen.calls;
    EXPECT_EQ(SleepEx(10, TRUE), 0u);
    EXPECT_EQ(seen.calls, calls);
}

TEST(TimersRoutine, IsTakenBackWhenTheTimerIsCancelled) {
    const handle object = timer();
    completion seen;
    const LARGE_INTEGER due = at(-1);
    EXPECT_TRUE(works(SetWaitableTimer, object, &due, 0, note_completion, &seen, FALSE));
    until_timers_are_set();  // due and queued
    EXPECT_TRUE(works(CancelWaitableTimer, object));
    EXPECT_EQ(SleepEx(5, TRUE), 0u);
    EXPECT_EQ(seen.calls, 0);
    EXPECT_EQ(look(object), WAIT_OBJECT_0);
}

TEST(TimersRoutine, StopsItsTimerWithItsThread) {
    if (under_wine()) GTEST_SKIP() << "Wine lets it run";
    const handle object = timer();
    completion seen;
    before_it_is_due(300ms, [&] {
        elsewhere([&] {
            const LARGE_INTEGER due = in(300ms);
            EXPECT_TRUE(works(SetWaitableTimer, object, &due, 0, note_completion, &seen, FALSE));
        });
    });
    EXPECT_EQ(WaitForSingleObject(object, 350), DWORD{WAIT_TIMEOUT});
    elsewhere([&] { EXPECT_TRUE(sets(object, in(20ms))); });  // without a routine, nothing happens
    EXPECT_EQ(WaitForSingleObject(object, 10'000), WAIT_OBJECT_0);
}

}  // namespace
