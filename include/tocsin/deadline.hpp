// SPDX-License-Identifier: Apache-2.0
// The one type that says how long a wait may last: until an absolute point on a clock, or for ever.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace tocsin {
namespace detail {

// A duration in nanoseconds, rounded up. A duration out of range becomes the greatest or the least value. Not-a-number
// becomes the least value, so a deadline made from it has passed already.
template <class Rep, class Period>
constexpr std::int64_t nanoseconds_up(std::chrono::duration<Rep, Period> duration) noexcept {
    constexpr std::int64_t forever = (std::numeric_limits<std::int64_t>::max)();
    constexpr std::int64_t least = (std::numeric_limits<std::int64_t>::min)();
    using factor = std::ratio_divide<Period, std::nano>;
    if constexpr (std::is_integral_v<Rep> && !std::is_same_v<Rep, bool> && factor::den == 1) {
        if (std::cmp_greater(duration.count(), forever / factor::num)) return forever;
        if (std::cmp_less(duration.count(), least / factor::num)) return least;
        return static_cast<std::int64_t>(duration.count()) * factor::num;
    } else {
        const long double exact = std::chrono::duration<long double, std::nano>(duration).count();
        if (!(exact > static_cast<long double>(least))) return least;
        if (exact >= static_cast<long double>(forever)) return forever;
        const auto whole = static_cast<std::int64_t>(exact);
        return whole + (static_cast<long double>(whole) < exact ? 1 : 0);
    }
}

}  // namespace detail

// Converts implicitly from a duration and from a time point of any clock. A duration counts from the moment of the
// conversion, on the steady clock.
// - Durations and time points are rounded up to whole nanoseconds, and saturate: a maximal one is `never`.
// - A duration of zero or less makes a deadline that has passed already, without a look at the clock. So does a time
//   point of the steady or system clock that is not after that clock's epoch, such as time_point().
// - A wait until a time on the steady or the system clock follows that clock itself, even if somebody sets the system
//   clock while the thread sleeps. (wait.hpp and wait_set.hpp describe waits on several clocks.)
// - Time in which the process is stopped counts. Time in which the machine is suspended counts as the clock counts it.
// - A clock of your own needs only a now() that does not throw. A wait estimates when the deadline comes, and calls
//   now() again at that time, and at least once a second until then. So if the clock jumps, every wait notices within a
//   second (and a thread that waits wakes up once a second). The deadline refers to the time point from which it was
//   made, so the time point must outlive the deadline. A time point that you pass directly to a wait lives long enough.
// - While the machine is suspended, the steady clock of Linux stands still, and so do waits on it. The system clock
//   continues, and so does boot_clock (boot_clock.hpp), a steady clock.
class deadline {
public:
    // Which clock the deadline is on. `never` and `passed` are on none.
    enum class clock : std::uint8_t { never, passed, steady, system, other };

    // The deadline of a wait that has none.
    static constexpr deadline never() noexcept { return deadline(clock::never, 0); }

    template <class Rep, class Period>
    deadline(std::chrono::duration<Rep, Period> from_now) noexcept  // implicit on purpose
        : deadline(after(detail::nanoseconds_up(from_now))) {}

    template <class Clock, class Duration>
    deadline(const std::chrono::time_point<Clock, Duration>& at) noexcept {  // implicit on purpose
        if constexpr (std::is_same_v<Clock, std::chrono::steady_clock> ||
                      std::is_same_v<Clock, std::chrono::system_clock>) {
            constexpr bool steady = std::is_same_v<Clock, std::chrono::steady_clock>;
            nanoseconds_ = detail::nanoseconds_up(at.time_since_epoch());
            // Both clocks count from a time in the past, so a count of zero or less has passed.
            clock_ = nanoseconds_ == forever ? clock::never
                     : nanoseconds_ <= 0     ? clock::passed
                     : steady                ? clock::steady
                                             : clock::system;
        } else {
            clock_ = at == (at.max)() || is_infinite(at.time_since_epoch()) ? clock::never : clock::other;
            time_point_ = &at;
            left_ = [](const void* time_point) noexcept {
                const auto& point = *static_cast<const std::chrono::time_point<Clock, Duration>*>(time_point);
                return between(Clock::now().time_since_epoch(), point.time_since_epoch());
            };
        }
    }

    // A deadline on a clock of your own, without a time point: `ask(of)` says how many nanoseconds are left, and is
    // negative once the deadline has passed. `of` must outlive the deadline.
    deadline(const void* of, std::int64_t (*ask)(const void* of) noexcept) noexcept
        : clock_(clock::other), time_point_(of), left_(ask) {}

