// SPDX-License-Identifier: Apache-2.0
// An event as a descriptor, in every interleaving of small programs: a thread that sleeps until the descriptor is
// readable overlooks nothing, and no thread touches a pollable that is gone. Proof P12 in docs/proofs.md.
#include "support/library_model.hpp"

#include <memory>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::run;

constexpr auto relaxed = std::memory_order_relaxed;

// A loop that runs until it has been told of the last reason. If it reports only changes, it calls try_wait() until
// there is nothing to take.
void loop(pollable& watched, const atomic<int>& given, int last, reports which) {
    for (int seen = 0; seen != last;) {
        sleep_until_raised(which);
        while (watched.try_wait()) {
            seen = given.load(relaxed);
            if (which == reports::levels) break;
        }
    }
}

TEST(pollable_model, NoSetIsOverlooked) {
    for (const reports which : {reports::levels, reports::changes}) {
        holds_within(2, [which](run& r) {
            auto_reset_event event;
            pollable watched(event);
            atomic<int> given{0};
            r.spawn("setter", [&] {
                for (int reason = 1; reason <= 3; ++reason) {
                    given.store(reason, relaxed);
                    event.set();
                }
            });
            r.spawn("loop", [&] { loop(watched, given, 3, which); });
            r.join_all();
        });
    }
}

// Two setters may both be about to raise the flag. A thread that takes the token in between gives the token back.
MODEL_TEST(pollable_model, NoSetIsOverlookedBesideOthersThatSetAndTake, holds_within, 2) {
    auto_reset_event event;
    pollable watched(event);
    atomic<int> given{0};
    r.spawn("setter", [&] {
        given.store(1, relaxed);
        event.set();
    });
    r.spawn("another", [&] {
        event.set();
        if (event.try_wait()) event.set();
    });
    r.spawn("loop", [&] {
        const bool seen = watched.try_wait() && given.load(relaxed) == 1;
        if (!seen) loop(watched, given, 1, reports::levels);
    });
    r.join_all();
}

MODEL_TEST(pollable_model, AViewMayGoWhileItsEventIsSet, holds_within, 2) {
    auto_reset_event event;
    auto watched = std::make_unique<pollable>(event);
    for (const char* name : {"setter 1", "setter 2"}) r.spawn(name, [&] { event.set(); });
    r.spawn("owner", [&] {
        (void)watched->try_wait();
        watched.reset();
    });
    r.join_all();
    (void)event.try_wait();
}

// The owner of the list destroys the pollable before it wakes those in the list.
MODEL_TEST(pollable_model, AViewMayGoBeforeTheWakeOfAList, holds_within, 2) {
    auto_reset_event event;
    auto watched = std::make_unique<pollable>(event);
    r.spawn("waiter", [&] { event.wait(sleep_at_once); });
    r.spawn("setter", [&] {
        wake_list freed;
        event.set(freed);
        watched.reset();
        freed.wake();
    });
    r.join_all();
    r.check(!event.is_set(), "token taken");
}

}  // namespace
