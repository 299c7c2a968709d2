// SPDX-License-Identifier: Apache-2.0
// A call that finds no memory fails with ERROR_NOT_ENOUGH_MEMORY, and has no other effect.
#include "next_allocation.hpp"
#include "support.hpp"

#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include <pthread.h>

namespace {

using namespace win32_test;
using namespace std::chrono_literals;

constexpr long endless = -1;
thread_local long memory_left = endless;  // for so many allocations
thread_local bool is_spared = false;      // by others_without_memory

void refuse_without_memory() {
    if (memory_left == 0) throw std::bad_alloc();
    if (memory_left > 0) --memory_left;
}

// While it exists, only the thread that made it has memory.
class others_without_memory {
public:
    others_without_memory() {
        is_spared = true;
        support::at_each_allocation = [] {
            if (!is_spared) throw std::bad_alloc();
        };
    }
    others_without_memory(const others_without_memory&) = delete;
    others_without_memory& operator=(const others_without_memory&) = delete;
    ~others_without_memory() {
        support::at_each_allocation = nullptr;
        is_spared = false;
    }
};

// Calls `attempt` in new threads, with memory for no allocation, for one, for two and so on, until it returns true.
template <class Attempt>
void with_ever_more_memory(const char* what, Attempt attempt) {
    support::at_each_allocation = refuse_without_memory;
    bool done = false;
    long enough = 0;
    while (!done) {
        std::thread([&] {
            SetLastError(0);
            memory_left = enough;
            done = attempt();
            memory_left = endless;
            const DWORD error = GetLastError();
            if (done) {
                EXPECT_GT(enough, 0) << what << " allocates nothing";
            } else {
                EXPECT_EQ(error, ERROR_NOT_ENOUGH_MEMORY) << what << " with " << enough;
            }
        }).join();
        ++enough;
    }
    support::at_each_allocation = nullptr;
}

DWORD end_at_once(void*) { return 7; }

TEST(win32_memory, ASleepWithoutMemoryIsNoShorter) {
    std::thread sleeper([] {
        support::at_next_allocation = [] { throw std::bad_alloc(); };  // that of the thread's object
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(SleepEx(20, TRUE), 0u);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
        EXPECT_EQ(support::at_next_allocation, nullptr);
    });
    sleeper.join();
}

TEST(win32_memory, ACallThatMakesAThreadsObjectFails) {
    HANDLE made = nullptr;
    with_ever_more_memory("CreateThread", [&] {
        made = CreateThread(nullptr, 0, end_at_once, nullptr, 0, nullptr);
        return made != nullptr;
    });
    EXPECT_EQ(WaitForSingleObject(made, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(CloseHandle(made));

    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    with_ever_more_memory("a thread's first wait for a mutex",
                          [&] { return WaitForSingleObject(mutex, 0) == WAIT_OBJECT_0; });
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_ABANDONED_0) << "only the last of those threads had it";
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_TRUE(CloseHandle(mutex));

    const HANDLE timer = CreateWaitableTimer(nullptr, TRUE, nullptr);
    const LARGE_INTEGER due = relative(1ms);
    with_ever_more_memory("a thread's first SetWaitableTimer", [&] {
        return SetWaitableTimer(timer, &due, 0, [](void*, DWORD, DWORD) {}, nullptr, FALSE) != 0;
    });
    EXPECT_TRUE(CloseHandle(timer));

    HANDLE copy = nullptr;
    with_ever_more_memory("DuplicateHandle", [&] {
        return DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &copy, 0, FALSE,
                               DUPLICATE_SAME_ACCESS) != 0;
    });
    EXPECT_EQ(WaitForSingleObject(copy, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(CloseHandle(copy));
}

TEST(win32_memory, ACallThatCannotBeQueuedIsRefused) {
    int calls = 0;
    const HANDLE thread = CreateThread(nullptr, 0, end_at_once, nullptr, CREATE_SUSPENDED, nullptr);
    with_ever_more_memory("QueueUserAPC", [&] {
        return QueueUserAPC([](ULONG_PTR of) { ++*reinterpret_cast<int*>(of); }, thread,
                            reinterpret_cast<ULONG_PTR>(&calls)) != 0;
    });
    EXPECT_EQ(ResumeThread(thread), 1u);
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(CloseHandle(thread));
}

// A timer needs memory only when it is set, not when it is due.
TEST(win32_memory, ATimerThatRunsNeedsNone) {
    int calls = 0;
    const HANDLE timer = CreateWaitableTimer(nullptr, FALSE, nullptr);
    const LARGE_INTEGER due = relative(1ms);
    const others_without_memory scarcity;
    ASSERT_TRUE(SetWaitableTimer(
        timer, &due, 1, [](void* of, DWORD, DWORD) { ++*static_cast<int*>(of); }, &calls, FALSE));
    for (int i = 1; i <= 5; ++i) {
        ASSERT_EQ(SleepEx(10'000, TRUE), DWORD{WAIT_IO_COMPLETION});
        EXPECT_EQ(calls, i);
    }
    EXPECT_TRUE(CloseHandle(timer));
}

TEST(win32_memory, ARegistrationThatFailsLeavesNothing) {
    const event one(false, true);
    HANDLE wait = nullptr;
    with_ever_more_memory("RegisterWaitForSingleObject", [&] {
        const auto callback = [](void*, BOOLEAN) {};
        if (RegisterWaitForSingleObject(&wait, one.get(), callback, nullptr, INFINITE, 0) != 0) return true;
        memory_left = endless;
        const DWORD error = GetLastError();
        EXPECT_FALSE(UnregisterWait(wait));
        SetLastError(error);
        return false;
    });
    EXPECT_TRUE(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
}

// If the pool's thread has never owned a mutex, it needs memory to own this one.
TEST(win32_memory, ARegisteredWaitThatFindsNoneLeavesTheMutexFree) {
    struct registered {
        const HANDLE mutex = CreateMutex(nullptr, TRUE, nullptr);
        const event timed_out{false, false};
        HANDLE wait = nullptr;
    } it;
    const auto callback = [](void* of, BOOLEAN late) {
        const auto& me = *static_cast<registered*>(of);
        EXPECT_TRUE(late != 0 ? SetEvent(me.timed_out.get()) : ReleaseMutex(me.mutex));
    };
    ASSERT_TRUE(RegisterWaitForSingleObject(&it.wait, it.mutex, callback, &it, 20, 0));
    EXPECT_EQ(WaitForSingleObject(it.timed_out.get(), INFINITE), WAIT_OBJECT_0);
    {
        const others_without_memory scarcity;
        EXPECT_TRUE(ReleaseMutex(it.mutex));
        EXPECT_TRUE(UnregisterWaitEx(it.wait, INVALID_HANDLE_VALUE));
    }
    EXPECT_EQ(WaitForSingleObject(it.mutex, 0), WAIT_OBJECT_0);
    EXPECT_TRUE(CloseHandle(it.mutex));
}

#if GTEST_HAS_DEATH_TEST
int ask_the_clocks() {
    support::at_each_allocation = refuse_without_memory;
    memory_left = 0;
    LARGE_INTEGER count;
    FILETIME time;
    (void)GetTickCount64();
    (void)QueryPerformanceCounter(&count);
    GetSystemTimeAsFileTime(&time);
    memory_left = endless;
    return 0;
}

// In a process of its own, in which nothing else has used a timer.
TEST(win32_memoryDeathTest, TheClocksNeedNone) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(std::_Exit(ask_the_clocks()), testing::ExitedWithCode(0), "");
}

int start_a_thread_without_keys() {
    std::vector<pthread_key_t> keys;
    for (pthread_key_t key{}; pthread_key_create(&key, nullptr) == 0;) keys.push_back(key);
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    const auto own = [](void* which) -> DWORD { return WaitForSingleObject(which, INFINITE); };
    if (CreateThread(nullptr, 0, own, mutex, 0, nullptr) != nullptr) return 1;
    if (GetLastError() != ERROR_NOT_ENOUGH_MEMORY) return 2;
    SetLastError(0);
    if (WaitForSingleObject(mutex, 0) != WAIT_FAILED) return 3;
    if (GetLastError() != ERROR_NOT_ENOUGH_MEMORY) return 4;
    for (const pthread_key_t each : keys) {
        if (pthread_getspecific(each) != nullptr) return 5;
    }
    pthread_key_delete(keys.back());
    const HANDLE thread = CreateThread(nullptr, 0, own, mutex, 0, nullptr);
    if (WaitForSingleObject(thread, INFINITE) != WAIT_OBJECT_0) return 6;
    return WaitForSingleObject(mutex, 0) == WAIT_ABANDONED_0 ? 0 : 7;
}

// In a process of its own, in which this layer has not made its key yet.
TEST(win32_memoryDeathTest, WithoutAKeyACallFailsAndALaterOneWorks) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(std::_Exit(start_a_thread_without_keys()), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
