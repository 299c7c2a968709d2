// SPDX-License-Identifier: Apache-2.0
// The page docs/coming_from_questions.md: those of its answers that no other test checks.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/barrier.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;
using tocsin::wait_status;
using steady = std::chrono::steady_clock;

TEST(Questions, AChannelLetsGoOfAnItemWhenItIsReceived) {
    tocsin::channel<std::shared_ptr<int>> items(4);
    auto item = std::make_shared<int>(1);
    const std::weak_ptr<int> seen = item;
    (void)items.send(std::move(item));
    EXPECT_FALSE(seen.expired());
    {
        const auto received = items.receive();
    }
    EXPECT_TRUE(seen.expired());
}

TEST(Questions, ARequestForNoPermitsDoesNotWaitInLine) {
    tocsin::counting_semaphore<> permits(1);
    thread_group threads;
    threads.start("wants two", [&] { permits.acquire(2); });
    until_parked(&permits, 1);
    EXPECT_TRUE(permits.try_acquire(0));
    permits.acquire(0);
    EXPECT_TRUE(permits.try_acquire_for(0, 0ms));
    permits.release();
    threads.join();
    EXPECT_TRUE(permits.try_acquire(0)) << "with no permit at all";
}

TEST(Questions, EachThreadCallsItsOwnPredicate) {
    std::mutex mutex;
    tocsin::condition changed;
    bool over = false;
    std::atomic<int> calls_by_others{0};
    thread_group threads;
    for (int i = 0; i != 3; ++i) {
        threads.start("waiter", [&] {
            const auto me = std::this_thread::get_id();
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] {
                if (std::this_thread::get_id() != me) ++calls_by_others;
                return over;
            });
        });
    }
    until_parked(&changed, 3);
    changed.notify_all();
    {
        const std::lock_guard lock(mutex);
        over = true;
    }
    changed.notify_all();
    threads.join();
    EXPECT_EQ(calls_by_others, 0);
}

TEST(Questions, AWaitForNoTimeCallsAFalsePredicateTwice) {
    std::mutex mutex;
    tocsin::condition changed;
    for (const auto longest : {0ms, -5ms}) {
        std::unique_lock lock(mutex);
        int calls = 0;
        EXPECT_FALSE(changed.wait_for(lock, longest, [&] {
            ++calls;
            return false;
        }));
        EXPECT_EQ(calls, 2);
    }
}

TEST(Questions, ANotificationPassesByAWaitThatWasStopped) {
    std::mutex mutex;
    tocsin::condition changed;
    std::stop_source stopping;
    std::atomic<bool> stopped{false};
    thread_group threads;
    threads.start("is stopped", [&] {
        std::unique_lock lock(mutex);
        stopped = changed.wait(lock, stopping.get_token()) == wait_status::stopped;
    });
    until_parked(&changed, 1);
    threads.start("is notified", [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock);
    });
    until_parked(&changed, 2);
    stopping.request_stop();
    threads.until_finished(1);  // before that, the notification may meet the stop, and end the first wait
    changed.notify_one();
    threads.join();
    EXPECT_TRUE(stopped);
}

TEST(Questions, AnItemSentAfterAReceiveHasGivenUpGoesToTheNext) {
    tocsin::channel<int> meeting(0);
    EXPECT_FALSE(meeting.receive_for(1ms));
    EXPECT_EQ(meeting.try_send(1), tocsin::channel_status::not_ready);
    int received = 0;
    thread_group threads;
    threads.start("next", [&] { received = *meeting.receive(); });
    (void)meeting.send(2);
    threads.join();
    EXPECT_EQ(received, 2);
}

TEST(Questions, ATimerMovedByItsPeriodDoesNotDrift) {
    tocsin::wait_set set;
    tocsin::wait_timer tick;
    set.add(tick, 1);
    // The thread comes late, after five periods. Each tick is due, so none of the five waits sleeps.
    const auto begun = steady::now();
    auto next = begun - 50ms;
    for (int ticks = 0; ticks != 5; ++ticks) {
        next += 10ms;
        tick.reset(next);
        tocsin::ready_item ready[1];
        ASSERT_EQ(set.wait({.until = 0ms}, ready).count, 1u);
    }
    EXPECT_EQ(next, begun);
}

TEST(Questions, ATimerArmedWhileAnotherIsServedIsReportedByTheNextWait) {
    tocsin::wait_set set;
    tocsin::wait_timer first, second;
    set.add(first, 1);
    set.add(second, 2);
    first.reset(0ms);
    for (const std::uint64_t served : {1, 2, 1, 2}) {
        tocsin::ready_item ready[2];
        ASSERT_EQ(set.wait({.until = 0ms}, ready).count, 1u);
        EXPECT_EQ(ready[0].tag, served);
        (served == 1 ? second : first).reset(0ms);
    }
}

TEST(Questions, AnArrivalCountsEvenIfItsWaitHasBeenStopped) {
    tocsin::barrier round(2);
    std::stop_source stopping;
    stopping.request_stop();
    const auto token = round.arrive();
    EXPECT_EQ(round.wait(token, stopping.get_token()), wait_status::stopped);
    round.arrive_and_wait();  // the second and last arrival of the phase
    EXPECT_TRUE(round.try_wait(token));
}

// Of these times none is refused. All of them have passed, whether or not there is something to take.
TEST(Questions, EveryKindTreatsNegativeTimesAlike) {
    using fraction = std::chrono::duration<double>;
    const auto try_all = [](auto longest) {
        tocsin::auto_reset_event event;
        tocsin::counting_semaphore<> permits(0);
        tocsin::latch latch(1);
        tocsin::channel<int> items(1);
        EXPECT_EQ(event.wait_for(longest), wait_status::timed_out);
        EXPECT_FALSE(permits.try_acquire_for(longest));
        EXPECT_EQ(latch.wait_for(longest), wait_status::timed_out);
        EXPECT_EQ(items.receive_for(longest).status(), tocsin::channel_status::timed_out);
        event.set();
        permits.release();
        latch.count_down();
        EXPECT_EQ(items.send_for(1, longest), tocsin::channel_status::done);
        EXPECT_EQ(event.wait_for(longest), wait_status::signaled);
        EXPECT_TRUE(permits.try_acquire_for(longest));
        EXPECT_EQ(latch.wait_for(longest), wait_status::signaled);
        EXPECT_TRUE(items.receive_for(longest));
    };
    try_all(0ns);
    try_all(-1ns);
    try_all(-1h);
    try_all(fraction(-0.5));
    try_all(fraction(std::numeric_limits<double>::quiet_NaN()));
}

#if TOCSIN_ON_POSIX
// If stopped time did not count, the wait would take another 1.5 s.
TEST(Questions, TimeInWhichTheProcessIsStoppedCounts) {
    constexpr auto longest = 1500ms;
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        tocsin::auto_reset_event never;
        const tocsin::deadline until(steady::now() + longest);
        (void)!write(started[1], "x", 1);
        (void)never.wait_until(until);
        _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(started[0], &byte, 1), 1);
    const auto end = steady::now() + longest;
    kill(child, SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    std::this_thread::sleep_until(end);  // no fact to wait for: the child sleeps past it, stopped
    kill(child, SIGCONT);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_LT(steady::now() - end, longest) << "the stopped time was added to the wait";
    close(started[0]);
    close(started[1]);
}
#endif

}  // namespace
