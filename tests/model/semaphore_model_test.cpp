// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over semaphores. No permit is lost, made or taken twice, and no wake-up is lost.
// Waits for several permits neither deadlock nor starve. Nothing is touched that is gone. Proof P17 in docs/proofs.md.
// The program is built twice, with one bucket and with two.
#include "support/library_model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

using semaphore = counting_semaphore<>;

// How many are parked on it.
std::size_t waiting_for(const semaphore& on) {
    std::size_t count = 0;
    core::locked_queue({&on, core::wait_kind::semaphore}).for_each([&](const core::wait_node&) { ++count; });
    return count;
}

std::uint32_t word_of(semaphore& of) {
    const source itself = of;
    return static_cast<const detail::semaphore_word*>(itself.object())->load(std::memory_order_relaxed);
}

// One of these events. If there are two buckets, it is one in another bucket than the semaphore.
auto_reset_event& elsewhere(const semaphore& from, std::span<auto_reset_event> events) {
    const auto bucket_of = [](const void* address, core::wait_kind kind) {
        return core::key_hash({address, kind}).index;
    };
    std::size_t chosen = 0;
    while (core::bucket_bits != 0 && bucket_of(&events[chosen], core::wait_kind::event) ==
                                         bucket_of(&from, core::wait_kind::semaphore)) {
        ++chosen;
    }
    return events[chosen];
}

// At the end of a run: exactly so many permits are free, and nobody waits or holds (semaphore-1, semaphore-6).
void expect_free(run& r, semaphore& in, unsigned permits) {
    r.check(word_of(in) == permits * detail::semaphore_state::one,
            "as many permits out as in, and no bit is left on");
}

MODEL_TEST(semaphore_model, AReleaseReleasesOneWaiterAndPublishes, holds_always) {
    semaphore permits(0);
    plain<int> data{0};
    r.spawn("releaser", [&] {
        data = 42;
        permits.release();
    });
    r.spawn("waiter", [&] {
        permits.acquire(sleep_at_once);
        model::check(data == 42, "what the releaser wrote is visible");
    });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, ATryThatSucceedsSeesWhatWasPublished, holds_always) {
    semaphore permits(0);
    plain<int> data{0};
    r.spawn("releaser", [&] {
        data = 42;
        permits.release();
    });
    r.spawn("taker", [&] {
        if (permits.try_acquire()) model::check(data == 42, "what the releaser wrote is visible");
    });
    r.join_all();
}

// A later release must not hide what an earlier one published.
MODEL_TEST(semaphore_model, EveryReleaseOfTwoPublishes, holds_within, 2) {
    semaphore permits(0);
    plain<int> first{0};
    plain<int> second{0};
    r.spawn("releaser 1", [&] {
        first = 1;
        permits.release();
    });
    r.spawn("releaser 2", [&] {
        second = 1;
        permits.release();
    });
    r.spawn("waiter", [&] {
        permits.acquire(2, sleep_at_once);
        model::check(first == 1 && second == 1, "what both wrote is visible");
    });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, AReleaseOfTwoReleasesTwoWaiters, holds_within, 2) {
    semaphore permits(0);
    for (const char* name : {"waiter 1", "waiter 2"}) r.spawn(name, [&] { permits.acquire(sleep_at_once); });
    r.spawn("releaser", [&] { permits.release(3); });
    r.join_all();
    expect_free(r, permits, 1);
}

MODEL_TEST(semaphore_model, NoMoreAreInsideThanThereArePermits, holds_within, 2) {
    semaphore permits(1);
    plain<int> inside{0};  // a second thread inside would race with the first
    for (const char* name : {"thread 1", "thread 2", "thread 3"}) {
        r.spawn(name, [&] {
            permits.acquire(sleep_at_once);
            inside = inside + 1;
            model::check(inside == 1, "alone inside");
            inside = inside - 1;
            permits.release();
        });
    }
    r.join_all();
    expect_free(r, permits, 1);
}

