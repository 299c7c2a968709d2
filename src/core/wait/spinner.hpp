// Looking again before sleeping. For each address, the spinner learns what pays: spinner.cpp.
#pragma once

#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"

#include <tocsin/detail/wait_options.hpp>

#include <cstdint>

namespace tocsin::core {

// One wait's attempt to end without sleeping, in two parts: before it is queued, and after.
class spinner {
public:
    spinner(const wait_key& key, const detail::wait_options& options) noexcept;

    // Whether before_parking() will look.
    bool looks_before_parking() const noexcept { return looks_; }

    // Before the thread is queued, where that has paid: looks at what it waits for, for a few microseconds at most.
    // Returns true as soon as `ready()` does. The thread is not queued yet, so a set that is reset before a look does
    // not end its wait.
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

    // After the thread is queued: looks for its release, for as long as a fixed policy says; or while it yields to
    // other threads, where that has paid. Returns true as soon as `released()` does.
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
    static constexpr unsigned looks_a_check = 8;  // a look at the clock costs about as much as one pause
    static constexpr std::int64_t most_before = 4'000;  // nanoseconds
    static std::int64_t shortest(std::int64_t longest) noexcept {
        return longest < most_before ? longest : most_before;
    }

    bool keep_looking(std::int64_t longest) noexcept;
    bool try_yield() noexcept;
    // Each of these counts the outcome and returns it; the first two also learn from it.
    bool learn_spin(bool success) noexcept;
    bool learn_yield(bool success) noexcept;
    static bool count_spin(bool success) noexcept;

    const detail::wait_options& options_;
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

}  // namespace tocsin::core
