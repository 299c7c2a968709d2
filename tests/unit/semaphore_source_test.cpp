// SPDX-License-Identifier: Apache-2.0
// Semaphores in wait_any, wait_all, wait_set, co_await and pollable: each takes one permit exactly when it takes the
// semaphore.
#include "executor.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

TEST(SemaphoreInWaitAny, OnePermitIsTakenFromTheFirstThatHasOne) {
    counting_semaphore<> empty(0);
    counting_semaphore<> first(2);
    counting_semaphore<> second(1);
    EXPECT_EQ(wait_any(empty, first, second), (any_result{wait_status::signaled, 1}));
    EXPECT_EQ(wait_any(empty, first, second), (any_result{wait_status::signaled, 1}));
    EXPECT_EQ(wait_any(empty, first, second), (any_result{wait_status::signaled, 2}));
    EXPECT_EQ(wait_any({.until = 0s}, empty, first, second).status, wait_status::timed_out);
    const source list[]{empty, first};
    first.release();
    EXPECT_EQ(wait_any(std::span<const source>(list)).index, 1u);
    EXPECT_FALSE(first.try_acquire());
}

TEST(SemaphoreInWaitAny, AReleaseIsHandedOver) {
    for (const bool list : {false, true}) {
        auto_reset_event event;
        counting_semaphore<> semaphore(0);
        thread_group threads;
        threads.start([&] {
            const source those[]{event, semaphore};
            EXPECT_EQ((list ? wait_any(std::span<const source>(those)) : wait_any(event, semaphore)).index,
                      1u);
        });
        until_parked(&semaphore, 1);
        semaphore.release(2);
        EXPECT_EQ(tocsin::waiting_on(&semaphore), 0u);
        EXPECT_TRUE(semaphore.try_acquire());
        EXPECT_FALSE(semaphore.try_acquire());
        threads.join();
    }
}

TEST(SemaphoreInWaitAny, QueuesBehindAnOlderAcquireOfSeveral) {
    counting_semaphore<> semaphore(0);
    thread_group threads;
    threads.start([&] { semaphore.acquire(2, tocsin::spin_policy::none()); });
    until_parked(&semaphore, 1);
    threads.start([&] { EXPECT_EQ(wait_any(semaphore).index, 0u); });
    until_parked(&semaphore, 2);
    semaphore.release(2);
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 1u);
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(0));
    semaphore.release();
}

TEST(SemaphoreInWaitAny, ATimeoutOrAnotherSourceTakesNoPermit) {
    counting_semaphore<> semaphore(0);
    manual_reset_event event;
    EXPECT_EQ(wait_any({.until = 1ms}, semaphore, event).status, wait_status::timed_out);
    event.set();
    EXPECT_EQ(wait_any(semaphore, event).index, 1u);
    semaphore.release();
    EXPECT_EQ(wait_any(event, semaphore).index, 0u);
    EXPECT_TRUE(semaphore.try_acquire());
}

