// SPDX-License-Identifier: Apache-2.0
// Slim reader/writer locks, critical sections, condition variables.
#include "system.hpp"

#include <atomic>
#include <cstring>
#include <deque>

namespace {

using namespace win32;

TEST(SrwLock, IsAPointerOfZerosWhenNobodyHoldsIt) {
    static_assert(sizeof(SRWLOCK) == sizeof(void*));
    SRWLOCK lock = SRWLOCK_INIT;
    EXPECT_EQ(lock.Ptr, nullptr);
    AcquireSRWLockExclusive(&lock);
    EXPECT_NE(lock.Ptr, nullptr);
    ReleaseSRWLockExclusive(&lock);
    EXPECT_EQ(lock.Ptr, nullptr);
    AcquireSRWLockShared(&lock);
    ReleaseSRWLockShared(&lock);
    EXPECT_EQ(lock.Ptr, nullptr);
    std::memset(&lock, 0xFF, sizeof lock);
    InitializeSRWLock(&lock);
    EXPECT_EQ(lock.Ptr, nullptr);
}

TEST(SrwLock, TriesWithoutBlocking) {
    SRWLOCK lock = SRWLOCK_INIT;
    EXPECT_TRUE(works(TryAcquireSRWLockExclusive, &lock));
    EXPECT_EQ(TryAcquireSRWLockExclusive(&lock), FALSE);
    EXPECT_EQ(TryAcquireSRWLockShared(&lock), FALSE);
    ReleaseSRWLockExclusive(&lock);
    EXPECT_TRUE(works(TryAcquireSRWLockShared, &lock));
    EXPECT_TRUE(works(TryAcquireSRWLockShared, &lock));
    EXPECT_EQ(TryAcquireSRWLockExclusive(&lock), FALSE);
    ReleaseSRWLockShared(&lock);
    EXPECT_EQ(TryAcquireSRWLockExclusive(&lock), FALSE);
    ReleaseSRWLockShared(&lock);
    EXPECT_TRUE(works(TryAcquireSRWLockExclusive, &lock));
    ReleaseSRWLockExclusive(&lock);
}

TEST(SrwLock, IsNotBoundToAThread) {
    SRWLOCK lock = SRWLOCK_INIT;
    elsewhere([&] { AcquireSRWLockExclusive(&lock); });
    EXPECT_EQ(TryAcquireSRWLockShared(&lock), FALSE);
    ReleaseSRWLockExclusive(&lock);
    elsewhere([&] { AcquireSRWLockShared(&lock); });
    EXPECT_EQ(TryAcquireSRWLockExclusive(&lock), FALSE);
    ReleaseSRWLockShared(&lock);
    EXPECT_EQ(lock.Ptr, nullptr);
}

// Observed.
TEST(SrwLock, PutsSharedRequestsBehindAnExclusiveOneThatWaits) {
    SRWLOCK lock = SRWLOCK_INIT;
    AcquireSRWLockShared(&lock);
    std::atomic<int> next{0};
    int writers = 0, readers = 0;
    thread_group threads;
    threads.start([&] {
        AcquireSRWLockExclusive(&lock);
        writers = ++next;
        ReleaseSRWLockExclusive(&lock);
    });
    until_waits(threads, 0);
    EXPECT_EQ(TryAcquireSRWLockShared(&lock), FALSE);
    threads.start([&] {
        AcquireSRWLockShared(&lock);
        readers = ++next;
        ReleaseSRWLockShared(&lock);
    });
    until_waits(threads, 1);
    ReleaseSRWLockShared(&lock);
    threads.join();
    EXPECT_EQ(writers, 1);
    EXPECT_EQ(readers, 2);
}

TEST(SrwLock, LetsSharersInTogether) {
    SRWLOCK lock = SRWLOCK_INIT;
    AcquireSRWLockExclusive(&lock);
    std::atomic<int> inside{0};
    thread_group threads;
    threads.start_many(3, "reader", [&](int) {
        AcquireSRWLockShared(&lock);
        inside.fetch_add(1);
        until("all inside", [&] { return inside.load() == 3; });
        ReleaseSRWLockShared(&lock);
    });
    until_all_wait(threads);
    ReleaseSRWLockExclusive(&lock);
}

TEST(SrwLock, ExcludesWritersFromEveryone) {
    SRWLOCK lock = SRWLOCK_INIT;
    const int each = few(5000, 1000);
    long value = 0, other = 0;
    thread_group threads;
    threads.start_many(2, "writer", [&](int) {
        for (int i = 0; i < each; ++i) {
            AcquireSRWLockExclusive(&lock);
            ++value;
            ++other;
            ReleaseSRWLockExclusive(&lock);
        }
    });
    threads.start_many(2, "reader", [&](int) {
        for (int i = 0; i < each; ++i) {
            AcquireSRWLockShared(&lock);
            EXPECT_EQ(value, other);
            ReleaseSRWLockShared(&lock);
            if (TryAcquireSRWLockExclusive(&lock)) {
                ++value;
                ++other;
                --value;
                --other;
                ReleaseSRWLockExclusive(&lock);
            }
        }
    });
    threads.join();
    EXPECT_EQ(value, 2 * each);
    EXPECT_EQ(lock.Ptr, nullptr);
}

class section {
public:
    section() { InitializeCriticalSection(&itself); }
    ~section() { DeleteCriticalSection(&itself); }
    CRITICAL_SECTION itself;
};

TEST(CriticalSection, IsRecursiveAndOwned) {
    section its;
    EnterCriticalSection(&its.itself);
    EnterCriticalSection(&its.itself);
    EXPECT_TRUE(works(TryEnterCriticalSection, &its.itself));
    EXPECT_EQ(its.itself.RecursionCount, 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(its.itself.OwningThread), GetCurrentThreadId());
    for (int depth = 3; depth > 0; --depth) {
        elsewhere([&] { EXPECT_EQ(TryEnterCriticalSection(&its.itself), FALSE); });
        LeaveCriticalSection(&its.itself);
    }
    EXPECT_EQ(its.itself.RecursionCount, 0);
    EXPECT_EQ(its.itself.OwningThread, nullptr);
    elsewhere([&] {
        EXPECT_TRUE(works(TryEnterCriticalSection, &its.itself));
        LeaveCriticalSection(&its.itself);
    });
}

TEST(CriticalSection, IsInitializedByEveryForm) {
    CRITICAL_SECTION counted, extended;
    EXPECT_TRUE(works(InitializeCriticalSectionAndSpinCount, &counted, 100u));
    EXPECT_TRUE(works(InitializeCriticalSectionEx, &extended, 200u, 0u));
    DeleteCriticalSection(&extended);
    for (const DWORD flags : {0x01000000u, 0x02000000u, 0x04000000u, 0x10000000u, 0x03000000u}) {
        EXPECT_TRUE(works(InitializeCriticalSectionEx, &extended, 200u, flags));
        DeleteCriticalSection(&extended);
    }
    if (!under_wine()) {  // Wine 8 takes any flag
        for (const DWORD flags : {1u, 0x00800000u, 0x20000000u, 0x80000000u})
            EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, InitializeCriticalSectionEx, &extended, 0u, flags));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, InitializeCriticalSectionEx, &extended, 0x01000000u, 0u));
    }
    EXPECT_TRUE(works(InitializeCriticalSectionEx, &extended, 200u, 0u));
    const DWORD before = SetCriticalSectionSpinCount(&counted, 300);
    EXPECT_TRUE(before == 100 || before == 0) << before;  // on one processor spinning is off
    const DWORD now = SetCriticalSectionSpinCount(&counted, 100);
    EXPECT_TRUE(now == 300 || now == 0) << now;
    for (CRITICAL_SECTION* each : {&counted, &extended}) {
        EnterCriticalSection(each);
        LeaveCriticalSection(each);
        DeleteCriticalSection(each);
        EXPECT_EQ(each->DebugInfo, nullptr);  // observed
    }
}

