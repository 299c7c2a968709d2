// SPDX-License-Identifier: Apache-2.0
// Events: one byte that threads wait on and any thread sets.
//
//     tocsin::auto_reset_event ready;
//     std::jthread consumer([&] { ready.wait(); });
//     ready.set();
//
// Any thread may call any member at any time: before main, after it, and in destructors of thread-local objects. An
// event owns nothing: no heap memory, no kernel object, no registration. It is constant-initialized and, except in
// checked builds, trivially destructible.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/event_state.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <type_traits>

namespace tocsin {
namespace detail {

template <reset_mode Mode, event_use Use = event_use::event, queue_order Order = queue_order::arrival>
struct fixed_mode {
    static constexpr reset_mode mode() noexcept { return Mode; }
    static constexpr event_use use() noexcept { return Use; }
    static constexpr queue_order order() noexcept { return Order; }
};

class chosen_mode {
public:
    constexpr explicit chosen_mode(reset_mode mode) noexcept : mode_(mode) {}
    constexpr reset_mode mode() const noexcept { return mode_; }
    static constexpr event_use use() noexcept { return event_use::event; }
    static constexpr queue_order order() noexcept { return queue_order::arrival; }

private:
    reset_mode mode_;
};

// What the event classes below share. `Mode` says how an event becomes unset.
template <class Mode>
class basic_event {
public:
    constexpr basic_event() noexcept = default;
    constexpr explicit basic_event(bool initially_set) noexcept : basic_event(Mode(), initially_set) {}
    basic_event(const basic_event&) = delete;
    basic_event& operator=(const basic_event&) = delete;

#if TOCSIN_CHECKED
    // Checked builds stop the program if a thread still waits, unless exit() destroys the event.
    constexpr ~basic_event() {
        if (std::is_constant_evaluated()) return;
        check_destroyed(mode_.mode() == reset_mode::manual_reset ? "manual_reset_event" : "auto_reset_event");
    }
#else
    ~basic_event() = default;
#endif

    // Sets the event. A manual-reset event releases every thread that waits at this moment, even if reset() follows at
    // once, and lets later threads pass until reset(). An auto-reset event hands itself to exactly one waiter: the one
    // that has queued longest among those that can take it. If there is none, it stays set until a wait consumes it.
    // Memory: what the caller did before is visible to every thread that this call releases, and to every thread that
    // finds the event set, even if the event was set before this call.
    // Lifetime: a thread that was released, or that saw the event set, may destroy the event at once.
    // Cost: without waiters, one read-modify-write (on x86 a fence and a load if the event is set already). With
    // waiters, a short lock and at most a few system calls, however many wait ("Events" in docs/guide.md).
    // Never blocks on a waiter, but coroutines that it releases may run inside it: in the order of their arrival, once
    // all threads have been released (await.hpp). In which order these threads then run is up to the system. Safe in a
    // signal handler, with the portable backend only while no thread waits for the event. The call may be deferred
    // until just after the handler ("Signal handlers" in docs/guide.md).
    void set() noexcept {
        if (!set_inline()) event_set_slow(state_, mode_.mode());
    }

    // The same, but leaves the waking to the caller: adds the waits that it ends to `freed` (source.hpp). It is meant
    // for a caller that sets several events, or that holds a lock which the woken threads want. When this returns, the
    // event is set or handed over, unless the set is deferred (see above). If it is set, a pollable of it
    // (pollable.hpp) is readable. Two kinds of waits are not added, because the set releases them itself: waits for all
    // of several sources and, if the set is deferred, all waits. Allocates nothing.
    void set(wake_list& freed) noexcept {
        if (!set_inline()) event_set_slow(state_, mode_.mode(), &freed);
    }

