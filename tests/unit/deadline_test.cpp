// SPDX-License-Identifier: Apache-2.0
// The one type for "how long": conversions, rounding, saturation, clocks.
#include "clocks.hpp"
#include "posix.hpp"
#include "system_calls.hpp"

#include <tocsin/deadline.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::hand_clock;
using support::slow_clock;
using tocsin::deadline;

constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();

// A deadline from a duration, as the steady time point that it means.
template <class Rep, class Period>
steady_clock::time_point point_of(duration<Rep, Period> from_now) {
    const deadline made = from_now;
    EXPECT_EQ(made.which(), deadline::clock::steady);
    return steady_clock::time_point(nanoseconds(made.nanoseconds()));
}

TEST(Deadline, ConvertsFromDurationsAndTimePoints) {
    static_assert(std::is_convertible_v<nanoseconds, deadline>);
    static_assert(std::is_convertible_v<duration<double>, deadline>);
    static_assert(std::is_convertible_v<std::chrono::years, deadline>);
    static_assert(std::is_convertible_v<steady_clock::time_point, deadline>);
    static_assert(std::is_convertible_v<system_clock::time_point, deadline>);
    static_assert(std::is_convertible_v<std::chrono::sys_days, deadline>);
    static_assert(std::is_convertible_v<hand_clock::time_point, deadline>);
    static_assert(!std::is_convertible_v<int, deadline>, "a number without a unit is no deadline");
}

TEST(Deadline, OfNeverNeverPasses) {
    constexpr deadline never = deadline::never();
    EXPECT_TRUE(never.is_never());
    EXPECT_FALSE(never.has_passed());
    EXPECT_EQ(never.remaining(), max);
    EXPECT_EQ(never.which(), deadline::clock::never);
}

TEST(Deadline, OfAMaximalDurationOrTimePointIsNever) {
    for (const deadline& each :
         {deadline(nanoseconds::max()), deadline(std::chrono::hours::max()),
          deadline(std::chrono::years::max()), deadline(duration<double>::max()),
          deadline(duration<double>(std::numeric_limits<double>::infinity())),
          deadline(duration<float, std::ratio<86400>>(1e30f)),
          deadline(duration<std::uint64_t, std::nano>::max()), deadline(steady_clock::time_point::max()),
          deadline(system_clock::time_point::max()), deadline(std::chrono::sys_days::max()),
          deadline(std::chrono::sys_days{std::chrono::year{9999} / 12 / 31})}) {
        EXPECT_TRUE(each.is_never());
        EXPECT_FALSE(each.has_passed());
        EXPECT_EQ(each.remaining(), max);
    }
    const auto at = hand_clock::time_point::max();
    EXPECT_TRUE(deadline(at).is_never());
}

TEST(Deadline, OfZeroOrLessHasPassedWithoutALookAtTheClock) {
    for (const deadline& each :
         {deadline(0ns), deadline(-1ns), deadline(nanoseconds::min()), deadline(std::chrono::hours::min()),
          deadline(std::chrono::years::min()), deadline(duration<double>(0.0)),
          deadline(duration<double>(-1e-300)), deadline(duration<double>::min()),
          deadline(duration<double>(-std::numeric_limits<double>::infinity())),
          deadline(duration<double>(std::numeric_limits<double>::quiet_NaN())),
          deadline(duration<float>(std::numeric_limits<float>::quiet_NaN()))}) {
        EXPECT_EQ(each.which(), deadline::clock::passed);
        EXPECT_TRUE(each.has_passed());
        EXPECT_EQ(each.remaining(), 0);
        EXPECT_FALSE(each.is_never());
    }
}

TEST(Deadline, KeepsTimesOfTheSteadyAndTheSystemClock) {
    const auto steady = steady_clock::now() + 1h;
    EXPECT_EQ(deadline(steady).which(), deadline::clock::steady);
    EXPECT_EQ(deadline(steady).nanoseconds(), nanoseconds(steady.time_since_epoch()).count());
    const auto system = system_clock::now() + 1h;
    EXPECT_EQ(deadline(system).which(), deadline::clock::system);
    EXPECT_EQ(deadline(system).nanoseconds(), nanoseconds(system.time_since_epoch()).count());
}

