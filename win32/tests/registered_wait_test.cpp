// SPDX-License-Identifier: Apache-2.0
// RegisterWaitForSingleObject, UnregisterWait, UnregisterWaitEx.
#include "system.hpp"

#include <atomic>
#include <memory>

namespace {

using namespace win32;

struct calls {
    std::atomic<int> for_signals{0};
    std::atomic<int> for_time{0};
    std::atomic<pid_t> last_thread{0};  // that called
    int count() const { return for_signals.load() + for_time.load(); }
    void until(int wanted) const {
        support::until("callbacks", [&] { return count() >= wanted; });
    }
};
void CALLBACK count(void* context, BOOLEAN timed_out) {
    auto& seen = *static_cast<calls*>(context);
    EXPECT_TRUE(timed_out == TRUE || timed_out == FALSE);
    seen.last_thread.store(support::thread_id());
    (timed_out ? seen.for_time : seen.for_signals).fetch_add(1);
}

testing::AssertionResult registers(HANDLE& wait, HANDLE object, WAITORTIMERCALLBACK callback, void* context,
                                   DWORD milliseconds = INFINITE, DWORD flags = WT_EXECUTEDEFAULT) {
    return works(RegisterWaitForSingleObject, &wait, object, callback, context, milliseconds, flags);
}
testing::AssertionResult unregisters(HANDLE wait) {
    return works(UnregisterWaitEx, wait, INVALID_HANDLE_VALUE);
}

TEST(RegisteredWait, CallsOnceForOneSignalIfAskedTo) {
    constexpr DWORD at_most_four_threads = 4 << 16;
    for (const DWORD how :
         {DWORD{WT_EXECUTEDEFAULT}, DWORD{WT_EXECUTEINWAITTHREAD}, DWORD{WT_EXECUTELONGFUNCTION},
          DWORD{WT_EXECUTEINPERSISTENTTHREAD}, at_most_four_threads}) {
        const DWORD flags = WT_EXECUTEONLYONCE | how;
        const handle event = automatic();
        calls seen;
        HANDLE wait = nullptr;
        ASSERT_TRUE(registers(wait, event, count, &seen, INFINITE, flags));
        EXPECT_NE(wait, nullptr);
        EXPECT_TRUE(works(SetEvent, event));
        seen.until(1);
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT}) << "it has taken the signal, as every wait does";
        EXPECT_TRUE(works(SetEvent, event));
        nap(5ms);
        EXPECT_EQ(seen.for_signals.load(), 1);
        EXPECT_EQ(look(event), WAIT_OBJECT_0);
        EXPECT_TRUE(unregisters(wait));
        EXPECT_EQ(seen.count(), 1);
    }
}

TEST(RegisteredWait, CallsForEverySignal) {
    const handle event = automatic();
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, count, &seen));
    for (int i = 1; i <= few(100, 20); ++i) {
        EXPECT_TRUE(works(SetEvent, event));
        seen.until(i);
    }
    EXPECT_TRUE(unregisters(wait));
    EXPECT_EQ(seen.for_time.load(), 0);
    EXPECT_TRUE(works(SetEvent, event));
    nap(5ms);
    EXPECT_EQ(look(event), WAIT_OBJECT_0) << "nobody waits any more";
}

