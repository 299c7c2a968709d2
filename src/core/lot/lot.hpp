// The lot: where threads are parked. A process-wide table from key (an address and what it is used for) to
// a first-in-first-out queue of nodes, which stand on the waiters' own stacks. The argument: lot.cpp.
//
//     {
//         parking place(key);                // takes the bucket's lock
//         if (... still nothing to take ...) place.append(node);
//     }                                      // frees it
//     waiter.sleep(until);
//
//     release_list freed;
//     {
//         parking place(key);
//         freed = place.take_all();          // off the queue, under the lock
//     }
//     freed.wake();                          // system calls only here, after it
#pragma once

#include "core/lot/subscriber.hpp"
#include "core/lot/waiter.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/signal_deferral.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/golden_hash.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tocsin::core {

// What an address is waited on for. Different uses of one address never meet, also when an address is
// used again for something else while a late wake for its last life is under way.
enum class wait_kind : std::uint8_t { event, address, lock_bit_0 };  // lock_bit_0 + n for bit n
inline constexpr unsigned wait_kinds = static_cast<unsigned>(wait_kind::lock_bit_0) + 64;

struct wait_key {
    const void* address;
    wait_kind what;

    friend bool operator==(const wait_key&, const wait_key&) noexcept = default;
};

// A waiter's place in one queue.
struct wait_node {
    wait_node(const wait_key& place, waiter& who, bool can_cancel) noexcept
        : wait_node(place, who, can_cancel, 0, nullptr) {}
    // One of several of the same waiter, which is released for the first that comes, or (`everything`) for all.
    wait_node(const wait_key& place, waiter& who, bool can_cancel, std::uint32_t number,
              subscriber* everything) noexcept
        : where(place), owner(&who), subscribed(everything), index(number), cancelable(can_cancel) {}
    // One that stands in the queue whether a thread waits or not.
    wait_node(const wait_key& place, subscriber& standing) noexcept
        : where(place), owner(nullptr), subscribed(&standing), index(0), cancelable(true) {}

    const wait_key where;
    waiter* const owner;           // null if it stands
    subscriber* const subscribed;  // who is asked when its turn comes; or null: the owner is claimed
    const std::uint32_t index;
    // Whether the wait may also end without this queue (deadline, stop, another source): then it must be
    // claimed, and may be found dead. Otherwise taking it off the queue is enough.
    const bool cancelable;
    detail::plain<bool> queued{false};  // for those that may leave: still in the queue
    detail::plain<wait_node*> next{nullptr};
    detail::plain<wait_node*> previous{nullptr};

    // Only while it is the first of its queue:
    detail::plain<wait_node*> next_queue{nullptr};  // of another key in the same bucket
    detail::plain<wait_node*> last{nullptr};
    detail::plain<std::uint32_t> count{0};
    detail::plain<std::uint32_t> cancelables{0};  // how many of them may leave
    detail::plain<std::uint32_t> subscribers{0};  // how many of them are asked, and stay
    detail::plain<std::uint32_t> all_waiters{0};  // how many of them wait for all of several sources

    // For people (diagnose.hpp).
    std::uint64_t thread = 0;
    std::int64_t since = 0;
};

// Nodes taken off a queue, whose waiters are to be released. Own them, then wake(), once, under no lock.
class [[nodiscard]] release_list {
public:
    release_list() noexcept = default;
    explicit release_list(wait_node* first) noexcept : first_(first) {}

    bool empty() const noexcept { return first_ == nullptr; }

    // To one that was built by this alone. Coroutines stand first, so that no thread is given them to release.
    void append(wait_node& last) noexcept;

    // Releases a few; each of those releases a few more before its wait returns.
    void wake() noexcept;

    // What a released thread does with the others it was given.
    void pass_on() noexcept;

private:
    void wake_some(std::size_t to_wake) noexcept;

    wait_node* first_ = nullptr;
    wait_node* last_ = nullptr;
    wait_node* last_coroutine_ = nullptr;
};

// A cache line for the keys that hash here. `filter` has a bit for each class of announced keys, so that
// a wake with nobody waiting is a load whatever its neighbours do.
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

// The table in use: one for the process, also when it holds several copies of the library (lot.cpp).
extern lot_table* the_lot;

