// SPDX-License-Identifier: Apache-2.0
// The protocol of semaphores is that of an auto-reset event (event.cpp), with a count in place of the bit `set`. A
// semaphore has one word here, and a queue in the lot (core/lot/lot.hpp).
//
// State: the word holds two bits, `parked` and `held`, and the count of the free permits.
// A wait by a member function of the semaphore, such as acquire(), queues a collector_node. The node counts the permits
// that its wait still lacks. Any other wait wants one permit, and queues the same kind of node as for an event.
// Before a wait queues, it may spin or yield. Meanwhile it only tries to take its permits, as try_acquire() does.
// Nothing below depends on when it queues.
//
// Invariants
//   semaphore-1  `parked` changes only under the lock of the semaphore's bucket. Whenever that lock is free, `parked`
//       says whether the semaphore's queue has nodes. (In the child of a fork, `parked` may be on although the queue is
//       empty. The next release or wait puts the bit right.)
//   semaphore-2  Whenever that lock is free and a permit is free, all queued nodes are those of subscribers and
//       all_waiters (core/lot/subscriber.hpp). Before a release adds a permit to the count while nodes are queued, it
//       has offered this permit to all of them.
//   semaphore-3  A permit is in exactly one place: in the count, with a thread that is handing it out, collected in one
//       collector_node, or taken. A wait that ends without its permits takes its node off the queue, and then hands out
//       what the node has collected.
//   semaphore-4  Of the nodes whose waits can still be given permits, only the oldest collects permits. It leaves the
//       queue when it lacks none. So a wait for several permits never holds a permit that an older wait for several
//       permits needs. (A node whose wait has just ended otherwise, at a deadline for example, may still hold permits,
//       and collect more. Its thread is about to hand them out.)
//       (In a queue by priority, a node joins in front of less urgent ones. It does not pass a node that has collected
//       permits. So read "in front" for "older" here.)
//   semaphore-5  A release gives its permits in steps, under the lock: it hands a permit to a node, or adds permits to
//       the count, or commits a wait for all. The release does not touch the semaphore after the step that gives the
//       last of them. It may still search the queue of the semaphore's address for all_waiters. If it finds a node
//       there, the semaphore that this node waits for still exists.
//   semaphore-6  `held` is on only while a permit is free and the lock is taken. While `held` is on, only the thread
//       that turned it on takes permits. Any other thread that wants to take one takes the lock first. Other threads
//       may add permits. (In the child of a fork, the bit may have stayed on. A wait or a try that takes the lock there
//       turns it off.)
//
// No lost wake-up: by the argument in core/lot/enrol.hpp. Its mark is a compare-and-exchange that takes the permits
// that are there and, if these are too few, also turns `parked` on. Its signal is the compare-and-exchange of a
// release, which adds permits only to a word in which `parked` is off.
// If a wait times out or is stopped, its waiter is claimed first (waiter.cpp). A release that would complete the
// permits of such a wait finds the wait's waiter claimed, and offers the permit to the next node instead. (A
// single_wait that is stopped has left the queue instead.)
//
// Nobody gets a permit that does not exist (over-admission): a thread takes permits from the count by one
// compare-and-exchange that sees them there. (Under the lock, a wait that is not the semaphore's own first holds the
// semaphore in this way: semaphore-6.) A release gives each of its permits once: it counts down a number of its own.
//
// How long a release holds the lock: it offers its permits one after the other, without freeing the lock between offers
// that are accepted. So the time grows with the number of permits that it hands over.
//
// Memory order
//   [permit]     Every release of permits is a release operation: by its read-modify-write of the word, or through
//                [release] in waiter.cpp when it hands the permit over. Whoever takes a permit from the count acquires.
//                All writes of the word are read-modify-writes, so a later write never hides what an earlier release
//                published.
//                If several releases give permits to one node, they change this node one after the other, under the
//                lock. So the last of them, which makes the node's thread runnable, also passes on what the earlier
//                ones published ([bucket] in lot.cpp).
//   [all-taken]  As in event.cpp: to take a held permit is a release operation, and a look that finds the permits gone
//                acquires.
//   parked       The lock orders this bit, so an access that concerns only this bit is relaxed.
//
// Checked by: tests/model/semaphore_model_test.cpp (P17 of docs/proofs.md), tests/unit/semaphore_test.cpp,
// semaphore_source_test.cpp, tests/stress/semaphore_stress_test.cpp.
#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/probe.hpp"
#include "core/wait/multi_wait.hpp"
#include "core/wait/park.hpp"