TEST(Deadline, SaysHowMuchTimeRemains) {
    const deadline soon = 1h;
    EXPECT_LE(soon.remaining(), nanoseconds(1h).count());
    EXPECT_GT(soon.remaining(), nanoseconds(50min).count());
    EXPECT_FALSE(soon.has_passed());
    const auto at = slow_clock::now() + 1h;
    const deadline slow = at;
    EXPECT_LE(slow.remaining(),
              nanoseconds(1h).count() + 1);  // the sum in `at` was rounded; this is rounded up
    EXPECT_GT(slow.remaining(), nanoseconds(50min).count());
    EXPECT_EQ(deadline(steady_clock::now() - 1h).remaining(), 0);
    EXPECT_EQ(deadline(system_clock::time_point::min()).remaining(), 0);
    EXPECT_TRUE(deadline(system_clock::time_point{}).has_passed());
    EXPECT_EQ(deadline(system_clock::time_point{}).which(), deadline::clock::passed) << "without a look";
    EXPECT_EQ(deadline(steady_clock::time_point{}).which(), deadline::clock::passed);
    EXPECT_EQ(deadline(steady_clock::time_point::min()).which(), deadline::clock::passed);
    EXPECT_EQ(deadline(steady_clock::time_point(1ns)).which(), deadline::clock::steady);
}

TEST(Deadline, RoundsUpAndNeverDown) {
    const auto expect_at_least = [](auto wanted) {
        const auto before = steady_clock::now();
        const auto at = point_of(wanted);
        const duration<long double, std::nano> exact = wanted;
        EXPECT_GE(static_cast<long double>(nanoseconds(at - before).count()), exact.count());
        EXPECT_LT(at, steady_clock::now() + nanoseconds(1) + std::chrono::ceil<nanoseconds>(exact));
    };
    expect_at_least(1ns);
    expect_at_least(duration<std::int64_t, std::pico>(1));
    expect_at_least(duration<std::int64_t, std::pico>(1001));
    expect_at_least(duration<std::int64_t, std::ratio<1, 3>>(1));
    expect_at_least(duration<std::int64_t, std::ratio<1, 3'000'000'000>>(7));
    expect_at_least(duration<double>(1e-10));
    expect_at_least(duration<double, std::nano>(0.001));
    expect_at_least(duration<double, std::nano>(1.5));
    expect_at_least(duration<float, std::milli>(0.1f));
    expect_at_least(duration<long double>(0.333333333333333333L));
    expect_at_least(duration<std::uint8_t, std::ratio<1>>(255));
}

TEST(Deadline, OfATimePointRoundsUpToo) {
    using fine = std::chrono::time_point<system_clock, duration<std::int64_t, std::pico>>;
    const fine at(duration<std::int64_t, std::pico>(1'000'001));
    EXPECT_EQ(deadline(at).nanoseconds(), 1001);
    using fraction = std::chrono::time_point<system_clock, duration<double, std::nano>>;
    EXPECT_EQ(deadline(fraction(duration<double, std::nano>(2.25))).nanoseconds(), 3);
    EXPECT_EQ(deadline(fraction(duration<double, std::nano>(2.0))).nanoseconds(), 2);
}

TEST(Deadline, SaturatesJustBelowTheEnd) {
    EXPECT_TRUE(deadline(nanoseconds::max() - 1ns).is_never()) << "now + this overflows";
    const deadline far = nanoseconds::max() / 2;
    EXPECT_FALSE(far.is_never());
    EXPECT_FALSE(far.has_passed());
    EXPECT_GT(far.remaining(), 0);
    // In every unit, the first duration that is out of range stays on its side: a positive one never passes, a negative
    // one has passed.
    const auto just_beyond = []<class Unit>(Unit) {
        const auto limit = std::chrono::duration_cast<Unit>(nanoseconds::max());
        EXPECT_TRUE(deadline(limit + Unit(1)).is_never());
        EXPECT_TRUE(deadline(-limit - Unit(1)).has_passed());
    };
    just_beyond(std::chrono::microseconds());
    just_beyond(std::chrono::milliseconds());
    just_beyond(1s);
    just_beyond(1min);
    just_beyond(1h);
    just_beyond(std::chrono::days());
    just_beyond(std::chrono::weeks());
    just_beyond(std::chrono::years());
    const deadline before_its_epoch = std::chrono::sys_days{std::chrono::year{1} / 1 / 1};
    EXPECT_TRUE(before_its_epoch.has_passed());
    EXPECT_FALSE(before_its_epoch.is_never());
}

TEST(Deadline, AsksAnyOtherClockAgainAndAgain) {
    hand_clock::set(0);
    const hand_clock::time_point at(10ms);
    const deadline until = at;
    EXPECT_EQ(until.which(), deadline::clock::other);
    EXPECT_FALSE(until.has_passed());
    EXPECT_EQ(until.remaining(), nanoseconds(10ms).count());
    hand_clock::set(4);
    EXPECT_EQ(until.remaining(), nanoseconds(6ms).count());
    hand_clock::set(-5);
    EXPECT_EQ(until.remaining(), nanoseconds(15ms).count());
    hand_clock::set(10);
    EXPECT_TRUE(until.has_passed());
    EXPECT_EQ(until.remaining(), 0);
    hand_clock::set(1'000);
    EXPECT_TRUE(until.has_passed());
    hand_clock::set(9);
    EXPECT_FALSE(until.has_passed()) << "the clock was set back";
}

TEST(Deadline, OfAnotherClockSaturates) {
    hand_clock::set(-std::numeric_limits<std::int64_t>::max() / 4);
    const hand_clock::time_point at(hand_clock::duration(std::numeric_limits<std::int64_t>::max() / 4));
    const deadline until = at;
    EXPECT_EQ(until.remaining(), max);
    EXPECT_FALSE(until.has_passed());
    hand_clock::set(0);
}

// A clock that counts from a far future, in a type that the difference to its times does not fit.
struct late_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<late_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(-duration::max() / 2); }
};
static_assert(support::is_clock<late_clock>);

