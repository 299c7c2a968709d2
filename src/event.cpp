// SPDX-License-Identifier: Apache-2.0
// The protocol of both kinds of events: one byte here, a queue in the lot (core/lot/lot.hpp).
//
// State: the byte holds three bits, `set`, `parked` and `held`.
//
// Invariants
//   event-1  `parked` changes only under the lock of the event's bucket.
//   event-2  Whenever that lock is free, `parked` says whether the event's queue has nodes.
//       legal: `parked` is on and the queue is not empty; `parked` is off and the queue is empty.
//       legal in the child of a fork only: `parked` is on although the queue is empty, because the fork has emptied all
//       queues. The next set or wait puts the bit right.
//       illegal: `parked` is off although the queue is not empty; `parked` is on although the queue is empty and no
//       fork has emptied it.
//   event-3  Whenever that lock is free, `set` and `parked` are both on only if all queued nodes are those of
//       subscribers and all_waiters (core/lot/subscriber.hpp). If any other waiter is parked:
//       - A set of an auto-reset event hands the event over instead of turning `set` on.
//       - A set of a manual-reset event takes all such waiters off the queue in the step that makes the set visible.
//       A set of a manual-reset event tells the subscribers in that same step, and asks the all_waiters after it.
//       Before a set leaves an auto-reset event set, it has offered the event to all subscribers and all_waiters in the
//       queue.
//   event-4  A set of an event with waiters makes its changes in one step, under the lock. It takes the waiters that it
//       will release off the queue and, unless it hands the event over, turns `set` on. (An all_waiter leaves its
//       queues in a commit: multi_wait-2.) So a set that is still under way never releases a waiter that queued after a
//       later reset(). Nor does it release a waiter of another event that was made later at the same address.
//   event-5  After the step that makes a set visible, the set does not touch the event. This step is the change of the
//       byte or, when the set hands the event over, the release of the waiter. (A set into a wake_list leaves this
//       release to its caller.) The set may still search the queue of the event's address for all_waiters. If it finds
//       a node there, an event still exists at this address: the one that this node waits for.
//   event-6  `held` is on only while `set` is on and the lock is taken. While `held` is on, only the thread that turned
//       it on changes the byte. Any other thread that wants to change the byte, or to rely on what it says, takes the
//       lock first. (In the child of a fork, the bit may have stayed on. Whoever changes the byte there under the lock
//       turns the bit off.)
//   event-7  A pulse (event_pulse()) releases waiters as a set does, and never shows the event as set. It unsets the
//       event in the same step, under the lock, in which it makes its last offer or takes the waiters. So a thread can
//       be released only if its node is in the queue at that step. A pulse of a manual-reset event doesn't ask
//       all_waiters. A thread that a pulse releases may destroy the event, because the pulse does not touch the event
//       after that step.
//
// No lost wake-up: by the argument in core/lot/enrol.hpp. Its signal is the compare-and-exchange of a set from unset to
// set, its mark that of a wait from unset to parked. Both change one byte, so the later of the two fails: the wait then
// takes the event, or the set takes the lock.
// If a wait times out or is stopped, its waiter is claimed first (waiter.cpp). A set that finds this waiter claimed
// tries the next waiter, or leaves the event set. (A single_wait that is stopped has left the queue instead.)
//
// Memory order
//   [event-publish]  Every set() releases: by its read-modify-write of the byte or, when it hands the event over,
//                    through [release] in waiter.cpp. A thread acquires when it takes an auto-reset event, passes a
//                    manual-reset event, or resets an event. All writes of the byte are read-modify-writes, so a later
//                    write never hides what an earlier set published.
//                    A set of an event that is already set is, in general, the read-modify-write set -> set. On x86 it
//                    is a full fence and then a load. Without this fence, the load may pass the producer's earlier
//                    stores. A consumer could then take the event, miss those stores, and sleep although there is work.
//                    With the fence: if the producer's load still sees the event set, the consumer's read-modify-write
//                    that takes or resets the event comes later, and is a full fence itself. So what the producer wrote
//                    before its fence is visible to what the consumer reads after its own.
//   [all-taken]      A wait for all first holds all its events, and then takes them one by one. Each take is a release
//                    operation. is_set() and try_wait() acquire when they see an event taken. So a thread that has seen
//                    one of these events taken finds each other event held or taken. If it finds one held, it looks at
//                    that event under the lock.
//   parked           The lock orders this bit, so an access that concerns only this bit is relaxed.
//
// Checked by: tests/model/event_model_test.cpp, mix_model_test.cpp (event-2), wait_set_model_test.cpp (event-3),
// many_model_test.cpp (event-6) and first_look_model_test.cpp ([all-taken]); tests/unit/event_test.cpp,
// publication_test.cpp and unmapped_memory_test.cpp (event-5), tests/internal/fork_during_wait_all_test.cpp (event-6),
// tests/stress/, proofs/promela/event_lot.pml and wait_all.pml.
#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/probe.hpp"
#include "core/wait/multi_wait.hpp"
#include "core/wait/park.hpp"

