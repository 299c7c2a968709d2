// SPDX-License-Identifier: Apache-2.0
// How model tests state what they expect. Each statement prints what it explored.
#pragma once

#include "explore.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tocsin::model {

inline void print_summary(const report& r) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::printf("  %s: %s\n", test ? test->name() : "", r.summary().c_str());
    std::fflush(stdout);
}

// The test holds in every execution, and the search explored all of them (within the bounds stated).
inline report expect_holds(const options& how, const test_body& body) {
    report r = explore(how, body);
    print_summary(r);
    EXPECT_FALSE(r.failed) << r.text();
    if (how.how == search::exhaustive) {
        EXPECT_TRUE(r.complete) << "not all executions were explored";
    }
    return r;
}

// Some execution, found among the first `within`, fails with a message that contains `what`.
inline report expect_finds(std::string_view what, options how, const test_body& body,
                           std::uint64_t within = 10'000) {
    how.max_executions = within;
    report r = explore(how, body);
    print_summary(r);
    EXPECT_TRUE(r.failed) << "nothing found in " << r.executions << " executions";
    if (r.failed) {
        EXPECT_NE(r.message.find(what), std::string::npos) << r.text();
    }
    return r;
}

}  // namespace tocsin::model
