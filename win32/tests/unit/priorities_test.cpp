// SPDX-License-Identifier: Apache-2.0
// A free critical section or SRWLOCK does not wait for a less urgent thread that was woken and gets no processor.
#include "support.hpp"

#if defined(__linux__)
#include "less_urgent.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace {

using namespace win32_test;

template <class LessUrgent>
class win32_urgent_thread : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string reason = LessUrgent::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    }
    static constexpr auto expect_no_wait = support::expect_that_a_free_lock_does_not_wait<LessUrgent>;

    // Whoever sleeps on the condition has the lock as `flags` say. All are woken.
    static void expect_of_conditions(ULONG flags) {
        CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
        SRWLOCK lock = SRWLOCK_INIT;
        const bool shared = flags == CONDITION_VARIABLE_LOCKMODE_SHARED;
        support::expect_no_wait_for_the_less_urgent<LessUrgent>(
            &condition,
            [&] {
                acquire(lock, shared);
                EXPECT_TRUE(SleepConditionVariableSRW(&condition, &lock, INFINITE, flags));
                release(lock, shared);
            },
            [&] { WakeAllConditionVariable(&condition); });
        EXPECT_EQ(lock.Ptr, nullptr);
    }

    static void acquire(SRWLOCK& lock, bool shared) {
        shared ? AcquireSRWLockShared(&lock) : AcquireSRWLockExclusive(&lock);
    }
    static void release(SRWLOCK& lock, bool shared) {
        shared ? ReleaseSRWLockShared(&lock) : ReleaseSRWLockExclusive(&lock);
    }
};
using less_urgent = testing::Types<support::frozen_threads, support::hogged_threads>;
TYPED_TEST_SUITE(win32_urgent_thread, less_urgent);

TYPED_TEST(win32_urgent_thread, EntersAFreeCriticalSection) {
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    this->expect_no_wait({.take = [&] { EnterCriticalSection(&section); },
                          .free = [&] { LeaveCriticalSection(&section); },
                          .pass =
                              [&] {
                                  EnterCriticalSection(&section);
                                  LeaveCriticalSection(&section);
                              }});
    DeleteCriticalSection(&section);
}

// The less urgent thread and the urgent one each wait as a reader or as a writer, behind a reader or a writer.
TYPED_TEST(win32_urgent_thread, TakesAFreeSrwLock) {
    for (const bool held_shared : {false, true}) {
        for (const bool first_shared : {false, true}) {
            if (held_shared && first_shared) continue;  // it would not wait
            for (const bool urgent_shared : {false, true}) {
                SRWLOCK lock = SRWLOCK_INIT;
                std::atomic<int> calls{0};  // of the less urgent thread and of the urgent one in turn
                this->expect_no_wait({.take = [&] { this->acquire(lock, held_shared); },
                                      .free = [&] { this->release(lock, held_shared); },
                                      .pass =
                                          [&] {
                                              const bool shared =
                                                  calls++ % 2 == 0 ? first_shared : urgent_shared;
                                              this->acquire(lock, shared);
                                              this->release(lock, shared);
                                          }});
                EXPECT_EQ(lock.Ptr, nullptr);
            }
        }
    }
}

// The less urgent reader is first, and the lock is not free, but readers have it.
TYPED_TEST(win32_urgent_thread, JoinsTheReadersOfAnSrwLock) {
    SRWLOCK lock = SRWLOCK_INIT;
    bool reads = false;
    const auto end_reading = [&] {
        if (reads) ReleaseSRWLockShared(&lock);
        reads = false;
    };
    this->expect_no_wait({.take =
                              [&] {
                                  end_reading();
                                  AcquireSRWLockExclusive(&lock);
                              },
                          .free =
                              [&] {
                                  ReleaseSRWLockExclusive(&lock);
                                  AcquireSRWLockShared(&lock);
                                  reads = true;
                              },
                          .pass =
                              [&] {
                                  AcquireSRWLockShared(&lock);
                                  ReleaseSRWLockShared(&lock);
                              }});
    end_reading();
    EXPECT_EQ(lock.Ptr, nullptr);
}

TYPED_TEST(win32_urgent_thread, IsWokenFirstAtAConditionWithAnSrwLock) { this->expect_of_conditions(0); }
TYPED_TEST(win32_urgent_thread, IsWokenFirstAtAConditionWithASharedSrwLock) {
    this->expect_of_conditions(CONDITION_VARIABLE_LOCKMODE_SHARED);
}

// After seven passes, the lock is left to a thread that was woken, so that this thread gets its turn. If it gets no
// processor for 20 ms, whoever comes takes the lock.
TEST(win32_priorities, AnSrwLockThatIsLeftToAStoppedThreadIsFreeAgainLater) {
    if (const std::string reason = support::frozen_threads::why_not(); !reason.empty())
        GTEST_SKIP() << reason;
    for (const bool shared : {false, true}) {
        SRWLOCK lock = SRWLOCK_INIT;
        support::frozen_threads frost;
        thread_group threads;
        AcquireSRWLockExclusive(&lock);
        threads.start("waiter", [&] {
            shared ? AcquireSRWLockShared(&lock) : AcquireSRWLockExclusive(&lock);
            shared ? ReleaseSRWLockShared(&lock) : ReleaseSRWLockExclusive(&lock);
        });
        support::until_sound_asleep(threads.id(0));
        frost.stop(threads, 1);
        ReleaseSRWLockExclusive(&lock);
        for (int i = 0; i != 7; ++i) {
            EXPECT_TRUE(TryAcquireSRWLockExclusive(&lock));
            ReleaseSRWLockExclusive(&lock);
        }
        EXPECT_FALSE(TryAcquireSRWLockExclusive(&lock));
        EXPECT_FALSE(TryAcquireSRWLockShared(&lock));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // only time makes a wake overdue
        for (int i = 0; i != 2; ++i) {
            AcquireSRWLockExclusive(&lock);
            ReleaseSRWLockExclusive(&lock);
            AcquireSRWLockShared(&lock);
            ReleaseSRWLockShared(&lock);
        }
        frost.go_on();
        threads.join();
        EXPECT_EQ(lock.Ptr, nullptr);
    }
}

// The same as above, but a real-time thread comes, which takes the lock at once.
TEST(win32_priorities, AnSrwLockThatIsLeftToAThreadIsFreeForARealTimeThread) {
    if (const std::string reason = support::hogged_threads::why_not(); !reason.empty())
        GTEST_SKIP() << reason;
    SRWLOCK lock = SRWLOCK_INIT;
    support::hogged_threads others;
    thread_group threads;
    AcquireSRWLockExclusive(&lock);
    threads.start("less urgent", [&] {
        others.become_less_urgent();
        AcquireSRWLockExclusive(&lock);
        ReleaseSRWLockExclusive(&lock);
    });
    support::until_sound_asleep(threads.id(0));
    others.stop(threads, 1);
    ReleaseSRWLockExclusive(&lock);
    while (TryAcquireSRWLockExclusive(&lock)) ReleaseSRWLockExclusive(&lock);
    std::atomic<bool> passed{false};
    threads.start("urgent", [&] {
        others.become_urgent();
        AcquireSRWLockExclusive(&lock);
        ReleaseSRWLockExclusive(&lock);
        passed = true;
    });
    support::until("the urgent thread has had the lock", [&] { return passed.load(); });
    others.go_on();
    threads.join();
}

}  // namespace

#endif
