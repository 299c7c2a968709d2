// SPDX-License-Identifier: Apache-2.0
// Waits on addresses: every width, exact wakes, deadlines, stops, and the forms with a predicate.
#include "clocks.hpp"
#include "facts.hpp"
#include "pages.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

template <class Word>
class EveryWidth : public testing::Test {};
using widths = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(EveryWidth, widths);

TYPED_TEST(EveryWidth, AValueThatDiffersReturnsAtOnce) {
    std::atomic<TypeParam> word{7};
    EXPECT_EQ(wait_on_address(&word, 8), address_status::differed);
    EXPECT_EQ(wait_on_address(&word, 8, 1h), address_status::differed);
    EXPECT_EQ(wait_on_address(&word, 8, 0s), address_status::differed);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(wait_on_address(&word, 8, 1h, stop.get_token()), address_status::differed);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
}

TYPED_TEST(EveryWidth, EveryBitCounts) {
    for (unsigned bit = 0; bit < sizeof(TypeParam) * 8; ++bit) {
        std::atomic<TypeParam> word{static_cast<TypeParam>(TypeParam{1} << bit)};
        EXPECT_EQ(wait_on_address(&word, 0), address_status::differed) << "bit " << bit;
        EXPECT_EQ(wait_on_address(&word, word.load(), 0s), address_status::timed_out);
    }
}

TYPED_TEST(EveryWidth, AWakeReleasesAWaiter) {
    std::atomic<TypeParam> word{0};
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait_on_address(&word, 0), address_status::woken); });
    until_parked(&word, 1);
    threads.until_asleep(0);
    word.store(1);
    EXPECT_FALSE(threads.finished(0)) << "a store alone wakes nobody";
    EXPECT_EQ(wake_by_address_one(&word), 1u);
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
}

TYPED_TEST(EveryWidth, AWakeReleasesEvenIfTheValueDidNotChange) {
    std::atomic<TypeParam> word{0};
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait_on_address(&word, 0), address_status::woken); });
    until_parked(&word, 1);
    EXPECT_EQ(wake_by_address_all(&word), 1u);
    threads.join();
}

TYPED_TEST(EveryWidth, APlainObjectCanBeWaitedOn) {
    alignas(sizeof(TypeParam)) TypeParam word{0};
    thread_group threads;
    threads.start("waiter", [&] {
        while (std::atomic_ref<TypeParam>(word).load() == 0) (void)wait_on_address(&word, 0);
    });
    until_parked(&word, 1);
    std::atomic_ref<TypeParam>(word).store(1);
    EXPECT_EQ(wake_by_address_one(&word), 1u);
    threads.join();
}

TYPED_TEST(EveryWidth, WhatHappenedBeforeTheChangeIsVisibleAfterTheWait) {
    for (int round = 0; round < 200; ++round) {
        std::atomic<TypeParam> word{0};
        int data = 0;
        thread_group threads;
        threads.start("waiter", [&] {
            while (wait_on_address(&word, 0) != address_status::differed) {
            }
            EXPECT_EQ(data, round + 1);
        });
        if (round % 2 == 0) until_parked(&word, 1);
        data = round + 1;
        word.store(1, std::memory_order_release);
        wake_by_address_all(&word);
        threads.join();
    }
}

// The value neither changes nor is read: the wake itself publishes.
TYPED_TEST(EveryWidth, WhatHappenedBeforeTheWakeIsVisibleToTheWaiterItReleased) {
    for (int round = 0; round < 100; ++round) {
        std::atomic<TypeParam> word{0};
        int data = 0;
        thread_group threads;
        threads.start("waiter", [&] {
            EXPECT_EQ(wait_on_address(&word, 0), address_status::woken);
            EXPECT_EQ(data, round + 1);
        });
        until_parked(&word, 1);
        data = round + 1;
        EXPECT_EQ(wake_by_address_one(&word), 1u);
        threads.join();
    }
}

