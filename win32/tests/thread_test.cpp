// SPDX-License-Identifier: Apache-2.0
// CreateThread, _beginthreadex, exit codes, suspension.
#include "system.hpp"

#include <array>
#include <atomic>

namespace {

using namespace win32;

DWORD WINAPI return_argument(void* argument) {
    return static_cast<DWORD>(reinterpret_cast<std::uintptr_t>(argument));
}
void* number(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

handle start(LPTHREAD_START_ROUTINE function, void* argument, DWORD flags = 0) {
    return handle(CreateThread(nullptr, 0, function, argument, flags, nullptr));
}
DWORD code_of(HANDLE thread) {
    DWORD code = 7;
    EXPECT_TRUE(works(GetExitCodeThread, thread, &code));
    return code;
}

DWORD WINAPI wait_and_return_nine(void* event) {
    EXPECT_EQ(wait(event), WAIT_OBJECT_0);
    return 9;
}

TEST(Thread, HasTheCodeThatItReturns) {
    for (const std::uintptr_t code :
         {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{300}, std::uintptr_t{0xFFFF'FFFF}}) {
        const handle thread = start(return_argument, number(code));
        EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
        EXPECT_EQ(code_of(thread), code);
    }
}

TEST(Thread, IsStillActiveWhileItRuns) {
    const handle end = automatic();
    const handle thread = start(wait_and_return_nine, end);
    EXPECT_EQ(code_of(thread), DWORD{STILL_ACTIVE});
    EXPECT_EQ(look(thread), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, end));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(thread), 9u);
}

// So a program asks by waiting, never by this number.
TEST(Thread, MayReturnTheCodeOfOneThatIsStillActive) {
    const handle thread = start(return_argument, number(STILL_ACTIVE));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(thread), DWORD{STILL_ACTIVE});
}

TEST(Thread, StaysSetForEver) {
    const handle thread = start(return_argument, nullptr);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(wait_any({thread, thread}), WAIT_OBJECT_0);
}

TEST(Thread, EndsByExitThread) {
    const handle thread = start([](void*) -> DWORD { ExitThread(21); }, nullptr);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(thread), 21u);
}

unsigned __stdcall return_for_begin(void* argument) { return return_argument(argument); }
unsigned __stdcall end_for_begin(void*) { _endthreadex(22); }

TEST(Thread, IsMadeByBeginThreadEx) {
    unsigned id = 0;
    const handle returns_it(
        reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, return_for_begin, number(20), 0, &id)));
    const handle ends(
        reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, end_for_begin, nullptr, 0, nullptr)));
    EXPECT_EQ(wait_all({returns_it, ends}), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(returns_it), 20u);
    EXPECT_EQ(code_of(ends), 22u);
    EXPECT_NE(id, 0u);
}

TEST(Thread, IsBegunSuspendedByBeginThreadEx) {
    const handle thread(reinterpret_cast<HANDLE>(
        _beginthreadex(nullptr, 0, return_for_begin, number(5), CREATE_SUSPENDED, nullptr)));
    EXPECT_EQ(WaitForSingleObject(thread, 10), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(ResumeThread(thread), 1u);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(thread), 5u);
}

DWORD WINAPI store_own_id(void* id) {
    static_cast<std::atomic<DWORD>*>(id)->store(GetCurrentThreadId());
    return 0;
}

TEST(Thread, HasTheIdThatItSees) {
    std::atomic<DWORD> seen{0};
    DWORD id = 0;
    const handle thread(CreateThread(nullptr, 0, store_own_id, &seen, 0, &id));
    EXPECT_EQ(GetThreadId(thread), id);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(seen.load(), id);
    EXPECT_NE(id, GetCurrentThreadId());
    EXPECT_EQ(GetThreadId(GetCurrentThread()), GetCurrentThreadId());
}

DWORD WINAPI mark(void* flag) {
    static_cast<std::atomic<bool>*>(flag)->store(true);
    return 1;
}

