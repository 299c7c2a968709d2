// SPDX-License-Identifier: Apache-2.0
// A word on which many threads sleep, so that one call wakes them all. Why it is correct: shared_word.cpp.
#pragma once

#include "platform/futex/futex.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace tocsin::core {

class shared_word {
public:
    // Sleeps until `released()` returns true, or until the deadline. Returns true in the first case, and false in the
    // second.
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

    // Counts the first sharer of a batch, and returns true. Returns false if a sharer of another batch is counted.
    bool try_begin_batch() noexcept;
    // Counts a further sharer of the batch that uses the word. Called under the lock under which that batch began.
    void join_batch() noexcept {
        sharers_.fetch_add(1, std::memory_order_relaxed);  // no order: the batch is the caller's
    }
    // Takes this many sharers of the batch off the count. None of them sleeps on the word any more.
    void leave_batch(std::uint32_t sharers) noexcept {
        sharers_.fetch_sub(sharers, std::memory_order_release);  // [shared-batch]
    }
    // Whether no sharer is counted. Only for callers that know that no thread changes this.
    bool is_unused() const noexcept { return sharers_.load(std::memory_order_relaxed) == 0; }  // no order

private:
    detail::atomic<std::uint32_t> wakes_{0};
    detail::atomic<std::uint32_t> sharers_{0};
};

// How many waiters of a queue form a batch: a delegate, and those that share one word.
#if !defined(TOCSIN_WAITERS_PER_BATCH)
#define TOCSIN_WAITERS_PER_BATCH 64
#endif
inline constexpr std::uint32_t waiters_per_batch = TOCSIN_WAITERS_PER_BATCH;
// How many nodes, or words, a joining thread looks at in search of a batch's word, before it gives up.
inline constexpr std::size_t max_looks_for_batch = 8;

// Sharers of one batch that have been marked released. Whoever has marked them calls wake(), once.
struct marked_sharers {
    void wake() const noexcept {
        if (asleep) word.wake_all();  // shared_word-3
        word.leave_batch(count);      // shared_word-5
    }

    shared_word& word;
    std::uint32_t count = 0;
    bool asleep = false;  // perhaps: one or more of them
};

}  // namespace tocsin::core
