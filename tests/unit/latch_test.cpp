// SPDX-License-Identifier: Apache-2.0
// The contract of latch, clause by clause: first what the standard says of std::latch, then what tocsin adds.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <memory>
#include <stop_token>
#include <thread>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using support::rounds;
using support::thread_group;
using support::until_parked;
using tocsin::latch;
using tocsin::wait_status;

constinit latch made_at_compile_time{2};

// --- the standard's clauses -----------------------------------------------------------------------------------

template <class Latch>
constexpr bool has_the_standards_shape =
    std::is_constructible_v<Latch, std::ptrdiff_t> && !std::is_convertible_v<std::ptrdiff_t, Latch> &&
    !std::is_default_constructible_v<Latch> && !std::is_copy_constructible_v<Latch> &&
    !std::is_move_constructible_v<Latch> && !std::is_copy_assignable_v<Latch> &&
    noexcept(std::declval<const Latch&>().try_wait()) &&
    requires(Latch& object, const Latch& looked_at, std::ptrdiff_t number) {
        { Latch::max() } -> std::same_as<std::ptrdiff_t>;
        { object.count_down() } -> std::same_as<void>;
        { object.count_down(number) } -> std::same_as<void>;
        { looked_at.try_wait() } -> std::same_as<bool>;
        { looked_at.wait() } -> std::same_as<void>;
        { object.arrive_and_wait() } -> std::same_as<void>;
        { object.arrive_and_wait(number) } -> std::same_as<void>;
    };

TEST(Latch, HasTheStandardsShape) {
    static_assert(has_the_standards_shape<std::latch>);
    static_assert(has_the_standards_shape<latch>);
    static_assert(latch::max() >= (1 << 30) - 1);
}

TEST(Latch, CountsDownFromWhatItWasMadeWith) {
    latch three(3);
    three.count_down();
    EXPECT_FALSE(three.try_wait());
    three.count_down();
    EXPECT_FALSE(three.try_wait());
    three.count_down();
    EXPECT_TRUE(three.try_wait());
    three.wait();
    EXPECT_TRUE(three.try_wait()) << "a latch stays open";
}

TEST(Latch, CountsDownByAnyNumberAtOnce) {
    latch all(latch::max());
    all.count_down(latch::max() - 5);
    EXPECT_FALSE(all.try_wait());
    all.count_down(5);
    EXPECT_TRUE(all.try_wait());
}

TEST(Latch, ZeroLetsEverybodyPassFromTheStart) {
    latch none(0);
    EXPECT_TRUE(none.try_wait());
    none.wait();
    none.arrive_and_wait(0);
}

TEST(Latch, CountingDownByZeroChangesNothing) {
    latch one(1);
    one.count_down(0);
    EXPECT_FALSE(one.try_wait());
    one.count_down();
    one.count_down(0);
    EXPECT_TRUE(one.try_wait());
}

TEST(Latch, ReleasesEverybodyWhoWaits) {
    latch two(2);
    thread_group threads;
    threads.start_many(4, "waiter", [&](int) { two.wait(); });
    until_parked(&two, 4);
    two.count_down();
    EXPECT_EQ(tocsin::waiting_on(&two), 4u);
    two.count_down();
    threads.join();
}

TEST(Latch, CountDownDoesNotBlock) {
    latch two(2);
    two.count_down();  // nobody else ever comes
    EXPECT_FALSE(two.try_wait());
}

TEST(Latch, ArriveAndWaitIsBothAtOnce) {
    constexpr int members = 4;
    latch all(members + 2);
    std::atomic<int> before{0};
    thread_group threads;
    threads.start_many(members, "member", [&](int) {
        before.fetch_add(1, std::memory_order_relaxed);
        all.arrive_and_wait();
        EXPECT_EQ(before.load(std::memory_order_relaxed), members + 1);
    });
    before.fetch_add(1, std::memory_order_relaxed);
    all.arrive_and_wait(2);
    EXPECT_EQ(before.load(std::memory_order_relaxed), members + 1);
}

