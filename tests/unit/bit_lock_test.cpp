// SPDX-License-Identifier: Apache-2.0
// Locks in single bits of a word that belongs to the user.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/bit_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using support::rounds;
using support::thread_group;
using support::until_parked;
using tocsin::bit_lock;

template <class Word>
class EveryBitLock : public testing::Test {};
using widths = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(EveryBitLock, widths);

template <class Word>
constexpr Word bit(unsigned number) {
    return static_cast<Word>(Word{1} << number);
}

TYPED_TEST(EveryBitLock, TakesExactlyItsBit) {
    for (const TypeParam user : {TypeParam{0}, static_cast<TypeParam>(~TypeParam{0})}) {
        for (unsigned number = 0; number < sizeof(TypeParam) * 8; ++number) {
            const auto others = static_cast<TypeParam>(user & ~bit<TypeParam>(number));
            std::atomic<TypeParam> word{others};
            bit_lock lock(word, number);
            lock.lock();
            EXPECT_EQ(word.load(), static_cast<TypeParam>(others | bit<TypeParam>(number)));
            EXPECT_FALSE(lock.try_lock());
            lock.unlock();
            EXPECT_EQ(word.load(), others);
        }
    }
}

TYPED_TEST(EveryBitLock, ABitThatTheWordDoesNotHaveIsRefused) {
    std::atomic<TypeParam> word{0};
    constexpr unsigned bits = sizeof(TypeParam) * 8;
    EXPECT_NO_THROW(bit_lock(word, bits - 1));
    EXPECT_THROW(bit_lock(word, bits), std::invalid_argument);
    EXPECT_THROW(bit_lock(word, std::numeric_limits<unsigned>::max()), std::invalid_argument);
    try {
        bit_lock lock(word, bits + 1);
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("bit"), std::string::npos) << error.what();
    }
}

TYPED_TEST(EveryBitLock, WorksWithTheLockTypesOfTheStandard) {
    std::atomic<TypeParam> word{0};
    bit_lock first(word, 0);
    bit_lock second(word, 5);
    {
        std::scoped_lock both(first, second);
        EXPECT_EQ(word.load(), 0b100001);
    }
    EXPECT_EQ(word.load(), 0);
    std::unique_lock held(first, 1ms);
    EXPECT_TRUE(held.owns_lock());
    bit_lock same_bit(word, 0);
    std::unique_lock refused(same_bit, std::try_to_lock);
    EXPECT_FALSE(refused.owns_lock());
    EXPECT_FALSE(refused.try_lock_for(1ms));
    EXPECT_FALSE(refused.try_lock_until(std::chrono::system_clock::now()));
}

TYPED_TEST(EveryBitLock, HandlesOnOneBitAreOneLock) {
    std::atomic<TypeParam> word{0};
    long count = 0;
    const int each = rounds(15'000, 2'000);
    thread_group threads;
    threads.start_many(4, "adder", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number));
        bit_lock mine(word, 3);
        for (int i = 0; i < each; ++i) {
            std::lock_guard held(mine);
            ++count;
            if (random.one_in(64)) std::this_thread::yield();
        }
    });
    threads.join();
    EXPECT_EQ(count, 4L * each);
    EXPECT_EQ(word.load(), 0);
}

