// SPDX-License-Identifier: Apache-2.0
// A lock of four bytes, for buckets and for whatever else the library guards for a few steps. Why it is correct:
// futex_lock.cpp.
#pragma once

#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::core {

class futex_lock {
public:
    void lock() noexcept {
        std::uint32_t seen = is_free;
        if (!word_.compare_exchange_strong(seen, held, std::memory_order_acquire,  // [bucket]
                                           std::memory_order_relaxed)) {
            lock_slow();
        }
    }

    void unlock() noexcept {
        if (word_.exchange(is_free, std::memory_order_release) == wanted) {  // [bucket]
            platform::futex::wake_one(&word_);
        }
    }

    bool is_free_now() const noexcept {
        return word_.load(std::memory_order_relaxed) == is_free;  // no order: called by the only thread
    }

private:
    static constexpr std::uint32_t is_free = 0;
    static constexpr std::uint32_t held = 1;
    static constexpr std::uint32_t wanted = 2;

    void lock_slow() noexcept;

    detail::atomic<std::uint32_t> word_{is_free};
};

}  // namespace tocsin::core