TEST(RegisteredWait, CallsForEachPermitOfASemaphore) {
    const handle permits = semaphore(0, 100);
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, permits, count, &seen));
    EXPECT_TRUE(works(ReleaseSemaphore, permits, 10, nullptr));
    seen.until(10);
    nap(2ms);
    EXPECT_EQ(seen.for_signals.load(), 10);
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, CallsAtOnceForWhatIsSet) {
    const handle event = automatic(true);
    calls seen;
    HANDLE wait = nullptr;
    // Without time, too: Wine 8 calls for the time then.
    ASSERT_TRUE(registers(wait, event, count, &seen, under_wine() ? 10'000 : 0, WT_EXECUTEONLYONCE));
    seen.until(1);
    EXPECT_EQ(seen.for_signals.load(), 1);
    EXPECT_TRUE(unregisters(wait));
}

// Documented: without ONLYONCE, a manual event that stays set calls again and again.
TEST(RegisteredWait, CallsAgainForAsLongAsAManualEventIsSet) {
    const handle event = manual(true);
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, count, &seen));
    seen.until(3);
    EXPECT_TRUE(works(ResetEvent, event));
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, CallsWhenItsTimeIsOver) {
    const handle event = automatic();
    calls seen;
    HANDLE wait = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(registers(wait, event, count, &seen, 20, WT_EXECUTEONLYONCE));
    seen.until(1);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, at_least(20ms));
    EXPECT_EQ(seen.for_time.load(), 1);
    EXPECT_TRUE(works(SetEvent, event));
    nap(30ms);
    EXPECT_EQ(seen.count(), 1);
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, CallsAtOnceWithoutTime) {
    const handle event = automatic();
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, count, &seen, 0, WT_EXECUTEONLYONCE));
    seen.until(1);
    EXPECT_EQ(seen.for_time.load(), 1);
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, CountsItsTimeAnewAfterEachCall) {
    if (under_wine()) GTEST_SKIP() << "Wine calls once for the time, and then waits without one";
    const handle event = automatic();
    calls seen;
    HANDLE wait = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(registers(wait, event, count, &seen, 10));
    seen.until(3);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, at_least(30ms));
    EXPECT_TRUE(works(SetEvent, event));
    support::until("a call for the signal", [&] { return seen.for_signals.load() == 1; });
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, WaitsForAThreadsEnd) {
    const handle end = automatic();
    const handle thread(CreateThread(
        nullptr, 0,
        [](void* event) -> DWORD {
            EXPECT_EQ(win32::wait(event), WAIT_OBJECT_0);
            return 0;
        },
        end, 0, nullptr));
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, thread, count, &seen, INFINITE, WT_EXECUTEONLYONCE));
    EXPECT_TRUE(works(SetEvent, end));
    seen.until(1);
    EXPECT_TRUE(unregisters(wait));
    EXPECT_EQ(win32::wait(thread), WAIT_OBJECT_0);
}

TEST(Unregistered, CallsNoMore) {
    for (int i = 0; i < few(100, 20); ++i) {
        const handle event = automatic();
        auto seen = std::make_unique<calls>();
        HANDLE wait = nullptr;
        ASSERT_TRUE(registers(wait, event, count, seen.get(), i % 2 ? INFINITE : 1));
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_TRUE(unregisters(wait));
        const int before = seen->count();
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_EQ(seen->count(), before);
        seen.reset();  // nothing refers to it any more
    }
}

// A callback that runs until it is told to end.
struct gate {
    handle entered = manual(), end = manual();
    std::atomic<bool> left{false};
};
void CALLBACK stay(void* context, BOOLEAN) {
    auto& self = *static_cast<gate*>(context);
    EXPECT_TRUE(works(SetEvent, self.entered));
    EXPECT_EQ(WaitForSingleObject(self.end, INFINITE), WAIT_OBJECT_0);
    self.left.store(true);
}

TEST(Unregistered, WaitsForTheCallbackIfAskedTo) {
    gate its;
    const handle event = automatic(true);
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, stay, &its, INFINITE, WT_EXECUTEONLYONCE));
    EXPECT_EQ(win32::wait(its.entered), WAIT_OBJECT_0);
    thread_group threads;
    threads.start([&] {
        EXPECT_TRUE(unregisters(wait));
        EXPECT_TRUE(its.left.load());
    });
    until_waits(threads, 0);
    EXPECT_FALSE(threads.finished(0));
    EXPECT_TRUE(works(SetEvent, its.end));
}

TEST(Unregistered, SaysThatACallbackStillRuns) {
    for (const bool by_the_short_form : {false, true}) {
        gate its;
        const handle event = automatic(true);
        HANDLE wait = nullptr;
        ASSERT_TRUE(registers(wait, event, stay, &its, INFINITE, WT_EXECUTEONLYONCE));
        EXPECT_EQ(win32::wait(its.entered), WAIT_OBJECT_0);
        if (by_the_short_form) {
            EXPECT_TRUE(fails(ERROR_IO_PENDING, UnregisterWait, wait));
        } else {
            EXPECT_TRUE(fails(ERROR_IO_PENDING, UnregisterWaitEx, wait, nullptr));
        }
        EXPECT_FALSE(its.left.load());
        EXPECT_TRUE(works(SetEvent, its.end));
        until("the callback has left", [&] { return its.left.load(); });
        nap(2ms);  // it returns
    }
}