// Where a key belongs: a bucket, and within it a bit of the filter.
struct key_hash {
    explicit key_hash(const wait_key& where) noexcept {
        const std::uint64_t mixed =
            detail::golden_hash(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(where.address)) +
                                (static_cast<std::uint64_t>(where.what) << 56));
        index = static_cast<std::size_t>((mixed >> 1) >> (63 - bucket_bits));
        filter_bit = std::uint64_t{1} << ((mixed >> (58 - bucket_bits)) & 63);
    }

    std::size_t index;
    std::uint64_t filter_bit;
};

// The queue of a key, for who holds its bucket's lock.
class wait_queue {
public:
    explicit wait_queue(const wait_key& where) noexcept : wait_queue(where, key_hash(where)) {}
    ~wait_queue();
    wait_queue(const wait_queue&) = delete;
    wait_queue& operator=(const wait_queue&) = delete;

    // Makes every wake on this key look into the queue from now on, and is a full fence: the caller then
    // looks once more at what it waits for, and appends its node or leaves. For keys whose owner keeps no
    // bit of its own that says "somebody is parked"; taken back with the lock when nobody is.
    void prepare_wait() noexcept;

    void append(wait_node& last) noexcept;
    // Takes a node that may leave out of the queue, unless it has been taken already.
    void remove(wait_node& cancelled) noexcept;

    bool empty() const noexcept { return first_ == nullptr; }
    bool has_subscribers() const noexcept { return first_ != nullptr && first_->subscribers != 0; }
    bool has_all_waiters() const noexcept { return first_ != nullptr && first_->all_waiters != 0; }

    // The longest waiting that can be had, or the longest waiting `most`, with their number. What they wait for is
    // offered to choosers on the way; passes over those that wait for all, whom satisfy_all_waits serves.
    release_list take(std::size_t most, std::size_t& taken) noexcept;
    release_list take_one() noexcept {
        std::size_t taken;
        return take(1, taken);
    }
    release_list take_all() noexcept {
        std::size_t taken;
        return take(static_cast<std::size_t>(-1), taken);
    }
    // Finds one alone who takes it, oldest first: the first that can be had, or a chooser, whose node goes to the
    // end; those to be released are in `freed`. `perhaps`: `undecided` is to be asked.
    subscriber::reply offer_to_one(release_list& freed, wait_node*& undecided) noexcept;

    // The first of those that wait for all that says `perhaps`, to what is there for everybody; or null.
    subscriber* ready_all_waiter() noexcept;

    // Calls `look(const node&)` for each in the queue, oldest first.
    template <class Look>
    void for_each(Look look) const noexcept {
        for (const wait_node* each = first_; each != nullptr; each = each->next) look(*each);
    }

protected:
    wait_queue(const wait_key& where, const key_hash& place) noexcept;

private:
    static bool try_claim(wait_node& taken) noexcept;
    void link(wait_node& last) noexcept;
    void unlink(wait_node& gone) noexcept;
    void replace_first(wait_node* with) noexcept;
    void clear_filter() noexcept;

    const key_hash hash_;
    bucket& bucket_;
    wait_node* first_ = nullptr;  // of this key's queue
};

class bucket_guard {
protected:
    explicit bucket_guard(const wait_key& where) noexcept
        : hash_(where), lock_(the_lot->at[hash_.index].lock) {}

    // Begins before the lock is asked for and ends after it is freed.
    const signal_deferral inside_;
    const key_hash hash_;
    const std::lock_guard<futex_lock> lock_;
};

// The same with the bucket's lock, from here to the end of its scope.
class locked_queue : bucket_guard, public wait_queue {
public:
    explicit locked_queue(const wait_key& where) noexcept
        : bucket_guard(where), wait_queue(where, bucket_guard::hash_) {}
};

// Whether somebody who announced may be parked on this key. The caller has changed what they wait for, and
// makes a full fence by `fence()`; everything else is ready by then, so that it costs that fence and a load.
template <class Fence>
bool may_be_waited_on(const wait_key& where, Fence fence) noexcept {
    const key_hash place(where);
    const auto& filter = the_lot->at[place.index].filter;
    fence();                                                                  // [wake-check]
    return (filter.load(std::memory_order_relaxed) & place.filter_bit) != 0;  // ordered by the fences
}

// How often this process is a child of one that had used the lot: queues from before a fork are gone.
std::uint32_t forks() noexcept;

// Calls `look(const node&)` for every parked node of the process, a bucket at a time, under its lock.
void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept;

}  // namespace tocsin::core
