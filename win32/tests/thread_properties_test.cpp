// SPDX-License-Identifier: Apache-2.0
// OpenThread, priorities, affinity, descriptions and times of threads; the machine; dates; waits for messages.
#include "system.hpp"

#include <atomic>
#include <cstring>

namespace {

using namespace win32;

struct sleeper {
    handle end = automatic();
    DWORD id = 0;
    handle thread;
    explicit sleeper(DWORD flags = 0)
        : thread(CreateThread(
              nullptr, 0,
              [](void* event) -> DWORD {
                  EXPECT_EQ(win32::wait(event), WAIT_OBJECT_0);
                  return 7;
              },
              end, flags, &id)) {}
    ~sleeper() {
        EXPECT_TRUE(works(SetEvent, end));
        EXPECT_EQ(win32::wait(thread), WAIT_OBJECT_0);
    }
};

TEST(OpenThread, FindsAThreadByItsNumber) {
    const sleeper one;
    const handle found(OpenThread(SYNCHRONIZE | THREAD_QUERY_INFORMATION, FALSE, one.id));
    EXPECT_EQ(GetThreadId(found), one.id);
    EXPECT_EQ(GetProcessIdOfThread(found), GetCurrentProcessId());
    EXPECT_EQ(look(found), DWORD{WAIT_TIMEOUT});
    const handle own(OpenThread(THREAD_ALL_ACCESS, FALSE, GetCurrentThreadId()));
    EXPECT_EQ(GetThreadId(own), GetCurrentThreadId());
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, OpenThread, DWORD{THREAD_ALL_ACCESS}, FALSE, 0x7FFF'FFF0u));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, OpenThread, DWORD{THREAD_ALL_ACCESS}, FALSE, 0u));
}

TEST(OpenThread, DoesNotFindAThreadThatIsGone) {
    if (!over_tocsin) GTEST_SKIP() << "another thread may have the number";
    DWORD id = 0;
    {
        const sleeper one;
        id = one.id;
    }
    until("it is gone", [&] { return !handle(OpenThread(SYNCHRONIZE, FALSE, id)); });
}

#if defined(__linux__) || defined(_WIN32)
TEST(ThreadPriority, CanBeLowered) {
    EXPECT_EQ(GetThreadPriority(GetCurrentThread()), THREAD_PRIORITY_NORMAL);
    const sleeper one;
    for (const int priority : {THREAD_PRIORITY_BELOW_NORMAL, THREAD_PRIORITY_LOWEST, THREAD_PRIORITY_IDLE}) {
        EXPECT_TRUE(works(SetThreadPriority, one.thread, priority));
        EXPECT_EQ(GetThreadPriority(one.thread), priority);
    }
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, SetThreadPriority, one.thread, 99));
    const sleeper suspended(CREATE_SUSPENDED);
    EXPECT_TRUE(works(SetThreadPriority, suspended.thread, THREAD_PRIORITY_LOWEST));
    EXPECT_EQ(GetThreadPriority(suspended.thread), THREAD_PRIORITY_LOWEST);
    EXPECT_EQ(ResumeThread(suspended.thread), 1u);
    BOOL disabled = 7;
    EXPECT_TRUE(works(GetThreadPriorityBoost, one.thread, &disabled));
    EXPECT_EQ(disabled, FALSE);
    EXPECT_TRUE(works(SetThreadPriorityBoost, one.thread, TRUE));
    EXPECT_TRUE(works(GetThreadPriorityBoost, one.thread, &disabled));
    EXPECT_EQ(disabled, under_wine() ? FALSE : TRUE) << "Wine 8 keeps nothing";
}

TEST(ThreadAffinity, IsSetAndReturnsWhatItWas) {
    DWORD_PTR all = 0, system = 0;
    EXPECT_TRUE(works(GetProcessAffinityMask, GetCurrentProcess(), &all, &system));
    ASSERT_NE(all, 0u);
    EXPECT_EQ(all & system, all);
    const DWORD_PTR first = all & (~all + 1);
    elsewhere([&] {
        EXPECT_EQ(SetThreadAffinityMask(GetCurrentThread(), first), all);
        EXPECT_EQ(SetThreadAffinityMask(GetCurrentThread(), all), first);
        EXPECT_EQ(SetThreadAffinityMask(GetCurrentThread(), 0), 0u);
        EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
        if (under_wine()) return;  // Wine 8 reports the ideal processor of nobody
        GROUP_AFFINITY group{};
        EXPECT_TRUE(works(GetThreadGroupAffinity, GetCurrentThread(), &group));
        EXPECT_EQ(group.Mask, all);
    });
    EXPECT_LT(GetCurrentProcessorNumber(), 1024u);
}

