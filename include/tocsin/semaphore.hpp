// SPDX-License-Identifier: Apache-2.0
// Semaphores: a count of permits. Threads take permits, and wait while there are too few.
//
//     tocsin::counting_semaphore<8> connections(8);
//     connections.acquire();
//     use_a_connection();
//     connections.release();
//
// The classes have the names and calls of the standard's <semaphore>: a program that uses std::counting_semaphore or
// std::binary_semaphore compiles with tocsin:: in place of std::, unless its LeastMaxValue is above 1,073,741,823. The
// calls here also take stop tokens, spin policies, and several permits at once. And a semaphore is a source:
// wait_any(), wait_all(), wait_set, pollable and co_await take it alongside events.
//
// Any thread may call any member at any time: before main, after it, and in destructors of thread-local objects. A
// semaphore is 4 bytes and owns nothing: no heap memory, no kernel object, no registration. It is constant-initialized
// and, except in checked builds, trivially destructible.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace tocsin {
namespace detail {

// The word of a semaphore, and the inline half of its operations. The protocol, and why it is correct:
// src/semaphore.cpp.
using semaphore_word = atomic<std::uint32_t>;

namespace semaphore_state {
inline constexpr std::uint32_t parked_bit = 0b01;  // a waiter's node is queued in the lot
inline constexpr std::uint32_t held_bit = 0b10;    // a wait for all is taking a permit: look under the lock
inline constexpr std::uint32_t one = 0b100;        // a permit; the bits from here on count the free permits
inline constexpr std::uint32_t max = 0x3FFF'FFFF;

constexpr std::uint32_t free_permits(std::uint32_t seen) noexcept { return seen / one; }
}  // namespace semaphore_state

TOCSIN_API bool semaphore_try_acquire_slow(semaphore_word& word, std::uint32_t permits) noexcept;
TOCSIN_API wait_status semaphore_wait_slow(semaphore_word& word, std::uint32_t permits,
                                           const wait_options& options) noexcept;
TOCSIN_API void semaphore_release_slow(semaphore_word& word, std::ptrdiff_t permits, std::ptrdiff_t max);
// Gives the permits, unless the count would then be greater than `max`. Returns whether it gave them, and stores in
// `before` how many permits were free. If waits for all are queued and other threads release at the same time, a call
// that fails may have given some of its permits to such waits. Not for signal handlers.
TOCSIN_API bool semaphore_try_release(semaphore_word& word, std::uint32_t permits, std::uint32_t max,
                                      std::uint32_t& before) noexcept;
TOCSIN_API void semaphore_check_destroyed(const semaphore_word& word) noexcept;
[[noreturn]] TOCSIN_API void semaphore_refuse_number(const semaphore_word& word, const char* call,
                                                     std::ptrdiff_t permits, std::ptrdiff_t max);

inline bool semaphore_try_acquire(semaphore_word& word, std::uint32_t permits) noexcept {
    // [all-taken] acquires: a thread that finds this permit taken by a wait for all sees that wait's other sources
    // held.
    std::uint32_t seen = word.load(std::memory_order_acquire);
    while (semaphore_state::free_permits(seen) >= permits) {
        if ((seen & semaphore_state::held_bit) != 0) [[unlikely]]
            return semaphore_try_acquire_slow(word, permits);
        // If it succeeds, [permit] acquires what the releases published. If it fails, [all-taken] as above.
        if (word.compare_exchange_weak(seen, seen - permits * semaphore_state::one,
                                       std::memory_order_acquire))
            return true;
    }
    return false;
}

// How a wait for several sources uses a semaphore. semaphore_source() is a function, because the address of an object
// in a DLL is not a constant.
TOCSIN_API extern const lot_source semaphore_lot_source;
TOCSIN_API extern const lot_source semaphore_priority_source;
inline const lot_source& semaphore_source(queue_order order = queue_order::arrival) noexcept {
    return order == queue_order::arrival ? semaphore_lot_source : semaphore_priority_source;
}

}  // namespace detail

