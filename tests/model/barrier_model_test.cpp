// SPDX-License-Identifier: Apache-2.0
// Barriers in every interleaving of small programs. The completion function runs once a phase, after all arrivals and
// before anybody passes. Phases follow each other. Nothing is touched that is gone. Proof P18 in docs/proofs.md.
#include "support/library_model.hpp"

#include <utility>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

// What the members of a barrier wrote, and how often their phases were completed.
struct notebook {
    plain<int> written[3]{{0}, {0}, {0}};
    plain<int> completed{0};
    int members;

    explicit notebook(int of) : members(of) {}
    void complete() noexcept {
        completed = completed + 1;
        for (int i = 0; i != members; ++i)
            model::check(written[i] == completed, "what came before each arrival is visible");
    }
};

template <class Barrier>
void cross(Barrier& all, notebook& book, int which, int phases) {
    for (int i = 1; i <= phases; ++i) {
        book.written[which] = i;
        all.arrive_and_wait(sleep_at_once);
        model::check(book.completed == i, "completed once, before anybody passes");
    }
}

void phases_follow_each_other(run& r, int members, int phases) {
    notebook book(members);
    barrier all(members, [&]() noexcept { book.complete(); });
    for (int which = 0; which != members; ++which)
        r.spawn("member", [&, which] { cross(all, book, which, phases); });
    r.join_all();
}

TEST(barrier_model, PhasesFollowEachOther) {
    holds_always([](run& r) { phases_follow_each_other(r, 2, 1); });
    holds_within(2, [](run& r) { phases_follow_each_other(r, 2, 3); });
    holds_within(1, [](run& r) { phases_follow_each_other(r, 3, 2); });
}

// A thread that has passed no gate learns from another thread that the third phase has begun. The gate of that phase
// was set two phases before.
MODEL_TEST(barrier_model, AnArrivalFindsTheGateOfItsPhaseUnset, holds_always) {
    barrier both(2);
    model::atomic<bool> third_phase{false};
    r.spawn("ends two phases", [&] {
        (void)both.arrive(2);
        (void)both.arrive(2);
        third_phase.store(true, std::memory_order_release);
    });
    r.spawn("arrives later", [&] {
        while (!third_phase.load(std::memory_order_acquire)) model::cpu_relax();
        model::check(!both.try_wait(both.arrive()), "the third phase has not ended");
    });
    r.join_all();
}

MODEL_TEST(barrier_model, ADropLowersTheNextPhase, holds_within, 2) {
    plain<int> completed{0};
    barrier both(2, [&]() noexcept { completed = completed + 1; });
    r.spawn("leaves", [&] { both.arrive_and_drop(); });
    r.spawn("stays", [&] {
        both.arrive_and_wait(sleep_at_once);
        both.arrive_and_wait(sleep_at_once);
        model::check(completed == 2, "two phases");
    });
    r.join_all();
}

// Both drops lower the next phase, whichever of the three arrives last.
MODEL_TEST(barrier_model, TwoDropsAtOnceBothLowerTheNextPhase, holds_within, 1) {
    plain<int> completed{0};
    barrier all(3, [&]() noexcept { completed = completed + 1; });
    for (const char* name : {"leaves", "leaves too"}) r.spawn(name, [&] { all.arrive_and_drop(); });
    r.spawn("stays", [&] {
        all.arrive_and_wait(sleep_at_once);
        all.arrive_and_wait(sleep_at_once);
        model::check(completed == 2, "two phases");
    });
    r.join_all();
}

// The drop may be the last arrival of the phase, or not.
MODEL_TEST(barrier_model, TheThreadReleasedByADropMayDestroyIt, holds_within, 2) {
    auto* const both = new barrier<>(2);
    r.spawn("leaves", [both] { both->arrive_and_drop(); });
    r.spawn("owner", [both] {
        both->arrive_and_wait(sleep_at_once);
        delete both;
    });
    r.join_all();
}

