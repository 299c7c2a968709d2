// SPDX-License-Identifier: Apache-2.0
// Changes that wake (address.hpp): every operation at every width, on atomic and plain objects.
#include "facts.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace {

using namespace support;
using namespace tocsin;

static_assert(wake_one.max == 1);
static_assert(wake_n(3).max == 3);
static_assert(wake_all.max == std::numeric_limits<std::size_t>::max());

template <class Word>
class EveryChange : public testing::Test {
public:
    using atomic = std::atomic<Word>;
    static constexpr int changes = 8;

    // The number-th change. Each turns 6 into another value.
    template <class Object>
    static void change(int number, Object& object, wake_count count) {
        Word expected{6};
        switch (number) {
            case 0: tocsin::store(&object, Word{1}, count); break;
            case 1: EXPECT_EQ(tocsin::exchange(&object, Word{1}, count), 6); break;
            case 2: EXPECT_TRUE(tocsin::compare_exchange(&object, expected, Word{1}, count)); break;
            case 3: EXPECT_EQ(tocsin::fetch_add(&object, Word{1}, count), 6); break;
            case 4: EXPECT_EQ(tocsin::fetch_sub(&object, Word{1}, count), 6); break;
            case 5: EXPECT_EQ(tocsin::fetch_and(&object, Word{5}, count), 6); break;
            case 6: EXPECT_EQ(tocsin::fetch_or(&object, Word{1}, count), 6); break;
            default: EXPECT_EQ(tocsin::fetch_xor(&object, Word{3}, count), 6); break;
        }
    }
    // What it leaves.
    static Word result(int number) {
        constexpr Word results[changes] = {1, 1, 1, 7, 5, 4, 7, 5};
        return results[number];
    }
};
using words = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                             std::int16_t, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(EveryChange, words);

TYPED_TEST(EveryChange, ChangesAsTheAtomicsMembersDo) {
    for (int i = 0; i < TestFixture::changes; ++i) {
        std::atomic<TypeParam> word{6};
        this->change(i, word, wake_one);
        EXPECT_EQ(word.load(), this->result(i)) << i;
        alignas(sizeof(TypeParam)) TypeParam plain{6};
        this->change(i, plain, wake_all);
        EXPECT_EQ(plain, this->result(i)) << i;
    }
}

TYPED_TEST(EveryChange, WrapsAroundAsTheAtomicsMembersDo) {
    std::atomic<TypeParam> word{std::numeric_limits<TypeParam>::max()};
    EXPECT_EQ(tocsin::fetch_add(&word, TypeParam{1}, wake_one), std::numeric_limits<TypeParam>::max());
    EXPECT_EQ(word.load(), std::numeric_limits<TypeParam>::min());
    EXPECT_EQ(tocsin::fetch_sub(&word, TypeParam{1}, wake_one), std::numeric_limits<TypeParam>::min());
    EXPECT_EQ(word.load(), std::numeric_limits<TypeParam>::max());
}

TYPED_TEST(EveryChange, ReleasesAWaiter) {
    for (int i = 0; i < TestFixture::changes; ++i) {
        std::atomic<TypeParam> word{6};
        thread_group threads;
        threads.start("waiter",
                      [&] { EXPECT_EQ(wait_on_address(&word, TypeParam{6}), address_status::woken); });
        until_parked(&word, 1);
        this->change(i, word, wake_one);
        threads.join();
        EXPECT_EQ(tocsin::waiting_on(&word), 0u);
    }
}

TYPED_TEST(EveryChange, ReleasesAWaiterOnAPlainObject) {
    for (int i = 0; i < TestFixture::changes; ++i) {
        alignas(sizeof(TypeParam)) TypeParam word{6};
        thread_group threads;
        threads.start("waiter",
                      [&] { EXPECT_EQ(tocsin::wait_until_changed(&word, TypeParam{6}), this->result(i)); });
        until_parked(&word, 1);
        this->change(i, word, wake_all);
        threads.join();
    }
}

