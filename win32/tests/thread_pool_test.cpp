// SPDX-License-Identifier: Apache-2.0
// QueueUserWorkItem, and the thread pool: work, timers, waits, cleanup groups, what is done when a callback returns.
#include "system.hpp"

#include <atomic>

namespace {

using namespace win32;

FILETIME relative(std::chrono::milliseconds after) {
    ULARGE_INTEGER due;
    due.QuadPart = static_cast<ULONGLONG>(-10'000 * after.count());
    return {due.LowPart, due.HighPart};
}

struct seen {
    std::atomic<int> calls{0};
    std::atomic<int> inside{0}, max{0};
    std::atomic<DWORD> result{7777};
    handle told = automatic();
    HANDLE blocks = nullptr;

    void called() {
        const int now = inside.fetch_add(1) + 1;
        for (int before = max.load(); before < now && !max.compare_exchange_weak(before, now);) {
        }
        calls.fetch_add(1);
        EXPECT_TRUE(works(SetEvent, told));
        if (blocks != nullptr) {
            EXPECT_EQ(win32::wait(blocks), WAIT_OBJECT_0);
        }
        inside.fetch_sub(1);
    }
    void until(int wanted) const {
        support::until("callbacks", [&] { return calls.load() >= wanted; });
    }
};
void CALLBACK on_work(PTP_CALLBACK_INSTANCE, void* context, PTP_WORK) {
    static_cast<seen*>(context)->called();
}
void CALLBACK on_timer(PTP_CALLBACK_INSTANCE, void* context, PTP_TIMER) {
    static_cast<seen*>(context)->called();
}
void CALLBACK on_wait(PTP_CALLBACK_INSTANCE, void* context, PTP_WAIT, TP_WAIT_RESULT result) {
    static_cast<seen*>(context)->result.store(result);
    static_cast<seen*>(context)->called();
}
void CALLBACK on_simple(PTP_CALLBACK_INSTANCE, void* context) { static_cast<seen*>(context)->called(); }

TEST(WorkItem, RunsInAnotherThread) {
    for (const DWORD flags :
         {DWORD{WT_EXECUTEDEFAULT}, DWORD{WT_EXECUTELONGFUNCTION}, DWORD{WT_EXECUTEINPERSISTENTTHREAD}}) {
        struct {
            std::atomic<DWORD> id{0};
            handle done = automatic();
        } its;
        EXPECT_TRUE(works(
            QueueUserWorkItem,
            [](void* context) -> DWORD {
                auto& self = *static_cast<decltype(its)*>(context);
                self.id.store(GetCurrentThreadId());
                EXPECT_TRUE(works(SetEvent, self.done));
                return 5;
            },
            &its, flags));
        EXPECT_EQ(wait(its.done), WAIT_OBJECT_0);
        EXPECT_NE(its.id.load(), GetCurrentThreadId());
        nap(1ms);  // it returns
    }
}

TEST(ThreadpoolWork, RunsAsOftenAsItWasSubmitted) {
    seen its;
    const PTP_WORK work = CreateThreadpoolWork(on_work, &its, nullptr);
    ASSERT_NE(work, nullptr);
    const int each = few(200, 30);
    for (int i = 0; i < each; ++i) SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    EXPECT_EQ(its.calls.load(), each);
    CloseThreadpoolWork(work);
}

TEST(ThreadpoolWork, RunsInSeveralThreadsAtOnce) {
    seen its;
    const handle end = manual();
    its.blocks = end;
    const PTP_WORK work = CreateThreadpoolWork(on_work, &its, nullptr);
    for (int begun = 1; begun <= 4; ++begun) {  // Wine 8 starts a thread only if it sees all others busy
        SubmitThreadpoolWork(work);
        its.until(begun);
    }
    EXPECT_EQ(its.max.load(), 4) << "none waits for another";
    EXPECT_TRUE(works(SetEvent, end));
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    EXPECT_EQ(its.inside.load(), 0);
    CloseThreadpoolWork(work);
}

TEST(ThreadpoolWork, ThatHasNotBegunCanBeTakenBack) {
    seen its;
    const handle end = manual();
    its.blocks = end;
    const PTP_POOL pool = CreateThreadpool(nullptr);
    SetThreadpoolThreadMaximum(pool, 1);
    EXPECT_TRUE(works(SetThreadpoolThreadMinimum, pool, 1u));
    TP_CALLBACK_ENVIRON environment;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackPool(&environment, pool);
    const PTP_WORK work = CreateThreadpoolWork(on_work, &its, &environment);
    for (int i = 0; i < 5; ++i) SubmitThreadpoolWork(work);
    its.until(1);
    thread_group threads;
    threads.start([&] { WaitForThreadpoolWorkCallbacks(work, TRUE); });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, end));
    threads.join();
    EXPECT_EQ(its.calls.load(), 1);
    CloseThreadpoolWork(work);
    CloseThreadpool(pool);
    DestroyThreadpoolEnvironment(&environment);
}