// Three bits of a word are locks at once, and the top bit belongs to the user: none disturbs another.
TYPED_TEST(EveryBitLock, BitsOfOneWordAreIndependentLocks) {
    std::atomic<TypeParam> word{0};
    constexpr unsigned locks = 3;
    constexpr unsigned users = sizeof(TypeParam) * 8 - 1;
    std::array<long, locks> counts{};
    const int each = rounds(6'000, 1'500);
    thread_group threads;
    threads.start_many(2 * locks, "adder", [&](int number) {
        const auto which = static_cast<unsigned>(number) % locks;
        support::random_source random(static_cast<std::uint64_t>(number));
        bit_lock mine(word, which);
        for (int i = 0; i < each; ++i) {
            if (random.one_in(4)) {
                if (!mine.try_lock_for(std::chrono::microseconds(random.below(50)))) {
                    --i;
                    continue;
                }
            } else {
                mine.lock();
            }
            ++counts[which];
            if (random.one_in(32)) std::this_thread::yield();
            mine.unlock();
        }
    });
    threads.start("user of another bit", [&] {
        for (int i = 0; i < each; ++i) {
            EXPECT_EQ(word.fetch_xor(bit<TypeParam>(users)) & bit<TypeParam>(users),
                      i % 2 == 0 ? 0 : bit<TypeParam>(users));
        }
    });
    threads.join();
    for (const long count : counts) EXPECT_EQ(count, 2L * each);
    EXPECT_EQ(word.load() & ~bit<TypeParam>(users), 0);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
}

// One thread waits for each bit. Freeing a bit releases its waiter and no other, in whatever order they came.
TYPED_TEST(EveryBitLock, AWaiterNeverTakesTheWakeOfAnotherBit) {
    std::atomic<TypeParam> word{0b1111};
    thread_group threads;
    for (unsigned number = 0; number < 4; ++number) {
        threads.start("waiter", [&, number] {
            bit_lock mine(word, number);
            mine.lock();
        });
        until_parked(&word, number + 1);
    }
    std::size_t released = 0;
    for (const unsigned number : {2u, 3u, 0u, 1u}) {
        bit_lock(word, number).unlock();
        threads.until_finished(++released);
        EXPECT_TRUE(threads.finished(number));
        EXPECT_EQ(threads.finished(), released);
        EXPECT_EQ(word.load(), 0b1111) << "the released waiter holds its bit";
        until_parked(&word, 4 - released);
    }
}

TYPED_TEST(EveryBitLock, AThreadThatGivesUpOnABitLeavesTheOthersTheirWakes) {
    std::atomic<TypeParam> word{0b11};
    thread_group threads;
    threads.start("patient on bit 1", [&] {
        bit_lock mine(word, 1);
        mine.lock();
        mine.unlock();
    });
    until_parked(&word, 1);
    bit_lock first(word, 0);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(first.try_lock_for(200us));
    EXPECT_EQ(tocsin::waiting_on(&word), 1u);
    bit_lock(word, 1).unlock();
    threads.join();
    EXPECT_EQ(word.load(), 0b01);
}

TYPED_TEST(EveryBitLock, ATimeoutIsNeverEarly) {
    std::atomic<TypeParam> word{1};
    bit_lock lock(word, 0);
    for (int i = 1; i <= 15; ++i) {
        const auto steady = std::chrono::steady_clock::now() + i * 67us;
        EXPECT_FALSE(lock.try_lock_until(steady));
        EXPECT_GE(std::chrono::steady_clock::now(), steady);
        const auto system = std::chrono::system_clock::now() + i * 67us;
        EXPECT_FALSE(lock.try_lock_until(system));
        EXPECT_GE(std::chrono::system_clock::now(), system);
    }
    EXPECT_EQ(word.load(), 1);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
}

TEST(BitLock, NothingUncontendedMakesASystemCall) {
    const auto calls = support::system_calls_of([] {
        std::atomic<std::uint64_t> word{0};
        bit_lock first(word, 0);
        bit_lock last(word, 63);
        for (int i = 0; i < 100; ++i) {
            first.lock();
            last.lock();
            if (first.try_lock() || last.try_lock_for(0s)) _exit(1);
            last.unlock();
            first.unlock();
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

#if TOCSIN_CHECKED
TEST(BitLockMisuse, UnlockingAnUnlockedBitIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    std::atomic<std::uint32_t> word{0b1011};
    bit_lock lock(word, 2);
    EXPECT_DEATH_IF_SUPPORTED(lock.unlock(), "bit.*2");
}
#endif

}  // namespace
