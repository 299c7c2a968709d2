// SPDX-License-Identifier: Apache-2.0
// Whether a wait of a Python thread looks for a moment before it sleeps (decision 69).
//
// The look is longer than those of the library, because a round trip through the interpreter takes longer. It is also
// longer than the wake-up of a thread on another processor. So if both threads of a dialogue sleep, one that tries a
// look sees it pay, and answers so fast that the other's look pays, too.
//
// A look has paid if the wait was not over when the look began, and was before the look ended. A wait that is over at
// once teaches nothing. Such waits are frequent between threads that share a processor: the answer comes while this
// thread gives up the interpreter's lock. No look would ever pay there, but would keep the processor from the other.
//
// Checked by: python/tests/test_looks.py.
#pragma once

#include <tocsin/spin.hpp>

#include <algorithm>
#include <chrono>

namespace tocsin::python {

// What a thread has learned from its own waits. A look that has not paid costs more credit than one that has earns.
// Without credit one wait in 64 tries, and after each try that has not paid half as many, down to one in 256.
struct look_history {
    int credit = 2;
    unsigned waits = 0;  // since the last look
    unsigned gap = 64;
    bool has_paid = false;  // the last look

    bool begins_look() noexcept { return ++waits >= gap || credit > 0; }
    void learn(bool paid) noexcept {
        waits = 0;
        has_paid = paid;
        if (paid) {
            credit = std::min(credit + 1, 15);
            gap = 64;
        } else if (credit > 0) {
            credit = std::max(credit - 2, 0);
        } else {
            gap = std::min(gap * 2, 256U);
        }
    }
};

// One wait. `Clock` is a clock of std::chrono, or a test's.
template <class Clock>
class look_first {
public:
    static constexpr std::chrono::microseconds longest{30};

    look_first(look_history& history, bool may_look) noexcept
        : history_(history), looks_(may_look && history.begins_look()) {}

    // Waits by `wait(policy)`, which returns whether the wait has ended in time. If the thread is to look first,
    // `try_now()`, which returns whether the wait is over, comes before that. Returns what the last of them did.
    template <class Try, class Wait>
    bool operator()(Try try_now, Wait wait) {
        if (!looks_) return wait(spin_policy::none());
        if (is_over(try_now)) return true;
        const auto began = Clock::now();
        const bool ended = wait(spin_policy::fixed(longest));
        learn(ended && Clock::now() - began < longest);
        return ended;
    }

    // In place of the above: if the thread is to look, calls `try_now()` again and again until the look or the time is
    // over. Then the rest of the wait sleeps at once.
    template <class Try, class Over>
    bool only_look(Try try_now, Over is_late) {
        if (!looks_) return false;
        if (is_over(try_now)) return true;
        const auto began = Clock::now();
        bool ended = false;
        do ended = try_now();
        while (!ended && !is_late() && Clock::now() - began < longest);
        learn(ended);
        looks_ = false;
        return ended;
    }

    // If the last look has paid and the event came before the sleep, the thread that has set it still has the
    // interpreter's lock: lets that one finish (decision 76), by calling `relax()` for half a microsecond.
    template <class Relax>
    void let_other_finish(Relax relax) const {
        if (!came_early_) return;
        const auto until = Clock::now() + std::chrono::nanoseconds(500);
        while (Clock::now() < until) relax();
    }

private:
    template <class Try>
    bool is_over(Try try_now) {
        if (!try_now()) return false;
        came_early_ = history_.has_paid;
        return true;
    }
    void learn(bool paid) noexcept {
        history_.learn(paid);
        came_early_ = paid;
    }

    look_history& history_;
    bool looks_;
    bool came_early_ = false;
};

}  // namespace tocsin::python
