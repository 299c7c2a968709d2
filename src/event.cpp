// The protocol of both events: one byte here, a queue in the lot (core/lot/lot.hpp).
//
// State: the byte holds three bits, `set`, `parked` and `held`.
//
// Invariants
//   event-1  `parked` changes only under the lock of the event's bucket.
//   event-2  Whenever that lock is free:
//       legal: `parked` is on, and the event's queue is not empty; it is off, and the queue is empty; in the child of a
//       fork, which has no queues, it is on although the queue is empty: the next set or wait puts it right.
//       illegal: `parked` is off although the queue is not empty; it is on although the queue is empty, and no fork has
//       emptied it.
//   event-3  Whenever that lock is free, `set` and `parked` are both on only if all queued nodes are those of
//       subscribers and all_waiters (core/lot/subscriber.hpp). If any other waiter is parked, a set hands the event
//       over instead (auto) or releases all such waiters in the same step (manual). By then it has asked all
//       subscribers and all_waiters.
//   event-4  A set of an event with waiters becomes visible under the lock, in one step with taking them off the queue.
//       So a set that is still under way can never release a waiter that queued after a reset() that came after it, nor
//       a waiter of a later event at the same address.
//   event-5  A set does not touch the event after the step that makes it visible (the exchange; or, when it hands
//       over, the release of the waiter, which a set into a wake_list leaves to the caller). Afterwards it may still
//       search the queue of that address for all_waiters; a queued node implies that its event still exists.
//   event-6  `held` is on only while `set` is on and the lock is taken. Meanwhile only the thread that turned it on
//       changes the byte. Any other thread that wants to change the byte, or to tell what it says, first takes the
//       lock. (In the child of a fork the bit may have stayed on. Whoever changes the byte under the lock turns it
//       off.)
//
// No lost wake-up: a wait moves the byte from unset to parked by a compare-and-exchange under the lock. A set moves it
// from unset to set by a compare-and-exchange without the lock. All changes of one byte have one order. If the set
// comes first, the wait sees it and takes it. If the wait comes first, the set fails, takes the lock, and finds the
// node, which was queued before the lock was freed. A wait that times out or is stopped first claims its own waiter
// (waiter.cpp). A set that finds it claimed tries the next waiter, or leaves the event set.
//
// Memory order
//   [event-publish]  every set() releases, by its read-modify-write of the byte or (when it hands over) through
//                    [release] in waiter.cpp. Taking, passing and resetting acquire. All writes of the byte are
//                    read-modify-writes, so a later one never hides what an earlier set published. A set on a set
//                    event is, in general, the read-modify-write set -> set. On x86 it is a full fence and a load. If
//                    that load still sees the event set, the read-modify-write that takes it comes later, and is a
//                    full fence itself. So what the producer wrote before its fence is visible to what the consumer
//                    reads after its own. Without the fence the load may pass the producer's earlier stores, and the
//                    consumer sleeps on a full queue.
//   [all-taken]      a wait for all holds every source, then takes one after the other, which releases. is_set() and
//                    try_wait() acquire when they see it.
//   parked           is ordered by the lock. Its own accesses are relaxed.
//
// Checked by: tests/model/event_model_test.cpp, mix_model_test.cpp (event-2), wait_set_model_test.cpp (event-3),
// many_model_test.cpp (event-6) and first_look_model_test.cpp ([all-taken]); tests/unit/event_test.cpp,
// publication_test.cpp and unmapped_memory_test.cpp (event-5), tests/internal/fork_during_wait_all_test.cpp (event-6),
// tests/stress/, proofs/promela/event_lot.pml and wait_all.pml.
#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/wait/multi_wait.hpp"
#include "core/wait/spinner.hpp"
#include "platform/system/system.hpp"

#include <tocsin/event.hpp>

#include <cstdio>
#include <utility>

