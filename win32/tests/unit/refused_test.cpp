// SPDX-License-Identifier: Apache-2.0
// Arguments that are refused here. Windows refuses them differently, or takes them.
#include "support.hpp"

namespace {

using namespace win32_test;

TEST(win32_refused, ANullArrayOfOneHandle) {
    for (const BOOL all : {FALSE, TRUE}) {
        SetLastError(0);
        EXPECT_EQ(WaitForMultipleObjects(1, nullptr, all, 0), WAIT_FAILED);
        EXPECT_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    }
}

TEST(win32_refused, FlagsThatNoCreateFunctionKnows) {
    const auto expect_refused = [](auto create) {
        SetLastError(0);
        EXPECT_EQ(create(), nullptr);
        EXPECT_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    };
    expect_refused([] { return CreateEventExA(nullptr, nullptr, 4, EVENT_ALL_ACCESS); });
    expect_refused([] { return CreateMutexExA(nullptr, nullptr, 2, MUTEX_ALL_ACCESS); });
    expect_refused([] { return CreateSemaphoreExA(nullptr, 0, 1, nullptr, 1, SEMAPHORE_ALL_ACCESS); });
    expect_refused([] { return CreateWaitableTimerExA(nullptr, nullptr, 4, TIMER_ALL_ACCESS); });
}

TEST(win32_refused, ADuplicateOfTheProcess) {
    HANDLE copy = nullptr;
    SetLastError(0);
    EXPECT_FALSE(DuplicateHandle(GetCurrentProcess(), GetCurrentProcess(), GetCurrentProcess(), &copy, 0,
                                 FALSE, DUPLICATE_SAME_ACCESS));
    EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED);
    EXPECT_EQ(copy, nullptr);
}

}  // namespace
