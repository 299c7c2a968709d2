// State
//   A fixed table of buckets, found by hash. A bucket has a lock, a list of queues and a filter word. A queue
//   belongs to one key; it is a doubly linked list of nodes, oldest first, and its first node carries what
//   belongs to the queue: its length, its last node, how many nodes may leave, how many are choosers' (who are
//   asked when their turn comes, and whose nodes stay), the next queue of the bucket.
//
// Invariants
//   lot-1  Queues, nodes in them, and (changes of) the filter are touched only under the bucket's lock.
//   lot-2  A node is in a queue from append() until unlink(). Only then may its waiter's wait end, so a queued
//       node always exists. A node that may leave knows by `queued` whether it is still in; one that may
//       not never asks, which is why take_all of such nodes costs the same for any number.
//   lot-3  A node taken off by take() belongs to its taker, and its waiter cannot go on, until the taker
//       releases it: take() has claimed it, or it has no other way to end.
//   lot-4  The filter bit of an announced key is on while its queue is not empty, and while somebody who
//       announced it holds the lock. It is off when no announced queue of the bucket has that bit.
//       (An event's queue with the same bit in the same bucket keeps it on for longer: a lock too many.)
//   lot-5  Nobody is released, and no waiter is woken, under a bucket's lock. (Who locks several buckets may wake, when
//       it frees one, a thread that waits for that lock: multi_wait-3 in multi_wait.cpp.)
//   lot-6  A chooser's node leaves its queue only through its owner, or to go to the end of it.
//
// No lost wake-up: a wait looks at what it waits for under the lock, after announce() or after setting its
// owner's parked bit, and appends its node before it frees the lock. A wake that looks into the queue takes
// the same lock; so it comes before the look (which then sees the change) or after the append (and finds
// the node). A wake that does not look has seen the filter bit off after its change and a full fence, while
// the wait set the bit, made a full fence, and looked: of two threads that write, fence and read the other's
// word, one sees the other's write. The parked bit is in the event's own byte: see event.cpp.
//
// Memory order
//   [bucket]      the lock orders everything in a bucket.
//   [wake-check]  the fences in announce() and in may_be_waited_on(); the filter's own accesses are relaxed.
//   [release]     from take() to the end of the wait (waiter.cpp).
//
// Relay: wake() releases all of a few nodes; of many, it wakes one or some sleepers and gives the last of them
// the rest, which does the same, for more of them, before its wait returns. So the waker is held for a few system
// calls however many wait; a chain cannot break, since releasing the rest is the first thing a released thread does.
// Coroutines stand first in a chain and are all released by the waker, since they go on in its thread.
//
// Fork: the child has none of the threads that are parked or hold a lock; it empties the table.
//
// Several copies of the library in one process: each asks at load time for the table of the first one
// (platform/shared_table/shared_table.hpp), before any thread can park.
//
// Checked by: tests/model/lot_model_test.cpp and every other model, tests/internal/lot_test.cpp.
#include "core/lot/lot.hpp"

#include "core/lot/resume_queue.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/system/system.hpp"

#include <new>

