// SPDX-License-Identifier: Apache-2.0
// Waits of tocsin/win32.h beyond one object: pulses, SignalObjectAndWait(), queued calls, timers, threads, registered
// waits, descriptors.
#include "support.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace win32_test;
using namespace std::chrono_literals;

TEST(win32_waits, APulseReleasesWhoWaitsNowAndNobodyLater) {
    for (const bool manual : {false, true}) {
        const event one(manual, true);
        EXPECT_TRUE(PulseEvent(one.get()));
        EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_TIMEOUT) << "unset, with nobody there";
        std::atomic<int> released{0};
        thread_group threads;
        threads.start_many(3, "waiter", [&](int) {
            EXPECT_EQ(WaitForSingleObject(one.get(), INFINITE), WAIT_OBJECT_0);
            ++released;
        });
        for (std::size_t i = 0; i < 3; ++i) support::until_sound_asleep(threads.id(i));
        EXPECT_TRUE(PulseEvent(one.get()));
        EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_TIMEOUT);
        threads.until_finished(manual ? 3 : 1);
        EXPECT_EQ(released, manual ? 3 : 1);
        for (int i = manual ? 3 : 1; i < 3; ++i) PulseEvent(one.get());
        threads.join();
        EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_TIMEOUT);
    }
}

// On Windows, a pulse may miss a thread, and most emulations lose it. Here the waiter is queued when the signal is
// made.
TEST(win32_waits, SignalObjectAndWaitNeverMissesAPulse) {
    const event go(false, false);
    const event answer(true, false);
    thread_group threads;
    threads.start("pulser", [&] {
        for (int i = 0; i < rounds(5000); ++i) {
            EXPECT_EQ(WaitForSingleObject(go.get(), INFINITE), WAIT_OBJECT_0);
            EXPECT_TRUE(PulseEvent(answer.get()));
        }
    });
    for (int i = 0; i < rounds(5000); ++i)
        ASSERT_EQ(SignalObjectAndWait(go.get(), answer.get(), INFINITE, FALSE), WAIT_OBJECT_0);
    threads.join();
}

TEST(win32_waits, SignalObjectAndWaitOnTheSameEvent) {
    const event one(false, false);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(SignalObjectAndWait(one.get(), one.get(), i % 2 == 0 ? 0 : 1000, FALSE), WAIT_OBJECT_0);
        EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_TIMEOUT);
        SetEvent(one.get());
        EXPECT_EQ(SignalObjectAndWait(one.get(), one.get(), 1000, FALSE), WAIT_OBJECT_0);
        EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_TIMEOUT);
    }
}

TEST(win32_waits, SignalObjectAndWaitFailsBeforeItWaits) {
    const event set(false, true);
    const HANDLE full = CreateSemaphore(nullptr, 2, 2, nullptr);
    EXPECT_EQ(SignalObjectAndWait(full, set.get(), 1000, FALSE), WAIT_FAILED);
    EXPECT_EQ(GetLastError(), ERROR_TOO_MANY_POSTS);
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    EXPECT_EQ(SignalObjectAndWait(mutex, set.get(), 1000, FALSE), WAIT_FAILED);
    EXPECT_EQ(GetLastError(), ERROR_NOT_OWNER);
    EXPECT_EQ(WaitForSingleObject(set.get(), 0), WAIT_OBJECT_0) << "nothing was taken";
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
    EXPECT_EQ(SignalObjectAndWait(mutex, mutex, 1000, FALSE), WAIT_OBJECT_0);
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_FALSE(ReleaseMutex(mutex));
    CloseHandle(full);
    CloseHandle(mutex);
}

