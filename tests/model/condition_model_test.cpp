// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over conditions. No wake-up is lost. A notification reaches one thread or all
// that wait, and is never spent on another wait. Threads that take turns all get theirs. Nothing is touched that is
// gone. Proof P19 in docs/proofs.md.
#include "support/library_model.hpp"

#include <condition_variable>
#include <mutex>
#include <new>

namespace {

// A lock about which the library knows nothing: the threads relay before they take it.
struct unknown_lock {
    void lock() noexcept { inside.lock(tocsin::library_model::sleep_at_once); }
    void unlock() noexcept { inside.unlock(); }
    tocsin::word_lock<> inside;
};

// The same, but the threads take turns.
struct mutex : unknown_lock {};

}  // namespace

template <>
inline constexpr bool tocsin::is_plain_mutex<mutex> = true;

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;
using guard = std::unique_lock<mutex>;

std::size_t waiting_for(const condition& on) {
    std::size_t count = 0;
    core::locked_queue({&on, core::wait_kind::condition}).for_each([&](const core::wait_node&) { ++count; });
    return count;
}

constexpr auto notified = std::cv_status::no_timeout;

TEST(condition_model, NoWakeUpIsLost) {
    for (const bool all : {false, true}) {
        holds_within(2, [all](run& r) {
            mutex lock;
            condition changed;
            plain<bool> ready{false};
            r.spawn("notifier", [&] {
                {
                    const guard held(lock);
                    ready = true;
                }
                all ? changed.notify_all() : changed.notify_one();
            });
            r.spawn("waiter", [&] {
                guard held(lock);
                changed.wait(held, [&]() -> bool { return ready; }, sleep_at_once);
            });
            r.join_all();
        });
    }
}

MODEL_TEST(condition_model, ANotificationPublishes, holds_within, 2) {
    unknown_lock locks[2];
    condition changed;
    plain<int> data{0};
    r.spawn("notifier", [&] {
        data = 42;
        changed.notify_all();
    });
    for (int i : {0, 1}) {
        r.spawn("waiter", [&, i] {
            std::unique_lock held(locks[i]);
            if (changed.wait_until(held, some_time(), sleep_at_once) == notified)
                model::check(data == 42, "what the notifier wrote is visible");
        });
    }
    r.join_all();
}

// When threads take turns, what came before the notification reaches the last of them through the others.
MODEL_TEST(condition_model, TurnsPublishAndNobodyIsLeftOut, holds_within, 1) {
    mutex lock;
    condition changed;
    plain<int> data{0};
    int left = 3;
    for (const char* name : {"waiter 1", "waiter 2", "waiter 3"}) {
        r.spawn(name, [&] {
            guard held(lock);
            --left;
            if (left == 0) {
                data = 42;
                changed.notify_all();
            } else {
                changed.wait(held, sleep_at_once);
                model::check(data == 42, "what the notifier wrote is visible");
            }
        });
    }
    r.join_all();
    r.check(waiting_for(changed) == 0, "nobody is left");
}

MODEL_TEST(condition_model, NotifyAllReachesThoseWhoWaitAndNobodyElse, holds_within, 1) {
    mutex lock;
    condition changed;
    int waiting = 0;
    int expected = -1;
    int released = 0;
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            guard held(lock);
            ++waiting;
            const auto how = changed.wait_until(held, some_time(), sleep_at_once);
            --waiting;
            if (how == notified) ++released;
        });
    }
    r.spawn("notifier", [&] {
        const guard held(lock);
        expected = waiting;
        changed.notify_all();
    });
    r.join_all();
    r.check(released <= expected, "nobody who came later was released");
}

// The patient thread waits for sure, so the notification must reach somebody.
MODEL_TEST(condition_model, ANotificationReachesSomebodyIfAnybodyWaits, holds_within, 1) {
    mutex lock;
    condition changed;
    model::stop_source enough;
    bool waits = false;
    bool sent = false;
    int got = 0;
    r.spawn("timed", [&] {
        guard held(lock);
        if (changed.wait_until(held, some_time(), sleep_at_once) == notified) ++got;
    });
    r.spawn("patient", [&] {
        guard held(lock);
        waits = true;
        if (changed.wait(held, enough.get_token(), sleep_at_once) == wait_status::signaled) ++got;
    });
    r.spawn("notifier", [&] {
        {
            const guard held(lock);
            sent = waits;
        }
        changed.notify_one();
        enough.request_stop();
    });
    r.join_all();
    r.check(!sent || got == 1, "exactly one of the two was notified");
}

