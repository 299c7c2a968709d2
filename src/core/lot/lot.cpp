// State
//   A fixed table of buckets; the hash of a key selects one. A bucket has a lock, a tree of queues, a filter word and
//   the cursors of walks that have freed the lock for a moment. A queue belongs to one key. It is a doubly linked list
//   of nodes, oldest first. The first node carries what belongs to the queue: its last node, its length, how many nodes
//   are cancelable, how many stay when their turn comes (those of subscribers and all_waiters), how many are
//   all_waiters', and the two subtrees of queues below it.
//
//     the_lot           key A: first node       second node         last node
//     +------------+    +----------------+      +-----------+      +-----------+
//     | bucket 0   |    | key, owner ... |<---->| key ...   |<---->| key ...   |
//     |   lock     |    | queue:         |      | (no queue |      |           |
//     |   queues ------>|   last --------------------------------->|           |
//     |   filter   |    |   count: 3     |      |    state) |      |           |
//     |   cursors  |    |   below[0] ------+    +-----------+      +-----------+
//     +------------+    |   below[1]: null |
//     | bucket 1   |    +----------------+ |    key B: only node
//     |   ...      |                       |    +------------------+
//     +------------+                       +--->| queue:           |
//     |   ...      |                            |   last: itself   |
//     +------------+                            |   count: 1       |
//                                               |   below: null, null
//                                               +------------------+
//
//   The hash multiplies the key by an odd number that the process draws at random when it starts. So nobody outside
//   can choose addresses that meet in one bucket. The upper bits of the product number the bucket. The bits after them
//   are the key's path in the bucket's tree, and the first six of these number its filter bit.
//
// Invariants
//   lot-1  Queues, the nodes in them, cursors, and changes of the filter are touched only under the bucket's lock.
//   lot-2  A node is in its queue from append() until unlink(), or until take() detaches the whole queue. Its waiter's
//       wait ends only after that, so a queued node always exists. A cancelable node knows by `queued` whether it is
//       still in the queue. A node that is not cancelable never asks. That is why take_all() of such nodes costs the
//       same for any number of them.
//   lot-3  A node taken off by take() or give_to_one() belongs to its taker until the taker releases it, and its waiter
//       cannot continue before that: the taker has claimed it, or it has no other way to end.
//   lot-4  The filter bit of a key, if prepare_wait() is used for it:
//       legal: the bit is off while the key's queue is empty; it is on although no prepared key with that bit has a
//       queue, because the queue of an event (which never calls prepare_wait()) shares bucket and bit. Cost: a needless
//       lock.
//       illegal: the bit is off while the key's queue is not empty, or while a thread that has called prepare_wait()
//       holds the lock; it is on, with the lock free, although no queue in the bucket has that bit.
//   lot-5  Nobody is released, and no waiter is woken, under a bucket's lock. (A thread that holds several buckets may,
//       by freeing one, wake a thread that waits for that lock: multi_wait-3 in multi_wait.cpp.)
//   lot-6  Only its owner removes the node of a subscriber or an all_waiter from its queue (an all_waiter does so in
//       whichever thread calls commit()). A subscriber's node that has accepted an offer goes to the end of its queue.
//   lot-7  A queue is on its key's path: the root, then below[0] or below[1] of each queue passed, by the path's next
//       bit. So it is found in as many steps as there are queues above it: at most one for each bit of a path,
//       whatever the addresses. (A path that has run out continues with zeros. Two keys have the same path only if
//       their addresses use the upper eight bits.) A queue that ends is replaced by a leaf from below it, which is on
//       both paths. The queues with one filter bit are among the first six of their common path, or below these.
//   lot-8  A walk over a queue may free the lock behind a node that stays when its turn comes, and leaves a cursor
//       there. Whoever takes that node out of the queue moves the cursor to the node before it; whoever detaches the
//       whole queue moves it to the head. Nodes join at the end only. So what is behind the cursor is what the walk has
//       not passed, in the order of arrival.
//
// What one call does under one lock: it finds a queue in at most 52 steps (lot-7), about log2(n) with n queues in the
// bucket. An offer to one (give_to_one), and the look at the all_waiters of something that is there for everybody
// (find_ready_all_waiter), free the lock at the first node that stays after `looks_per_lock` nodes. Two things are not
// bounded, because each must be one step: taking waiters that may also end otherwise (event-3, event-4 in event.cpp),
// and telling subscribers (ready_list-1 in ready_list.cpp). They cost some nanoseconds for each node of the queue. If
// only all_waiters are in the queue, take() does not walk it.
//
// A walk in several parts is still exact. Of the waiters of an offer to one, each is asked before the offer is
// withdrawn: new ones join behind the cursor, and the walk ends at the true end of the queue, under the lock. What
// waiters answered in an earlier part may no longer hold. For an all_waiter that does not matter: its other sources'
// set() looks at it, and the offer, once it is visible, is shown to all of them again (multi_wait.cpp). A subscriber
// must hear of the offer in the step that makes it visible, so all subscribers are asked again at the end. What is
// there for everybody is shown to those that were in the queue when the walk began. One that joins later looks itself.
//
// No lost wake-up: a wait looks at what it waits for under the lock, after prepare_wait() or after setting the parked
// bit of the object. It appends its node before it frees the lock. A wake that looks into the queue takes the same
// lock. So it comes before the look, which then sees the change, or after the append, and then finds the node. A wake
// that does not look has seen the filter bit off, after its change and a full fence. The wait has set the bit, made a
// full fence, and looked. Of two threads that each write, fence and read the other's word, at least one sees the
// other's write. The parked bit is in the event's own byte: see event.cpp.
//
// Memory order
//   [bucket]      the lock orders everything in a bucket.
//   [wake-check]  the fences in prepare_wait() and in may_be_waited_on(). The accesses to the filter itself are
//                 relaxed. Instead of its fence a wake may use a change and a look at the filter that are both
//                 sequentially consistent (address.cpp).
//   [release]     from take() to the end of the wait (waiter.cpp).
//
// Fork: the child has none of the threads that are parked or hold a lock, so it empties the table, once: the copy of
// the library whose table it is does so.
//
// Several copies of the library in one process: at load time, before any thread can park, each asks for the table of
// the first copy (platform/shared_table/shared_table.hpp). How taken nodes are released: relay.cpp.
// Checked by: tests/model/lot_model_test.cpp, filter_model_test.cpp (lot-4), address_model_test.cpp ([wake-check]),
// walk_model_test.cpp (lot-8), mix_model_test.cpp, and the model of everything else that waits;
// tests/internal/lot_test.cpp, walk_test.cpp, tests/unit/fork_test.cpp, tests/copies, proofs/promela/event_lot.pml.
#include "core/lot/lot.hpp"

