// SPDX-License-Identifier: Apache-2.0
// WaitOnAddress, WakeByAddressSingle, WakeByAddressAll.
#include "system.hpp"

#include <array>
#include <atomic>
#include <cstring>

namespace {

using namespace win32;

template <class Word>
class EveryWidth : public testing::Test {};
using widths = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(EveryWidth, widths);

// Waits until the word is no longer `undesired`.
template <class Word>
BOOL wait_on(std::atomic<Word>& word, Word undesired, DWORD milliseconds = INFINITE) {
    return WaitOnAddress(&word, &undesired, sizeof undesired, milliseconds);
}

TYPED_TEST(EveryWidth, ReturnsAtOnceIfTheValueDiffers) {
    std::atomic<TypeParam> word{5};
    for (const DWORD time : {DWORD{0}, DWORD{1}, DWORD{INFINITE}}) {
        for (unsigned bit = 0; bit < 8 * sizeof(TypeParam); ++bit) {
            const auto other = static_cast<TypeParam>(TypeParam{5} ^ TypeParam(TypeParam{1} << bit));
            SetLastError(untouched);
            EXPECT_EQ(wait_on(word, other, time), TRUE);
            EXPECT_EQ(GetLastError(), untouched);
        }
    }
}

// 1460, and not the 258 of other waits.
TYPED_TEST(EveryWidth, TimesOutWithAnErrorOfItsOwn) {
    std::atomic<TypeParam> word{5};
    for (const DWORD time : {0u, 1u, 20u}) {
        EXPECT_GE(time_of([&] {
                      SetLastError(untouched);
                      EXPECT_EQ(wait_on(word, TypeParam{5}, time), FALSE);
                      EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
                  }),
                  at_least(std::chrono::milliseconds(time)));
    }
}

TYPED_TEST(EveryWidth, IsWokenAndLooksAtNothing) {
    std::atomic<TypeParam> word{5};
    thread_group threads;
    threads.start([&] {
        SetLastError(untouched);
        EXPECT_EQ(wait_on(word, TypeParam{5}), TRUE);
        EXPECT_EQ(GetLastError(), untouched);
    });
    until_waits(threads, 0);
    WakeByAddressSingle(&word);  // the value is the same
}

TYPED_TEST(EveryWidth, ComparesItsBytesAndNoOthers) {
    struct alignas(8) {
        std::array<unsigned char, 24> bytes{};
    } memory;
    TypeParam same = 0;
    unsigned char* const middle = memory.bytes.data() + 8;
    std::memset(memory.bytes.data(), 0xFF, memory.bytes.size());
    std::memset(middle, 0, sizeof same);
    SetLastError(untouched);
    EXPECT_EQ(WaitOnAddress(middle, &same, sizeof same, 0), FALSE);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
    middle[sizeof same - 1] = 1;
    EXPECT_EQ(WaitOnAddress(middle, &same, sizeof same, 0), TRUE);
}

TYPED_TEST(EveryWidth, WakesOneAtATimeInTheOrderOfTheirWaits) {
    std::atomic<TypeParam> word{5};
    thread_group threads;
    for (std::size_t i = 0; i < 3; ++i) {
        threads.start([&] { EXPECT_EQ(wait_on(word, TypeParam{5}), TRUE); });
        until_waits(threads, i);
    }
    for (std::size_t i = 0; i < 3; ++i) {
        WakeByAddressSingle(&word);
        threads.until_finished(i + 1);
        EXPECT_TRUE(threads.finished(i));
    }
}

TYPED_TEST(EveryWidth, WakesAll) {
    std::atomic<TypeParam> word{5};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) { EXPECT_EQ(wait_on(word, TypeParam{5}), TRUE); });
    until_all_wait(threads);
    word.store(6);
    WakeByAddressAll(&word);
}