// A count of free permits, from 0 to max(). `LeastMaxValue` is the greatest count that the program needs, at most
// 1,073,741,823, which is the default.
//
// Order: queued waiters are served first in, first out, whether they wait here, in wait_any(), or in a coroutine. A
// release hands its permits to the waiters, oldest first. When the release returns, these permits belong to those
// waiters, even if none of them has run. A free permit for which nobody is queued goes to the first thread that asks.
// So a thread never takes a permit ahead of a queued thread that could take it.
//
// Several permits: acquire(n) takes all n permits in one step, or waits. While a waiting acquire(n) is the oldest
// waiter, it collects the permits that are free or released, until it has n of them. Until then, nobody behind it in
// the queue is served. So it never happens that two such waits each hold permits that the other needs. A wait that
// gives up (deadline, stop) hands on what it has collected, as release() would, even if the count then exceeds max().
// try_acquire(n) collects nothing.
//
// Memory: what a thread did before release() is visible to each thread to which this release hands a permit. If the
// release adds permits to the count, it is also visible to every thread that takes a permit from the count afterwards.
//
// Contention: once threads are queued, each permit goes to the oldest of them, even if a running thread could take it
// at once. Each such use costs a switch of threads. So a thread may yield up to eight times before it queues. It does
// so if threads that were queued have released their permits within a few microseconds. This is true of acquire(),
// try_acquire_for() and try_acquire_until(), not of wait_any(). If a permit becomes free meanwhile, the thread takes it
// and does not queue. While a thread spins or yields, other threads may pass it. For exact order of arrival, pass
// spin_policy::none(): then each thread queues at once.
//
// Lifetime: a thread that takes the last permit of a release may destroy the semaphore or unmap its memory at once.
// release() does not touch the semaphore after the step that gives its last permit.
//
// Errors: each call below says what it refuses. A refused call changes nothing; release() names one exception to this.
// The message names the semaphore's address, except in the constructor. Checked builds also stop the program if a
// semaphore is destroyed while threads wait on it. Without exceptions, a refusal ends the program with the same
// message.
//
// `Order` says in which order queued waiters are served: queue_order.hpp. What is said here about the oldest waiter is
// true of the default. With queue_order::priority, read "the first in the queue".
template <std::ptrdiff_t LeastMaxValue = std::ptrdiff_t{detail::semaphore_state::max},
          queue_order Order = queue_order::arrival>
class counting_semaphore {
    static_assert(LeastMaxValue >= 0, "tocsin: a semaphore cannot count to less than zero");
    static_assert(LeastMaxValue <= std::ptrdiff_t{detail::semaphore_state::max},
                  "tocsin: a semaphore counts to 1,073,741,823 at most");

public:
    static constexpr bool is_polled = false;  // detail/pending.hpp

    // The greatest count: LeastMaxValue.
    static constexpr std::ptrdiff_t(max)() noexcept { return LeastMaxValue; }

    // Throws std::invalid_argument if `desired` is negative or greater than max(). In a constant expression, such a
    // count does not compile.
    constexpr explicit counting_semaphore(std::ptrdiff_t desired) : word_(word_of(desired)) {}
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;

#if TOCSIN_CHECKED
    constexpr ~counting_semaphore() {
        if (!std::is_constant_evaluated()) detail::semaphore_check_destroyed(word_);
    }
#else
    ~counting_semaphore() = default;
#endif

    // Gives `update` permits: hands them to threads that wait, and adds the permits that are left over to the count.
    // Zero permits are allowed, and change nothing. Never blocks on a waiter, but coroutines that it releases may run
    // inside it (await.hpp).
    // Throws std::invalid_argument if `update` is negative, and std::system_error (std::errc::value_too_large) if
    // `update` is greater than max() minus the count of free permits, even if threads wait for some of these permits. A
    // release that throws has changed nothing. There is one exception ("Semaphores" in docs/guide.md).
    // Cost: without waiters, one read-modify-write. With waiters, a lock, held for 50 to 200 ns for each permit that is
    // handed over, and at most a few system calls to wake. Like set(), it looks at each wait_all() in the queue.
    // Safe in a signal handler under the conditions of an event's set() (event.hpp). A deferred release adds its
    // permits even if the count then exceeds max().
    void release(std::ptrdiff_t update = 1) {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        do {
            const std::ptrdiff_t room =
                (max)() - static_cast<std::ptrdiff_t>(detail::semaphore_state::free_permits(seen));
            if ((seen & detail::semaphore_state::parked_bit) != 0 || update < 0 || update > room) [[unlikely]]
                return detail::semaphore_release_slow(word_, update, (max)());
            // [permit] with the acquire of whoever takes a permit.
        } while (!word_.compare_exchange_weak(
            seen, seen + static_cast<std::uint32_t>(update) * detail::semaphore_state::one,
            std::memory_order_release, std::memory_order_relaxed));
    }

    // Takes one permit if one is free, without blocking, and returns whether it did. If it fails, there was a moment
    // during the call at which no permit was free. Permits that another thread's release is just handing over are not
    // free, nor are those that a waiting acquire(n) has collected. (In a signal handler that has interrupted a
    // wait_all() on this semaphore, a call may fail although a permit is free.)
    // Cost: a load; if a permit is free, also one read-modify-write. During the few instructions in which a wait_all()
    // takes a permit together with other sources, a call also takes a short lock.
    [[nodiscard]] bool try_acquire() noexcept { return detail::semaphore_try_acquire(word_, 1); }
    // The same for `permits` permits: takes all of them or none. Zero permits are always there. Throws
    // std::invalid_argument if `permits` is negative or greater than max().
    [[nodiscard]] bool try_acquire(std::ptrdiff_t permits) {
        return detail::semaphore_try_acquire(word_, checked(permits, "try_acquire"));
    }

    // Takes one permit. If none is free, blocks until it takes a free one or a release hands it one, and returns for no
    // other reason. It sleeps as event::wait() does. It may spin or yield before it queues (see "Contention" above).
    // Cost: that of try_acquire() if a permit is free. Otherwise up to eight yields, a short lock, and one system call
    // to sleep.
    void acquire(spin_policy spin = {}) noexcept { (void)take(1, deadline::never(), nullptr, spin); }
    // The same for `permits` permits, all at once. Throws as try_acquire(permits) does.
    void acquire(std::ptrdiff_t permits, spin_policy spin = {}) {
        (void)take(checked(permits, "acquire"), deadline::never(), nullptr, spin);
    }

