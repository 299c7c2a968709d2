// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the tokens that processes share (src/core/shared/token_queue.cpp), in which
// a thread may be killed before any of its steps. Proof P29 in docs/proofs.md.
#include "support/token_model.hpp"

#include <tocsin/shared_semaphore.hpp>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

MODEL_TEST(shared_token_model, AWaitGetsItsToken, holds_always_shared) {
    tokens event(1, 2);
    r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    event.check_end(r);
}

MODEL_TEST(shared_token_model, ATimeOutEatsNoToken, holds_always_shared) {
    tokens event(1, 2);
    r.spawn("waiter", [&] { (void)event.wait(some_time()); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    event.check_end(r);
}

MODEL_TEST(shared_token_model, AWaiterMayBeKilled, holds_always_shared) {
    tokens event(1, 2);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    may_be_killed(r, victim, killed);
    event.set();
    r.join_all();
    event.check_end(r, victim.number());
}

MODEL_TEST(shared_token_model, AGiverMayBeKilled, holds_always_and_settles) {
    tokens event(1, 2);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.set(); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    may_be_killed(r, victim, killed);
    settle(r, event, {waiter.number()});
    event.check_end(r, victim.number());
}

// The waiter that was killed had claimed its slot before the other fell asleep, or after.
MODEL_TEST(shared_token_model, TheTokenOfAKilledWaiterReachesTheOther, holds_when_drawn_and_settles) {
    tokens event(1, 2);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    may_be_killed(r, victim, killed);
    settle(r, event, {waiter.number()});
    event.check_end(r, victim.number());
}

// The waiter is killed after it has been granted the token. The other may be between its looks at word and owner.
MODEL_TEST(shared_token_model, TheTokenOfAKilledWaiterIsSeenInTheMiddleOfALook,
           holds_when_drawn_and_settles) {
    tokens event(1, 2);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("killer", [&, number = victim.number()] {
        model::wait_until([&] { return event.granted() != 0 || model::others_are_blocked(); });
        kill_thread(number, killed);
    });
    settle(r, event, {waiter.number()});
    event.check_end(r, victim.number());
}

// The kernel wakes one of the sleepers for the death of a waiter that had been granted a token. That one may be killed
// before it looks, or in its sleep.
void two_waiters_die(run& r, tokens& event) {
    bool killed[2] = {};
    const auto first = r.spawn("first", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    const auto second = r.spawn("second", [&] { event.wait(); });
    const auto survivor = r.spawn("survivor", [&] { event.wait(); });
    r.spawn("killer", [&, of_first = first.number(), of_second = second.number()] {
        model::wait_until(model::others_are_blocked);
        event.set();
        kill_thread(of_first, killed[0]);
        kill_thread(of_second, killed[1]);
    });
    settle(r, event, {survivor.number()});
}

MODEL_TEST(shared_token_model, ADeathIsNotLostWithTheThreadThatTheKernelWakes, holds_when_drawn_and_settles) {
    tokens event;
    two_waiters_die(r, event);
}

MODEL_TEST(shared_token_model, ADeathIsNotLostWhereAllSlotsHaveBeenOwned, holds_when_drawn_and_settles) {
    tokens event;
    for (auto& each : event.object.slots) each.owner.store(core::free_again, std::memory_order_relaxed);
    two_waiters_die(r, event);
}

// Whether the one that came later is killed or not.
MODEL_TEST(shared_token_model, ASleeperIsServedBeforeOneThatCameLater, holds_when_drawn_and_settles) {
    tokens event(1, 2);
    const auto sleeper = r.spawn("sleeper", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    may_be_killed(r, victim, killed);
    (void)when_settled(event);
    r.check(event.took[sleeper.number()] == 1, "the sleeper has the token");
    if (!killed && event.took[victim.number()] == 0) event.set();
    r.join_all();
    event.check_end(r, victim.number());
}

// One of the others gets a token of its own when the kernel wakes it for the token of the killed waiter.
MODEL_TEST(shared_token_model, AThreadThatLeavesPassesTheNewsOfADeathOn, holds_when_drawn_and_settles) {
    tokens event;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    const auto one = r.spawn("one", [&] { event.wait(); });
    const auto two = r.spawn("two", [&] { event.wait(); });
    r.spawn("setter", [&] {
        event.set();
        event.set();
    });
    may_be_killed(r, victim, killed);
    settle(r, event, {one.number(), two.number()});
    event.check_end(r, victim.number());
}

MODEL_TEST(shared_token_model, AThreadThatGivesUpPassesTheNewsOfADeathOn, holds_when_drawn_and_settles) {
    tokens event;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    r.spawn("in time", [&] { (void)event.wait(some_time()); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    may_be_killed(r, victim, killed);
    settle(r, event, {waiter.number()});
    event.check_end(r, victim.number());
}

MODEL_TEST(shared_token_model, AStopEatsNoToken, holds_within_shared, 2) {
    tokens event(1, 2);
    model::stop_source source;
    const auto token = source.get_token();
    r.spawn("waiter", [&] { (void)event.wait(deadline::never(), &token); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { source.request_stop(); });
    r.join_all();
    event.check_end(r);
}

MODEL_TEST(shared_token_model, TwoSetsReleaseTwo, holds_within_shared, 0) {
    tokens event(2, 2);
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { event.wait(); });
    for (const char* name : {"setter", "another"}) r.spawn(name, [&] { event.set(); });
    r.join_all();
    event.check_end(r);
}

MODEL_TEST(shared_token_model, ATokenPublishes, holds_always_shared) {
    tokens event(1, 2);
    model::plain<int> data{0};
    r.spawn("waiter", [&] {
        event.wait();
        model::check(data == 42, "what came before the set is visible");
    });
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.join_all();
}

// The token is published although the thread that it was handed to is dead.
MODEL_TEST(shared_token_model, AnInheritedTokenPublishes, holds_within_shared, 1) {
    tokens event(1, 2);
    model::plain<int> data{0};
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    may_be_killed(r, victim, killed);
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.spawn("heir", [&] {
        if (event.try_wait()) model::check(data == 42, "what came before the set is visible");
    });
    r.join_all();
    event.check_end(r, victim.number());
}

// With one slot, each claim is that of the slot of the dead.
MODEL_TEST(shared_token_model, AWaitInADeadSlotTakesTheTokenThere, holds_always_and_settles) {
    tokens event(1, 1);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    may_be_killed(r, victim, killed);
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    r.check(event.are_balanced(victim.number()), "each token was given once and taken once");
    const int here = event.left();
    r.check(event.wait(some_time()) == (here != 0 ? wait_status::signaled : wait_status::timed_out),
            "a wait finds the token that the dead has left");
    r.check(event.left() == 0, "no token is there twice");
}

MODEL_TEST(shared_token_model, AReleaseOfSeveralMayBeKilled, holds_when_drawn_and_settles) {
    tokens permits(5);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { detail::shared_permit_release(permits.parts(), 2); });
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { permits.wait(); });
    may_be_killed(r, victim, killed);
    const int here = when_settled(permits);
    const int taken = permits.took[2] + permits.took[3];
    r.check(taken == 2 || here == 0, "nobody sleeps while there is a permit");
    for (int i = taken; i < 2; ++i) permits.set();
    r.join_all();
    r.check(permits.left() == 0 || killed, "no permit was released twice");
}

}  // namespace
