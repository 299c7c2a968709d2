// SPDX-License-Identifier: Apache-2.0
// The lock that is a word, of every width.
#include "clocks.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::freezer;
using support::rounds;
using support::thread_group;
using support::until_parked;
using tocsin::word_lock;

// The standard's requirements, as far as a compiler can check them.
template <class Lock>
concept timed_lockable = requires(Lock& lock) {
    { lock.lock() } -> std::same_as<void>;
    { lock.unlock() } -> std::same_as<void>;
    { lock.try_lock() } -> std::same_as<bool>;
    { lock.try_lock_for(1ms) } -> std::same_as<bool>;
    { lock.try_lock_until(std::chrono::steady_clock::now()) } -> std::same_as<bool>;
    { lock.try_lock_until(std::chrono::system_clock::now()) } -> std::same_as<bool>;
};

template <class Word>
class EveryWordLock : public testing::Test {};
using widths = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(EveryWordLock, widths);

constinit word_lock<> global;

TYPED_TEST(EveryWordLock, IsAWordAndTimedLockable) {
    using lock = word_lock<TypeParam>;
    static_assert(sizeof(lock) == sizeof(TypeParam));
    static_assert(timed_lockable<lock>);
    static_assert(!std::is_copy_constructible_v<lock> && !std::is_move_constructible_v<lock>);
    static_assert(std::is_trivially_destructible_v<lock>);
}

TYPED_TEST(EveryWordLock, LocksAndUnlocks) {
    word_lock<TypeParam> lock;
    lock.lock();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(0s));
    EXPECT_FALSE(lock.try_lock_until(std::chrono::system_clock::time_point{}));
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_for(0s));
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_until(std::chrono::steady_clock::time_point{}));
    lock.unlock();
}

TYPED_TEST(EveryWordLock, WorksWithTheLockTypesOfTheStandard) {
    word_lock<TypeParam> first;
    word_lock<TypeParam> second;
    {
        std::lock_guard held(first);
        EXPECT_FALSE(first.try_lock());
    }
    {
        std::scoped_lock both(first, second);
        EXPECT_FALSE(first.try_lock());
        EXPECT_FALSE(second.try_lock());
    }
    {
        std::unique_lock held(first, std::defer_lock);
        EXPECT_FALSE(held.owns_lock());
        EXPECT_TRUE(held.try_lock());
        held.unlock();
        EXPECT_TRUE(held.try_lock_for(1ms));
        held.unlock();
        EXPECT_TRUE(held.try_lock_until(std::chrono::steady_clock::now() + 1ms));
    }
    {
        std::unique_lock held(first, 5ms);
        EXPECT_TRUE(held.owns_lock());
        std::unique_lock refused(first, std::try_to_lock);
        EXPECT_FALSE(refused.owns_lock());
    }
    EXPECT_TRUE(first.try_lock());
    first.unlock();
}

TYPED_TEST(EveryWordLock, AWaiterSleepsUntilTheLockIsFree) {
    word_lock<TypeParam> lock;
    int data = 0;
    lock.lock();
    thread_group threads;
    threads.start("waiter", [&] {
        std::lock_guard held(lock);
        EXPECT_EQ(data, 1);
    });
    until_parked(&lock, 1);
    threads.until_asleep(0);
    EXPECT_FALSE(threads.finished(0));
    data = 1;
    lock.unlock();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&lock), 0u);
}

TYPED_TEST(EveryWordLock, ExcludesEachOther) {
    word_lock<TypeParam> lock;
    long count = 0;  // plain: lost additions and ThreadSanitizer reveal two threads inside
    int inside = 0;
    const int each = rounds(20'000, 3'000);
    thread_group threads;
    threads.start_many(4, "adder", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number));
        for (int i = 0; i < each; ++i) {
            std::lock_guard held(lock);
            EXPECT_EQ(++inside, 1);
            ++count;
            if (random.one_in(64)) std::this_thread::yield();
            --inside;
        }
    });
    threads.join();
    EXPECT_EQ(count, 4L * each);
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
}

