// SPDX-License-Identifier: Apache-2.0
// Time is not modelled. The deadline `due` lies in the future until the clock has been looked at `looks_before_due`
// times. When an operation or a coroutine begins to wait, it looks at the clock twice: before the wait begins, and
// while it begins. Whoever serves deadlines looks later.
#pragma once

#include <chrono>

namespace tocsin::library_model {

struct clock_by_looks {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock_by_looks>;
    static constexpr bool is_steady = true;

    static constexpr time_point due{std::chrono::hours(1)};
    static inline int looks_before_due = 0;

    static time_point now() {
        if (looks_before_due == 0) return due;
        --looks_before_due;
        return time_point();
    }
};

inline constexpr int begins_before_its_deadline = 2;
inline constexpr int begins_at_its_deadline = 1;

}  // namespace tocsin::library_model
