// SPDX-License-Identifier: Apache-2.0
// Why it is correct: src/core/shared/token_queue.cpp.
//
// Checked by: proof P29 (docs/proofs.md), tests/unit/shared_event_test.cpp, shared_death_test.cpp.
#include "core/shared/token_queue.hpp"
#include "core/sync/happens_before.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <cstdio>
#include <system_error>

namespace tocsin::detail {
namespace {

constexpr std::uint32_t max_permits = 0x7FFF'FFFF;

[[noreturn]] void refuse(const shared_parts& object, std::errc error, std::ptrdiff_t permits) {
    char message[160];
    std::snprintf(message, sizeof message, "tocsin: shared_semaphore at %p: release of %lld permits; %s",
                  static_cast<const void*>(&object.header), static_cast<long long>(permits),
                  error == std::errc::invalid_argument ? "the number must not be negative"
                                                       : "it would count to more than max(), 2147483647");
    throw_or_die(std::system_error(std::make_error_code(error), message));
}

}  // namespace

bool shared_permit_try_release(const shared_parts& object, std::ptrdiff_t permits, std::uint32_t limit,
                               std::uint32_t& before) {
    core::order::before(&object.header.control);
    for (std::ptrdiff_t left = permits; left > 0;) {
        std::uint64_t seen =
            object.header.control.load(std::memory_order_relaxed);  // no order: see the exchange
        const auto count = static_cast<std::ptrdiff_t>(core::lower(seen));
        const bool is_first = left == permits;
        if (left > static_cast<std::ptrdiff_t>(limit) - count) return false;
        if ((seen & shared_queued) == 0) {
            // [token] releases.
            if (object.header.control.compare_exchange_strong(seen, seen + static_cast<std::uint64_t>(left),
                                                              std::memory_order_release,
                                                              std::memory_order_relaxed)) {
                if (is_first) before = static_cast<std::uint32_t>(count);
                return true;
            }
            continue;
        }
        if (!core::give_token(object, limit, is_first ? &before : nullptr)) return false;
        --left;
    }
    return true;
}

void shared_permit_release(const shared_parts& object, std::ptrdiff_t permits) {
    if (permits < 0) refuse(object, std::errc::invalid_argument, permits);
    std::uint32_t before = 0;
    if (!shared_permit_try_release(object, permits, max_permits, before))
        refuse(object, std::errc::value_too_large, permits);
}

}  // namespace tocsin::detail
