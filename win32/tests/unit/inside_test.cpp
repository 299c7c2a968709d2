// SPDX-License-Identifier: Apache-2.0
// What a wait does if it took its object and must give it back. Through the calls alone, that happens only in a race.
// And what a wait does for a mutex that its owner can't own once more. Through the calls alone, that takes minutes.
// And what an operation of the library beneath finds.
#include "support.hpp"
#include "wait.hpp"

#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>

namespace {

using namespace win32_test;
using namespace tocsin::win32;

// The trap: a wait takes the only permit, another thread releases one more, and the wait gives its permit back. Neither
// is lost, although they are more than the maximum for a while.
TEST(win32_inside, APermitThatIsGivenBackIsNeverLost) {
    for (const LONG max : {LONG{1}, LONG{0x7FFF'FFFF}}) {
        const HANDLE semaphore = CreateSemaphore(nullptr, max, max, nullptr);
        {
            const handle_use use(semaphore);
            ASSERT_TRUE(use && try_take(*use));
            give_back(*use);
            ASSERT_TRUE(try_take(*use)) << "the permit came back";
            (void)begin_taken(*use, nullptr);
            EXPECT_TRUE(ReleaseSemaphore(semaphore, 1, nullptr));
            give_back(*use);
        }
        EXPECT_FALSE(ReleaseSemaphore(semaphore, 1, nullptr));
        EXPECT_EQ(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
        EXPECT_FALSE(ReleaseSemaphore(semaphore, 1, nullptr));
        EXPECT_EQ(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
        LONG before = -1;
        EXPECT_TRUE(ReleaseSemaphore(semaphore, 1, &before));
        EXPECT_EQ(before, max - 1);
        EXPECT_TRUE(CloseHandle(semaphore));
    }
}

TEST(win32_inside, AMutexThatIsGivenBackIsAbandonedAsBefore) {
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    thread_group threads;
    threads.start("owner", [&] { EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_OBJECT_0); });
    threads.join();
    {
        const handle_use use(mutex);
        ASSERT_TRUE(use && try_take(*use));
        give_back(*use);
        ASSERT_TRUE(try_take(*use));
        thread& self = current_thread();
        const DWORD how = begin_taken(*use, &self);
        EXPECT_EQ(how, WAIT_ABANDONED_0);
        give_back_begun(*use, &self, how);
    }
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_ABANDONED_0);
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0) << "the mark is gone once somebody has seen it";
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST(win32_inside, AMutexThatIsOwnedAsOftenAsPossibleIsRefusedAndNothingIsTaken) {
    const HANDLE mutex = CreateMutex(nullptr, TRUE, nullptr);
    {
        const handle_use use(mutex);
        static_cast<mutex_object&>(*use).state.go_deeper(mutex_state::max - 1);
    }
    const event token(false, true);
    const event other(false, false);
    const HANDLE both[]{token.get(), mutex};
    const HANDLE reversed[]{mutex, token.get()};
    const auto expect_refused = [](DWORD result) {
        EXPECT_EQ(result, WAIT_FAILED);
        EXPECT_EQ(GetLastError(), ERROR_MUTANT_LIMIT_EXCEEDED);
        SetLastError(0);
    };
    for (const DWORD time : {DWORD{0}, INFINITE}) {
        expect_refused(WaitForSingleObject(mutex, time));
        expect_refused(WaitForMultipleObjects(2, reversed, FALSE, time));
        expect_refused(WaitForMultipleObjects(2, both, TRUE, time));
        expect_refused(SignalObjectAndWait(other.get(), mutex, time, FALSE));
        EXPECT_EQ(WaitForSingleObject(other.get(), 0), WAIT_OBJECT_0) << "the signal stands";
    }
    EXPECT_EQ(WaitForMultipleObjects(2, both, FALSE, 0), WAIT_OBJECT_0)
        << "the token was left, and comes first";
    expect_refused(WaitForMultipleObjects(2, both, FALSE, INFINITE));
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
    expect_refused(WaitForSingleObject(mutex, 0));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST(win32_inside, ACallbackRunsWhileAnOperationsFunctionWaitsForIt) {
    const event one(false, false);
    const event called(false, false);
    HANDLE wait = nullptr;
    ASSERT_TRUE(RegisterWaitForSingleObject(
        &wait, one.get(), [](void* tells, BOOLEAN) { SetEvent(tells); }, called.get(), INFINITE,
        WT_EXECUTEONLYONCE));
    DWORD how = WAIT_FAILED;
    tocsin::auto_reset_event go;
    auto operation = tocsin::any_operation(
        [&](tocsin::any_result) noexcept {
            SetEvent(one.get());
            how = WaitForSingleObject(called.get(), 10'000);
        },
        go);
    operation.start();
    go.set();
    EXPECT_EQ(how, WAIT_OBJECT_0);
    EXPECT_TRUE(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
}

}  // namespace
