// SPDX-License-Identifier: Apache-2.0
// The operation state of a sender whose receiver may ask to stop, in every interleaving of small programs. The receiver
// is told exactly once, and may have the state destroyed immediately. Proof P25 in docs/proofs.md.
#define TOCSIN_EXECUTION_OWN
#include "support/library_model.hpp"

#include <tocsin/sender.hpp>

#include <memory>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

namespace ex = tocsin::execution;

// A stop token whose callbacks have a field that the explorer watches, so that one thread can't destroy what another
// has not published.
struct watched_token {
    template <class Function>
    struct callback_type {
        callback_type(const watched_token& of, Function call) : inner(of.token, call) {}
        plain<int> own{1};
        model::stop_callback<Function> inner;
    };
    bool stop_requested() const noexcept { return token.stop_requested(); }
    bool stop_possible() const noexcept { return token.stop_possible(); }

    model::stop_token token;
};

struct environment {
    watched_token query(ex::get_stop_token_t) const noexcept { return {token}; }
    model::stop_token token;
};

// What the receiver is told. Whoever waits for `over` may then destroy the operation state.
struct told {
    plain<int> values{0};
    plain<int> stops{0};
    manual_reset_event over;
};
struct receiver {
    using receiver_concept = ex::receiver_tag;
    environment get_env() const noexcept { return {token}; }
    void set_value(any_result how) && noexcept {
        model::check(how.status == wait_status::signaled && how.index == 0, "the result is visible");
        to->values = to->values + 1;
        to->over.set();
    }
    void set_stopped() && noexcept {
        to->stops = to->stops + 1;
        to->over.set();
    }
    told* to;
    model::stop_token token;
};

// Starts, waits until the receiver was told, and destroys the state.
void start_and_destroy(auto_reset_event& event, model::stop_source& source, told& to) {
    auto state = ex::connect(as_sender(event), receiver{&to, source.get_token()});
    ex::start(state);
    to.over.wait(sleep_at_once);
}

MODEL_TEST(sender_model, ASetTellsTheReceiverOnce, holds_within, 2) {
    auto_reset_event event;
    model::stop_source source;
    told told;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("owner", [&] { start_and_destroy(event, source, told); });
    r.join_all();
    r.check(told.values == 1 && told.stops == 0 && !event.is_set(), "told once, token taken");
}

MODEL_TEST(sender_model, AStopTellsTheReceiverOnce, holds_within, 2) {
    auto_reset_event event;
    model::stop_source source;
    told told;
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("owner", [&] { start_and_destroy(event, source, told); });
    r.join_all();
    r.check(told.values == 0 && told.stops == 1, "told once");
}

MODEL_TEST(sender_model, AStopAndASetTellTheReceiverOnceAndEatNoToken, holds_within, 2) {
    auto_reset_event event;
    model::stop_source source;
    told told;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("owner", [&] { start_and_destroy(event, source, told); });
    r.join_all();
    const int left = event.try_wait() ? 1 : 0;
    r.check(told.values + told.stops == 1 && told.values + left == 1, "told once; one token in, one out");
}

}  // namespace