TEST(CriticalSection, ExcludesOthers) {
    section its;
    const int each = few(5000, 1000);
    int counted = 0;
    thread_group threads;
    threads.start_many(3, "owner", [&](int index) {
        for (int i = 0; i < each; ++i) {
            if (index == 0) {
                while (!TryEnterCriticalSection(&its.itself)) std::this_thread::yield();
            } else {
                EnterCriticalSection(&its.itself);
            }
            EnterCriticalSection(&its.itself);
            ++counted;
            LeaveCriticalSection(&its.itself);
            LeaveCriticalSection(&its.itself);
        }
    });
    threads.join();
    EXPECT_EQ(counted, 3 * each);
}

TEST(CriticalSection, WakesWhoWaits) {
    section its;
    EnterCriticalSection(&its.itself);
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) {
        EnterCriticalSection(&its.itself);
        LeaveCriticalSection(&its.itself);
    });
    until_all_wait(threads);
    LeaveCriticalSection(&its.itself);
}

// Sleeping with each kind of lock.
struct with_section {
    section lock;
    void acquire() { EnterCriticalSection(&lock.itself); }
    void release() { LeaveCriticalSection(&lock.itself); }
    bool others_can_acquire() {
        bool can = false;
        elsewhere([&] {
            can = TryEnterCriticalSection(&lock.itself);
            if (can) release();
        });
        return can;
    }
    BOOL sleep(CONDITION_VARIABLE& condition, DWORD time) {
        return SleepConditionVariableCS(&condition, &lock.itself, time);
    }
};
struct with_exclusive {
    SRWLOCK lock = SRWLOCK_INIT;
    void acquire() { AcquireSRWLockExclusive(&lock); }
    void release() { ReleaseSRWLockExclusive(&lock); }
    bool others_can_acquire() {
        const bool can = TryAcquireSRWLockExclusive(&lock);
        if (can) ReleaseSRWLockExclusive(&lock);
        return can;
    }
    BOOL sleep(CONDITION_VARIABLE& condition, DWORD time) {
        return SleepConditionVariableSRW(&condition, &lock, time, 0);
    }
};
struct with_shared : with_exclusive {
    void acquire() { AcquireSRWLockShared(&lock); }
    void release() { ReleaseSRWLockShared(&lock); }
    BOOL sleep(CONDITION_VARIABLE& condition, DWORD time) {
        return SleepConditionVariableSRW(&condition, &lock, time, CONDITION_VARIABLE_LOCKMODE_SHARED);
    }
};

