// SPDX-License-Identifier: Apache-2.0
// A wait on a condition variable with a deadline on a given clock.
#pragma once

#include "platform/futex/relative_sleep.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tocsin::platform {

// Whether the C library's waits with a deadline on `Clock` follow this clock. They follow it if a wait ends when the
// clock reaches the deadline, even if somebody sets the clock during the wait. glibc's waits follow the system clock,
// because glibc gives the kernel the deadline itself. Other C libraries (macOS, OpenBSD, musl) compute the length of
// the sleep once, when the sleep begins.
template <class Clock>
inline constexpr bool follows_clock = false;
#if defined(__GLIBC__)
template <>
inline constexpr bool follows_clock<std::chrono::system_clock> = true;
#endif

// Waits until `ready()` is true or the clock reaches the given count of nanoseconds. Returns whether `ready()` is true.
//
// The thread sleeps in slices (relative_sleep.hpp), for two reasons:
//   - If somebody sets the clock and the C library's wait does not follow it, the thread notices the new time after a
//     slice.
//   - The standard library converts the end of a sleep to a time_t without checking the range. A distant end may not
//     fit into a time_t of 32 bits, but the end of a slice does.
//
// A wait on the steady clock may end late if the C library has no wait on that clock (FreeBSD 14, glibc before 2.30).
// There the standard library waits for a deadline on the system clock instead, which somebody may set back.
template <class Clock, class Ready>
bool wait_until(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, std::int64_t nanoseconds,
                Ready ready) {
    constexpr std::chrono::nanoseconds longest(
        Clock::is_steady || follows_clock<Clock> ? longest_sleep : longest_unaware_of_set_clock);
    const std::chrono::time_point<Clock, std::chrono::nanoseconds> end{std::chrono::nanoseconds(nanoseconds)};
    for (;;) {
        const auto slice_end = std::min(end, Clock::now() + longest);
        if (wake.wait_until(lock, slice_end, ready)) return true;
        if (slice_end == end) return false;
    }
}

}  // namespace tocsin::platform