// A count_down() strongly happens before what it unblocks: plain data, which ThreadSanitizer watches.
TEST(Latch, PublishesWhatCameBeforeEveryCountDown) {
    for (int i = 0; i != rounds(200, 20); ++i) {
        int written[3]{};
        latch all(3);
        thread_group threads;
        threads.start_many(3, "writer", [&](int which) {
            written[which] = which + 1;
            all.count_down();
        });
        all.wait();
        EXPECT_EQ(written[0] + written[1] + written[2], 6);
    }
}

TEST(Latch, IsMadeAtCompileTime) {
    made_at_compile_time.count_down();
    EXPECT_FALSE(made_at_compile_time.try_wait());
    made_at_compile_time.count_down();
    EXPECT_TRUE(made_at_compile_time.try_wait());
}

// --- tocsin's additions -----------------------------------------------------------------------------------------

TEST(Latch, IsEightBytesAndOwnsNothing) {
    static_assert(sizeof(latch) == 8);
#if !TOCSIN_CHECKED
    static_assert(std::is_trivially_destructible_v<latch>);
#endif
}

TEST(Latch, ATimedWaitSaysWhatHappened) {
    latch one(1);
    EXPECT_EQ(one.wait_for(0s), wait_status::timed_out);
    EXPECT_EQ(one.wait_for(2ms), wait_status::timed_out);
    EXPECT_EQ(one.wait_for(2ms, tocsin::spin_policy::none()), wait_status::timed_out);
    EXPECT_EQ(one.wait_until(std::chrono::steady_clock::now() + 2ms), wait_status::timed_out);
    EXPECT_EQ(one.wait_until(std::chrono::system_clock::now() - 1s), wait_status::timed_out);
    EXPECT_EQ(tocsin::waiting_on(&one), 0u);
    one.count_down();
    EXPECT_EQ(one.wait_for(0s), wait_status::signaled);
    EXPECT_EQ(one.wait_until(1ms), wait_status::signaled);
    EXPECT_EQ(one.wait_until(std::chrono::system_clock::now() - 1s), wait_status::signaled);
}

TEST(Latch, ATimedWaitNeverEndsEarly) {
    const latch one(1);
    const auto end = std::chrono::steady_clock::now() + 5ms;
    EXPECT_EQ(one.wait_until(end), wait_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now(), end);
}

TEST(Latch, ATimedWaitEndsWithTheLatch) {
    latch one(1);
    thread_group threads;
    threads.start("timed", [&] { EXPECT_EQ(one.wait_for(1h), wait_status::signaled); });
    threads.start("by a clock", [&] {
        EXPECT_EQ(one.wait_until(std::chrono::system_clock::now() + 1h), wait_status::signaled);
    });
    until_parked(&one, 2);
    one.count_down();
}

TEST(Latch, AStopEndsAWait) {
    latch one(1);
    std::stop_source stop;
    thread_group threads;
    threads.start("stopped", [&] { EXPECT_EQ(one.wait(stop.get_token()), wait_status::stopped); });
    threads.start("timed", [&] { EXPECT_EQ(one.wait_for(1h, stop.get_token()), wait_status::stopped); });
    threads.start("patient", [&] { one.wait(); });
    until_parked(&one, 3);
    stop.request_stop();
    until_parked(&one, 1);
    one.count_down();
    threads.join();
    EXPECT_EQ(one.wait(stop.get_token()), wait_status::signaled) << "what is ready is taken first";
}

TEST(Latch, IsASourceOfAWaitForAny) {
    latch one(1);
    tocsin::manual_reset_event other;
    EXPECT_EQ(tocsin::wait_any({.until = 1ms}, other, one).status, wait_status::timed_out);
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(tocsin::wait_any(other, one).index, 1u); });
    until_parked(&one, 1);
    one.count_down();
    threads.join();
    const latch& looked_at = one;
    EXPECT_EQ(tocsin::wait_any(looked_at).index, 0u);
}

