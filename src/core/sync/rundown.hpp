// Keeps an object from going away while others use it outside of every lock.
//
// State: how many use it, and a bit that its owner waits for them.
// No lost wake-up: the owner sleeps only on a number with that bit, which it saw; the last to go sees the bit, or went
// before it was there.
// Memory order: [rundown] the last unpin releases, the owner acquires: it goes on after all use.
// Checked by: tests/model/many_model_test.cpp.
#pragma once

#include "platform/futex/futex.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::core {

class rundown {
public:
    // Whether nobody else uses it. Under a lock that the owner takes before it waits.
    bool acquire() noexcept {
        return word_.fetch_add(1, std::memory_order_acquire) == 0;  // [rundown] sees what the last has left
    }

    // Whether that was the last; then the owner may be gone.
    bool release() noexcept {
        const std::uint32_t before = word_.fetch_sub(1, std::memory_order_release);  // [rundown]
        if (before == (owner_waits | 1)) platform::futex::wake_one(&word_);          // the address alone
        return (before & ~owner_waits) == 1;
    }

    // The owner, once nobody can pin it any more.
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
