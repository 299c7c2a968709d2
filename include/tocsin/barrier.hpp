// SPDX-License-Identifier: Apache-2.0
// A barrier: threads arrive, and when the last of them has arrived, all pass, and the next phase begins.
//
//     tocsin::barrier round(3, [&]() noexcept { swap(front, back); });
//     for (int i = 0; i != 3; ++i) workers.emplace_back([&] { for (;;) { work(); round.arrive_and_wait(); } });
//
// A barrier has the members of std::barrier, and more ways to wait. A token, which arrive() returns, is a source: it is
// ready once its phase has ended. wait_any(), wait_all(), a wait_set and co_await take it alongside events (wait.hpp,
// wait_set.hpp, await.hpp). A barrier consists of 12 bytes and its completion function. It owns nothing else, and is
// constant-initialized if the function is. Except in checked builds, it is trivially destructible if the function is.
// No member throws or allocates, unless the constructor does so when it moves the function.
//
// Phases
//   A phase ends when as many arrivals have been counted as it expects. The thread that makes the last arrival calls
//   the completion function, once in each phase and before any thread passes. The function sees everything that was
//   done before the arrivals. After the call, the same thread begins the next phase, and releases all that wait for the
//   old one.
//
//   A thread may arrive in a phase once it knows that the phase has begun. It knows this if it has waited for the
//   previous phase, or if it made that phase's last arrival itself. Another thread may also tell it, by a message that
//   is sent with release and received with acquire.
//
//   A token says whether its phase has ended, but only until the next phase ends: afterwards, what it says is not
//   defined. A thread that takes part in the next phase is in time if it uses the token before it arrives again,
//   because the next phase can't end without its arrival. The standard has the same rule. The rule also applies to a
//   wait_any(), wait_all() or wait_set with a token.
//
// Order and memory
//   What a thread did before it arrived is visible to the completion function. What the completion function did is
//   visible to every thread that passes.
//
// Lifetime
//   When the waits for the last phase have returned, their threads may destroy the barrier. They need not wait until
//   all calls of arrive() have returned: no call touches the barrier after the step that lets threads pass.
//
// Errors
//   These mistakes end the program in every build. The message names the barrier, unless the token is gone:
//   - a number of arrivals below one or above max();
//   - a number of expected arrivals below zero or above max();
//   - more arrivals than the phase expects (one during the completion function is always too many);
//   - a wait with a token that has been moved from or waited with.
//   Checked builds also end the program if a barrier is destroyed while a thread waits.
//   The constructor throws what moving the completion function throws.
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
#include <utility>

namespace tocsin {
namespace detail {

// The completion function of a barrier that has nothing to complete.
struct no_completion {
    constexpr void operator()() const noexcept {}
};

// Everything of a barrier but its completion function. Why it is correct: src/barrier.cpp.
class phases {
public:
    // What arrive() returns. It refers to the barrier.
    class arrival_token {
    public:
        static constexpr bool is_polled = false;  // detail/pending.hpp

        arrival_token(arrival_token&& from) noexcept : ended_(std::exchange(from.ended_, nullptr)) {}
        arrival_token& operator=(arrival_token&& from) noexcept {
            ended_ = std::exchange(from.ended_, nullptr);
            return *this;
        }
        ~arrival_token() = default;

        // Ready once the phase has ended. The source refers to the barrier, so the token may be a temporary.
        operator source() const noexcept { return event(); }

    private:
        friend class phases;
        explicit arrival_token(barrier_gate& ended TOCSIN_LIFETIMEBOUND) noexcept : ended_(&ended) {}

        barrier_gate& event() const noexcept {
            if (ended_ == nullptr) [[unlikely]]
                die_of_misuse("barrier", nullptr, "the token was moved from, or waited with");
            return *ended_;
        }

        barrier_gate* ended_;
    };

    constexpr explicit phases(std::ptrdiff_t expected) noexcept
        : missing_(checked_arrivals("barrier", this, expected, 0) << 1),
          expected_(static_cast<std::uint32_t>(expected)) {}
    phases(const phases&) = delete;
    phases& operator=(const phases&) = delete;

#if TOCSIN_CHECKED
    constexpr ~phases() {
        if (std::is_constant_evaluated()) return;
        for (const barrier_gate& each : ended_) each.check_destroyed("barrier");
    }
#else
    ~phases() = default;
#endif

    // Counts `number` arrivals. Calls `complete()` if they are the last of the phase, and then ends the phase. Returns
    // the event that is set when the phase has ended.
    template <class Complete>
    barrier_gate& arrive(std::uint32_t number, Complete& complete) noexcept {
        // [arrive] with the other calls: releases what this thread did, and acquires what they did.
        const std::uint32_t seen = missing_.fetch_sub(number << 1, std::memory_order_acq_rel);
        const std::uint32_t missing = seen >> 1;
        barrier_gate& ended = ended_[seen & 1];
        if (missing > number) return ended;
        if (missing < number) [[unlikely]]
            die_of_misuse("barrier", this, "more arrivals than the phase expects");
        complete();
        end(seen & 1);
        return ended;
    }

