// SPDX-License-Identifier: Apache-2.0
// Handles: of nothing, closed, duplicated, of the wrong kind, or numbers that never were handles.
#include "system.hpp"

#include <array>
#include <atomic>

namespace {

using namespace win32;

// Every call that takes a handle fails with ERROR_INVALID_HANDLE, and nothing else happens.
void expect_refused_everywhere(HANDLE none) {
    const handle set = automatic(true);
    LARGE_INTEGER due{};
    LONG previous = -7;
    DWORD code = 7;
    HANDLE copy = &due;
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetEvent, none));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ResetEvent, none));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, PulseEvent, none));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ReleaseSemaphore, none, 1, &previous));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ReleaseMutex, none));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetWaitableTimer, none, &due, 0, nullptr, nullptr, FALSE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CancelWaitableTimer, none));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, GetExitCodeThread, none, &code));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ResumeThread, none));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, none, 0u));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObjectEx, none, 0u, FALSE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, none, INFINITE));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, none, set, 0u, FALSE));
    const handle unset = automatic();
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, unset, none, 0u, FALSE));
    EXPECT_EQ(look(unset), DWORD{WAIT_TIMEOUT}) << "nothing is signalled";
    for (const BOOL all : {FALSE, TRUE}) {
        const std::array<HANDLE, 2> behind{set, none}, before{none, set};
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, 2u, behind.data(), all, 0u));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, 2u, before.data(), all, INFINITE));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjectsEx, 2u, behind.data(), all, 0u, FALSE));
    }
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DuplicateHandle, GetCurrentProcess(), none, GetCurrentProcess(),
                      &copy, 0u, FALSE, DWORD{DUPLICATE_SAME_ACCESS}));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CloseHandle, none));
    EXPECT_EQ(look(set), WAIT_OBJECT_0) << "no wait that failed has taken it";
    EXPECT_EQ(previous, -7);
    EXPECT_EQ(code, 7u);
}

// A handle of Windows has 32 significant bits, and one of tocsin has as many as a pointer.
TEST(Handle, WithOtherHighBitsIsNone) {
    const handle event = manual(true);
    const auto value = reinterpret_cast<std::uintptr_t>(HANDLE(event));
    if constexpr (sizeof(void*) == 8) {
        for (int bit = 32; bit != 64; ++bit) {
            const auto other = reinterpret_cast<HANDLE>(value ^ std::uintptr_t{1} << bit);
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, other, 0u)) << bit;
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetEvent, other)) << bit;
        }
        for (const std::uintptr_t high : {std::uintptr_t{0xDEAD'BEEF}, std::uintptr_t{0xFFFF'FFFF}}) {
            const auto other = reinterpret_cast<HANDLE>(value ^ high << 32);
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, other, 0u));
        }
        const auto narrow = reinterpret_cast<HANDLE>(std::uintptr_t{0xFFFF'FFFF});
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, 1u, &narrow, FALSE, 0u));
    }
}

TEST(Handle, NullIsRefusedByEveryCall) { expect_refused_everywhere(nullptr); }

TEST(Handle, ClosedIsRefusedByEveryCall) {
    const handle keeps_the_table_from_being_empty = automatic();
    std::vector<handle> others;
    HANDLE gone = nullptr;
    {
        handle last = automatic();
        gone = last;
        for (int i = 0; i < 4; ++i) others.push_back(automatic());
    }
    // Windows hands the numbers of closed handles out again, so each call would see another's object here.
    if (over_tocsin) expect_refused_everywhere(gone);
    const HANDLE fresh_and_closed = closed();
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, fresh_and_closed, 0u));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetEvent, fresh_and_closed));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CloseHandle, fresh_and_closed));
}

TEST(Handle, NumbersThatNeverWereHandlesAreRefusedByEveryCall) {
    int local = 0;
    for (const std::uintptr_t number :
         {std::uintptr_t{0x7fff'fff0}, std::uintptr_t{0x1234'5678}, std::uintptr_t{1},
          std::uintptr_t{0x00ff'fff1}, reinterpret_cast<std::uintptr_t>(&local)}) {
        SCOPED_TRACE(number);
        expect_refused_everywhere(reinterpret_cast<HANDLE>(number));
    }
}

// Over tocsin a handle has a generation, so that a stale one never names the next object in its place. Windows gives no
// such promise.
TEST(Handle, StaleIsNoHandleOfTheNextObject) {
    if (!over_tocsin) GTEST_SKIP() << "Windows hands a closed handle's number out again";
    const HANDLE stale = closed();
    for (int i = 0; i < 1000; ++i) {
        const handle next = automatic(true);
        ASSERT_NE(HANDLE(next), stale);
        ASSERT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, stale, 0u));
    }
}

TEST(Handle, OfThisProcessIsMinusOneAndOfThisThreadMinusTwo) {
    EXPECT_EQ(reinterpret_cast<std::intptr_t>(GetCurrentProcess()), -1);
    EXPECT_EQ(GetCurrentProcess(), INVALID_HANDLE_VALUE);
    EXPECT_EQ(reinterpret_cast<std::intptr_t>(GetCurrentThread()), -2);
}

TEST(Handle, OfThisProcessAndThisThreadCanBeWaitedForAlone) {
    for (const HANDLE pseudo : {GetCurrentProcess(), GetCurrentThread()}) {
        EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForSingleObject, pseudo, 0u));
        EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForSingleObject, pseudo, 5u));
        EXPECT_TRUE(works(CloseHandle, pseudo));  // likely: does nothing
        EXPECT_EQ(look(pseudo), DWORD{WAIT_TIMEOUT});
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetEvent, pseudo));
    }
}