    // Makes the event unset. Waiters that have been released stay released. Cost: one read-modify-write, or two if the
    // event is unset; with waiters also a short lock.
    void reset() noexcept {
        std::uint8_t seen = event_state::set_bit;  // a guess, as in event_try_before_block()
        do {
            // With only the parked_bit, the event is unset already. But a set that a signal handler made may be
            // deferred, and still pending. In that case, a reset in a handler is deferred, too, so that it comes after
            // that set.
            if (seen == event_state::parked_bit || (seen & event_state::held_bit) != 0) [[unlikely]]
                return event_reset_slow(state_);
            // [event-publish] acquires: the reset may undo sets. A thread that resets the event and then finds nothing
            // to do must have seen what these sets published.
        } while (!state_.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen & ~event_state::set_bit),
                                               std::memory_order_acquire, std::memory_order_relaxed));
    }

    // Whether the event is set right now. Consumes nothing. Cost: one plain load. During the few instructions in which
    // a wait_all() takes the event together with others, is_set() also takes a short lock.
    [[nodiscard]] bool is_set() const noexcept { return event_is_set(state_); }

    // Takes the event if it is set, without blocking, and returns whether it did. Taking consumes an auto-reset event,
    // and passes a manual-reset event. Cost: a load; for an auto-reset event that is set, also one read-modify-write.
    [[nodiscard]] bool try_wait() noexcept { return event_try_wait(state_, mode_.mode()); }

    // A thread that finds the event set takes the event and returns. Otherwise the thread blocks until a set() releases
    // it, and returns for no other reason: a signal handler does not end the wait, and errno stays as it is. Queued
    // waiters are served first in, first out. For a set(), a thread counts as waiting from the moment at which the
    // thread is queued. That is at once, or after up to 4 us of spinning where spinning has recently paid (spin.hpp). A
    // sleeping thread does not wake up now and then to look again (docs/platforms.md names the exceptions).
    // Cost: that of try_wait() if the event is set, else a short lock and one system call to sleep.
    void wait(spin_policy spin = {}) noexcept {
        if (!try_before_block()) (void)wait_with(deadline::never(), nullptr, spin);
    }

    // The same, but returns `stopped` when a stop is requested. If the event is set, the wait takes it first, even if
    // the stop was requested before. A wait that is stopped, or whose deadline passes, leaves nothing behind, and the
    // other waiters keep their places.
    [[nodiscard]] wait_status wait(const stop_token& stop, spin_policy spin = {}) noexcept {
        return try_before_block() ? wait_status::signaled : wait_with(deadline::never(), &stop, spin);
    }

