// SPDX-License-Identifier: Apache-2.0
// CreateTimerQueueTimer and its relatives.
#include "system.hpp"

#include <atomic>

namespace {

using namespace win32;

struct calls {
    std::atomic<int> count{0};
    std::atomic<int> inside{0}, max{0};
    HANDLE blocks = nullptr;
    handle entered = manual();
    void until(int wanted) const {
        support::until("callbacks", [&] { return count.load() >= wanted; });
    }
};
void CALLBACK called(void* context, BOOLEAN timed_out) {
    auto& its = *static_cast<calls*>(context);
    EXPECT_TRUE(timed_out);
    const int now = its.inside.fetch_add(1) + 1;
    if (now > its.max.load()) its.max.store(now);
    its.count.fetch_add(1);
    if (its.blocks != nullptr) {
        EXPECT_TRUE(works(SetEvent, its.entered));
        EXPECT_EQ(win32::wait(its.blocks), WAIT_OBJECT_0);
    }
    its.inside.fetch_sub(1);
}

testing::AssertionResult creates(HANDLE& timer, HANDLE queue, calls& its, DWORD due, DWORD period,
                                 ULONG flags = 0) {
    return works(CreateTimerQueueTimer, &timer, queue, called, &its, due, period, flags);
}
testing::AssertionResult deletes(HANDLE queue, HANDLE timer) {
    return works(DeleteTimerQueueTimer, queue, timer, INVALID_HANDLE_VALUE);
}

TEST(QueuedTimer, CallsOnceWithoutAPeriod) {
    for (const ULONG flags :
         {ULONG{WT_EXECUTEDEFAULT}, ULONG{WT_EXECUTEINTIMERTHREAD}, ULONG{WT_EXECUTELONGFUNCTION}}) {
        calls its;
        HANDLE timer = nullptr;
        const auto begin = std::chrono::steady_clock::now();
        ASSERT_TRUE(creates(timer, nullptr, its, 20, 0, flags));
        its.until(1);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, at_least(20ms));
        nap(5ms);
        EXPECT_EQ(its.count.load(), 1);
        EXPECT_TRUE(deletes(nullptr, timer));
    }
}

TEST(QueuedTimer, CallsAgainAndAgainWithAPeriod) {
    const HANDLE queue = CreateTimerQueue();
    calls its;
    HANDLE timer = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(creates(timer, queue, its, 0, 10));
    its.until(4);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, at_least(30ms));
    EXPECT_TRUE(deletes(queue, timer));
    const int now = its.count.load();
    nap(25ms);
    EXPECT_EQ(its.count.load(), now);
    EXPECT_TRUE(works(DeleteTimerQueueEx, queue, INVALID_HANDLE_VALUE));
}

TEST(QueuedTimer, WithOnlyOnceCallsOnceInSpiteOfItsPeriod) {
    calls its;
    HANDLE timer = nullptr;
    ASSERT_TRUE(creates(timer, nullptr, its, 1, over_tocsin ? 2 : 0, WT_EXECUTEONLYONCE));
    its.until(1);
    nap(10ms);
    EXPECT_EQ(its.count.load(), 1);
    EXPECT_TRUE(deletes(nullptr, timer));
}

TEST(QueuedTimer, CanBeChanged) {
    calls its;
    HANDLE timer = nullptr;
    ASSERT_TRUE(creates(timer, nullptr, its, 3'600'000, 0));
    EXPECT_TRUE(works(ChangeTimerQueueTimer, nullptr, timer, 1u, 2u));
    its.until(3);
    EXPECT_TRUE(works(ChangeTimerQueueTimer, nullptr, timer, 3'600'000u, 0u));
    int before = -1;
    int quiet_looks = 0;
    support::until("the calls that were under way have ended", [&] {
        const int now = its.count.load();
        quiet_looks = now == before && its.inside.load() == 0 ? quiet_looks + 1 : 0;
        before = now;
        over_tocsin ? support::until_others_sleep() : nap(10ms);  // a call may be on its way
        return quiet_looks >= (over_tocsin ? 1 : 50);
    });
    nap(10ms);
    EXPECT_EQ(its.count.load(), before);
    EXPECT_TRUE(deletes(nullptr, timer));
}

// Documented: a one-shot timer that has expired is not updated.
TEST(QueuedTimer, ThatHasExpiredIsNotChanged) {
    if (under_wine()) GTEST_SKIP() << "Wine 8 sets it again";
    calls its;
    HANDLE timer = nullptr;
    ASSERT_TRUE(creates(timer, nullptr, its, 1, 0));
    its.until(1);
    EXPECT_TRUE(works(ChangeTimerQueueTimer, nullptr, timer, 1u, 1u));
    nap(10ms);
    EXPECT_EQ(its.count.load(), 1);
    EXPECT_TRUE(deletes(nullptr, timer));
}

TEST(QueuedTimer, RunsOneAfterTheOtherInTheTimerThread) {
    const HANDLE queue = CreateTimerQueue();
    calls its;
    HANDLE timers[4];
    for (HANDLE& timer : timers) ASSERT_TRUE(creates(timer, queue, its, 0, 1, WT_EXECUTEINTIMERTHREAD));
    its.until(40);
    EXPECT_TRUE(works(DeleteTimerQueueEx, queue, INVALID_HANDLE_VALUE));
    EXPECT_EQ(its.max.load(), 1);
    const int now = its.count.load();
    nap(5ms);
    EXPECT_EQ(its.count.load(), now);
}

