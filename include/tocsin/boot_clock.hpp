// SPDX-License-Identifier: Apache-2.0
// A steady clock that also runs while the machine is suspended.
//
//     const auto until = tocsin::boot_clock::now() + 8h;      // eight hours, even if the lid is closed for seven
//     event.wait_until(until);
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstdint>

namespace tocsin {

// Its epoch is unspecified, and it is never set. It is CLOCK_BOOTTIME where the system has that (Linux, OpenBSD). On
// macOS it is CLOCK_MONOTONIC, and on Windows the biased interrupt time: both run while the machine sleeps. On other
// systems it is the steady clock.
// To a wait it is a clock like one of your own (deadline.hpp). A wait notices within a second of the end of the
// suspension that its deadline has passed. While a thread waits for a deadline on this clock, the thread wakes up once
// a second. The deadline refers to the time point from which it was made.
struct boot_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;  // nobody sets it

    // Cost: a look at the clock (no system call on Linux). On Windows it moves once in a tick of the system, that is
    // at least every 16 ms.
    TOCSIN_API static time_point now() noexcept;
};

}  // namespace tocsin