    // The same, but returns `timed_out` when a deadline has passed, and never earlier. The deadline is a duration from
    // now or a time point of any clock (deadline.hpp). With a duration of zero or less, or a time in the past, the wait
    // only tries, with no system call. A timeout never eats a signal: if a set() has handed the event to this wait, the
    // wait returns `signaled`, even after the deadline.
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest,
                                       spin_policy spin = {}) noexcept {
        if (try_wait()) return wait_status::signaled;
        return longest > longest.zero() ? wait_with(longest, nullptr, spin) : wait_status::timed_out;
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest, const stop_token& stop,
                                       spin_policy spin = {}) noexcept {
        if (try_wait()) return wait_status::signaled;
        return longest > longest.zero() ? wait_with(longest, &stop, spin) : status_at_once(stop);
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_until(std::chrono::duration<Rep, Period> longest,
                                         spin_policy spin = {}) noexcept {
        return wait_for(longest, spin);
    }
    [[nodiscard]] wait_status wait_until(const deadline& until, spin_policy spin = {}) noexcept {
        if (try_wait()) return wait_status::signaled;
        return until.which() == deadline::clock::passed ? wait_status::timed_out
                                                        : wait_with(until, nullptr, spin);
    }
    [[nodiscard]] wait_status wait_until(const deadline& until, const stop_token& stop,
                                         spin_policy spin = {}) noexcept {
        if (try_wait()) return wait_status::signaled;
        return until.which() == deadline::clock::passed ? status_at_once(stop)
                                                        : wait_with(until, &stop, spin);
    }

    // For wait_any() and wait_all() (wait.hpp).
    operator source() & noexcept TOCSIN_LIFETIMEBOUND {
        return {&state_, event_source(mode_.mode(), mode_.use(), mode_.order())};
    }

    // Checked builds: ends the program if a thread still waits. The message calls the event a `type`.
    void check_destroyed(const char* type) const noexcept { event_check_destroyed(state_, type); }

    // For awaiters (await.hpp).
    friend constexpr Mode mode_of(const basic_event& event) noexcept { return event.mode_; }

protected:
    constexpr basic_event(Mode mode, bool initially_set) noexcept
        : state_(initially_set ? event_state::set_bit : event_state::unset), mode_(mode) {}

    constexpr reset_mode mode() const noexcept { return mode_.mode(); }

private:
    bool try_before_block() noexcept { return event_try_before_block(state_, mode_.mode()); }
    // Tries to set the event without a lock, which works if nobody waits, or if the event is set already. If it returns
    // false, event_set_slow() must set the event.
    bool set_inline() noexcept {
        std::uint8_t seen = state_.load(std::memory_order_relaxed);  // no order: a hint
        if (seen == event_state::unset) [[likely]] {
            // [event-publish] with the acquire of whoever takes or passes the event.
            return state_.compare_exchange_strong(seen, event_state::set_bit, std::memory_order_release,
                                                  std::memory_order_relaxed);
        }
        if (!event_state::is_plainly_set(seen)) return false;
        if (rmw_is_full_fence()) {
            full_fence();  // [event-publish] with the consumer's read-modify-write, itself a full fence
            return event_state::is_plainly_set(state_.load(std::memory_order_relaxed));
        }
        // [event-publish] It changes nothing, but it is a release.
        return state_.compare_exchange_strong(seen, seen, std::memory_order_release,
                                              std::memory_order_relaxed);
    }

    // The status of a wait that may not sleep and finds the event unset.
    static wait_status status_at_once(const stop_token& stop) noexcept {
        return stop.stop_requested() ? wait_status::stopped : wait_status::timed_out;
    }

    wait_status wait_with(const deadline& until, const stop_token* stop, spin_policy spin) noexcept {
        return event_wait_slow(state_, mode_.mode(), {until, stop, spin, mode_.use(), mode_.order()});
    }

    event_byte state_{event_state::unset};  // the first member, so its address is the event's
    TOCSIN_NO_UNIQUE_ADDRESS Mode mode_;
};

}  // namespace detail

namespace detail {
using latch_gate = basic_event<fixed_mode<reset_mode::manual_reset, event_use::latch>>;
using barrier_gate = basic_event<fixed_mode<reset_mode::manual_reset, event_use::barrier>>;
}  // namespace detail

// A gate: set() opens it. Then every thread that waits or arrives passes, until reset().
class manual_reset_event : public detail::basic_event<detail::fixed_mode<reset_mode::manual_reset>> {
    using basic_event::basic_event;
};

// A token: set() releases exactly one thread, either one that waits or the next that arrives. Setting an event that is
// set already adds no second token.
class auto_reset_event : public detail::basic_event<detail::fixed_mode<reset_mode::auto_reset>> {
    using basic_event::basic_event;
};

// The same, but set() releases the most urgent of the waiting threads first (queue_order.hpp).
class auto_reset_priority_event
    : public detail::basic_event<
          detail::fixed_mode<reset_mode::auto_reset, detail::event_use::event, queue_order::priority>> {
    using basic_event::basic_event;
};

// An event whose mode is chosen when it is constructed. It takes two bytes. Where the mode is known when the program is
// written, the classes above are smaller and say more.
class event : public detail::basic_event<detail::chosen_mode> {
public:
    constexpr explicit event(reset_mode mode, bool initially_set = false) noexcept
        : basic_event(detail::chosen_mode(mode), initially_set) {}

    using basic_event::mode;  // reset_mode mode() const noexcept
};

}  // namespace tocsin
