// SPDX-License-Identifier: Apache-2.0
// A latch: threads count it down, and when it reaches zero, it lets every thread pass for ever.
//
//     tocsin::latch done(3);
//     for (int i = 0; i != 3; ++i) workers.emplace_back([&] { work(); done.count_down(); });
//     done.wait();
//
// It has the members of std::latch, and more ways to wait. It is a source: wait_any(), wait_all(), a wait_set and
// co_await take it alongside events (wait.hpp, wait_set.hpp, await.hpp). Any thread may call any member at any time. A
// latch is 8 bytes, owns nothing, and is constant-initialized. Except in checked builds, it is trivially destructible.
// No member throws or allocates.
//
// Order and memory
//   What a thread did before its count_down() is visible to every thread that passes the latch. Waits are queued like
//   those for a manual_reset_event, and the call that reaches zero releases all of them in one step.
//
// Lifetime
//   A thread may destroy the latch once a wait or a try_wait() has let it pass. But no other thread may then be
//   waiting, nor call a member afterwards. The thread need not wait for calls of count_down() to return. Once the latch
//   lets a thread pass, the calls that counted it down no longer touch it. (A count_down(0) may.)
//
// Errors
//   Three mistakes end the program with a message that names the latch, in every build: a negative number, a number
//   above max(), and a count below zero. Checked builds also end the program if a latch is destroyed while a thread
//   waits.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/arrival_count.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tocsin {

class latch {
public:
    static constexpr bool is_polled = false;  // detail/pending.hpp

    // The greatest number that a latch counts down from.
    static constexpr std::ptrdiff_t(max)() noexcept { return detail::max_arrivals; }

    // With zero, everybody passes from the start.
    constexpr explicit latch(std::ptrdiff_t expected) noexcept
        : gate_(expected == 0), left_(detail::checked_arrivals("latch", this, expected, 0)) {}
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;

#if TOCSIN_CHECKED
    constexpr ~latch() {
        if (!std::is_constant_evaluated()) gate_.check_destroyed("latch");
    }
#else
    ~latch() = default;
#endif

    // Counts down by `update`. If the latch reaches zero, releases every thread that waits, and lets later ones pass.
    // An `update` of zero changes nothing.
    // Cost: one read-modify-write. The call that reaches zero also sets an event. This costs one more
    // read-modify-write, and if there are waiters, also what manual_reset_event::set() costs with waiters. Never blocks
    // on a waiter, but coroutines that it releases may run inside it (await.hpp). It is safe in a signal handler where
    // manual_reset_event::set() is.
    void count_down(std::ptrdiff_t update = 1) noexcept {
        const std::uint32_t less = detail::checked_arrivals("latch", this, update, 0);
        // [arrive] with the other calls: releases what this thread did, and acquires what the threads of earlier calls
        // did. The last call's set() passes all of that on.
        const std::uint32_t left = left_.fetch_sub(less, std::memory_order_acq_rel);
        if (left > less) return;
        if (left < less) [[unlikely]]
            detail::die_of_misuse("latch", this, "counted below zero");
        if (less != 0) gate_.set();
    }

    // Whether the latch lets threads pass. Never false once a count_down() to zero has returned, unless that call is
    // deferred in a signal handler. Cost: that of an event's is_set().
    [[nodiscard]] bool try_wait() const noexcept { return gate_.try_wait(); }

    // Blocks until the latch lets threads pass, and returns for no other reason. Before it sleeps, a thread may look
    // again for a while, as the spin policy says (spin.hpp).
    // Cost: one plain load if the latch lets threads pass, else a short lock and one system call to sleep.
    void wait(spin_policy spin = {}) const noexcept { gate_.wait(spin); }
    // The same, but returns `stopped` when a stop is requested first.
    [[nodiscard]] wait_status wait(const stop_token& stop, spin_policy spin = {}) const noexcept {
        return gate_.wait(stop, spin);
    }
    // The same, but return `timed_out` when the time has passed first: a duration from now, or a time point of any
    // clock (deadline.hpp). `how` is nothing, a stop token, a spin policy, or a stop token and a spin policy.
    template <class Rep, class Period, class... How>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest,
                                       const How&... how) const noexcept {
        return gate_.wait_for(longest, how...);
    }
    template <std::convertible_to<deadline> When, class... How>
    [[nodiscard]] wait_status wait_until(const When& until, const How&... how) const noexcept {
        return gate_.wait_until(until, how...);
    }

    // Counts down, and waits for zero: count_down(update), then wait().
    void arrive_and_wait(std::ptrdiff_t update = 1, spin_policy spin = {}) noexcept {
        count_down(update);
        wait(spin);
    }

    // For wait_any(), wait_all(), wait_set and co_await. Once the latch is ready, it stays ready.
    operator source() const& noexcept TOCSIN_LIFETIMEBOUND { return gate_; }
    operator source() const&& = delete;

private:
    // The first member, so that its address is the latch's. Waits neither open nor close the gate, and so are const
    // here.
    mutable detail::latch_gate gate_;
    detail::atomic<std::uint32_t> left_;
};

}  // namespace tocsin
