// SPDX-License-Identifier: Apache-2.0
// User-defined clocks, with only what a clock must have: a duration type and now().
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

namespace support {

// std::chrono::is_clock_v, which libc++ 19 lacks.
template <class Clock>
concept is_clock = requires {
    typename Clock::rep;
    typename Clock::period;
    typename Clock::duration;
    typename Clock::time_point;
    { Clock::is_steady } -> std::convertible_to<bool>;
    { Clock::now() } -> std::same_as<typename Clock::time_point>;
};

// Shows the same time until a test changes it, forwards or backwards. So a deadline on it passes when the test lets it
// pass, and a test can do that after some fact: once a thread is parked, say. Counts how often it is read, and keeps
// what it showed last.
struct hand_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<hand_clock>;

    static time_point now() noexcept {
        reads.fetch_add(1);
        const std::int64_t shown = milliseconds.load();
        last_shown.store(shown);
        return time_point(duration(shown));
    }

    static void set(std::int64_t to) { milliseconds.store(to); }
    static void set(time_point to) { set(to.time_since_epoch().count()); }

    inline static std::atomic<std::int64_t> milliseconds{0};
    inline static std::atomic<std::int64_t> last_shown{0};
    inline static std::atomic<long> reads{0};
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
