// SPDX-License-Identifier: Apache-2.0
// GetTickCount, QueryPerformanceCounter, GetCurrentProcessId, SwitchToThread.
#include "system.hpp"

#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace {

using namespace win32;

// A tick of GetTickCount is up to 16 ms on Windows.
TEST(Clock, TicksAreMillisecondsThatNeverGoBack) {
    ULONGLONG ticks = 0;
    DWORD short_ticks = 0;
    const auto passed = time_of([&] {
        const ULONGLONG begin = GetTickCount64();
        const DWORD short_begin = GetTickCount();
        Sleep(50);
        ticks = GetTickCount64() - begin;
        short_ticks = GetTickCount() - short_begin;
    });
    EXPECT_GE(ticks, 50u - 16u);
    EXPECT_GE(short_ticks, 50u - 16u);
    const auto at_most =
        static_cast<ULONGLONG>(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()) + 17;
    EXPECT_LE(ticks, at_most);
    EXPECT_LE(short_ticks, at_most);
}

TEST(Clock, TheShortTicksAreTheLowHalfOfTheLongOnes) {
    const DWORD before = static_cast<DWORD>(GetTickCount64());
    const DWORD between = GetTickCount();
    const DWORD after = static_cast<DWORD>(GetTickCount64());
    EXPECT_LE(between - before, after - before);
}

TEST(Clock, TheCounterCountsWithItsFrequency) {
    LARGE_INTEGER frequency{}, begin{}, end{};
    ASSERT_TRUE(works(QueryPerformanceFrequency, &frequency));
    ASSERT_GT(frequency.QuadPart, 0);
    ASSERT_TRUE(works(QueryPerformanceCounter, &begin));
    Sleep(50);
    ASSERT_TRUE(works(QueryPerformanceCounter, &end));
    const LONGLONG milliseconds = (end.QuadPart - begin.QuadPart) * 1000 / frequency.QuadPart;
    EXPECT_GE(milliseconds, 49);
    EXPECT_LE(milliseconds, 10'000);
}

TEST(Process, HasOneNumber) {
    const DWORD id = GetCurrentProcessId();
    EXPECT_NE(id, 0u);
    elsewhere([&] { EXPECT_EQ(GetCurrentProcessId(), id); });
#if !defined(_WIN32)
    EXPECT_EQ(id, static_cast<DWORD>(getpid()));
#endif
}

TEST(Thread, SwitchesToAnother) {
    const BOOL switched = SwitchToThread();
    EXPECT_TRUE(switched == TRUE || (!over_tocsin && switched == FALSE));
}

}  // namespace