TEST(ThreadpoolWork, OfAPoolWithOneThreadRunsOneAfterTheOtherTheUrgentFirst) {
    static std::vector<int> order;
    order.clear();
    seen first;
    const handle end = manual();
    first.blocks = end;
    const PTP_POOL pool = CreateThreadpool(nullptr);
    SetThreadpoolThreadMaximum(pool, 1);
    TP_CALLBACK_ENVIRON environment;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackPool(&environment, pool);
    const PTP_WORK holds = CreateThreadpoolWork(on_work, &first, &environment);
    SubmitThreadpoolWork(holds);
    first.until(1);
    PTP_WORK works_of[3];
    static int numbers[3] = {0, 1, 2};
    for (const int i : {2, 1, 0}) {
        SetThreadpoolCallbackPriority(&environment, static_cast<TP_CALLBACK_PRIORITY>(i));
        works_of[i] = CreateThreadpoolWork([](PTP_CALLBACK_INSTANCE, void* number,
                                              PTP_WORK) { order.push_back(*static_cast<int*>(number)); },
                                           &numbers[i], &environment);
        SubmitThreadpoolWork(works_of[i]);
    }
    EXPECT_TRUE(works(SetEvent, end));
    for (const PTP_WORK work : works_of) {
        WaitForThreadpoolWorkCallbacks(work, FALSE);
        CloseThreadpoolWork(work);
    }
    WaitForThreadpoolWorkCallbacks(holds, FALSE);
    CloseThreadpoolWork(holds);
    CloseThreadpool(pool);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(ThreadpoolWork, MayBeClosedWhileItRuns) {
    seen its;
    const handle end = manual();
    its.blocks = end;
    const PTP_WORK work = CreateThreadpoolWork(on_work, &its, nullptr);
    SubmitThreadpoolWork(work);
    SubmitThreadpoolWork(work);
    its.until(2);
    CloseThreadpoolWork(work);
    EXPECT_TRUE(works(SetEvent, end));
    until("they have left", [&] { return its.inside.load() == 0; });
    nap(2ms);  // they return
}

TEST(ThreadpoolCallback, DoesWhatItAskedForWhenItReturns) {
    struct {
        handle event = automatic(), permits = semaphore(0, 5), own = mutex();
        CRITICAL_SECTION section;
        std::atomic<bool> entered{false};
    } its;
    InitializeCriticalSection(&its.section);
    EXPECT_TRUE(works(
        TrySubmitThreadpoolCallback,
        [](PTP_CALLBACK_INSTANCE instance, void* context) {
            auto& self = *static_cast<decltype(its)*>(context);
            EnterCriticalSection(&self.section);
            EXPECT_EQ(win32::wait(self.own), WAIT_OBJECT_0);
            SetEventWhenCallbackReturns(instance, self.event);
            ReleaseSemaphoreWhenCallbackReturns(instance, self.permits, 3);
            ReleaseMutexWhenCallbackReturns(instance, self.own);
            LeaveCriticalSectionWhenCallbackReturns(instance, &self.section);
            EXPECT_TRUE(CallbackMayRunLong(instance));
            EXPECT_EQ(look(self.event), DWORD{WAIT_TIMEOUT});
            EXPECT_EQ(look(self.permits), DWORD{WAIT_TIMEOUT});
            self.entered.store(true);
        },
        &its, nullptr));
    EXPECT_EQ(wait(its.event), WAIT_OBJECT_0);
    EXPECT_TRUE(its.entered.load());
    EnterCriticalSection(&its.section);
    EXPECT_EQ(wait(its.own), WAIT_OBJECT_0) << "not abandoned";
    for (int i = 0; i < 3; ++i) EXPECT_EQ(wait(its.permits), WAIT_OBJECT_0);
    LeaveCriticalSection(&its.section);
    EXPECT_TRUE(works(ReleaseMutex, its.own));
    DeleteCriticalSection(&its.section);
}

TEST(ThreadpoolCallback, IsNotWaitedForOnceItHasLeft) {
    struct {
        handle left = automatic(), end = automatic(), ended = automatic();
    } its;
    const PTP_WORK work = CreateThreadpoolWork(
        [](PTP_CALLBACK_INSTANCE instance, void* context, PTP_WORK) {
            auto& self = *static_cast<decltype(its)*>(context);
            DisassociateCurrentThreadFromCallback(instance);
            EXPECT_TRUE(works(SetEvent, self.left));
            EXPECT_EQ(win32::wait(self.end), WAIT_OBJECT_0);
            EXPECT_TRUE(works(SetEvent, self.ended));
        },
        &its, nullptr);
    SubmitThreadpoolWork(work);
    EXPECT_EQ(wait(its.left), WAIT_OBJECT_0);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    EXPECT_TRUE(works(SetEvent, its.end));
    EXPECT_EQ(wait(its.ended), WAIT_OBJECT_0);
    nap(2ms);  // it returns
}

TEST(ThreadpoolTimer, CallsOnceOrAgainAndAgain) {
    seen its;
    const PTP_TIMER timer = CreateThreadpoolTimer(on_timer, &its, nullptr);
    ASSERT_NE(timer, nullptr);
    EXPECT_FALSE(IsThreadpoolTimerSet(timer));
    const auto begin = std::chrono::steady_clock::now();
    FILETIME due = relative(20ms);
    SetThreadpoolTimer(timer, &due, 0, 0);
    its.until(1);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, at_least(20ms));
    due = relative(1ms);
    SetThreadpoolTimer(timer, &due, 2, 0);
    its.until(4);
    EXPECT_TRUE(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, nullptr, 0, 0);
    EXPECT_FALSE(IsThreadpoolTimerSet(timer));
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    const int now = its.calls.load();
    nap(10ms);
    EXPECT_EQ(its.calls.load(), now);
    CloseThreadpoolTimer(timer);
}