TYPED_TEST(EveryWordLock, ExcludesEachOtherWithTimeoutsAndTries) {
    word_lock<TypeParam> lock;
    long count = 0;
    std::atomic<long> taken{0};
    const int each = rounds(4'000, 1'000);
    thread_group threads;
    threads.start_many(4, "adder", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 10);
        for (int i = 0; i < each; ++i) {
            bool mine = true;
            switch (random.below(4)) {
                case 0: lock.lock(); break;
                case 1: mine = lock.try_lock(); break;
                case 2: mine = lock.try_lock_for(std::chrono::nanoseconds(random.below(60'000))); break;
                default:
                    mine = lock.try_lock_until(std::chrono::system_clock::now() +
                                               std::chrono::microseconds(random.below(60)));
            }
            if (!mine) continue;
            ++count;
            taken.fetch_add(1, std::memory_order_relaxed);
            if (random.one_in(8)) std::this_thread::yield();
            lock.unlock();
        }
    });
    threads.join();
    EXPECT_EQ(count, taken.load());
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    EXPECT_EQ(tocsin::waiting_on(&lock), 0u);
}

TYPED_TEST(EveryWordLock, ATimeoutIsNeverEarlyAndLeavesNothingBehind) {
    word_lock<TypeParam> lock;
    lock.lock();
    for (int i = 1; i <= 10; ++i) {
        const auto steady = std::chrono::steady_clock::now() + i * 113us;
        EXPECT_FALSE(lock.try_lock_until(steady));
        EXPECT_GE(std::chrono::steady_clock::now(), steady);
        const auto system = std::chrono::system_clock::now() + i * 113us;
        EXPECT_FALSE(lock.try_lock_until(system));
        EXPECT_GE(std::chrono::system_clock::now(), system);
        const auto slow = support::slow_clock::now() + i * 113us;
        EXPECT_FALSE(lock.try_lock_until(slow));
        EXPECT_GE(support::slow_clock::now(), slow);
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_FALSE(lock.try_lock_for(i * 113us));
        EXPECT_GE(std::chrono::steady_clock::now() - begin, i * 113us);
    }
    EXPECT_EQ(tocsin::waiting_on(&lock), 0u);
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_for(std::chrono::hours::max()));
    lock.unlock();
}

TYPED_TEST(EveryWordLock, AnEndlessTimeoutGetsTheLockInTheEnd) {
    word_lock<TypeParam> lock;
    lock.lock();
    thread_group threads;
    threads.start("for", [&] {
        EXPECT_TRUE(lock.try_lock_for(std::chrono::hours::max()));
        lock.unlock();
    });
    threads.start("until", [&] {
        EXPECT_TRUE(lock.try_lock_until(std::chrono::system_clock::time_point::max()));
        lock.unlock();
    });
    until_parked(&lock, 2);
    lock.unlock();
    threads.join();
}

