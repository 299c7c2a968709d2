// SPDX-License-Identifier: Apache-2.0
// Timers that repeat: tickers (ticker.hpp) in every wait, and wait_timer::reset_every() (wait_set.hpp). They keep to
// their grid, and one report stands for all ticks that have passed.
#include "clocks.hpp"
#include "facts.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/ticker.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using namespace support;
using namespace tocsin;

// Waits for the ticker alone.
wait_status wait_for(ticker& one, const tocsin::limits& how = {}) { return wait_any(how, one).status; }

// On the hand_clock, whose time a test sets: ticks at 100, 110, 120 ms ...
struct Ticker : testing::Test {
    Ticker() { hand_clock::set(0); }
    ~Ticker() override { hand_clock::set(0); }

    const hand_clock::time_point first{100ms};
    ticker tick{first, 10ms};
    auto_reset_event never;
};

TEST_F(Ticker, IsReadyAtTheFirstTickAndNotBefore) {
    hand_clock::set(99);
    EXPECT_FALSE(tick.try_wait());
    EXPECT_EQ(wait_for(tick, {.until = 0s}), wait_status::timed_out);
    EXPECT_EQ(tick.ticks(), 0u);
    hand_clock::set(100);
    EXPECT_EQ(wait_for(tick), wait_status::signaled);
    EXPECT_EQ(tick.ticks(), 1u);
    EXPECT_FALSE(tick.try_wait()) << "taken";
}

TEST_F(Ticker, OneReportStandsForAllTicksThatHavePassed) {
    hand_clock::set(100);
    EXPECT_TRUE(tick.try_wait());
    hand_clock::set(145);
    EXPECT_TRUE(tick.try_wait());
    EXPECT_EQ(tick.ticks(), 4u) << "110, 120, 130, 140";
    EXPECT_FALSE(tick.try_wait());
    hand_clock::set(149);
    EXPECT_FALSE(tick.try_wait());
    hand_clock::set(150);
    EXPECT_TRUE(tick.try_wait()) << "it keeps to its grid";
    EXPECT_EQ(tick.ticks(), 1u);
}

TEST_F(Ticker, AWaitThatTakesAnotherSourceOrEndsOtherwiseMovesNothing) {
    auto_reset_event event(true);
    hand_clock::set(125);
    EXPECT_EQ(wait_any(event, tick).index, 0u);
    EXPECT_EQ(tick.ticks(), 0u);
    EXPECT_EQ(wait_any(event, tick, tick).index, 1u);
    EXPECT_EQ(tick.ticks(), 3u);
    EXPECT_EQ(wait_any({.until = 1ms}, event, tick).status, wait_status::timed_out);
    EXPECT_EQ(tick.ticks(), 3u);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(wait_any({.stop = stop.get_token()}, event, tick).status, wait_status::stopped);
    hand_clock::set(131);
    EXPECT_EQ(wait_any(event, tick).index, 1u);
    EXPECT_EQ(tick.ticks(), 1u);
}

TEST_F(Ticker, EndsAWaitThatSleeps) {
    thread_group threads;
    threads.start("waits", [&] {
        EXPECT_EQ(wait_any(never, tick).index, 1u);
        EXPECT_EQ(tick.ticks(), 2u);
    });
    threads.until_asleep(0);
    hand_clock::set(110);
    threads.join();
}

TEST_F(Ticker, IsOneOfAll) {
    auto_reset_event event(true);
    hand_clock::set(125);
    EXPECT_EQ(wait_all({.until = 0s}, event, never, tick), wait_status::timed_out);
    EXPECT_EQ(tick.ticks(), 0u);
    EXPECT_EQ(wait_all(event, tick, tick), wait_status::signaled);
    EXPECT_EQ(tick.ticks(), 3u);
}

TEST_F(Ticker, InAListIsLiveForEachWait) {
    const tocsin::source list[]{never, tick};
    hand_clock::set(100);
    EXPECT_EQ(wait_any(list).index, 1u);
    EXPECT_EQ(wait_any({.until = 0s}, list).status, wait_status::timed_out);
    hand_clock::set(110);
    EXPECT_EQ(wait_any(list).index, 1u);
}

TEST_F(Ticker, ResetsAndStops) {
    hand_clock::set(105);
    tick.stop();
    EXPECT_FALSE(tick.try_wait());
    EXPECT_TRUE(tick.next().is_never());
    const hand_clock::time_point other(103ms);
    tick.reset(other, 1ms);
    EXPECT_TRUE(tick.try_wait());
    EXPECT_EQ(tick.ticks(), 3u) << "103, 104, 105";
}

