// SPDX-License-Identifier: Apache-2.0
// Small programs over the waits for the first of several sources of which one is an object that processes share
// (src/shared_source.cpp), with the threads of the library that keep their slots and wake them. Proof P32 in
// docs/proofs.md.
#include "support/token_model.hpp"

#include <tocsin/detail/shared_source.hpp>
#include <tocsin/shared_event.hpp>

#include <array>
#include <optional>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using core::slot_state;
using core::state_of;
using model::run;

// The threads of the library, in the order in which shared_source() starts them from the main thread.
constexpr int waker = 1, keeper = 2;

// Tokens that a process waits for with the threads of the library, which the first source starts.
struct kept_tokens : tokens {
    explicit kept_tokens(std::uint32_t max = 3) : tokens(max) { (void)itself(); }

    source itself() { return detail::shared_source(object.header, kind); }

    // A wait for the first of these tokens and the other sources.
    template <class... Others>
    bool wait_first(const limits& how, Others&... others) {
        const std::array<source, 1 + sizeof...(Others)> all{itself(), source(others)...};
        const bool taken = wait_any(how, all).index == 0;
        took[model::this_thread()] += taken ? 1 : 0;
        return taken;
    }
    void wait_here() { (void)wait_first({.spin = sleep_at_once}); }
    void wait_some_time() { (void)wait_first({.until = some_time(), .spin = sleep_at_once}); }

    // Tokens that were given, and neither taken by a wait nor left.
    int lost() {
        int sum = -left();
        for (int i = 0; i != model::max_threads; ++i) sum += gave[i] - took[i];
        return sum;
    }
    int waiting() {
        int found = 0;
        for (const detail::shared_slot& each : object.slots)
            found += state_of(each.word.load(std::memory_order_relaxed)) == slot_state::waiting ? 1 : 0;
        return found;
    }
    bool slots_are_free() {
        bool all = true;
        for (const detail::shared_slot& each : object.slots)
            all = all && core::is_ownerless(each.owner.load(std::memory_order_relaxed));
        return all;
    }
    void check_kept_end(run& r) {
        r.check(lost() == 0, "each token was given once and taken once, or is left");
        r.check(slots_are_free(), "a wait that has returned has no slot");
    }

    const background_threads have;
};

// A source that nobody makes ready. It comes behind another one, and says that the wait has queued there.
struct last_source {
    bool try_wait() noexcept { return false; }
    bool enlist(wait_entry& entry) noexcept {
        waits.append(entry);
        enlisted = true;
        return true;
    }
    void delist(wait_entry& entry) noexcept { waits.remove(entry); }

    entry_list waits;
    bool enlisted = false;
};

MODEL_TEST(shared_source_model, AWaitGetsItsTokenAndWhatCameBefore, holds_within_shared, 0) {
    kept_tokens event;
    model::plain<int> data{0};
    r.spawn("waiter", [&] {
        event.wait_here();
        model::check(data == 42, "what came before the set is visible");
    });
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.join_all();
    event.check_kept_end(r);
}

