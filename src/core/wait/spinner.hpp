// Looking again before sleeping. What pays is learned for each address: spinner.cpp.
#pragma once

#include "core/lot/lot.hpp"

#include <tocsin/detail/wait_options.hpp>

#include <cstdint>

namespace tocsin::core {

// One wait's attempt to get by without sleep, in two parts.
class spinner {
public:
    spinner(const wait_key& where, const detail::wait_options& options) noexcept;

    // Before the thread is queued: looks at what it waits for, for some microseconds at most, where that has
    // paid; true as soon as `ready()`. A thread that does this is not waiting yet: a set and reset in the
    // meantime may pass it by.
    template <class Ready>
    bool before_parking(Ready ready) noexcept {
        if (!looks_) return false;
        spin_until_ = 0;
        do {
            for (unsigned look = 0; look != looks_a_check; ++look) {
                detail::cpu_relax();
                if (ready()) return looked(true);
            }
        } while (may_go_on(shortest(longest_)));
        return looked(false);
    }

    // When it is queued: looks at its own release, for as long as a fixed policy says, or while it lets others
    // run, where that has paid; true as soon as `released()`.
    template <class Released>
    bool while_parked(Released released) noexcept {
        if (burns_) {
            spin_until_ = 0;
            do {
                for (unsigned look = 0; look != looks_a_check; ++look) {
                    detail::cpu_relax();
                    if (released()) return counted(true);
                }
            } while (may_go_on(longest_));
        }
        while (try_yield()) {
            if (released()) return yielded(true);
        }
        return yielded(false);
    }

private:
    static constexpr unsigned looks_a_check = 8;  // a look at the clock costs about as much as one pause
    static constexpr std::int64_t most_before = 4'000;  // nanoseconds
    static std::int64_t shortest(std::int64_t longest) noexcept {
        return longest < most_before ? longest : most_before;
    }

    bool may_go_on(std::int64_t longest) noexcept;
    bool try_yield() noexcept;  // and does it
    // Learn from it, count it, and pass it on.
    bool looked(bool success) noexcept;
    bool yielded(bool success) noexcept;
    static bool counted(bool success) noexcept;

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