#include "core/lot/shared_layout.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <chrono>
#include <new>
#include <utility>

namespace tocsin::core {
namespace {

using kind = wait_node::kind;

constexpr std::uint32_t one_more = 1;
constexpr std::uint32_t one_less = static_cast<std::uint32_t>(-1);

// The golden ratio's upper bits spread consecutive and aligned addresses evenly. The lower 48 bits are the secret.
std::uint64_t draw_multiplier() noexcept {
    constexpr std::uint64_t secret = 0x0000'FFFF'FFFF'FFFE;
    return detail::golden_hash(1) ^ (platform::random_number() & secret);
}

// Never destroyed, since waits and wakes are allowed after main.
constinit lot_table own_table{};
constinit detail::atomic<std::uint32_t> forks_so_far{0};

void forget_parked() noexcept {
    for (bucket& each : the_lot->at) {
        // Untouched buckets stay untouched, so that the child does not copy their pages.
        if (!each.is_pristine()) new (&each) bucket;
    }
    platform::futex::after_fork();
    platform::poller::after_fork();
}

void after_fork() noexcept {
    forks_so_far.fetch_add(1, std::memory_order_relaxed);  // no order: the only thread
    platform::forget_thread_number();
    // Once in each child, by the copy whose table it is. That copy was loaded before all others that use the table, so
    // it comes first; and it is never unloaded before them.
    if (the_lot == &own_table) forget_parked();
}

struct at_load {
    at_load() noexcept {
        own_table.multiplier = draw_multiplier();
        constexpr std::uint64_t layout = shared_layout::number();
        the_lot = static_cast<lot_table*>(platform::adopt_first_copy(the_lot, layout));
        hash_multiplier = the_lot->multiplier;
        platform::on_fork_in_child(after_fork);
        (void)platform::processors();  // before any thread is pinned
    }
};
// Runs before any other code of this shared object or program.
#if defined(_MSC_VER)
#pragma init_seg(lib)
const at_load start;
#else
[[gnu::init_priority(101)]] const at_load start;
#endif

}  // namespace

constinit lot_table* the_lot = &own_table;
constinit std::uint64_t hash_multiplier = detail::golden_hash(1);

wait_queue::wait_queue(const wait_key& key, bucket& home, std::uint64_t path) noexcept
    : path_(path), bucket_(home) {
    if (wait_node* const first = find(key)) nodes_ = wait_list(first, first->queue.last);
}

wait_queue::~wait_queue() {
    if (nodes_.empty()) clear_filter();
}

// lot-7: the first node of the key's queue, or null.
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
    // lot-7: another queue with this bit is one of these, or below the last.
    const wait_node* each = bucket_.queues;
    for (unsigned depth = 0; each != nullptr && depth != key_hash::filter_bits; ++depth) {
        if (key_hash(each->key).filter_bit() == filter_bit()) return;
        each = each->queue.below[(path_ >> (63 - depth)) & 1];
    }
    if (each != nullptr) return;
    bucket_.filter.store(filter & ~filter_bit(), std::memory_order_relaxed);  // no order: lot-1
}