    void expect_one_less() noexcept {
        // no order: only the last thread to arrive reads the number, and [arrive] puts that read after this
        if (expected_.fetch_sub(1, std::memory_order_relaxed) == 0) [[unlikely]]
            die_of_misuse("barrier", this, "more threads drop than it expects");
    }

    static arrival_token token_of(barrier_gate& ended TOCSIN_LIFETIMEBOUND) noexcept {
        return arrival_token(ended);
    }
    static barrier_gate& event_of(const arrival_token& token) noexcept { return token.event(); }
    static barrier_gate& take(arrival_token& token) noexcept {
        barrier_gate& ended = token.event();
        token.ended_ = nullptr;
        return ended;
    }

private:
    TOCSIN_API void end(std::uint32_t parity) noexcept;

    barrier_gate ended_[2];           // of the phases with even numbers, and of those with odd ones
    atomic<std::uint32_t> missing_;   // arrivals, times two; and whether the phase's number is odd
    atomic<std::uint32_t> expected_;  // arrivals in the next phase
};

}  // namespace detail

template <class CompletionFunction = detail::no_completion>
class barrier {
    static_assert(std::is_nothrow_invocable_v<CompletionFunction&>,
                  "tocsin: a barrier calls its completion function without arguments, and the function must "
                  "be noexcept");

public:
    using arrival_token = detail::phases::arrival_token;

    // The greatest number of arrivals in a phase.
    static constexpr std::ptrdiff_t(max)() noexcept { return detail::max_arrivals; }

    constexpr explicit barrier(
        std::ptrdiff_t expected,
        CompletionFunction completion =
            CompletionFunction()) noexcept(std::is_nothrow_move_constructible_v<CompletionFunction>)
        : phases_(expected), completion_(std::move(completion)) {}

    // Counts `number` arrivals in the current phase, and returns a token of that phase. Doesn't wait.
    // Cost: one read-modify-write. The last arrival also runs the completion function, resets an event and sets
    // another. That costs two or three more read-modify-writes and a store, and if there are waiters, also what
    // manual_reset_event::set() costs with waiters. Coroutines that the arrival releases may run inside it (await.hpp).
    [[nodiscard]] arrival_token arrive(std::ptrdiff_t number = 1) noexcept {
        const std::uint32_t counted = detail::checked_arrivals("barrier", this, number, 1);
        return detail::phases::token_of(phases_.arrive(counted, completion_));
    }

    // Blocks until the token's phase has ended, and returns for no other reason. Cost: that of latch::wait().
    void wait(arrival_token&& token, spin_policy spin = {}) const noexcept {
        detail::phases::take(token).wait(spin);
    }
    // These leave the token as it is, so that you can wait with the same token again. The arrival counts however a wait
    // ends: a timeout or a stop takes nothing back, and breaks no phase.
    [[nodiscard]] bool try_wait(const arrival_token& token) const noexcept {
        return detail::phases::event_of(token).try_wait();
    }
    [[nodiscard]] wait_status wait(const arrival_token& token, const stop_token& stop,
                                   spin_policy spin = {}) const noexcept {
        return detail::phases::event_of(token).wait(stop, spin);
    }
    // `how` is nothing, a stop token, a spin policy, or a stop token and a spin policy.
    template <class Rep, class Period, class... How>
    [[nodiscard]] wait_status wait_for(const arrival_token& token, std::chrono::duration<Rep, Period> longest,
                                       const How&... how) const noexcept {
        return detail::phases::event_of(token).wait_for(longest, how...);
    }
    template <std::convertible_to<deadline> When, class... How>
    [[nodiscard]] wait_status wait_until(const arrival_token& token, const When& until,
                                         const How&... how) const noexcept {
        return detail::phases::event_of(token).wait_until(until, how...);
    }

    // Arrives, and waits until the phase has ended: wait(arrive()). Cost: that of these two calls.
    void arrive_and_wait(spin_policy spin = {}) noexcept { phases_.arrive(1, completion_).wait(spin); }

    // Arrives in the current phase, and lowers by one the number of arrivals that later phases expect.
    void arrive_and_drop() noexcept {
        phases_.expect_one_less();
        phases_.arrive(1, completion_);
    }

private:
    detail::phases phases_;
    TOCSIN_NO_UNIQUE_ADDRESS CompletionFunction completion_;
};

}  // namespace tocsin