TEST(ThreadpoolTimer, IsDueAtATimeOfTheCalendar) {
    seen its;
    const PTP_TIMER timer = CreateThreadpoolTimer(on_timer, &its, nullptr);
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    ULARGE_INTEGER due;
    due.LowPart = now.dwLowDateTime;
    due.HighPart = now.dwHighDateTime;
    due.QuadPart += 200'000;  // 20 ms
    FILETIME when{due.LowPart, due.HighPart};
    SetThreadpoolTimer(timer, &when, 0, 0);
    its.until(1);
    GetSystemTimeAsFileTime(&now);
    EXPECT_GE(CompareFileTime(&now, &when), over_tocsin ? 0 : -1);
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    CloseThreadpoolTimer(timer);
}

TEST(ThreadpoolWait, CallsOnceForTheObjectOrTheTime) {
    seen its;
    const handle event = automatic();
    const PTP_WAIT pool_wait = CreateThreadpoolWait(on_wait, &its, nullptr);
    ASSERT_NE(pool_wait, nullptr);
    SetThreadpoolWait(pool_wait, event, nullptr);
    EXPECT_TRUE(works(SetEvent, event));
    its.until(1);
    EXPECT_EQ(its.result.load(), DWORD{WAIT_OBJECT_0});
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT}) << "it has taken the signal";
    EXPECT_TRUE(works(SetEvent, event));
    nap(5ms);
    EXPECT_EQ(its.calls.load(), 1) << "until it is set once more, it waits for nothing";
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    FILETIME timeout = relative(20ms);
    const auto begin = std::chrono::steady_clock::now();
    SetThreadpoolWait(pool_wait, event, &timeout);
    its.until(2);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, at_least(20ms));
    EXPECT_EQ(its.result.load(), DWORD{WAIT_TIMEOUT});
    WaitForThreadpoolWaitCallbacks(pool_wait, FALSE);
    CloseThreadpoolWait(pool_wait);
}

TEST(ThreadpoolWait, ThatIsEndedTakesNothing) {
    seen its;
    const handle event = automatic();
    const PTP_WAIT pool_wait = CreateThreadpoolWait(on_wait, &its, nullptr);
    SetThreadpoolWait(pool_wait, event, nullptr);
    SetThreadpoolWait(pool_wait, nullptr, nullptr);
    WaitForThreadpoolWaitCallbacks(pool_wait, TRUE);
    EXPECT_TRUE(works(SetEvent, event));
    nap(3ms);
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_EQ(its.calls.load(), 0);
    CloseThreadpoolWait(pool_wait);
}