template <class Lock>
class ConditionVariable : public testing::Test {
protected:
    Lock lock;
    CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
};
using all_locks = testing::Types<with_section, with_exclusive, with_shared>;
TYPED_TEST_SUITE(ConditionVariable, all_locks);

TYPED_TEST(ConditionVariable, TimesOutWithTheLockHeld) {
    for (const DWORD time : {0u, 1u, 20u}) {
        this->lock.acquire();
        EXPECT_GE(time_of([&] {
                      SetLastError(untouched);
                      EXPECT_EQ(this->lock.sleep(this->condition, time), FALSE);
                      EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
                  }),
                  at_least(std::chrono::milliseconds(time)));
        EXPECT_FALSE(this->lock.others_can_acquire());
        this->lock.release();
        EXPECT_TRUE(this->lock.others_can_acquire());
    }
}

TYPED_TEST(ConditionVariable, DoesNotRememberAWakeOfNobody) {
    WakeConditionVariable(&this->condition);
    WakeAllConditionVariable(&this->condition);
    this->lock.acquire();
    EXPECT_EQ(this->lock.sleep(this->condition, 5), FALSE);
    this->lock.release();
}

TYPED_TEST(ConditionVariable, WakesOneAtATime) {
    std::atomic<int> woken{0};
    thread_group threads;
    threads.start_many(3, "sleeper", [&](int) {
        this->lock.acquire();
        EXPECT_EQ(this->lock.sleep(this->condition, INFINITE), TRUE);
        woken.fetch_add(1);
        this->lock.release();
    });
    until_all_wait(threads);
    EXPECT_TRUE(this->lock.others_can_acquire()) << "who sleeps does not hold the lock";
    for (int wanted = 1; wanted <= 3; ++wanted) {
        WakeConditionVariable(&this->condition);
        until("one more", [&] { return woken.load() == wanted; });
        nap(2ms);
        EXPECT_EQ(woken.load(), wanted);
    }
}