// A waiter that gives up just as the lock is freed must not leave the others asleep.
TYPED_TEST(EveryWordLock, AWakeMeantForOneThatGaveUpReachesTheNext) {
    support::random_source random(5);
    word_lock<TypeParam> lock;
    for (int round = 0; round < rounds(300, 100); ++round) {
        lock.lock();
        thread_group threads;
        threads.start("gives up", [&, longest = std::chrono::microseconds(20 + random.below(200))] {
            if (lock.try_lock_for(longest)) lock.unlock();
        });
        threads.start("patient", [&] {
            lock.lock();
            lock.unlock();
        });
        support::until("the patient thread is parked", [&] { return tocsin::waiting_on(&lock) >= 1; });
        for (std::uint64_t i = random.below(30'000); i > 0; --i) asm volatile("" ::: "memory");
        lock.unlock();
        threads.join();
    }
}

// With long holds a woken thread often comes too late. If each unlock woke another one, all of them would run for
// nothing. But if the woken thread gets no processor for 20 ms, the next unlock wakes another.
TYPED_TEST(EveryWordLock, AnUnlockWakesAnotherThreadOnlyIfTheWokenOneIsLongOverdue) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    bool in_time = false;  // this thread may lose its processor for longer than 20 ms
    for (int trial = 0; !in_time && trial != 100; ++trial) {
        word_lock<TypeParam> lock;
        std::vector<int> order;
        const auto take_a_turn = [&](int number) {
            std::lock_guard held(lock);
            order.push_back(number);
        };
        lock.lock();
        thread_group threads;
        for (int number = 0; number != 3; ++number) {
            threads.start("waiter", [&, number] { take_a_turn(number); });
            until_parked(&lock, static_cast<std::size_t>(number) + 1);
            support::until_sound_asleep(threads.id(static_cast<std::size_t>(number)));
        }
        freezer frost;
        frost.freeze(threads.handle(0));
        const auto begin = std::chrono::steady_clock::now();
        for (int turn = 0; turn != 10; ++turn) {
            lock.unlock();  // the first of them wakes the frozen thread, the others nobody
            support::until("the lock is free", [&] { return lock.try_lock(); });
        }
        in_time = std::chrono::steady_clock::now() - begin < 10ms;
        EXPECT_TRUE(!in_time || tocsin::waiting_on(&lock) == 3u);
        std::this_thread::sleep_until(begin + 40ms);  // no fact to wait for: the thread is to be overdue
        EXPECT_TRUE(!in_time || order.empty());
        lock.unlock();
        support::until_parked(&lock, 1);  // the frozen thread, whose node stays
        frost.thaw();
        threads.join();
        EXPECT_TRUE(!in_time || order == (std::vector{1, 2, 0}));
    }
    EXPECT_TRUE(in_time);
}

TYPED_TEST(EveryWordLock, AWaiterThatWasWokenInVainGoesToTheEnd) {
    bool in_vain = false;  // a waiter may be faster than this thread
    for (int trial = 0; !in_vain && trial != 100; ++trial) {
        word_lock<TypeParam> lock;
        std::vector<int> order;
        lock.lock();
        thread_group threads;
        for (int number = 0; number != 3; ++number) {
            threads.start("waiter", [&, number] {
                std::lock_guard held(lock);
                order.push_back(number);
            });
            until_parked(&lock, static_cast<std::size_t>(number) + 1);
            support::until_sound_asleep(threads.id(static_cast<std::size_t>(number)));
        }
        lock.unlock();
        const bool passed = lock.try_lock();
        in_vain = passed && order.empty();
        if (in_vain) support::until_sound_asleep(threads.id(0));
        if (passed) lock.unlock();
        threads.join();
        EXPECT_EQ(order.size(), 3u);
        EXPECT_EQ(order.front(), in_vain ? 1 : 0);
        // If this thread passed a later waiter than the first, that one may have gone to the end.
        if (in_vain || !passed) {
            EXPECT_EQ(order, in_vain ? (std::vector{1, 2, 0}) : (std::vector{0, 1, 2}));
        }
    }
    EXPECT_TRUE(in_vain);
}

TYPED_TEST(EveryWordLock, NothingUncontendedMakesASystemCall) {
    const auto calls = support::system_calls_of([] {
        word_lock<TypeParam> lock;
        for (int i = 0; i < 100; ++i) {
            lock.lock();
            if (lock.try_lock() || lock.try_lock_for(0s) || lock.try_lock_for(-1h)) _exit(1);
            lock.unlock();
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

TEST(WordLock, NeighboursAreIndependentLocks) {
    std::array<word_lock<std::uint8_t>, 8> locks;
    for (auto& each : locks) each.lock();
    thread_group threads;
    threads.start_many(8, "waiter", [&](int i) {
        auto& mine = locks[static_cast<std::size_t>(i)];
        mine.lock();
        mine.unlock();
    });
    for (auto& each : locks) until_parked(&each, 1);
    for (std::size_t i = 8; i-- > 0;) {
        locks[i].unlock();
        threads.until_finished(8 - i);
        for (std::size_t other = 0; other < i; ++other) EXPECT_FALSE(threads.finished(other));
    }
}

TEST(WordLock, CanBeAGlobal) {
    std::scoped_lock held(global);
    EXPECT_FALSE(global.try_lock());
}

TEST(WordLock, MayBeDestroyedByTheNextHolder) {
    for (int round = 0; round < rounds(400, 200); ++round) {
        auto* lock = new word_lock<>;
        lock->lock();
        thread_group threads;
        threads.start("next holder", [&] {
            lock->lock();
            lock->unlock();
            delete lock;
        });
        if (round % 2 == 0) until_parked(lock, 1);
        lock->unlock();
        threads.join();
    }
}

#if TOCSIN_CHECKED
TEST(WordLockMisuse, UnlockingAnUnlockedLockIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    word_lock<> lock;
    EXPECT_DEATH_IF_SUPPORTED(lock.unlock(), "unlocked");
    lock.lock();
    lock.unlock();
    EXPECT_DEATH_IF_SUPPORTED(lock.unlock(), "unlocked");
}
#endif

}  // namespace