#include <tocsin/semaphore.hpp>

#include <algorithm>
#include <cstdio>
#include <system_error>

namespace tocsin::detail {
namespace {

using semaphore_state::free_permits;
using semaphore_state::max;
using semaphore_state::one;

core::wait_key key_of(const semaphore_word& word) noexcept { return {&word, core::wait_kind::semaphore}; }

semaphore_word& word_at(void* semaphore) noexcept { return *static_cast<semaphore_word*>(semaphore); }

void clear(semaphore_word& word, std::uint32_t bits) noexcept {
    // [permit] A read-modify-write hides no earlier release. No other order: the caller holds the lock.
    word.fetch_and(~bits, std::memory_order_relaxed);
}

// Turns off a held bit that is left from before a fork (semaphore-6). The caller holds the lock.
void forget_hold(semaphore_word& word) noexcept {
    if ((word.load(std::memory_order_relaxed) & semaphore_state::held_bit) != 0)
        clear(word, semaphore_state::held_bit);  // no order: semaphore-6
}

// Takes up to `wanted` permits, and returns how many. If these are too few, also turns the parked bit on. The caller
// holds the lock.
std::uint32_t take_or_mark_parked(semaphore_word& word, std::uint32_t wanted) noexcept {
    std::uint32_t seen = word.load(std::memory_order_relaxed);  // no order: the exchange decides
    for (;;) {
        const std::uint32_t taken = std::min(free_permits(seen), wanted);
        const std::uint32_t next = (seen - taken * one) | (taken != wanted ? semaphore_state::parked_bit : 0);
        // [permit] acquires what the releases published.
        if (word.compare_exchange_weak(seen, next, std::memory_order_acquire, std::memory_order_relaxed))
            return taken;
    }
}

// Adds permits that nobody waits for to the count; the caller does not touch the semaphore afterwards (semaphore-5).
// Returns false, and adds none, if the count would become greater than `limit`.
bool add(semaphore_word& word, std::uint32_t permits, std::uint32_t limit, const core::wait_queue& queue,
         std::uint32_t& before) noexcept {
    const std::uint32_t stay = queue.has_subscribers() ? semaphore_state::parked_bit : 0;
    std::uint32_t seen = word.load(std::memory_order_relaxed);  // no order: the exchange decides
    std::uint32_t next = 0;
    do {
        const std::uint32_t count = before = free_permits(seen);
        if (count > limit || permits > limit - count) {
            if (stay == 0) clear(word, semaphore_state::parked_bit);
            return false;
        }
        next = (count + permits) * one | stay;
    } while (!word.compare_exchange_weak(seen, next, std::memory_order_release,  // [permit]
                                         std::memory_order_relaxed));
    return true;
}

// Hands permits to those who wait, oldest first, and adds the others to the count. If the queue has many nodes that
// stay (lot-8), frees the lock now and then. Returns false if the count would have become greater than `limit`: then
// the permits that nobody waits for are not added. If they are added, `before` becomes the count that they are added
// to.
bool hand_out(semaphore_word& word, std::uint32_t permits, std::uint32_t limit,
              std::uint32_t& before) noexcept {
    const core::defer_resumes after_all;
    const core::wait_key key = key_of(word);
    core::queue_cursor offered(key);
    bool fits = true;
    TOCSIN_PROBE(notify, &word, core::wait_kind::semaphore, permits, permits);
    while (permits != 0) {
        core::wait_node* undecided = nullptr;  // of an all_waiter that perhaps lacks only this semaphore
        core::release_list freed;
        bool all_waiters = false;
        {
            core::locked_queue queue(key);
            core::offer_result result;
            do {
                result = queue.give_to_one(freed, offered, undecided);
            } while (result == core::offer_result::accepted && --permits != 0);
            if (result == core::offer_result::declined) {
                all_waiters = queue.has_all_waiters();
                fits = add(word, permits, limit, queue, before);
                permits = 0;
            } else if (queue.empty()) {
                clear(word, semaphore_state::parked_bit);
            }
        }
        if (undecided != nullptr && undecided->all->commit(undecided)) --permits;
        freed.wake();
        if (all_waiters && fits) core::satisfy_all_waiters(key);
    }
    return fits;
}

bool hand_out(semaphore_word& word, std::uint32_t permits, std::uint32_t limit) noexcept {
    std::uint32_t before = 0;
    return hand_out(word, permits, limit, before);
}

// Gives one permit, for calls that cannot fail.
void give_one(void* semaphore) noexcept { (void)hand_out(word_at(semaphore), 1, max); }

// A thread's wait for permits of a semaphore alone.
struct permit_wait : core::own_wait {
    semaphore_word& word;
    const std::uint32_t permits;
    const wait_options& options;

