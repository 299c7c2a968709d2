// What limits a wait: the first argument of wait_any(), wait_all() and the waits of coroutines, wait_set, group_commit
// and coalescer.
//
//     tocsin::wait_any({.until = 50ms, .stop = token}, job, tocsin::readable(socket));
//     set.wait({.until = tomorrow}, ready);
//     co_await tocsin::async_wait({.stop = token}, job);
//
// Calls on a single object (an event, an address, a lock, a handler_thread) keep the shape of the standard library:
// wait(), wait_for(duration), wait_until(time), with an optional stop token after the time and an optional spin policy
// last.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/stop_token.hpp>

namespace tocsin {

// Refers to a stop token, or to none. A copy of a token costs an atomic increment and a decrement; a reference costs
// nothing.
class stop_reference {
public:
    constexpr stop_reference() noexcept = default;
    constexpr stop_reference(const stop_token& token TOCSIN_LIFETIMEBOUND) noexcept  // implicit on purpose
        : token_(&token) {}

    constexpr const stop_token* get() const noexcept { return token_; }  // null: none

private:
    const stop_token* token_ = nullptr;
};

// Write the limits in the call. Named limits must not outlive the stop token, nor a time point of a clock of your own.
struct limits {
    // The wait ends with `timed_out` when this has passed. A duration counts from when the limits are made, which costs
    // a look at the clock. So named limits end all their waits at the same time. A time point may be of any clock.
    deadline until = deadline::never();
    // The wait ends with `stopped` when a stop is requested. If a source is ready, it is taken first.
    stop_reference stop{};
    // How wait_any() looks before it sleeps. All other waits over several things sleep at once.
    spin_policy spin{};
};

namespace detail {

template <class...>
inline constexpr bool never = false;  // for a static_assert that fails only in a call

inline wait_options options_of(const limits& how) noexcept { return {how.until, how.stop.get(), how.spin}; }

}  // namespace detail
}  // namespace tocsin
