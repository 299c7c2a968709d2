// SPDX-License-Identifier: Apache-2.0
// A word on which many threads sleep, so that one call wakes them all. Why it is correct: shared_word.cpp.
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

    // Wakes all threads that sleep on the word. The caller has marked released those that are to leave. The others
    // sleep again.
    void wake_all() noexcept;

private:
    detail::atomic<std::uint32_t> wakes_{0};
};

// How many waiters of a queue form a batch: a delegate, and those that share one word.
#if !defined(TOCSIN_WAITERS_PER_BATCH)
#define TOCSIN_WAITERS_PER_BATCH 64
#endif
inline constexpr std::uint32_t waiters_per_batch = TOCSIN_WAITERS_PER_BATCH;

// Whether the node is a sharer's. Null: no.
bool is_sharer(const wait_node* node) noexcept;
// Whether the node is that of a delegate with sharers directly behind it. Null: no.
bool leads_sharers(const wait_node* node) noexcept;

// The first half of a release of sharers. `each` points to the first of them. Marks this sharer released, and all
// sharers directly behind it that share the same word. Then moves `each` to the node behind them, or to null. If any of
// these sharers may be asleep, returns their word, and the caller must call wake_all() on it. Otherwise returns null.
shared_word* mark_sharers(wait_node*& each) noexcept;

}  // namespace tocsin::core
