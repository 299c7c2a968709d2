// A wait on a condition variable until a point of a clock.
#pragma once

#include "platform/futex/relative_sleep.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tocsin::platform {

// Whether the C library's wait until a point of the clock follows it when it is set. glibc's is a sleep of the
// kernel's until that point. Others take the sleep's length once, at its beginning (macOS, OpenBSD, musl).
template <class Clock>
inline constexpr bool is_followed = false;
#if defined(__GLIBC__)
template <>
inline constexpr bool is_followed<std::chrono::system_clock> = true;
#endif

// Until `ready()`, whose value it returns, or that many nanoseconds of the clock's count. It sleeps in slices
// (relative_sleep.hpp), so that a clock which is set is noticed where the system does not follow it. And the
// end of a slice fits where seconds are counted in 32 bits: the standard library makes a time_t of it,
// unasked.
//
// Not promised: that a steady deadline is kept while the system clock is set back. Where the C library has no
// wait on the steady clock (FreeBSD 14, glibc before 2.30), the standard library waits until a point of the
// other.
template <class Clock, class Ready>
bool wait_until(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, std::int64_t nanoseconds,
                Ready ready) {
    constexpr std::chrono::nanoseconds longest(
        Clock::is_steady || is_followed<Clock> ? longest_sleep : longest_unaware_of_set_clock);
    const std::chrono::time_point<Clock, std::chrono::nanoseconds> end{std::chrono::nanoseconds(nanoseconds)};
    for (;;) {
        const auto slice_end = std::min(end, Clock::now() + longest);
        if (wake.wait_until(lock, slice_end, ready)) return true;
        if (slice_end == end) return false;
    }
}

}  // namespace tocsin::platform