TEST(QueuedTimer, ThatIsDeletedTellsWhetherItsCallbackRuns) {
    calls its;
    const handle end = manual(), done = automatic();
    its.blocks = end;
    HANDLE timer = nullptr;
    ASSERT_TRUE(creates(timer, nullptr, its, 0, 0));
    EXPECT_EQ(wait(its.entered), WAIT_OBJECT_0);
    EXPECT_TRUE(fails(ERROR_IO_PENDING, DeleteTimerQueueTimer, nullptr, timer, HANDLE(done)));
    EXPECT_EQ(WaitForSingleObject(done, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, end));
    EXPECT_EQ(wait(done), WAIT_OBJECT_0);
    EXPECT_EQ(its.inside.load(), 0);
}

TEST(QueuedTimer, ThatIsDeletedWaitsForItsCallbackIfAskedTo) {
    calls its;
    const handle end = manual();
    its.blocks = end;
    HANDLE timer = nullptr;
    ASSERT_TRUE(creates(timer, nullptr, its, 0, 0));
    EXPECT_EQ(wait(its.entered), WAIT_OBJECT_0);
    thread_group threads;
    threads.start([&] {
        EXPECT_TRUE(deletes(nullptr, timer));
        EXPECT_EQ(its.inside.load(), 0);
    });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, end));
    threads.join();
}

TEST(TimerQueue, ThatIsDeletedSetsItsEventWhenTheLastCallbackHasEnded) {
    if (under_wine()) GTEST_SKIP() << "Wine 8 hangs here";
    const HANDLE queue = CreateTimerQueue();
    calls its, never;
    const handle end = manual(), done = automatic();
    its.blocks = end;
    HANDLE timer = nullptr, other = nullptr;
    ASSERT_TRUE(creates(timer, queue, its, 0, 0));
    ASSERT_TRUE(creates(other, queue, never, 3'600'000, 0));
    EXPECT_EQ(wait(its.entered), WAIT_OBJECT_0);
    const BOOL result = DeleteTimerQueueEx(queue, done);
    EXPECT_TRUE(result == TRUE || GetLastError() == ERROR_IO_PENDING);
    EXPECT_EQ(WaitForSingleObject(done, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, end));
    EXPECT_EQ(wait(done), WAIT_OBJECT_0);
    EXPECT_EQ(its.inside.load(), 0);
    EXPECT_EQ(never.count.load(), 0);
}

TEST(TimerQueue, RefusesWhatIsNoQueueAndNoTimer) {
    if (!over_tocsin) GTEST_SKIP() << "Windows takes a pointer's word for it";
    calls its;
    HANDLE timer = nullptr;
    const handle event = automatic();
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DeleteTimerQueueEx, nullptr, nullptr));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DeleteTimerQueueEx, HANDLE(event), nullptr));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DeleteTimerQueueTimer, nullptr, HANDLE(event), nullptr));
    EXPECT_TRUE(
        fails(ERROR_INVALID_HANDLE, CreateTimerQueueTimer, &timer, HANDLE(event), called, &its, 1u, 0u, 0u));
    EXPECT_TRUE(
        fails(ERROR_INVALID_PARAMETER, CreateTimerQueueTimer, &timer, nullptr, nullptr, &its, 1u, 0u, 0u));
    ASSERT_TRUE(creates(timer, nullptr, its, 3'600'000, 0));
    const HANDLE queue = CreateTimerQueue();
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DeleteTimerQueueTimer, queue, timer, nullptr))
        << "of another queue";
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CloseHandle, timer));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CloseHandle, queue));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, timer, 0u));
    EXPECT_TRUE(works(DeleteTimerQueueTimer, nullptr, timer, nullptr));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DeleteTimerQueueTimer, nullptr, timer, nullptr));
    EXPECT_TRUE(works(DeleteTimerQueue, queue));
}

struct from_inside {
    HANDLE timer = nullptr, queue = nullptr;
    handle registered = manual(), done = automatic();
    DWORD for_timer = 0, for_queue = 0;
};
// On Windows that waits for ever.
TEST(QueuedTimer, ThatWaitsForItselfIsRefused) {
    if (!over_tocsin) GTEST_SKIP() << "a deadlock";
    from_inside its;
    its.queue = CreateTimerQueue();
    ASSERT_TRUE(works(
        CreateTimerQueueTimer, &its.timer, its.queue,
        [](void* context, BOOLEAN) {
            auto& self = *static_cast<from_inside*>(context);
            EXPECT_EQ(win32::wait(self.registered), WAIT_OBJECT_0);
            EXPECT_FALSE(DeleteTimerQueueTimer(self.queue, self.timer, INVALID_HANDLE_VALUE));
            self.for_timer = GetLastError();
            EXPECT_FALSE(DeleteTimerQueueEx(self.queue, INVALID_HANDLE_VALUE));
            self.for_queue = GetLastError();
            EXPECT_TRUE(works(SetEvent, self.done));
        },
        &its, 0u, 0u, 0u));
    EXPECT_TRUE(works(SetEvent, its.registered));
    EXPECT_EQ(wait(its.done), WAIT_OBJECT_0);
    EXPECT_EQ(its.for_timer, 1131u);  // ERROR_POSSIBLE_DEADLOCK
    EXPECT_EQ(its.for_queue, 1131u);
    EXPECT_TRUE(works(DeleteTimerQueueEx, its.queue, INVALID_HANDLE_VALUE));
}

}  // namespace