MODEL_TEST(condition_model, TwoNotificationsReleaseTwo, holds_within, 1) {
    mutex lock;
    condition changed;
    int left = 2;
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            guard held(lock);
            if (left != 0) changed.wait(held, sleep_at_once);
        });
    }
    r.spawn("notifier", [&] {
        {
            const guard held(lock);
            left = 0;
        }
        changed.notify_one();
        changed.notify_one();
    });
    r.join_all();
}

MODEL_TEST(condition_model, AStopNeverEatsANotification, holds_within, 2) {
    mutex lock;
    condition changed;
    model::stop_source stop;
    bool sent = false;
    bool got = false;
    bool ended = false;
    r.spawn("waiter", [&] {
        guard held(lock);
        got = changed.wait(held, stop.get_token(), sleep_at_once) == wait_status::signaled;
        ended = true;
    });
    r.spawn("notifier", [&] {
        const guard held(lock);
        sent = waiting_for(changed) == 1 && !ended;
        changed.notify_one();
    });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.join_all();
    r.check(!got || sent, "a wait was notified only if a notification came");
}

// The patient thread waits for sure, so the notification must reach one of the two, whatever ends the other's wait.
MODEL_TEST(condition_model, OfADeadlineAStopAndANotificationOneEndsTheWait, holds_within, 1) {
    mutex lock;
    condition changed;
    model::stop_source stop;
    model::stop_source enough;
    bool waits = false;
    bool sent = false;
    bool asked = false;
    int got = 0;
    r.spawn("limited", [&] {
        guard held(lock);
        const auto how = changed.wait_until(held, some_time(), stop.get_token(), sleep_at_once);
        if (how == wait_status::signaled) ++got;
        model::check(how != wait_status::stopped || asked, "stopped only by a stop");
    });
    r.spawn("patient", [&] {
        guard held(lock);
        waits = true;
        if (changed.wait(held, enough.get_token(), sleep_at_once) == wait_status::signaled) ++got;
    });
    r.spawn("notifier", [&] {
        {
            const guard held(lock);
            sent = waits;
        }
        changed.notify_one();
        enough.request_stop();
    });
    r.spawn("stopper", [&] {
        asked = true;
        stop.request_stop();
    });
    r.join_all();
    r.check(got <= 1, "nobody is notified without a notification");
    r.check(!sent || got == 1, "exactly one of the two was notified");
    r.check(waiting_for(changed) == 0, "nobody is left");
}

// Nobody notifies, so only a limit can end the waits.
MODEL_TEST(condition_model, AWaitWithADeadlineAndAStopEndsByEither, holds_within, 1) {
    mutex lock;
    condition changed;
    model::stop_source stop;
    model::stop_source never;
    r.spawn("stopped", [&] {
        guard held(lock);
        const auto how = changed.wait_until(held, deadline::never(), stop.get_token(), sleep_at_once);
        model::check(how == wait_status::stopped, "by the stop");
    });
    r.spawn("timed", [&] {
        guard held(lock);
        const auto how = changed.wait_until(held, some_time(), never.get_token(), sleep_at_once);
        model::check(how == wait_status::timed_out, "by the deadline");
    });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.join_all();
    r.check(waiting_for(changed) == 0, "nobody is left");
}

// A wait that has been notified can no longer time out; a wait that has timed out gets no turn.
MODEL_TEST(condition_model, ThreadsOfDifferentUrgencyTakeTurns, holds_within, 1) {
    mutex lock;
    condition changed;
    bool sent = false;
    for (const unsigned more : {0u, 1u}) {
        r.spawn("waiter", [&, more] {
            be_urgent(more);
            guard held(lock);
            changed.wait(held, [&] { return sent; }, sleep_at_once);
        });
    }
    r.spawn("notifier", [&] {
        const guard held(lock);
        sent = true;
        changed.notify_all();
    });
    r.join_all();
}

MODEL_TEST(condition_model, TimedWaitsTakeTurnsToo, holds_within, 1) {
    mutex lock;
    condition changed;
    bool sent = false;
    r.spawn("timed", [&] {
        guard held(lock);
        (void)changed.wait_until(held, some_time(), sleep_at_once);
    });
    r.spawn("patient", [&] {
        guard held(lock);
        changed.wait(held, [&] { return sent; }, sleep_at_once);
    });
    r.spawn("notifier", [&] {
        const guard held(lock);
        sent = true;
        changed.notify_all();
    });
    r.join_all();
}

