// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the lock of the Python package (python/src/barging_lock.hpp): threads
// exclude each other, none sleeps while the lock is free, and a wait that gives up leaves nobody asleep. Proof P28 in
// docs/proofs.md.
#include "barging_lock.hpp"
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;
using python::barging_lock;

void lock(barging_lock& one) {
    if (one.try_lock()) return;
    const bool taken = one.lock_slow([](auto_reset_event& event, bool&) noexcept {
        event.wait(sleep_at_once);
        return true;
    });
    model::check(taken, "a wait without a deadline takes the lock");
}

// The wait gives up at once, if it has not been given the event.
bool lock_or_give_up(barging_lock& one) {
    return one.try_lock() ||
           one.lock_slow([](auto_reset_event& event, bool&) noexcept { return event.try_wait(); });
}

void unlock(barging_lock& one) {
    bool wake = false;
    model::check(one.unlock(wake), "the owner finds the lock taken");
    if (wake) one.event().set();
}

MODEL_TEST(barging_lock_model, TwoThreadsExcludeEachOther, holds_always) {
    barging_lock one;
    plain<int> data{0};
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            lock(one);
            data = data + 1;
            unlock(one);
        });
    }
    r.join_all();
    r.check(data == 2, "both were inside, one after the other");
    r.check(one.try_lock(), "the lock is free");
}

MODEL_TEST(barging_lock_model, AThreadThatTakesItAgainLeavesNobodyAsleep, holds_within, 2) {
    barging_lock one;
    plain<int> data{0};
    r.spawn("twice", [&] {
        for (int i = 0; i != 2; ++i) {
            lock(one);
            data = data + 1;
            unlock(one);
        }
    });
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            lock(one);
            data = data + 1;
            unlock(one);
        });
    }
    r.join_all();
    r.check(data == 4, "all were inside");
}

MODEL_TEST(barging_lock_model, AWaitThatGivesUpLeavesNobodyAsleep, holds_within, 2) {
    barging_lock one;
    plain<int> data{0};
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            lock(one);
            data = data + 1;
            unlock(one);
        });
    }
    r.spawn("gives up", [&] {
        if (!lock_or_give_up(one)) return;
        data = data + 1;
        unlock(one);
    });
    r.join_all();
    r.check(data >= 2, "those that wait were inside");
    r.check(one.try_lock(), "the lock is free");
}

MODEL_TEST(barging_lock_model, AWaiterThatWasPassedIsNextOrLeavesNobodyAsleep, holds_within, 2) {
    barging_lock one;
    plain<int> data{0};
    r.spawn("twice", [&] {
        for (int i = 0; i != 2; ++i) {
            lock(one);
            data = data + 1;
            unlock(one);
        }
    });
    r.spawn("waits", [&] {
        lock(one);
        data = data + 1;
        unlock(one);
    });
    r.spawn("gives up once it was passed", [&] {
        int sleeps = 0;
        if (!one.try_lock() && !one.lock_slow([&](auto_reset_event& event, bool&) noexcept {
                if (sleeps++ != 0) return event.try_wait();
                event.wait(sleep_at_once);
                return true;
            }))
            return;
        data = data + 1;
        unlock(one);
    });
    r.join_all();
    r.check(data >= 3, "those that wait were inside");
    r.check(one.try_lock(), "the lock is free");
}

// What a thread sees that waits for a lock while another one frees it, and takes it again at once.
struct passed_waiter {
    barging_lock& lock;
    bool gives_up;
    int sleeps = 0;

    bool operator()(auto_reset_event& event, bool&) noexcept {
        unlock(lock);
        if (++sleeps == 1) {
            model::check(lock.try_lock(), "a thread that runs passes the woken one");
        } else {
            model::check(!lock.try_lock(), "nobody passes it again");
            bool wake = false;
            model::check(!lock.unlock(wake), "no thread has the lock yet");
            if (gives_up) return false;
        }
        return event.try_wait();
    }
};

MODEL_TEST(barging_lock_model, AWaiterIsPassedOnce, holds_always) {
    r.spawn("one", [&] {
        for (const bool gives_up : {false, true}) {
            barging_lock one;
            model::check(one.try_lock(), "it is free");
            passed_waiter sleep{one, gives_up};
            model::check(one.lock_slow([&](auto_reset_event& event, bool& has_lock) noexcept {
                return sleep(event, has_lock);
            }),
                         "the release has handed the lock over");
            model::check(sleep.sleeps == 2, "to the waiter that was passed");
            unlock(one);
            model::check(one.try_lock(), "the lock is free");
        }
    });
    r.join_all();
}

MODEL_TEST(barging_lock_model, AnUnlockOfAFreeLockChangesNothing, holds_always) {
    barging_lock one;
    r.spawn("one", [&] {
        bool wake = false;
        model::check(!one.unlock(wake), "it is free");
        lock(one);
        unlock(one);
    });
    r.join_all();
}

}  // namespace
