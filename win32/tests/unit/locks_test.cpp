// SPDX-License-Identifier: Apache-2.0
// Locks, conditions, one-time initialization and barriers of tocsin/win32.h, where threads meet.
#include "support.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

namespace {

using namespace win32_test;

// Where an SRWLOCK may be, from an aligned address on.
#if UINTPTR_MAX > 0xFFFF'FFFF
constexpr std::array<std::size_t, 8> offsets{0, 1, 2, 3, 4, 5, 6, 7};
#else
constexpr std::array<std::size_t, 2> offsets{0, 4};
#endif

TEST(win32_locks, AnSrwLockWritesNothingOutsideOfItself) {
    alignas(8) std::array<unsigned char, 24> memory{};
    for (const std::size_t offset : offsets) {
        memory.fill(0xA5);
        void* const at = &memory[offset];
        std::memset(at, 0, sizeof(SRWLOCK));
        const auto lock = static_cast<PSRWLOCK>(at);
        const auto expect_guards = [&] {
            for (std::size_t i = 0; i != memory.size(); ++i) {
                if (i < offset || i >= offset + sizeof(SRWLOCK)) {
                    EXPECT_EQ(memory[i], 0xA5);
                }
            }
        };
        AcquireSRWLockExclusive(lock);
        EXPECT_FALSE(TryAcquireSRWLockShared(lock));
        expect_guards();
        ReleaseSRWLockExclusive(lock);
        AcquireSRWLockShared(lock);
        EXPECT_FALSE(TryAcquireSRWLockExclusive(lock));
        expect_guards();
        ReleaseSRWLockShared(lock);
        expect_guards();
    }
}

#if UINTPTR_MAX <= 0xFFFF'FFFF
TEST(win32_locks, AnSrwLockAtAnOddAddressOf32BitSystemsIsRefused) {
    alignas(8) unsigned char memory[16]{};
    void* const odd = memory + 1;
    EXPECT_DEATH(AcquireSRWLockExclusive(static_cast<PSRWLOCK>(odd)), "not aligned to 4 bytes");
}
#endif

TEST(win32_locks, ReadersShareAndWritersAreAlone) {
    alignas(8) unsigned char memory[16]{};
    for (const std::size_t offset : offsets) {
        std::memset(memory, 0, sizeof memory);
        void* const at = memory + offset;
        const auto lock = static_cast<PSRWLOCK>(at);
        int value = 0;
        std::atomic<int> readers{0};
        thread_group threads;
        threads.start_many(4, "user", [&](int number) {
            for (int i = 0; i < 4 * rounds(500); ++i) {
                if ((i + number) % 4 == 0) {
                    AcquireSRWLockExclusive(lock);
                    EXPECT_EQ(readers, 0);
                    ++value;
                    ReleaseSRWLockExclusive(lock);
                } else {
                    AcquireSRWLockShared(lock);
                    ++readers;
                    EXPECT_GE(value, 0);
                    --readers;
                    ReleaseSRWLockShared(lock);
                }
            }
        });
        threads.join();
        EXPECT_EQ(value, 4 * rounds(500));
        for (const unsigned char byte : memory) EXPECT_EQ(byte, 0);
    }
}

TEST(win32_locks, TheWordOfAnExclusiveLockIsOne) {
    SRWLOCK lock = SRWLOCK_INIT;
    AcquireSRWLockExclusive(&lock);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lock.Ptr), 1u);
    EXPECT_FALSE(TryAcquireSRWLockShared(&lock));
    EXPECT_FALSE(TryAcquireSRWLockExclusive(&lock));
    ReleaseSRWLockExclusive(&lock);
    EXPECT_EQ(lock.Ptr, nullptr);
}

TEST(win32_locks, ReadersQueueBehindAWaitingWriter) {
    SRWLOCK lock = SRWLOCK_INIT;
    AcquireSRWLockShared(&lock);
    EXPECT_TRUE(TryAcquireSRWLockShared(&lock));
    thread_group threads;
    std::atomic<bool> written{false};
    threads.start("writer", [&] {
        AcquireSRWLockExclusive(&lock);
        written = true;
        ReleaseSRWLockExclusive(&lock);
    });
    threads.until_asleep(0);
    EXPECT_FALSE(TryAcquireSRWLockShared(&lock));
    threads.start("reader", [&] {
        AcquireSRWLockShared(&lock);
        EXPECT_TRUE(written);
        ReleaseSRWLockShared(&lock);
    });
    threads.until_asleep(1);
    ReleaseSRWLockShared(&lock);
    EXPECT_FALSE(written);
    ReleaseSRWLockShared(&lock);
    threads.join();
    EXPECT_EQ(lock.Ptr, nullptr);
}