TYPED_TEST(EveryWidth, NeighboursInOneWordAreNotWoken) {
    alignas(64) std::array<std::atomic<TypeParam>, 16> words{};
    thread_group threads;
    threads.start_many(16, "waiter", [&](int i) {
        EXPECT_EQ(wait_on_address(&words[static_cast<std::size_t>(i)], 0), address_status::woken);
    });
    for (auto& each : words) until_parked(&each, 1);
    for (std::size_t i = 0; i < 16; ++i) support::until_sound_asleep(threads.id(i));
    const auto before = support::switches_of(threads.id(0));
    for (std::size_t i = 15; i > 0; --i) {
        EXPECT_EQ(wake_by_address_all(&words[i]), 1u);
        EXPECT_EQ(wake_by_address_one(&words[i]), 0u);
        threads.until_finished(16 - i);
        for (std::size_t other = 0; other < i; ++other) {
            EXPECT_FALSE(threads.finished(other)) << other << " was woken with " << i;
            EXPECT_EQ(tocsin::waiting_on(&words[other]), 1u);
        }
    }
    EXPECT_EQ(support::switches_of(threads.id(0)).voluntary, before.voluntary);
    EXPECT_EQ(wake_by_address_one(&words[0]), 1u);
    threads.join();
}

TYPED_TEST(EveryWidth, WakeOneWakesOneAndInOrderOfArrival) {
    std::atomic<TypeParam> word{0};
    constexpr std::size_t waiters = 8;
    thread_group threads;
    for (std::size_t i = 0; i < waiters; ++i) {
        threads.start("waiter", [&] { (void)wait_on_address(&word, 0); });
        until_parked(&word, i + 1);
    }
    for (std::size_t i = 0; i < waiters; ++i) {
        EXPECT_EQ(wake_by_address_one(&word), 1u);
        threads.until_finished(i + 1);
        EXPECT_TRUE(threads.finished(i)) << "after " << i + 1 << " wakes";
        EXPECT_EQ(threads.finished(), i + 1);
        EXPECT_EQ(tocsin::waiting_on(&word), waiters - i - 1);
    }
    EXPECT_EQ(wake_by_address_one(&word), 0u);
}

TYPED_TEST(EveryWidth, NWakesReleaseNWaitersThoughNoneRanInBetween) {
    std::atomic<TypeParam> word{0};
    constexpr std::size_t waiters = 5;
    thread_group threads;
    threads.start_many(waiters, "waiter", [&](int) { (void)wait_on_address(&word, 0); });
    until_parked(&word, waiters);
    freezer frost;
    if (freezer::works) {
        for (std::size_t i = 0; i < waiters; ++i) {
            threads.until_asleep(i);
            frost.freeze(threads.handle(i));
        }
    }
    for (std::size_t i = 0; i < waiters; ++i) EXPECT_EQ(wake_by_address_one(&word), 1u);
    EXPECT_EQ(wake_by_address_one(&word), 0u);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
    frost.thaw();
    threads.join();
}

TYPED_TEST(EveryWidth, WakesReturnHowManyTheyReleased) {
    std::atomic<TypeParam> word{0};
    EXPECT_EQ(wake_by_address_one(&word), 0u);
    EXPECT_EQ(wake_by_address_n(&word, 3), 0u);
    EXPECT_EQ(wake_by_address_all(&word), 0u);
    thread_group threads;
    threads.start_many(9, "waiter", [&](int) { (void)wait_on_address(&word, 0); });
    until_parked(&word, 9);
    EXPECT_EQ(wake_by_address_n(&word, 0), 0u);
    EXPECT_EQ(tocsin::waiting_on(&word), 9u);
    EXPECT_EQ(wake_by_address_one(&word), 1u);
    EXPECT_EQ(wake_by_address_n(&word, 3), 3u);
    threads.until_finished(4);
    EXPECT_EQ(tocsin::waiting_on(&word), 5u);
    EXPECT_EQ(threads.finished(), 4u);
    EXPECT_EQ(wake_by_address_n(&word, 100), 5u) << "more than there are";
    threads.join();
}

TYPED_TEST(EveryWidth, AHugeCountWakesAllThatWait) {
    constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
    constexpr std::size_t half = std::size_t{1} << std::numeric_limits<std::size_t>::digits / 2;
    for (const std::size_t count : {max, max - 1, std::size_t{1} << 31, half, half + 1,
                                    std::size_t{std::numeric_limits<int>::max()} + 2}) {
        std::atomic<TypeParam> word{0};
        thread_group threads;
        threads.start_many(3, "waiter", [&](int) { (void)wait_on_address(&word, 0); });
        until_parked(&word, 3);
        EXPECT_EQ(wake_by_address_n(&word, count), 3u) << count;
        threads.join();
    }
}