// Two threads signal the same semaphore, which has room for one permit. So one of them finds it full, often only after
// it has begun to wait, and perhaps been given a token. This thread makes no permit, and takes no token.
TEST(win32_waits, SignalObjectAndWaitThatCannotSignalGivesBackWhatItTook) {
    for (const LONG spare : {1, 2}) {
        const HANDLE permit = CreateSemaphore(nullptr, 0, 1, nullptr);
        const HANDLE tokens = CreateSemaphore(nullptr, spare, 2, nullptr);
        std::atomic<int> arrived{0};
        std::atomic<int> worked{0};
        const auto meet = [&](int times) {
            ++arrived;
            while (arrived < 2 * times) std::this_thread::yield();
        };
        thread_group threads;
        threads.start_many(2, "caller", [&](int number) {
            for (int i = 0; i < rounds(400); ++i) {
                meet(2 * i + 1);
                const DWORD how = SignalObjectAndWait(permit, tokens, 30'000, FALSE);
                if (how == WAIT_OBJECT_0) ++worked;
                EXPECT_TRUE(how == WAIT_OBJECT_0 ||
                            (how == WAIT_FAILED && GetLastError() == ERROR_TOO_MANY_POSTS))
                    << how;
                meet(2 * i + 2);
                if (number != 0) continue;
                EXPECT_EQ(worked, i + 1);
                EXPECT_EQ(WaitForSingleObject(permit, 0), WAIT_OBJECT_0);
                LONG left = 0;
                EXPECT_TRUE(ReleaseSemaphore(tokens, 1, &left));
                EXPECT_EQ(left, spare - 1);
            }
        });
        threads.join();
        CloseHandle(permit);
        CloseHandle(tokens);
    }
}

struct called_in {
    std::atomic<int> times{0};
    static void call(ULONG_PTR self) { ++reinterpret_cast<called_in*>(self)->times; }
};

TEST(win32_waits, AQueuedCallEndsEveryAlertableWait) {
    const event never(false, false);
    const event other(true, false);
    const std::array both{never.get(), other.get()};
    called_in calls;
    const event running(false, false);
    auto body = [&]() -> DWORD {
        for (int i = 0; i < rounds(200); ++i) {
            SetEvent(running.get());
            EXPECT_EQ(WaitForSingleObjectEx(never.get(), INFINITE, TRUE), WAIT_IO_COMPLETION);
            SetEvent(running.get());
            EXPECT_EQ(WaitForMultipleObjectsEx(2, both.data(), FALSE, INFINITE, TRUE), WAIT_IO_COMPLETION);
            SetEvent(running.get());
            EXPECT_EQ(WaitForMultipleObjectsEx(2, both.data(), TRUE, INFINITE, TRUE), WAIT_IO_COMPLETION);
            EXPECT_EQ(SignalObjectAndWait(running.get(), never.get(), INFINITE, TRUE), WAIT_IO_COMPLETION);
            SetEvent(running.get());
            EXPECT_EQ(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
        }
        return 0;
    };
    const win32_thread thread(body);
    for (int i = 0; i < 5 * rounds(200); ++i) {
        EXPECT_EQ(WaitForSingleObject(running.get(), INFINITE), WAIT_OBJECT_0);
        EXPECT_TRUE(QueueUserAPC(called_in::call, thread.get(), reinterpret_cast<ULONG_PTR>(&calls)));
    }
    EXPECT_EQ(WaitForSingleObject(thread.get(), INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(calls.times, 5 * rounds(200));
    EXPECT_FALSE(QueueUserAPC(called_in::call, thread.get(), 0));
    EXPECT_EQ(GetLastError(), ERROR_GEN_FAILURE);
}

TEST(win32_waits, AnObjectThatIsSetWinsOverAQueuedCall) {
    const event set(false, true);
    called_in calls;
    QueueUserAPC(called_in::call, GetCurrentThread(), reinterpret_cast<ULONG_PTR>(&calls));
    EXPECT_EQ(WaitForSingleObjectEx(set.get(), 0, TRUE), WAIT_OBJECT_0);
    EXPECT_EQ(calls.times, 0);
    EXPECT_EQ(WaitForSingleObjectEx(set.get(), 0, TRUE), WAIT_IO_COMPLETION);
    EXPECT_EQ(calls.times, 1);
    EXPECT_EQ(SleepEx(0, TRUE), 0u);
    EXPECT_EQ(SleepEx(1, TRUE), 0u) << "no call is queued any more";
}

TEST(win32_waits, TimersManualAutoPeriodicAndStopped) {
    const HANDLE gate = CreateWaitableTimer(nullptr, TRUE, nullptr);
    const HANDLE token = CreateWaitableTimer(nullptr, FALSE, nullptr);
    EXPECT_EQ(WaitForSingleObject(gate, 0), WAIT_TIMEOUT);
    const auto begin = std::chrono::steady_clock::now();
    const LARGE_INTEGER soon = relative(20ms);
    EXPECT_TRUE(SetWaitableTimer(gate, &soon, 0, nullptr, nullptr, FALSE));
    EXPECT_EQ(WaitForSingleObject(gate, INFINITE), WAIT_OBJECT_0);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_EQ(WaitForSingleObject(gate, 0), WAIT_OBJECT_0) << "stays set";
    EXPECT_TRUE(CancelWaitableTimer(gate));
    EXPECT_EQ(WaitForSingleObject(gate, 0), WAIT_OBJECT_0) << "a cancel leaves the state";
    const LARGE_INTEGER late = relative(1h);
    EXPECT_TRUE(SetWaitableTimer(gate, &late, 0, nullptr, nullptr, FALSE));
    EXPECT_EQ(WaitForSingleObject(gate, 0), WAIT_TIMEOUT) << "setting it unsets it";

    EXPECT_TRUE(SetWaitableTimer(token, &soon, 5, nullptr, nullptr, FALSE));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(WaitForSingleObject(token, INFINITE), WAIT_OBJECT_0);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 35ms);
    EXPECT_TRUE(CancelWaitableTimer(token));
    (void)WaitForSingleObject(token, 0);
    EXPECT_EQ(WaitForSingleObject(token, 20), WAIT_TIMEOUT);

    LARGE_INTEGER now{};
    EXPECT_TRUE(SetWaitableTimer(token, &now, 0, nullptr, nullptr, FALSE));
    EXPECT_EQ(WaitForSingleObject(token, 0), WAIT_OBJECT_0) << "1601 is past";
    FILETIME time;
    GetSystemTimeAsFileTime(&time);
    now.LowPart = time.dwLowDateTime;
    now.HighPart = static_cast<LONG>(time.dwHighDateTime);
    now.QuadPart += 200'000;
    EXPECT_TRUE(SetWaitableTimer(token, &now, 0, nullptr, nullptr, TRUE));
    EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED) << "the system is not woken up";
    EXPECT_EQ(WaitForSingleObject(token, INFINITE), WAIT_OBJECT_0);
    EXPECT_FALSE(SetWaitableTimer(token, &now, -1, nullptr, nullptr, FALSE));
    EXPECT_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CloseHandle(gate);
    CloseHandle(token);
}

TEST(win32_waits, TimersThatRunMayLoseTheirHandles) {
    for (int i = 0; i < rounds(500); ++i) {
        const HANDLE one = CreateWaitableTimer(nullptr, i % 2, nullptr);
        const LARGE_INTEGER soon{.QuadPart = -i};
        EXPECT_TRUE(SetWaitableTimer(one, &soon, 1, nullptr, nullptr, FALSE));
        EXPECT_TRUE(CloseHandle(one));
    }
}

TEST(win32_waits, ATimersRoutineRunsInTheThreadThatSetIt) {
    const HANDLE timer = CreateWaitableTimer(nullptr, FALSE, nullptr);
    static std::atomic<int> routines{0};
    const LARGE_INTEGER soon = relative(1ms);
    EXPECT_TRUE(SetWaitableTimer(
        timer, &soon, 1,
        [](void*, DWORD, DWORD high) {
            EXPECT_NE(high, 0u);
            ++routines;
        },
        nullptr, FALSE));
    while (routines < 3) EXPECT_EQ(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    EXPECT_TRUE(CancelWaitableTimer(timer));
    CloseHandle(timer);
    while (SleepEx(0, TRUE) == WAIT_IO_COMPLETION) {
    }
}

TEST(win32_waits, ThreadsHaveExitCodesAndStartWhenResumed) {
    auto body = [] { return DWORD{42}; };
    using body_type = decltype(body);
    const HANDLE thread = CreateThread(
        nullptr, 1, [](void* of) -> DWORD { return (*static_cast<body_type*>(of))(); }, &body,
        CREATE_SUSPENDED, nullptr);
    DWORD code = 0;
    EXPECT_TRUE(GetExitCodeThread(thread, &code));
    EXPECT_EQ(code, STILL_ACTIVE);
    EXPECT_EQ(WaitForSingleObject(thread, 1), WAIT_TIMEOUT);
    EXPECT_EQ(ResumeThread(thread), 1u);
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(GetExitCodeThread(thread, &code));
    EXPECT_EQ(code, 42u);
    EXPECT_EQ(ResumeThread(thread), 0u);
    CloseHandle(thread);

    const auto exits = reinterpret_cast<HANDLE>(
        _beginthreadex(nullptr, 0, [](void*) -> unsigned { _endthreadex(9); }, nullptr, 0, nullptr));
    EXPECT_EQ(WaitForSingleObject(exits, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(GetExitCodeThread(exits, &code));
    EXPECT_EQ(code, 9u);
    CloseHandle(exits);

    const HANDLE unstarted =
        CreateThread(nullptr, 0, [](void*) -> DWORD { return 1; }, nullptr, CREATE_SUSPENDED, nullptr);
    EXPECT_TRUE(TerminateThread(unstarted, 3));
    EXPECT_EQ(WaitForSingleObject(unstarted, 0), WAIT_OBJECT_0);
    EXPECT_TRUE(GetExitCodeThread(unstarted, &code));
    EXPECT_EQ(code, 3u);
    CloseHandle(unstarted);
}

TEST(win32_waits, DescriptorsAreObjectsOfWaitsForAny) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const HANDLE readable = TocsinHandleOfDescriptor(ends[0], TOCSIN_READABLE);
    const event other(false, false);
    const std::array both{other.get(), readable};
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 1), WAIT_TIMEOUT);
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), TRUE, 1), WAIT_FAILED);
    EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    EXPECT_EQ(WaitForSingleObject(readable, 0), WAIT_OBJECT_0);
    SetEvent(other.get());
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 0), WAIT_OBJECT_0);
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(WaitForSingleObject(readable, 0), WAIT_FAILED);
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    CloseHandle(readable);
}

