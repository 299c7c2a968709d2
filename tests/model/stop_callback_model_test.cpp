// SPDX-License-Identifier: Apache-2.0
// The stop callback for standard libraries whose own stop callback may hang (include/tocsin/detail/stop_callback.hpp).
// Its destructor returns after the callback has returned, whichever of the two begins first. After that no thread
// touches it.
#include "support/library_model.hpp"

#include <tocsin/detail/stop_callback.hpp>

#include <optional>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

// `alive` becomes false when the destructor has returned. A later call fails the check, or the explorer reports a race.
struct counted {
    void operator()() const noexcept {
        model::check(alive, "not called after the destructor's return");
        calls = calls + 1;
    }
    plain<int>& calls;
    plain<bool>& alive;
};
using callback = detail::self_removing_stop_callback<counted>;

void let_a_stop_meet_the_destructor(run& r) {
    model::stop_source source;
    plain<int> calls{0};
    plain<bool> alive{true};
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("owner", [&] {
        {
            const callback registered(source.get_token(), counted{calls, alive});
        }
        alive = false;
    });
    r.join_all();
    r.check(calls <= 1, "at most once");
}

TEST(stop_callback_model, TheDestructorWaitsForACallbackThatRuns) {
    holds_always(let_a_stop_meet_the_destructor);
}

// The standard library's destructor sleeps, and the callback ends after it looked and before it sleeps.
MODEL_TEST(stop_callback_model, TheDestructorReturnsAlthoughItMissedItsWakeUp, holds_always) {
    const model::waits_in_two_steps as_in_libstdcxx;
    model::repeated_wakes.store(0, std::memory_order_relaxed);
    let_a_stop_meet_the_destructor(r);
    r.check(model::repeated_wakes.load(std::memory_order_relaxed) == 0, "nobody is woken for nothing");
}

// As in a wait, the callback releases the owner, which then destroys the callback.
MODEL_TEST(stop_callback_model, MayBeDestroyedByTheThreadItReleased, holds_always) {
    model::stop_source source;
    auto_reset_event released;
    const auto release = [&]() noexcept { released.set(); };
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("owner", [&] {
        const detail::self_removing_stop_callback<decltype(release)> registered(source.get_token(), release);
        released.wait(sleep_at_once);
    });
    r.join_all();
}

// As in a coroutine that resumes inside the callback, the callback destroys itself.
TEST(stop_callback_model, MayBeDestroyedInsideTheCallback) {
    struct destroys {
        void operator()() const noexcept { what.reset(); }
        std::optional<detail::self_removing_stop_callback<destroys>>& what;
    };
    holds_always([](run& r) {
        model::stop_source source;
        std::optional<detail::self_removing_stop_callback<destroys>> registered;
        registered.emplace(source.get_token(), destroys{registered});
        r.spawn("stopper", [&] { source.request_stop(); });
        r.join_all();
        r.check(!registered.has_value(), "the callback has run");
    });
}

MODEL_TEST(stop_callback_model, RunsAtOnceIfAStopHasBeenRequested, holds_always) {
    model::stop_source source;
    plain<int> calls{0};
    plain<bool> alive{true};
    source.request_stop();
    r.spawn("owner", [&] {
        const callback registered(source.get_token(), counted{calls, alive});
        model::check(calls == 1, "in the constructor");
    });
    r.join_all();
}

}  // namespace
