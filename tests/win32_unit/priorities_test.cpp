// SPDX-License-Identifier: Apache-2.0
// A free critical section does not wait for a less urgent thread that was woken and gets no processor. (An SRWLOCK may:
// docs/priorities.md says so.)
#include "support.hpp"

#if defined(__linux__)
#include "less_urgent.hpp"

#include <string>

namespace {

using namespace win32_test;

template <class LessUrgent>
class win32_urgent_thread : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string reason = LessUrgent::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    }
    static constexpr auto expect_no_wait = support::expect_that_a_free_lock_does_not_wait<LessUrgent>;
};
using less_urgent = testing::Types<support::frozen_threads, support::hogged_threads>;
TYPED_TEST_SUITE(win32_urgent_thread, less_urgent);

TYPED_TEST(win32_urgent_thread, EntersAFreeCriticalSection) {
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    this->expect_no_wait({.take = [&] { EnterCriticalSection(&section); },
                          .free = [&] { LeaveCriticalSection(&section); },
                          .pass =
                              [&] {
                                  EnterCriticalSection(&section);
                                  LeaveCriticalSection(&section);
                              }});
    DeleteCriticalSection(&section);
}

}  // namespace

#endif
