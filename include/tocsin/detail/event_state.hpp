// SPDX-License-Identifier: Apache-2.0
// The byte of an event, and the inline half of its calls. The protocol, and why it is correct: src/event.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>

#include <cstdint>

namespace tocsin {

// What makes a set event unset: a call of reset(), or the wait that the event releases.
enum class reset_mode : std::uint8_t { manual_reset, auto_reset };

}  // namespace tocsin

namespace tocsin::detail {

using event_byte = atomic<std::uint8_t>;

template <class Mode>
class basic_event;  // event.hpp

namespace event_state {
inline constexpr std::uint8_t unset = 0b000;
inline constexpr std::uint8_t set_bit = 0b001;
inline constexpr std::uint8_t parked_bit = 0b010;  // a waiter's node is queued in the lot
inline constexpr std::uint8_t held_bit = 0b100;  // set, but a wait for all is taking it: look under the lock

constexpr bool is_plainly_set(std::uint8_t seen) noexcept { return (seen & (set_bit | held_bit)) == set_bit; }
}  // namespace event_state

TOCSIN_API bool event_is_set_slow(const event_byte& state) noexcept;
TOCSIN_API bool event_try_wait_slow(event_byte& state, reset_mode mode) noexcept;

inline bool event_is_set(const event_byte& state) noexcept {
    const std::uint8_t seen = state.load(std::memory_order_acquire);  // [event-publish] [all-taken]
    // A thread that polls finds the event unset every time but the last.
    if ((seen & event_state::set_bit) == 0) [[likely]]
        return false;
    return (seen & event_state::held_bit) == 0 || event_is_set_slow(state);
}

// Takes an auto-reset event if it is set. `seen` is what the caller has seen of it, or guesses.
inline bool event_take(event_byte& state, std::uint8_t seen) noexcept {
    while ((seen & event_state::set_bit) != 0) {
        if ((seen & event_state::held_bit) != 0) [[unlikely]]
            return event_try_wait_slow(state, reset_mode::auto_reset);
        const auto taken = static_cast<std::uint8_t>(seen & ~event_state::set_bit);
        // If it succeeds, [event-publish] acquires what the set published. If it fails, [all-taken] acquires: a thread
        // that finds this event taken by a wait for all sees that wait's other events held.
        if (state.compare_exchange_weak(seen, taken, std::memory_order_acquire)) return true;
    }
    return false;
}

template <reset_mode Mode>
bool event_try_wait(event_byte& state) noexcept {
    if constexpr (Mode == reset_mode::manual_reset) {
        // [event-publish] [all-taken] as in event_is_set(), for a thread that finds the event set
        const auto seen = state.load(std::memory_order_acquire);
        return event_state::is_plainly_set(seen) ||
               ((seen & event_state::held_bit) != 0 && event_is_set_slow(state));
    } else {
        return event_take(state, state.load(std::memory_order_acquire));  // [all-taken] as in event_take()
    }
}

inline bool event_try_wait(event_byte& state, reset_mode mode) noexcept {
    return mode == reset_mode::manual_reset ? event_try_wait<reset_mode::manual_reset>(state)
                                            : event_try_wait<reset_mode::auto_reset>(state);
}

// The first step of a wait that blocks if the event is not set. Guesses that an auto-reset event is set, and does not
// load it first: on some processors, a load that follows a read-modify-write takes nearly as long as a second
// read-modify-write (docs/decisions/0041-a-wait-guesses.md).
inline bool event_try_before_block(event_byte& state, reset_mode mode) noexcept {
    return mode == reset_mode::manual_reset ? event_try_wait<reset_mode::manual_reset>(state)
                                            : event_take(state, event_state::set_bit);
}

// Adds the waits that it ends to `freed`, whose owner then releases them. If `freed` is null, releases them itself.
TOCSIN_API void event_set_slow(event_byte& state, reset_mode mode, wake_list* freed = nullptr) noexcept;
TOCSIN_API void event_reset_slow(event_byte& state) noexcept;
// Releases those who wait at this moment: all (manual reset), or the one that has waited longest (auto reset). The
// event is unset afterwards. A wait for all takes part only in the pulse of an auto-reset event. Not for signal
// handlers.
TOCSIN_API void event_pulse(event_byte& state, reset_mode mode) noexcept;
TOCSIN_API wait_status event_wait_slow(event_byte& state, reset_mode mode,
                                       const wait_options& options) noexcept;
// Ends the program if a thread waits on the event. The message calls the event a `type`.
TOCSIN_API void event_check_destroyed(const event_byte& state, const char* type) noexcept;

// How a wait for several sources uses an event. event_source() is a function instead of a constant, because the address
// of an object in a DLL is not a constant.
TOCSIN_API extern const lot_source manual_reset_source;
TOCSIN_API extern const lot_source auto_reset_source;
// The same for the manual-reset events that latches and barriers have.
TOCSIN_API extern const lot_source auto_reset_priority_source;
TOCSIN_API extern const lot_source latch_source;
TOCSIN_API extern const lot_source barrier_source;
inline const lot_source& event_source(reset_mode mode, event_use use = event_use::event,
                                      queue_order order = queue_order::arrival) noexcept {
    if (order == queue_order::priority) return auto_reset_priority_source;
    if (use != event_use::event) return use == event_use::latch ? latch_source : barrier_source;
    return mode == reset_mode::manual_reset ? manual_reset_source : auto_reset_source;
}

}  // namespace tocsin::detail