// Observed. Wine 8 takes them, as it does alone.
TEST(Handle, OfThisProcessAndThisThreadAreRefusedAmongSeveral) {
    if (under_wine()) GTEST_SKIP() << "Wine takes them";
    const handle set = automatic(true);
    for (const HANDLE pseudo : {GetCurrentProcess(), GetCurrentThread()}) {
        for (const BOOL all : {FALSE, TRUE}) {
            const std::array<HANDLE, 2> objects{set, pseudo};
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, 2u, objects.data(), all, 0u));
        }
    }
    EXPECT_EQ(look(set), WAIT_OBJECT_0);
}

TEST(Duplicate, OfAThreadsPseudoHandleIsARealOne) {
    handle real;
    std::thread thread([&] { real = duplicate(GetCurrentThread()); });
    thread.join();
    EXPECT_NE(HANDLE(real), GetCurrentThread());
    EXPECT_EQ(wait(real), WAIT_OBJECT_0);
}

TEST(Duplicate, KeepsTheObjectWhenTheSourceIsClosed) {
    handle source = automatic();
    const handle copy = duplicate(source);
    EXPECT_TRUE(works(SetEvent, source));
    source.close();
    EXPECT_EQ(look(copy), WAIT_OBJECT_0);
}

TEST(Duplicate, ClosesTheSourceIfAskedTo) {
    handle source = automatic(true);
    const HANDLE before = source.release();
    HANDLE copy = nullptr;
    EXPECT_TRUE(works(DuplicateHandle, GetCurrentProcess(), before, GetCurrentProcess(), &copy, 0u, FALSE,
                      DWORD{DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE}));
    const handle owned(copy);
    if (copy != before) {  // Windows may hand the number out again at once
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, before, 0u));
    }
    EXPECT_EQ(look(copy), WAIT_OBJECT_0);
}

TEST(Duplicate, OnlyClosesTheSourceIfThereIsNowhereToPutTheCopy) {
    const HANDLE source = automatic().release();
    // Wine 8 closes it and says that it could not.
    EXPECT_TRUE(
        DuplicateHandle(GetCurrentProcess(), source, nullptr, nullptr, 0, FALSE, DUPLICATE_CLOSE_SOURCE) ||
        under_wine());
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, source, 0u));
}

TEST(Duplicate, RefusesWhatIsNoProcess) {
    const handle source = automatic();
    HANDLE copy = nullptr;
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DuplicateHandle, nullptr, source, GetCurrentProcess(), &copy, 0u,
                      FALSE, DWORD{DUPLICATE_SAME_ACCESS}));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, DuplicateHandle, source, source, GetCurrentProcess(), &copy, 0u,
                      FALSE, DWORD{DUPLICATE_SAME_ACCESS}));
}

// The trap of pevents: whoever wakes may close the handle while SetEvent is still running.
TEST(Handle, MayBeClosedByWhoeverWakesWhileTheSetterIsInside) {
    for (int i = 0; i < few(300, 30); ++i) {
        const HANDLE event = automatic().release();
        thread_group threads;
        threads.start([event] {
            EXPECT_EQ(wait(event), WAIT_OBJECT_0);
            EXPECT_TRUE(works(CloseHandle, event));
        });
        SetEvent(event);
    }
}

// Calls that race with CloseHandle work or fail with ERROR_INVALID_HANDLE; nothing else happens.
TEST(Handle, MayBeClosedWhileOthersCall) {
    for (int i = 0; i < few(200, 20); ++i) {
        const HANDLE event = manual().release();
        support::starting_line line(4);
        thread_group threads;
        threads.start_many(3, "caller", [&](int) {
            line.arrive();
            SetLastError(untouched);
            if (!SetEvent(event)) {
                EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
            }
            if (look(event) == WAIT_FAILED) {
                EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
            }
        });
        line.arrive();
        EXPECT_TRUE(works(CloseHandle, event));
    }
}

TEST(LastError, IsOfTheThread) {
    std::atomic<int> step{0};
    const auto until_step = [&](int wanted) {  // calls nothing
        while (step.load() != wanted) {
        }
    };
    DWORD other_at_first = 7, other_at_last = 7, own = 7;
    std::thread other([&] {
        other_at_first = GetLastError();
        step.store(1);
        until_step(2);
        SetEvent(nullptr);
        other_at_last = GetLastError();
        step.store(3);
    });
    until_step(1);
    SetLastError(untouched);
    step.store(2);
    until_step(3);
    own = GetLastError();
    other.join();
    EXPECT_EQ(other_at_first, 0u);
    EXPECT_EQ(other_at_last, DWORD{ERROR_INVALID_HANDLE});
    EXPECT_EQ(own, untouched);
}

// Observed for objects with a name, likely for those without.
TEST(LastError, IsZeroAfterANewObjectIsCreated) {
    const auto expect_zero = [](auto create) {
        SetLastError(untouched);
        const handle object(create());
        EXPECT_EQ(GetLastError(), 0u);
        EXPECT_NE(HANDLE(object), nullptr);
    };
    expect_zero([] { return CreateEventA(nullptr, TRUE, TRUE, nullptr); });
    expect_zero([] { return CreateEventW(nullptr, TRUE, TRUE, L"tocsin new event"); });
    expect_zero([] { return CreateSemaphoreA(nullptr, 0, 1, nullptr); });
    expect_zero([] { return CreateSemaphoreW(nullptr, 0, 1, L"tocsin new semaphore"); });
    expect_zero([] { return CreateMutexA(nullptr, FALSE, nullptr); });
    expect_zero([] { return CreateMutexW(nullptr, FALSE, L"tocsin new mutex"); });
    expect_zero([] { return CreateWaitableTimerA(nullptr, FALSE, nullptr); });
    expect_zero([] { return CreateWaitableTimerW(nullptr, FALSE, L"tocsin new timer"); });
}

}  // namespace