namespace tocsin::detail {
namespace {

using namespace event_state;

core::wait_key key_of(const event_byte& state) noexcept { return {&state, core::wait_kind::event}; }

// Sets the parked bit. False, and nothing done, if the event is set instead.
bool mark_parked(event_byte& state) noexcept {
    std::uint8_t seen = unset;
    return state.compare_exchange_strong(seen, parked_bit, std::memory_order_relaxed) ||
           seen == parked_bit;  // no order: the bucket's lock gives it
}

void clear(event_byte& state, std::uint8_t bits) noexcept {
    // [event-publish] a read-modify-write, so that it hides no earlier set; under the lock, which orders it
    state.fetch_and(static_cast<std::uint8_t>(~bits), std::memory_order_relaxed);
}

// Call it under the lock. Then nobody holds the event, and a held bit is from before a fork (event-6).
void forget_hold(event_byte& state) noexcept {
    if ((state.load(std::memory_order_relaxed) & held_bit) != 0) clear(state, held_bit);  // no order: event-6
}

// Queues the node, or takes the event if it turns out to be set.
bool take_or_park(event_byte& state, reset_mode mode, core::wait_node& node, bool may_share) noexcept {
    core::locked_queue queue(node.key);
    forget_hold(state);
    for (;;) {
        if (event_try_wait(state, mode)) return true;
        if (mark_parked(state)) {
            may_share ? queue.append_to_share(node) : queue.append(node);
            return false;
        }
    }
}

// Undoes take_or_park(), for a wait that ended for another reason.
void withdraw(event_byte& state, core::wait_node& node) noexcept {
    core::locked_queue queue(node.key);
    queue.remove(node);
    if (queue.empty()) clear(state, parked_bit);
}

// Makes the event visible as set, and returns whether all_waiters have to be looked at. The last touch (event-5).
bool show(event_byte& state, const core::wait_queue& queue) noexcept {
    const std::uint8_t stay = queue.has_subscribers() ? parked_bit : unset;
    state.exchange(static_cast<std::uint8_t>(set_bit | stay), std::memory_order_release);  // [event-publish]
    return queue.has_all_waiters();
}

void wake(core::release_list&& freed, wake_list* later) noexcept {
    later != nullptr ? left_wakes::add(*later, std::move(freed)) : freed.wake();
}

// Hands an auto-reset event to the first waiter that can take it, in the order of arrival, or leaves it set. Frees the
// lock now and then if many waits for all are in front of that waiter (lot-8).
void hand_over(event_byte& state, wake_list* later) noexcept {
    const core::defer_resumes after_all;
    const core::wait_key key = key_of(state);
    core::queue_cursor offered(key);
    for (;;) {
        core::wait_node* undecided = nullptr;  // of an all_waiter, which may have lacked only this event
        core::release_list freed;
        core::offer_result result;
        bool all_waiters = false;
        {
            core::locked_queue queue(key);
            result = queue.give_to_one(freed, offered, undecided);
            if (result == core::offer_result::declined) {
                all_waiters = show(state, queue);
            } else if (queue.empty()) {
                clear(state, parked_bit);
            }
        }
        const bool declined = undecided != nullptr && !undecided->all->commit(undecided);
        wake(std::move(freed), later);
        if (all_waiters) core::satisfy_all_waiters(key);
        if (!declined && result != core::offer_result::unfinished) return;
    }
}

void open_gate(event_byte& state, wake_list* later) noexcept {
    const core::defer_resumes after_all;
    const core::wait_key key = key_of(state);
    core::release_list taken;
    bool all_waiters = false;
    {
        core::locked_queue queue(key);
        all_waiters = show(state, queue);
        taken = queue.take_all();
    }
    wake(std::move(taken), later);
    if (all_waiters) core::satisfy_all_waiters(key);
}

event_byte& byte_of(void* event) noexcept { return *static_cast<event_byte*>(event); }

template <reset_mode Mode>
constexpr lot_source source_of{
    .wait_kind = static_cast<std::uint8_t>(core::wait_kind::event),
    .try_take = [](void* event) noexcept { return event_try_wait<Mode>(byte_of(event)); },
    .looks_ready =
        [](const void* event) noexcept {
            // no order: a guess; the fences of [all-check] make sure that it is not too old
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
            // [all-taken] releases: whoever sees this one taken finds the others held, and looks under the lock.
            constexpr std::uint8_t gone = Mode == reset_mode::manual_reset ? held_bit : set_bit | held_bit;
            byte_of(event).fetch_and(static_cast<std::uint8_t>(~gone), std::memory_order_release);
        },
    .unhold = [](void* event) noexcept { clear(byte_of(event), held_bit); },
    .mark_parked =
        [](void* event, bool even_if_set) noexcept {
            if (!even_if_set) return mark_parked(byte_of(event));
            byte_of(event).fetch_or(parked_bit, std::memory_order_relaxed);  // no order: event-1
            return true;
        },
    .clear_parked = [](void* event) noexcept { clear(byte_of(event), parked_bit); },
    .give_back = Mode == reset_mode::manual_reset
                     ? nullptr
                     : +[](void* event) noexcept { event_set_slow(byte_of(event), Mode); },
};

}  // namespace

const lot_source manual_reset_source = source_of<reset_mode::manual_reset>;
const lot_source auto_reset_source = source_of<reset_mode::auto_reset>;

void event_set_slow(event_byte& state, reset_mode mode, wake_list* freed) noexcept {
    const bool manual = mode == reset_mode::manual_reset;
    const auto open = [](void* event) noexcept { open_gate(byte_of(event), nullptr); };
    const auto give = [](void* event) noexcept { hand_over(byte_of(event), nullptr); };
    // A deferred set does not know how long `freed` exists.
    if (core::signal_deferral::defer(manual ? +open : +give, &state)) return;
    manual ? open_gate(state, freed) : hand_over(state, freed);
}

void event_reset_slow(event_byte& state) noexcept {
    const auto reset = [](void* event) noexcept {
        core::locked_queue queue(key_of(byte_of(event)));
        byte_of(event).fetch_and(static_cast<std::uint8_t>(~(set_bit | held_bit)),
                                 std::memory_order_acquire);  // [event-publish]
    };
    if (!core::signal_deferral::defer(reset, &state)) reset(&state);
}

// A signal handler cannot wait for the thread that it has interrupted. To a handler, a held event is still set and
// cannot be taken, even if another event that is taken with it is gone already.

bool event_is_set_slow(const event_byte& state) noexcept {
    if (core::signal_deferral::is_inside()) return true;
    core::locked_queue queue(key_of(state));
    return (state.load(std::memory_order_acquire) & set_bit) != 0;  // [event-publish]
}

bool event_try_wait_slow(event_byte& state, reset_mode mode) noexcept {
    if (core::signal_deferral::is_inside()) return false;
    core::locked_queue queue(key_of(state));
    forget_hold(state);
    return event_try_wait(state, mode);
}

wait_status event_wait_slow(event_byte& state, reset_mode mode, const wait_options& options) noexcept {
    if (const core::claim ended = core::ended_before_wait(options); ended != core::claim::open)
        return core::status_from(ended, wait_status::signaled);
    const auto take = [&]() noexcept { return event_try_wait(state, mode); };
    core::spinner looking(key_of(state), options);
    if (looking.before_parking(take)) return wait_status::signaled;

    core::waiter self;
    core::wait_node node(key_of(state), self, core::can_cancel(options));
    const bool may_share =
        mode == reset_mode::manual_reset && (options.stop == nullptr || !options.stop->stop_possible());
    if (take_or_park(state, mode, node, may_share)) return wait_status::signaled;
    const core::claim how = looking.spin_then_sleep(self);
    if (how != core::claim::signaled) withdraw(state, node);
    return core::status_from(how, wait_status::signaled);
}

void event_check_destroyed(const event_byte& state, reset_mode mode) noexcept {
    if ((state.load(std::memory_order_relaxed) & parked_bit) == 0) return;  // no order: misuse, seen or not
    if (core::locked_queue(key_of(state)).empty()) return;                  // event-2: in the child of a fork
    char message[160];
    std::snprintf(message, sizeof message, "tocsin: %s at %p destroyed while threads wait on it\n",
                  mode == reset_mode::manual_reset ? "manual_reset_event" : "auto_reset_event",
                  static_cast<const void*>(&state));
    platform::die(message);
}

}  // namespace tocsin::detail