TEST(Deadline, OfAnotherClockSaturatesWhereTheDifferenceDoesNotFit) {
    const late_clock::time_point far(late_clock::duration::max() - 1h);
    const deadline until = far;
    EXPECT_EQ(until.remaining(), max);
    EXPECT_FALSE(until.has_passed());
}

TEST(Deadline, OfAnotherClockSaturatesWhereTheClocksTypeIsTooSmall) {
    using seconds = std::chrono::time_point<late_clock, std::chrono::seconds>;
    const seconds far(std::chrono::seconds(20'000'000'000));
    EXPECT_EQ(deadline(far).remaining(), max);
    EXPECT_FALSE(deadline(far).has_passed());
    const seconds long_ago(std::chrono::seconds(-20'000'000'000));
    EXPECT_TRUE(deadline(long_ago).has_passed());
    EXPECT_EQ(deadline(long_ago).remaining(), 0);
}

// Counts 100 ns since 1601: more nanoseconds than the library counts in.
struct old_clock {
    using duration = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<old_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(134'000'000'000'000'007)); }
};
static_assert(support::is_clock<old_clock>);

TEST(Deadline, OfAnotherClockIsExactFarFromItsEpoch) {
    const auto at = old_clock::now() + 5s;
    const deadline until = at;
    EXPECT_FALSE(until.is_never());
    EXPECT_EQ(until.remaining(), 5'000'000'000);
    const auto over = old_clock::now();
    EXPECT_TRUE(deadline(over).has_passed());
    const auto soon = old_clock::now() + old_clock::duration(1);
    EXPECT_EQ(deadline(soon).remaining(), 100);
}

// In seconds, which are no whole nanoseconds.
struct fraction_clock {
    using duration = std::chrono::duration<double>;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<fraction_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(0.1)); }
};
static_assert(support::is_clock<fraction_clock>);

TEST(Deadline, OfAnotherClockMayBeAFractionAndNotANumber) {
    const auto at = [](double seconds) {
        return fraction_clock::time_point(fraction_clock::duration(seconds));
    };
    for (const double bad : {std::nan(""), -HUGE_VAL, -1e300, 0.0, 0.1}) {
        const auto point = at(bad);
        EXPECT_TRUE(deadline(point).has_passed()) << bad;
        EXPECT_EQ(deadline(point).remaining(), 0) << bad;
    }
    const auto infinite = at(HUGE_VAL), far = at(1e300), soon = at(std::nextafter(0.1, 1.0));
    EXPECT_TRUE(deadline(infinite).is_never());
    EXPECT_EQ(deadline(far).remaining(), max);
    EXPECT_EQ(deadline(soon).remaining(), 1);
    EXPECT_FALSE(deadline(soon).has_passed());
}

TEST(Deadline, ReadsTheClockWithoutASystemCall) {
    const auto calls = support::system_calls_of([] {
        const deadline until = 1h;
        for (int i = 0; i < 100; ++i) {
            if (until.has_passed()) _exit(1);
            if (deadline(0s).has_passed() == false) _exit(2);
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

}  // namespace
