// SPDX-License-Identifier: Apache-2.0
// The lot is where waiters park. It is a process-wide table that has a first-in-first-out queue of nodes for each key
// (an address and the kind of wait). The lot allocates no nodes. A node is on the stack of a waiting thread, in a
// coroutine's frame, in an operation, or in a subscriber. (If a thread waits for more than 16 sources, their nodes are
// in memory that the thread allocates.) Why it is correct: lot.cpp.
//
//     waiter self;
//     wait_node node(key, self, cancelable);
//     const auto origin = wait_origin::here();
//     {
//         locked_queue queue(key);                     // takes the bucket's lock
//         if (... something to take ...) return;       // without waiting
//         queue.append(node, origin);
//     }                                                // frees the lock
//     sleep(self, options);
//
//     release_list freed;
//     {
//         locked_queue queue(key);
//         freed = queue.take_all();                    // off the queue, under the lock
//     }
//     freed.wake();                                    // system calls only here, without the lock
#pragma once

#include "core/lot/key_hash.hpp"
#include "core/lot/relay.hpp"
#include "core/lot/shared_word.hpp"
#include "core/lot/subscriber.hpp"
#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"
#include "core/sync/fork.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/signal_deferral.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tocsin::core {

class queue_cursor;

// A cache line for the keys that hash to it. Each key has one of the 64 bits of `filter`, and may share this bit with
// other keys. prepare_wait() turns its key's bit on. While nobody waits on a key with that bit, a wake of such a key
// only loads the filter, whatever the bucket's other keys do.
struct alignas(64) bucket {
    futex_lock lock;
    detail::plain<wait_node*> queues{nullptr};  // a tree of the first nodes of the keys' queues (lot-7)
    detail::atomic<std::uint64_t> filter{0};
    // A list of the cursors of walks that have freed the lock for a moment (lot-8).
    detail::plain<queue_cursor*> cursors{nullptr};
    shared_word shared[4];  // on which threads sleep together (wait_queue::begin_batch())

    // Whether the bucket is as it was when the process started. Called only while the process has one thread.
    bool is_pristine() const noexcept {
        for (const shared_word& each : shared) {
            if (!each.is_unused()) return false;
        }
        return lock.is_free_now() && queues == nullptr && cursors == nullptr &&
               filter.load(std::memory_order_relaxed) == 0;  // no order
    }
};

struct lot_table {
    bucket at[std::size_t{1} << bucket_bits];
    std::uint64_t multiplier;                   // of the hash: odd, and a secret of the process
    detail::atomic<std::uint32_t> meetings{0};  // bit 0 is a lock (src/channel.cpp)
};

// The table in use. The process has one, even if it has several copies of the library (table.cpp).
extern lot_table* the_lot;

// The bucket of the key with this hash.
inline bucket& bucket_of(const key_hash& hash) noexcept { return the_lot->at[hash.index]; }

// Calls `look(first)` with the first node of each queue of a bucket. The caller holds the bucket's lock.
template <class Look>
void for_each_queue(const bucket& of, Look look) noexcept {
    // Nodes beside the path to `each` that are still to be visited: at most one for each bit of a path.
    const wait_node* pending[64];
    std::size_t count = 0;
    for (const wait_node* each = of.queues; each != nullptr;) {
        const wait_node* const left = each->queue.below[0];
        const wait_node* const right = each->queue.below[1];
        look(*each);
        if (left != nullptr && right != nullptr) pending[count++] = right;
        each = left != nullptr ? left : right;
        if (each == nullptr && count != 0) each = pending[--count];
    }
}

// How many nodes of one queue a walk looks at before it frees the bucket's lock for a moment.
#if !defined(TOCSIN_LOOKS_PER_LOCK)
#define TOCSIN_LOOKS_PER_LOCK 64
#endif
inline constexpr std::uint32_t looks_per_lock = TOCSIN_LOOKS_PER_LOCK;

// The place that a walk over the queue of a key has reached. A cursor keeps that place while the bucket's lock is free,
// whatever nodes join or leave the queue during that time (lot-8). It serves one walk, by one thread.
class queue_cursor {
public:
    explicit queue_cursor(const wait_key& key) noexcept : key_(key) {}
    ~queue_cursor() {
        if (listed_) give_up();
    }
    queue_cursor(const queue_cursor&) = delete;
    queue_cursor& operator=(const queue_cursor&) = delete;

    // Whether the walk is over.
    bool at_end() const noexcept { return at_end_; }

private:
    friend class wait_queue;
    friend struct shared_layout;

    void give_up() noexcept;

    const wait_key key_;
    // Whether the cursor is in the bucket's list. If it isn't, the walk begins at the head of the queue.
    bool listed_ = false;
    bool at_end_ = false;
    // In use only while the cursor is listed:
    std::uint32_t left_;                      // how many more nodes find_ready_all_waiter() may look at
    process_stamp listed_by_{0};              // the child of a fork has none of its parent's queues
    detail::plain<wait_node*> passed_;        // the last passed node that is still in the queue, or null
    detail::plain<queue_cursor*> following_;  // the next cursor in the bucket's list
};

