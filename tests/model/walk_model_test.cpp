// SPDX-License-Identifier: Apache-2.0
// Walks over a queue that free the bucket's lock in between: an offer to one, and the look at the waits for all behind
// an open gate. The models free the lock after every node that stays (TOCSIN_LOOKS_PER_LOCK). Whatever happens in
// between, no wait that could end is overlooked, and nobody is passed over. Proofs P3 and P11 in docs/proofs.md; lot-8.
#include "core/wait/ready_list.hpp"
#include "support/library_model.hpp"

#include <optional>
#include <utility>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

int tokens_in(auto_reset_event& event) { return event.try_wait() ? 1 : 0; }

// Waits that queue one after the other, in this order, before anything else happens.
class lineup {
public:
    explicit lineup(run& r) : run_(r) { run_.fix_schedule(); }

    template <class Wait>
    void add(const char* name, Wait wait) {
        run_.spawn(name, wait);
        model::wait_until(model::others_are_blocked);
    }
    void done() { run_.fix_schedule(false); }

private:
    run& run_;
};

// The second and the third have all they want; the first lacks something for good.
MODEL_TEST(walk_model, AnOpenGateServesAllThatLackNothingElse, holds_within, 1) {
    manual_reset_event gate;
    auto_reset_event a, b(true), c(true);
    lineup queue(r);
    queue.add("lacks a", [&] {
        model::check(wait_all({.until = some_time()}, gate, a) == wait_status::timed_out, "lacks a");
    });
    queue.add("has b", [&] { wait_all(gate, b); });
    queue.add("has c", [&] { wait_all(gate, c); });
    queue.done();
    gate.set();
    r.join_all();
    r.check(!b.is_set() && !c.is_set(), "both are served");
}

// The wait at which the walk has stopped times out, or gets what it lacked.
TEST(walk_model, TheWaitAtWhichItStoppedLeaves) {
    for (const bool in_time : {false, true}) {
        holds_within(1, [in_time](run& r) {
            manual_reset_event gate;
            auto_reset_event a, b(true);
            bool first = false;
            lineup queue(r);
            queue.add("first", [&] {
                first = wait_all({.until = in_time ? deadline::never() : deadline(some_time())}, gate, a) ==
                        wait_status::signaled;
            });
            queue.add("second", [&] { wait_all(gate, b); });
            queue.done();
            r.spawn("opener", [&] { gate.set(); });
            if (in_time) a.set();
            r.join_all();
            r.check(first == in_time && !b.is_set(), "the second is served");
        });
    }
}

// Each walk meets waits that the other commits.
MODEL_TEST(walk_model, TwoGatesAreOpenedAtOnce, holds_within, 0) {
    manual_reset_event one, other;
    auto_reset_event a(true), b(true);
    lineup queue(r);
    queue.add("one a", [&] { wait_all(one, a); });
    queue.add("both", [&] { wait_all(one, other); });
    queue.add("other b", [&] { wait_all(other, b); });
    queue.done();
    r.spawn("opener", [&] { one.set(); });
    other.set();
    r.join_all();
    r.check(!a.is_set() && !b.is_set(), "all are served");
}

// Two walks over one queue.
MODEL_TEST(walk_model, AGateIsOpenedTwice, holds_within, 1) {
    manual_reset_event gate;
    auto_reset_event a, b(true);
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, gate, a); });
    queue.add("has b", [&] { wait_all(gate, b); });
    queue.done();
    r.spawn("opener", [&] { gate.set(); });
    gate.set();
    r.join_all();
    r.check(gate.is_set() && !b.is_set(), "served");
}

// The gate is closed and opened again while the first walk is under way. A wait for the gate alone queues in between.
MODEL_TEST(walk_model, AGateIsClosedAndOpenedAgain, holds_within, 0) {
    manual_reset_event gate;
    auto_reset_event a, b(true);
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, gate, a); });
    queue.add("has b", [&] { wait_all(gate, b); });
    queue.done();
    r.spawn("opener", [&] { gate.set(); });
    r.spawn("passer", [&] { gate.wait(sleep_at_once); });
    gate.reset();
    gate.set();
    r.join_all();
    r.check(gate.is_set() && !b.is_set(), "all are served");
}

// A wait that queues while the walk is under way looks itself.
MODEL_TEST(walk_model, AWaitForAllQueuesMeanwhile, holds_within, 1) {
    manual_reset_event gate;
    auto_reset_event a, b(true);
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, gate, a); });
    queue.done();
    r.spawn("comes", [&] { wait_all(gate, b); });
    gate.set();
    r.join_all();
    r.check(gate.is_set() && !b.is_set(), "served");
}

// A token is offered to two waits that lack something, then goes to the third in the queue.
MODEL_TEST(walk_model, ATokenReachesTheWaiterBehindThoseThatLackSomething, holds_within, 1) {
    auto_reset_event event, a, b;
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, event, a); });
    queue.add("lacks b", [&] { (void)wait_all({.until = some_time()}, event, b); });
    queue.add("single", [&] { event.wait(sleep_at_once); });
    queue.done();
    event.set();
    r.join_all();
    r.check(!event.is_set(), "taken");
}