void wait_queue::append(wait_node& last) noexcept {
    last.thread = platform::thread_number();
    last.since = std::chrono::steady_clock::now().time_since_epoch().count();
    link(last);
}

void wait_queue::remove(wait_node& cancelled) noexcept {
    if (cancelled.queued) unlink(cancelled);
}

void wait_queue::link(wait_node& last) noexcept {
    last.queued = true;
    const bool is_first = nodes_.empty();
    nodes_.append(last);
    if (is_first) {
        if (link_ == nullptr) (void)find(last.key);
        last.queue = wait_node::queue_state{};
        *link_ = &last;
    }
    state().last = &last;
    count(last, one_more);
}

void wait_queue::unlink(wait_node& gone) noexcept {
    if (bucket_.cursors != nullptr) step_back_from(gone);
    gone.queued = false;
    const bool was_first = &gone == nodes_.first();
    if (was_first && &gone == nodes_.last()) {
        nodes_ = wait_list();
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

// One step, however long the queue is (lot-2).
wait_list wait_queue::detach_all() noexcept {
    wait_node& old = *nodes_.first();
    if (bucket_.cursors != nullptr) move_cursors_to_head(old.key);
    wait_list all = std::move(nodes_);
    take_out(old);
    return all;
}

// Moves what belongs to the queue from its former first node to its present one.
void wait_queue::replace_first(wait_node& old) noexcept {
    wait_node* const first = nodes_.first();
    first->queue = old.queue;
    *link_ = first;  // NOLINT(clang-analyzer-core.NullDereference): known, since the queue is not empty
}

// The queue has become empty: takes it, with its former first node, out of the bucket.
void wait_queue::take_out(wait_node& old) noexcept {
    if (old.queue.below[0] != nullptr || old.queue.below[1] != nullptr) return replace_by_leaf(old);
    *link_ = nullptr;  // NOLINT(clang-analyzer-core.NullDereference): known, since the queue was not empty
}

// lot-7: puts a leaf from below the ended queue in its place.
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
    link_ = nullptr;  // the key's place is now somewhere below
}

// Takes a waiter's node off the queue. True: it is the taker's. Otherwise its wait has ended for another reason and is
// about to return.
bool wait_queue::take_off(wait_node& node) noexcept {
    unlink(node);
    return !node.cancelable || node.owner->try_claim(claim::signaled, node.index);
}

release_list wait_queue::take(std::size_t most, std::size_t& taken) noexcept {
    taken = 0;
    if (empty()) return {};
    if (state().cancelables == 0 && most >= state().count) {  // lot-2: nobody asks `queued`
        taken = state().count;
        return release_list(detach_all());
    }
    if (state().all_waiters == state().count) return {};
    release_list freed;
    for (wait_node* each = nodes_.first(); each != nullptr && taken != most;) {
        wait_node* const next = wait_list::next(*each);
        if (each->what == kind::waiter && take_off(*each)) {
            freed.append(*each);
            ++taken;
        } else if (each->what == kind::subscriber) {
            (void)each->subscribed->on_wake(*each, false, freed);
        }
        each = next;
    }
    return freed;
}

offer_result wait_queue::give_to_one(release_list& freed, queue_cursor& offered,
                                     wait_node*& undecided) noexcept {
    std::uint32_t looks = 0;
    for (wait_node* each = first_behind(offered); each != nullptr;) {
        wait_node* const next = wait_list::next(*each);
        switch (each->what) {
            case kind::waiter:
                if (!take_off(*each)) break;
                freed.append(*each);
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

// All of them in one step, after an offer in several.
offer_result wait_queue::offer_to_subscribers(release_list& freed) noexcept {
    if (empty() || state().subscribers == state().all_waiters) return offer_result::declined;
    for (wait_node* each = nodes_.first(); each != nullptr; each = wait_list::next(*each)) {
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
        next = wait_list::next(each);
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

// Where a walk begins or continues.
wait_node* wait_queue::first_behind(queue_cursor& walk) const noexcept {
    if (!walk.listed_) return nodes_.first();
    if (walk.forks_ != forks()) {  // its queue is gone
        walk.listed_ = false;
        return nodes_.first();
    }
    wait_node* const passed = walk.passed_;
    return passed != nullptr ? wait_list::next(*passed) : nodes_.first();
}

void wait_queue::stop_at(queue_cursor& walk, wait_node& passed) noexcept {
    walk.passed_ = &passed;
    if (walk.listed_) return;
    walk.listed_ = true;
    walk.forks_ = forks();
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

// lot-8
void wait_queue::step_back_from(const wait_node& gone) noexcept {
    for (queue_cursor* each = bucket_.cursors; each != nullptr; each = each->following_) {
        if (each->passed_ == &gone) each->passed_ = wait_list::previous(gone);
    }
}

// lot-8: all nodes of the key's queue leave it.
void wait_queue::move_cursors_to_head(const wait_key& key) noexcept {
    for (queue_cursor* each = bucket_.cursors; each != nullptr; each = each->following_) {
        if (each->key_ == key) each->passed_ = nullptr;
    }
}

void queue_cursor::give_up() noexcept {
    if (forks_ != forks()) return;
    locked_queue queue(key_);
    static_cast<wait_queue&>(queue).end(*this);
}

std::uint32_t forks() noexcept {
    return forks_so_far.load(std::memory_order_relaxed);  // no order: it changes in the only thread
}

void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept {
    for (bucket& each : the_lot->at) {
        const signal_deferral inside;
        const std::lock_guard lock(each.lock);
        for_each_queue(each, [&](const wait_node& first) {
            for (const wait_node* parked = &first; parked != nullptr; parked = wait_list::next(*parked))
                look(*parked, context);
        });
    }
}

}  // namespace tocsin::core
