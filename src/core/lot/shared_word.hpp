// A word on which many threads sleep, so that one call wakes them all. The argument: shared_word.cpp.
#pragma once

#include "platform/futex/futex.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::core {

struct wait_node;

class shared_word {
public:
    // Sleeps until `released()`, and returns true; or until the deadline, and returns false.
    template <class Released>
    bool sleep_until(Released released, const deadline& until) noexcept {
        for (;;) {
            const std::uint32_t seen = wakes_.load(std::memory_order_acquire);  // [shared-wake]
            if (released()) return true;
            if (platform::futex::wait(wakes_, seen, until) == platform::sleep_result::timed_out) return false;
        }
    }

    // Wakes all who sleep on it. The caller has marked released those that are to leave.
    void wake_all() noexcept;

private:
    detail::atomic<std::uint32_t> wakes_{0};
};

// Whether a thread waits with the node that shares a word with others. Null: no.
bool is_sharer(const wait_node* node) noexcept;
// Whether a thread waits with it that sleeps on a word of its own, and can be given others to release.
bool is_delegate(const wait_node& node) noexcept;

// Releases the sharer `first` and those directly behind it that share the same word. Returns the node behind them.
wait_node* release_sharers(wait_node& first) noexcept;

}  // namespace tocsin::core