// The first waiter's lock is held by a thread that waits for the second waiter, which has another lock.
MODEL_TEST(condition_model, DifferentLocksAreNotTakenInTurns, holds_within, 1) {
    mutex locks[2];
    condition changed;
    manual_reset_event second_is_back;
    model::stop_source enough;
    for (int i : {0, 1}) {
        r.spawn("waiter", [&, i] {
            guard held(locks[i]);
            (void)changed.wait(held, enough.get_token(), sleep_at_once);
            if (i == 1) second_is_back.set();
        });
    }
    r.spawn("notifier", [&] {
        {
            const guard held(locks[0]);
            const bool both = waiting_for(changed) == 2;
            changed.notify_all();
            if (both) second_is_back.wait(sleep_at_once);
        }
        enough.request_stop();
    });
    r.join_all();
}

// ---- lifetime -----------------------------------------------------------------------------------

// The notifier does not hold the lock, so the thread that it releases may destroy the condition during the call.
TEST(condition_model, TheThreadReleasedMayDestroyTheCondition) {
    for (const bool all : {false, true}) {
        holds_within(2, [all](run& r) {
            mutex lock;
            // Always at one address: how waiting_for() walks the queues depends on it.
            alignas(condition) static unsigned char memory[sizeof(condition)];
            auto* const changed = new (memory) condition;
            bool nobody_waits = false;
            r.spawn("notifier", [&, changed] {
                {
                    const guard held(lock);
                    nobody_waits = waiting_for(*changed) == 0;
                    if (nobody_waits) return;
                }
                all ? changed->notify_all() : changed->notify_one();
            });
            r.spawn("owner", [&, changed] {
                guard held(lock);
                if (!nobody_waits) changed->wait(held, sleep_at_once);
                held.unlock();
                changed->~condition();
            });
            r.join_all();
        });
    }
}

// The notifier destroys the condition before the notified threads have returned. One of them may have timed out.
MODEL_TEST(condition_model, TheNotifierMayDestroyTheCondition, holds_within, 1) {
    mutex lock;
    alignas(condition) unsigned char memory[sizeof(condition)];  // at the same address in each run
    auto* const changed = new (memory) condition;
    bool gone = false;
    for (const bool timed : {false, true}) {
        r.spawn(timed ? "timed" : "patient", [&, changed, timed] {
            guard held(lock);
            if (gone) return;
            (void)changed->wait_until(held, timed ? some_time() : deadline::never(), sleep_at_once);
        });
    }
    r.spawn("owner", [&, changed] {
        const guard held(lock);
        gone = true;
        changed->notify_all();
        changed->~condition();
    });
    r.join_all();
}

// ---- alongside other sources -----------------------------------------------------------------------

MODEL_TEST(condition_model, AWaitForAnyTakesTheNotificationOrTheEvent, holds_within, 2) {
    mutex lock;
    condition changed;
    auto_reset_event event;
    bool sent = false;
    std::size_t taken = 2;
    r.spawn("notifier", [&] {
        const guard held(lock);
        sent = waiting_for(changed) == 1;
        changed.notify_one();
    });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] {
        guard held(lock);
        taken = changed.wait_any(held, {.spin = sleep_at_once}, event).index;
    });
    r.join_all();
    r.check(event.try_wait() == (taken == 0), "exactly one of the two was taken");
    r.check(taken == 1 || sent, "a notification came");
}

MODEL_TEST(condition_model, AWaitForAnyLosesNoWakeUp, holds_within, 2) {
    mutex lock;
    condition changed;
    auto_reset_event never;
    plain<bool> ready{false};
    r.spawn("notifier", [&] {
        {
            const guard held(lock);
            ready = true;
        }
        changed.notify_one();
    });
    r.spawn("waiter", [&] {
        guard held(lock);
        while (!ready) (void)changed.wait_any(held, {.spin = sleep_at_once}, never);
    });
    r.join_all();
}

// The event may end the first wait just as the notification comes. Then the other thread gets the notification.
MODEL_TEST(condition_model, ANotificationIsNotSpentOnAWaitThatTookTheEvent, holds_within, 1) {
    mutex lock;
    condition changed;
    auto_reset_event event;
    model::stop_source enough;
    const model::stop_token token = enough.get_token();
    bool waits = false;
    bool sent = false;
    int got = 0;
    r.spawn("any", [&] {
        guard held(lock);
        if (changed.wait_any(held, {.stop = token, .spin = sleep_at_once}, event).index == 0) ++got;
    });
    r.spawn("patient", [&] {
        guard held(lock);
        waits = true;
        if (changed.wait(held, token, sleep_at_once) == wait_status::signaled) ++got;
    });
    r.spawn("notifier", [&] {
        {
            const guard held(lock);
            sent = waits;
        }
        event.set();
        changed.notify_one();
        enough.request_stop();
    });
    r.join_all();
    r.check(!sent || got == 1, "exactly one of the two was notified");
}

}  // namespace