TEST(Latch, IsASourceOfAWaitForAll) {
    latch first(1);
    latch second(1);
    tocsin::auto_reset_event token;
    thread_group threads;
    threads.start("waiter", [&] {
        EXPECT_EQ(tocsin::wait_all({.until = 1h}, first, token, second), wait_status::signaled);
    });
    until_parked(&second, 1);
    first.count_down();
    token.set();
    EXPECT_TRUE(token.is_set()) << "nothing is taken before all are ready";
    second.count_down();
    threads.join();
    EXPECT_FALSE(token.is_set());
    EXPECT_TRUE(first.try_wait());
}

TEST(Latch, ASourceTwiceInAWaitForAllIsRefused) {
    latch one(1);
    EXPECT_THROW((void)tocsin::wait_all({.until = 0s}, one, one), std::invalid_argument);
}

TEST(Latch, IsAMemberOfAWaitSet) {
    latch one(1);
    tocsin::wait_set set;
    set.add(one, 7);
    tocsin::ready_item found[2];
    EXPECT_EQ(set.wait({.until = 0s}, found).status, wait_status::timed_out);
    one.count_down();
    for (int i = 0; i != 2; ++i) {  // it stays ready
        ASSERT_EQ(set.wait({.until = 1h}, found).count, 1u);
        EXPECT_EQ(found[0].tag, 7u);
    }
    EXPECT_TRUE(set.remove(one));
}

support::task await(const latch& on, int& passed) {
    co_await tocsin::async_wait(on);
    ++passed;
}

TEST(Latch, CanBeAwaited) {
    latch one(1);
    int passed = 0;
    support::task first = await(one, passed);
    support::task second = await(one, passed);
    EXPECT_EQ(passed, 0);
    one.count_down();
    EXPECT_EQ(passed, 2) << "the coroutines resume inside the call";
    support::task third = await(one, passed);
    EXPECT_EQ(passed, 3) << "it need not wait";
}

TEST(Latch, TheThreadReleasedMayDestroyIt) {
    for (int i = 0; i != rounds(2000, 100); ++i) {
        auto owned = std::make_unique<latch>(2);
        latch& all = *owned;
        thread_group threads;
        threads.start_many(2, "counter", [&all](int) { all.count_down(); });
        if (i % 2 == 0) {
            all.wait();
        } else {
            while (!all.try_wait()) std::this_thread::yield();
        }
        owned.reset();
    }
}

TEST(Latch, NobodyWhoWaitsMeansNoSystemCall) {
    const auto calls = support::system_calls_of([] {
        latch two(2);
        two.count_down();
        (void)two.try_wait();
        two.arrive_and_wait();
        two.wait();
        (void)two.wait_for(0s);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

// --- bad input --------------------------------------------------------------------------------------------------

TEST(LatchDeathTest, RefusesANumberThatItCannotCount) {
    std::atomic<std::ptrdiff_t> negative{-1};
    latch one(1);
    EXPECT_DEATH_IF_SUPPORTED(latch{negative.load()}, "tocsin: latch at .*too small");
    EXPECT_DEATH_IF_SUPPORTED(latch{latch::max() - negative.load()}, "tocsin: latch at .*too great");
    EXPECT_DEATH_IF_SUPPORTED(one.count_down(negative.load()), "tocsin: latch at .*too small");
    EXPECT_DEATH_IF_SUPPORTED(one.arrive_and_wait(negative.load()), "tocsin: latch at .*too small");
}

TEST(LatchDeathTest, RefusesToCountBelowZero) {
    latch one(1);
    EXPECT_DEATH_IF_SUPPORTED(one.count_down(2), "tocsin: latch at .*below zero");
    one.count_down();
    EXPECT_DEATH_IF_SUPPORTED(one.count_down(), "tocsin: latch at .*below zero");
    EXPECT_TRUE(one.try_wait());
}

#if TOCSIN_CHECKED
void destroy_with_a_waiter() {
    auto* const one = new latch(1);
    support::start_unjoined([one] { one->wait(); });
    until_parked(one, 1);
    delete one;
}

TEST(LatchDeathTest, DestroyedWhileAThreadWaits) {
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter(), "tocsin: latch at .*destroyed while threads wait");
}
#endif

}  // namespace