TEST(Thread, DoesNothingUntilItIsResumed) {
    std::atomic<bool> ran{false};
    const handle thread = start(mark, &ran, CREATE_SUSPENDED);
    EXPECT_EQ(WaitForSingleObject(thread, 20), DWORD{WAIT_TIMEOUT});
    EXPECT_FALSE(ran.load());
    EXPECT_EQ(code_of(thread), DWORD{STILL_ACTIVE});
    EXPECT_EQ(ResumeThread(thread), 1u);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_TRUE(ran.load());
}

TEST(Thread, ThatRunsHasNothingToResume) {
    const handle end = automatic();
    const handle thread = start(wait_and_return_nine, end);
    EXPECT_EQ(ResumeThread(thread), 0u);
    EXPECT_TRUE(works(SetEvent, end));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
}

TEST(Thread, ThatHasNotBegunCountsItsSuspensions) {
    std::atomic<bool> ran{false};
    const handle thread = start(mark, &ran, CREATE_SUSPENDED);
    EXPECT_EQ(SuspendThread(thread), 1u);
    EXPECT_EQ(SuspendThread(thread), 2u);
    EXPECT_EQ(ResumeThread(thread), 3u);
    EXPECT_EQ(ResumeThread(thread), 2u);
    EXPECT_EQ(WaitForSingleObject(thread, 10), DWORD{WAIT_TIMEOUT});
    EXPECT_FALSE(ran.load());
    EXPECT_EQ(ResumeThread(thread), 1u);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_TRUE(ran.load());
}

TEST(Thread, ThatHasNotBegunIsSuspendedAtMost127Times) {
    std::atomic<bool> ran{false};
    const handle thread = start(mark, &ran, CREATE_SUSPENDED);
    for (DWORD i = 1; i != 127; ++i) EXPECT_EQ(SuspendThread(thread), i);
    EXPECT_TRUE(fails(156, SuspendThread, thread));  // ERROR_SIGNAL_REFUSED
    for (DWORD i = 127; i != 0; --i) EXPECT_EQ(ResumeThread(thread), i);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
}

// That the error is this one is likely.
TEST(Thread, ThatHasEndedIsNotSuspended) {
    std::atomic<bool> ran{false};
    const handle thread = start(mark, &ran);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_TRUE(fails(ERROR_ACCESS_DENIED, SuspendThread, thread));
    EXPECT_EQ(ResumeThread(thread), 0u);
}

// Observed.
TEST(Thread, ThatIsSuspendedCanBeTerminated) {
    std::atomic<bool> ran{false};
    const handle thread = start(mark, &ran, CREATE_SUSPENDED);
    EXPECT_TRUE(works(TerminateThread, thread, 77u));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(thread), 77u);
    EXPECT_FALSE(ran.load());
}

// Over tocsin: nothing can stop a thread safely.
TEST(Thread, ThatRunsIsNotTerminatedNorSuspended) {
    if (!over_tocsin) GTEST_SKIP() << "Windows would";
    const handle end = automatic();
    const handle thread = start(wait_and_return_nine, end);
    EXPECT_TRUE(fails(ERROR_NOT_SUPPORTED, TerminateThread, thread, 1u));
    EXPECT_TRUE(fails(ERROR_NOT_SUPPORTED, SuspendThread, thread));
    EXPECT_TRUE(works(SetEvent, end));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_EQ(code_of(thread), 9u);
}

