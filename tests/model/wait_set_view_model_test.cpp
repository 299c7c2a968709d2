// SPDX-License-Identifier: Apache-2.0
// A wait_set as a descriptor (ready_list-8 in src/core/wait/ready_list.cpp): a loop that sleeps until the descriptor is
// readable overlooks nothing, and no thread touches a view that is gone. Proof P12 in docs/proofs.md. Descriptors as
// members are left out, because the system makes the outer descriptor readable for them.
#include "support/library_model.hpp"
#include "support/modelled_view.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <span>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::run;

constexpr auto relaxed = std::memory_order_relaxed;
const deadline passed(std::chrono::nanoseconds(0));

class wait_set_view_model : public modelled_view_test {};

std::size_t look(wait_set& set, std::size_t room = 2) {
    std::array<ready_item, 2> found;
    return set.wait({.until = passed, .spin = sleep_at_once}, std::span(found).first(room)).count;
}

// Runs until it has been told of the last reason. If it reports only changes, it waits until there is nothing to take.
void loop(wait_set& set, const atomic<int>& given, int last, reports which) {
    for (int seen = 0; seen != last;) {
        sleep_until_readable(which);
        while (look(set) != 0) {
            seen = given.load(relaxed);
            if (which == reports::levels) break;
        }
    }
}

TEST_F(wait_set_view_model, NoSetIsOverlooked) {
    for (const reports which : {reports::levels, reports::changes}) {
        holds_within(2, [which](run& r) {
            auto_reset_event event;
            wait_set set;
            set.add(event, 1);
            (void)set.descriptor();
            atomic<int> given{0};
            r.spawn("setter", [&] {
                for (int reason = 1; reason <= 2; ++reason) {
                    given.store(reason, relaxed);
                    event.set();
                }
            });
            r.spawn("loop", [&] { loop(set, given, 2, which); });
            r.join_all();
        });
    }
}

// One thread may still be raising the flag while the loop waits and another thread sets.
MODEL_TEST_F(wait_set_view_model, SetsOfTwoThreadsAreSeen, holds_within, 2) {
    auto_reset_event events[2];
    wait_set set;
    for (auto_reset_event& each : events) set.add(each, 1);
    (void)set.descriptor();
    for (auto_reset_event& each : events) r.spawn("setter", [&each] { each.set(); });
    r.spawn("loop", [&] {
        for (std::size_t seen = 0; seen != 2;) {
            sleep_until_readable();
            seen += look(set);
        }
    });
    r.join_all();
}

// Both are ready, and a wait has room for one.
MODEL_TEST_F(wait_set_view_model, WhatAWaitLeavesBehindKeepsTheDescriptorReadable, holds_within, 2) {
    auto_reset_event a;
    auto_reset_event b;
    wait_set set;
    set.add(a, 1);
    set.add(b, 2);
    (void)set.descriptor();
    r.spawn("setter", [&] {
        a.set();
        b.set();
    });
    r.spawn("loop", [&] {
        for (std::size_t seen = 0; seen != 2;) {
            sleep_until_readable();
            seen += look(set, 1);
        }
    });
    r.join_all();
}

// An event that is set joins while the loop is about to sleep.
TEST_F(wait_set_view_model, AMemberThatIsReadyWhenItJoinsIsSeen) {
    for (const reports which : {reports::levels, reports::changes}) {
        holds_within(2, [which](run& r) {
            auto_reset_event event(true);
            wait_set set;
            (void)set.descriptor();
            r.spawn("adder", [&] { set.add(event, 1); });
            r.spawn("loop", [&] {
                do sleep_until_readable(which);
                while (look(set) == 0);
            });
            r.join_all();
        });
    }
}

// A thread takes the token of which the loop was told. The next set() comes while the loop's wait finds nothing.
TEST_F(wait_set_view_model, ASetAfterATokenThatAnotherThreadTookIsSeen) {
    for (const reports which : {reports::levels, reports::changes}) {
        holds_within(2, [which](run& r) {
            auto_reset_event event;
            wait_set set;
            set.add(event, 1);
            (void)set.descriptor();
            (void)look(set);
            atomic<int> given{0};
            r.spawn("setter", [&] {
                event.set();
                (void)event.try_wait();
                given.store(1, relaxed);
                event.set();
            });
            r.spawn("loop", [&] { loop(set, given, 1, which); });
            r.join_all();
        });
    }
}

MODEL_TEST_F(wait_set_view_model, ATimerThatIsArmedIsSeen, holds_within, 2) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    (void)set.descriptor();
    r.spawn("armer", [&] { timer.reset(passed); });
    r.spawn("loop", [&] {
        do {
            sleep_until_readable();
        } while (look(set) == 0);
    });
    r.join_all();
}

// A manual-reset event stays ready: no wait lowers the flag for good.
MODEL_TEST_F(wait_set_view_model, AnEventThatStaysSetKeepsTheDescriptorReadable, holds_within, 2) {
    manual_reset_event gate;
    wait_set set;
    set.add(gate, 1);
    (void)set.descriptor();
    r.spawn("setter", [&] { gate.set(); });
    r.spawn("loop", [&] {
        for (int seen = 0; seen != 2;) {
            sleep_until_readable();
            seen += static_cast<int>(look(set));
        }
    });
    r.join_all();
}

// The set takes no token for the loop: another thread may have it.
MODEL_TEST_F(wait_set_view_model, ATokenStaysInTheEventUntilTheLoopWaits, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    (void)set.descriptor();
    (void)look(set);
    r.spawn("setter", [&] { event.set(); });
    r.spawn("taker", [&] { event.wait(sleep_at_once); });
    r.join_all();
    r.check(look(set) == 0, "the token went to the thread");
}

MODEL_TEST_F(wait_set_view_model, ASetMayGoWhileAMemberIsSet, holds_within, 2) {
    auto_reset_event event;
    auto set = std::make_unique<wait_set>();
    set->add(event, 1);
    (void)set->descriptor();
    for (const char* name : {"setter 1", "setter 2"}) r.spawn(name, [&] { event.set(); });
    r.spawn("owner", [&] {
        (void)look(*set);
        set.reset();
    });
    r.join_all();
    (void)event.try_wait();
}

}  // namespace