    // Whether the deadline is `never`.
    constexpr bool is_never() const noexcept { return clock_ == clock::never; }

    // Whether the deadline has passed. Reads the clock (no system call on Linux), unless the deadline is `never` or
    // `passed`.
    bool has_passed() const noexcept { return clock_ == clock::passed || (!is_never() && remaining() == 0); }

    // The nanoseconds that are left, at least zero. For `never`, the greatest value.
    std::int64_t remaining() const noexcept {
        const std::int64_t until = left();
        return until > 0 ? until : 0;
    }

    // The nanoseconds since the deadline passed, at least zero. Zero for `passed`, which is on no clock.
    std::int64_t overdue() const noexcept {
        const std::int64_t until = left();
        return until < 0 ? -until : 0;
    }

    // A deadline on the same clock, this much later. `never` stays `never`. A deadline that has passed and is on no
    // clock counts from now, on the steady clock.
    deadline later_by(std::chrono::nanoseconds by) const noexcept {
        if (clock_ == clock::never) return *this;
        if (clock_ == clock::passed) return after(by.count());
        deadline later = *this;
        later.nanoseconds_ = sum(nanoseconds_, by.count());
        return later.nanoseconds_ == forever ? never() : later;
    }

    // For code that sleeps until the deadline: how long it may sleep, in nanoseconds, before it asks again. The time
    // that is left, but on a clock of your own at most a second, because the clock may jump.
    std::int64_t longest_sleep() const noexcept {
        constexpr std::int64_t longest_unaware_of_a_jump = 1'000'000'000;
        const std::int64_t until = remaining();
        return clock_ == clock::other && until > longest_unaware_of_a_jump ? longest_unaware_of_a_jump
                                                                           : until;
    }

    // For code that sleeps until the deadline: its clock and, on the steady and the system clock, the nanoseconds since
    // that clock's epoch. (On a clock of your own, how much later it is than the time point from which it was made.)
    constexpr clock which() const noexcept { return clock_; }
    constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }

private:
    static constexpr std::int64_t forever = (std::numeric_limits<std::int64_t>::max)();

    constexpr deadline(clock which, std::int64_t nanoseconds) noexcept
        : clock_(which), nanoseconds_(nanoseconds) {}

    static deadline after(std::int64_t nanoseconds) noexcept {
        if (nanoseconds <= 0) return deadline(clock::passed, 0);
        const std::int64_t now = count(std::chrono::steady_clock::now().time_since_epoch());
        if (nanoseconds >= forever - now) return never();
        return deadline(clock::steady, now + nanoseconds);
    }

    template <class Rep, class Period>
    static constexpr bool is_infinite(std::chrono::duration<Rep, Period> time) noexcept {
        return std::numeric_limits<Rep>::has_infinity &&
               time.count() == (std::numeric_limits<Rep>::infinity)();
    }

    // How long after `now` this time is, at most `forever`; negative if it is before `now`. The difference of times
    // that are far apart may not fit its type. Then a rounded difference will do: the wait looks again once the rounded
    // time has passed.
    template <class Now, class Time>
    static std::int64_t between(Now now, Time time) noexcept {
        using rounded = std::chrono::duration<long double, std::nano>;
        constexpr long double far_apart = 1e18L;  // 31 years
        const long double apart = rounded(time).count() - rounded(now).count();
        if (apart > far_apart) return detail::nanoseconds_up(rounded(apart));
        if (!(apart >= -far_apart))
            return apart < 0 ? -static_cast<std::int64_t>(far_apart) : 0;  // 0: not a number
        return time > now ? detail::nanoseconds_up(time - now) : -detail::nanoseconds_up(now - time);
    }

    static constexpr std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
        constexpr std::int64_t least = -forever;
        if (b > 0) return a > forever - b ? forever : a + b;
        return a < least - b ? least : a + b;
    }

    template <class Duration>
    static std::int64_t count(Duration since_epoch) noexcept {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
    }

    // The nanoseconds that are left, negative once the deadline has passed.
    std::int64_t left() const noexcept {
        switch (clock_) {
            case clock::never: return forever;
            case clock::passed: return 0;
            case clock::steady:
                return sum(nanoseconds_, -count(std::chrono::steady_clock::now().time_since_epoch()));
            case clock::system:
                return sum(nanoseconds_, -count(std::chrono::system_clock::now().time_since_epoch()));
            case clock::other: break;
        }
        return sum(left_(time_point_), nanoseconds_);
    }

    clock clock_ = clock::never;
    std::int64_t nanoseconds_ = 0;
    const void* time_point_ = nullptr;
    std::int64_t (*left_)(const void*) noexcept = nullptr;
};

}  // namespace tocsin