TEST_F(Ticker, OfAClockThatIsSetBackIsAtItsGridAgain) {
    hand_clock::set(152);
    EXPECT_TRUE(tick.try_wait());
    hand_clock::set(120);
    EXPECT_FALSE(tick.try_wait());
    hand_clock::set(160);
    EXPECT_TRUE(tick.try_wait());
    EXPECT_EQ(tick.ticks(), 1u);
}

TEST_F(Ticker, ACoroutineTakesIt) {
    int reports = 0;
    std::uint64_t ticks = 0;
    hand_clock::set(100);
    const support::task one = [](auto& other, auto& each, int& count, auto& sum) -> support::task {
        for (; count != 3; ++count) {
            const auto how = co_await tocsin::async_wait_any(other, each);
            EXPECT_EQ(how.index, 1u);
            sum += each.ticks();
            hand_clock::set(hand_clock::now() + 15ms);
        }
    }(never, tick, reports, ticks);
    one.join();
    EXPECT_EQ(reports, 3);
    EXPECT_EQ(ticks, 4u) << "100; 110; 120, 130";
}

TEST_F(Ticker, ACoroutineThatIsSuspendedTakesItInItsDriver) {
    tocsin::driver loop;
    bool ended = false;
    const support::task one = [](auto& other, auto& each, auto& by, bool& done) -> support::task {
        for (int i = 0; i != 2; ++i) {
            const auto how = co_await tocsin::async_wait_any(other, each).by(by);
            EXPECT_EQ(how.index, 1u);
            EXPECT_EQ(each.ticks(), 1u);
        }
        done = true;
    }(never, tick, loop, ended);
    const auto serve = [&] {
        (void)never.wait_until(loop.next_deadline());  // it asks a clock of the user again within a second
        return loop.run_due();
    };
    hand_clock::set(109);
    while (serve() == 0) continue;
    EXPECT_FALSE(ended);
    hand_clock::set(119);
    while (serve() == 0) continue;
    EXPECT_TRUE(ended);
    EXPECT_EQ(one.done(), ended);
}

TEST_F(Ticker, ADestroyedCoroutineTakesNothing) {
    {
        const support::task one = [](auto& other, auto& each) -> support::task {
            (void)co_await tocsin::async_wait_any(other, each);
        }(never, tick);
    }
    hand_clock::set(100);
    EXPECT_TRUE(tick.try_wait());
    EXPECT_EQ(tick.ticks(), 1u);
}

TEST_F(Ticker, AnOperationIsStartedAgainForTheNextTick) {
    hand_clock::set(100);
    std::uint64_t ticks = 0;
    auto wait =
        tocsin::any_operation([&](tocsin::any_result) noexcept { ticks += tick.ticks(); }, never, tick);
    wait.start();
    EXPECT_EQ(ticks, 1u);
    wait.start();
    EXPECT_EQ(ticks, 1u) << "it waits for the next";
    EXPECT_TRUE(wait.cancel());
    hand_clock::set(135);
    ticks = 0;
    wait.start();
    EXPECT_EQ(ticks, 3u);
}

TEST(TickerOfTheSteadyClock, DoesNotDrift) {
    const auto begin = steady_clock::now();
    ticker each(begin + 2ms, 2ms);
    std::uint64_t ticks = 0;
    while (ticks < 20) {
        (void)wait_for(each);
        EXPECT_LE(begin + (ticks + each.ticks()) * 2ms, steady_clock::now()) << "never early";
        ticks += each.ticks();
        EXPECT_EQ(each.next().nanoseconds(), (begin + (ticks + 1) * 2ms).time_since_epoch() / 1ns)
            << "at its point of the grid";
    }
}

TEST(TickerOfTheSteadyClock, BeginsAPeriodFromNowOrAtOnce) {
    auto later = every(1h);
    EXPECT_FALSE(later.try_wait());
    EXPECT_GT(later.next().remaining(), std::chrono::nanoseconds(59min).count());
    auto at_once = every(1h, 0s);
    EXPECT_TRUE(at_once.try_wait());
    EXPECT_EQ(at_once.ticks(), 1u);
    EXPECT_FALSE(at_once.try_wait());
}

TEST(TickerOfTheSystemClock, FollowsIt) {
    const auto begin = system_clock::now();
    ticker each(begin - 1h, 1s);
    EXPECT_EQ(wait_for(each), wait_status::signaled);
    EXPECT_GE(each.ticks(), 3601u);
    EXPECT_EQ(each.next().which(), tocsin::deadline::clock::system);
}

