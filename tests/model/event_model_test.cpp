// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over both events. No wake-up is lost or doubled, and no token is made or eaten.
// Nothing is touched that is gone, and everything is published. Proofs P1 to P6 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

MODEL_TEST(event_model, OneSetReleasesOneWaiterAndPublishes, holds_always) {
    auto_reset_event event;
    plain<int> data{0};
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.spawn("waiter", [&] {
        event.wait(sleep_at_once);
        model::check(data == 42, "what the setter wrote is visible");
    });
    r.join_all();
    r.check(!event.is_set(), "the token was consumed");
    r.check(tells_who_is_parked(event), "the next set need not take the lock");
}

// Even if neither has run in between: then no waiter sets it again.
MODEL_TEST(event_model, TwoSetsReleaseTwoWaiters, holds_within, 2) {
    auto_reset_event event;
    bool both_parked = false;
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            event.wait(sleep_at_once);
            if (!both_parked) event.set();
        });
    }
    r.spawn("setter", [&] {
        both_parked = parked_on(event) == 2;
        event.set();
        event.set();
    });
    r.join_all();
    r.check(!both_parked || !event.is_set(), "two tokens, two waiters");
}

MODEL_TEST(event_model, TwoSettersLeaveAtMostOneToken, holds_within, 2) {
    auto_reset_event event;
    int taken = 0;
    for (const char* name : {"setter 1", "setter 2"}) r.spawn(name, [&] { event.set(); });
    r.spawn("waiter", [&] {
        event.wait(sleep_at_once);
        ++taken;
        if (event.try_wait()) ++taken;
    });
    r.join_all();
    if (event.try_wait()) ++taken;
    r.check(taken == 1 || taken == 2, "each set was delivered once or absorbed");
}

MODEL_TEST(event_model, ATimeoutNeverEatsTheToken, holds_always) {
    auto_reset_event event;
    r.spawn("setter", [&] { event.set(); });
    int taken = 0;
    r.spawn("waiter", [&] {
        if (event.wait_until(some_time(), sleep_at_once) == wait_status::signaled) ++taken;
    });
    r.join_all();
    if (event.try_wait()) ++taken;
    r.check(taken == 1, "one token in, one out");
}

MODEL_TEST(event_model, ATimeoutPassesTheTokenToTheNextWaiter, holds_within, 2) {
    auto_reset_event event;
    r.spawn("timed", [&] {
        if (event.wait_until(some_time(), sleep_at_once) == wait_status::signaled) event.set();
    });
    r.spawn("patient", [&] { event.wait(sleep_at_once); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    r.check(tells_who_is_parked(event), "the last wait that ends turns the parked bit off");
    // The timed waiter may have set it once more, but only for the patient one.
    (void)event.try_wait();
}

MODEL_TEST(event_model, AStopNeverEatsTheToken, holds_within, 2) {
    auto_reset_event event;
    model::stop_source source;
    int taken = 0;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("waiter", [&] {
        if (event.wait(source.get_token(), sleep_at_once) == wait_status::signaled) ++taken;
    });
    r.join_all();
    if (event.try_wait()) ++taken;
    r.check(taken == 1, "one token in, one out");
}

MODEL_TEST(event_model, AStoppedWaitReturns, holds_always) {
    auto_reset_event event;
    model::stop_source source;
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("waiter", [&] {
        model::check(event.wait(source.get_token(), sleep_at_once) == wait_status::stopped, "stopped");
    });
    r.join_all();
}

TEST(event_model, SetThenResetReleasesEveryoneWhoWaited) {
    for (const unsigned believed : {1u, 4u}) {
        processors = believed;
        holds_within(believed == 1 ? 2 : 1, [believed](run& r) {
            manual_reset_event event;
            const unsigned waiters = believed == 1 ? 2 : 3;
            for (unsigned i = 0; i != waiters; ++i) r.spawn("waiter", [&] { event.wait(sleep_at_once); });
            r.spawn("setter", [&] {
                const bool all_parked = parked_on(event) == waiters;
                event.set();
                if (all_parked) event.reset();
            });
            r.join_all();
        });
    }
    processors = 1;
}

MODEL_TEST(event_model, ASetOfAGatePublishesToAllThatPass, holds_within, 2) {
    manual_reset_event event;
    plain<int> data{0};
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            event.wait(sleep_at_once);
            model::check(data == 42, "what the setter wrote is visible");
        });
    }
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.join_all();
}

// A set releases the most urgent thread first, whoever has queued first. All are released.
MODEL_TEST(event_model, ASetReleasesThreadsOfDifferentUrgency, holds_within, 1) {
    manual_reset_event event;
    plain<int> data{0};
    for (const unsigned more : {0u, 1u, 2u}) {
        r.spawn("waiter", [&, more] {
            be_urgent(more);
            event.wait(sleep_at_once);
            model::check(data == 42, "what the setter wrote is visible");
        });
    }
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.join_all();
}

MODEL_TEST(event_model, AListReleasesThreadsOfDifferentUrgency, holds_within, 1) {
    auto_reset_event events[2];
    for (const unsigned more : {0u, 1u}) {
        r.spawn("waiter", [&, more] {
            be_urgent(more);
            events[more].wait(sleep_at_once);
        });
    }
    r.spawn("setter", [&] {
        wake_list freed;
        for (auto& each : events) each.set(freed);
        freed.wake();
    });
    r.join_all();
}

