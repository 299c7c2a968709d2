// SPDX-License-Identifier: Apache-2.0
// How a waker and the threads that it releases share the release of many.
//
// State: a chain of nodes, which belong to the thread that is to release them (lot-3 in lot.cpp). A waker keeps the
// chain in its release_list. A released thread keeps it in waiter::others_or_word_.
//
// The relay is built on the waiter (waiter.cpp). A waker calls waiter::release(), which hands the remaining chain to
// the released thread. That thread calls finish(), which releases the chain. A thread that is to keep its chain finds
// none there. Its caller asks the waiter for the chain, and releases it (condition-5 in condition.cpp).
//
// Invariants
//   relay-1  A node is not touched after its waiter's release(), or after resume() of its resumable. Each of these
//       calls may end the node's life. So the next node is read before the call.
//   relay-2  A chain does not break: before a released thread's wait returns, the thread releases the nodes that it was
//       given. (If release_in_turn() gave it the nodes, the caller of that wait does so, before it returns to the user:
//       condition-5 in condition.cpp.)
//   relay-3  Coroutines come first in a chain. The waker releases all of them, since they are resumed in its thread.
//       (take() may detach a whole queue without sorting it, but only if no node in it is cancelable. A coroutine's
//       nodes are cancelable, so that queue has no node of a coroutine.)
//   relay-4  In a chain, nobody comes behind a less urgent thread. (A list may have another order until wake(), or
//       wake_in_turn(), which puts the most urgent threads first.) So a thread is never given the node of a more urgent
//       one. While a thread waits for a processor, the chain that it was given waits, too. Whoever is in that chain is
//       at most as urgent, and would hardly have got a processor sooner.
//
// To append one list to another, append() visits the coroutines of the second list. The threads of the second list move
// in one step, behind all other nodes.
//
// If there are few nodes, wake() releases all of them itself. If there are many, it wakes one or a few sleepers, and
// gives the remaining nodes to the last of these. That thread does the same before its wait returns, but wakes more
// sleepers than the waker did. So the waker makes a few system calls, however many threads wait.
//
// Sharers are threads that sleep on one word (shared_word.cpp). One call releases them together. If a waker of many
// nodes comes to a sleeper with sharers directly behind it, the waker gives all remaining nodes to that sleeper, and
// wakes nobody else. The sleeper then releases these sharers. If the node behind them is that of a sleeping delegate
// with sharers of its own, the sleeper gives the delegate its sharers and all nodes behind them.
//
// Checked by: tests/model/lot_model_test.cpp and event_model_test.cpp (P6 of docs/proofs.md),
// tests/internal/lot_test.cpp, tests/unit/await_test.cpp (relay-3), proofs/promela/event_lot.pml and group_commit.pml.
// The sleep in a poll: tests/model/many_model_test.cpp (polling_model), tests/model/wait_set_poll_model_test.cpp.
#include "core/lot/relay.hpp"

#include "core/lot/resume_queue.hpp"
#include "core/lot/shared_word.hpp"
#include "core/lot/wake_sample.hpp"
#include "core/sync/probe.hpp"
#include "platform/system/system.hpp"

#include <cstddef>
#include <utility>

