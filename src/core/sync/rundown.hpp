// SPDX-License-Identifier: Apache-2.0
// Keeps an object alive while other threads use it outside all locks.
//
// State: the number of users, and a bit that says that the owner waits for them to finish.
// No lost wake-up: the owner sets the bit, and then sleeps only on a value that it has seen and that contains the bit.
// If the last user finishes after the bit was set, it sees the bit and wakes the owner. If the last user finished
// before, the owner sees no users and does not sleep.
// Memory order: [rundown] Each release() releases and the owner acquires. So what the owner does next comes after every
// use.
// Checked by: tests/model/many_model_test.cpp, tests/model/pollable_model_test.cpp, proofs/promela/wait_all.pml.
#pragma once

#include "platform/futex/futex.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::core {

class rundown {
public:
    // Begins a use; returns true if it is the only one. The caller holds a lock that the owner takes before it waits.
    bool acquire() noexcept {
        // [rundown] acquires what the last user has done
        return word_.fetch_add(1, std::memory_order_acquire) == 0;
    }

    // Ends a use; returns true if it was the last. After the last use, the owner may be gone.
    bool release() noexcept {
        const std::uint32_t before = word_.fetch_sub(1, std::memory_order_release);  // [rundown]
        if (before == (owner_waits | 1)) platform::futex::wake_one(&word_);          // the address alone
        return (before & ~owner_waits) == 1;
    }

    // Called by the owner when no thread can begin a use any more.
    void wait_until_unused() noexcept {
        if (word_.load(std::memory_order_acquire) == 0) return;  // [rundown]
        std::uint32_t seen =
            word_.fetch_or(owner_waits, std::memory_order_acquire) | owner_waits;  // [rundown]
        while (seen != owner_waits) {
            (void)platform::futex::wait(word_, seen, deadline::never());
            seen = word_.load(std::memory_order_acquire);  // [rundown]
        }
    }

private:
    static constexpr std::uint32_t owner_waits = 1u << 31;

    detail::atomic<std::uint32_t> word_{0};
};

}  // namespace tocsin::core
