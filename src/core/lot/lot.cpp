// SPDX-License-Identifier: Apache-2.0
// The queues of the lot: how a node joins one, leaves it, and is taken by a wake.
//
// State
//   The lot is a fixed table of buckets (table.cpp). The hash of a key selects a bucket. A bucket has a lock, a tree of
//   queues, a filter word, and a list of cursors. (A cursor keeps a thread's place in a queue, lot-8.) A queue belongs
//   to one key. It is a doubly linked list of nodes, oldest first. The first node carries the state of its queue: the
//   last node, the two subtrees of queues below the queue, and four counts. These count all nodes, the cancelable
//   nodes, the nodes that stay when a wake reaches them (of subscribers and all_waiters), and the nodes of all_waiters
//   alone. A bucket also has words on which threads of its queues sleep together (shared_word.cpp).
//
//     the_lot           key A: first node       second node         last node
//     +------------+    +----------------+      +-----------+      +-----------+
//     | bucket 0   |    | key, owner ... |<---->| key ...   |<---->| key ...   |
//     |   lock     |    | queue:         |      +-----------+      |           |
//     |   queues ------>|   last --------------------------------->|           |
//     |   filter   |    |   counts: 3 ...|                         +-----------+
//     |   cursors  |    |   below[0] ------+    (these two carry no state of the queue)
//     +------------+    |   below[1]: null |
//     | bucket 1   |    +----------------+ |    key B: only node
//     |   ...      |                       |    +---------------------+
//     +------------+                       +--->| queue: last: itself |
//     |   ...      |                            |   below: null, null |
//     +------------+                            +---------------------+
//
//   The hash multiplies the key by an odd number that the process draws at random when it starts. So nobody outside can
//   choose addresses that meet in one bucket. The upper bits of the product are the bucket's index. The bits after them
//   are the key's path in the bucket's tree. The first six bits of the path are the index of the key's filter bit.
//
// Invariants
//   lot-1  Queues, the nodes in them, cursors, and changes of the filter are touched only under the bucket's lock.
//   lot-2  A node is in its queue from append() until unlink(), or until take() detaches the whole queue. Its waiter's
//       wait ends only after that, so no queued node is ever destroyed. `queued` says whether a cancelable node is
//       still queued. Nobody reads `queued` in a node that is not cancelable. So if a queue has only such nodes,
//       take_all() detaches it in one step (exception: shared_word-4).
//   lot-3  A node that take() or give_to_one() has taken off belongs to its taker until the taker releases it. The
//       node's waiter cannot continue before that: the taker has claimed the waiter, or the wait has no other way to
//       end.
//   lot-4  The filter bit of a key whose waiters call prepare_wait(). Several keys of a bucket may share a bit.
//       legal: the bit is off, and the key's queue is empty. Or the bit is on, and some key with this bit has a queue.
//       If only other keys with this bit have a queue, a wake on this key locks the bucket for nothing. (The other keys
//       may even be those of events, whose waiters never call prepare_wait().)
//       illegal: the bit is off while the key's queue is not empty, or while a thread that has called prepare_wait()
//       holds the lock. Or the bit is on and the lock is free, although no key with this bit has a queue.
//   lot-5  No thread releases or wakes a waiter while it holds a bucket's lock. (But a thread that holds the locks of
//       several buckets may free one of them, and so wake a thread that sleeps until that lock is free: multi_wait-3 in
//       multi_wait.cpp.)
//   lot-6  The node of a subscriber or an all_waiter leaves its queue only if its owner removes it. (For an all_waiter,
//       any thread that commits it may remove the node.) If a subscriber accepts an exclusive offer, its node moves to
//       the end.
//   lot-7  A queue is on its key's path, which begins at the root of the tree. At each queue, the path's next bit
//       selects below[0] or below[1]. So a search takes one step for each queue above its goal. The hash adds the kind
//       of wait to the address's upper eight bits. If no address uses these bits, the keys of one bucket have different
//       paths. A search then takes at most one step for each bit of a path, however the addresses were chosen. If an
//       address does use them, keys may have the same path. After its last bit, a path continues with zeros. When a
//       queue ends, a leaf from below it takes the queue's place, which is on the leaf's path. Queues with the same
//       filter bit share the first six bits of their paths. So each of them is one of the first six queues on the path
//       with these bits, or is below these six.
//   lot-8  A walk over a queue may free the lock after it has looked at a node that stays when a wake reaches it. The
//       walk then leaves a cursor at that node. Whoever takes that node out of the queue moves the cursor to the node
//       before it. Whoever detaches the whole queue moves the cursor to the head. While
//       a bucket has cursors, nodes join only at the end. So the
//       nodes behind the cursor are those that the walk has not passed, in the order of arrival.
//   lot-9  If nodes of a queue differ in urgency, a bit of its state says so. (It may be on although
//       they do not: those that differed have left.)
//   lot-10  A thread that needs several of the same thing, such as three permits of a semaphore, has a collector_node.
//       Each offer to one waiter gives it one of them. The node counts how many the thread still lacks, and keeps its
//       place in the queue until the thread has been given the last one, or its wait has ended otherwise. Until then,
//       nodes behind it are given nothing. The count changes only under the bucket's lock.
//
// How long a call holds the lock:
// - To find one of n queues: about log2(n) steps; at most 52 if no address uses its upper eight bits (lot-7).
// - An exclusive offer (give_to_one) and a look at the all_waiters (find_ready_all_waiter) walk in parts. A part looks
//   at `looks_per_lock` nodes, and then frees the lock as soon as it is at a node that stays.
// - Two walks have no bound, because each must be one step. One takes cancelable waiters (event-3, event-4 in
//   event.cpp), at 50 to 200 ns for each waiter (docs/decisions/0004-relay.md). The other tells subscribers
//   (ready_list-1 in ready_list.cpp). take() does not walk a queue that has only all_waiters.
//
// A walk in several parts is still exact. An exclusive offer, one that a single waiter can have, is withdrawn only
// after every waiter in the queue was asked. New waiters join behind the cursor, and the walk ends at the true end of
// the queue, under the lock. A waiter that declined in an earlier part may be ready to accept by then. Such a waiter is
// an all_waiter or a subscriber:
// - An all_waiter may have lacked another source. The set() of that source asks the all_waiter again. And once the
//   offered source is visible as set, every all_waiter is asked about the offered source again (multi_wait.cpp).
// - A subscriber must hear of a set in the step that makes the set visible. So the last part asks all subscribers.
// A source that is there for everybody is shown to the all_waiters that are in the queue when the walk begins. An
// all_waiter that joins later looks at the source on its own.
//
// No lost wake-up: under the lock, a waiter calls prepare_wait() (or sets an event's parked bit: event.cpp), and then
// looks at what it waits for. It appends its node before it frees the lock. A waker first changes what is waited for.
// - If the waker then looks into the queue, it takes the same lock. If the waker takes the lock first, the waiter's
//   look sees the change. If the waiter takes the lock first, the waker finds the node.
// - If the waker does not look, it has made a full fence and then seen the filter bit off. The waiter has set that bit,
//   made a full fence, and looked. Of two threads that each write, fence, and read the other's word, at least one sees
//   the other's write. The waker has not seen the bit. So the waiter sees the change, and does not sleep.
//
// Memory order
//   [bucket]      A bucket's lock orders everything in the bucket.
//   [wake-check]  The fences in prepare_wait() and in may_be_waited_on(). The filter's own accesses are relaxed. A wake
//                 may instead use a change and a look that are both sequentially consistent (address.cpp).
//   [release]     What came before take() is visible when the wait ends (waiter.cpp).
//
// Checked by: tests/model/lot_model_test.cpp, filter_model_test.cpp (lot-4), address_model_test.cpp ([wake-check]),
// walk_model_test.cpp (lot-8), semaphore_model_test.cpp (lot-10, P17 of docs/proofs.md), shared_word_model_test.cpp
// (the batches of a queue), mix_model_test.cpp, the models of all else that waits; tests/internal/lot_test.cpp,
// walk_test.cpp, proofs/promela/event_lot.pml.
#include "core/lot/lot.hpp"