// Over tocsin only: Windows documents no such promise.
TEST(ThreadpoolWait, LosesNoSignalThatRacesWithItsEnd) {
    if (!over_tocsin) GTEST_SKIP() << "not promised";
    for (int i = 0; i < few(300, 60); ++i) {
        seen its;
        const handle permits = semaphore(0, 1);
        const PTP_WAIT pool_wait = CreateThreadpoolWait(on_wait, &its, nullptr);
        SetThreadpoolWait(pool_wait, permits, nullptr);
        thread_group threads;
        threads.start([&] { EXPECT_TRUE(works(ReleaseSemaphore, permits, 1, nullptr)); });
        SetThreadpoolWait(pool_wait, nullptr, nullptr);
        threads.join();
        WaitForThreadpoolWaitCallbacks(pool_wait, i % 2 != 0);
        EXPECT_EQ(its.calls.load() + (look(permits) == WAIT_OBJECT_0 ? 1 : 0), 1);
        CloseThreadpoolWait(pool_wait);
    }
}

TEST(CleanupGroup, ClosesAllItsMembersAndWaitsForThem) {
    seen its;
    static std::atomic<int> canceled{0};
    canceled.store(0);
    const handle event = automatic();
    const PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, [](void*, void* context) {
        EXPECT_EQ(context, &canceled);
        canceled.fetch_add(1);
    });
    const PTP_WORK work = CreateThreadpoolWork(on_work, &its, &environment);
    const PTP_TIMER timer = CreateThreadpoolTimer(on_timer, &its, &environment);
    const PTP_WAIT pool_wait = CreateThreadpoolWait(on_wait, &its, &environment);
    FILETIME due = relative(1h);
    SetThreadpoolTimer(timer, &due, 0, 0);
    SetThreadpoolWait(pool_wait, event, nullptr);
    SubmitThreadpoolWork(work);
    EXPECT_TRUE(works(TrySubmitThreadpoolCallback, on_simple, &its, &environment));
    its.until(2);
    CloseThreadpoolCleanupGroupMembers(group, FALSE, nullptr);
    EXPECT_EQ(its.inside.load(), 0);
    EXPECT_EQ(its.calls.load(), 2);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(look(event), WAIT_OBJECT_0) << "nobody waits any more";
    EXPECT_EQ(canceled.load(), 0);
    CloseThreadpoolCleanupGroup(group);
}

TEST(CleanupGroup, TakesBackWhatHasNotBegunAndTellsTheProgram) {
    seen its;
    static std::atomic<int> canceled{0};
    canceled.store(0);
    const handle end = manual();
    its.blocks = end;
    const PTP_POOL pool = CreateThreadpool(nullptr);
    SetThreadpoolThreadMaximum(pool, 1);
    const PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackPool(&environment, pool);
    SetThreadpoolCallbackCleanupGroup(&environment, group, [](void* object, void* context) {
        EXPECT_EQ(object, context);
        canceled.fetch_add(1);
    });
    EXPECT_TRUE(works(TrySubmitThreadpoolCallback, on_simple, &its, &environment));
    its.until(1);
    const PTP_WORK work = CreateThreadpoolWork(on_work, &its, &environment);
    SubmitThreadpoolWork(work);
    EXPECT_TRUE(works(TrySubmitThreadpoolCallback, on_simple, &its, &environment));
    thread_group threads;
    threads.start([&] { CloseThreadpoolCleanupGroupMembers(group, TRUE, &its); });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, end));
    threads.join();
    EXPECT_EQ(its.calls.load(), 1);
    EXPECT_EQ(canceled.load(), 2);
    CloseThreadpoolCleanupGroup(group);
    CloseThreadpool(pool);
}

TEST(Threadpool, RefusesNoCallback) {
    if (!over_tocsin) GTEST_SKIP() << "Windows takes a pointer's word for it";
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, TrySubmitThreadpoolCallback, nullptr, nullptr, nullptr));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, QueueUserWorkItem, nullptr, nullptr, 0u));
    SetLastError(untouched);
    EXPECT_EQ(CreateThreadpoolWork(nullptr, nullptr, nullptr), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
}

}  // namespace