// A thread that unlocks and locks at once, over and over, passes a waiter seven times at most.
TEST(win32_locks, AnSrwLockIsLeftToAWaiterThatWasPassedSevenTimes) {
    for (const bool shared : {false, true}) {
        SRWLOCK lock = SRWLOCK_INIT;
        std::atomic<bool> had_it{false};
        thread_group threads;
        AcquireSRWLockExclusive(&lock);
        threads.start("waiter", [&] {
            shared ? AcquireSRWLockShared(&lock) : AcquireSRWLockExclusive(&lock);
            had_it = true;
            shared ? ReleaseSRWLockShared(&lock) : ReleaseSRWLockExclusive(&lock);
        });
        threads.until_asleep(0);
        ReleaseSRWLockExclusive(&lock);
        int passes = 0;
        while (!had_it) {
            if (!TryAcquireSRWLockExclusive(&lock)) continue;
            if (!had_it) ++passes;
            ReleaseSRWLockExclusive(&lock);
        }
        EXPECT_LE(passes, 7);
        threads.join();
        EXPECT_EQ(lock.Ptr, nullptr);
    }
}

// The same without a limit of tries. If the waiter were passed for ever, the test would not end.
TEST(win32_locks, AThreadThatLocksAnSrwLockAgainAtOnceStarvesNobody) {
    for (int i = 0; i != 4; ++i) {
        const bool waiter_reads = i % 2 != 0;
        const bool other_reads = i / 2 != 0;
        SRWLOCK lock = SRWLOCK_INIT;
        std::atomic<bool> had_it{false};
        thread_group threads;
        AcquireSRWLockExclusive(&lock);
        threads.start_many(2, "waiter", [&](int) {
            waiter_reads ? AcquireSRWLockShared(&lock) : AcquireSRWLockExclusive(&lock);
            had_it = true;
            waiter_reads ? ReleaseSRWLockShared(&lock) : ReleaseSRWLockExclusive(&lock);
        });
        ReleaseSRWLockExclusive(&lock);
        while (!had_it) {
            other_reads ? AcquireSRWLockShared(&lock) : AcquireSRWLockExclusive(&lock);
            other_reads ? ReleaseSRWLockShared(&lock) : ReleaseSRWLockExclusive(&lock);
        }
        threads.join();
        EXPECT_EQ(lock.Ptr, nullptr);
    }
}

TEST(win32_locks, ACriticalSectionCountsAndShowsItsFields) {
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    EXPECT_EQ(section.DebugInfo, reinterpret_cast<void*>(std::intptr_t{-1}));
    EXPECT_EQ(section.LockCount, -1);
    int value = 0;
    thread_group threads;
    threads.start_many(4, "user", [&](int) {
        for (int i = 0; i < rounds(2000); ++i) {
            EnterCriticalSection(&section);
            EXPECT_TRUE(TryEnterCriticalSection(&section));
            EXPECT_EQ(section.RecursionCount, 2);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(section.OwningThread), GetCurrentThreadId());
            ++value;
            LeaveCriticalSection(&section);
            LeaveCriticalSection(&section);
        }
    });
    threads.join();
    EXPECT_EQ(value, 4 * rounds(2000));
    EXPECT_EQ(SetCriticalSectionSpinCount(&section, 7), 0u);
    EXPECT_EQ(SetCriticalSectionSpinCount(&section, 0), 7u);
    DeleteCriticalSection(&section);
    EXPECT_EQ(section.DebugInfo, nullptr);
}

