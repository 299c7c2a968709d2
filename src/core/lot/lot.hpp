// The lot: where waiters are parked. A process-wide table from key (an address and what it is waited on for) to a
// first-in-first-out queue of nodes. The lot allocates no nodes: each is part of its owner, on a waiter's own stack, in
// a coroutine's frame, or in a subscriber. The argument: lot.cpp.
//
//     waiter self;
//     wait_node node(key, self, cancelable);
//     {
//         locked_queue queue(key);                     // takes the bucket's lock
//         if (... nothing to take ...) queue.append(node);
//     }                                                // frees it
//     self.sleep(options);
//
//     release_list freed;
//     {
//         locked_queue queue(key);
//         freed = queue.take_all();                    // off the queue, under the lock
//     }
//     freed.wake();                                    // system calls only here, after it
#pragma once

#include "core/lot/relay.hpp"
#include "core/lot/subscriber.hpp"
#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/signal_deferral.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/golden_hash.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tocsin::core {

// A cache line for the keys that hash to it. `filter` has a bit for each class of prepared keys (prepare_wait), so that
// a wake with nobody waiting is a load, whatever its neighbours do.
struct alignas(64) bucket {
    futex_lock lock;
    detail::plain<wait_node*> queues{nullptr};  // the first nodes of the keys' queues
    detail::atomic<std::uint64_t> filter{0};

    // As it was at the start; for the only thread of a process.
    bool is_pristine() const noexcept {
        return lock.is_free_now() && queues == nullptr &&
               filter.load(std::memory_order_relaxed) == 0;  // no order
    }
};

#if !defined(TOCSIN_BUCKET_BITS)
#define TOCSIN_BUCKET_BITS 12
#endif
inline constexpr unsigned bucket_bits = TOCSIN_BUCKET_BITS;

struct lot_table {
    bucket at[std::size_t{1} << bucket_bits];
};

// The table in use. There is one in the process, even if the process has several copies of the library (lot.cpp).
extern lot_table* the_lot;

// A key's bucket, and its bit in that bucket's filter.
struct key_hash {
    explicit key_hash(const wait_key& key) noexcept {
        const std::uint64_t mixed =
            detail::golden_hash(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(key.address)) +
                                (static_cast<std::uint64_t>(key.what) << 56));
        index = static_cast<std::size_t>((mixed >> 1) >> (63 - bucket_bits));
        filter_bit = std::uint64_t{1} << ((mixed >> (58 - bucket_bits)) & 63);
    }

    std::size_t index;
    std::uint64_t filter_bit;
};

// The queue of a key, for a thread that holds its bucket's lock.
class wait_queue {
public:
    explicit wait_queue(const wait_key& key) noexcept : wait_queue(key, key_hash(key)) {}
    ~wait_queue();
    wait_queue(const wait_queue&) = delete;
    wait_queue& operator=(const wait_queue&) = delete;

    // From now on, every wake on this key looks into the queue. Also a full fence: the caller then looks once more at
    // what it waits for, and appends its node or leaves. For keys whose owner keeps no bit of its own that says
    // "somebody is parked". Undone when the lock is freed with nobody in the queue.
    void prepare_wait() noexcept;

    void append(wait_node& last) noexcept;
    // Takes a cancelable node out of the queue, unless it has been taken already.
    void remove(wait_node& cancelled) noexcept;

    bool empty() const noexcept { return nodes_.empty(); }
    wait_node* first() const noexcept { return nodes_.first(); }
    // Whether nodes are in it that stay when their turn comes: those of subscribers, and of all_waiters.
    bool has_subscribers() const noexcept { return !empty() && state().subscribers != 0; }
    bool has_all_waiters() const noexcept { return !empty() && state().all_waiters != 0; }

    // Takes up to `most` waiters off the queue, oldest first, and says how many. Waiters that something else has
    // claimed leave the queue, too, but do not count. On the way, tells each subscriber (not exclusively), and passes
    // over all_waiters, which satisfy_all_waiters() serves.
    release_list take(std::size_t most, std::size_t& taken) noexcept;
    release_list take_one() noexcept {
        std::size_t taken;
        return take(1, taken);
    }
    release_list take_all() noexcept {
        std::size_t taken;
        return take(static_cast<std::size_t>(-1), taken);
    }
    // Offers something to one alone, oldest first, until it is accepted: by a waiter that can be claimed, or by a
    // subscriber, whose node goes to the end. Appends to `freed` what is to be released. If the reply is `undecided`,
    // the caller must commit() the all_waiter of the node in `undecided`.
    reply give_to_one(release_list& freed, wait_node*& undecided) noexcept;

    // The first all_waiter that answers `undecided` to something that is there for everybody, or null.
    all_waiter* find_ready_all_waiter() noexcept;

    // Calls `look(const node&)` for each in the queue, oldest first.
    template <class Look>
    void for_each(Look look) const noexcept {
        for (const wait_node* each = nodes_.first(); each != nullptr; each = wait_list::next(*each))
            look(*each);
    }

protected:
    wait_queue(const wait_key& key, const key_hash& hash) noexcept;

private:
    wait_node::queue_state& state() const noexcept { return nodes_.first()->queue; }
    bool take_off(wait_node& node) noexcept;
    void link(wait_node& last) noexcept;
    void unlink(wait_node& gone) noexcept;
    void count(const wait_node& node, std::uint32_t change) noexcept;
    wait_list detach_all() noexcept;
    void replace_first(const wait_node& old) noexcept;
    void clear_filter() noexcept;

    const key_hash hash_;
    bucket& bucket_;
    wait_list nodes_;  // this key's queue; between two such objects, its first node alone knows the last
};

class bucket_guard {
protected:
    explicit bucket_guard(const wait_key& key) noexcept : hash_(key), lock_(the_lot->at[hash_.index].lock) {}

    // Begins before the lock is taken and ends after it is freed.
    const signal_deferral inside_;
    const key_hash hash_;
    const std::lock_guard<futex_lock> lock_;
};

// The queue of a key; holds its bucket's lock from here to the end of the scope.
class locked_queue : bucket_guard, public wait_queue {
public:
    explicit locked_queue(const wait_key& key) noexcept
        : bucket_guard(key), wait_queue(key, bucket_guard::hash_) {}
};

// Whether a waiter that called prepare_wait() may be parked on this key. The caller has changed what such a waiter
// waits for, and passes a full fence as `fence()`. Everything else is computed before it, so the call costs that fence
// and a load.
template <class Fence>
bool may_be_waited_on(const wait_key& key, Fence fence) noexcept {
    const key_hash hash(key);
    const auto& filter = the_lot->at[hash.index].filter;
    fence();                                                                 // [wake-check]
    return (filter.load(std::memory_order_relaxed) & hash.filter_bit) != 0;  // ordered by the fences
}

// How many forks lie between the process that loaded the library and this one. Queues from before a fork are gone.
std::uint32_t forks() noexcept;

// Calls `look(const node&)` for every parked node of the process, a bucket at a time, under its lock.
void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept;

}  // namespace tocsin::core
