// SPDX-License-Identifier: Apache-2.0
// SignalObjectAndWait.
#include "system.hpp"

#include <atomic>

namespace {

using namespace win32;

TEST(SignalAndWait, SignalsAnEventASemaphoreOrAMutexAndWaits) {
    const handle set = manual(true), event = automatic(), permits = semaphore(0, 2), own = mutex(true);
    for (const HANDLE object : {HANDLE(event), HANDLE(permits), HANDLE(own)}) {
        EXPECT_TRUE(returns(WAIT_OBJECT_0, SignalObjectAndWait, object, set, INFINITE, FALSE));
    }
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_EQ(look(permits), WAIT_OBJECT_0);
    EXPECT_EQ(look(permits), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, own));
}

// Observed: the signal stands.
TEST(SignalAndWait, SignalsEvenIfTheWaitTimesOut) {
    const handle event = automatic(), permits = semaphore(0, 1), own = mutex(true), never = automatic();
    EXPECT_TRUE(returns(WAIT_TIMEOUT, SignalObjectAndWait, event, never, 0u, FALSE));
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_GE(
        time_of([&] { EXPECT_EQ(SignalObjectAndWait(permits, never, 20, FALSE), DWORD{WAIT_TIMEOUT}); }),
        at_least(20ms));
    EXPECT_EQ(look(permits), WAIT_OBJECT_0);
    EXPECT_EQ(SignalObjectAndWait(own, never, 1, FALSE), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, own));
}

TEST(SignalAndWait, RefusesWhatCannotBeSignaledAndDoesNotWait) {
    const handle set = automatic(true), full = semaphore(1, 1), not_owned = mutex();
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, SignalObjectAndWait, full, set, 0u, FALSE));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, SignalObjectAndWait, not_owned, set, 0u, FALSE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, GetCurrentThread(), set, 0u, FALSE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, timer(), set, 0u, FALSE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, nullptr, set, 0u, FALSE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, closed(), set, 0u, FALSE));
    EXPECT_EQ(look(set), WAIT_OBJECT_0);
    EXPECT_EQ(look(full), WAIT_OBJECT_0);
}

// Observed: nothing is signalled then.
TEST(SignalAndWait, RefusesWhatCannotBeWaitedForAndDoesNotSignal) {
    const handle event = automatic(), permits = semaphore(0, 1), own = mutex(true);
    for (const HANDLE object : {HANDLE(event), HANDLE(permits), HANDLE(own)}) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, object, nullptr, 0u, FALSE));
    }
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(look(permits), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(ReleaseMutex, own));
}

// Observed, thousands of times in a row.
TEST(SignalAndWait, OfOneEventTakesItsOwnSignal) {
    const handle event = automatic();
    for (int i = 0; i < few(1000, 200); ++i) {
        ASSERT_TRUE(returns(WAIT_OBJECT_0, SignalObjectAndWait, event, event, 0u, FALSE));
    }
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    const handle permits = semaphore(0, 1);
    EXPECT_EQ(SignalObjectAndWait(permits, permits, 0, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(look(permits), DWORD{WAIT_TIMEOUT});
    const handle own = mutex(true);
    EXPECT_EQ(SignalObjectAndWait(own, own, 0, FALSE), WAIT_OBJECT_0);
    EXPECT_TRUE(works(ReleaseMutex, own));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, own));
}

TEST(SignalAndWait, PlaysPingPong) {
    const handle there = automatic(), back = automatic();
    const int each = few(2000, 100);
    thread_group threads;
    threads.start([&] {
        EXPECT_EQ(wait(there), WAIT_OBJECT_0);
        for (int i = 1; i < each; ++i)
            ASSERT_EQ(SignalObjectAndWait(back, there, INFINITE, FALSE), WAIT_OBJECT_0);
        EXPECT_TRUE(works(SetEvent, back));
    });
    for (int i = 0; i < each; ++i)
        ASSERT_EQ(SignalObjectAndWait(there, back, INFINITE, FALSE), WAIT_OBJECT_0);
    threads.join();
    EXPECT_EQ(wait_any({there, back}, 0), DWORD{WAIT_TIMEOUT});
}

// What programs want it for: no pulse that follows from the signal is missed. Windows documents that the call is not
// atomic; over tocsin the thread is queued before it signals.
void expect_no_missed_pulse(bool after_calls) {
    if (!over_tocsin) GTEST_SKIP() << "documented as not atomic";
    const handle event = manual(), ready = automatic();
    const int each = rounds(2000, 300);
    thread_group threads;
    threads.start([&] {
        for (int i = 0; i < each; ++i) {
            ASSERT_EQ(wait(ready), WAIT_OBJECT_0);
            ASSERT_TRUE(works(PulseEvent, event));
        }
    });
    for (int i = 0; i < each; ++i) {
        if (after_calls) {
            ASSERT_NE(QueueUserAPC([](ULONG_PTR) {}, GetCurrentThread(), 0), 0u);
            ASSERT_EQ(SleepEx(0, TRUE), DWORD{WAIT_IO_COMPLETION});
        }
        ASSERT_EQ(SignalObjectAndWait(ready, event, 30'000, after_calls ? TRUE : FALSE), WAIT_OBJECT_0);
    }
}
TEST(SignalAndWait, MissesNoPulseThatFollowsFromItsSignal) { expect_no_missed_pulse(false); }
TEST(SignalAndWait, MissesNoPulseIfItIsAlertableAndCallsHaveRun) { expect_no_missed_pulse(true); }

// A mutex and an event together are a condition variable.
TEST(SignalAndWait, ReleasesAMutexThatAnotherWaitsFor) {
    const handle own = mutex(true), event = automatic();
    thread_group threads;
    threads.start([&] {
        EXPECT_EQ(wait(own), WAIT_OBJECT_0);
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_TRUE(works(ReleaseMutex, own));
    });
    until_waits(threads, 0);
    EXPECT_EQ(SignalObjectAndWait(own, event, INFINITE, FALSE), WAIT_OBJECT_0);
}

}  // namespace