TYPED_TEST(EveryWidth, WakeAllReleasesAll) {
    std::atomic<TypeParam> word{0};
    thread_group threads;
    threads.start_many(40, "waiter",
                       [&](int) { EXPECT_EQ(wait_on_address(&word, 0), address_status::woken); });
    until_parked(&word, 40);
    EXPECT_EQ(wake_by_address_all(&word), 40u);
    threads.join();
}

TYPED_TEST(EveryWidth, AMisalignedAddressIsRefusedWithItsNameAndSize) {
    alignas(16) std::array<std::byte, 32> memory{};
    if constexpr (sizeof(TypeParam) == 1) {
        GTEST_SKIP() << "a byte is always aligned";
    } else {
        // Made without a cast, because a cast may assume alignment. The user's mistake is this pointer.
        const auto number = reinterpret_cast<std::uintptr_t>(memory.data()) + 1;
        TypeParam* misaligned = nullptr;
        std::memcpy(&misaligned, &number, sizeof number);
        char written[32];
        std::snprintf(written, sizeof written, "%p", static_cast<void*>(misaligned));
        try {
            (void)wait_on_address(misaligned, 0, 0s);
            FAIL() << "a misaligned address was accepted";
        } catch (const std::invalid_argument& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(written), std::string::npos) << message;
            EXPECT_NE(message.find(std::to_string(sizeof(TypeParam))), std::string::npos) << message;
            EXPECT_NE(message.find("aligned"), std::string::npos) << message;
        }
        EXPECT_THROW((void)wait_on_address(misaligned, 0, 0s, std::stop_token{}), std::invalid_argument);
        EXPECT_THROW((void)tocsin::wait_until_changed(misaligned, 0, 0s), std::invalid_argument);
        EXPECT_EQ(wake_by_address_all(misaligned), 0u) << "a wake never looks at the memory";
    }
}