// Under the adaptive policy, each thread of a model yields before it queues, and tries again after each yield.
TEST(semaphore_model, AThreadThatYieldsBeforeItQueuesTakesItsPermitsOnce) {
    for (const int wanted : {1, 2}) {
        holds_within(2, [wanted](run& r) {
            semaphore permits(wanted);
            plain<int> inside{0};  // a second thread inside would race with the first
            for (const char* name : {"thread 1", "thread 2"}) {
                r.spawn(name, [&] {
                    permits.acquire(wanted, spin_policy::adaptive());
                    inside = inside + 1;
                    model::check(inside == 1, "alone inside");
                    inside = inside - 1;
                    permits.release(wanted);
                });
            }
            r.join_all();
            expect_free(r, permits, static_cast<unsigned>(wanted));
        });
    }
}

MODEL_TEST(semaphore_model, ATimeoutNeverEatsAPermit, holds_always) {
    semaphore permits(0);
    int taken = 0;
    r.spawn("releaser", [&] { permits.release(); });
    r.spawn("waiter", [&] {
        if (permits.try_acquire_until(some_time(), sleep_at_once)) ++taken;
    });
    r.join_all();
    expect_free(r, permits, taken == 0 ? 1 : 0);
}

// The release finds the parked bit on, and then nobody in the queue.
MODEL_TEST(semaphore_model, APermitThatNobodyWaitedForIsPublished, holds_within, 2) {
    semaphore permits(0);
    plain<int> data{0};
    r.spawn("timed", [&] {
        if (permits.try_acquire_until(some_time(), sleep_at_once)) permits.release();
    });
    r.spawn("releaser", [&] {
        data = 42;
        permits.release();
    });
    r.spawn("taker", [&] {
        if (permits.try_acquire()) {
            model::check(data == 42, "what the releaser wrote is visible");
            permits.release();
        }
    });
    r.join_all();
    expect_free(r, permits, 1);
}

MODEL_TEST(semaphore_model, AStopNeverEatsAPermit, holds_within, 2) {
    semaphore permits(0);
    model::stop_source stop;
    int taken = 0;
    r.spawn("releaser", [&] { permits.release(); });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("waiter", [&] {
        if (permits.acquire(stop.get_token(), sleep_at_once) == wait_status::signaled) ++taken;
    });
    r.join_all();
    expect_free(r, permits, taken == 0 ? 1 : 0);
}

MODEL_TEST(semaphore_model, ATimeoutPassesThePermitToTheNextWaiter, holds_within, 2) {
    semaphore permits(0);
    r.spawn("timed", [&] {
        if (permits.try_acquire_until(some_time(), sleep_at_once)) permits.release();
    });
    r.spawn("patient", [&] { permits.acquire(sleep_at_once); });
    r.spawn("releaser", [&] { permits.release(); });
    r.join_all();
    expect_free(r, permits, 0);
}

// ---- several permits at once --------------------------------------------------------------------

MODEL_TEST(semaphore_model, ATimedWaitForSeveralTakesAllOrNone, holds_always) {
    semaphore permits(1);
    bool taken = false;
    r.spawn("releaser", [&] {
        permits.release();
        permits.release();
    });
    r.spawn("waiter", [&] { taken = permits.try_acquire_until(3, some_time(), sleep_at_once); });
    r.join_all();
    expect_free(r, permits, taken ? 0 : 3);
}

MODEL_TEST(semaphore_model, WhatATimedWaitCollectedGoesToTheNextWaiter, holds_within, 2) {
    semaphore permits(1);
    bool taken = false;
    r.spawn("timed", [&] {
        taken = permits.try_acquire_until(2, some_time(), sleep_at_once);
        if (taken) permits.release(2);
    });
    r.spawn("patient", [&] { permits.acquire(2, sleep_at_once); });
    r.spawn("releaser", [&] { permits.release(); });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, AStoppedWaitForSeveralHandsOnWhatItCollected, holds_within, 2) {
    semaphore permits(1);
    model::stop_source stop;
    r.spawn("big", [&] {
        if (permits.acquire(2, stop.get_token(), sleep_at_once) == wait_status::signaled) permits.release(2);
    });
    r.spawn("small", [&] { permits.acquire(sleep_at_once); });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, TwoThatWantSeveralDoNotDeadlock, holds_within, 2) {
    semaphore permits(0);
    for (const char* name : {"big 1", "big 2"}) {
        r.spawn(name, [&] {
            permits.acquire(2, sleep_at_once);
            permits.release(2);
        });
    }
    r.spawn("releaser", [&] {
        permits.release();
        permits.release();
    });
    r.join_all();
    expect_free(r, permits, 2);
}