// A thread that queues while the token is offered is behind all others, and is not passed over. Nor is a token doubled.
MODEL_TEST(walk_model, AWaiterThatComesDuringAnOfferIsServed, holds_within, 1) {
    auto_reset_event event, a, b;
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, event, a); });
    queue.add("lacks b", [&] { (void)wait_all({.until = some_time()}, event, b); });
    queue.done();
    r.spawn("comes", [&] { event.wait(sleep_at_once); });
    event.set();
    r.join_all();
    r.check(!event.is_set(), "taken");
}

// What looked ready is taken away before the commit. The offer then continues behind the last place at which it
// stopped.
MODEL_TEST(walk_model, AnOfferContinuesAfterACommitThatFails, holds_within, 0) {
    auto_reset_event event, a, b(true);
    bool both = false;
    int stolen = 0;
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, event, a); });
    queue.add("has b", [&] { both = wait_all({.until = some_time()}, event, b) == wait_status::signaled; });
    queue.add("single", [&] {
        event.wait(sleep_at_once);
        event.set();
    });
    queue.done();
    r.spawn("thief", [&] { stolen = tokens_in(b); });
    event.set();
    model::wait_until(model::others_are_blocked);
    if (both) event.set();
    r.join_all();
    r.check(stolen + (both ? 1 : 0) + tokens_in(b) == 1, "one token of b");
}

// Two tokens are offered at the same time.
MODEL_TEST(walk_model, TwoOffersAtOnce, holds_within, 1) {
    auto_reset_event event, a;
    int served = 0;
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, event, a); });
    queue.add("single", [&] {
        event.wait(sleep_at_once);
        ++served;
    });
    queue.done();
    r.spawn("setter", [&] { event.set(); });
    event.set();
    r.join_all();
    r.check(served == 1 && event.is_set(), "one token is taken, one is left");
}

// The set has declined the token, in an earlier part of the offer, and has gone to sleep since.
MODEL_TEST(walk_model, ASetHearsOfATokenThatBecomesVisibleLater, holds_within, 2) {
    auto_reset_event event, a;
    wait_set set;
    set.add(event, 0);
    lineup queue(r);
    queue.add("lacks a", [&] { (void)wait_all({.until = some_time()}, event, a); });
    queue.done();
    r.spawn("waiter", [&] {
        ready_item found[1];
        model::check(set.wait({.spin = sleep_at_once}, found).count == 1, "reported");
    });
    event.set();
    r.join_all();
    r.check(!event.is_set(), "taken");
}

// A wait for all that looks ready, and is in the queue.
class ready_wait final : public core::all_waiter {
public:
    explicit ready_wait(const core::wait_key& key) : node_(key, *this) {
        core::locked_queue(key).append(node_);
    }
    ~ready_wait() { leave(); }

    core::reply on_wake(const core::wait_node*) noexcept override { return core::reply::undecided; }
    bool commit(const core::wait_node*) noexcept override { return true; }
    void leave() { core::locked_queue(node_.key).remove(node_); }

private:
    core::wait_node node_;
};

// The walk is at a plain waiter, because those behind it have left. It is released, and is gone.
MODEL_TEST(walk_model, AQueueIsDetachedWithTheWaiterAtWhichAWalkIs, holds_always) {
    const char place = 0;
    const core::wait_key key{&place, core::wait_kind::event};
    std::optional<core::waiter> self(std::in_place);
    std::optional<core::wait_node> node(std::in_place, key, *self, false);
    core::locked_queue(key).append(*node);
    ready_wait middle(key);
    ready_wait last(key);
    core::queue_cursor looked(key);
    const core::all_waiter* found = nullptr;
    while (found == nullptr) found = core::locked_queue(key).find_ready_all_waiter(looked);
    r.check(found == &middle, "the first that is ready");
    middle.leave();
    last.leave();
    core::release_list freed = core::locked_queue(key).take_all();
    freed.wake();
    node.reset();
    self.reset();
    ready_wait another(key);
    r.check(core::locked_queue(key).find_ready_all_waiter(looked) == &another, "at the head");
}

// Two walks are at one node, which leaves.
MODEL_TEST(walk_model, TwoWalksAreAtOneNode, holds_always) {
    const char place = 0;
    const core::wait_key key{&place, core::wait_kind::event};
    ready_wait first(key);
    std::optional<ready_wait> middle(std::in_place, key);
    ready_wait last(key);
    core::queue_cursor walks[]{core::queue_cursor(key), core::queue_cursor(key)};
    const auto next_of = [&](core::queue_cursor& walk) {
        const core::all_waiter* found = nullptr;
        while (found == nullptr) found = core::locked_queue(key).find_ready_all_waiter(walk);
        return found;
    };
    for (core::queue_cursor& walk : walks) {
        r.check(next_of(walk) == &first, "the first");
        r.check(next_of(walk) == &*middle, "the second");
    }
    middle.reset();
    for (core::queue_cursor& walk : walks) r.check(next_of(walk) == &last, "the last");
}

}  // namespace
