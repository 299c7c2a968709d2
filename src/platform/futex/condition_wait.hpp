// A wait on a condition variable until a time of a clock.
#pragma once

#include "platform/futex/relative_sleep.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tocsin::platform {

// Whether the C library's wait until a time follows the clock when it is set. In glibc the kernel sleeps until that
// time. Others compute the length of the sleep once, when it begins (macOS, OpenBSD, musl).
template <class Clock>
inline constexpr bool follows_clock = false;
#if defined(__GLIBC__)
template <>
inline constexpr bool follows_clock<std::chrono::system_clock> = true;
#endif

// Waits until `ready()`, whose value it returns, or until the clock's count of nanoseconds. It sleeps in slices
// (relative_sleep.hpp), so that a change of the clock is noticed where the system does not follow it. And the end of a
// slice fits where seconds are counted in 32 bits: the standard library converts it to a time_t without asking.
//
// A steady deadline may be missed while the system clock is set back. Where the C library has no wait on the steady
// clock (FreeBSD 14, glibc before 2.30), the standard library waits until a time of the system clock.
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