TYPED_TEST(EveryWidth, ADeadlineThatHasPassedReturnsAtOnceAndMakesNoSystemCall) {
    const auto calls = support::system_calls_of([] {
        std::atomic<TypeParam> word{0};
        for (int i = 0; i < 10; ++i) {
            if (wait_on_address(&word, 0, 0s) != address_status::timed_out) _exit(1);
            if (wait_on_address(&word, 0, -1h) != address_status::timed_out) _exit(2);
            if (wait_on_address(&word, 0, std::chrono::steady_clock::time_point{}) !=
                address_status::timed_out) {
                _exit(3);
            }
            if (wait_on_address(&word, 1, 1h) != address_status::differed) _exit(4);
            if (wake_by_address_one(&word) != 0) _exit(5);
            if (wake_by_address_all(&word) != 0) _exit(6);
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

TYPED_TEST(EveryWidth, ATimedOutWaitHasReallyWaitedThatLongOnItsOwnClock) {
    std::atomic<TypeParam> word{0};
    for (int i = 1; i <= 15; ++i) {
        const auto steady = std::chrono::steady_clock::now() + i * 71us;
        EXPECT_EQ(wait_on_address(&word, 0, steady), address_status::timed_out);
        EXPECT_GE(std::chrono::steady_clock::now(), steady);
        const auto system = std::chrono::system_clock::now() + i * 71us;
        EXPECT_EQ(wait_on_address(&word, 0, system), address_status::timed_out);
        EXPECT_GE(std::chrono::system_clock::now(), system);
        const auto slow = support::slow_clock::now() + i * 71us;
        EXPECT_EQ(wait_on_address(&word, 0, slow), address_status::timed_out);
        EXPECT_GE(support::slow_clock::now(), slow);
    }
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
}

TYPED_TEST(EveryWidth, ATimedOutWaitSpendsNoWake) {
    std::atomic<TypeParam> word{0};
    thread_group threads;
    threads.start("patient", [&] { EXPECT_EQ(wait_on_address(&word, 0), address_status::woken); });
    until_parked(&word, 1);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(wait_on_address(&word, 0, 200us), address_status::timed_out);
    }
    EXPECT_EQ(wake_by_address_n(&word, 5), 1u);
    threads.join();
}

TYPED_TEST(EveryWidth, AWakeIsReportedEvenPastTheDeadline) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    std::atomic<TypeParam> word{0};
    const auto deadline = hand_clock::now() + 1h;  // far away, so that the thread sleeps until it is frozen
    address_status ended{};
    freezer frost;
    thread_group threads;
    threads.start("waiter", [&] { ended = wait_on_address(&word, 0, deadline); });
    until_parked(&word, 1);
    // A thread that is frozen while it falls asleep might hold a mutex of the portable futex, which the wake needs.
    threads.until_asleep(0);
    frost.freeze(threads.handle(0));
    hand_clock::set(deadline);
    EXPECT_EQ(wake_by_address_one(&word), 1u);
    frost.thaw();
    threads.join();
    EXPECT_EQ(ended, address_status::woken);
}

TYPED_TEST(EveryWidth, AStopEndsTheWait) {
    std::atomic<TypeParam> word{0};
    std::stop_source before;
    before.request_stop();
    EXPECT_EQ(wait_on_address(&word, 0, tocsin::deadline::never(), before.get_token()),
              address_status::stopped);
    std::stop_source during;
    thread_group threads;
    threads.start("stopped", [&] {
        EXPECT_EQ(wait_on_address(&word, 0, tocsin::deadline::never(), during.get_token()),
                  address_status::stopped);
    });
    threads.start("stopped, timed", [&] {
        EXPECT_EQ(wait_on_address(&word, 0, 1h, during.get_token()), address_status::stopped);
    });
    threads.start("not stopped", [&] { EXPECT_EQ(wait_on_address(&word, 0), address_status::woken); });
    until_parked(&word, 3);
    during.request_stop();
    threads.until_finished(2);
    until_parked(&word, 1);
    EXPECT_EQ(wake_by_address_n(&word, 5), 1u) << "a stopped wait spends no wake";
    threads.join();
}

TYPED_TEST(EveryWidth, AStopAfterTheWakeChangesNothing) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    std::atomic<TypeParam> word{0};
    std::stop_source stop;
    address_status ended{};
    thread_group threads;
    threads.start("waiter", [&] { ended = wait_on_address(&word, 0, 1h, stop.get_token()); });
    until_parked(&word, 1);
    threads.until_asleep(0);
    freezer frost;
    frost.freeze(threads.handle(0));
    EXPECT_EQ(wake_by_address_one(&word), 1u);
    stop.request_stop();
    frost.thaw();
    threads.join();
    EXPECT_EQ(ended, address_status::woken);
}

TYPED_TEST(EveryWidth, AStopBeforeTheWakeLeavesTheWakeForAnother) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    std::atomic<TypeParam> word{0};
    std::stop_source stop;
    address_status ended{};
    thread_group threads;
    threads.start("stopped", [&] { ended = wait_on_address(&word, 0, 1h, stop.get_token()); });
    until_parked(&word, 1);
    threads.until_asleep(0);
    threads.start("other", [&] { EXPECT_EQ(wait_on_address(&word, 0), address_status::woken); });
    until_parked(&word, 2);
    freezer frost;
    frost.freeze(threads.handle(0));
    stop.request_stop();
    EXPECT_EQ(wake_by_address_one(&word), 1u);
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(1)) << "the wake was spent on a wait that was already stopped";
    frost.thaw();
    threads.join();
    EXPECT_EQ(ended, address_status::stopped);
}

TEST(AddressWait, WaitersOfEveryWidthOnOneAddressAreReached) {
    alignas(8) std::array<unsigned char, 8> memory{};
    const auto wait_as = [&]<class Word>(Word) {
        EXPECT_EQ(wait_on_address(reinterpret_cast<const Word*>(memory.data()), Word{0}),
                  address_status::woken);
    };
    thread_group threads;
    threads.start("8 bits", [&] { wait_as(std::uint8_t{}); });
    until_parked(memory.data(), 1);
    threads.start("16 bits", [&] { wait_as(std::uint16_t{}); });
    until_parked(memory.data(), 2);
    threads.start("32 bits", [&] { wait_as(std::uint32_t{}); });
    until_parked(memory.data(), 3);
    threads.start("64 bits", [&] { wait_as(std::uint64_t{}); });
    until_parked(memory.data(), 4);
    EXPECT_EQ(wake_by_address_one(memory.data()), 1u);
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(0));
    EXPECT_EQ(wake_by_address_all(memory.data()), 3u);
    threads.join();
}

