// SPDX-License-Identifier: Apache-2.0
// Sleeps in slices until a deadline, for systems whose sleep takes a length instead of an end.
#pragma once

#include "platform/futex/futex.hpp"

#include <algorithm>
#include <cstdint>

namespace tocsin::platform {

inline constexpr std::int64_t no_end = -1;

// The longest slice; after each slice the thread asks the deadline again. For a deadline on the system clock it is a
// second, so that the thread soon notices when that clock is set. For any other deadline it is an hour, because some
// systems have few bits for the length of a sleep.
inline constexpr std::int64_t longest_unaware_of_set_clock = 1'000'000'000;
inline constexpr std::int64_t longest_sleep = 3'600'000'000'000;

// Calls `sleep(nanoseconds)`, which sleeps for about `nanoseconds` at most, and reports how the sleep ended. Repeats
// the call until `sleep` reports `returned`, or until the deadline itself says that it has passed. Only in the second
// case is the result `timed_out`, so `timed_out` is never early. For a deadline of `never`, there is one call,
// `sleep(no_end)`, which has no time limit. The result is then `returned`, whatever `sleep` reports.
template <class Sleep>
sleep_result sleep_in_slices(const deadline& until, Sleep sleep) noexcept {
    if (until.is_never()) {
        (void)sleep(no_end);
        return sleep_result::returned;
    }
    const std::int64_t longest =
        until.which() == deadline::clock::system ? longest_unaware_of_set_clock : longest_sleep;
    for (;;) {
        const std::int64_t left = until.longest_sleep();
        if (left <= 0) return sleep_result::timed_out;
        if (sleep(std::min(left, longest)) == sleep_result::returned) return sleep_result::returned;
    }
}

}  // namespace tocsin::platform