TEST(Unregistered, SetsAnEventWhenTheLastCallbackHasEnded) {
    gate its;
    const handle event = automatic(true), done = automatic();
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, stay, &its, INFINITE, WT_EXECUTEONLYONCE));
    EXPECT_EQ(win32::wait(its.entered), WAIT_OBJECT_0);
    EXPECT_TRUE(fails(ERROR_IO_PENDING, UnregisterWaitEx, wait, HANDLE(done)));
    EXPECT_EQ(WaitForSingleObject(done, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, its.end));
    EXPECT_EQ(win32::wait(done), WAIT_OBJECT_0);
    EXPECT_TRUE(its.left.load());
}

TEST(Unregistered, SetsTheEventAtOnceIfNoCallbackRuns) {
    const handle event = automatic(), done = automatic();
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, count, &seen));
    const BOOL result = UnregisterWaitEx(wait, done);
    EXPECT_TRUE(result == TRUE || GetLastError() == ERROR_IO_PENDING);
    EXPECT_EQ(WaitForSingleObject(done, 10'000), WAIT_OBJECT_0);
    EXPECT_EQ(seen.count(), 0);
}

struct from_inside {
    std::atomic<HANDLE> wait{nullptr};
    handle done = automatic();
    DWORD error = 7;
};

TEST(Unregistered, FromInsideItsCallbackWithoutWaiting) {
    from_inside its;
    const handle event = automatic();
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(
        wait, event,
        [](void* context, BOOLEAN) {
            auto& self = *static_cast<from_inside*>(context);
            SetLastError(untouched);
            if (!UnregisterWait(self.wait.load())) self.error = GetLastError();
            EXPECT_TRUE(works(SetEvent, self.done));
        },
        &its, INFINITE, WT_EXECUTEONLYONCE));
    its.wait.store(wait);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(win32::wait(its.done), WAIT_OBJECT_0);
    EXPECT_EQ(its.error, DWORD{ERROR_IO_PENDING});
    nap(2ms);  // it returns
}

// What others observed on Windows: the wait thread knows that nothing else of its own is running.
TEST(Unregistered, FromInsideItsCallbackInTheWaitThreadIsDoneAtOnce) {
    if (under_wine()) GTEST_SKIP() << "Wine 8 says that a callback is pending";
    for (const DWORD once : {DWORD{0}, DWORD{WT_EXECUTEONLYONCE}}) {
        from_inside its;
        const handle event = automatic();
        HANDLE wait = nullptr;
        ASSERT_TRUE(registers(
            wait, event,
            [](void* context, BOOLEAN) {
                auto& self = *static_cast<from_inside*>(context);
                EXPECT_TRUE(works(UnregisterWait, self.wait.load()));
                EXPECT_TRUE(works(SetEvent, self.done));
            },
            &its, INFINITE, WT_EXECUTEINWAITTHREAD | once));
        its.wait.store(wait);
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_EQ(win32::wait(its.done), WAIT_OBJECT_0);
        EXPECT_TRUE(works(SetEvent, event));
        nap(2ms);  // nothing else is called
        EXPECT_EQ(look(event), WAIT_OBJECT_0);
    }
}