TEST(AddressWait, ManyKindsOfObjectCanBeWaitedOn) {
    enum class color : std::uint16_t { red, green };
    struct pair {
        std::uint16_t first, second;
        bool operator==(const pair&) const = default;
    };
    std::atomic<bool> flag{false};
    EXPECT_EQ(wait_on_address(&flag, true), address_status::differed);
    EXPECT_EQ(wait_on_address(&flag, false, 0s), address_status::timed_out);
    std::atomic<color> hue{color::red};
    EXPECT_EQ(wait_on_address(&hue, color::green), address_status::differed);
    EXPECT_EQ(wait_on_address(&hue, color::red, 0s), address_status::timed_out);
    std::atomic<pair> two{pair{1, 2}};
    EXPECT_EQ(wait_on_address(&two, pair{1, 3}), address_status::differed);
    EXPECT_EQ(wait_on_address(&two, pair{1, 2}, 0s), address_status::timed_out);
    int target = 0;
    std::atomic<int*> pointer{&target};
    EXPECT_EQ(wait_on_address(&pointer, nullptr), address_status::differed);
    EXPECT_EQ(wait_on_address(&pointer, &target, 0s), address_status::timed_out);
    std::atomic<int> negative{-1};
    EXPECT_EQ(wait_on_address(&negative, -1, 0s), address_status::timed_out);
    EXPECT_EQ(wait_on_address(&negative, 255), address_status::differed);
    std::atomic<std::int8_t> small{-1};
    EXPECT_EQ(wait_on_address(&small, std::int8_t{-1}, 0s), address_status::timed_out);
    std::atomic<double> zero{0.0};
    EXPECT_EQ(wait_on_address(&zero, -0.0), address_status::differed) << "bits are compared";
    std::atomic<double> not_a_number{std::numeric_limits<double>::quiet_NaN()};
    EXPECT_EQ(wait_on_address(&not_a_number, std::numeric_limits<double>::quiet_NaN(), 0s),
              address_status::timed_out);
    const std::atomic<int> constant{3};
    EXPECT_EQ(wait_on_address(&constant, 3, 0s), address_status::timed_out);
}

TEST(AddressWait, AWakeOnMemoryThatIsGoneIsFine) {
    const auto size = support::page_size();
    void* const page = support::reserve_pages(size);
    ASSERT_NE(page, nullptr);
    support::map_pages(page, size);
    auto* const word = new (page) std::atomic<std::uint32_t>{0};
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait_on_address(word, 0), address_status::woken); });
    until_parked(word, 1);
    threads.until_asleep(0);
    support::unmap_pages(page, size);
    EXPECT_EQ(wake_by_address_one(word), 1u);
    threads.join();
    EXPECT_EQ(wake_by_address_all(word), 0u);
    EXPECT_EQ(wake_by_address_all(nullptr), 0u);
    EXPECT_EQ(wake_by_address_one(reinterpret_cast<const void*>(std::uintptr_t{1})), 0u);
    EXPECT_EQ(wake_by_address_n(reinterpret_cast<const void*>(~std::uintptr_t{0}), 7), 0u);
}

TEST(AddressWait, ALateWakeMayMeetTheNextObjectAtTheAddress) {
    auto word = std::make_unique<std::atomic<int>>(0);
    const volatile auto number = reinterpret_cast<std::uintptr_t>(word.get());
    word.reset();
    EXPECT_EQ(wake_by_address_all(reinterpret_cast<const void*>(number)), 0u);
}

TEST(AddressWait, AnUnrelatedWakeCostsNoSystemCallWhateverElseWaits) {
    static std::array<std::atomic<std::uint32_t>, 64> waited{};
    static std::atomic<std::uint32_t> idle{0};
    const auto calls = support::system_calls_of(
        [] {
            for (auto& each : waited) {
                std::thread([&each] {
                    (void)wait_on_address(&each, 0);
                    _exit(9);
                }).detach();
            }
            for (auto& each : waited) until_parked(&each, 1);
        },
        [] {
            for (int i = 0; i < 1000; ++i) wake_by_address_all(&idle);
        });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

// ---- the forms with a predicate, which hide spurious wakes --------------------------------------

TYPED_TEST(EveryWidth, WaitUntilChangedReturnsTheNewValue) {
    std::atomic<TypeParam> word{5};
    const TypeParam at_once = tocsin::wait_until_changed(&word, 4);
    EXPECT_EQ(at_once, 5);
    tocsin::wait_until_changed(&word, 4);  // the plain wait needs no (void)
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(tocsin::wait_until_changed(&word, 5), 6); });
    until_parked(&word, 1);
    EXPECT_EQ(wake_by_address_all(&word), 1u) << "a wake without a change is hidden";
    until_parked(&word, 1);
    EXPECT_FALSE(threads.finished(0));
    word.store(6);
    wake_by_address_all(&word);
    threads.join();
}