#include <tocsin/event.hpp>

#include <utility>

namespace tocsin::detail {
namespace {

using namespace event_state;

core::wait_key key_of(const event_byte& state) noexcept { return {&state, core::wait_kind::event}; }

// Turns the parked bit on and returns true. If the event is set, changes nothing and returns false.
bool mark_parked(event_byte& state) noexcept {
    std::uint8_t seen = unset;
    return state.compare_exchange_strong(seen, parked_bit, std::memory_order_relaxed) ||
           seen == parked_bit;  // no order: the bucket's lock orders the bit
}

void clear(event_byte& state, std::uint8_t bits) noexcept {
    // [event-publish] A read-modify-write hides no earlier set. No other order: the caller holds the lock.
    state.fetch_and(static_cast<std::uint8_t>(~bits), std::memory_order_relaxed);
}

// Turns off a held bit that is left from before a fork (event-6). The caller holds the lock, so no other thread holds
// the event now.
void forget_hold(event_byte& state) noexcept {
    if ((state.load(std::memory_order_relaxed) & held_bit) != 0) clear(state, held_bit);  // no order: event-6
}

// A thread's wait for an event alone.
struct event_wait : core::own_wait {
    event_byte& state;
    const reset_mode mode;
    const wait_options& options;

    event_wait(event_byte& of, reset_mode how, const wait_options& with) noexcept
        : state(of), mode(how), options(with) {}

