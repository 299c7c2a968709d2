// SPDX-License-Identifier: Apache-2.0
// Sets of events that are waited on often, in every interleaving of small programs. No token is lost or doubled, no set
// event is overlooked, and nothing is touched that was removed. Proof P12 in docs/proofs.md.
#include "core/wait/ready_list.hpp"
#include "support/library_model.hpp"

#include <memory>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

int tokens_in(auto_reset_event& event) { return event.try_wait() ? 1 : 0; }

// How often each of the tags 0 and 1 was reported.
struct tally {
    int of[2] = {0, 0};

    void wait(wait_set& set, std::size_t max = 2) { count(set.wait({.spin = sleep_at_once}, items(max))); }
    void wait_some_time(wait_set& set) {
        count(set.wait({.until = some_time(), .spin = sleep_at_once}, items(2)));
    }
    int all() const { return of[0] + of[1]; }

private:
    std::span<ready_item> items(std::size_t max) { return std::span(found_).first(max); }
    void count(const set_result& result) {
        for (std::size_t i = 0; i != result.count; ++i) ++of[found_[i].tag];
    }

    ready_item found_[2];
};

MODEL_TEST(set_model, ASetWakesTheWaitAndPublishes, holds_always) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 0);
    plain<int> data{0};
    r.spawn("setter", [&] {
        data = 42;
        event.set();
    });
    r.spawn("waiter", [&] {
        tally seen;
        seen.wait(set);
        model::check(seen.of[0] == 1, "reported once");
        model::check(data == 42, "what the setter wrote is visible");
    });
    r.join_all();
    r.check(!event.is_set(), "consumed");
}

MODEL_TEST(set_model, TwoTokensOfTwoEventsComeOut, holds_within, 2) {
    auto_reset_event a;
    auto_reset_event b;
    wait_set set;
    set.add(a, 0);
    set.add(b, 1);
    tally seen;
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("waiter", [&] {
        while (seen.all() != 2) seen.wait(set);
    });
    r.join_all();
    r.check(seen.of[0] == 1 && seen.of[1] == 1, "each once");
    r.check(!a.is_set() && !b.is_set(), "consumed");
}

// With space for one at a time, and for the same event twice.
MODEL_TEST(set_model, NoTokenIsLostBetweenTwoWaits, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 0);
    auto_reset_event taken;
    tally seen;
    r.spawn("setter", [&] {
        event.set();
        taken.wait(sleep_at_once);
        event.set();
    });
    r.spawn("waiter", [&] {
        seen.wait(set, 1);
        taken.set();
        seen.wait(set, 1);
    });
    r.join_all();
    r.check(seen.of[0] == 2 && !event.is_set(), "two in, two out");
}

MODEL_TEST(set_model, ATimeoutNeverEatsTheToken, holds_always) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 0);
    tally seen;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] { seen.wait_some_time(set); });
    r.join_all();
    const int left = event.is_set() ? 1 : 0;
    if (left != 0) seen.wait(set);  // finds the token that is left
    r.check(seen.of[0] == 1 && !event.is_set(), "one in, one out");
}

MODEL_TEST(set_model, CompetesWithASingleWait, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 0);
    tally seen;
    r.spawn("set", [&] {
        seen.wait(set);
        event.set();
    });
    r.spawn("single", [&] {
        event.wait(sleep_at_once);
        event.set();
    });
    r.spawn("setter", [&] {
        event.set();
        event.set();
    });
    r.join_all();
    // Each of the two passes the token on. Otherwise one of them would be left waiting if the second set found the
    // first token still there.
    r.check(seen.of[0] == 1, "reported once");
}

MODEL_TEST(set_model, AGateThatStaysSetIsSeenByTheNextWait, holds_within, 2) {
    manual_reset_event gate;
    auto_reset_event other;
    wait_set set;
    set.add(gate, 0);
    set.add(other, 1);
    tally seen;
    r.spawn("setter", [&] { gate.set(); });
    r.spawn("other", [&] { other.set(); });
    r.spawn("waiter", [&] {
        while (seen.of[0] == 0) seen.wait(set);
        seen.wait(set);
        model::check(seen.of[0] == 2, "reported by each wait");
    });
    r.join_all();
    r.check(seen.of[1] + tokens_in(other) == 1, "one in, one out");
}

