// SPDX-License-Identifier: Apache-2.0
// No notification is lost or spent twice, and nobody is left behind, under every race of notifications, timeouts,
// stops, waits alongside other sources, and locks of different kinds.
#include "facts.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/condition.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

template <class Lock>
class ConditionStress : public testing::Test {};
using locks = testing::Types<std::mutex, std::recursive_mutex, tocsin::word_lock<>>;
TYPED_TEST_SUITE(ConditionStress, locks);

// Waits in one of all ways, and returns whether it was notified.
bool wait_somehow(condition& changed, auto& lock, tocsin::auto_reset_event& never, random_source& random) {
    const std::chrono::microseconds longest(random.below(60));
    switch (random.below(6)) {
        case 0: return changed.wait_for(lock, longest) == std::cv_status::no_timeout;
        case 1: return changed.wait_any(lock, {.until = longest}, never).status == wait_status::signaled;
        case 2: {
            std::stop_source stop;
            std::jthread stopper([&] { stop.request_stop(); });
            return changed.wait(lock, stop.get_token()) == wait_status::signaled;
        }
        case 3: return changed.wait_any(lock, never).index == 0;
        default: changed.wait(lock); return true;
    }
}

// A queue of jobs: each is taken once, and all are taken. notify_one() alone suffices only if none is ever lost.
TYPED_TEST(ConditionStress, EachNotificationReachesAWaiter) {
    const stress_time time;
    TypeParam mutex;
    condition changed;
    condition room;
    tocsin::auto_reset_event never;
    int jobs = 0;
    long made = 0;
    long taken = 0;
    bool over = false;
    thread_group threads;
    threads.start_many(4, "taker", [&](int number) {
        random_source random(support::seed() + static_cast<std::uint64_t>(number));
        for (;;) {
            std::unique_lock lock(mutex);
            while (jobs == 0 && !over) {
                // Another thread may take the job before this one has the lock again. Then this one waits again.
                (void)wait_somehow(changed, lock, never, random);
            }
            if (jobs == 0) return;
            --jobs;
            ++taken;
            room.notify_one();
        }
    });
    {
        random_source random(support::seed());
        while (!time.is_over()) {
            std::unique_lock lock(mutex);
            room.wait(lock, [&] { return jobs < 3; });
            ++jobs;
            ++made;
            if (random.one_in(2)) lock.unlock();
            changed.notify_one();
            jitter(random);
        }
        const std::lock_guard lock(mutex);
        over = true;
        changed.notify_all();
    }
    threads.join();
    EXPECT_EQ(made, taken);
    EXPECT_EQ(tocsin::waiting_on(&changed) + tocsin::waiting_on(&room), 0u);
    std::printf("%ld jobs\n", made);
}

// Exactly as many waits report a notification as notifications found a waiter.
TYPED_TEST(ConditionStress, ANotificationIsSpentOnce) {
    const stress_time time;
    tocsin::auto_reset_event never;
    long rounds = 0;
    random_source random(support::seed());
    for (; !time.is_over(); ++rounds) {
        TypeParam mutex;
        condition changed;
        std::stop_source enough;
        std::atomic<int> notified{0};
        const int notifications = 1 + static_cast<int>(random.below(2));
        const std::chrono::microseconds longest(random.below(80));
        thread_group threads;
        threads.start_many(2, "patient", [&](int) {
            std::unique_lock lock(mutex);
            if (changed.wait(lock, enough.get_token()) == wait_status::signaled) notified.fetch_add(1);
        });
        support::until_parked(&changed, 2);
        threads.start("hasty", [&] {
            std::unique_lock lock(mutex);
            if (changed.wait_for(lock, longest) == std::cv_status::no_timeout) notified.fetch_add(1);
        });
        threads.start("any", [&] {
            std::unique_lock lock(mutex);
            const auto found = changed.wait_any(lock, {.until = longest}, never);
            if (found.index == 0) notified.fetch_add(1);
        });
        jitter(random);
        for (int i = 0; i != notifications; ++i) changed.notify_one();
        enough.request_stop();
        threads.join();
        ASSERT_EQ(notified.load(), notifications);
    }
    std::printf("%ld rounds\n", rounds);
}

// Phases: whoever comes last notifies all. Each phase has a condition of its own, which the last to come destroys while
// the others may still be on their way to the lock.
TYPED_TEST(ConditionStress, NotifyAllLeavesNobodyBehind) {
    constexpr int members = 6;
    const stress_time time;
    TypeParam mutex;
    tocsin::auto_reset_event never;
    auto changed = std::make_unique<condition>();
    int missing = members;
    long phase = 0;
    bool over = false;
    thread_group threads;
    threads.start_many(members, "member", [&](int number) {
        random_source random(support::seed() + static_cast<std::uint64_t>(number));
        for (;;) {
            jitter(random);
            std::unique_lock lock(mutex);
            if (over) return;
            const long mine = phase;
            if (--missing == 0) {
                ++phase;
                missing = members;
                over = time.is_over();
                changed->notify_all();
                changed = std::make_unique<condition>();
                continue;
            }
            condition& here = *changed;
            while (phase == mine) {
                if (random.one_in(3)) {
                    (void)wait_somehow(here, lock, never, random);
                } else {
                    here.wait(lock);
                    EXPECT_NE(phase, mine) << "no wait returns for no reason";
                }
            }
        }
    });
    threads.join();
    std::printf("%ld phases\n", phase);
}

}  // namespace
