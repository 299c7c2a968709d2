// For systems whose sleeps are given a length instead of an end: sleeps until the deadline in slices.
#pragma once

#include "platform/futex.hpp"

#include <algorithm>
#include <cstdint>

namespace tocsin::platform {

inline constexpr std::int64_t no_end = -1;

// Runs `sleep(nanoseconds)`, which sleeps at most so long (or `no_end`) and returns how it ended, until that is
// `returned` or the deadline itself says that it has passed: so never early. A deadline of the system clock is looked
// at each second, so that a clock which is set meanwhile is noticed; the others each hour, for systems whose lengths
// have few bits.
template <class Sleep>
sleep_result sleep_in_slices(const deadline& until, Sleep sleep) noexcept {
    if (until.is_never()) return sleep(no_end);
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t longest = until.which() == deadline::clock::system ? second : 3'600 * second;
    for (;;) {
        const std::int64_t left = until.remaining();
        if (left <= 0) return sleep_result::timed_out;
        if (sleep(std::min(left, longest)) == sleep_result::returned) return sleep_result::returned;
    }
}

}  // namespace tocsin::platform
