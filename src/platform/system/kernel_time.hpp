// SPDX-License-Identifier: Apache-2.0
// Converts nanoseconds to the seconds and nanoseconds that system calls take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tocsin::platform {

inline constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;

template <class Time>
inline constexpr std::int64_t last_second = std::numeric_limits<decltype(Time::tv_sec)>::max();

// Whether the type `Time` can express a time. Some 32-bit systems count seconds only up to 2038. A later time is cut to
// the last second that fits: the sleep then ends early, and the thread that slept asks the deadline again.
template <class Time>
constexpr bool fits(std::int64_t nanoseconds) noexcept {
    return nanoseconds / nanoseconds_a_second <= last_second<Time>;
}

// Converts the time to the type `Time`. Systems refuse times before 1970. Such times passed long ago, so the first time
// of 1970 replaces them.
template <class Time>
constexpr Time time_of(std::int64_t nanoseconds) noexcept {
    const std::int64_t from_1970 = std::max<std::int64_t>(nanoseconds, 0);
    Time time{};
    time.tv_sec =
        static_cast<decltype(time.tv_sec)>(std::min(from_1970 / nanoseconds_a_second, last_second<Time>));
    time.tv_nsec = static_cast<decltype(time.tv_nsec)>(from_1970 % nanoseconds_a_second);
    return time;
}

}  // namespace tocsin::platform