MODEL_TEST(shared_source_model, ATimeOutLosesNoToken, holds_within_shared, 0) {
    kept_tokens event;
    r.spawn("waiter", [&] { event.wait_some_time(); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    event.check_kept_end(r);
}

MODEL_TEST(shared_source_model, AStopLosesNoToken, holds_within_shared, 0) {
    kept_tokens event;
    model::stop_source stops;
    r.spawn("waiter", [&] {
        const auto token = stops.get_token();
        (void)event.wait_first({.stop = token, .spin = sleep_at_once});
    });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { stops.request_stop(); });
    r.join_all();
    event.check_kept_end(r);
}

MODEL_TEST(shared_source_model, AnotherSourceLosesNoToken, holds_within_shared, 0) {
    kept_tokens event;
    auto_reset_event other;
    bool taken = false;
    r.spawn("waiter", [&] { taken = event.wait_first({.spin = sleep_at_once}, other); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("another", [&] { other.set(); });
    r.join_all();
    event.check_kept_end(r);
    r.check(other.is_set() == taken, "the other source has been taken, or the token");
}

MODEL_TEST(shared_source_model, TwoSetsReleaseTwo, holds_when_drawn_shared) {
    kept_tokens event;
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { event.wait_here(); });
    for (const char* name : {"setter", "another"}) r.spawn(name, [&] { event.set(); });
    r.join_all();
    event.check_kept_end(r);
}

// The count of this event has room for one token, so the second set finds a wait or is lost.
MODEL_TEST(shared_source_model, WaitsAreQueuedWhenTheyHaveEnlisted, holds_when_drawn_shared) {
    kept_tokens event(1);
    last_source behind[2];
    for (last_source& each : behind)
        r.spawn("waiter", [&] { (void)event.wait_first({.spin = sleep_at_once}, each); });
    int waiting = 0;
    model::wait_until([&] {
        waiting = event.waiting();  // the newest values
        return behind[0].enlisted && behind[1].enlisted;
    });
    r.check(waiting == 2, "a wait that has enlisted is queued");
    event.set();
    event.set();
    r.join_all();
    event.check_kept_end(r);
}

// A token that meets the end of the one wait reaches the other, in which a thread sleeps.
MODEL_TEST(shared_source_model, ATokenThatComesTooLateReachesTheNext, holds_when_drawn_and_settles) {
    kept_tokens event;
    r.spawn("in time", [&] { event.wait_some_time(); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    settle(r, event, {waiter.number()});
    event.check_kept_end(r);
}

MODEL_TEST(shared_source_model, AWaitInAThreadAndAKeptOneGetATokenEach, holds_when_drawn_and_settles) {
    kept_tokens event;
    r.spawn("kept", [&] { event.wait_here(); });
    r.spawn("waiter", [&] { event.wait(); });
    for (const char* name : {"setter", "another"}) r.spawn(name, [&] { event.set(); });
    r.join_all();
    event.check_kept_end(r);
}

MODEL_TEST(shared_source_model, AThreadIsServedBeforeAKeptWaitThatCameLater, holds_when_drawn_and_settles) {
    kept_tokens event;
    const auto first = r.spawn("first", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    r.spawn("kept", [&] { event.wait_here(); });
    model::wait_until(model::others_are_blocked);
    event.set();
    (void)when_settled(event);
    r.check(event.took[first.number()] == 1, "the first has the token");
    event.set();
    r.join_all();
    event.check_kept_end(r);
}

MODEL_TEST(shared_source_model, NobodyTouchesTheObjectOnceItsWaitHasReturned, holds_within_shared, 0) {
    std::optional<kept_tokens> event(std::in_place);
    auto_reset_event other;
    r.spawn("waiter", [&] {
        (void)event->wait_first({.spin = sleep_at_once}, other);
        event.reset();
    });
    r.spawn("another", [&] { other.set(); });
    r.join_all();
}

MODEL_TEST(shared_source_model, SetThenResetOfAGateReleasesAWaitThatHasEnlisted, holds_within_shared, 1) {
    const background_threads have;
    shared_manual_reset_event gate;
    {
        [[maybe_unused]] const source started = gate;
    }
    last_source behind;
    model::plain<int> data{0};
    r.spawn("waiter", [&] {
        (void)wait_any({.spin = sleep_at_once}, gate, behind);
        model::check(data == 42, "what came before the set is visible");
    });
    model::wait_until([&] { return behind.enlisted; });
    data = 42;
    gate.set();
    gate.reset();
    r.join_all();
}

// The process of a waiter, the keeper and the waker. Its threads end one after the other.
void process_may_be_killed(run& r, run::thread waiter, bool& killed) {
    r.spawn("killer", [number = waiter.number(), &killed] {
        kill_thread(number, killed);
        bool runs = false;  // they never end by themselves
        kill_thread(keeper, runs);
        kill_thread(waker, runs);
    });
}

MODEL_TEST(shared_source_model, ATokenOfAKilledProcessReachesAnother, holds_when_drawn_and_settles) {
    kept_tokens event;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait_here(); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] { event.set(); });
    process_may_be_killed(r, victim, killed);
    settle(r, event, {waiter.number()});
    r.check(event.lost() == 0 || (event.lost() == 1 && killed), "a killed process has what it received");
    r.check(event.slots_are_free(), "a dead process has no slot");
}

MODEL_TEST(shared_source_model, ATokenOfAKilledWaiterReachesAKeptWait, holds_when_drawn_and_settles) {
    kept_tokens event;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    const auto kept = r.spawn("kept", [&] { event.wait_here(); });
    r.spawn("setter", [&] { event.set(); });
    may_be_killed(r, victim, killed);
    settle(r, event, {kept.number()});
    r.check(event.lost() == 0 || (event.lost() == 1 && killed), "a killed waiter has what it received");
}

// The kernel's wake for the token of a killed waiter is spent on the keeper, which was woken for a token as well.
MODEL_TEST(shared_source_model, AKeeperPassesTheNewsOfADeathOn, holds_when_drawn_and_settles) {
    kept_tokens event;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    const auto kept = r.spawn("kept", [&] { event.wait_here(); });
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    r.spawn("setter", [&] {
        event.set();
        event.set();
    });
    may_be_killed(r, victim, killed);
    settle(r, event, {kept.number(), waiter.number()});
    r.check(event.lost() == 0 || (event.lost() == 1 && killed), "a killed waiter has what it received");
}

// The keeper looks at the slots for the one wait, and then frees the slot of the other, which the heir claims. The
// kernel's wake for the token of the victim is spent on the heir, and the heir dies as well.
MODEL_TEST(shared_source_model, AKeeperWatchesASlotThatItHasJustFreed, holds_when_drawn_and_settles) {
    kept_tokens event;
    const auto kept = r.spawn("kept", [&] {
        event.wait_here();
        event.wait_here();  // in the keeper's first record again, and with the newest ticket
    });
    model::wait_until(model::others_are_blocked);
    r.spawn("other", [&] { event.wait_here(); });
    model::wait_until(model::others_are_blocked);
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    event.set();
    model::wait_until(model::others_are_blocked);
    event.set();
    model::wait_until(model::others_are_blocked);
    // The heir sees that this slot is free.
    (void)event.object.slots[1].owner.fetch_add(0, std::memory_order_acquire);
    const auto heir = r.spawn("heir", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    r.spawn("killer", [&] {
        bool runs = false;
        kill_thread(victim.number(), runs);
        kill_thread(heir.number(), runs);
    });
    event.set();
    int left = when_settled(event);
    for (int i = 0; i != 3 && event.took[kept.number()] != 2; ++i) {
        r.check(left == 0, "nobody sleeps while there is a token");
        event.set();
        left = when_settled(event);
    }
    r.join_all();
}

// The keeper, on which the kernel's wake was spent, dies as well. The three fall asleep one after the other.
MODEL_TEST(shared_source_model, ATokenReachesTheLastOfThreeAfterTwoDeaths, holds_when_drawn_and_settles) {
    kept_tokens event;
    bool killed = false, process_killed = false;
    const auto victim = r.spawn("victim", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    const auto kept = r.spawn("kept", [&] { event.wait_here(); });
    model::wait_until(model::others_are_blocked);
    const auto waiter = r.spawn("waiter", [&] { event.wait(); });
    model::wait_until(model::others_are_blocked);
    may_be_killed(r, victim, killed);
    process_may_be_killed(r, kept, process_killed);
    event.set();
    event.set();
    settle(r, event, {waiter.number()});
}

}  // namespace
