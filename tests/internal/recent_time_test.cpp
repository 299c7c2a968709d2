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

}  // namespace