struct callbacks {
    std::atomic<int> signaled{0};
    std::atomic<int> timed_out{0};
    std::atomic<DWORD> error{0};
    HANDLE wait = nullptr;
    HANDLE told = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    HANDLE blocks = nullptr;
    callbacks() = default;
    callbacks(const callbacks&) = delete;
    callbacks& operator=(const callbacks&) = delete;
    ~callbacks() { CloseHandle(told); }
    static void call(void* self, BOOLEAN late) {
        auto& me = *static_cast<callbacks*>(self);
        const HANDLE tells = me.told;
        const HANDLE waits_for = me.blocks;
        ++(late ? me.timed_out : me.signaled);
        SetEvent(tells);  // from here on, `me` may be gone
        if (waits_for != nullptr) WaitForSingleObject(waits_for, INFINITE);
    }
};

TEST(win32_registered_wait, CallsForEverySignalAndEveryTimeout) {
    const event one(false, false);
    callbacks all;
    ASSERT_TRUE(RegisterWaitForSingleObject(&all.wait, one.get(), callbacks::call, &all, INFINITE,
                                            WT_EXECUTEDEFAULT));
    for (int i = 0; i < 100; ++i) {
        SetEvent(one.get());
        EXPECT_EQ(WaitForSingleObject(all.told, INFINITE), WAIT_OBJECT_0);
    }
    EXPECT_FALSE(CloseHandle(all.wait));
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    EXPECT_EQ(WaitForSingleObject(all.wait, 0), WAIT_FAILED);
    EXPECT_TRUE(UnregisterWaitEx(all.wait, INVALID_HANDLE_VALUE));
    EXPECT_FALSE(UnregisterWait(all.wait));
    EXPECT_EQ(all.signaled, 100);
    SetEvent(one.get());
    EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_OBJECT_0) << "nobody takes it any more";

    callbacks late;
    ASSERT_TRUE(
        RegisterWaitForSingleObject(&late.wait, one.get(), callbacks::call, &late, 1, WT_EXECUTEDEFAULT));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(WaitForSingleObject(late.told, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(UnregisterWaitEx(late.wait, INVALID_HANDLE_VALUE));
    EXPECT_GE(late.timed_out, 3);
    EXPECT_EQ(late.signaled, 0);
}

TEST(win32_registered_wait, AWaitForOnceCallsOnce) {
    const event one(true, true);
    callbacks all;
    ASSERT_TRUE(RegisterWaitForSingleObject(&all.wait, one.get(), callbacks::call, &all, INFINITE,
                                            WT_EXECUTEONLYONCE));
    EXPECT_EQ(WaitForSingleObject(all.told, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(all.told, 5), WAIT_TIMEOUT);
    EXPECT_TRUE(UnregisterWaitEx(all.wait, INVALID_HANDLE_VALUE));
    EXPECT_EQ(all.signaled, 1);
}

TEST(win32_registered_wait, OfADescriptorThatWasClosedIsRefused) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const HANDLE readable = TocsinHandleOfDescriptor(ends[0], TOCSIN_READABLE);
    close(ends[0]);
    close(ends[1]);
    callbacks all;
    EXPECT_FALSE(RegisterWaitForSingleObject(&all.wait, readable, callbacks::call, &all, INFINITE, 0));
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    EXPECT_EQ(all.signaled + all.timed_out, 0);
    EXPECT_TRUE(CloseHandle(readable));
}

TEST(win32_registered_wait, UnregisteringTellsWhenTheLastCallbackHasEnded) {
    const event one(false, true);
    const event go(true, false);
    const event done(true, false);
    callbacks all;
    all.blocks = go.get();
    ASSERT_TRUE(RegisterWaitForSingleObject(&all.wait, one.get(), callbacks::call, &all, INFINITE, 0));
    EXPECT_EQ(WaitForSingleObject(all.told, INFINITE), WAIT_OBJECT_0);
    EXPECT_FALSE(UnregisterWaitEx(all.wait, done.get()));
    EXPECT_EQ(GetLastError(), ERROR_IO_PENDING);
    EXPECT_EQ(WaitForSingleObject(done.get(), 1), WAIT_TIMEOUT);
    SetEvent(go.get());
    EXPECT_EQ(WaitForSingleObject(done.get(), INFINITE), WAIT_OBJECT_0);
}

TEST(win32_registered_wait, BlockingOnOnesOwnCallbackIsRefused) {
    const event one(false, true);
    static std::atomic<DWORD> error{0};
    static HANDLE wait = nullptr;
    static const event told(false, false);
    const event registered(true, false);
    ASSERT_TRUE(RegisterWaitForSingleObject(
        &wait, one.get(),
        [](void* may_run, BOOLEAN) {
            WaitForSingleObject(may_run, INFINITE);
            EXPECT_FALSE(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
            error = GetLastError();
            SetEvent(told.get());
        },
        registered.get(), INFINITE, 0));
    SetEvent(registered.get());
    EXPECT_EQ(WaitForSingleObject(told.get(), INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(error, ERROR_POSSIBLE_DEADLOCK);
    EXPECT_TRUE(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
}

// No token is lost or late: whoever unregisters while the object is signaled finds it taken by a callback, or set.
// `form`: how it is unregistered.
template <class Signal, class Make>
void expect_nothing_lost(int form, const Make& make, const Signal& signal) {
    for (int i = 0; i < rounds(300); ++i) {
        const HANDLE one = make();
        const event done(true, false);
        callbacks all;
        ASSERT_TRUE(RegisterWaitForSingleObject(&all.wait, one, callbacks::call, &all, INFINITE, 0));
        thread_group threads;
        std::atomic<bool> go{false};
        threads.start("signaler", [&] {
            while (!go.load()) std::this_thread::yield();
            EXPECT_TRUE(signal(one));
        });
        go.store(true);
        for (int spin = i % 50; spin != 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        BOOL ended = TRUE;
        switch (form) {
            case 0: ended = UnregisterWait(all.wait); break;
            case 1:
                (void)UnregisterWaitEx(all.wait, done.get());
                EXPECT_EQ(WaitForSingleObject(done.get(), INFINITE), WAIT_OBJECT_0);
                break;
            default: EXPECT_TRUE(UnregisterWaitEx(all.wait, INVALID_HANDLE_VALUE));
        }
        threads.join();
        if (!ended) {
            EXPECT_EQ(WaitForSingleObject(all.told, INFINITE), WAIT_OBJECT_0) << "a callback was to come";
        }
        const bool is_there = WaitForSingleObject(one, 0) == WAIT_OBJECT_0;
        EXPECT_EQ(all.signaled + (is_there ? 1 : 0), 1) << "form " << form;
        EXPECT_EQ(WaitForSingleObject(one, 0), WAIT_TIMEOUT);
        EXPECT_TRUE(CloseHandle(one));
    }
}

TEST(win32_registered_wait, LosesNoSignalOfAnEventThatRacesWithUnregistering) {
    for (int form = 0; form != 3; ++form) {
        expect_nothing_lost(
            form, [] { return CreateEvent(nullptr, FALSE, FALSE, nullptr); },
            [](HANDLE one) { return SetEvent(one); });
    }
}

// The trap: the wait gives its permit back when another release has filled the semaphore.
TEST(win32_registered_wait, LosesNoPermitThatRacesWithUnregistering) {
    for (int form = 0; form != 3; ++form) {
        expect_nothing_lost(
            form, [] { return CreateSemaphore(nullptr, 0, 1, nullptr); },
            [](HANDLE one) { return ReleaseSemaphore(one, 1, nullptr); });
    }
}

}  // namespace
