// SPDX-License-Identifier: Apache-2.0
// The ticks of a timer that repeats: of a ticker (ticker.hpp), or of a wait_timer that reset_every() has armed
// (wait_set.hpp).
#pragma once

#include <tocsin/deadline.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

namespace tocsin::detail {

// How many ticks have passed since `next`, `next` included, and at least one. `period` is longer than zero, in
// nanoseconds. Moves `next` to the first tick that has not passed.
inline std::uint64_t take_ticks(deadline& next, std::int64_t period) noexcept {
    // If the clock was set back after the tick was found due, it is one tick all the same.
    const std::int64_t ticks = next.overdue() / period + 1;
    constexpr std::int64_t longest = (std::numeric_limits<std::int64_t>::max)();
    next = next.later_by(std::chrono::nanoseconds(ticks > longest / period ? longest : ticks * period));
    return static_cast<std::uint64_t>(ticks);
}

struct repetition {
    void advance() noexcept { ticks = take_ticks(next, period); }

    deadline next = deadline::never();
    std::int64_t period = 0;  // in nanoseconds
    std::uint64_t ticks = 0;  // for how many the last report stands
};

}  // namespace tocsin::detail
