// State
//   A fixed table of buckets; the hash of a key selects one. A bucket has a lock, a list of queues and a filter word. A
//   queue belongs to one key. It is a doubly linked list of nodes, oldest first. The first node carries what belongs to
//   the queue: its last node, its length, how many nodes are cancelable, how many stay when their turn comes (those of
//   subscribers and all_waiters), how many are all_waiters', and the bucket's next queue.
//
//     the_lot           key A: first node       second node         last node
//     +------------+    +----------------+      +-----------+      +-----------+
//     | bucket 0   |    | key, owner ... |<---->| key ...   |<---->| key ...   |
//     |   lock     |    | queue:         |      | (no queue |      |           |
//     |   queues ------>|   last --------------------------------->|           |
//     |   filter   |    |   count: 3     |      |    state) |      |           |
//     +------------+    |   next_queue ----+    +-----------+      +-----------+
//     | bucket 1   |    +----------------+ |
//     |   ...      |                       |
//     +------------+    key B: only node   |
//     |   ...      |    +----------------+ |
//     +------------+    | queue:         |<+
//                       |   last: itself |
//                       |   count: 1     |
//                       |   next_queue: null
//                       +----------------+
//
// Invariants
//   lot-1  Queues, the nodes in them, and changes of the filter are touched only under the bucket's lock.
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
//                 relaxed.
//   [release]     from take() to the end of the wait (waiter.cpp).
//
// Fork: the child has none of the threads that are parked or hold a lock, so it empties the table.
//
// Several copies of the library in one process: at load time, before any thread can park, each asks for the table of
// the first copy (platform/shared_table/shared_table.hpp).
//
// Checked by: tests/model/lot_model_test.cpp, filter_model_test.cpp (lot-4), address_model_test.cpp ([wake-check]),
// mix_model_test.cpp, and the model of everything else that waits; tests/internal/lot_test.cpp,
// tests/unit/fork_test.cpp, tests/copies, proofs/promela/event_lot.pml. How taken nodes are released: relay.cpp.
#include "core/lot/lot.hpp"

#include "platform/poller/poller.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/system/system.hpp"

#include <chrono>
#include <new>
#include <utility>

namespace tocsin::core {
namespace {

using kind = wait_node::kind;

constexpr std::uint32_t one_more = 1;
constexpr std::uint32_t one_less = static_cast<std::uint32_t>(-1);

// Never destroyed, since waits and wakes are allowed after main.
constinit lot_table own_table{};

constinit detail::atomic<std::uint32_t> forks_so_far{0};

void forget_parked() noexcept {
    forks_so_far.fetch_add(1, std::memory_order_relaxed);  // no order: the only thread
    for (bucket& each : the_lot->at) {
        // Untouched buckets stay untouched, so that the child does not copy their pages.
        if (!each.is_pristine()) new (&each) bucket;
    }
    platform::futex::after_fork();
    platform::poller::after_fork();
}

struct at_load {
    at_load() noexcept {
        the_lot = static_cast<lot_table*>(platform::adopt_first_copy(the_lot, sizeof(lot_table)));
        platform::on_fork_in_child(forget_parked);
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

wait_queue::wait_queue(const wait_key& key, const key_hash& hash) noexcept
    : hash_(hash), bucket_(the_lot->at[hash.index]) {
    wait_node* first = bucket_.queues;
    while (first != nullptr && first->key != key) first = first->queue.next_queue;
    if (first != nullptr) nodes_ = wait_list(first, first->queue.last);
}

wait_queue::~wait_queue() {
    if (nodes_.empty()) clear_filter();
}

void wait_queue::prepare_wait() noexcept {
    const std::uint64_t filter = bucket_.filter.load(std::memory_order_relaxed);  // no order: lot-1
    if ((filter & hash_.filter_bit) == 0) {
        bucket_.filter.store(filter | hash_.filter_bit, std::memory_order_relaxed);  // [wake-check]
    }
    detail::full_fence();  // [wake-check]
}

void wait_queue::clear_filter() noexcept {
    const std::uint64_t filter = bucket_.filter.load(std::memory_order_relaxed);  // no order: lot-1
    if ((filter & hash_.filter_bit) == 0) return;
    for (wait_node* each = bucket_.queues; each != nullptr; each = each->queue.next_queue) {
        if (key_hash(each->key).filter_bit == hash_.filter_bit) return;
    }
    bucket_.filter.store(filter & ~hash_.filter_bit, std::memory_order_relaxed);  // no order: lot-1
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
        last.queue = {};
        last.queue.next_queue = bucket_.queues;
        bucket_.queues = &last;
    }
    state().last = &last;
    count(last, one_more);
}

void wait_queue::unlink(wait_node& gone) noexcept {
    count(gone, one_less);
    const bool was_first = &gone == nodes_.first();
    nodes_.remove(gone);
    gone.queued = false;
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
    const wait_node& old = *nodes_.first();
    wait_list all = std::move(nodes_);
    replace_first(old);
    return all;
}

// Moves what belongs to the queue from its former first node to its present one. Takes the queue out of the bucket if
// it has become empty.
void wait_queue::replace_first(const wait_node& old) noexcept {
    wait_node* const first = nodes_.first();
    wait_node* const following = old.queue.next_queue;
    if (first != nullptr) first->queue = old.queue;
    detail::plain<wait_node*>* link = &bucket_.queues;
    while (*link != &old) link = &(*link)->queue.next_queue;
    *link = first != nullptr ? first : following;
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

reply wait_queue::give_to_one(release_list& freed, wait_node*& undecided) noexcept {
    for (wait_node* each = nodes_.first(); each != nullptr;) {
        wait_node* const next = wait_list::next(*each);
        switch (each->what) {
            case kind::waiter:
                if (!take_off(*each)) break;
                freed.append(*each);
                return reply::accepted;
            case kind::all_waiter:
                if (each->all->on_wake(each) == reply::declined) break;
                undecided = each;
                return reply::undecided;
            case kind::subscriber:
                if (each->subscribed->on_wake(*each, true, freed) == reply::declined) break;
                unlink(*each);
                link(*each);  // at the end
                return reply::accepted;
            case kind::resumable: break;  // never queued
        }
        each = next;
    }
    return reply::declined;
}

all_waiter* wait_queue::find_ready_all_waiter() noexcept {
    if (!has_all_waiters()) return nullptr;
    for (wait_node* each = nodes_.first(); each != nullptr; each = wait_list::next(*each)) {
        if (each->what == kind::all_waiter && each->all->on_wake(nullptr) == reply::undecided)
            return each->all;
    }
    return nullptr;
}

std::uint32_t forks() noexcept {
    return forks_so_far.load(std::memory_order_relaxed);  // no order: it changes in the only thread
}

void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept {
    for (bucket& each : the_lot->at) {
        const signal_deferral inside;
        const std::lock_guard lock(each.lock);
        for (const wait_node* first = each.queues; first != nullptr; first = first->queue.next_queue) {
            for (const wait_node* parked = first; parked != nullptr; parked = wait_list::next(*parked))
                look(*parked, context);
        }
    }
}

}  // namespace tocsin::core
