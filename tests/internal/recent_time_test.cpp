// SPDX-License-Identifier: Apache-2.0
// The cheap clock that waits without a thread read.
#include "platform/system/system.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace {

std::int64_t exact_time() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

TEST(RecentTime, IsOnTheSteadyClockAndNeverAheadOfIt) {
    using namespace std::chrono_literals;
    const std::int64_t begin = exact_time();
    std::int64_t last = 0;
    for (int i = 0; i != 10'000; ++i) {
        const std::int64_t recent = tocsin::platform::recent_time();
        ASSERT_GE(recent, last);
        ASSERT_LE(recent, exact_time());
        last = recent;
    }
    EXPECT_GE(last, begin - std::chrono::steady_clock::duration(1s).count());
}

// A thread remembers 32 bits of its last time.
TEST(UniqueTime, IsTheTimeItselfIfThatIsLater) {
    std::uint32_t last = 0;
    std::int64_t time = 5'000'000'000'000;
    for (const std::int64_t step :
         {std::int64_t{100}, std::int64_t{1'000'000}, std::int64_t{3'600'000'000'000},
          std::int64_t{400} * 86'400 * 1'000'000'000}) {
        time += step;
        EXPECT_EQ(tocsin::platform::time_after(last, time), time);
    }
}

// Also where what a thread remembers wraps around.
TEST(UniqueTime, IsTheTimeItselfTheFirstTime) {
    constexpr std::int64_t wrap = std::int64_t{1} << 36;
    for (const std::int64_t time : {wrap - 16'000'000, wrap - 32, wrap - 16, wrap, wrap + 16}) {
        std::uint32_t last = 0;
        std::int64_t before = tocsin::platform::time_after(last, time);
        EXPECT_EQ(before, time);
        for (int i = 0; i != 4; ++i) {
            const std::int64_t next = tocsin::platform::time_after(last, time);
            EXPECT_GT(next, before);
            EXPECT_LE(next, before + 32);
            before = next;
        }
    }
}

TEST(UniqueTime, IsLaterThanTheLastOneOfATimeThatIsEqualOrBehind) {
    std::uint32_t last = 0;
    const std::int64_t first = tocsin::platform::time_after(last, 5'000'000'000'000);
    std::int64_t before = first;
    for (const std::int64_t behind : {0, 0, 1, 15, 16, 10'000'000, 10'000'000, 0}) {
        const std::int64_t next = tocsin::platform::time_after(last, first - behind);
        EXPECT_GT(next, before);
        EXPECT_LE(next, before + 32);
        before = next;
    }
}

}  // namespace