// What became of an offer to one waiter of a queue.
enum class offer_result : std::uint8_t {
    declined,  // by all waiters
    accepted,
    undecided,   // all_waiter::commit() decides
    unfinished,  // the caller frees the lock for a moment, and then calls again
};

// Access to the queue of a key, for a thread that holds the lock of the key's bucket.
class wait_queue {
public:
    explicit wait_queue(const wait_key& key) noexcept : wait_queue(key, key_hash(key)) {}
    ~wait_queue();
    wait_queue(const wait_queue&) = delete;
    wait_queue& operator=(const wait_queue&) = delete;

    // Makes every later wake on this key look into the queue, and makes a full fence. The caller then looks at what it
    // waits for, and either appends its node or returns without waiting. If the queue is empty when the lock is freed,
    // the preparation is undone. Used for keys whose owner has no bit of its own that says "somebody is parked".
    void prepare_wait() noexcept;

    // `from` is the origin of the wait that the node belongs to. A subscriber's node has none.
    void append(wait_node& last, const wait_origin& from = {}) noexcept;
    // The same, or puts the node behind the last one that is at least as urgent. In the second case, the node does not
    // pass a collector_node that has collected something, and joins at the end during a walk in parts (lot-8).
    void join(wait_node& joining, const wait_origin& from, queue_order order) noexcept {
        order == queue_order::arrival ? append(joining, from) : insert_by_urgency(joining, from);
    }
    // Appends the node of a thread that leaves the queue only together with all others, or at its deadline
    // (shared_word-1). Makes the thread a sharer, which sleeps on one word with others, or a delegate, which wakes
    // sharers.
    void append_to_share(wait_node& last, const wait_origin& from) noexcept;
    // Takes a cancelable node out of the queue, unless another thread has already done so.
    void remove(wait_node& cancelled) noexcept {
        if (cancelled.queued) unlink(cancelled);
    }

    bool empty() const noexcept { return nodes_.empty(); }
    // Whether the nodes may differ in urgency (lot-9). If it returns false, they don't.
    bool differs_in_urgency() const noexcept {
        return !empty() && (state().cancelables & wait_node::queue_state::differs_bit) != 0;
    }
    // Called by a thread that has found that the nodes don't differ.
    void set_equal_in_urgency() noexcept {
        state().cancelables = state().cancelables & ~wait_node::queue_state::differs_bit;
    }
    wait_node* first() const noexcept { return nodes_.first(); }
    // Whether the queue has any node that stays when a wake reaches it: a subscriber's or an all_waiter's.
    bool has_subscribers() const noexcept { return !empty() && state().subscribers != 0; }
    // Whether the queue has any all_waiter's node.
    bool has_all_waiters() const noexcept { return !empty() && state().all_waiters != 0; }

    // Takes up to `max` waiters off the queue, oldest first, and stores their number in `taken`. Waiters that
    // something else has already claimed leave the queue as well, but do not count. On its way, take() makes a
    // non-exclusive offer to each subscriber. It passes over all_waiters, which satisfy_all_waiters() serves.
    release_list take(std::size_t max, std::size_t& taken) noexcept;
    release_list take_one() noexcept {
        std::size_t taken;
        return take(1, taken);
    }
    release_list take_all() noexcept {
        std::size_t taken;
        return take(static_cast<std::size_t>(-1), taken);
    }
    // Makes an exclusive offer to one node after another, oldest first, until one of these happens:
    // - The node is that of a thread or coroutine whose wait has not ended otherwise. The node leaves the queue. The
    //   result is `accepted`.
    // - The node is a collector_node. It stays in its place until it has been given all that it needs. The result is
    //   `accepted`.
    // - A subscriber accepts. Its node moves to the end of the queue. The result is `accepted`.
    // - An all_waiter replies `reply::undecided`. The result is `offer_result::undecided`, the parameter `undecided`
    //   points to the all_waiter's node, and the caller must call the all_waiter's commit().
    // - The lock is to be freed for a moment. The result is `unfinished`.
    // - No node is left. The result is `declined`.
    // Appends to `freed` the nodes that are to be released. After `unfinished`, or after a commit() that returned
    // false, the caller repeats the call with a new locked_queue and the same `offered`, which says where to continue.
    offer_result give_to_one(release_list& freed, queue_cursor& offered, wait_node*& undecided) noexcept;

    // Asks the all_waiters behind the cursor `looked`, oldest first, about a source that is there for everybody.
    // Returns the first that replies `undecided`, and the caller must call its commit(). Returns null if there is none,
    // or if the lock is to be freed for a moment. The caller repeats the call, with a new locked_queue, until `looked`
    // is at its end. An all_waiter that is in the queue from the first call to the last is asked exactly once.
    all_waiter* find_ready_all_waiter(queue_cursor& looked) noexcept;