// A set still under way must not release a wait that began after a later reset (decision 3).
MODEL_TEST(event_model, ASetUnderWayDoesNotReleaseAWaitBegunAfterAReset, holds_within, 2) {
    manual_reset_event event;
    r.spawn("parked", [&] { event.wait(sleep_at_once); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("again", [&] {
        event.wait(sleep_at_once);
        event.reset();
        model::check(event.wait_until(some_time(), sleep_at_once) == wait_status::timed_out,
                     "nobody set it after the reset");
        event.set();  // for the waiter that parked after the reset, if it did
    });
    r.join_all();
}

// The skipped set (trap 1): a producer publishes an item and sets an event that is set already.
MODEL_TEST(event_model, ASetOnASetEventPublishes, holds_always) {
    auto_reset_event event{true};
    model::atomic<int> item{0};
    r.spawn("producer", [&] {
        item.store(1, std::memory_order_relaxed);
        event.set();
    });
    r.spawn("consumer", [&] {
        do event.wait(sleep_at_once);
        while (item.load(std::memory_order_relaxed) == 0);
    });
    r.join_all();
}

MODEL_TEST(event_model, ASetOnASetGatePublishesToWhoeverResetsIt, holds_always) {
    manual_reset_event event{true};
    model::atomic<int> item{0};
    r.spawn("producer", [&] {
        item.store(1, std::memory_order_relaxed);
        event.set();
    });
    r.spawn("consumer", [&] {
        do {
            event.wait(sleep_at_once);
            event.reset();
        } while (item.load(std::memory_order_relaxed) == 0);
    });
    r.join_all();
}

// The reset finds a parked waiter and goes to take the lock. Before it has the lock, the wait times out, and the event
// is set without the lock.
MODEL_TEST(event_model, AResetThatTakesTheLockSeesWhatItErases, holds_within, 2) {
    manual_reset_event event;
    model::atomic<int> item{0};
    bool seen = false;
    r.spawn("timed", [&] { (void)event.wait_until(some_time(), sleep_at_once); });
    r.spawn("producer", [&] {
        item.store(1, std::memory_order_relaxed);
        event.set();
    });
    r.spawn("consumer", [&] {
        event.reset();
        seen = item.load(std::memory_order_relaxed) == 1;
    });
    r.join_all();
    r.check(seen || event.is_set(), "erased, and its item not seen");
}

MODEL_TEST(event_model, TheThreadReleasedMayDestroyTheEvent, holds_always) {
    auto* event = new auto_reset_event;
    r.spawn("setter", [event] { event->set(); });
    r.spawn("owner", [event] {
        event->wait(sleep_at_once);
        delete event;
    });
    r.join_all();
}

MODEL_TEST(event_model, AThreadThatPolledMayDestroyTheGate, holds_always) {
    auto* event = new manual_reset_event;
    r.spawn("setter", [event] { event->set(); });
    r.spawn("owner", [event] {
        while (!event->is_set()) model::cpu_relax();
        delete event;
    });
    r.join_all();
}

// The owner times out, polls, destroys the event, and waits on a new one at the same address. The late set of the first
// event must not release the owner.
MODEL_TEST(event_model, ALateSetNeverReachesANewEventAtTheSameAddress, holds_within, 3) {
    alignas(manual_reset_event) unsigned char memory[sizeof(manual_reset_event)];
    auto* event = new (memory) manual_reset_event;
    r.spawn("setter", [event] { event->set(); });
    r.spawn("owner", [&memory, event] {
        const auto first = event->wait_until(some_time(), sleep_at_once);
        if (first == wait_status::signaled || event->is_set()) {
            event->~manual_reset_event();
            auto* next = new (memory) manual_reset_event;
            model::check(next->wait_until(some_time(), sleep_at_once) == wait_status::timed_out,
                         "nobody set the second event");
            next->~manual_reset_event();
        }
    });
    r.join_all();
}

// The sets take effect immediately, even if the threads are released later. The released threads destroy their events.
MODEL_TEST(event_model, AListReleasesAllThatItsSetsHandedOver, holds_within, 2) {
    struct pair {
        auto_reset_event first;
        manual_reset_event second;
    };
    auto* const events = new pair;
    plain<int> data{0};
    model::atomic<int> left{2};
    const auto end = [&] {
        model::check(data == 42, "what came before the set is visible");
        if (left.fetch_sub(1) == 1) delete events;
    };
    r.spawn("first", [&] {
        events->first.wait(sleep_at_once);
        end();
    });
    r.spawn("second", [&] {
        events->second.wait(sleep_at_once);
        end();
    });
    r.spawn("setter", [&] {
        data = 42;
        wake_list freed;
        events->first.set(freed);
        events->second.set(freed);
        freed.wake();
    });
    r.join_all();
}

MODEL_TEST(event_model, ATimeoutNeverEatsATokenInAList, holds_always) {
    auto_reset_event event;
    int taken = 0;
    r.spawn("setter", [&] {
        wake_list freed;
        event.set(freed);
        freed.wake();
    });
    r.spawn("waiter", [&] {
        if (event.wait_until(some_time(), sleep_at_once) == wait_status::signaled) ++taken;
    });
    r.join_all();
    if (event.try_wait()) ++taken;
    r.check(taken == 1, "one token in, one out");
}

MODEL_TEST(event_model, WaitersAreServedInTheOrderTheyQueued, holds_within, 2) {
    auto_reset_event event;
    int served = 0;
    r.spawn("first", [&] {
        event.wait(sleep_at_once);
        served = served == 0 ? 1 : 3;
    });
    r.spawn("second", [&] {
        if (parked_on(event) != 1) return;
        if (event.wait_until(some_time(), sleep_at_once) != wait_status::signaled) return;
        model::check(served != 0, "whoever queued first is served first");
        event.set();
    });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
}

}  // namespace