// In all its forms: never called, ended.
TEST(Unregistered, InEveryFormOnceItsCallbackHasEndedOrWasNeverCalled) {
    for (const bool called : {false, true}) {
        for (int form = 0; form != 4; ++form) {
            const handle event = automatic(called), done = automatic();
            calls seen;
            HANDLE wait = nullptr;
            ASSERT_TRUE(registers(wait, event, count, &seen, INFINITE, WT_EXECUTEONLYONCE));
            if (called) seen.until(1);
            if (over_tocsin) {
                support::until_others_sleep();  // the callback has returned
            } else if (called) {
                support::until_sound_asleep(seen.last_thread.load());
            } else {
                nap(50ms);  // no fact to wait for: the wait is under way
            }
            switch (form) {
                case 0: EXPECT_TRUE(works(UnregisterWait, wait)); break;
                case 1: EXPECT_TRUE(works(UnregisterWaitEx, wait, nullptr)); break;
                case 2: EXPECT_TRUE(works(UnregisterWaitEx, wait, INVALID_HANDLE_VALUE)); break;
                default:
                    EXPECT_TRUE(works(UnregisterWaitEx, wait, HANDLE(done)));
                    EXPECT_EQ(WaitForSingleObject(done, 10'000), WAIT_OBJECT_0);
            }
            EXPECT_EQ(seen.count(), called ? 1 : 0);
        }
    }
}

TEST(RegisteredWait, RunsOneAfterTheOtherInTheWaitThread) {
    struct together {
        std::atomic<int> inside{0}, max{0}, count{0};
        std::atomic<DWORD> thread{0};
        int plain = 0;  // a data race, if two run at once
    } its;
    std::vector<handle> events;
    std::vector<HANDLE> waits(8);
    for (auto& wait : waits) {
        events.push_back(automatic());
        ASSERT_TRUE(registers(
            wait, events.back(),
            [](void* context, BOOLEAN) {
                auto& self = *static_cast<together*>(context);
                const int now = self.inside.fetch_add(1) + 1;
                if (now > self.max.load()) self.max.store(now);
                ++self.plain;
                const DWORD before = self.thread.exchange(GetCurrentThreadId());
                EXPECT_TRUE(before == 0 || before == GetCurrentThreadId());
                std::this_thread::yield();
                self.inside.fetch_sub(1);
                self.count.fetch_add(1);
            },
            &its, INFINITE, WT_EXECUTEINWAITTHREAD));
    }
    const int each = few(50, 5);
    for (int i = 0; i != each; ++i) {
        for (const auto& event : events) EXPECT_TRUE(works(SetEvent, event));
        support::until("all calls", [&] { return its.count.load() == (i + 1) * 8; });
    }
    for (const auto wait : waits) EXPECT_TRUE(unregisters(wait));
    EXPECT_EQ(its.max.load(), 1);
    EXPECT_EQ(its.plain, each * 8);
}

// On Windows that waits for ever.
TEST(Unregistered, FromInsideItsCallbackWouldWaitForItself) {
    if (!over_tocsin) GTEST_SKIP() << "a deadlock";
    from_inside its;
    const handle event = automatic();
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(
        wait, event,
        [](void* context, BOOLEAN) {
            auto& self = *static_cast<from_inside*>(context);
            EXPECT_FALSE(UnregisterWaitEx(self.wait.load(), INVALID_HANDLE_VALUE));
            self.error = GetLastError();
            EXPECT_TRUE(works(SetEvent, self.done));
        },
        &its, INFINITE, WT_EXECUTEONLYONCE));
    its.wait.store(wait);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(win32::wait(its.done), WAIT_OBJECT_0);
    EXPECT_EQ(its.error, 1131u);  // ERROR_POSSIBLE_DEADLOCK
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, RefusesWhatIsNoHandle) {
    calls seen;
    HANDLE wait = nullptr;
    const handle event = automatic();
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, UnregisterWait, nullptr));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, UnregisterWaitEx, nullptr, INVALID_HANDLE_VALUE));
    if (under_wine()) return;  // Wine 8 registers whatever it is given, and calls back when the wait fails
    EXPECT_TRUE(
        fails(ERROR_INVALID_HANDLE, RegisterWaitForSingleObject, &wait, nullptr, count, &seen, INFINITE, 0u));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, RegisterWaitForSingleObject, &wait, closed(), count, &seen,
                      INFINITE, 0u));
    if (!over_tocsin) return;  // Windows takes a pointer's word for it
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, UnregisterWait, HANDLE(event)));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, UnregisterWait, &seen));
    ASSERT_TRUE(registers(wait, event, count, &seen));
    EXPECT_TRUE(unregisters(wait));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, UnregisterWait, wait));
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
}

// The handle of a wait is no handle of an object.
TEST(RegisteredWait, IsNoObject) {
    const handle event = automatic();
    calls seen;
    HANDLE wait = nullptr;
    ASSERT_TRUE(registers(wait, event, count, &seen));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CloseHandle, wait));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, wait, 0u));
    EXPECT_TRUE(works(SetEvent, event));
    seen.until(1);
    EXPECT_TRUE(unregisters(wait));
}

TEST(RegisteredWait, IsOneOfManyAtATime) {
    const int many = few(300, 70);
    std::vector<handle> events;
    std::vector<HANDLE> waits(static_cast<std::size_t>(many));
    calls seen;
    for (auto& wait : waits) {
        events.push_back(automatic());
        ASSERT_TRUE(registers(wait, events.back(), count, &seen, INFINITE, WT_EXECUTEONLYONCE));
    }
    for (const auto& event : events) EXPECT_TRUE(works(SetEvent, event));
    seen.until(many);
    for (const auto wait : waits) EXPECT_TRUE(unregisters(wait));
    EXPECT_EQ(seen.for_signals.load(), many);
}

}  // namespace