MODEL_TEST(semaphore_model, AQueueByPriorityLosesNoPermit, holds_within, 1) {
    counting_semaphore<3, queue_order::priority> permits(1);
    for (const unsigned more : {0u, 1u}) {
        r.spawn("two", [&, more] {
            be_urgent(more);
            permits.acquire(2, sleep_at_once);
            permits.release(2);
        });
    }
    r.spawn("releaser", [&] { permits.release(); });
    r.join_all();
    r.check(permits.try_acquire(2), "both permits are back");
}

MODEL_TEST(semaphore_model, ATimedWaitInAQueueByPriorityEatsNoPermit, holds_within, 1) {
    counting_semaphore<3, queue_order::priority> permits(0);
    r.spawn("urgent, timed", [&] {
        be_urgent(1);
        if (permits.try_acquire_until(some_time(), sleep_at_once)) permits.release();
    });
    r.spawn("patient", [&] {
        permits.acquire(sleep_at_once);
        permits.release();
    });
    r.spawn("releaser", [&] { permits.release(); });
    r.join_all();
    r.check(permits.try_acquire(), "the permit is back");
}

MODEL_TEST(semaphore_model, TheOldestIsServedFirstHoweverManyItWants, holds_within, 2) {
    semaphore permits(0);
    bool served = false;
    r.spawn("big", [&] {
        permits.acquire(2, sleep_at_once);
        served = true;
    });
    r.spawn("small", [&] {
        if (waiting_for(permits) != 1) return;
        if (!permits.try_acquire_until(some_time(), sleep_at_once)) return;
        model::check(served || waiting_for(permits) == 0, "the older wait has its permits");
        permits.release();
    });
    r.spawn("releaser", [&] {
        permits.release();
        permits.release();
    });
    r.join_all();
}

// ---- a deadline and a stop in one wait ----------------------------------------------------------

// The result says what ended the wait, and a permit is taken if and only if it says `signaled`.
MODEL_TEST(semaphore_model, OfADeadlineAStopAndAReleaseOneEndsTheWait, holds_within, 2) {
    semaphore permits(0);
    model::stop_source stop;
    plain<int> data{0};
    bool asked = false;
    bool taken = false;
    r.spawn("releaser", [&] {
        data = 42;
        permits.release();
    });
    r.spawn("stopper", [&] {
        asked = true;
        stop.request_stop();
    });
    r.spawn("waiter", [&] {
        const auto how = permits.try_acquire_until(some_time(), stop.get_token(), sleep_at_once);
        taken = how == wait_status::signaled;
        model::check(!taken || data == 42, "what the releaser wrote is visible");
        model::check(how != wait_status::stopped || asked, "stopped only by a stop");
    });
    r.join_all();
    expect_free(r, permits, taken ? 0 : 1);
}

// The wait has two limits. Only one of them can end it.
TEST(semaphore_model, AWaitWithADeadlineAndAStopEndsByEither) {
    holds_always([](run& r) {
        semaphore permits(1);
        model::stop_source never;
        r.spawn("waiter", [&] {
            const auto how = permits.try_acquire_until(2, some_time(), never.get_token(), sleep_at_once);
            model::check(how == wait_status::timed_out, "the deadline ends it");
        });
        r.spawn("passer-by", [&] {
            if (permits.try_acquire()) permits.release();
        });
        r.join_all();
        expect_free(r, permits, 1);
    });
    holds_always([](run& r) {
        semaphore permits(1);
        model::stop_source stop;
        r.spawn("waiter", [&] {
            const auto how = permits.try_acquire_until(2, deadline::never(), stop.get_token(), sleep_at_once);
            model::check(how == wait_status::stopped, "the stop ends it");
        });
        r.spawn("stopper", [&] { stop.request_stop(); });
        r.join_all();
        expect_free(r, permits, 1);
    });
}

// ---- lifetime -----------------------------------------------------------------------------------