TEST(TickerPeriod, MustBeLongerThanZeroAndMayNeverEnd) {
    EXPECT_THROW(ticker(0s), std::invalid_argument);
    EXPECT_THROW(ticker(-1ns), std::invalid_argument);
    ticker each(1s);
    const auto next = each.next().nanoseconds();
    EXPECT_THROW(each.reset(0s), std::invalid_argument);
    EXPECT_EQ(each.next().nanoseconds(), next);
    ticker endless(0s, std::chrono::hours::max());
    EXPECT_TRUE(endless.try_wait());
    EXPECT_TRUE(endless.next().is_never());
    ticker smallest(steady_clock::now() - 1s, std::chrono::duration<double, std::nano>(0.2));
    EXPECT_TRUE(smallest.try_wait());
    EXPECT_GE(smallest.ticks(), 1'000'000'000u) << "rounded up to a nanosecond";
    static_assert(!std::is_move_constructible_v<ticker>);
    static_assert(!std::is_convertible_v<ticker, tocsin::source>, "a temporary one is no source");
}

// The same for a timer in a set.
struct RepeatingTimer : testing::Test {
    RepeatingTimer() { hand_clock::set(0); }
    ~RepeatingTimer() override { hand_clock::set(0); }

    // A set asks a clock of the user again when it expects the time to be reached, and at least once a second.
    bool is_reported() {
        ready_item items[4];
        return set.wait(items).count == 1;
    }
    bool is_reported_now() {
        ready_item items[4];
        return set.wait({.until = 0s}, items).count == 1;
    }

    const hand_clock::time_point first{100ms};
    wait_set set;
    wait_timer timer;
};

TEST_F(RepeatingTimer, IsReportedOnceForAllTicksThatHavePassed) {
    set.add(timer, 7);
    timer.reset_every(first, 10ms);
    EXPECT_EQ(timer.ticks(), 0u);
    EXPECT_FALSE(is_reported_now());
    hand_clock::set(125);
    EXPECT_TRUE(is_reported());
    EXPECT_EQ(timer.ticks(), 3u);
    EXPECT_TRUE(timer.is_armed());
    EXPECT_FALSE(is_reported_now());
    hand_clock::set(129);
    EXPECT_FALSE(is_reported_now());
    hand_clock::set(130);
    EXPECT_TRUE(is_reported());
    EXPECT_EQ(timer.ticks(), 1u);
}

TEST_F(RepeatingTimer, MayBeArmedBeforeItIsAdded) {
    timer.reset_every(first, 10ms);
    hand_clock::set(110);
    set.add(timer, 7);
    EXPECT_TRUE(is_reported());
    EXPECT_EQ(timer.ticks(), 2u);
    EXPECT_FALSE(is_reported_now());
    EXPECT_TRUE(set.remove(timer));
    EXPECT_EQ(timer.ticks(), 2u);
}

TEST_F(RepeatingTimer, IsCancelledAndResetAsAnyOther) {
    set.add(timer, 7);
    timer.reset_every(first, 10ms);
    timer.cancel();
    hand_clock::set(150);
    EXPECT_FALSE(is_reported_now());
    timer.reset_every(first, 10ms);
    timer.reset(first);
    EXPECT_TRUE(is_reported());
    EXPECT_EQ(timer.ticks(), 1u);
    hand_clock::set(250);
    EXPECT_FALSE(is_reported_now()) << "it repeats no more";
    EXPECT_FALSE(timer.is_armed());
}

TEST_F(RepeatingTimer, WakesTheThreadThatSleeps) {
    set.add(timer, 7);
    thread_group threads;
    std::uint64_t ticks = 0;
    threads.start("waits in the set", [&] {
        for (ready_item item; ticks < 5; ticks += timer.ticks()) {
            EXPECT_EQ(set.wait({&item, 1}).count, 1u);
            EXPECT_EQ(item.tag, 7u);
        }
    });
    threads.until_asleep(0);
    timer.reset_every(steady_clock::now() + 1ms, 1ms);
    threads.join();
    EXPECT_GE(ticks, 5u);
}

TEST_F(RepeatingTimer, RefusesAPeriodOfZero) {
    set.add(timer, 7);
    timer.reset_every(first, 10ms);
    EXPECT_THROW(timer.reset_every(first, 0s), std::invalid_argument);
    hand_clock::set(110);
    EXPECT_TRUE(is_reported()) << "as it was before";
    EXPECT_EQ(timer.ticks(), 2u);
    timer.reset_every(0s, 1h);
    EXPECT_TRUE(is_reported()) << "at once";
    EXPECT_FALSE(is_reported_now());
}

}  // namespace
