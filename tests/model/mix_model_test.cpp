// SPDX-License-Identifier: Apache-2.0
// Waits of every kind on the same events, in every order, and every short sequence of operations on these events. There
// are two auto-reset events and a gate. Whenever nothing can move any more:
//   - no wait is parked although it could end;
//   - every token that went in has come out once or is still there;
//   - a gate that was opened has released all that were parked, even if it was closed at once;
//   - the byte of each event says whether its queue is empty (event-2).
// Where one thread makes the operations, nothing moves between two of them. In the other mixes two threads make one
// each.
#include "../support/task.hpp"
#include "support/library_model.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

constexpr unsigned a = 0, b = 1, gate = 2;  // the events

enum class kind {
    one_a,
    one_gate,
    stoppable_a,
    stoppable_gate,
    any_a_gate,
    all_a_gate,
    all_gate_b,
    set_a_gate,
    task_a,
    task_gate
};
constexpr unsigned kinds = 10;

enum class deed { set_a, set_b, open, close, open_and_close, take_a, stop_first, stop_second };
constexpr unsigned deeds = 8;

// The events of which a wait takes all, or any.
std::vector<unsigned> wanted(kind what) {
    switch (what) {
        case kind::one_a:
        case kind::stoppable_a:
        case kind::task_a: return {a};
        case kind::one_gate:
        case kind::stoppable_gate:
        case kind::task_gate: return {gate};
        case kind::any_a_gate:
        case kind::set_a_gate:
        case kind::all_a_gate: return {a, gate};
        case kind::all_gate_b: return {gate, b};
    }
    return {};
}

bool wants_all(kind what) { return what == kind::all_a_gate || what == kind::all_gate_b; }
bool is_stoppable(kind what) { return what != kind::one_a && what != kind::one_gate; }

struct events {
    auto_reset_event first, second;
    manual_reset_event third;

    std::array<bool, 3> are_set() const { return {first.is_set(), second.is_set(), third.is_set()}; }
};

class waiter {
public:
    waiter(events& on, kind what) : on_(on), what_(what) {
        if (what != kind::set_a_gate) return;
        set_.emplace();
        set_->add(on.first, a);
        set_->add(on.third, gate);
    }

    void wait() {
        const auto token = stop_.get_token();
        switch (what_) {
            case kind::one_a: on_.first.wait(sleep_at_once); return end(wait_status::signaled, a);
            case kind::one_gate: on_.third.wait(sleep_at_once); return end(wait_status::signaled, gate);
            case kind::stoppable_a: return end(on_.first.wait(token, sleep_at_once), a);
            case kind::stoppable_gate: return end(on_.third.wait(token, sleep_at_once), gate);
            case kind::any_a_gate: {
                const auto how = wait_any({.stop = token, .spin = sleep_at_once}, on_.first, on_.third);
                return end(how.status, how.index == 0 ? a : gate);
            }
            case kind::all_a_gate: return end(wait_all({.stop = token}, on_.first, on_.third), a);
            case kind::all_gate_b: return end(wait_all({.stop = token}, on_.third, on_.second), b);
            case kind::set_a_gate: {
                ready_item found[1];
                const auto how = set_->wait({.stop = token, .spin = sleep_at_once}, found);
                return end(how.status, static_cast<unsigned>(found[0].tag));
            }
            case kind::task_a: return await(on_.first, a);
            case kind::task_gate: return await(on_.third, gate);
        }
    }

    void stop() {
        if (is_stoppable(what_)) stop_.request_stop();
        model::wait_until(model::others_are_blocked);
        model::check(!is_stoppable(what_) || ended_, "a stopped wait ends");
    }

    kind what() const { return what_; }
    bool has_ended() const { return ended_; }
    unsigned took(unsigned event) const {
        return ended_ && how_ == wait_status::signaled && taken_ == event ? 1 : 0;
    }

    // It could end, but has not.
    bool is_overlooked(const std::array<bool, 3>& is_set) const {
        if (ended_) return false;
        unsigned ready = 0;
        const auto of = wanted(what_);
        for (unsigned each : of) ready += is_set[each] ? 1 : 0;
        return wants_all(what_) ? ready == of.size() : ready != 0;
    }

private:
    void end(wait_status how, unsigned taken) {
        how_ = how;
        taken_ = taken;
        ended_ = true;
    }

    template <class Event>
    void await(Event& event, unsigned number) {
        coroutine_ = [](waiter& self, Event& on, unsigned which) -> support::task {
            self.end(co_await async_wait({.stop = self.stop_.get_token()}, on), which);
        }(*this, event, number);
    }

    events& on_;
    const kind what_;
    model::stop_source stop_;
    std::optional<wait_set> set_;
    support::task coroutine_;
    bool ended_ = false;
    wait_status how_ = wait_status::timed_out;
    unsigned taken_ = a;
};

class mix {
public:
    explicit mix(run& r) : run_(r) {}

    void begin(bool a_is_set, bool b_is_set) {
        if (a_is_set) set(a);
        if (b_is_set) set(b);
    }

    // The wait parks behind those before it, or ends at once.
    void add(kind what) {
        waiters_.push_back(std::make_unique<waiter>(events_, what));
        run_.spawn("waiter " + std::to_string(waiters_.size()), [it = waiters_.back().get()] { it->wait(); });
        come_to_rest();
    }

