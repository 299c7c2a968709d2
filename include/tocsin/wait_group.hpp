// SPDX-License-Identifier: Apache-2.0
// A count that goes up and down, and lets threads pass while it is zero: to wait for any number of jobs, whose number
// need not be known beforehand.
//
//     tocsin::wait_group jobs;
//     for (const auto& file : files) {
//         jobs.add();
//         pool.post([&] { work(file); jobs.done(); });      // work() may add() further jobs
//     }
//     if (tocsin::wait_any({.until = 5s}, shutdown, jobs).index == 1) ...     // all are done
//
// For a number that is known beforehand, a latch (latch.hpp) is simpler. A wait_group is a source: wait_any(),
// wait_all(), a wait_set and co_await take it alongside events. It is 8 bytes, owns nothing, and is
// constant-initialized. Except in checked builds, it is trivially destructible. No member throws or allocates. Lists of
// parked waits (diagnose.hpp) show it as an event.
//
// What counts as one job
//   Each done() belongs to an add() that has returned before. So count a job that is still to come before anybody
//   waits, or in a job that is counted itself. An add() while the count is zero, at the time of a wait, is no error,
//   but whether that wait passes before or after the add() is then a matter of chance.
//
// Order and memory
//   What a thread did before its done() is visible to every thread that passes. The done() that reaches zero releases
//   everybody who waits at that moment, also if an add() follows at once.
//
// Lifetime
//   A thread may destroy the group once a wait or a try_wait() has let it pass. But no other thread may then be
//   waiting, nor call a member afterwards. The thread need not wait for calls of done() to return.
//
// Errors
//   A number below zero or above max(), a count above max(), and a count below zero end the program with a message that
//   names the group, in every build. Checked builds also end the program if a group is destroyed while a thread waits.
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

namespace tocsin {

class wait_group {
public:
    static constexpr bool is_polled = false;  // detail/pending.hpp

    // The greatest count.
    static constexpr std::ptrdiff_t(max)() noexcept { return detail::max_arrivals; }

    // With zero, everybody passes until the first add().
    constexpr explicit wait_group(std::ptrdiff_t count = 0) noexcept
        : gate_(count == 0), word_(detail::checked_arrivals("wait_group", this, count, 0) * one) {}
    wait_group(const wait_group&) = delete;
    wait_group& operator=(const wait_group&) = delete;

    // Counts up. From its return until the count is zero again, nobody passes. Call it in no signal handler.
    // Cost: one read-modify-write. An add() that finds zero also resets an event. If the done() that has just reached
    // zero is still releasing, the add() first waits until everybody is released, and other calls of add() wait for
    // this one.
    void add(std::ptrdiff_t count = 1) noexcept {
        const std::uint32_t more = detail::checked_arrivals("wait_group", this, count, 0) * one;
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange below
        do {
            if (seen / one == 0 && more != 0) return add_to_zero(more);
            if (seen / one + more / one > static_cast<std::uint32_t>((max)())) [[unlikely]]
                detail::die_of_misuse("wait_group", this, "counted above the greatest number");
        } while (!word_.compare_exchange_weak(seen, seen + more,
                                              std::memory_order_acq_rel,  // [group-count] [group-closed]
                                              std::memory_order_relaxed));  // no order: tried again
        if ((seen & closing) != 0) [[unlikely]]
            wait_until_closed();
    }

    // Counts down. If the count reaches zero, releases every thread that waits, and lets later ones pass until the next
    // add(). Cost: one read-modify-write; the call that reaches zero also sets an event, which costs what
    // manual_reset_event::set() costs. Never blocks on a waiter, but coroutines that it releases may run inside it
    // (await.hpp). It is safe in a signal handler where manual_reset_event::set() is.
    void done(std::ptrdiff_t count = 1) noexcept {
        const std::uint32_t less = detail::checked_arrivals("wait_group", this, count, 0) * one;
        const std::uint32_t before = word_.fetch_sub(less, std::memory_order_acq_rel);  // [group-count]
        if (before / one > less / one) return;
        if (before / one < less / one) [[unlikely]]
            detail::die_of_misuse("wait_group", this, "counted below zero");
        if (less != 0) gate_.set();
    }

    // Whether it lets threads pass. Cost: that of an event's is_set().
    [[nodiscard]] bool try_wait() const noexcept { return gate_.try_wait(); }

    // Blocks until the count is zero, and returns for no other reason. The other forms may return `stopped` or
    // `timed_out`, as those of a latch.
    // Cost: one plain load if the count is zero, else a short lock and one system call to sleep.
    void wait(spin_policy spin = {}) const noexcept { gate_.wait(spin); }
    [[nodiscard]] wait_status wait(const stop_token& stop, spin_policy spin = {}) const noexcept {
        return gate_.wait(stop, spin);
    }
    template <class Rep, class Period, class... How>
    [[nodiscard]] wait_status wait_for(std::chrono::duration<Rep, Period> longest,
                                       const How&... how) const noexcept {
        return gate_.wait_for(longest, how...);
    }
    template <std::convertible_to<deadline> When, class... How>
    [[nodiscard]] wait_status wait_until(const When& until, const How&... how) const noexcept {
        return gate_.wait_until(until, how...);
    }

    // For wait_any(), wait_all(), wait_set and co_await. It takes nothing.
    operator source() const& noexcept TOCSIN_LIFETIMEBOUND { return gate_; }
    operator source() const&& = delete;

private:
    // The bits of `word_`, below the count.
    static constexpr std::uint32_t closing = 1;  // an add() that found zero has not closed the gate yet
    static constexpr std::uint32_t awaited = 2;  // a thread sleeps until it has
    static constexpr std::uint32_t one = 4;

    TOCSIN_API void add_to_zero(std::uint32_t more) noexcept;
    TOCSIN_API void wait_until_closed() noexcept;

    // The first member, so that its address is that of the group. Waits change nothing, and so are const here.
    mutable manual_reset_event gate_;
    detail::atomic<std::uint32_t> word_;
};

}  // namespace tocsin