#if TOCSIN_CHECKED
TEST(win32_locks, ACriticalSectionOfAnotherThreadIsNeitherLeftNorDeleted) {
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    const char* const not_owned = "tocsin: critical section at .*left by a thread that does not own it";
    EXPECT_DEATH_IF_SUPPORTED(LeaveCriticalSection(&section), not_owned);
    const event owned(true, false);
    const event end(true, false);
    thread_group threads;
    threads.start("owner", [&] {
        EnterCriticalSection(&section);
        SetEvent(owned.get());
        WaitForSingleObject(end.get(), INFINITE);
        LeaveCriticalSection(&section);
    });
    WaitForSingleObject(owned.get(), INFINITE);
    EXPECT_DEATH_IF_SUPPORTED(LeaveCriticalSection(&section), not_owned);
    EXPECT_DEATH_IF_SUPPORTED(DeleteCriticalSection(&section),
                              "tocsin: critical section at .*deleted while a thread owns it");
    SetEvent(end.get());
    threads.join();
    DeleteCriticalSection(&section);
}
#endif

TEST(win32_locks, AConditionHandsItemsFromThreadToThread) {
    CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
    SRWLOCK lock = SRWLOCK_INIT;
    int items = 0;
    int taken = 0;
    thread_group threads;
    threads.start_many(3, "consumer", [&](int) {
        for (int i = 0; i < rounds(1000); ++i) {
            AcquireSRWLockExclusive(&lock);
            while (items == 0) EXPECT_TRUE(SleepConditionVariableSRW(&changed, &lock, INFINITE, 0));
            --items;
            ++taken;
            ReleaseSRWLockExclusive(&lock);
        }
    });
    for (int i = 0; i < 3 * rounds(1000); ++i) {
        AcquireSRWLockExclusive(&lock);
        ++items;
        ReleaseSRWLockExclusive(&lock);
        WakeConditionVariable(&changed);
    }
    threads.join();
    EXPECT_EQ(taken, 3 * rounds(1000));
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    EXPECT_FALSE(SleepConditionVariableCS(&changed, &section, 1));
    EXPECT_EQ(GetLastError(), ERROR_TIMEOUT);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
}

TEST(win32_locks, InitOnceRunsOnceHoweverManyCome) {
    for (int i = 0; i < rounds(200); ++i) {
        INIT_ONCE once = INIT_ONCE_STATIC_INIT;
        std::atomic<int> runs{0};
        thread_group threads;
        threads.start_many(3, "user", [&](int) {
            void* context = nullptr;
            const auto make = [](PINIT_ONCE, void* count, void** made) -> BOOL {
                *made = count;
                return ++*static_cast<std::atomic<int>*>(count) == 1 ? FALSE : TRUE;  // fails once
            };
            while (!InitOnceExecuteOnce(&once, make, &runs, &context)) {
            }
            EXPECT_EQ(context, &runs);
        });
        threads.join();
        EXPECT_EQ(runs, 2);
    }
}

TEST(win32_locks, ABarrierEndsEachPhaseOnce) {
    SYNCHRONIZATION_BARRIER barrier;
    ASSERT_TRUE(InitializeSynchronizationBarrier(&barrier, 3, -1));
    std::atomic<int> last{0};
    std::atomic<int> arrived{0};
    thread_group threads;
    threads.start_many(3, "user", [&](int number) {
        for (int i = 1; i <= rounds(500); ++i) {
            ++arrived;
            if (EnterSynchronizationBarrier(&barrier,
                                            number == 0 ? SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE : 0))
                ++last;
            EXPECT_GE(arrived, 3 * i);
        }
    });
    threads.join();
    EXPECT_EQ(last, rounds(500));
    EXPECT_TRUE(DeleteSynchronizationBarrier(&barrier));
}

TEST(win32_locks, WaitOnAddressComparesExactlyItsBytes) {
    alignas(8) std::array<std::uint8_t, 8> bytes{1, 2, 3, 4, 5, 6, 7, 8};
    std::uint16_t same = 0;
    std::memcpy(&same, &bytes[2], 2);
    SetLastError(1);
    EXPECT_FALSE(WaitOnAddress(&bytes[2], &same, 2, 0));
    EXPECT_EQ(GetLastError(), ERROR_TIMEOUT);
    ++bytes[4];
    EXPECT_FALSE(WaitOnAddress(&bytes[2], &same, 2, 1));
    ++bytes[3];
    EXPECT_TRUE(WaitOnAddress(&bytes[2], &same, 2, INFINITE));
    for (const SIZE_T size : {0, 3, 5, 16}) {
        EXPECT_FALSE(WaitOnAddress(&bytes, &same, size, 0));
        EXPECT_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    }
    EXPECT_FALSE(WaitOnAddress(&bytes[1], &same, 2, 0));
    EXPECT_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    WakeByAddressAll(nullptr);
}

}  // namespace
