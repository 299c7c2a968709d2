// SPDX-License-Identifier: Apache-2.0
// A spinner looks again for a while before a thread sleeps. It learns for each address what pays: spinner.cpp.
#pragma once

#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"
#include "core/wait/spin_history.hpp"

#include <tocsin/detail/event_use.hpp>
#include <tocsin/detail/wait_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tocsin::core {

// What a wait for `key` learns for: the address. A latch works once, so the next wait for one is at another address. A
// wait for a latch learns for its thread instead.
wait_key learned_for(const wait_key& key, detail::event_use use) noexcept;

// What waits for this address have learned. For tests.
spin_history history_of(const wait_key& key) noexcept;

// One wait's attempt to end without sleeping. It has two parts: before the thread is queued, and after.
class spinner {
public:
    // `measures` is false if the wait can't learn when it was released.
    spinner(const wait_key& key, const detail::wait_options& options, bool measures = true) noexcept;

    // Whether before_parking() will look.
    bool looks_before_parking() const noexcept { return advice_.look != 0; }

    // Called before the thread is queued. If spinning has paid off for the address, calls `ready()` again and again,
    // for a few microseconds at most. Returns true as soon as `ready()` does. The thread is not queued yet. So if an
    // event is set and reset again between two looks, the wait does not end. If the wait is one of a burst
    // (spin_history.hpp), leaves the look to while_parked(): other threads must not find a thread unqueued for so long.
    // Also leaves it to while_parked() if yield_before_parking() has yielded (semaphore.cpp says why). If `only_short`,
    // the caller does not look again once it is queued. Then this look is short. Each `ready()` may take long then, so
    // the clock is read after each.
    template <class Ready>
    bool before_parking(Ready ready, bool only_short = false) noexcept {
        if (advice_.look == 0 || yields_early_ || (advice_.is_long && !only_short)) return false;
        has_looked_ = true;
        advice_.look = std::min(advice_.look, spin_history::short_look);
        return learn_look(look_for(advice_.look, ready, only_short ? 1 : looks_a_check));
    }

    // Called before the thread is queued, by waits for permits. Under the adaptive policy, if permits are held for a
    // moment only (semaphore_credit.hpp), yields to other threads a few times and calls `ready()` after each yield.
    // Returns true as soon as `ready()` does. If it never does, before_parking() does not look, and while_parked() does
    // not yield again.
    template <class Ready>
    bool yield_before_parking(Ready ready) noexcept {
        if (!may_yield_before_parking()) return false;
        while (try_yield()) {
            if (ready()) return learn_early_yield(true);
        }
        return learn_early_yield(false);
    }

    // Called when the thread was queued, has been handed its permits, and runs again.
    void begin_use() const noexcept;
    // Called when the thread is about to hand out permits of this semaphore.
    static void end_use(const wait_key& semaphore) noexcept;

    // Called after the thread is queued. Under a fixed policy, calls `released()` again and again, for as long as the
    // policy says. Under the adaptive policy, does the same for 100 us at most, if the history advises that and
    // before_parking() has not looked. Then, if yielding has paid off for the address, yields to other threads a few
    // times and calls `released()` after each yield. Returns true as soon as `released()` does.
    template <class Released>
    bool while_parked(Released released) noexcept {
        if (burns_ && look_for(longest_, released)) return count_spin(true);
        if (!has_looked_ && advice_.look != 0) {
            has_looked_ = true;
            if (learn_look(look_for(advice_.look, released))) return true;
        }
        while (try_yield()) {
            if (released()) return learn_yield(true);
        }
        return learn_yield(false);
    }

    // For a wait that was over before its thread was queued, although before_parking() had not found that.
    void end_early() noexcept;
    // For a waiter that is queued: looks for its release, then sleeps.
    claim spin_then_sleep(waiter& self) noexcept;
    // For a waiter that is queued, or known otherwise: sleeps, and learns from it.
    claim sleep(waiter& self, const deadline& until) noexcept;

private:
    static constexpr unsigned looks_a_check = 8;  // reading the clock costs about as much as one pause

    template <class Over>
    bool look_for(std::int64_t longest, Over& over, unsigned looks = looks_a_check) noexcept {
        spin_until_ = 0;
        do {
            for (unsigned look = 0; look != looks; ++look) {
                detail::cpu_relax();
                if (over()) return true;
            }
        } while (keep_looking(longest));
        return false;
    }

    void advise(bool measures) noexcept;
    bool keep_looking(std::int64_t longest) noexcept;
    bool may_yield_before_parking() noexcept;
    bool try_yield() noexcept;
    // Each of the next four counts the outcome and returns it. The first three also learn from it.
    bool learn_look(bool success) noexcept;
    bool learn_yield(bool success) noexcept;
    bool learn_early_yield(bool success) noexcept;
    static bool count_spin(bool success) noexcept;
    void learn_sleep(const sleep_report& report) noexcept;

    const detail::wait_options& options_;
    const std::size_t class_;  // of the address
    detail::atomic<std::uint64_t>& history_;
    spin_history::advice advice_;
    std::int64_t longest_ = 0;
    std::int64_t spin_until_ = 0;
    unsigned yields_left_ = 0;
    bool has_looked_ = false;
    bool is_steady_ = false;
    bool burns_ = false;
    bool yielded_ = false;
    bool late_ = false;
    bool yields_early_ = false;
};

void set_process_policy(spin_policy policy) noexcept;
spin_policy process_policy() noexcept;
// The policy of a wait: its own, or that of the process.
spin_policy policy_of(const detail::wait_options& options) noexcept;

}  // namespace tocsin::core