namespace tocsin::core {
namespace {

// A waker releases up to `relay_above` nodes without a relay. If there are more, it wakes `waker_wakes()` sleepers and
// gives the last of them the remaining nodes. That thread wakes `relay_wakes` sleepers, passes on what is left, and so
// on. A thread that is not asleep yet costs no system call, and does not count.
// The numbers are a compromise. The waker should be held up as briefly as possible. But if each thread in a chain wakes
// only the next one, every processor falls idle before its next wake-up. Waking an idle processor costs most
// (docs/decisions/0004-relay.md).
#if !defined(TOCSIN_RELAY_ABOVE)
#define TOCSIN_RELAY_ABOVE 4
#define TOCSIN_RELAY_WAKES 16
#endif
constexpr std::size_t relay_above = TOCSIN_RELAY_ABOVE;
constexpr std::size_t relay_wakes = TOCSIN_RELAY_WAKES;

// How many threads release_in_turn() wakes: while one of two has the lock, the other is on its way.
#if !defined(TOCSIN_TURN_WAKES)
#define TOCSIN_TURN_WAKES 2
#endif
constexpr std::size_t turn_wakes = TOCSIN_TURN_WAKES;

// How many sleepers a waker wakes itself. 0: by the number of processors.
#if !defined(TOCSIN_WAKER_WAKES)
#define TOCSIN_WAKER_WAKES 0
#endif
std::size_t waker_wakes() noexcept {
    if (TOCSIN_WAKER_WAKES != 0) return TOCSIN_WAKER_WAKES;
    const unsigned processors = platform::processors();
    return processors <= 2 ? 1 : processors >= 16 ? 8 : processors / 2;
}

bool is_longer_than(std::size_t count, const wait_node* chain) noexcept {
    for (; count != 0 && chain != nullptr; --count) chain = node_list::next(*chain);
    return chain != nullptr;
}

// The first half of a release of sharers. `each` points to the first of them. Marks this sharer released, and all
// sharers directly behind it that share the same word. Then moves `each` to the node behind them, or to null.
marked_sharers mark_sharers(wait_node*& each) noexcept {
    marked_sharers marked{each->owner->shared()};
    while (is_sharer(each) && &each->owner->shared() == &marked.word) {
        show_grant(*each);
        wait_node* const next = node_list::next(*each);  // relay-1
        if (each->owner->mark_released()) marked.asleep = true;
        ++marked.count;
        each = next;
    }
    return marked;
}

void release_chain(wait_node* first, std::size_t to_wake) noexcept {
    const defer_resumes after_all;
    const bool many = is_longer_than(relay_above, first);
    for (wait_node* each = first; each != nullptr;) {
        if (is_sharer(each)) {
            const marked_sharers marked = mark_sharers(each);
            // The next delegate marks its sharers while this thread wakes those that it has marked.
            const bool next_takes_over = leads_sharers(each) && each->owner->is_asleep();
            if (next_takes_over) show_grant(*each);
            if (next_takes_over) each->owner->release(node_list::next(*each));
            marked.wake();
            if (next_takes_over) return;
            continue;
        }
        wait_node* const next = node_list::next(*each);  // relay-1
        if (each->what == wait_node::kind::resumable) {
            each->then->resume();
        } else {
            show_grant(*each);
            if (many && each->owner->is_asleep() && (is_sharer(next) || --to_wake == 0)) {
                return each->owner->release(next);
            }
            each->owner->release(nullptr);
        }
        each = next;
    }
}

// Puts the nodes whose urgency has this bit in front of the others. Nodes of both kinds keep their order.
void put_first(unsigned bit, node_list& nodes) noexcept {
    node_list have_it;
    node_list others;
    while (wait_node* const each = nodes.take_first())
        ((each->urgency & bit) != 0 ? have_it : others).append(*each);
    nodes = std::move(have_it);
    nodes.insert_after(nodes.last(), std::move(others));
}

}  // namespace

void release_list::append(wait_node& node) noexcept {
    using kind = wait_node::kind;
    if (!nodes_.empty() && node.urgency != nodes_.last()->urgency) differs_ = true;
    if (node.what == kind::waiter && node.owner->is_coroutine()) {
        nodes_.insert_after(last_coroutine_, node);
        last_coroutine_ = &node;
    } else if (node.what == kind::delegate || node.what == kind::sharer) {  // shared_word-4
        wait_node* const front =
            last_coroutine_ != nullptr ? node_list::next(*last_coroutine_) : nodes_.first();
        const bool to_front =
            last_of_batches_ == nullptr || (node.what == kind::delegate && is_sharer(front));
        nodes_.insert_after(to_front ? last_coroutine_ : last_of_batches_, node);
        if (last_of_batches_ == nullptr || !to_front) last_of_batches_ = &node;
    } else {
        has_pollables_ |= node.what == kind::resumable;
        nodes_.append(node);
    }
}

void release_list::append(release_list&& more) noexcept {
    while (more.last_coroutine_ != nullptr) {
        wait_node& each = *more.nodes_.take_first();
        if (&each == more.last_coroutine_) more.last_coroutine_ = nullptr;
        append(each);
    }
    differs_ |= more.differs_ || (!nodes_.empty() && !more.nodes_.empty() &&
                                  nodes_.last()->urgency != more.nodes_.first()->urgency);
    nodes_.insert_after(nodes_.last(), std::move(more.nodes_));
}

// relay-4. A radix sort, which needs no memory: one pass for each bit in which urgencies differ. Nodes of equal urgency
// keep their order, so batches (shared_word.cpp) stay together.
void release_list::put_most_urgent_first() noexcept {
    if (!differs_) return;
    differs_ = false;
    wait_node* const first =
        last_coroutine_ != nullptr ? node_list::next(*last_coroutine_) : nodes_.first();  // relay-3
    if (first == nullptr) return;
    node_list threads = nodes_.take_from(*first);
    unsigned different = 0;
    for (const wait_node* each = first; each != nullptr; each = node_list::next(*each))
        different |= each->urgency ^ first->urgency;
    for (unsigned bit = 1; bit <= different; bit <<= 1) {
        if ((different & bit) != 0) put_first(bit, threads);
    }
    nodes_.insert_after(nodes_.last(), std::move(threads));
}

void release_list::raise_pollables() noexcept {
    if (!has_pollables_) return;
    for (wait_node* each = nodes_.first(); each != nullptr;) {
        wait_node& one = *std::exchange(each, node_list::next(*each));
        if (one.what != wait_node::kind::resumable) continue;
        nodes_.remove(one);
        one.then->resume();
    }
}

void release_list::wake() noexcept {
    put_most_urgent_first();
    release_chain(nodes_.first(), waker_wakes());
}

void release_list::wake_in_turn() noexcept {
    put_most_urgent_first();
    if (!nodes_.empty()) release_in_turn(*nodes_.first());
}

claim finish(waiter& self) noexcept {
    if (wait_node* const others = self.given(); others != nullptr) release_chain(others, relay_wakes);
    return self.awake();
}

claim sleep(waiter& self, const deadline& until, sleep_report* report) noexcept {
    const bool measures = report != nullptr && report->measures && wake_sample::begin(self);
    const bool in_time = self.sleep_until_released(until, report);
    if (measures) wake_sample::end(self, *report);
    if (!in_time) {
        TOCSIN_PROBE(timeout, &self);
        if (self.try_claim(claim::timed_out)) return claim::timed_out;
        self.sleep_until_released(deadline::never());  // claimed by another thread, which releases it soon
    }
    return finish(self);
}

claim sleep(waiter& self, const detail::wait_options& options, sleep_report* report) noexcept {
    return self.stoppable(options, [&]() noexcept { return sleep(self, options.until, report); });
}

claim poll_sleep::sleep(waiter& self, const detail::wait_options& options) noexcept {
    return self.stoppable(options, [&]() noexcept { return sleep_until(self, options.until); });
}

claim poll_sleep::sleep_until(waiter& self, const deadline& until) noexcept {
    bool is_released = !self.enter_polling(bell()) || self.is_released();
    while (!is_released) {
        found_ = poll(until);
        if (found_.ended()) {
            const bool ready = found_.ready != 0;
            if (!ready) TOCSIN_PROBE(timeout, &self);
            const claim reason = ready ? claim::signaled : claim::timed_out;
            if (self.try_claim(reason, ready ? ready_source() : 0)) return reason;
            // Another thread has claimed the wait, and releases it now or soon.
            self.sleep_until_released(deadline::never());
        }
        is_released = self.is_released();
    }
    found_ = {};
    return finish(self);
}

void release_in_turn(wait_node& first) noexcept {
    wait_node* each = &first;
    for (std::size_t to_wake = turn_wakes;;) {
        wait_node* const next = node_list::next(*each);  // relay-1
        show_grant(*each);
        if (--to_wake == 0 || next == nullptr) return each->owner->release_to_keep(next);
        each->owner->release(nullptr);
        each = next;
    }
}

}  // namespace tocsin::core
