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

#include "core/sync/futex_lock.hpp"
#include "core/lot/subscriber.hpp"
#include "core/sync/signal_deferral.hpp"
#include "core/lot/waiter.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tocsin::core {

// What an address is waited on for. Different uses of one address never meet, also when an address is
// used again for something else while a late wake for its last life is under way.
enum class use : std::uint8_t { event, address, lock_bit_0 };  // lock_bit_0 + n for bit n
inline constexpr unsigned uses = static_cast<unsigned>(use::lock_bit_0) + 64;

struct key {
    const void* address;
    use what;

    friend bool operator==(const key&, const key&) noexcept = default;
};

// A waiter's place in one queue.
struct node {
    node(const key& place, waiter& who, bool may_leave) noexcept : node(place, who, may_leave, 0, nullptr) {}
    // One of several of the same waiter, which is released for the first that comes, or (`everything`) for all.
    node(const key& place, waiter& who, bool may_leave, std::uint32_t number, chooser* everything) noexcept
        : where(place), owner(&who), chooses(everything), index(number), leaves(may_leave) {}
    // One that stands in the queue whether a thread waits or not.
    node(const key& place, chooser& standing) noexcept
        : where(place), owner(nullptr), chooses(&standing), index(0), leaves(true) {}

    const key where;
    waiter* const owner;     // null if it stands
    chooser* const chooses;  // who is asked when its turn comes; or null: the owner is claimed
    const std::uint32_t index;
    // Whether the wait may also end without this queue (deadline, stop, another source): then it must be
    // claimed, and may be found dead. Otherwise taking it off the queue is enough.
    const bool leaves;
    detail::plain<bool> queued{false};  // for those that may leave: still in the queue
    detail::plain<node*> next{nullptr};
    detail::plain<node*> previous{nullptr};

    // Only while it is the first of its queue:
    detail::plain<node*> next_queue{nullptr};  // of another key in the same bucket
    detail::plain<node*> last{nullptr};
    detail::plain<std::uint32_t> count{0};
    detail::plain<std::uint32_t> leavers{0};    // how many of them may leave
    detail::plain<std::uint32_t> choosers{0};   // how many of them are asked, and stay
    detail::plain<std::uint32_t> all_waits{0};  // how many of them wait for all of several sources

    // For people (diagnose.hpp).
    std::uint64_t thread = 0;
    std::int64_t since = 0;
};

// Nodes taken off a queue, whose waiters are to be released. Own them, then wake(), once, under no lock.
class [[nodiscard]] release_list {
public:
    release_list() noexcept = default;
    explicit release_list(node* first) noexcept : first_(first) {}

    bool empty() const noexcept { return first_ == nullptr; }

    // To one that was built by this alone. Coroutines stand first, so that no thread is given them to release.
    void append(node& last) noexcept;

    // Releases a few; each of those releases a few more before its wait returns.
    void wake() noexcept;

    // What a released thread does with the others it was given.
    void pass_on() noexcept;

private:
    void wake_some(std::size_t to_wake) noexcept;

    node* first_ = nullptr;
    node* last_ = nullptr;
    node* last_coroutine_ = nullptr;
};

// A cache line for the keys that hash here. `filter` has a bit for each class of announced keys, so that
// a wake with nobody waiting is a load whatever its neighbours do.
struct alignas(64) bucket {
    bucket_lock lock;
    detail::plain<node*> queues{nullptr};  // the first nodes of the keys' queues
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

struct table {
    bucket at[std::size_t{1} << bucket_bits];
};

// The table in use: one for the process, also when it holds several copies of the library (lot.cpp).
extern table* the_lot;

// Where a key belongs: a bucket, and within it a bit of the filter.
struct home {
    explicit home(const key& where) noexcept {
        // 2^64 divided by the golden ratio: consecutive and aligned addresses end far apart, in the upper
        // bits, and take all buckets evenly.
        const std::uint64_t mixed =
            (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(where.address)) +
             (static_cast<std::uint64_t>(where.what) << 56)) *
            0x9E37'79B9'7F4A'7C15u;
        index = static_cast<std::size_t>((mixed >> 1) >> (63 - bucket_bits));
        filter_bit = std::uint64_t{1} << ((mixed >> (58 - bucket_bits)) & 63);
    }

    std::size_t index;
    std::uint64_t filter_bit;
};

// The queue of a key, for who holds its bucket's lock.
class queue {
public:
    explicit queue(const key& where) noexcept : queue(where, home(where)) {}
    ~queue();
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;

    // Makes every wake on this key look into the queue from now on, and is a full fence: the caller then
    // looks once more at what it waits for, and appends its node or leaves. For keys whose owner keeps no
    // bit of its own that says "somebody is parked"; taken back with the lock when nobody is.
    void announce() noexcept;

    void append(node& last) noexcept;
    // Takes a node that may leave out of the queue, unless it has been taken already.
    void remove(node& leaver) noexcept;

    bool empty() const noexcept { return first_ == nullptr; }
    bool has_choosers() const noexcept { return first_ != nullptr && first_->choosers != 0; }
    bool has_all_waits() const noexcept { return first_ != nullptr && first_->all_waits != 0; }

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
    chooser::reply offer_to_one(release_list& freed, node*& undecided) noexcept;

    // The first of those that wait for all that says `perhaps`, to what is there for everybody; or null.
    chooser* ready_all_wait() noexcept;

    // Calls `look(const node&)` for each in the queue, oldest first.
    template <class Look>
    void for_each(Look look) const noexcept {
        for (const node* each = first_; each != nullptr; each = each->next) look(*each);
    }

protected:
    queue(const key& where, const home& place) noexcept;

private:
    static bool is_had(node& taken) noexcept;
    void link(node& last) noexcept;
    void unlink(node& gone) noexcept;
    void replace_first(node* with) noexcept;
    void clear_filter() noexcept;

    const home home_;
    bucket& bucket_;
    node* first_ = nullptr;  // of this key's queue
};

class bucket_guard {
protected:
    explicit bucket_guard(const key& where) noexcept : home_(where), lock_(the_lot->at[home_.index].lock) {}

    // Begins before the lock is asked for and ends after it is freed.
    const critical_section inside_;
    const home home_;
    const std::lock_guard<bucket_lock> lock_;
};

// The same with the bucket's lock, from here to the end of its scope.
class parking : bucket_guard, public queue {
public:
    explicit parking(const key& where) noexcept : bucket_guard(where), queue(where, bucket_guard::home_) {}
};

// Whether somebody who announced may be parked on this key. The caller has changed what they wait for, and
// makes a full fence by `fence()`; everything else is ready by then, so that it costs that fence and a load.
template <class Fence>
bool may_be_waited_on(const key& where, Fence fence) noexcept {
    const home place(where);
    const auto& filter = the_lot->at[place.index].filter;
    fence();                                                                  // [wake-check]
    return (filter.load(std::memory_order_relaxed) & place.filter_bit) != 0;  // ordered by the fences
}

// How often this process is a child of one that had used the lot: queues from before a fork are gone.
std::uint32_t forks() noexcept;

// Calls `look(const node&)` for every parked node of the process, a bucket at a time, under its lock.
void for_each_parked(void (*look)(const node&, void*), void* context) noexcept;

}  // namespace tocsin::core