    // The same, but these return `stopped` when a stop is requested. Then they have taken nothing. If the permits are
    // free, a call takes them first, even if the stop was requested before.
    [[nodiscard]] wait_status acquire(const stop_token& stop, spin_policy spin = {}) noexcept {
        return take(1, deadline::never(), &stop, spin);
    }
    [[nodiscard]] wait_status acquire(std::ptrdiff_t permits, const stop_token& stop, spin_policy spin = {}) {
        return take(checked(permits, "acquire"), deadline::never(), &stop, spin);
    }

    // The same with a deadline: a duration from now or a time point of any clock (deadline.hpp). Without a stop token,
    // a call returns whether it has taken the permits; with one, it returns how it ended. With a duration of zero or
    // less, or a time in the past, a call only tries, with no system call. A call that returns without its permits
    // returns only after its deadline, or because it was stopped. A timeout never eats a permit: if the call has been
    // handed all its permits, it has taken them, even after the deadline.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> longest,
                                       spin_policy spin = {}) noexcept {
        return has_taken(take_for(1, longest, nullptr, spin));
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::ptrdiff_t permits, std::chrono::duration<Rep, Period> longest,
                                       spin_policy spin = {}) {
        return has_taken(take_for(checked(permits, "try_acquire_for"), longest, nullptr, spin));
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status try_acquire_for(std::chrono::duration<Rep, Period> longest,
                                              const stop_token& stop, spin_policy spin = {}) noexcept {
        return take_for(1, longest, &stop, spin);
    }
    template <class Rep, class Period>
    [[nodiscard]] wait_status try_acquire_for(std::ptrdiff_t permits,
                                              std::chrono::duration<Rep, Period> longest,
                                              const stop_token& stop, spin_policy spin = {}) {
        return take_for(checked(permits, "try_acquire_for"), longest, &stop, spin);
    }
    [[nodiscard]] bool try_acquire_until(const deadline& until, spin_policy spin = {}) noexcept {
        return has_taken(take(1, until, nullptr, spin));
    }
    [[nodiscard]] bool try_acquire_until(std::ptrdiff_t permits, const deadline& until,
                                         spin_policy spin = {}) {
        return has_taken(take(checked(permits, "try_acquire_until"), until, nullptr, spin));
    }
    [[nodiscard]] wait_status try_acquire_until(const deadline& until, const stop_token& stop,
                                                spin_policy spin = {}) noexcept {
        return take(1, until, &stop, spin);
    }
    [[nodiscard]] wait_status try_acquire_until(std::ptrdiff_t permits, const deadline& until,
                                                const stop_token& stop, spin_policy spin = {}) {
        return take(checked(permits, "try_acquire_until"), until, &stop, spin);
    }

    // As a source, a semaphore is ready while a permit is free. A wait takes one permit exactly when it takes the
    // semaphore. If a coroutine or an operation is destroyed after a permit was handed to its wait, the permit goes
    // back, even beyond max().
    operator source() & noexcept TOCSIN_LIFETIMEBOUND { return {&word_, detail::semaphore_source(Order)}; }

private:
    static constexpr std::uint32_t word_of(std::ptrdiff_t desired) {
        if (desired < 0 || desired > (max)()) {
            detail::throw_or_die(std::invalid_argument(
                "tocsin::counting_semaphore: the first count is negative or greater than max()"));
        }
        return static_cast<std::uint32_t>(desired) * detail::semaphore_state::one;
    }

    std::uint32_t checked(std::ptrdiff_t permits, const char* call) const {
        if (permits < 0 || permits > (max)()) [[unlikely]]
            detail::semaphore_refuse_number(word_, call, permits, (max)());
        return static_cast<std::uint32_t>(permits);
    }

    static bool has_taken(wait_status how) noexcept { return how == wait_status::signaled; }

    wait_status take(std::uint32_t permits, const deadline& until, const stop_token* stop,
                     spin_policy spin) noexcept {
        if (detail::semaphore_try_acquire(word_, permits)) return wait_status::signaled;
        return detail::semaphore_wait_slow(word_, permits,
                                           {until, stop, spin, detail::event_use::event, Order});
    }
    template <class Rep, class Period>
    wait_status take_for(std::uint32_t permits, std::chrono::duration<Rep, Period> longest,
                         const stop_token* stop, spin_policy spin) noexcept {
        if (detail::semaphore_try_acquire(word_, permits)) return wait_status::signaled;
        return detail::semaphore_wait_slow(word_, permits,
                                           {longest, stop, spin, detail::event_use::event, Order});
    }

    detail::semaphore_word word_;  // the only member, so its address is the semaphore's
};

// A semaphore with at most one free permit. Unlike an auto_reset_event, it refuses a second one.
using binary_semaphore = counting_semaphore<1>;

}  // namespace tocsin