TEST(Thread, RunsOnWithoutItsHandle) {
    struct {
        handle end = automatic(), ended = automatic(), itself;
    } shared;
    start(
        [](void* with) -> DWORD {
            auto& objects = *static_cast<decltype(shared)*>(with);
            EXPECT_EQ(wait(objects.end), WAIT_OBJECT_0);
            objects.itself = duplicate(GetCurrentThread());
            EXPECT_TRUE(works(SetEvent, objects.ended));
            return 0;
        },
        &shared);  // and closed at once
    EXPECT_EQ(look(shared.ended), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(SignalObjectAndWait(shared.end, shared.ended, INFINITE, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(wait(shared.itself), WAIT_OBJECT_0);
}

TEST(Thread, ReleasesEveryoneWhoWaitsForIt) {
    const handle end = automatic();
    const handle thread = start(wait_and_return_nine, end);
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) { EXPECT_EQ(wait(thread), WAIT_OBJECT_0); });
    until_all_wait(threads);
    EXPECT_TRUE(works(SetEvent, end));
}

TEST(Thread, HasWrittenWhatItWroteWhenTheWaitEnds) {
    for (int i = 0; i < few(200, 20); ++i) {
        int value = 0;
        const handle thread = start(
            [](void* written) -> DWORD {
                *static_cast<int*>(written) = 42;
                return 0;
            },
            &value);
        ASSERT_EQ(wait(thread), WAIT_OBJECT_0);
        ASSERT_EQ(value, 42);
    }
}

TEST(Thread, NotMadeHereHasAHandleTooThatEndsWithIt) {
    handle thread;
    const handle end = automatic(), ready = automatic();
    thread_group threads;
    threads.start([&] {
        thread = duplicate(GetCurrentThread());
        EXPECT_EQ(SignalObjectAndWait(ready, end, INFINITE, FALSE), WAIT_OBJECT_0);
    });
    EXPECT_EQ(wait(ready), WAIT_OBJECT_0);
    EXPECT_EQ(look(thread), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(code_of(thread), DWORD{STILL_ACTIVE});
    EXPECT_TRUE(works(SetEvent, end));
    threads.join();
    EXPECT_EQ(WaitForSingleObject(thread, 10'000), WAIT_OBJECT_0);
}

TEST(Thread, IsOneOfSixtyFourThatAWaitForAllWaitsFor) {
    const support::small_stacks small;
    std::vector<handle> threads;
    std::vector<HANDLE> objects;
    for (std::uintptr_t i = 0; i < MAXIMUM_WAIT_OBJECTS; ++i) {
        threads.push_back(start(return_argument, number(i)));
        objects.push_back(threads.back());
    }
    EXPECT_EQ(wait_all(objects), WAIT_OBJECT_0);
    for (DWORD i = 0; i < MAXIMUM_WAIT_OBJECTS; ++i) EXPECT_EQ(code_of(objects[i]), i);
}

TEST(Thread, TakesAStackSize) {
    const handle thread(CreateThread(nullptr, 1 << 20, return_argument, number(3),
                                     STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    const handle small(CreateThread(nullptr, 1, return_argument, number(3), 0, nullptr));
    EXPECT_EQ(wait(small), WAIT_OBJECT_0);
}

// Writes to so many bytes of its stack, from the newest page to the oldest.
DWORD WINAPI use_stack(void* bytes) {
    constexpr std::uintptr_t page = 4096;
    volatile char here[page];
    here[0] = 1;
    const auto left = reinterpret_cast<std::uintptr_t>(bytes);
    if (left > page) use_stack(reinterpret_cast<void*>(left - page));
    return here[0];
}

// Without the flag, the size says only how much of the stack has memory from the start.
TEST(Thread, HasAtLeastTheUsualStackUnlessTheSizeIsAReservation) {
    const handle committed(CreateThread(nullptr, 4096, use_stack, number(512 * 1024), 0, nullptr));
    EXPECT_EQ(wait(committed), WAIT_OBJECT_0);
    const auto reserve = STACK_SIZE_PARAM_IS_A_RESERVATION;
    const handle reserved(CreateThread(nullptr, 4096, use_stack, number(16 * 1024), reserve, nullptr));
    EXPECT_EQ(wait(reserved), WAIT_OBJECT_0);
    const handle large(CreateThread(nullptr, 16 << 20, use_stack, number(12 << 20), 0, nullptr));
    EXPECT_EQ(wait(large), WAIT_OBJECT_0);
}

}  // namespace