TEST(SemaphoreInWaitAll, AllAreTakenTogether) {
    counting_semaphore<> semaphore(2);
    auto_reset_event event;
    EXPECT_EQ(tocsin::wait_all({.until = 1ms}, semaphore, event), wait_status::timed_out);
    EXPECT_TRUE(semaphore.try_acquire(2)) << "nothing was taken";
    semaphore.release(2);
    event.set();
    EXPECT_EQ(tocsin::wait_all(semaphore, event), wait_status::signaled);
    EXPECT_FALSE(event.is_set());
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(SemaphoreInWaitAll, EitherSourceMayBeTheLast) {
    for (const bool semaphore_last : {false, true}) {
        counting_semaphore<> semaphore(0);
        auto_reset_event event;
        thread_group threads;
        threads.start([&] { EXPECT_EQ(tocsin::wait_all(semaphore, event), wait_status::signaled); });
        until_parked(&semaphore, 1);
        until_parked(&event, 1);
        if (semaphore_last) {
            event.set();
            semaphore.release(2);
        } else {
            semaphore.release();
            EXPECT_TRUE(semaphore.try_acquire()) << "a wait for all takes nothing before it can take all";
            semaphore.release(2);
            event.set();
        }
        threads.join();
        EXPECT_TRUE(semaphore.try_acquire());
        EXPECT_FALSE(semaphore.try_acquire());
        EXPECT_FALSE(event.is_set());
    }
}

TEST(SemaphoreInWaitAll, OneReleaseMaySatisfySeveralWaits) {
    counting_semaphore<> semaphore(0);
    manual_reset_event gate(true);
    thread_group threads;
    threads.start_many(3, "waiter",
                       [&](int) { EXPECT_EQ(tocsin::wait_all(semaphore, gate), wait_status::signaled); });
    until_parked(&semaphore, 3);
    semaphore.release(4);
    threads.join();
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(SemaphoreInWaitAll, TwoSemaphoresAreTakenAtOneInstant) {
    binary_semaphore left(1);
    binary_semaphore right(1);
    int meals = 0;
    thread_group threads;
    threads.start_many(3, "philosopher", [&](int i) {
        for (int n = 0; n != 200; ++n) {
            if (i % 2 == 0)
                (void)tocsin::wait_all(left, right);
            else
                (void)tocsin::wait_all(right, left);
            ++meals;
            left.release();
            right.release();
        }
    });
    threads.join();
    EXPECT_EQ(meals, 600);
}

#if TOCSIN_ON_POSIX
TEST(SemaphoreInAWaitSet, EachReportIsOnePermit) {
    counting_semaphore<> semaphore(2);
    tocsin::wait_set set;
    set.add(semaphore, 7);
    std::array<tocsin::ready_item, 4> found;
    for (int i = 0; i != 2; ++i) {
        const auto result = set.wait(found);
        ASSERT_EQ(result.status, wait_status::signaled);
        ASSERT_EQ(result.count, 1u);
        EXPECT_EQ(found[0].tag, 7u);
    }
    EXPECT_FALSE(semaphore.try_acquire());
    EXPECT_EQ(set.wait({.until = 1ms}, found).status, wait_status::timed_out);
    thread_group threads;
    threads.start([&] { semaphore.release(3); });
    for (int i = 0; i != 3; ++i) EXPECT_EQ(set.wait(found).count, 1u);
    threads.join();
    EXPECT_FALSE(semaphore.try_acquire());
    EXPECT_TRUE(set.remove(semaphore));
    semaphore.release();
    EXPECT_TRUE(semaphore.try_acquire());
}

TEST(SemaphoreInAView, ThePermitsAreTakenThroughIt) {
    counting_semaphore<> semaphore(0);
    tocsin::pollable watched(semaphore);
    EXPECT_FALSE(watched.try_wait());
    semaphore.release(2);
    EXPECT_EQ(wait_any({.until = 1s}, tocsin::readable(watched.descriptor())).index, 0u);
    EXPECT_TRUE(watched.try_wait());
    EXPECT_TRUE(watched.try_wait());
    EXPECT_FALSE(watched.try_wait());
    EXPECT_EQ(wait_any({.until = 0s}, tocsin::readable(watched.descriptor())).status, wait_status::timed_out);
}
#endif

task take(counting_semaphore<>& semaphore, int& taken) {
    co_await tocsin::async_wait(semaphore);
    ++taken;
}

TEST(SemaphoreInACoroutine, OnePermitResumesOneCoroutine) {
    counting_semaphore<> semaphore(1);
    int taken = 0;
    const task at_once = take(semaphore, taken);
    EXPECT_EQ(taken, 1);
    std::vector<task> waiting;
    for (int i = 0; i != 3; ++i) waiting.push_back(take(semaphore, taken));
    EXPECT_EQ(taken, 1);
    semaphore.release();
    EXPECT_EQ(taken, 2);
    EXPECT_TRUE(waiting[0].done());
    semaphore.release(2);
    EXPECT_EQ(taken, 4);
    EXPECT_FALSE(semaphore.try_acquire());
}

task take_both(counting_semaphore<>& semaphore, auto_reset_event& event, int& taken) {
    if (co_await tocsin::async_wait_all({.until = 1h}, semaphore, event) == wait_status::signaled) ++taken;
    const auto [status, index, found] = co_await tocsin::async_wait_any(event, semaphore);
    if (index == 1) ++taken;
}

TEST(SemaphoreInACoroutine, InAWaitForAllAndForAny) {
    counting_semaphore<> semaphore(0);
    auto_reset_event event;
    int taken = 0;
    const task waiting = take_both(semaphore, event, taken);
    semaphore.release();
    EXPECT_EQ(taken, 0);
    event.set();
    EXPECT_EQ(taken, 1);
    semaphore.release();
    EXPECT_EQ(taken, 2);
    EXPECT_FALSE(semaphore.try_acquire());
}

task first_then_second(counting_semaphore<>& semaphore, task& second, int& taken) {
    co_await tocsin::async_wait(semaphore);
    ++taken;
    second.destroy();  // it has been given a permit by the same release, but has not continued
}

TEST(SemaphoreInACoroutine, ADestroyedCoroutineGivesItsPermitBack) {
    counting_semaphore<> semaphore(0);
    int taken = 0;
    task second;
    const task first = first_then_second(semaphore, second, taken);
    second = take(semaphore, taken);
    semaphore.release(2);
    EXPECT_EQ(taken, 1);
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(SemaphoreInACoroutine, AReleaseOfNothingIsAllowedWhenAPermitWentBackBeyondMax) {
    binary_semaphore semaphore(0);
    support::executor executor;
    task waiting = [](binary_semaphore& from, support::executor& where) -> task {
        co_await tocsin::async_wait(from).on(where);
    }(semaphore, executor);
    semaphore.release();  // to the coroutine
    semaphore.release();
    executor.forget(waiting.handle());
    waiting.destroy();
    EXPECT_NO_THROW(semaphore.release(0));
    EXPECT_THROW(semaphore.release(), std::system_error);
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(SemaphoreInACoroutine, ADestroyedWaitLeavesTheQueue) {
    counting_semaphore<> semaphore(0);
    int taken = 0;
    {
        const task gone = take(semaphore, taken);
    }
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 0u);
    semaphore.release();
    EXPECT_TRUE(semaphore.try_acquire());
}

}  // namespace