    // Calls `look(const node&)` for each node of the queue, oldest first.
    template <class Look>
    void for_each(Look look) const noexcept {
        for (const wait_node* each = nodes_.first(); each != nullptr; each = node_list::next(*each))
            look(*each);
    }

protected:
    wait_queue(const wait_key& key, bucket& of, std::uint64_t path) noexcept;

private:
    friend class queue_cursor;

    wait_queue(const wait_key& key, const key_hash& hash) noexcept
        : wait_queue(key, bucket_of(hash), hash.path) {}

    shared_word* begin_batch(std::uint32_t batch) const noexcept;
    shared_word* last_batch() const noexcept;
    wait_node::queue_state& state() const noexcept { return nodes_.first()->queue; }
    wait_node* find(const wait_key& key) noexcept;
    bool take_off(wait_node& node) noexcept;
    static void set_urgency(wait_node& joining) noexcept;
    void set_different_in_urgency() noexcept {
        state().cancelables = state().cancelables | wait_node::queue_state::differs_bit;
    }
    void insert_by_urgency(wait_node& joining, const wait_origin& from) noexcept;
    wait_node* last_at_least_as_urgent_as(const wait_node& joining) const noexcept;
    void link(wait_node& last) noexcept;
    void unlink(wait_node& gone) noexcept;
    void count(const wait_node& node, std::uint32_t change) noexcept;
    node_list detach_all() noexcept;
    void replace_first(wait_node& old) noexcept;
    void take_out(wait_node& old) noexcept;
    void replace_by_leaf(wait_node& old) noexcept;
    void clear_filter() noexcept;
    bool give_to_waiter(wait_node& node, release_list& freed) noexcept;
    bool offer_to_subscriber(wait_node& node, release_list& freed) noexcept;
    offer_result offer_to_subscribers(release_list& freed) noexcept;
    wait_node* first_behind(queue_cursor& walk) const noexcept;
    void stop_at(queue_cursor& walk, wait_node& passed) noexcept;
    void end(queue_cursor& walk) noexcept;
    void step_back_from(const wait_node& gone) noexcept;
    void move_cursors_to_head(const wait_key& key) noexcept;

    std::uint64_t filter_bit() const noexcept { return key_hash::filter_bit_of(path_); }

    const std::uint64_t path_;
    bucket& bucket_;
    // The link in the bucket's tree that leads to the queue, or would lead to it. Null: find() must search again.
    detail::plain<wait_node*>* link_;
    node_list nodes_;  // the queue; while no wait_queue exists, only its first node knows the last one
};

class bucket_guard {
protected:
    explicit bucket_guard(bucket& of) noexcept : lock_(of.lock) {}

    // Its scope begins before the lock is taken and ends after the lock is freed.
    const signal_deferral inside_;
    const std::lock_guard<futex_lock> lock_;
};

// Access to the queue of a key. Holds the lock of the key's bucket until the end of the scope.
class locked_queue : bucket_guard, public wait_queue {
public:
    explicit locked_queue(const wait_key& key) noexcept : locked_queue(key, key_hash(key)) {}

private:
    locked_queue(const wait_key& key, const key_hash& hash) noexcept
        : bucket_guard(bucket_of(hash)), wait_queue(key, bucket_of(hash), hash.path) {}
};

// Whether a waiter that called prepare_wait() may be parked on this key. The caller has changed what such a waiter
// waits for. This function calls `fence()`, which must make a full fence. The function computes everything else before
// the fence, so that only one load, that of the filter, comes after the fence.
template <class Fence>
bool may_be_waited_on(const wait_key& key, Fence fence) noexcept {
    const key_hash hash(key);
    const auto& filter = the_lot->at[hash.index].filter;
    fence();  // [wake-check]
    return (filter.load(std::memory_order_relaxed) & hash.filter_bit()) !=
           0;  // no order: the fences order it
}

// The same for a caller that has made its change in one sequentially consistent store or read-modify-write. This
// function's look at the filter is sequentially consistent, too, so no fence is needed (address.cpp).
inline bool may_be_waited_on(const wait_key& key) noexcept {
    const key_hash hash(key);
    const std::uint64_t filter = bucket_of(hash).filter.load(std::memory_order_seq_cst);  // [wake-check]
    return (filter & hash.filter_bit()) != 0;
}

// Calls `look(node, context)` for every parked node of the process. Locks one bucket at a time, and calls `look` under
// that lock.
void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept;

// For checked builds: ends the program if a thread waits for the key's object, which is being destroyed. `type` names
// the type of the object. Looks into the queue, so it finds no thread in the child of a fork.
void check_nobody_waits(const wait_key& key, const char* type) noexcept;
// Ends the program with the message of check_nobody_waits(), unless it is inside exit(): other threads may wait for a
// static object, and nobody can stop them before exit() destroys it.
void refuse_destruction(const char* type, const void* object) noexcept;

}  // namespace tocsin::core
