// SPDX-License-Identifier: Apache-2.0
// The tokens of shared_auto_reset_event and shared_semaphore (src/core/shared/token_queue.cpp).
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <cstdint>

namespace tocsin::detail {

TOCSIN_API bool shared_token_try_slow(const shared_parts& object) noexcept;
TOCSIN_API void shared_token_drop(const shared_parts& object) noexcept;
TOCSIN_API wait_status shared_token_wait(const shared_parts& object, const deadline& until,
                                         const stop_token* stop);
TOCSIN_API bool shared_token_give(const shared_parts& object, std::uint32_t limit);

inline constexpr std::uint64_t shared_queued = std::uint64_t{1} << 32;  // of `control` (token_queue.cpp)

// Takes a token, if there is one, without waiting.
inline bool shared_token_try(const shared_parts& object) noexcept {
    std::uint64_t seen = object.header.control.load(std::memory_order_relaxed);  // no order: see the exchange
    while (static_cast<std::uint32_t>(seen) != 0) {
        // [token] with the release of the gives
        if (object.header.control.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire,
                                                        std::memory_order_relaxed))
            return true;
    }
    return (seen & shared_queued) != 0 && shared_token_try_slow(object);
}

}  // namespace tocsin::detail
