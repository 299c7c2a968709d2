// SPDX-License-Identifier: Apache-2.0
// A spinner looks again for a while before a thread sleeps. It learns for each address what pays: spinner.cpp.
#pragma once

#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"

#include <tocsin/detail/wait_options.hpp>

#include <cstddef>
#include <cstdint>

namespace tocsin::core {

// One wait's attempt to end without sleeping. It has two parts: before the thread is queued, and after.
class spinner {
public:
    spinner(const wait_key& key, const detail::wait_options& options) noexcept;

    // Whether before_parking() will look.
    bool looks_before_parking() const noexcept { return looks_; }

    // Called before the thread is queued. If spinning has paid off for the address, calls `ready()` again and again,
    // for a few microseconds at most. Returns true as soon as `ready()` does. The thread is not queued yet. So if an
    // event is set and reset again between two looks, the wait does not end.
    template <class Ready>
    bool before_parking(Ready ready) noexcept {
        if (!looks_) return false;
        spin_until_ = 0;
        do {
            for (unsigned look = 0; look != looks_a_check; ++look) {
                detail::cpu_relax();
                if (ready()) return learn_spin(true);
            }
        } while (keep_looking(shortest(longest_)));
        return learn_spin(false);
    }

    // Called before the thread is queued, by waits for permits. Under the adaptive policy, if permits are held for a
    // moment only (turn_credit.hpp), yields to other threads a few times and calls `ready()` after each yield. Returns
    // true as soon as `ready()` does. If it has yielded in vain, while_parked() does not yield again.
    template <class Ready>
    bool yield_before_parking(Ready ready) noexcept {
        if (!may_yield_before_parking()) return false;
        while (try_yield()) {
            if (ready()) return learn_early_yield(true);
        }
        return learn_early_yield(false);
    }

    // Called when the thread was queued, has been handed its permits, and runs again.
    void begin_turn() const noexcept;
    // Called when the thread is about to hand out permits of this semaphore.
    static void end_turn(const wait_key& semaphore) noexcept;

    // Called after the thread is queued. Under a fixed policy, calls `released()` again and again, for as long as the
    // policy says. Under the adaptive policy, if yielding has paid off for the address, yields to other threads a few
    // times and calls `released()` after each yield.
    // Returns true as soon as `released()` does.
    template <class Released>
    bool while_parked(Released released) noexcept {
        if (burns_) {
            spin_until_ = 0;
            do {
                for (unsigned look = 0; look != looks_a_check; ++look) {
                    detail::cpu_relax();
                    if (released()) return count_spin(true);
                }
            } while (keep_looking(longest_));
        }
        while (try_yield()) {
            if (released()) return learn_yield(true);
        }
        return learn_yield(false);
    }

    // For a waiter that is queued: looks for its release, then sleeps.
    claim spin_then_sleep(waiter& self) noexcept;

private:
    static constexpr unsigned looks_a_check = 8;        // reading the clock costs about as much as one pause
    static constexpr std::int64_t most_before = 4'000;  // nanoseconds
    static std::int64_t shortest(std::int64_t longest) noexcept {
        return longest < most_before ? longest : most_before;
    }

    bool keep_looking(std::int64_t longest) noexcept;
    bool may_yield_before_parking() noexcept;
    bool try_yield() noexcept;
    // Each of the next four counts the outcome and returns it. The first three also learn from it.
    bool learn_spin(bool success) noexcept;
    bool learn_yield(bool success) noexcept;
    bool learn_early_yield(bool success) noexcept;
    static bool count_spin(bool success) noexcept;

    const detail::wait_options& options_;
    const std::size_t class_;  // of the address
    detail::atomic<std::uint64_t>& history_;
    std::int64_t longest_ = 0;
    std::int64_t spin_until_ = 0;
    unsigned yields_left_ = 0;
    bool looks_ = false;
    bool burns_ = false;
    bool yielded_ = false;
    bool late_ = false;
};

void set_process_policy(spin_policy policy) noexcept;
spin_policy process_policy() noexcept;
// The policy of a wait: its own, or that of the process.
spin_policy policy_of(const detail::wait_options& options) noexcept;

}  // namespace tocsin::core