namespace tocsin::core {
namespace {

// Never destroyed: waits and wakes are allowed after main.
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
// Before any other code of this object.
#if defined(_MSC_VER)
#pragma init_seg(lib)
const at_load start;
#else
[[gnu::init_priority(101)]] const at_load start;
#endif

// A waker releases so few itself; of more, it wakes `waker_wakes()` sleepers and gives the last of those the rest.
// That one wakes `relay_wakes` and passes on what is left, and so on. Threads that have not fallen asleep yet cost
// no system call and do not count. The waker is to be held for as short as can be; but a chain of single wake-ups
// leaves every processor idle between two of them, and waking an idle one is what costs most.
// docs/decisions/0004-relay.md.
#if !defined(TOCSIN_RELAY_ABOVE)
#define TOCSIN_RELAY_ABOVE 4
#define TOCSIN_RELAY_WAKES 16
#endif
constexpr std::size_t relay_above = TOCSIN_RELAY_ABOVE;
constexpr std::size_t relay_wakes = TOCSIN_RELAY_WAKES;

std::size_t waker_wakes() noexcept {
    const unsigned processors = platform::processors();
    return processors <= 2 ? 1 : processors >= 16 ? 8 : processors / 2;
}

// The node that stands `count` places behind, or null.
wait_node* after(wait_node* from, std::size_t count) noexcept {
    for (; count != 0 && from != nullptr; --count) from = from->next;
    return from;
}

}  // namespace

constinit lot_table* the_lot = &own_table;

void release_list::append(wait_node& last) noexcept {
    const bool coroutine = last.owner != nullptr && last.owner->is_coroutine();
    wait_node* const before = coroutine ? last_coroutine_ : last_;
    if (before == nullptr) {
        last.next = first_;
        first_ = &last;
    } else {
        last.next = before->next;
        before->next = &last;
    }
    if (coroutine) last_coroutine_ = &last;
    if (last.next == nullptr) last_ = &last;
}

void release_list::wake_some(std::size_t to_wake) noexcept {
    const defer_resumes after_all;
    const bool many = after(first_, relay_above) != nullptr;
    for (wait_node* each = first_; each != nullptr;) {
        wait_node* const next = each->next;  // before the release, after which the node is gone
        if (waiter* const owner = each->owner) {
            if (many && owner->is_asleep() && --to_wake == 0) return owner->release(next);
            owner->release(nullptr);
        } else {
            each->subscribed->ring();
        }
        each = next;
    }
}

void release_list::wake() noexcept { wake_some(waker_wakes()); }

void release_list::pass_on() noexcept { wake_some(relay_wakes); }

wait_queue::wait_queue(const wait_key& where, const key_hash& place) noexcept
    : hash_(place), bucket_(the_lot->at[place.index]) {
    wait_node* each = bucket_.queues;
    while (each != nullptr && each->where != where) each = each->next_queue;
    first_ = each;
}

wait_queue::~wait_queue() {
    if (first_ == nullptr) clear_filter();
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
    for (wait_node* each = bucket_.queues; each != nullptr; each = each->next_queue) {
        if (key_hash(each->where).filter_bit == hash_.filter_bit) return;
    }
    bucket_.filter.store(filter & ~hash_.filter_bit, std::memory_order_relaxed);  // no order: lot-1
}

void wait_queue::append(wait_node& last) noexcept {
    last.thread = platform::thread_number();
    last.since = std::chrono::steady_clock::now().time_since_epoch().count();
    link(last);
}

void wait_queue::link(wait_node& last) noexcept {
    last.queued = true;
    if (first_ == nullptr) {
        last.count = 0;
        last.cancelables = 0;
        last.subscribers = 0;
        last.all_waiters = 0;
        last.next_queue = bucket_.queues;
        bucket_.queues = &last;
        first_ = &last;
    } else {
        wait_node* const before = first_->last;
        before->next = &last;
        last.previous = before;
    }
    first_->last = &last;
    first_->count = first_->count + 1;
    if (last.cancelable) first_->cancelables = first_->cancelables + 1;
    if (last.subscribed == nullptr) return;
    first_->subscribers = first_->subscribers + 1;
    if (last.subscribed->waits_for_all) first_->all_waiters = first_->all_waiters + 1;
}

void wait_queue::remove(wait_node& cancelled) noexcept {
    if (cancelled.queued) unlink(cancelled);
}

// Puts another node at the head of this key's queue, or takes the queue out of the bucket.
void wait_queue::replace_first(wait_node* with) noexcept {
    wait_node* const old = first_;
    wait_node* const following = old->next_queue;
    wait_node* const successor = with != nullptr ? with : following;
    if (with != nullptr) {
        with->previous = nullptr;
        with->next_queue = following;
        with->last = old->last;
        with->count = old->count;
        with->cancelables = old->cancelables;
        with->subscribers = old->subscribers;
        with->all_waiters = old->all_waiters;
    }
    if (bucket_.queues == old) {
        bucket_.queues = successor;
    } else {
        wait_node* each = bucket_.queues;
        while (each->next_queue != old) each = each->next_queue;
        each->next_queue = successor;
    }
    first_ = with;
}

void wait_queue::unlink(wait_node& gone) noexcept {
    first_->count = first_->count - 1;
    if (gone.cancelable) first_->cancelables = first_->cancelables - 1;
    if (gone.subscribed != nullptr) first_->subscribers = first_->subscribers - 1;
    if (gone.subscribed != nullptr && gone.subscribed->waits_for_all)
        first_->all_waiters = first_->all_waiters - 1;
    wait_node* const next = gone.next;
    if (&gone == first_) {
        replace_first(next);
    } else {
        gone.previous->next = next;
        if (next != nullptr) {
            next->previous = gone.previous;
        } else {
            first_->last = gone.previous;
        }
    }
    gone.next = nullptr;
    gone.queued = false;
}

// Whether a node just taken out is the taker's. If not, its wait has ended otherwise and is about to return.
bool wait_queue::try_claim(wait_node& taken) noexcept {
    return !taken.cancelable || taken.owner->try_claim(claim::signaled, taken.index);
}

subscriber::reply wait_queue::offer_to_one(release_list& freed, wait_node*& undecided) noexcept {
    using reply = subscriber::reply;
    for (wait_node* each = first_; each != nullptr;) {
        wait_node* const next = each->next;
        reply said = reply::declined;
        if (each->subscribed != nullptr) {
            said = each->subscribed->on_wake(*each, true, freed);
            if (said == reply::undecided) undecided = each;
        }
        if (each->subscribed == nullptr || said == reply::accepted) unlink(*each);
        if (each->subscribed == nullptr && try_claim(*each)) {
            freed.append(*each);
            return reply::accepted;
        }
        if (said == reply::accepted) link(*each);
        if (said != reply::declined) return said;
        each = next;
    }
    return reply::declined;
}

subscriber* wait_queue::ready_all_waiter() noexcept {
    if (!has_all_waiters()) return nullptr;
    release_list none;
    for (wait_node* each = first_; each != nullptr; each = each->next) {
        subscriber* const asked = each->subscribed;
        if (asked == nullptr || !asked->waits_for_all) continue;
        if (asked->on_wake(*each, false, none) == subscriber::reply::undecided) return asked;
    }
    return nullptr;
}

release_list wait_queue::take(std::size_t most, std::size_t& taken) noexcept {
    taken = 0;
    if (first_ == nullptr) return {};
    if (first_->cancelables == 0 && most >= first_->count) {  // lot-2: nobody asks `queued`
        taken = first_->count;
        wait_node* const head = first_;
        replace_first(nullptr);
        return release_list(head);
    }
    release_list freed;
    for (wait_node* each = first_; each != nullptr && taken != most;) {
        wait_node* const next = each->next;
        if (each->subscribed == nullptr) {
            unlink(*each);
            if (try_claim(*each)) {
                freed.append(*each);
                ++taken;
            }
        } else if (!each->subscribed->waits_for_all) {
            (void)each->subscribed->on_wake(*each, false, freed);
        }
        each = next;
    }
    return freed;
}

std::uint32_t forks() noexcept {
    return forks_so_far.load(std::memory_order_relaxed);  // no order: it changes in the only thread
}

void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept {
    for (bucket& each : the_lot->at) {
        const signal_deferral inside;
        const std::lock_guard lock(each.lock);
        for (const wait_node* wait_queue = each.queues; wait_queue != nullptr;
             wait_queue = wait_queue->next_queue) {
            for (const wait_node* parked = wait_queue; parked != nullptr; parked = parked->next)
                look(*parked, context);
        }
    }
}

}  // namespace tocsin::core