TEST(barrier_model, TheThreadReleasedMayDestroyIt) {
    holds_within(3, [](run& r) {
        auto* const both = new barrier<>(2);
        r.spawn("arrives", [both] { (void)both->arrive(); });
        r.spawn("owner", [both] {
            both->arrive_and_wait(sleep_at_once);
            delete both;
        });
        r.join_all();
    });
    holds_always([](run& r) {
        auto* const both = new barrier<>(2);
        r.spawn("arrives", [both] { (void)both->arrive(); });
        r.spawn("owner", [both] {
            const auto token = both->arrive();
            while (!both->try_wait(token)) model::cpu_relax();
            delete both;
        });
        r.join_all();
    });
}

MODEL_TEST(barrier_model, ATimeoutLosesNothing, holds_within, 2) {
    barrier both(2);
    r.spawn("arrives", [&] { (void)both.arrive(); });
    r.spawn("timed", [&] {
        auto token = both.arrive();
        (void)both.wait_until(token, some_time(), sleep_at_once);
        both.wait(std::move(token), sleep_at_once);
    });
    r.join_all();
}

// However the limited wait ends, the phase ends after the drop, and the next phase expects one thread.
MODEL_TEST(barrier_model, ADeadlineAndAStopAgainstADrop, holds_within, 2) {
    plain<int> completed{0};
    barrier both(2, [&]() noexcept { completed = completed + 1; });
    model::stop_source stop;
    bool asked = false;
    r.spawn("leaves", [&] { both.arrive_and_drop(); });
    r.spawn("stopper", [&] {
        asked = true;
        stop.request_stop();
    });
    r.spawn("limited", [&] {
        auto token = both.arrive();
        const auto how = both.wait_until(token, some_time(), stop.get_token(), sleep_at_once);
        if (how == wait_status::signaled) model::check(completed == 1, "the phase has ended");
        model::check(how != wait_status::stopped || asked, "stopped only by a stop");
        both.wait(std::move(token), sleep_at_once);
        both.arrive_and_wait(sleep_at_once);
        model::check(completed == 2, "it is alone in the second phase");
    });
    r.join_all();
}

// One arrival is missing, so only a limit can end the waits.
TEST(barrier_model, AWaitWithADeadlineAndAStopEndsByEither) {
    holds_always([](run& r) {
        barrier all(2);
        model::stop_source stop;
        r.spawn("stopped", [&] {
            const auto token = all.arrive();
            model::check(all.wait(token, stop.get_token(), sleep_at_once) == wait_status::stopped, "stop");
            const auto how = all.wait_until(token, deadline::never(), stop.get_token(), sleep_at_once);
            model::check(how == wait_status::stopped && !all.try_wait(token), "by the stop");
        });
        r.spawn("stopper", [&] { stop.request_stop(); });
        r.join_all();
    });
    holds_always([](run& r) {
        barrier all(3);
        model::stop_source never;
        r.spawn("timed", [&] {
            const auto token = all.arrive();
            const auto how = all.wait_until(token, some_time(), never.get_token(), sleep_at_once);
            model::check(how == wait_status::timed_out && !all.try_wait(token), "by the deadline");
        });
        r.spawn("arrives", [&] { (void)all.arrive(); });
        r.join_all();
    });
}

MODEL_TEST(barrier_model, WaitsForSeveralSourcesTakeAToken, holds_within, 2) {
    barrier both(2);
    auto_reset_event permit;
    r.spawn("all", [&] {
        const auto token = both.arrive();
        model::check(wait_all({.spin = sleep_at_once}, token, permit) == wait_status::signaled, "all");
    });
    r.spawn("any", [&] {
        model::check(wait_any({.spin = sleep_at_once}, both.arrive()).index == 0, "any");
        permit.set();
    });
    r.join_all();
    r.check(!permit.is_set(), "the permit is taken with the token");
}

}  // namespace