TEST(semaphore_model, TheThreadReleasedMayDestroyTheSemaphore) {
    for (const int wanted : {1, 2}) {
        holds_always([wanted](run& r) {
            auto* permits = new semaphore(0);
            r.spawn("releaser", [=] { permits->release(wanted); });
            r.spawn("owner", [=] {
                permits->acquire(wanted, sleep_at_once);
                delete permits;
            });
            r.join_all();
        });
    }
}

MODEL_TEST(semaphore_model, AThreadThatPolledMayDestroyTheSemaphore, holds_within, 2) {
    auto* permits = new semaphore(0);
    r.spawn("releaser", [=] { permits->release(); });
    r.spawn("owner", [=] {
        if (permits->try_acquire_until(some_time(), sleep_at_once) || permits->try_acquire())
            delete permits;
        else {
            while (!permits->try_acquire()) model::cpu_relax();
            delete permits;
        }
    });
    r.join_all();
}

// ---- as a source --------------------------------------------------------------------------------

MODEL_TEST(semaphore_model, AWaitForAnyTakesOnePermitOrTheEvent, holds_within, 2) {
    semaphore permits(0);
    auto_reset_event event;
    std::size_t taken = 2;
    r.spawn("releaser", [&] { permits.release(2); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] { taken = wait_any({.spin = sleep_at_once}, event, permits).index; });
    r.join_all();
    r.check(event.try_wait() == (taken == 1), "exactly one of the two was taken");
    expect_free(r, permits, taken == 1 ? 1 : 2);
}

MODEL_TEST(semaphore_model, ATimedWaitForAnyNeverEatsAPermit, holds_always) {
    semaphore permits(0);
    bool taken = false;
    r.spawn("releaser", [&] { permits.release(); });
    r.spawn("waiter", [&] {
        taken =
            wait_any({.until = some_time(), .spin = sleep_at_once}, permits).status == wait_status::signaled;
    });
    r.join_all();
    expect_free(r, permits, taken ? 0 : 1);
}

MODEL_TEST(semaphore_model, AWaitForAnyAndAWaitForSeveralShareTheQueue, holds_within, 2) {
    semaphore permits(0);
    r.spawn("big", [&] { permits.acquire(2, sleep_at_once); });
    r.spawn("any", [&] { (void)wait_any({.spin = sleep_at_once}, permits); });
    r.spawn("releaser", [&] {
        permits.release(2);
        permits.release();
    });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, AWaitForAllTakesBothAndTheReleaseIsEnough, holds_within, 2) {
    semaphore permits(0);
    auto_reset_event events[16];
    auto_reset_event& event = elsewhere(permits, events);
    plain<int> data{0};
    r.spawn("releaser", [&] {
        data = 1;
        permits.release();
    });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] {
        (void)wait_all(permits, event);
        model::check(data == 1, "what the releaser wrote is visible");
    });
    r.join_all();
    r.check(!event.is_set(), "the event was taken");
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, AWaitForAllThatTimesOutTakesNothing, holds_within, 2) {
    semaphore permits(0);
    auto_reset_event event{true};
    bool taken = false;
    r.spawn("releaser", [&] { permits.release(); });
    r.spawn("waiter",
            [&] { taken = wait_all({.until = some_time()}, permits, event) == wait_status::signaled; });
    r.join_all();
    r.check(event.try_wait() != taken, "both were taken, or none");
    expect_free(r, permits, taken ? 0 : 1);
}

// It holds the semaphore, and then finds that the event has been taken.
MODEL_TEST(semaphore_model, AWaitForAllThatFindsTheEventTakenEndsItsHold, holds_within, 2) {
    semaphore permits(1);
    auto_reset_event event{true};
    bool gone = false;
    bool taken = false;
    r.spawn("passer-by", [&] { gone = event.try_wait(); });
    r.spawn("waiter",
            [&] { taken = wait_all({.until = some_time()}, permits, event) == wait_status::signaled; });
    r.join_all();
    r.check(!gone || !taken, "the event was taken once");
    expect_free(r, permits, taken ? 0 : 1);
}

