// SPDX-License-Identifier: Apache-2.0
// Whether a follower of a group_commit yields before it sleeps, learned from the followers before it.
//
// If more threads are ready to run than there are processors, the other threads may run for as long as the flush takes.
// Then the follower is released while it yields, and nobody makes a call to wake it. A follower that is not released
// while it yields has yielded for nothing, and sleeps. One credit serves a whole group_commit, because yielding pays
// only if many followers do it. No result depends on the credit, only the time that a commit takes.
//
// allows() and learn_flush() are called under the lock of the group_commit. Several threads may call learn() at the
// same time, without the lock: a race loses an update, nothing more. So the accesses to the credit are relaxed.
//
// Checked by: tests/internal/commit_credit_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace tocsin::core {

class commit_credit {
public:
    static constexpr unsigned max_yields = 4;

    // Whether the next follower yields.
    bool allows() noexcept {
        if (!flushes_are_long_) return false;
        if (credit_.load(std::memory_order_relaxed) > 0) return true;  // no order: a guess
        refused_ = refused_ == refused_between ? 0 : refused_ + 1;
        return refused_ == 0;
    }
    // How long the last flush took. During a short flush, a yield only costs the thread its processor, which then runs
    // other threads. Without the yield, these would have waited until this thread had committed several times.
    void learn_flush(std::chrono::nanoseconds took) noexcept {
        flushes_are_long_ = took >= std::chrono::microseconds(20);
    }
    // Whether a follower was released while it yielded.
    void learn(bool released) noexcept {
        const int before = credit_.load(std::memory_order_relaxed);  // no order: a guess
        const int after = released ? std::min(before + 1, max_credit) : std::max(before - failure_costs, 0);
        if (after != before) credit_.store(after, std::memory_order_relaxed);  // no order: a guess
    }

private:
    // Measured: docs/decisions/0010-group-commit.md.
    static constexpr int first_credit = 8, max_credit = 16, failure_costs = 2;
    static constexpr unsigned refused_between = 64;  // followers, between two that try without credit

    detail::atomic<int> credit_{first_credit};
    detail::plain<unsigned> refused_{0};
    detail::plain<bool> flushes_are_long_{false};
};

}  // namespace tocsin::core