// A thread that sleeps in the set when the gate is set is released, even if the gate is reset at once.
MODEL_TEST(set_model, SetThenResetReleasesTheSleeper, holds_within, 2) {
    manual_reset_event gate;
    core::ready_list set;
    auto* const joined = new core::source_member(set, gate, 7);
    set.add(*joined);
    core::ready_list::sleeper self(set);
    r.spawn("waiter", [&] {
        model::check(set.begin_sleep(self, deadline::never()), "nothing is ready");
        (void)sleep(self.waiting, deadline::never());
        set.end_sleep(self);
        model::check(self.by == joined && self.tag == 7, "released for it");
    });
    r.spawn("setter", [&] {
        model::wait_until([&] { return self.waiting.is_asleep(); });
        gate.set();
        gate.reset();
    });
    r.join_all();
    set.remove(joined);
}

MODEL_TEST(set_model, ARemovedEventMayBeDestroyed, holds_within, 2) {
    auto_reset_event stays;
    auto cancelable = std::make_unique<auto_reset_event>();
    wait_set set;
    set.add(stays, 0);
    set.add(*cancelable, 1);
    tally seen;
    int left = 0;
    r.spawn("waiter", [&] {
        while (seen.of[0] == 0) seen.wait(set);
    });
    r.spawn("remover", [&] {
        cancelable->set();
        model::check(set.remove(*cancelable), "it was in");
        left = tokens_in(*cancelable);
        cancelable.reset();
        stays.set();
    });
    r.join_all();
    r.check(seen.of[1] + left == 1, "one in, one out");
}

MODEL_TEST(set_model, AnEventAddedWhileAThreadWaitsWakesIt, holds_within, 2) {
    auto_reset_event first;
    auto_reset_event second;
    wait_set set;
    set.add(first, 0);
    tally seen;
    r.spawn("waiter", [&] { seen.wait(set); });
    r.spawn("setter", [&] { second.set(); });
    r.spawn("adder", [&] { set.add(second, 1); });
    r.join_all();
    r.check(seen.of[1] == 1 && !second.is_set(), "reported");
}

MODEL_TEST(set_model, TwoSetsShareAnEvent, holds_within, 1) {
    auto_reset_event event;
    wait_set one;
    wait_set two;
    one.add(event, 0);
    two.add(event, 1);
    tally in_one;
    tally in_two;
    r.spawn("one", [&] {
        in_one.wait(one);
        event.set();
    });
    r.spawn("two", [&] {
        in_two.wait(two);
        event.set();
    });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    r.check(in_one.of[0] == 1 && in_two.of[1] == 1, "each was served");
    r.check(event.is_set(), "and the last token is there");
}

// The set is queued first and is served first; then the other, though the set waits again.
MODEL_TEST(set_model, TheSetAndAnotherWaiterTakeTurns, holds_within, 1) {
    auto_reset_event event;
    core::ready_list set;
    auto* const joined = new core::source_member(set, event, 7);
    set.add(*joined);
    core::ready_list::sleeper first(set);
    core::ready_list::sleeper second(set);
    bool other_is_served = false;
    r.spawn("set", [&] {
        for (auto* const self : {&first, &second}) {
            model::check(set.begin_sleep(*self, deadline::never()), "nothing is ready");
            (void)sleep(self->waiting, deadline::never());
            set.end_sleep(*self);
            model::check(self->by == joined, "released for it");
        }
        model::check(other_is_served, "after the other");
    });
    r.spawn("other", [&] {
        event.wait(sleep_at_once);
        other_is_served = true;
        event.set();
    });
    r.spawn("setter", [&] {
        model::wait_until([&] { return first.waiting.is_asleep(); });
        while (parked_on(event) != 2) model::cpu_relax();
        event.set();
        model::wait_until([&] { return second.waiting.is_asleep(); });
        event.set();
    });
    r.join_all();
    set.remove(joined);
}

MODEL_TEST(set_model, WorksBesideAWaitForAll, holds_within, 1) {
    auto_reset_event a;
    auto_reset_event b;
    wait_set set;
    set.add(a, 0);
    tally seen;
    r.spawn("all", [&] {
        const source both[] = {a, b};
        wait_all(both);
        a.set();
    });
    r.spawn("set", [&] {
        seen.wait(set);
        a.set();
    });
    r.spawn("setter", [&] {
        b.set();
        a.set();
    });
    r.join_all();
    r.check(seen.of[0] == 1 && !b.is_set(), "both were served");
}

}  // namespace
