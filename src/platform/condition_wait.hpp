// A wait on a condition variable until a point of a clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <limits>
#include <mutex>

namespace tocsin::platform {

// Until `ready()`, whose value it returns, or that many nanoseconds of the clock's count. The standard library makes a
// time_t of the end and does not ask whether it fits: where seconds are counted in 32 bits, an end after 2038 would be
// one that has long passed, and the wait a loop. So it sleeps until then at most, and looks again.
template <class Clock, class Ready>
bool wait_until(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, std::int64_t nanoseconds,
                Ready ready) {
    constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;
    constexpr std::int64_t last_second =
        std::min<std::int64_t>(std::numeric_limits<std::time_t>::max(),
                               std::numeric_limits<std::int64_t>::max() / nanoseconds_a_second);
    const bool fits = nanoseconds / nanoseconds_a_second <= last_second;
    const std::chrono::time_point<Clock, std::chrono::nanoseconds> end(
        std::chrono::nanoseconds(fits ? nanoseconds : last_second * nanoseconds_a_second));
    while (!wake.wait_until(lock, end, ready)) {
        if (fits) return false;
    }
    return true;
}

}  // namespace tocsin::platform
