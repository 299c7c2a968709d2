// SPDX-License-Identifier: Apache-2.0
// A counting semaphore in memory that several processes share. What shared_event.hpp says at its top about memory,
// layout, death and errors holds here, too. Memory full of zeros is a semaphore without permits.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/detail/shared_source.hpp>
#include <tocsin/detail/shared_tokens.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tocsin {
namespace detail {

TOCSIN_API void shared_permit_release(const shared_parts& object, std::ptrdiff_t permits);
// Returns false if the count would become greater than `limit`. Then the call may have given some of its permits to
// threads that wait, if others have released meanwhile. `before` becomes the count before the first permit.
TOCSIN_API bool shared_permit_try_release(const shared_parts& object, std::ptrdiff_t permits,
                                          std::uint32_t limit, std::uint32_t& before);

}  // namespace detail

// 2 KiB: 64 bytes, and 64 for each of the 31 threads that can wait at one time.
class shared_semaphore {
public:
    // For the library: what the memory holds, and how many threads can wait at one time (0: any number).
    static constexpr auto kind = detail::shared_kind::semaphore;
    static constexpr unsigned slots = 31;
    // As in a custom source: wait_all() refuses it (source.hpp).
    static constexpr bool stays_ready = false;
    // The largest number of permits.
    static constexpr std::ptrdiff_t max() noexcept { return 0x7FFF'FFFF; }

    constexpr shared_semaphore() noexcept = default;
    shared_semaphore(const shared_semaphore&) = delete;
    shared_semaphore& operator=(const shared_semaphore&) = delete;

    // Gives permits to the threads that have waited longest, and adds the others to the count. A thread that is killed
    // in this call has released none, some or all of them. What was handed to a thread that dies before it has taken it
    // goes to the next waiting thread at once, or, if nobody waits by then, to whoever asks next. Throws
    // std::system_error: value_too_large if the count would become greater than max(), invalid_argument if `permits` is
    // negative, state_not_recoverable (shared_event.hpp). Cost: one read-modify-write; for each thread that waits a
    // look at each slot and a system call.
    void release(std::ptrdiff_t permits = 1) {
        std::uint64_t seen =
            object_.header.control.load(std::memory_order_relaxed);  // no order: see the exchange
        // [token] releases.
        if (permits != 1 || (seen & detail::shared_queued) != 0 || (seen & 0xFFFF'FFFF) >= 0x7FFF'FFFF ||
            !object_.header.control.compare_exchange_strong(seen, seen + 1, std::memory_order_release,
                                                            std::memory_order_relaxed))
            detail::shared_permit_release(parts(), permits);
    }

    // Takes one permit, as std::counting_semaphore does. A deadline never eats a permit: if one has been handed to the
    // call, it returns that it has the permit.
    void acquire() { (void)acquire_with(deadline::never(), nullptr); }
    [[nodiscard]] wait_status acquire(const stop_token& stop) {
        return acquire_with(deadline::never(), &stop);
    }
    [[nodiscard]] bool try_acquire() noexcept { return detail::shared_token_try(parts()); }
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> longest) {
        return acquire_with(longest, nullptr) == wait_status::signaled;
    }
    [[nodiscard]] bool try_acquire_until(const deadline& until) {
        return acquire_with(until, nullptr) == wait_status::signaled;
    }
    [[nodiscard]] wait_status try_acquire_until(const deadline& until, const stop_token& stop) {
        return acquire_with(until, &stop);
    }

    // How many permits nobody has in hand. Cost: one load.
    [[nodiscard]] std::ptrdiff_t available() const noexcept {
        // no order: a number that may be old
        return static_cast<std::ptrdiff_t>(object_.header.control.load(std::memory_order_relaxed) &
                                           0xFFFF'FFFF);
    }

    // As a source, for wait_any() and all other waits for the first of several sources but those of a wait_set. The
    // wait takes one permit if it takes the source. Cost and errors: detail/shared_source.hpp.
    operator source() & TOCSIN_LIFETIMEBOUND { return detail::shared_source(object_.header, kind); }

private:
    wait_status acquire_with(const deadline& until, const stop_token* stop) {
        return try_acquire() ? wait_status::signaled : detail::shared_token_wait(parts(), until, stop);
    }
    detail::shared_parts parts() noexcept { return {object_.header, object_.slots, slots, kind}; }

    detail::shared_object<slots> object_;
};

}  // namespace tocsin