TYPED_TEST(EveryChange, ReleasesAsManyAsItIsToldInOrderOfArrival) {
    for (int i = 0; i < TestFixture::changes; ++i) {
        std::atomic<TypeParam> word{6};
        constexpr std::size_t waiters = 5;
        thread_group threads;
        for (std::size_t w = 0; w < waiters; ++w) {
            threads.start("waiter", [&] { (void)wait_on_address(&word, TypeParam{6}); });
            until_parked(&word, w + 1);
        }
        this->change(i, word, wake_n(0));
        EXPECT_EQ(tocsin::waiting_on(&word), 5u) << i;
        word.store(6);
        this->change(i, word, wake_one);
        EXPECT_EQ(tocsin::waiting_on(&word), 4u) << i;
        threads.until_finished(1);
        EXPECT_TRUE(threads.finished(0)) << i;
        word.store(6);
        this->change(i, word, wake_n(2));
        EXPECT_EQ(tocsin::waiting_on(&word), 2u) << i;
        threads.until_finished(3);
        EXPECT_TRUE(threads.finished(1) && threads.finished(2)) << i;
        word.store(6);
        this->change(i, word, wake_all);
        EXPECT_EQ(tocsin::waiting_on(&word), 0u) << i;
        threads.join();
    }
}

TYPED_TEST(EveryChange, WakesEvenIfItLeavesTheValueAsItWas) {
    std::atomic<TypeParam> word{6};
    thread_group threads;
    threads.start_many(8, "waiter",
                       [&](int) { EXPECT_EQ(wait_on_address(&word, TypeParam{6}), address_status::woken); });
    until_parked(&word, 8);
    TypeParam expected{6};
    tocsin::store(&word, TypeParam{6}, wake_one);
    tocsin::exchange(&word, TypeParam{6}, wake_one);
    EXPECT_TRUE(tocsin::compare_exchange(&word, expected, TypeParam{6}, wake_one));
    tocsin::fetch_add(&word, TypeParam{0}, wake_one);
    tocsin::fetch_sub(&word, TypeParam{0}, wake_one);
    tocsin::fetch_and(&word, TypeParam{6}, wake_one);
    tocsin::fetch_or(&word, TypeParam{6}, wake_one);
    EXPECT_EQ(tocsin::waiting_on(&word), 1u);
    tocsin::fetch_xor(&word, TypeParam{0}, wake_one);
    threads.join();
}

TYPED_TEST(EveryChange, ACompareExchangeThatFailsWakesNobodyAndTellsTheValue) {
    std::atomic<TypeParam> word{6};
    thread_group threads;
    threads.start("waiter", [&] { (void)wait_on_address(&word, TypeParam{6}); });
    until_parked(&word, 1);
    threads.until_asleep(0);
    const auto before = support::switches_of(threads.id(0));
    TypeParam expected{5};
    EXPECT_FALSE(tocsin::compare_exchange(&word, expected, TypeParam{1}, wake_all));
    EXPECT_EQ(expected, 6);
    EXPECT_EQ(word.load(), 6);
    EXPECT_EQ(tocsin::waiting_on(&word), 1u);
    EXPECT_EQ(support::switches_of(threads.id(0)).voluntary, before.voluntary);
    EXPECT_TRUE(tocsin::compare_exchange(&word, expected, TypeParam{1}, wake_all)) << "with what it was told";
    threads.join();
}

TYPED_TEST(EveryChange, LeavesNeighboursAlone) {
    alignas(64) std::atomic<TypeParam> parts[2] = {6, 6};
    thread_group threads;
    threads.start("neighbour", [&] { (void)wait_on_address(&parts[1], TypeParam{6}); });
    until_parked(&parts[1], 1);
    for (int i = 0; i < TestFixture::changes; ++i) {
        parts[0].store(6);
        this->change(i, parts[0], wake_all);
        EXPECT_EQ(parts[1].load(), 6) << i;
        EXPECT_EQ(tocsin::waiting_on(&parts[1]), 1u) << i;
    }
    this->change(0, parts[1], wake_all);
    threads.join();
}

