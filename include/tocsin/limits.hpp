// SPDX-License-Identifier: Apache-2.0
// The limits of a wait: its deadline, its stop token and its spin policy. A `limits` object is the first argument of
// wait_any() and wait_all(), of the waits of coroutines, of senders, of an operation's start(), and of the waits of
// wait_set, group_commit and coalescer. Other calls take it behind an argument of another kind. any_operation() and
// all_operation() take it behind the function, and a condition's wait_any() behind the lock. The functions for Asio,
// libuv and GLib take it in front of the sources.
//
//     if (tocsin::wait_any({.until = 50ms, .stop = token}, job, tocsin::readable(socket)).index == 0) work();
//     const auto [status, count] = set.wait({.until = tomorrow}, ready);
//     const auto how = co_await tocsin::async_wait({.stop = token}, job);
//
// Other waits take no `limits` but keep the shape of the standard library: wait(), wait_for(duration),
// wait_until(time), or a semaphore's acquire(), try_acquire_for() and try_acquire_until(). These are the calls in which
// a thread waits for one thing: an event, a semaphore, a latch, a wait_group, a barrier, a condition, an address, a
// lock, a send or a receive of a channel, or room in a handler_thread. Where such a call takes a stop token or a spin
// policy, the token follows the time, and the policy comes last. Both are optional. (With a predicate, a condition also
// takes the token in front of the time, as the standard does.)
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/stop_token.hpp>

namespace tocsin {

// Refers to a stop token, or to none. Copying a token costs an atomic increment, and destroying the copy an atomic
// decrement. Copying a stop_reference costs neither.
class stop_reference {
public:
    constexpr stop_reference() noexcept = default;
    constexpr stop_reference(const stop_token& token TOCSIN_LIFETIMEBOUND) noexcept  // implicit on purpose
        : token_(&token) {}
    stop_reference(const stop_reference&) noexcept = default;
    stop_reference& operator=(const stop_reference&) noexcept = default;
    stop_reference& operator=(const stop_token&&) = delete;  // the token would be gone with the statement

    // The token, or null if it refers to none.
    constexpr const stop_token* get() const noexcept { return token_; }

private:
    const stop_token* token_ = nullptr;
};

// In which order a wait for any looks at its sources when it begins. (Once it sleeps, the first source that becomes
// ready ends it.)
enum class wait_order : bool {
    listed,  // takes the ready source with the lowest index, as Windows does. A source that is always ready hides all
             // sources behind it, timers among them.
    fair,  // begins with a source chosen at random, and continues in the order of the list, and then from its front. So
    // each of n sources that stay ready is taken by at least one of n waits, on average.
};

// Write the limits directly in the call, as in the examples above. A `limits` object refers to its stop token. So if
// you give the object a name, it must not outlive the token. (clang warns if the token is a temporary object, and GCC
// doesn't.) If its deadline was made from a time point of a clock of your own, the object must not outlive that time
// point, either.
struct limits {
    // When this deadline has passed, the wait ends with `timed_out`. A duration counts from the moment at which the
    // limits are made. So one `limits` object that is used for several waits ends them all at the same time. (A
    // duration above zero costs a look at the clock.) A time point may be of any clock.
    deadline until = deadline::never();
    // When a stop is requested, the wait ends with `stopped`. If a source is ready at the start of the wait (for a wait
    // for all: if all are), the wait takes it first, even if the stop was requested before. See `stop_first`.
    stop_reference stop{};
    // How long wait_any(), also that of a condition, wait_all() and a wait_set look for what is ready before they
    // sleep. A group_commit asks only whether the policy is adaptive: if it is, a thread that joins may yield before it
    // sleeps. All other calls that take limits ignore the policy: they sleep, or suspend, at once.
    spin_policy spin{};
    // For waits for any of several sources: of threads, coroutines, operations and senders, and of a condition.
    wait_order order = wait_order::listed;
    // If true, a stop that was requested before the wait begins ends it at once, even if a source is ready. For waits
    // for any or for all, of threads, coroutines, operations and senders, and for waits of a wait_set. So a loop whose
    // sources are always ready ends when it is to stop. (A deadline is never looked at first. Let a timer, at(), be a
    // source.)
    bool stop_first = false;
};

namespace detail {

template <class...>
inline constexpr bool never = false;  // for a static_assert that fails only if its function is called

// Whether a stop has been requested that ends a wait before it looks at its sources.
inline bool is_stopped_first(const limits& how) noexcept {
    return how.stop_first && how.stop.get() != nullptr && how.stop.get()->stop_requested();
}
// Whether the first look may begin with the first source.
inline bool looks_as_listed(const limits& how) noexcept {
    return how.order == wait_order::listed && !how.stop_first;
}

inline wait_options options_of(const limits& how) noexcept { return {how.until, how.stop.get(), how.spin}; }

}  // namespace detail
}  // namespace tocsin
