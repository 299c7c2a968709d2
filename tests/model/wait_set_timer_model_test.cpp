// SPDX-License-Identifier: Apache-2.0
// Timers of a wait_set (src/core/wait/ready_list.cpp), in every interleaving of small programs. Each arming is reported
// once, or not at all if that arming was moved or the timer was removed before. Proof P12 in docs/proofs.md. Time is
// not modelled: the deadlines here have passed when a timer is armed.
#include "core/wait/ready_list.hpp"
#include "support/library_model.hpp"

#include <array>
#include <memory>
#include <optional>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

deadline now() { return deadline(std::chrono::nanoseconds(0)); }

// How often each of the tags 0 and 1 was reported.
struct tally {
    int of[2] = {0, 0};

    void wait(wait_set& set, std::size_t room = 2) {
        count(set.wait({.spin = sleep_at_once}, std::span(found_).first(room)));
    }
    void wait_some_time(wait_set& set) {
        count(set.wait({.until = some_time(), .spin = sleep_at_once}, found_));
    }
    // What no wait has reported yet.
    void wait_for_what_is_left(wait_set& set) {
        count(set.wait({.until = now(), .spin = sleep_at_once}, found_));
    }

private:
    void count(const set_result& result) {
        for (std::size_t i = 0; i != result.count; ++i) ++of[found_[i].tag];
    }

    std::array<ready_item, 2> found_;
};

MODEL_TEST(set_timer_model, ATimerWakesTheWaitAndPublishes, holds_always) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 0);
    plain<int> data{0};
    r.spawn("armer", [&] {
        data = 42;
        timer.reset(now());
    });
    r.spawn("waiter", [&] {
        tally seen;
        seen.wait(set);
        model::check(seen.of[0] == 1 && data == 42, "reported once, and what came before is visible");
    });
    r.join_all();
    r.check(!timer.is_armed(), "not armed any more");
}

MODEL_TEST(set_timer_model, EachArmingIsReportedOnce, holds_within, 2) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 0);
    auto_reset_event reported;
    tally seen;
    r.spawn("armer", [&] {
        timer.reset(now());
        reported.wait(sleep_at_once);
        timer.reset(now());
    });
    r.spawn("waiter", [&] {
        seen.wait(set);
        reported.set();
        seen.wait(set);
    });
    r.join_all();
    seen.wait_for_what_is_left(set);
    r.check(seen.of[0] == 2 && !timer.is_armed(), "twice armed, twice reported");
}

MODEL_TEST(set_timer_model, ATimerAndAnEventAreBothReported, holds_within, 2) {
    wait_timer timer;
    auto_reset_event event;
    wait_set set;
    set.add(timer, 0);
    set.add(event, 1);
    tally seen;
    r.spawn("armer", [&] { timer.reset(now()); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] {
        while (seen.of[0] + seen.of[1] != 2) seen.wait(set, 1);
    });
    r.join_all();
    seen.wait_for_what_is_left(set);
    r.check(seen.of[0] == 1 && seen.of[1] == 1, "each once");
}

MODEL_TEST(set_timer_model, ATimeoutNeverEatsATimer, holds_always) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 0);
    tally seen;
    r.spawn("armer", [&] { timer.reset(now()); });
    r.spawn("waiter", [&] { seen.wait_some_time(set); });
    r.join_all();
    r.check(timer.is_armed() == (seen.of[0] == 0), "armed until it is reported");
    seen.wait_for_what_is_left(set);
    r.check(seen.of[0] == 1, "armed once, reported once");
}

MODEL_TEST(set_timer_model, ADisarmedTimerIsNotReported, holds_within, 2) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 0);
    tally seen;
    r.spawn("mover", [&] {
        timer.reset(now());
        timer.cancel();
    });
    r.spawn("waiter", [&] { seen.wait_some_time(set); });
    r.join_all();
    const int before = seen.of[0];
    seen.wait_for_what_is_left(set);
    r.check(before <= 1 && seen.of[0] == before && !timer.is_armed(), "not reported afterwards");
}

// A thread arms it again while another waits. Each arming is due once, and the next tick is an hour away.
MODEL_TEST(set_timer_model, ATimerThatRepeatsIsReportedOnceForEachTick, holds_within, 2) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 0);
    tally seen;
    r.spawn("armer", [&] {
        timer.reset_every(now(), std::chrono::hours(1));
        timer.reset_every(now(), std::chrono::hours(1));
    });
    r.spawn("waiter", [&] { seen.wait(set); });
    r.join_all();
    seen.wait_for_what_is_left(set);
    r.check(seen.of[0] >= 1 && seen.of[0] <= 2 && timer.is_armed() && timer.ticks() == 1,
            "once or twice armed, as often reported, and armed for the next tick");
    seen.wait_for_what_is_left(set);
    r.check(seen.of[0] <= 2, "the next tick is not due");
}

// It was found due, but there was no room to report it.
MODEL_TEST(set_timer_model, ATimerThatIsMovedIsNotReportedForItsFormerDeadline, holds_within, 2) {
    manual_reset_event gate(true);
    wait_timer timer;
    wait_set set;
    set.add(gate, 0);
    set.add(timer, 1);
    timer.reset(now());
    tally seen;
    seen.wait(set, 1);
    r.spawn("gatekeeper", [&] { gate.reset(); });
    r.spawn("mover", [&] {
        timer.reset(some_time());
        seen.wait_for_what_is_left(set);
    });
    r.join_all();
    r.check(seen.of[1] == 0 && timer.is_armed(), "not reported after the move");
}

MODEL_TEST(set_timer_model, TwoThreadsMoveIt, holds_within, 1) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 0);
    tally seen;
    for (int i = 0; i != 2; ++i) {
        r.spawn("mover", [&] { timer.reset(now()); });
    }
    r.spawn("waiter", [&] { seen.wait(set); });
    r.join_all();
    const bool again = timer.is_armed();
    seen.wait_for_what_is_left(set);
    r.check(seen.of[0] == (again ? 2 : 1), "once for each that was not moved before");
}

// The memory of the timer is gone when the waiting thread may still be awake on its account.
MODEL_TEST(set_timer_model, ARemovedTimerIsNotTouched, holds_within, 2) {
    auto timer = std::make_unique<wait_timer>();
    wait_set set;
    set.add(*timer, 0);
    tally seen;
    r.spawn("remover", [&] {
        timer->reset(now());
        timer.reset();
    });
    r.spawn("waiter", [&] { seen.wait_some_time(set); });
    r.join_all();
    const int before = seen.of[0];
    seen.wait_for_what_is_left(set);
    r.check(before <= 1 && seen.of[0] == before, "not reported afterwards");
}

MODEL_TEST(set_timer_model, OneThatIsArmedWhenItIsAddedWakesTheWait, holds_within, 2) {
    wait_timer timer;
    wait_set set;
    tally seen;
    r.spawn("adder", [&] {
        timer.reset(now());
        set.add(timer, 0);
    });
    r.spawn("waiter", [&] { seen.wait(set); });
    r.join_all();
    r.check(seen.of[0] == 1, "reported");
}

}  // namespace