    permit_wait(semaphore_word& of, std::uint32_t wanted, const wait_options& with) noexcept
        : word(of), permits(wanted), options(with) {}

    core::wait_key learned() const noexcept { return key_of(word); }
    bool look(core::spinner& looking) const noexcept {
        const auto take = [&]() noexcept { return semaphore_try_acquire(word, permits); };
        // If threads take turns, the one that has just released takes the permit again at once, and a look would never
        // find it free. Once a thread is queued, it is handed the next permit. So a thread that has yielded looks then.
        return looking.yield_before_parking(take) || looking.before_parking(take);
    }
    core::collector_node node_for(core::waiter& self) const noexcept {
        return {key_of(word), self, core::can_cancel(options), permits};
    }
    bool take_or_enrol(core::wait_queue& queue, core::collector_node& node,
                       const core::wait_origin& origin) const noexcept {
        forget_hold(word);
        node.missing = permits - take_or_mark_parked(word, permits);
        if (node.missing == 0) return true;
        queue.join(node, origin, options.order);
        return false;
    }
    void clear() const noexcept { detail::clear(word, semaphore_state::parked_bit); }
    void ended(const core::spinner& looking, const core::collector_node& node, const core::waiter&,
               core::claim how) const noexcept {
        if (how == core::claim::signaled) return looking.begin_use();
        const std::uint32_t collected = permits - node.missing;
        if (collected != 0) (void)hand_out(word, collected, max);  // semaphore-3
    }
};

constexpr lot_source source_of_semaphore{
    .wait_kind = static_cast<std::uint8_t>(core::wait_kind::semaphore),
    .try_take = [](void* semaphore) noexcept { return semaphore_try_acquire(word_at(semaphore), 1); },
    .looks_ready =
        [](const void* semaphore) noexcept {
            // no order: a guess. The fences of [all-check] make sure that it is recent enough.
            return free_permits(
                       static_cast<const semaphore_word*>(semaphore)->load(std::memory_order_relaxed)) != 0;
        },
    .hold =
        [](void* semaphore) noexcept {
            semaphore_word& word = word_at(semaphore);
            std::uint32_t seen = word.load(std::memory_order_relaxed);  // no order: the exchange decides
            while (free_permits(seen) != 0) {
                // [permit] acquires what the releases published.
                if (word.compare_exchange_weak(seen, seen | semaphore_state::held_bit,
                                               std::memory_order_acquire, std::memory_order_relaxed)) {
                    return true;
                }
            }
            return false;
        },
    .take_held =
        [](void* semaphore) noexcept {
            // [all-taken] releases. Other threads may add permits at the same time (semaphore-6).
            word_at(semaphore).fetch_sub(one | semaphore_state::held_bit, std::memory_order_release);
        },
    .unhold = [](void* semaphore) noexcept { clear(word_at(semaphore), semaphore_state::held_bit); },
    .mark_parked =
        [](void* semaphore, bool even_if_ready) noexcept {
            semaphore_word& word = word_at(semaphore);
            if (even_if_ready) forget_hold(word);
            std::uint32_t seen = word.load(std::memory_order_relaxed);  // no order: the exchange decides
            while (even_if_ready || free_permits(seen) == 0) {
                if (word.compare_exchange_weak(seen, seen | semaphore_state::parked_bit,
                                               std::memory_order_relaxed))
                    return true;  // no order: semaphore-1
            }
            return false;
        },
    .clear_parked = [](void* semaphore) noexcept { clear(word_at(semaphore), semaphore_state::parked_bit); },
    .give_back =
        [](void* semaphore) noexcept {
            if (!core::signal_deferral::defer(give_one, semaphore)) give_one(semaphore);
        },
};

}  // namespace

const lot_source semaphore_lot_source = source_of_semaphore;
const lot_source semaphore_priority_source = [] {
    lot_source made = source_of_semaphore;
    made.order = queue_order::priority;
    return made;
}();

// A signal handler can't wait for the thread that it has interrupted. So if that thread is inside the library, the
// handler does not take the lock here, and finds no permit in a semaphore that is held.
bool semaphore_try_acquire_slow(semaphore_word& word, std::uint32_t permits) noexcept {
    if (core::signal_deferral::is_inside()) return permits == 0;
    const core::locked_queue queue(key_of(word));
    forget_hold(word);
    return core::order::after(&word, semaphore_try_acquire(word, permits), true);
}

void semaphore_release_slow(semaphore_word& word, std::ptrdiff_t permits, std::ptrdiff_t limit) {
    const auto count =
        static_cast<std::ptrdiff_t>(free_permits(word.load(std::memory_order_relaxed)));  // no order: a check
    if (permits < 0) semaphore_refuse_number(word, "release", permits, limit);
    if (permits == 0) return;  // the count may be above the limit
    core::order::before(&word);
    bool fits = permits <= limit - count;
    if (fits && core::signal_deferral::is_inside()) {
        // A deferred call cannot fail, and takes no number of permits. So one call is deferred for each permit.
        for (; permits != 0; --permits) (void)core::signal_deferral::defer(give_one, &word);
        return;
    }
    if (fits) {
        core::spinner::end_use(key_of(word));
        fits = hand_out(word, static_cast<std::uint32_t>(permits), static_cast<std::uint32_t>(limit));
    }
    if (fits) return;
    char message[160];
    std::snprintf(message, sizeof message,
                  "tocsin: counting_semaphore at %p: release(%lld) would count to more than max(), %lld",
                  static_cast<const void*>(&word), static_cast<long long>(permits),
                  static_cast<long long>(limit));
    throw_or_die(std::system_error(std::make_error_code(std::errc::value_too_large), message));
}

bool semaphore_try_release(semaphore_word& word, std::uint32_t permits, std::uint32_t limit,
                           std::uint32_t& before) noexcept {
    core::order::before(&word);
    std::uint32_t seen = word.load(std::memory_order_relaxed);  // no order: the exchange decides
    do {
        before = free_permits(seen);
        if (before > limit || permits > limit - before) return false;
        if ((seen & semaphore_state::parked_bit) != 0) {
            core::spinner::end_use(key_of(word));
            return hand_out(word, permits, limit, before);
        }
        // [permit] The release of this exchange pairs with the acquire of whoever takes a permit.
    } while (!word.compare_exchange_weak(seen, seen + permits * one, std::memory_order_release,
                                         std::memory_order_relaxed));
    return true;
}

void semaphore_refuse_number(const semaphore_word& word, const char* call, std::ptrdiff_t permits,
                             std::ptrdiff_t limit) {
    char message[160];
    std::snprintf(message, sizeof message,
                  "tocsin: counting_semaphore at %p: %s of %lld permits, not of 0 to %lld (max())",
                  static_cast<const void*>(&word), call, static_cast<long long>(permits),
                  static_cast<long long>(limit));
    throw_or_die(std::invalid_argument(message));
}

wait_status semaphore_wait_slow(semaphore_word& word, std::uint32_t permits,
                                const wait_options& options) noexcept {
    permit_wait wait(word, permits, options);
    const wait_status ended = core::status_from(core::park(wait, options), wait_status::signaled);
    return core::order::after(&word, ended, wait_status::signaled);
}

void semaphore_check_destroyed(const semaphore_word& word) noexcept {
    if ((word.load(std::memory_order_relaxed) & semaphore_state::parked_bit) == 0)
        return;                                                    // no order: may miss the misuse
    core::check_nobody_waits(key_of(word), "counting_semaphore");  // semaphore-1
}

}  // namespace tocsin::detail