TEST(Address, OfAnotherSizeIsRefusedWithoutBeingRead) {
    std::uint64_t word = 0;
    for (const SIZE_T size : {0, 3, 5, 6, 7, 9, 16}) {
        for (const DWORD time : {DWORD{0}, DWORD{INFINITE}}) {
            EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitOnAddress, &word, &word, size, time));
            EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitOnAddress, nullptr, nullptr, size, time));
        }
    }
    const SIZE_T great = ~(~SIZE_T{0} >> 1) | 4;  // the highest bit and that of a good size
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitOnAddress, &word, &word, great, DWORD{0}));
}

// Windows reads at these addresses: it crashes, or waits on x86.
TEST(Address, OfNothingOrNotAlignedIsRefused) {
    if (!over_tocsin) GTEST_SKIP() << "Windows would read there";
    alignas(8) std::array<unsigned char, 16> memory{};
    std::uint64_t zero = 0;
    for (const SIZE_T size : {1, 2, 4, 8}) {
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitOnAddress, nullptr, &zero, size, 0u));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitOnAddress, &zero, nullptr, size, 0u));
        if (size > 1) {
            EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitOnAddress, memory.data() + 1, &zero, size, 0u));
            EXPECT_TRUE(
                fails(ERROR_INVALID_PARAMETER, WaitOnAddress, memory.data() + size / 2, &zero, size, 0u));
        }
    }
}

TEST(Wake, OfNobodyIsNotRemembered) {
    std::atomic<std::uint32_t> word{5};
    WakeByAddressSingle(&word);
    WakeByAddressAll(&word);
    EXPECT_FALSE(wait_on(word, 5u, 5));
}

TEST(Wake, OfNothingDoesNothing) {
    SetLastError(untouched);
    WakeByAddressSingle(nullptr);
    WakeByAddressAll(nullptr);
    EXPECT_EQ(GetLastError(), untouched);
}

// Observed.
TEST(Wake, ReachesWaitersOfEverySizeAtItsAddress) {
    alignas(8) std::uint64_t word = 0;
    thread_group threads;
    for (const SIZE_T size : {1, 2, 4, 8}) {
        threads.start([&, size] {
            std::uint64_t zero = 0;
            EXPECT_TRUE(works(WaitOnAddress, &word, &zero, size, INFINITE));
        });
    }
    until_all_wait(threads);
    WakeByAddressAll(&word);
}

TEST(Wake, ReachesNoNeighbour) {
    alignas(8) std::array<std::uint8_t, 8> bytes{};
    thread_group threads;
    threads.start([&] {
        std::uint8_t zero = 0;
        EXPECT_TRUE(works(WaitOnAddress, &bytes[3], &zero, SIZE_T{1}, INFINITE));
    });
    until_waits(threads, 0);
    for (const std::size_t other : {0u, 1u, 2u, 4u, 7u}) {
        WakeByAddressSingle(&bytes[other]);
        WakeByAddressAll(&bytes[other]);
    }
    nap(5ms);
    EXPECT_FALSE(threads.finished(0));
    WakeByAddressSingle(&bytes[3]);
}

TEST(Wake, OfOneTwiceReleasesTwo) {
    for (int i = 0; i < few(100, 10); ++i) {
        std::atomic<std::uint32_t> word{5};
        thread_group threads;
        threads.start_many(2, "waiter", [&](int) { EXPECT_TRUE(wait_on(word, 5u)); });
        until_all_wait(threads);
        WakeByAddressSingle(&word);
        WakeByAddressSingle(&word);
    }
}

TEST(Wake, IsNotLostInARace) {
    const std::uint32_t last = static_cast<std::uint32_t>(few(3000, 300));
    std::atomic<std::uint32_t> there{0}, back{0};
    thread_group threads;
    threads.start([&] {
        for (std::uint32_t i = 1; i <= last; ++i) {
            while (there.load() != i) ASSERT_TRUE(wait_on(there, i - 1, 30'000));
            back.store(i);
            WakeByAddressSingle(&back);
        }
    });
    for (std::uint32_t i = 1; i <= last; ++i) {
        there.store(i);
        WakeByAddressSingle(&there);
        while (back.load() != i) ASSERT_TRUE(wait_on(back, i - 1, 30'000));
    }
}

}  // namespace