    void make(deed what) {
        switch (what) {
            case deed::set_a: return set(a);
            case deed::set_b: return set(b);
            case deed::open: return events_.third.set();
            case deed::close: return events_.third.reset();
            case deed::open_and_close: return open_and_close();
            case deed::take_a: taken_[a] += events_.first.try_wait() ? 1 : 0; return;
            case deed::stop_first: return waiters_.front()->stop();
            case deed::stop_second: return waiters_.back()->stop();
        }
    }

    // Afterwards nothing can move any more.
    void come_to_rest() {
        model::wait_until([this] {
            if (!model::others_are_blocked()) return false;
            is_set_ = events_.are_set();
            return true;
        });
    }

    void check() {
        for (const auto& each : waiters_) model::check(!each->is_overlooked(is_set_), "nobody is overlooked");
        model::check(tells_who_is_parked(events_.first) && tells_who_is_parked(events_.second) &&
                         tells_who_is_parked(events_.third),
                     "each byte says whether somebody is parked");
        for (unsigned each : {a, b}) {
            unsigned out = taken_[each] + (is_set_[each] ? 1 : 0);
            for (const auto& one : waiters_) out += one->took(each);
            model::check(out <= given_[each] && out + absorbable_ >= given_[each], "one in, one out");
        }
    }

    // Ends the waits that are still parked; a run must not end with one.
    void end() {
        for (int round = 0; round != 4; ++round) {
            set(a);
            set(b);
            events_.third.set();
            come_to_rest();
        }
        run_.join_all();
        for (const auto& each : waiters_) model::check(each->has_ended(), "released in the end");
        waiters_.clear();
    }

    void let_sets_meet() { absorbable_ = 2; }

private:
    // A set of a set event adds no token. Only where no other thread sets is that known.
    void set(unsigned which) {
        come_to_rest_if_alone();
        if (absorbable_ != 0 || !is_set_[which]) ++given_[which];
        which == a ? events_.first.set() : events_.second.set();
    }

    void come_to_rest_if_alone() {
        if (absorbable_ == 0) come_to_rest();
    }

    void open_and_close() {
        std::vector<waiter*> parked;
        for (const auto& each : waiters_) {
            if (!each->has_ended() && !wants_all(each->what()) && each->what() != kind::one_a &&
                each->what() != kind::stoppable_a && each->what() != kind::task_a)
                parked.push_back(each.get());
        }
        events_.third.set();
        events_.third.reset();
        if (absorbable_ != 0) return;
        come_to_rest();
        for (const waiter* each : parked)
            model::check(each->has_ended(), "all that were parked are released");
    }

    run& run_;
    events events_;
    std::vector<std::unique_ptr<waiter>> waiters_;
    std::array<bool, 3> is_set_{};
    std::array<unsigned, 3> given_{}, taken_{};
    unsigned absorbable_ = 0;  // sets that an earlier one may have absorbed
};

void explore_mixes(model::options how, const model::test_body& body) {
    how.spurious_returns = 0;
    how.stale_distance = 0;  // interleavings only: other models explore the memory orders
    how.max_executions = 500'000'000;
    explore_both("mixes", how, body);
}

kind choose_kind(run& r) { return static_cast<kind>(r.choose(kinds, "kind")); }

class mix_model : public testing::TestWithParam<unsigned> {};

// Three waits of any kinds, then two operations of any kind; three for a proof, one where it must be quick.
TEST_P(mix_model, ThreeWaitsAndAFewOperationsInTurn) {
    model::options each_once;
    each_once.one_schedule = true;
    explore_mixes(each_once, [](run& r) {
        mix all(r);
        const unsigned set = r.choose(4, "already set");
        all.begin((set & 1) != 0, (set & 2) != 0);
        all.add(static_cast<kind>(GetParam()));
        all.add(choose_kind(r));
        all.add(choose_kind(r));
        for (int i = is_proof() ? 3 : is_quick() ? 1 : 2; i != 0; --i) {
            all.make(static_cast<deed>(r.choose(deeds, "deed")));
            all.come_to_rest();
            all.check();
        }
        all.end();
    });
}

INSTANTIATE_TEST_SUITE_P(first_of_kind, mix_model, testing::Range(0u, kinds));

// Two waits, and two threads with one operation each.
TEST(mix_model, TwoWaitsAndTwoOperationsAtOnce) {
    constexpr std::array some{kind::stoppable_gate, kind::any_a_gate, kind::all_a_gate, kind::all_gate_b,
                              kind::set_a_gate};
    constexpr std::array made{deed::set_a, deed::open, deed::take_a, deed::close};
    explore_mixes(model::options::bounded(is_proof() ? 2 : 1), [&](run& r) {
        r.fix_schedule();
        mix all(r);
        const unsigned set = r.choose(4, "already set");
        all.begin((set & 1) != 0, (set & 2) != 0);
        all.add(some[r.choose(some.size(), "kind")]);
        all.add(some[r.choose(some.size(), "kind")]);
        all.let_sets_meet();
        const unsigned one = r.choose(made.size(), "deed");
        const unsigned other = r.choose(one + 1, "deed");
        r.fix_schedule(false);
        r.spawn("one", [&] { all.make(made[one]); });
        r.spawn("other", [&] { all.make(made[other]); });
        all.come_to_rest();
        r.fix_schedule();
        all.check();
        all.end();
    });
}

}  // namespace
