// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs in which threads sleep on a word that they share (src/core/lot/shared_word.cpp).
// Proof P16 in docs/proofs.md. The models of the events run through the same code.
#include "support/library_model.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using core::claim;
using core::locked_queue;
using core::release_list;
using core::shared_word;
using core::wait_key;
using core::wait_node;
using core::waiter;
using model::plain;
using model::run;

// A gate whose waiters say themselves which word of the bucket they share. All under the bucket's lock.
struct gate {
    const wait_key key{this, core::wait_kind::event};
    plain<bool> open{false};
    plain<int> data{0};
};

shared_word* word(std::size_t number) { return &core::the_lot->at[0].shared[number]; }

// Passes the open gate, or sleeps on the word (null: on one of its own): for ever or, if `cancelable`, until some time.
claim pass(gate& door, shared_word* shared, bool cancelable, wait_node::kind own = wait_node::kind::waiter) {
    waiter self;
    wait_node node(door.key, self, cancelable);
    node.what = own;
    {
        locked_queue queue(door.key);
        if (door.open) return claim::signaled;
        if (shared != nullptr) {
            node.what = wait_node::kind::sharer;
            if (!shared->try_begin_batch()) shared->join_batch();
            self.share(*shared);
        }
        queue.append(node);
    }
    const claim how = sleep(self, cancelable ? some_time() : deadline::never());
    if (how == claim::timed_out) {
        locked_queue(door.key).remove(node);
        if (shared != nullptr) shared->leave_batch(1);
    } else {
        model::check(door.data == 42, "what came before the release is visible");
    }
    return how;
}

std::size_t open(gate& door) {
    std::size_t taken = 0;
    release_list freed;
    door.data = 42;
    {
        locked_queue queue(door.key);
        door.open = true;
        freed = queue.take(static_cast<std::size_t>(-1), taken);
    }
    freed.wake();
    return taken;
}

MODEL_TEST(shared_word_model, AWakeIsNeverMissed, holds_always) {
    gate door;
    r.spawn("sharer", [&] { (void)pass(door, word(0), false); });
    r.spawn("opener", [&] { (void)open(door); });
    r.join_all();
}

MODEL_TEST(shared_word_model, OneWakeReachesAllWhoShare, holds_within, 2) {
    gate door;
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { (void)pass(door, word(0), false); });
    r.spawn("opener", [&] { (void)open(door); });
    r.join_all();
}

MODEL_TEST(shared_word_model, ADeadlineAndAReleaseDecideOnce, holds_always) {
    gate door;
    claim how{};
    std::size_t taken = 0;
    r.spawn("sharer", [&] { how = pass(door, word(0), true); });
    r.spawn("opener", [&] { taken = open(door); });
    r.join_all();
    r.check(how == claim::signaled || taken == 0, "a wait that was taken was signaled");
}

MODEL_TEST(shared_word_model, EachOfTwoWordsInOneListIsWoken, holds_within, 2) {
    gate door;
    r.spawn("first word", [&] { (void)pass(door, word(0), false); });
    r.spawn("second word", [&] { (void)pass(door, word(1), false); });
    r.spawn("opener", [&] { (void)open(door); });
    r.join_all();
}

// Of the two that share no word, one releases the sharer and, behind it, the other.
MODEL_TEST(shared_word_model, WhoeverSharesNoWordIsReleasedBehindThoseWhoDo, holds_within, 1) {
    gate door;
    r.spawn("sharer", [&] { (void)pass(door, word(0), false); });
    for (const char* name : {"own word", "another own word"})
        r.spawn(name, [&] { (void)pass(door, nullptr, false); });
    r.spawn("opener", [&] { (void)open(door); });
    r.join_all();
}

// The thread that marks the first sharer hands the second one to the next delegate, and wakes the first afterwards.
MODEL_TEST(shared_word_model, TheNextDelegateTakesOver, holds_within, 1) {
    gate door;
    r.spawn("first word", [&] { (void)pass(door, word(0), false); });
    r.spawn("delegate", [&] { (void)pass(door, nullptr, false, wait_node::kind::delegate); });
    r.spawn("second word", [&] { (void)pass(door, word(1), false); });
    r.spawn("opener", [&] { (void)open(door); });
    r.join_all();
}

