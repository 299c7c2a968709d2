// SPDX-License-Identifier: Apache-2.0
// Storms of address waits and of locks built on them.
#include "facts.hpp"
#include "printing.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using namespace support;
using namespace tocsin;

template <class Word>
class AddressStorm : public testing::Test {};
using widths = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(AddressStorm, widths);
// They share one storm's time: only loads and changes of the word depend on the width.
constexpr int width_count = 4;

// Neighbouring words, each of which a pair of threads passes to and fro. A wake may come late, when the partner has
// already seen the value and moved on.
TYPED_TEST(AddressStorm, HandOffsBetweenNeighboursLoseNothing) {
    const stress_time time(width_count);
    constexpr std::size_t pairs = 4;
    alignas(64) std::array<std::atomic<TypeParam>, pairs> words{};
    std::atomic<long> steps{0};
    std::atomic<long> late{0};
    thread_group threads;
    threads.start_many(2 * pairs, "player", [&](int number) {
        const auto which = static_cast<std::size_t>(number) / 2;
        const auto parity = static_cast<unsigned>(number % 2);
        auto& word = words[which];
        random_source random(static_cast<std::uint64_t>(number));
        for (;;) {
            TypeParam value = word.load(std::memory_order_acquire);
            while (value % 2 != parity) {  // the partner's turn
                if (value == TypeParam(0xFE) || value == TypeParam(0xFF)) return;
                if (wait_on_address(&word, value) == address_status::woken &&
                    word.load(std::memory_order_relaxed) == value) {
                    late.fetch_add(1);
                }
                value = word.load(std::memory_order_acquire);
            }
            if (value == TypeParam(0xFE) || value == TypeParam(0xFF)) return;
            jitter(random);
            steps.fetch_add(1, std::memory_order_relaxed);
            const bool last = time.is_over();
            const auto next = last ? static_cast<TypeParam>(0xFE + (1 - parity))
                                   : static_cast<TypeParam>((value + 1) % 0xF0);
            switch (random.below(4)) {
                case 0:
                    word.store(next, std::memory_order_release);
                    wake_by_address_one(&word);
                    break;
                case 1: tocsin::store(&word, next, tocsin::wake_one); break;
                case 2: EXPECT_EQ(tocsin::exchange(&word, next, tocsin::wake_n(1)), value); break;
                default: EXPECT_TRUE(tocsin::compare_exchange(&word, value, next, tocsin::wake_all));
            }
            if (last) return;
        }
    });
    threads.join();
    std::printf("%zu bytes: %ld hand-offs, %ld late wakes\n", sizeof(TypeParam), steps.load(), late.load());
}

// Each release that a wake reports is exactly one wait that reports that it was woken.
TYPED_TEST(AddressStorm, WakesGivenAreWakesReceived) {
    const stress_time time(width_count);
    alignas(64) std::array<std::atomic<TypeParam>, 3> words{};
    std::array<std::atomic<long>, 3> received{};
    std::array<long, 3> given{};
    std::atomic<long> timed_out{0};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(6, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 50);
        while (!enough.load()) {
            const auto which = random.below(3);
            const nanoseconds longest(random.below(150'000));
            std::stop_source stop;
            const auto how = random.one_in(3) ? wait_on_address(&words[which], 0, longest, stop.get_token())
                                              : wait_on_address(&words[which], 0, longest);
            if (how == address_status::woken) {
                received[which].fetch_add(1);
            } else {
                timed_out.fetch_add(1);
            }
        }
    });
    random_source random(99);
    while (!time.is_over()) {
        const auto which = random.below(3);
        switch (random.below(3)) {
            case 0: given[which] += static_cast<long>(wake_by_address_one(&words[which])); break;
            case 1:
                given[which] += static_cast<long>(wake_by_address_n(&words[which], random.below(4)));
                break;
            default: given[which] += static_cast<long>(wake_by_address_all(&words[which]));
        }
        jitter(random);
    }
    enough.store(true);
    threads.join();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(received[i].load(), given[i]) << "word " << i;
    std::printf("%zu bytes: %ld + %ld + %ld wakes, %ld timeouts\n", sizeof(TypeParam), given[0], given[1],
                given[2], timed_out.load());
}