TYPED_TEST(EveryChange, PublishesToAThreadThatSeesIt) {
    for (int round = 0; round < 20 * TestFixture::changes; ++round) {
        std::atomic<TypeParam> word{6};
        int data = 0;
        thread_group threads;
        threads.start("waiter", [&] {
            (void)tocsin::wait_until_changed(&word, TypeParam{6});
            EXPECT_EQ(data, round + 1);
        });
        if (round % 2 == 0) until_parked(&word, 1);
        data = round + 1;
        this->change(round % TestFixture::changes, word, wake_one);
        threads.join();
    }
}

TYPED_TEST(EveryChange, NeverThrows) {
    std::atomic<TypeParam> word{6};
    TypeParam value{6};
    static_assert(noexcept(tocsin::store(&word, value, wake_one)));
    static_assert(noexcept(tocsin::exchange(&word, value, wake_one)));
    static_assert(noexcept(tocsin::compare_exchange(&word, value, value, wake_one)));
    static_assert(noexcept(tocsin::fetch_add(&word, value, wake_one)));
    static_assert(noexcept(tocsin::fetch_sub(&value, value, wake_one)));
    static_assert(noexcept(tocsin::fetch_and(&value, value, wake_one)));
    static_assert(noexcept(tocsin::fetch_or(&value, value, wake_one)));
    static_assert(noexcept(tocsin::fetch_xor(&value, value, wake_one)));
    static_assert(std::is_same_v<decltype(tocsin::exchange(&word, value, wake_one)), TypeParam>);
    static_assert(std::is_same_v<decltype(tocsin::fetch_add(&value, value, wake_one)), TypeParam>);
}

enum class phase : std::uint8_t { closed, open };
struct pair {
    std::uint16_t first, second;
    bool operator==(const pair&) const = default;
};

// The types for which std::atomic<T> has the operation.
TEST(ChangeAndWake, TakesTheTypesThatAddressWaitsTake) {
    std::atomic<phase> door{phase::closed};
    EXPECT_EQ(tocsin::exchange(&door, phase::open, wake_all), phase::closed);
    std::atomic<bool> flag{false};
    tocsin::store(&flag, true, wake_all);
    EXPECT_TRUE(flag.load());
    std::atomic<float> number{1.5F};
    float seen = 1.5F;
    EXPECT_TRUE(tocsin::compare_exchange(&number, seen, 2.5F, wake_all));
    std::atomic<pair> both{pair{1, 2}};
    EXPECT_EQ(tocsin::exchange(&both, pair{3, 4}, wake_all), (pair{1, 2}));
    int parts[4] = {};
    std::atomic<int*> pointer{parts};
    EXPECT_EQ(tocsin::fetch_add(&pointer, 2, wake_all), &parts[0]);
    EXPECT_EQ(tocsin::fetch_sub(&pointer, 1, wake_all), &parts[2]);
    EXPECT_EQ(pointer.load(), &parts[1]);
    int* plain = parts;
    EXPECT_EQ(tocsin::exchange(&plain, nullptr, wake_all), &parts[0]);
    EXPECT_EQ(plain, nullptr);
    volatile std::uint32_t mapped = 1;
    EXPECT_EQ(tocsin::fetch_or(&mapped, 2u, wake_all), 1u);
    EXPECT_EQ(mapped, 3u);
    volatile std::atomic<std::uint32_t> both_kinds{1};
    EXPECT_EQ(tocsin::fetch_or(&both_kinds, 2u, wake_all), 1u);
    EXPECT_EQ(both_kinds.load(), 3u);
}

#if TOCSIN_CHECKED
TEST(ChangeAndWakeMisuse, AMisalignedObjectIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    alignas(16) unsigned char memory[16] = {};
    // Made without a cast, because a cast may assume alignment.
    const auto number = reinterpret_cast<std::uintptr_t>(memory) + 1;
    std::uint32_t* misaligned = nullptr;
    std::memcpy(&misaligned, &number, sizeof number);
    EXPECT_DEATH_IF_SUPPORTED(tocsin::store(misaligned, 1u, wake_one), "not aligned to its 4 bytes");
    EXPECT_DEATH_IF_SUPPORTED(tocsin::fetch_add(misaligned, 1u, wake_one), "not aligned to its 4 bytes");
}
#endif

}  // namespace