// Two batches of two threads each wait for one event. Some of these threads may pass before it is set.
MODEL_TEST(shared_word_model, ASetReleasesEveryBatch, holds_within, 1) {
    manual_reset_event event;
    for (const char* name : {"one", "two", "three", "four"})
        r.spawn(name, [&] { event.wait(sleep_at_once); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
}

// A wake of a stranger on the same word neither ends a wait nor hides its release.
MODEL_TEST(shared_word_model, StrangersSleepOn, holds_within, 2) {
    gate mine;
    gate other;
    r.spawn("sharer", [&] {
        const bool in_time = pass(mine, word(0), true) == claim::signaled;
        model::check(!in_time || mine.open, "only its own gate releases it");
    });
    r.spawn("stranger", [&] { (void)pass(other, word(0), false); });
    r.spawn("opener", [&] { (void)open(other); });
    r.join_all();
}

// A word's next batch begins after the wake of its last batch, so that this wake reaches none of the next batch. A
// thread of the next batch looks at its mark before it sleeps, and again when its own releaser has marked it.
TEST(shared_word_model, TheWakeOfABatchDisturbsNoneOfTheNext) {
    model::options without_spurious_returns;
    without_spurious_returns.spurious_returns = 0;
    explore_both("all", without_spurious_returns, [](run& r) {
        shared_word& shared = *word(0);
        r.check(shared.try_begin_batch(), "nobody shares the word yet");
        model::atomic<int> released{0};
        r.spawn("releaser of the last batch", [&] { core::marked_sharers{shared, 1, true}.wake(); });
        r.spawn("sharer of the next", [&] {
            if (!shared.try_begin_batch()) return;
            int looks = 0;
            const auto look = [&] { return ++looks, released.fetch_add(0) != 0; };  // the newest value
            (void)shared.sleep_until(look, deadline::never());
            model::check(looks <= 2, "only its own wake reaches it");
            shared.leave_batch(1);
        });
        r.spawn("its releaser", [&] {
            released.store(1);
            shared.wake_all();
        });
        r.join_all();
    });
}

// Two gates look for a word, of which one alone is left.
MODEL_TEST(shared_word_model, TwoBatchesNeverHaveTheSameWordAtOnce, holds_always) {
    for (std::size_t other = 1; other != std::size(core::bucket{}.shared); ++other)
        r.check(word(other)->try_begin_batch(), "nobody shares the word yet");
    gate gates[2];
    plain<int> batches{0};
    for (gate& door : gates) {
        r.spawn("waiters and their setter", [&] {
            waiter first, second;
            wait_node delegate(door.key, first, false);
            wait_node sharer(door.key, second, false);
            release_list freed;
            {
                locked_queue queue(door.key);
                queue.append_to_share(delegate, {});
                queue.append_to_share(sharer, {});
                freed = queue.take_all();
            }
            if (core::is_sharer(&sharer)) batches = batches + 1;  // a race if both have the word
            freed.wake();
        });
    }
    r.join_all();
    for (std::size_t other = 1; other != std::size(core::bucket{}.shared); ++other)
        word(other)->leave_batch(1);
}

// Batches have two threads. Once the first sharer has left, the fourth thread is third, and its neighbour shares a
// word.
MODEL_TEST(shared_word_model, ASharerJoinsItsNeighboursBatch, holds_always) {
    gate door;
    waiter waiters[5];
    std::vector<std::unique_ptr<wait_node>> nodes;
    release_list freed;
    {
        locked_queue queue(door.key);
        for (waiter& each : waiters) {
            if (nodes.size() == 4) {
                queue.remove(*nodes[1]);
                waiters[1].shared().leave_batch(1);
            }
            nodes.push_back(std::make_unique<wait_node>(door.key, each, true));
            queue.append_to_share(*nodes.back(), {});
        }
        r.check(core::is_sharer(nodes[4].get()) && &waiters[4].shared() == &waiters[3].shared(), "it joins");
        freed = queue.take_all();
    }
    freed.wake();
    r.check(waiters[3].is_released() && waiters[4].is_released(), "both are released");
}

// The sharer's neighbour sleeps alone. Its batch's word is that of the sharer in front of the neighbour.
MODEL_TEST(shared_word_model, ASharerFindsItsBatchBehindAThreadThatSleepsAlone, holds_always) {
    gate door;
    waiter waiters[4];
    wait_node delegate(door.key, waiters[0], false);
    wait_node sharer(door.key, waiters[1], false);
    wait_node alone(door.key, waiters[2], true);
    wait_node another(door.key, waiters[3], false);
    release_list freed;
    {
        locked_queue queue(door.key);
        queue.append_to_share(delegate, {});
        queue.append_to_share(sharer, {});
        queue.append(alone);
        queue.append_to_share(another, {});
        r.check(core::is_sharer(&another) && &waiters[3].shared() == &waiters[1].shared(), "it joins");
        freed = queue.take_all();
    }
    freed.wake();
    for (const waiter& each : waiters) r.check(each.is_released(), "all are released");
}

// Whoever has been released may wait for the same gate again, while the wake of the others is under way.
MODEL_TEST(shared_word_model, AWaitBegunAfterTheReleaseIsNotEndedByItsWake, holds_within, 2) {
    manual_reset_event event;
    r.spawn("delegate", [&] { event.wait(sleep_at_once); });
    r.spawn("again", [&] {
        event.wait(sleep_at_once);
        event.reset();
        model::check(event.wait_until(some_time(), sleep_at_once) == wait_status::timed_out,
                     "nobody set it after the reset");
        event.set();  // for the other, if it parked after the reset
    });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
}

// Of two waiters one may be stopped. That one sleeps on a word of its own.
MODEL_TEST(shared_word_model, AStopEndsOneWaitOfAGate, holds_within, 1) {
    manual_reset_event event;
    model::stop_source source;
    r.spawn("first", [&] { event.wait(sleep_at_once); });
    r.spawn("stoppable", [&] { (void)event.wait(source.get_token(), sleep_at_once); });
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
}

MODEL_TEST(shared_word_model, ADelegateWhoseDeadlinePassesLeavesTheOthersTheirRelease, holds_within, 2) {
    manual_reset_event event;
    r.spawn("delegate", [&] { (void)event.wait_until(some_time(), sleep_at_once); });
    r.spawn("sharer", [&] { event.wait(sleep_at_once); });
    r.spawn("setter", [&] { event.set(); });
    r.join_all();
    r.check(tells_who_is_parked(event), "the last wait that ends turns the parked bit off");
}

// The sharers' gate may be gone as soon as they are released.
MODEL_TEST(shared_word_model, TheLastOneReleasedMayDestroyTheGate, holds_within, 2) {
    auto* const event = new manual_reset_event;
    model::atomic<int> left{2};
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            event->wait(sleep_at_once);
            if (left.fetch_sub(1) == 1) delete event;
        });
    }
    r.spawn("setter", [event] { event->set(); });
    r.join_all();
}

}  // namespace