TYPED_TEST(ConditionVariable, WakesAll) {
    thread_group threads;
    threads.start_many(3, "sleeper", [&](int) {
        this->lock.acquire();
        EXPECT_EQ(this->lock.sleep(this->condition, INFINITE), TRUE);
        this->lock.release();
    });
    until_all_wait(threads);
    WakeAllConditionVariable(&this->condition);
}

// A wake in time counts, though the lock comes back after the deadline.
TYPED_TEST(ConditionVariable, WasWokenInTimeEvenIfTheLockComesLate) {
    if (std::is_same_v<TypeParam, with_shared>) GTEST_SKIP() << "sharers don't keep each other out";
    for (bool in_time = false; !in_time;) {  // again if this thread was too late to wake in time
        BOOL woken = FALSE;
        const auto begin = std::chrono::steady_clock::now();
        thread_group threads;
        threads.start([&] {
            this->lock.acquire();
            woken = this->lock.sleep(this->condition, 2'000);
            this->lock.release();
        });
        until_waits(threads, 0);
        this->lock.acquire();
        WakeConditionVariable(&this->condition);
        in_time = std::chrono::steady_clock::now() - begin < 2s;
        nap(2'050ms);
        EXPECT_FALSE(threads.finished(0));
        this->lock.release();
        threads.join();
        EXPECT_TRUE(woken || !in_time);
    }
}

TYPED_TEST(ConditionVariable, IsZeroWhenInitialized) {
    std::memset(&this->condition, 0xFF, sizeof this->condition);
    InitializeConditionVariable(&this->condition);
    EXPECT_EQ(this->condition.Ptr, nullptr);
    this->lock.acquire();
    EXPECT_EQ(this->lock.sleep(this->condition, 0), FALSE);
    this->lock.release();
}

TEST(ConditionVariables, PassEveryItemOfAQueue) {
    const int each = few(3000, 500);
    SRWLOCK lock = SRWLOCK_INIT;
    CONDITION_VARIABLE not_empty = CONDITION_VARIABLE_INIT, not_full = CONDITION_VARIABLE_INIT;
    std::deque<int> queue;
    long sum = 0;
    thread_group threads;
    threads.start_many(2, "producer", [&](int) {
        for (int i = 1; i <= each; ++i) {
            AcquireSRWLockExclusive(&lock);
            while (queue.size() >= 4) {
                if (!SleepConditionVariableSRW(&not_full, &lock, i % 3 ? INFINITE : 1, 0)) {
                    EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
                }
            }
            queue.push_back(i);
            ReleaseSRWLockExclusive(&lock);
            WakeConditionVariable(&not_empty);
        }
    });
    threads.start_many(2, "consumer", [&](int) {
        for (int i = 1; i <= each; ++i) {
            AcquireSRWLockExclusive(&lock);
            while (queue.empty()) {
                if (!SleepConditionVariableSRW(&not_empty, &lock, i % 5 ? INFINITE : 1, 0)) {
                    EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
                }
            }
            sum += queue.front();
            queue.pop_front();
            ReleaseSRWLockExclusive(&lock);
            WakeConditionVariable(&not_full);
        }
    });
    threads.join();
    EXPECT_EQ(sum, static_cast<long>(each) * (each + 1));
}

}  // namespace
