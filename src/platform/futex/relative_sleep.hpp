// For systems whose sleeps take a length instead of an end: sleeps until the deadline in slices.
#pragma once

#include "platform/futex/futex.hpp"

#include <algorithm>
#include <cstdint>

namespace tocsin::platform {

inline constexpr std::int64_t no_end = -1;

// The longest single sleep; after it the deadline is asked again. A second if the deadline is on the system clock, so
// that a change of that clock is noticed. Otherwise an hour, for systems whose times have few bits.
inline constexpr std::int64_t longest_unaware_of_set_clock = 1'000'000'000;
inline constexpr std::int64_t longest_sleep = 3'600'000'000'000;

// Runs `sleep(nanoseconds)` until it reports `returned`, or until the deadline itself says that it has passed: so never
// early. The sleep is at most that long (`no_end`: without end), and reports how it ended. A deadline `never` does not
// pass, whatever the sleep reports.
template <class Sleep>
sleep_result sleep_in_slices(const deadline& until, Sleep sleep) noexcept {
    if (until.is_never()) {
        (void)sleep(no_end);
        return sleep_result::returned;
    }
    const std::int64_t longest =
        until.which() == deadline::clock::system ? longest_unaware_of_set_clock : longest_sleep;
    for (;;) {
        const std::int64_t left = until.remaining();
        if (left <= 0) return sleep_result::timed_out;
        if (sleep(std::min(left, longest)) == sleep_result::returned) return sleep_result::returned;
    }
}

}  // namespace tocsin::platform
