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

template <reset_mode Mode>
struct fixed_mode {
    static constexpr reset_mode mode() noexcept { return Mode; }
};

class chosen_mode {
public:
    constexpr explicit chosen_mode(reset_mode mode) noexcept : mode_(mode) {}
    constexpr reset_mode mode() const noexcept { return mode_; }

private:
    reset_mode mode_;
};

// What all events share; see the classes below. Mode says how they become unset.
template <class Mode>
class basic_event {
public:
    constexpr basic_event() noexcept = default;
    constexpr explicit basic_event(bool initially_set) noexcept : basic_event(Mode(), initially_set) {}
    basic_event(const basic_event&) = delete;
    basic_event& operator=(const basic_event&) = delete;

#if TOCSIN_CHECKED
    // Checked builds stop the program if a thread still waits.
    constexpr ~basic_event() {
        if (!std::is_constant_evaluated()) event_check_destroyed(state_, mode_.mode());
    }
#else
    ~basic_event() = default;
#endif

    // Manual: releases every thread that waits at this moment, even if reset() follows at once, and lets later ones
    // pass until reset(). Auto: hands itself to exactly one waiter, the one that has queued longest among those that
    // can take it; without one, stays set until a wait consumes it. So two set() calls release two waiters, even if
    // neither has run in between. If a thread is released by, passes or consumes a set, what the caller did before
    // set() is visible to it. This holds even for a set() that finds the event set and changes nothing. The released
    // thread may destroy the event or unmap its memory at once, and so may one that only polled it: set() does not
    // touch the event after the step that makes it visible.
    // Cost: one read-modify-write without waiters; on a set event a fence and a load (x86; elsewhere a short lock and a
    // read-modify-write); with waiters a short lock and at most a few system calls to wake, however many wait. Under
    // that lock, a few nanoseconds for each waiter that may also end otherwise (by a deadline, a stop or another
    // source). It looks once at each wait_all() in its queue, and frees the lock after every 64 of them.
    // Never blocks on a waiter, but coroutines that it releases may run inside it (await.hpp). Safe in a signal handler
    // (Linux futex; with the portable backend only while nobody waits). If the handler interrupted a critical section
    // of this library in its own thread, its set or reset of an event with waiters takes effect just after it returns.
    void set() noexcept {
        if (!set_inline()) event_set_slow(state_, mode_.mode());
    }

    // The same, but leaves the waking to `freed` (source.hpp): the event is set, or handed over, when this returns.
    // For a caller that sets several events, or holds a lock that the woken threads want. Waits for all are released
    // at once. So is everybody if this is in a signal handler that interrupted the library. Allocates nothing.
    void set(wake_list& freed) noexcept {
        if (!set_inline()) event_set_slow(state_, mode_.mode(), &freed);
    }