TEST(ThreadTimes, GrowWhileAThreadWorks) {
    FILETIME created, ended, kernel, user, begin;
    GetSystemTimeAsFileTime(&begin);
    struct {
        handle busy = automatic(), end = automatic();
    } its;
    const handle thread(CreateThread(
        nullptr, 0,
        [](void* context) -> DWORD {
            auto& self = *static_cast<decltype(its)*>(context);
            FILETIME first, last, in_kernel, in_user;
            do {
                EXPECT_TRUE(works(GetThreadTimes, GetCurrentThread(), &first, &last, &in_kernel, &in_user));
            } while (in_user.dwLowDateTime + in_kernel.dwLowDateTime < 50'000);  // 5 ms
            EXPECT_TRUE(works(SetEvent, self.busy));
            EXPECT_EQ(win32::wait(self.end), WAIT_OBJECT_0);
            return 0;
        },
        &its, 0, nullptr));
    EXPECT_EQ(wait(its.busy), WAIT_OBJECT_0);
    EXPECT_TRUE(works(GetThreadTimes, thread, &created, &ended, &kernel, &user));
    if (over_tocsin) {
        EXPECT_GE(CompareFileTime(&created, &begin), 0);
    }
    EXPECT_TRUE(works(SetEvent, its.end));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_TRUE(works(GetThreadTimes, thread, &created, &ended, &kernel, &user));
    EXPECT_GE(user.dwLowDateTime + kernel.dwLowDateTime, over_tocsin ? 50'000u : 0u);
    EXPECT_EQ(CompareFileTime(&ended, &created), 1);
}
#endif

#if !defined(_WIN32)
TEST(ThreadDescription, IsKept) {
    const sleeper one;
    PWSTR text = nullptr;
    EXPECT_EQ(GetThreadDescription(one.thread, &text), S_OK);
    EXPECT_EQ(std::u16string(text), u"");
    LocalFree(text);
    EXPECT_EQ(SetThreadDescription(one.thread, u"a thread with a long description \u00E4"), S_OK);
    EXPECT_EQ(GetThreadDescription(one.thread, &text), S_OK);
    EXPECT_EQ(std::u16string(text), u"a thread with a long description \u00E4");
    LocalFree(text);
    EXPECT_TRUE(FAILED(SetThreadDescription(closed(), u"nobody")));
}
#endif

TEST(System, HasProcessors) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    EXPECT_GE(info.dwNumberOfProcessors, 1u);
    EXPECT_EQ(info.dwPageSize % 4096, 0u);
    EXPECT_NE(info.dwActiveProcessorMask, 0u);
    EXPECT_EQ(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) >= 1, true);
}

TEST(Dates, AreTheSameBothWays) {
    const SYSTEMTIME dates[] = {{1601, 1, 1, 1, 0, 0, 0, 0},
                                {1970, 1, 4, 1, 0, 0, 0, 0},
                                {2000, 2, 2, 29, 23, 59, 59, 999},
                                {2026, 11, 6, 28, 9, 4, 29, 1}};
    const ULONGLONG ticks[] = {0, 116'444'736'000'000'000, 125'963'423'999'990'000, 134'403'302'690'010'000};
    for (std::size_t i = 0; i != 4; ++i) {
        FILETIME time;
        EXPECT_TRUE(works(SystemTimeToFileTime, &dates[i], &time));
        ULARGE_INTEGER both;
        both.LowPart = time.dwLowDateTime;
        both.HighPart = time.dwHighDateTime;
        EXPECT_EQ(both.QuadPart, ticks[i]) << i;
        SYSTEMTIME back;
        EXPECT_TRUE(works(FileTimeToSystemTime, &time, &back));
        EXPECT_EQ(std::memcmp(&back, &dates[i], sizeof back), 0) << i;
    }
    if (under_wine()) return;  // Wine 8 takes the 29th of February 2001
    const SYSTEMTIME wrong{2001, 2, 0, 29, 0, 0, 0, 0};
    FILETIME time{};
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, SystemTimeToFileTime, &wrong, &time));
}

TEST(MsgWait, WaitsForTheHandles) {
#if !defined(_WIN32)
    const handle event = automatic(true), other = automatic();
    const HANDLE both[] = {other, event};
    EXPECT_EQ(MsgWaitForMultipleObjects(2, both, FALSE, 1000, QS_ALLINPUT), WAIT_OBJECT_0 + 1);
    EXPECT_EQ(MsgWaitForMultipleObjects(2, both, FALSE, 0, QS_ALLINPUT), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(MsgWaitForMultipleObjects(0, nullptr, FALSE, 1, QS_ALLINPUT), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(MsgWaitForMultipleObjectsEx(1, &both[1], 1, QS_ALLINPUT, MWMO_WAITALL), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(MsgWaitForMultipleObjectsEx(1, &both[1], 1000, QS_ALLINPUT, MWMO_ALERTABLE), WAIT_OBJECT_0);
    EXPECT_EQ(MsgWaitForMultipleObjects(64, both, FALSE, 0, QS_ALLINPUT), WAIT_FAILED);
#endif
}

}  // namespace