TYPED_TEST(EveryWidth, WaitUntilAcceptedWaitsForThePredicate) {
    std::atomic<TypeParam> word{0};
    thread_group threads;
    threads.start("waiter", [&] {
        EXPECT_EQ(tocsin::wait_until_accepted(&word, [](TypeParam value) { return value >= 10; }), 10);
    });
    for (TypeParam value = 1; value <= 10; ++value) {
        until_parked(&word, 1);
        EXPECT_FALSE(threads.finished(0));
        word.store(value);
        EXPECT_EQ(wake_by_address_one(&word), 1u);
    }
    threads.join();
}

TYPED_TEST(EveryWidth, TheFormsWithAPredicateTimeOutAndStopWithTheLastValue) {
    std::atomic<TypeParam> word{3};
    const auto begin = std::chrono::steady_clock::now();
    const auto late = tocsin::wait_until_changed(&word, 3, 3ms);
    EXPECT_EQ(late.status, wait_status::timed_out);
    EXPECT_EQ(late.value, 3);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
    std::stop_source stop;
    stop.request_stop();
    const auto never = [](TypeParam) { return false; };
    const auto stopped =
        tocsin::wait_until_accepted(&word, never, tocsin::deadline::never(), stop.get_token());
    EXPECT_EQ(stopped.status, wait_status::stopped);
    EXPECT_EQ(stopped.value, 3);
    EXPECT_EQ(tocsin::wait_until_accepted(&word, never, 0s).status, wait_status::timed_out);
    const auto fine = [](TypeParam) { return true; };
    EXPECT_EQ(tocsin::wait_until_accepted(&word, fine, 0s, stop.get_token()).status, wait_status::signaled);
}

TYPED_TEST(EveryWidth, TheFormsWithAPredicateTakeAStopTokenAlone) {
    std::atomic<TypeParam> word{3};
    std::stop_source stop;
    EXPECT_EQ(tocsin::wait_until_changed(&word, 2, stop.get_token()).value, 3);
    thread_group threads;
    threads.start("waits for a change", [&] {
        EXPECT_EQ(tocsin::wait_until_changed(&word, 3, stop.get_token()).status, wait_status::stopped);
    });
    threads.start("waits for a predicate", [&] {
        const auto never = [](TypeParam) { return false; };
        EXPECT_EQ(tocsin::wait_until_accepted(&word, never, stop.get_token()).status, wait_status::stopped);
    });
    threads.start("waits on the address",
                  [&] { EXPECT_EQ(wait_on_address(&word, 3, stop.get_token()), address_status::stopped); });
    until_parked(&word, 3);
    stop.request_stop();
    threads.join();
}

// The value that a wait reports as timed out or stopped was not accepted, even if it changed in the last moment.
TEST(AddressWait, AWaitWithAPredicateLooksOnceMoreBeforeItGivesUp) {
    std::atomic<std::uint32_t> word{0};
    std::stop_source stop;
    stop.request_stop();
    for (const auto& token : {std::stop_token(), stop.get_token()}) {
        int looks = 0;
        const auto result =
            tocsin::wait_until_accepted(&word, [&](std::uint32_t) { return ++looks == 2; }, 0s, token);
        EXPECT_EQ(result.status, wait_status::signaled);
        EXPECT_EQ(looks, 2);
    }
}

TEST(AddressWait, APredicateSeesTheSameDeadlineAfterEveryWake) {
    std::atomic<std::uint32_t> word{0};
    thread_group threads;
    std::atomic<bool> finished{false};
    const auto begin = std::chrono::steady_clock::now();
    threads.start("waiter", [&] {
        const auto result = tocsin::wait_until_accepted(&word, [](std::uint32_t) { return false; }, 30ms);
        EXPECT_EQ(result.status, wait_status::timed_out);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 29ms);
        finished.store(true);
    });
    while (!finished.load()) {  // wakes without a pause: a deadline that began again would never pass
        wake_by_address_all(&word);
        std::this_thread::yield();
        ASSERT_LT(std::chrono::steady_clock::now() - begin, support::patience());
    }
    threads.join();
}

TEST(AddressWait, APredicateThatThrowsLeavesNothingBehind) {
    std::atomic<int> word{0};
    EXPECT_THROW(tocsin::wait_until_accepted(&word, [](int) -> bool { throw 1; }), int);
    EXPECT_EQ(tocsin::waiting_on(&word), 0u);
}

}  // namespace