    // Makes it unset. Waiters that have been released stay released. Cost: one read-modify-write; with waiters also a
    // short lock.
    void reset() noexcept {
        std::uint8_t seen = state_.load(std::memory_order_relaxed);  // no order: the exchange decides
        do {
            // A waiter is parked, so it was unset. But a signal handler may have deferred a set of it.
            if (seen == event_state::parked_bit || (seen & event_state::held_bit) != 0) [[unlikely]]
                return event_reset_slow(state_);
            // [event-publish] acquires: a thread that resets and then finds nothing to do must have seen what the
            // sets that it wiped out published.
        } while (!state_.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen & ~event_state::set_bit),
                                               std::memory_order_acquire, std::memory_order_relaxed));
    }

    // Whether it is set right now. Consumes nothing. Cost: one plain load. (A short lock during the few instructions
    // in which a wait_all() takes it together with others.)
    [[nodiscard]] bool is_set() const noexcept { return event_is_set(state_); }

    // Takes the event if it is set, without blocking: consumes an auto-reset event, passes a manual one. Cost: a
    // load; for an auto-reset event that is set, also one read-modify-write.
    [[nodiscard]] bool try_wait() noexcept { return event_try_wait(state_, mode_.mode()); }

    // Blocks until set() releases it, and returns for no other reason. Queued waiters are served first in, first out;
    // a thread that arrives while the event is set may take it at once. A thread waits from the moment it is queued:
    // at once or, where a short look has paid before, after up to 4 us of looking (spin.hpp). A sleeping thread does
    // not wake up now and then to look again (docs/platforms.md names the exceptions).
    // Cost: as try_wait() if it is set, else a short lock and one system call to sleep.
    void wait(spin_policy spin = {}) noexcept {
        if (!try_wait()) (void)wait_with(deadline::never(), nullptr, spin);
    }

    // The same, but returns `stopped` when a stop is requested. An event that is set is taken first, even if the stop
    // was requested before.
    [[nodiscard]] wait_status wait(const stop_token& stop, spin_policy spin = {}) noexcept {
        return try_wait() ? wait_status::signaled : wait_with(deadline::never(), &stop, spin);
    }

    // The same until a deadline: a duration from now or a time point of any clock (deadline.hpp). A duration of zero
    // or less, or a time in the past, only tries, with no system call. A timeout never eats a signal: if the event
    // was handed to this wait, it returns `signaled`, even after the deadline. It never returns `timed_out` early.
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest,
                                       spin_policy spin = {}) noexcept {
        if (try_wait()) return wait_status::signaled;
        return longest > longest.zero() ? wait_with(longest, nullptr, spin) : wait_status::timed_out;
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest, const stop_token& stop,
                                       spin_policy spin = {}) noexcept {
        return try_wait() ? wait_status::signaled : wait_with(longest, &stop, spin);
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
        return try_wait() ? wait_status::signaled : wait_with(until, &stop, spin);
    }

    // For wait_any() and wait_all() (wait.hpp).
    operator source() & noexcept TOCSIN_LIFETIMEBOUND { return {&state_, event_source(mode_.mode())}; }

    // For awaiters (await.hpp).
    friend constexpr Mode mode_of(const basic_event& event) noexcept { return event.mode_; }

protected:
    constexpr basic_event(Mode mode, bool initially_set) noexcept
        : state_(initially_set ? event_state::set_bit : event_state::unset), mode_(mode) {}

    constexpr reset_mode mode() const noexcept { return mode_.mode(); }

private:
    // Sets it, unless somebody waits.
    bool set_inline() noexcept {
        std::uint8_t seen = state_.load(std::memory_order_relaxed);  // no order: a hint
        if (seen == event_state::unset) [[likely]] {
            // [event-publish] with the acquire of whoever takes or passes the event.
            return state_.compare_exchange_strong(seen, event_state::set_bit, std::memory_order_release,
                                                  std::memory_order_relaxed);
        }
        if (rmw_is_full_fence() && event_state::is_plainly_set(seen)) {
            full_fence();  // [event-publish] with the consumer's read-modify-write, itself a full fence
            return event_state::is_plainly_set(state_.load(std::memory_order_relaxed));
        }
        return false;
    }

    wait_status wait_with(const deadline& until, const stop_token* stop, spin_policy spin) noexcept {
        return event_wait_slow(state_, mode_.mode(), {until, stop, spin});
    }

    event_byte state_{event_state::unset};  // first: its address is the event's
    TOCSIN_NO_UNIQUE_ADDRESS Mode mode_;
};

}  // namespace detail

// A gate. set() lets every thread through that waits or arrives, until reset().
class manual_reset_event : public detail::basic_event<detail::fixed_mode<reset_mode::manual_reset>> {
    using basic_event::basic_event;
};

// A token. set() releases exactly one thread: one that waits, or the next that arrives. Setting a set event adds no
// second token.
class auto_reset_event : public detail::basic_event<detail::fixed_mode<reset_mode::auto_reset>> {
    using basic_event::basic_event;
};

// One or the other, chosen when it is made: two bytes. Where the mode is known when the program is written, the classes
// above are smaller and say more.
class event : public detail::basic_event<detail::chosen_mode> {
public:
    constexpr explicit event(reset_mode mode, bool initially_set = false) noexcept
        : basic_event(detail::chosen_mode(mode), initially_set) {}

    using basic_event::mode;  // reset_mode mode() const noexcept
};

}  // namespace tocsin