    core::wait_key learned() const noexcept { return core::learned_for(key_of(state), options.use); }
    bool look(core::spinner& looking) const noexcept {
        return looking.before_parking([&]() noexcept { return event_try_wait(state, mode); });
    }
    core::wait_node node_for(core::waiter& self) const noexcept {
        return {key_of(state), self, core::can_cancel(options), 0, options.use};
    }
    bool take_or_enrol(core::wait_queue& queue, core::wait_node& node,
                       const core::wait_origin& origin) const noexcept {
        const bool may_share =
            mode == reset_mode::manual_reset && (options.stop == nullptr || !options.stop->stop_possible());
        forget_hold(state);
        for (;;) {
            if (event_try_wait(state, mode)) return true;
            if (mark_parked(state)) break;
        }
        may_share ? queue.append_to_share(node, origin) : queue.join(node, origin, options.order);
        return false;
    }
    void clear() const noexcept { detail::clear(state, parked_bit); }
    static void ended(const core::spinner&, const core::wait_node& node, const core::waiter& self,
                      core::claim how) noexcept {
        if (how != core::claim::signaled && core::is_sharer(&node))
            self.shared().leave_batch(1);  // shared_word-5
    }
};

// Makes the event visible as set; the set does not touch the event afterwards (event-5). Returns whether the caller has
// to look at all_waiters.
bool show(event_byte& state, const core::wait_queue& queue) noexcept {
    const std::uint8_t stay = queue.has_subscribers() ? parked_bit : unset;
    state.exchange(static_cast<std::uint8_t>(set_bit | stay), std::memory_order_release);  // [event-publish]
    return queue.has_all_waiters();
}

void wake(core::release_list&& freed, wake_list* later) noexcept {
    if (later == nullptr) return freed.wake();
    freed.raise_pollables();  // a pollable's destructor waits for its raise
    left_wakes::add(*later, std::move(freed));
}

// Makes the event unset. The caller holds the lock.
void drop(event_byte& state) noexcept {
    // [event-publish] acquires: what is dropped may be what an earlier set published.
    state.fetch_and(static_cast<std::uint8_t>(~(set_bit | held_bit)), std::memory_order_acquire);
}

// What becomes of an auto-reset event that nobody takes.
enum class untaken : bool { stays_set, is_lost };

// Hands an auto-reset event to the oldest waiter that can take it. If the queue has many nodes that stay (lot-8), frees
// the lock now and then.
void hand_over(event_byte& state, wake_list* later, untaken otherwise = untaken::stays_set) noexcept {
    const core::defer_resumes after_all;
    const core::wait_key key = key_of(state);
    core::queue_cursor offered(key);
    for (;;) {
        core::wait_node* undecided = nullptr;  // of an all_waiter that perhaps lacks only this event
        core::release_list freed;
        core::offer_result result;
        bool all_waiters = false;
        {
            core::locked_queue queue(key);
            if (otherwise == untaken::is_lost) drop(state);
            result = queue.give_to_one(freed, offered, undecided);
            if (result == core::offer_result::declined && otherwise == untaken::stays_set) {
                all_waiters = show(state, queue);
            } else if (queue.empty()) {
                clear(state, parked_bit);
            }
        }
        const bool declined = undecided != nullptr && !undecided->all->commit(undecided);
        if (!declined && result != core::offer_result::unfinished)
            TOCSIN_PROBE(set, &state, reset_mode::auto_reset,
                         static_cast<std::size_t>(result != core::offer_result::declined));
        wake(std::move(freed), later);
        if (all_waiters) core::satisfy_all_waiters(key);
        if (!declined && result != core::offer_result::unfinished) return;
    }
}

void open_gate(event_byte& state, wake_list* later) noexcept {
    const core::defer_resumes after_all;
    const core::wait_key key = key_of(state);
    core::release_list taken;
    std::size_t released = 0;
    bool all_waiters = false;
    {
        core::locked_queue queue(key);
        all_waiters = show(state, queue);
        taken = queue.take(static_cast<std::size_t>(-1), released);
    }
    TOCSIN_PROBE(set, &state, reset_mode::manual_reset, released);
    wake(std::move(taken), later);
    if (all_waiters) core::satisfy_all_waiters(key);
}

// Releases those who wait, and leaves the event unset (event-7).
void pulse_gate(event_byte& state) noexcept {
    const core::defer_resumes after_all;
    core::release_list taken;
    {
        core::locked_queue queue(key_of(state));
        taken = queue.take_all();
        const bool parked = queue.has_subscribers();
        state.exchange(parked ? parked_bit : unset,
                       std::memory_order_acquire);  // [event-publish] as in drop()
    }
    taken.wake();
}

// Whether the event is set although no other thread holds it.
bool is_set_for_good(const event_byte& state) noexcept {
    core::locked_queue queue(key_of(state));
    return (state.load(std::memory_order_acquire) & set_bit) != 0;  // [event-publish]
}

event_byte& byte_of(void* event) noexcept { return *static_cast<event_byte*>(event); }

template <reset_mode Mode, event_use Use = event_use::event>
constexpr lot_source source_of{
    .wait_kind = static_cast<std::uint8_t>(core::wait_kind::event),
    .try_take = [](void* event) noexcept { return event_try_wait<Mode>(byte_of(event)); },
    .looks_ready =
        [](const void* event) noexcept {
            // no order: a guess. The fences of [all-check] make sure that it is recent enough.
            return (static_cast<const event_byte*>(event)->load(std::memory_order_relaxed) & set_bit) != 0;
        },
    .hold =
        [](void* event) noexcept {
            std::uint8_t seen =
                byte_of(event).load(std::memory_order_relaxed);  // no order: the exchange decides
            while ((seen & set_bit) != 0) {
                // [event-publish] acquires what the set published.
                if (byte_of(event).compare_exchange_weak(seen, static_cast<std::uint8_t>(seen | held_bit),
                                                         std::memory_order_acquire,
                                                         std::memory_order_relaxed)) {
                    return true;
                }
            }
            return false;
        },
    .take_held =
        [](void* event) noexcept {
            // [all-taken] releases. Whoever sees this event taken finds the wait's other events held or taken, and
            // looks at a held one under the lock.
            constexpr std::uint8_t gone = Mode == reset_mode::manual_reset ? held_bit : set_bit | held_bit;
            byte_of(event).fetch_and(static_cast<std::uint8_t>(~gone), std::memory_order_release);
        },
    .unhold = [](void* event) noexcept { clear(byte_of(event), held_bit); },
    .mark_parked =
        [](void* event, bool even_if_set) noexcept {
            if (!even_if_set) return mark_parked(byte_of(event));
            forget_hold(byte_of(event));
            byte_of(event).fetch_or(parked_bit, std::memory_order_relaxed);  // no order: event-1
            return true;
        },
    .clear_parked = [](void* event) noexcept { clear(byte_of(event), parked_bit); },
    .give_back = Mode == reset_mode::manual_reset
                     ? nullptr
                     : +[](void* event) noexcept { event_set_slow(byte_of(event), Mode); },
    .use = Use,
    .ready_bit = set_bit,
};

}  // namespace

const lot_source manual_reset_source = source_of<reset_mode::manual_reset>;
const lot_source auto_reset_source = source_of<reset_mode::auto_reset>;
const lot_source auto_reset_priority_source = [] {
    lot_source made = source_of<reset_mode::auto_reset>;
    made.order = queue_order::priority;
    return made;
}();
const lot_source latch_source = source_of<reset_mode::manual_reset, event_use::latch>;
const lot_source barrier_source = source_of<reset_mode::manual_reset, event_use::barrier>;

void event_set_slow(event_byte& state, reset_mode mode, wake_list* freed) noexcept {
    core::order::before(&state);
    const bool manual = mode == reset_mode::manual_reset;
    const auto open = [](void* event) noexcept { open_gate(byte_of(event), nullptr); };
    const auto give = [](void* event) noexcept { hand_over(byte_of(event), nullptr); };
    // A deferred set gets no `freed`, which may be gone when the set runs.
    if (core::signal_deferral::defer(manual ? +open : +give, &state)) return;
    manual ? open_gate(state, freed) : hand_over(state, freed);
}

void event_reset_slow(event_byte& state) noexcept {
    const auto reset = [](void* event) noexcept {
        core::locked_queue queue(key_of(byte_of(event)));
        drop(byte_of(event));
    };
    if (core::signal_deferral::is_inside() && !core::signal_deferral::has_deferred(&state) &&
        (state.load(std::memory_order_acquire) & (set_bit | held_bit)) == 0) {  // [event-publish]
        return;  // unset already. If this reset were deferred, it could undo a later set().
    }
    if (!core::signal_deferral::defer(reset, &state)) reset(&state);
    core::order::after(&state);
}

void event_pulse(event_byte& state, reset_mode mode) noexcept {
    if (mode == reset_mode::manual_reset) return pulse_gate(state);
    hand_over(state, nullptr, untaken::is_lost);
}

// A signal handler can't wait for the thread that it has interrupted. So if that thread is inside the library, the
// handler doesn't take the lock here. To such a handler, a held event looks set. The handler passes a manual-reset
// event, but can't take an auto-reset event. This is so even if the event is held by a wait for all that has already
// taken another event.

bool event_is_set_slow(const event_byte& state) noexcept {
    if (core::signal_deferral::is_inside()) return true;
    return core::order::after(&state, is_set_for_good(state), true);
}

bool event_try_wait_slow(event_byte& state, reset_mode mode) noexcept {
    if (core::signal_deferral::is_inside()) return false;
    core::locked_queue queue(key_of(state));
    forget_hold(state);
    return core::order::after(&state, event_try_wait(state, mode), true);
}

wait_status event_wait_slow(event_byte& state, reset_mode mode, const wait_options& options) noexcept {
    event_wait wait(state, mode, options);
    const wait_status ended = core::status_from(core::park(wait, options), wait_status::signaled);
    return core::order::after(&state, ended, wait_status::signaled);
}

void event_check_destroyed(const event_byte& state, const char* type) noexcept {
    if ((state.load(std::memory_order_relaxed) & parked_bit) == 0) return;  // no order: may miss the misuse
    core::check_nobody_waits(key_of(state), type);                          // event-2
}

}  // namespace tocsin::detail
