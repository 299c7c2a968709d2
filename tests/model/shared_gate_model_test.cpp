// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the gate that processes share (src/shared_event.cpp), in which a thread may
// be killed before any of its steps. Proof P30 in docs/proofs.md.
#include "support/shared_model.hpp"

#include <tocsin/shared_event.hpp>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

MODEL_TEST(shared_gate_model, ASetIsNeverMissed, holds_within_shared, 1) {
    shared_manual_reset_event gate;
    model::plain<int> data{0};
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            gate.wait();
            model::check(data == 42, "what came before the set is visible");
        });
    }
    r.spawn("setter", [&] {
        data = 42;
        gate.set();
    });
    r.join_all();
}

MODEL_TEST(shared_gate_model, SetThenResetReleasesAllWhoWaited, holds_when_drawn_and_settles) {
    shared_manual_reset_event gate;
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { gate.wait(); });
    model::wait_until([] { return model::others_are_blocked(); });
    gate.set();
    gate.reset();
    r.join_all();
}

MODEL_TEST(shared_gate_model, ATimeOutLeavesTheGateToTheOthers, holds_within_shared, 2) {
    shared_manual_reset_event gate;
    r.spawn("in time", [&] { (void)gate.wait_until(some_time()); });
    r.spawn("waiter", [&] { gate.wait(); });
    r.spawn("setter", [&] { gate.set(); });
    r.join_all();
    r.check(gate.is_set(), "the gate stays set");
}

MODEL_TEST(shared_gate_model, ASetterMayBeKilled, holds_always_and_settles) {
    shared_manual_reset_event gate;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { gate.set(); });
    bool passed = false;
    r.spawn("waiter", [&] {
        gate.wait();
        passed = true;
    });
    may_be_killed(r, victim, killed);
    bool set = false;
    model::wait_until([&] {
        set = gate.is_set();
        return model::others_are_blocked();
    });
    r.check(passed || (killed && !set), "a set happens as a whole or not at all");
    gate.set();
    r.join_all();
}

MODEL_TEST(shared_gate_model, AWaiterMayBeKilled, holds_within_shared, 1) {
    shared_manual_reset_event gate;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { gate.wait(); });
    r.spawn("waiter", [&] { gate.wait(); });
    may_be_killed(r, victim, killed);
    gate.set();
    gate.reset();
    gate.set();
    r.join_all();
}

}  // namespace