#include "platform/system/system.hpp"

#include <cstddef>
#include <cstdio>
#include <iterator>
#include <utility>

namespace tocsin::core {
namespace {

using kind = wait_node::kind;

constexpr std::uint32_t one_more = 1;
constexpr std::uint32_t one_less = static_cast<std::uint32_t>(-1);

}  // namespace

wait_queue::wait_queue(const wait_key& key, bucket& of, std::uint64_t path) noexcept
    : path_(path), bucket_(of) {
    if (wait_node* const first = find(key)) nodes_ = node_list(first, first->queue.last);
}

wait_queue::~wait_queue() {
    if (nodes_.empty()) clear_filter();
}

// Returns the first node of the key's queue, or null (lot-7).
wait_node* wait_queue::find(const wait_key& key) noexcept {
    detail::plain<wait_node*>* link = &bucket_.queues;
    wait_node* first = *link;
    for (std::uint64_t path = path_; first != nullptr && first->key != key; path <<= 1) {
        link = &first->queue.below[path >> 63];
        first = *link;
    }
    link_ = link;
    return first;
}

void wait_queue::prepare_wait() noexcept {
    const std::uint64_t filter = bucket_.filter.load(std::memory_order_relaxed);  // no order: lot-1
    if ((filter & filter_bit()) == 0) {
        bucket_.filter.store(filter | filter_bit(), std::memory_order_relaxed);  // [wake-check]
    }
    detail::full_fence();  // [wake-check]
}

void wait_queue::clear_filter() noexcept {
    const std::uint64_t filter = bucket_.filter.load(std::memory_order_relaxed);  // no order: lot-1
    if (filter == 0 || (filter & filter_bit()) == 0) return;
    // lot-7: another queue with this bit is one that the loop visits, or is below the last one that it visits.
    const wait_node* each = bucket_.queues;
    for (unsigned depth = 0; each != nullptr && depth != key_hash::filter_bits; ++depth) {
        if (key_hash(each->key).filter_bit() == filter_bit()) return;
        each = each->queue.below[(path_ >> (63 - depth)) & 1];
    }
    if (each != nullptr) return;
    bucket_.filter.store(filter & ~filter_bit(), std::memory_order_relaxed);  // no order: lot-1
}

// Only a thread's node has an urgency of its own: a coroutine resumes in the releasing thread, or where its executor
// says.
void wait_queue::set_urgency(wait_node& joining) noexcept {
    if (joining.has_waiter() && !joining.owner->is_coroutine()) joining.set_urgency_of_this_thread();
}

void wait_queue::append(wait_node& last, const wait_origin& from) noexcept {
    set_urgency(last);
    last.origin = from;
    TOCSIN_PROBE(park, last.owner, last.key.address, last.key.what, from.thread);
    link(last);
}

// Where a node is to be inserted: behind the returned one. Null: in front of all.
wait_node* wait_queue::last_at_least_as_urgent_as(const wait_node& joining) const noexcept {
    wait_node* each = nodes_.last();
    if (bucket_.cursors != nullptr) return each;  // lot-8
    while (each != nullptr && each->urgency < joining.urgency) {
        if (each->what == kind::collector && static_cast<const collector_node*>(each)->has_collected()) break;
        each = node_list::previous(*each);
    }
    return each;
}

void wait_queue::insert_by_urgency(wait_node& joining, const wait_origin& from) noexcept {
    set_urgency(joining);
    wait_node* const before = last_at_least_as_urgent_as(joining);
    if (before == nodes_.last()) return append(joining, from);
    joining.origin = from;
    TOCSIN_PROBE(park, joining.owner, joining.key.address, joining.key.what, from.thread);
    wait_node& old_first = *nodes_.first();
    nodes_.insert_after(before, joining);
    joining.queued = true;
    if (before == nullptr) replace_first(old_first);
    state().last = nodes_.last();
    set_different_in_urgency();  // lot-9: a less urgent node is behind this one
    count(joining, one_more);
}

void wait_queue::link(wait_node& last) noexcept {
    last.queued = true;
    const bool is_first = nodes_.empty();
    nodes_.append(last);
    if (is_first) {
        if (link_ == nullptr) (void)find(last.key);
        last.queue = wait_node::queue_state{};
        *link_ = &last;
    } else if (last.urgency != nodes_.first()->urgency) {
        set_different_in_urgency();  // lot-9
    }
    state().last = &last;
    count(last, one_more);
}

// A queue looks for words for its batches in an order of its own, which depends on its key.
shared_word* wait_queue::begin_batch(std::uint32_t batch) const noexcept {
    constexpr std::size_t words = std::size(decltype(bucket::shared){});
    constexpr std::size_t all = words * std::size(decltype(lot_table::at){});
    const auto start = static_cast<std::size_t>(path_ >> 48);
    const auto step = static_cast<std::size_t>(path_ >> 32) | 1;  // odd, so that the order has all words
    for (std::size_t looks = 0; looks != max_looks_for_batch; ++looks) {
        const std::size_t number = (start + (batch + looks) * step) % all;
        shared_word& word = the_lot->at[number / words].shared[number % words];
        if (word.try_begin_batch()) return &word;
    }
    return nullptr;
}

// The word of the batch at the end of the queue, or null. A few threads that share no word may be queued among its
// sharers.
shared_word* wait_queue::last_batch() const noexcept {
    const wait_node* each = nodes_.last();
    for (std::size_t looks = 0; looks != max_looks_for_batch && each != nullptr; ++looks) {
        if (each->urgency != nodes_.last()->urgency) break;  // shared_word-6
        if (is_sharer(each)) return &each->owner->shared();
        if (each->what == wait_node::kind::delegate) break;
        each = node_list::previous(*each);
    }
    return nullptr;
}

void wait_queue::append_to_share(wait_node& last, const wait_origin& from) noexcept {
    set_urgency(last);
    const std::uint32_t before = empty() ? 0 : static_cast<std::uint32_t>(state().count);
    if (before != 0 && first()->what == kind::waiter && !first()->owner->is_coroutine()) {
        first()->what = kind::delegate;
    }
    shared_word* word = nullptr;
    // shared_word-4, shared_word-6
    if (before % waiters_per_batch != 0 && first()->what == kind::delegate &&
        nodes_.last()->urgency == last.urgency) {
        word = last_batch();
        if (word != nullptr) {
            word->join_batch();
        } else {
            word = begin_batch(before / waiters_per_batch);
        }
    }
    last.what = word != nullptr ? kind::sharer : kind::delegate;
    if (word != nullptr) last.owner->share(*word);
    append(last, from);
}

void wait_queue::unlink(wait_node& gone) noexcept {
    if (bucket_.cursors != nullptr) step_back_from(gone);
    gone.queued = false;
    const bool was_first = &gone == nodes_.first();
    if (was_first && &gone == nodes_.last()) {
        nodes_ = node_list();
        return take_out(gone);
    }
    count(gone, one_less);
    nodes_.remove(gone);
    if (was_first) return replace_first(gone);
    state().last = nodes_.last();
}

void wait_queue::count(const wait_node& node, std::uint32_t change) noexcept {
    wait_node::queue_state& queue = state();
    queue.count += change;
    if (node.cancelable) queue.cancelables += change;
    if (!node.stays()) return;
    queue.subscribers += change;
    if (node.what == kind::all_waiter) queue.all_waiters += change;
}

// Takes one step, however long the queue is (lot-2).
node_list wait_queue::detach_all() noexcept {
    wait_node& old = *nodes_.first();
    if (bucket_.cursors != nullptr) move_cursors_to_head(old.key);
    node_list all = std::move(nodes_);
    take_out(old);
    return all;
}

// Moves the queue's state from its former first node to its present one.
void wait_queue::replace_first(wait_node& old) noexcept {
    wait_node* const first = nodes_.first();
    first->queue = old.queue;
    *link_ = first;  // NOLINT(clang-analyzer-core.NullDereference): known, since the queue is not empty
}

// Called when the queue has become empty. Takes the queue, with its former first node, out of the bucket.
void wait_queue::take_out(wait_node& old) noexcept {
    if (old.queue.below[0] != nullptr || old.queue.below[1] != nullptr) return replace_by_leaf(old);
    *link_ = nullptr;  // NOLINT(clang-analyzer-core.NullDereference): known, since the queue was not empty
}

// Puts a leaf from below the ended queue in that queue's place (lot-7).
void wait_queue::replace_by_leaf(wait_node& old) noexcept {
    detail::plain<wait_node*>* leaf_link = link_;
    wait_node* leaf = &old;
    for (;;) {
        detail::plain<wait_node*>* const down = &leaf->queue.below[leaf->queue.below[0] == nullptr ? 1 : 0];
        if (*down == nullptr) break;
        leaf_link = down;
        leaf = *down;
    }
    *leaf_link = nullptr;
    leaf->queue.below[0] = old.queue.below[0];
    leaf->queue.below[1] = old.queue.below[1];
    *link_ = leaf;
    link_ = nullptr;  // the key's link is now somewhere below: find() searches for it
}

// Takes a waiter's node off the queue. Returns true if the caller now has to release the waiter. Returns false if the
// wait has ended for another reason and is about to return.
bool wait_queue::take_off(wait_node& node) noexcept {
    unlink(node);
    return !node.cancelable || node.owner->try_claim(claim::signaled, node.index);
}

release_list wait_queue::take(std::size_t max, std::size_t& taken) noexcept {
    taken = 0;
    if (empty()) return {};
    const bool differs = differs_in_urgency();
    const std::uint32_t cancelables = state().cancelables & ~wait_node::queue_state::differs_bit;
    if (cancelables == 0 && max >= state().count && !is_sharer(first())) {  // lot-2, shared_word-4
        taken = state().count;
        return release_list(detach_all(), nullptr, differs);
    }
    if (state().all_waiters == state().count) return {};
    release_list freed;
    for (wait_node* each = nodes_.first(); each != nullptr && taken != max;) {
        wait_node* const next = node_list::next(*each);
        if (each->has_waiter() && take_off(*each)) {
            freed.append(*each);
            ++taken;
        } else if (each->what == kind::subscriber) {
            (void)each->subscribed->on_wake(*each, false, freed);
        }
        each = next;
    }
    return freed;
}

// Returns false, and gives nothing, if the node lacks only one thing and its wait has ended otherwise.
bool wait_queue::give_to_waiter(wait_node& node, release_list& freed) noexcept {
    if (node.what == wait_node::kind::collector) {
        auto& missing = static_cast<collector_node&>(node).missing;
        if (missing != 1) {
            --missing;
            return true;
        }
    }
    if (!take_off(node)) return false;
    freed.append(node);
    return true;
}

offer_result wait_queue::give_to_one(release_list& freed, queue_cursor& offered,
                                     wait_node*& undecided) noexcept {
    std::uint32_t looks = 0;
    for (wait_node* each = first_behind(offered); each != nullptr;) {
        wait_node* const next = node_list::next(*each);
        switch (each->what) {
            case kind::waiter:
            case kind::sharer:
            case kind::delegate:
            case kind::collector:
                if (!give_to_waiter(*each, freed)) break;
                return offer_result::accepted;
            case kind::all_waiter:
                if (each->all->on_wake(each) == reply::declined) break;
                undecided = each;
                return offer_result::undecided;
            case kind::subscriber:
                if (!offer_to_subscriber(*each, freed)) break;
                return offer_result::accepted;
            case kind::resumable: break;  // never queued
        }
        if (++looks >= looks_per_lock && next != nullptr && each->stays()) {
            stop_at(offered, *each);
            return offer_result::unfinished;
        }
        each = next;
    }
    if (!offered.listed_) return offer_result::declined;
    end(offered);
    return offer_to_subscribers(freed);
}

bool wait_queue::offer_to_subscriber(wait_node& node, release_list& freed) noexcept {
    if (node.subscribed->on_wake(node, true, freed) == reply::declined) return false;
    unlink(node);
    link(node);  // at the end
    return true;
}

// Offers to all subscribers in one step, after a walk in several parts.
offer_result wait_queue::offer_to_subscribers(release_list& freed) noexcept {
    if (empty() || state().subscribers == state().all_waiters) return offer_result::declined;
    for (wait_node* each = nodes_.first(); each != nullptr; each = node_list::next(*each)) {
        if (each->what == kind::subscriber && offer_to_subscriber(*each, freed))
            return offer_result::accepted;
    }
    return offer_result::declined;
}

all_waiter* wait_queue::find_ready_all_waiter(queue_cursor& looked) noexcept {
    wait_node* next = first_behind(looked);
    if (!looked.listed_) looked.left_ = has_all_waiters() ? std::uint32_t{state().count} : 0;
    std::uint32_t looks = 0;
    while (next != nullptr && looked.left_ != 0) {
        wait_node& each = *next;
        next = node_list::next(each);
        const bool last = --looked.left_ == 0 || next == nullptr;
        if (each.what == kind::all_waiter && each.all->on_wake(nullptr) == reply::undecided) {
            last ? end(looked) : stop_at(looked, each);
            return each.all;
        }
        if (++looks >= looks_per_lock && !last && each.stays()) {
            stop_at(looked, each);
            return nullptr;
        }
    }
    end(looked);
    return nullptr;
}

// Returns the node at which a walk begins or continues.
wait_node* wait_queue::first_behind(queue_cursor& walk) const noexcept {
    if (walk.listed_ && !walk.listed_by_.is_of_this_process()) walk.listed_ = false;  // its queue is gone
    if (!walk.listed_) return nodes_.first();
    wait_node* const passed = walk.passed_;
    return passed != nullptr ? node_list::next(*passed) : nodes_.first();
}

void wait_queue::stop_at(queue_cursor& walk, wait_node& passed) noexcept {
    walk.passed_ = &passed;
    if (walk.listed_) return;
    walk.listed_ = true;
    walk.listed_by_ = process_stamp();
    walk.following_ = bucket_.cursors;
    bucket_.cursors = &walk;
}

void wait_queue::end(queue_cursor& walk) noexcept {
    walk.at_end_ = true;
    if (!walk.listed_) return;
    walk.listed_ = false;
    detail::plain<queue_cursor*>* link = &bucket_.cursors;
    while (*link != &walk) link = &(*link)->following_;
    *link = walk.following_;
}

// lot-8: cursors at `gone` move to the node before it.
void wait_queue::step_back_from(const wait_node& gone) noexcept {
    for (queue_cursor* each = bucket_.cursors; each != nullptr; each = each->following_) {
        if (each->passed_ == &gone) each->passed_ = node_list::previous(gone);
    }
}

// lot-8: all nodes of the key's queue leave it, so its cursors move to the head.
void wait_queue::move_cursors_to_head(const wait_key& key) noexcept {
    for (queue_cursor* each = bucket_.cursors; each != nullptr; each = each->following_) {
        if (each->key_ == key) each->passed_ = nullptr;
    }
}

void queue_cursor::give_up() noexcept {
    if (!listed_by_.is_of_this_process()) return;
    locked_queue queue(key_);
    static_cast<wait_queue&>(queue).end(*this);
}

void check_nobody_waits(const wait_key& key, const char* type) noexcept {
    if (!locked_queue(key).empty()) refuse_destruction(type, key.address);
}

void refuse_destruction(const char* type, const void* object) noexcept {
    if (platform::is_exiting()) return;
    char message[160];
    std::snprintf(
        message, sizeof message,
        "tocsin: %s at %p destroyed while threads wait on it (or coroutines, operations, a wait_set, a "
        "pollable)\n",
        type, object);
    platform::die(message);
}

}  // namespace tocsin::core