// The same for a setter that commits the wait, which stays parked. So nobody else ends a hold that the setter forgets.
MODEL_TEST(semaphore_model, ASetterThatFindsTheEventTakenEndsItsHold, holds_within, 1) {
    semaphore permits(1);
    auto_reset_event event{true};
    manual_reset_event gate;
    bool gone = false;
    bool taken = false;
    r.spawn("waiter",
            [&] { taken = wait_all({.until = some_time()}, permits, event, gate) == wait_status::signaled; });
    r.spawn("passer-by", [&] { gone = event.try_wait(); });
    r.spawn("setter", [&] { gate.set(); });
    r.join_all();
    r.check(!gone || !taken, "the event was taken once");
    expect_free(r, permits, taken ? 0 : 1);
}

// One release of two permits is to satisfy both waits, one after the other.
MODEL_TEST(semaphore_model, OneReleaseSatisfiesTwoWaitsForAll, holds_within, 1) {
    semaphore permits(0);
    manual_reset_event gate{true};
    for (const char* name : {"waiter 1", "waiter 2"}) r.spawn(name, [&] { (void)wait_all(permits, gate); });
    r.spawn("releaser", [&] { permits.release(2); });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, APasserByAndAWaitForAllDoNotShareAPermit, holds_within, 2) {
    semaphore permits(1);
    manual_reset_event gate;
    int taken = 0;
    bool all = false;
    r.spawn("passer-by", [&] {
        if (permits.try_acquire()) ++taken;
    });
    r.spawn("setter", [&] { gate.set(); });
    r.spawn("waiter",
            [&] { all = wait_all({.until = some_time()}, permits, gate) == wait_status::signaled; });
    r.join_all();
    expect_free(r, permits, 1u - static_cast<unsigned>(taken) - (all ? 1u : 0u));
}

// A release while a wait for all holds the semaphore must not lose its permit.
MODEL_TEST(semaphore_model, AReleaseBesideAWaitForAllIsKept, holds_within, 2) {
    semaphore permits(1);
    auto_reset_event event{true};
    r.spawn("releaser", [&] { permits.release(); });
    r.spawn("waiter", [&] { (void)wait_all(permits, event); });
    r.join_all();
    expect_free(r, permits, 1);
}

// If a thread finds that one source is taken by the wait for all, it finds the other taken or held.
MODEL_TEST(semaphore_model, NobodySeesHalfOfAWaitForAll, holds_within, 2) {
    semaphore first(1);
    semaphore second(1);
    r.spawn("waiter", [&] { (void)wait_all(first, second); });
    r.spawn("looker", [&] {
        const bool has_first = first.try_acquire();
        const bool has_second = second.try_acquire();
        if (has_first) first.release();
        if (has_second) second.release();
        model::check(has_first || !has_second, "the second alone is not there");
    });
    r.join_all();
    expect_free(r, first, 0);
    expect_free(r, second, 0);
}

// The same for a thread that looks at an event afterwards. ([all-taken]: a look that finds no permit acquires, and
// taking a held permit releases.)
MODEL_TEST(semaphore_model, AThreadThatFindsThePermitTakenFindsTheEventTaken, holds_within, 2) {
    semaphore permits(1);
    auto_reset_event event{true};
    r.spawn("waiter", [&] { (void)wait_all(permits, event); });
    r.spawn("looker", [&] {
        if (permits.try_acquire()) {
            permits.release();
        } else {
            model::check(!event.is_set(), "taken together with the permit");
        }
    });
    r.join_all();
    expect_free(r, permits, 0);
}

MODEL_TEST(semaphore_model, ASetReportsEachPermitOnce, holds_within, 2) {
    semaphore permits(0);
    wait_set set;
    set.add(permits, 1);
    int taken = 0;
    r.spawn("releaser", [&] {
        permits.release();
        permits.release();
    });
    r.spawn("waiter", [&] {
        ready_item item[1];
        for (int i = 0; i != 2; ++i) {
            if (set.wait({.spin = sleep_at_once}, item).status == wait_status::signaled) ++taken;
        }
    });
    r.join_all();
    r.check(taken == 2, "two permits, two reports");
    set.remove(permits);
    expect_free(r, permits, 0);
}

}  // namespace
