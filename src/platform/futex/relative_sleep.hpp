// For systems whose sleeps are given a length instead of an end: sleeps until the deadline in slices.
#pragma once

#include "platform/futex/futex.hpp"

#include <algorithm>
#include <cstdint>

namespace tocsin::platform {

inline constexpr std::int64_t no_end = -1;

// How long one sleep may be, after which the deadline is looked at again. A second where it is on the system
// clock, so that a clock which is set meanwhile is noticed; else an hour, for systems whose times have few
// bits.
inline constexpr std::int64_t longest_unaware_of_set_clock = 1'000'000'000;
inline constexpr std::int64_t longest_sleep = 3'600'000'000'000;

// Runs `sleep(nanoseconds)`, which sleeps at most so long (or `no_end`) and returns how it ended, until that
// is `returned` or the deadline itself says that it has passed: so never early. `never` does not pass,
// whatever the sleep says.
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