// A counting semaphore of the simplest kind.
TYPED_TEST(AddressStorm, ASemaphoreKeepsItsCount) {
    const stress_time time(width_count);
    std::atomic<TypeParam> permits{2};
    std::atomic<int> inside{0};
    std::atomic<long> entered{0};
    thread_group threads;
    threads.start_many(6, "user", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 100);
        while (!time.is_over()) {
            for (TypeParam now = permits.load();;) {
                if (now == 0) {
                    (void)wait_on_address(&permits, 0);
                    now = permits.load();
                } else if (permits.compare_exchange_weak(now, static_cast<TypeParam>(now - 1))) {
                    break;
                }
            }
            EXPECT_LE(inside.fetch_add(1) + 1, 2);
            entered.fetch_add(1);
            jitter(random);
            inside.fetch_sub(1);
            if (random.one_in(2)) {
                permits.fetch_add(1);
                wake_by_address_one(&permits);
            } else {
                tocsin::fetch_add(&permits, TypeParam{1}, tocsin::wake_one);
            }
        }
    });
    threads.join();
    EXPECT_EQ(permits.load(), 2);
    std::printf("%zu bytes: entered %ld times\n", sizeof(TypeParam), entered.load());
}

// Locks with timeouts, alongside bits of the same word that the user changes.
TYPED_TEST(AddressStorm, LocksExcludeUnderTimeouts) {
    const stress_time time(width_count);
    tocsin::word_lock<TypeParam> whole;
    std::atomic<TypeParam> word{0};
    std::array<long, 3> counts{};
    std::array<std::atomic<long>, 3> taken{};
    std::atomic<long> refused{0};
    thread_group threads;
    threads.start_many(6, "locker", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 150);
        const auto use = [&](auto& lock, std::size_t which) {
            const nanoseconds longest(random.below(30'000));
            const bool mine = random.one_in(3)   ? lock.try_lock_for(longest)
                              : random.one_in(4) ? lock.try_lock()
                                                 : (lock.lock(), true);
            if (!mine) {
                refused.fetch_add(1);
                return;
            }
            ++counts[which];
            jitter(random);
            taken[which].fetch_add(1);
            lock.unlock();
        };
        tocsin::bit_lock first(word, 1);
        tocsin::bit_lock second(word, 6);
        while (!time.is_over()) {
            switch (random.below(4)) {
                case 0: use(whole, 0); break;
                case 1: use(first, 1); break;
                case 2: use(second, 2); break;
                default: word.fetch_xor(static_cast<TypeParam>(0b0000'1000));
            }
        }
    });
    threads.join();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(counts[i], taken[i].load());
    EXPECT_EQ(word.load() & ~TypeParam{0b1000}, 0);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
    EXPECT_EQ(tocsin::waiting_on(&whole), 0u);
    std::printf("%zu bytes: %ld + %ld + %ld locks, %ld refused\n", sizeof(TypeParam), counts[0], counts[1],
                counts[2], refused.load());
}

// A lock of the simplest kind, made of changes that wake. Its bit is alongside others that the users flip.
TYPED_TEST(AddressStorm, ALockOfChangesThatWakeExcludes) {
    const stress_time time(width_count);
    constexpr TypeParam locked = 1;
    std::atomic<TypeParam> word{0};
    long count = 0;
    std::atomic<long> taken{0};
    thread_group threads;
    threads.start_many(5, "user", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 200);
        while (!time.is_over()) {
            for (TypeParam seen; ((seen = word.fetch_or(locked)) & locked) != 0;)
                (void)wait_on_address(&word, seen);
            ++count;
            jitter(random);
            taken.fetch_add(1);
            switch (random.below(3)) {
                case 0: tocsin::fetch_and(&word, static_cast<TypeParam>(~locked), tocsin::wake_one); break;
                case 1: tocsin::fetch_xor(&word, static_cast<TypeParam>(locked | 2), tocsin::wake_one); break;
                default: tocsin::fetch_sub(&word, locked, tocsin::wake_one);
            }
        }
    });
    threads.join();
    EXPECT_EQ(count, taken.load());
    EXPECT_EQ(word.load() & locked, 0);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
    std::printf("%zu bytes: %ld turns\n", sizeof(TypeParam), count);
}

}  // namespace
