// SPDX-License-Identifier: Apache-2.0
// User-defined clocks, with only what a clock must have: a duration type and now().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace support {

// Shows the same time until a test changes it, forwards or backwards. Counts how often it is read.
struct hand_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<hand_clock>;

    static time_point now() noexcept {
        reads.fetch_add(1);
        const std::int64_t time = milliseconds.load();
        shown.store(time);
        return time_point(duration(time));
    }

    static void set(std::int64_t to) { milliseconds.store(to); }

    inline static std::atomic<std::int64_t> milliseconds{0};
    inline static std::atomic<long> reads{0};
    inline static std::atomic<std::int64_t> shown{0};  // by the last read
};

// Runs at a third of the steady clock's speed, in a type that is neither integral nor nanoseconds.
struct slow_clock {
    using duration = std::chrono::duration<double, std::micro>;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<slow_clock>;

    static time_point now() noexcept {
        return time_point(std::chrono::steady_clock::now().time_since_epoch() / 3.0);
    }
};

}  // namespace support
