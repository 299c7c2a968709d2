// SPDX-License-Identifier: Apache-2.0
#include "core/lot/wake_sample.hpp"

#if !defined(TOCSIN_MODEL)
#include <chrono>

namespace tocsin::core {
namespace {

constexpr std::int64_t not_noted = 0;

std::int64_t steady_nanoseconds() noexcept {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

constinit detail::atomic<const waiter*> wake_sample::measured{nullptr};
constinit detail::atomic<std::int64_t> wake_sample::released_at{not_noted};

// No order in this file: wake_sample.hpp says what orders the accesses.
bool wake_sample::begin(const waiter& own) noexcept {
    const waiter* seen = measured.load(std::memory_order_relaxed);  // no order: above
    if (seen != nullptr) return false;
    return measured.compare_exchange_strong(seen, &own, std::memory_order_acquire,  // [wake-sample]
                                            std::memory_order_relaxed);
}

std::int64_t wake_sample::end() noexcept {
    const std::int64_t from = released_at.load(std::memory_order_relaxed);  // no order: above
    const std::int64_t took = from != not_noted ? steady_nanoseconds() - from : -1;
    released_at.store(not_noted, std::memory_order_relaxed);  // no order: above
    measured.store(nullptr, std::memory_order_release);  // [wake-sample] the next begin() finds `not_noted`
    return took;
}

void wake_sample::note_time() noexcept {
    released_at.store(steady_nanoseconds(), std::memory_order_relaxed);  // no order: above
}

void wake_sample::forget() noexcept {
    released_at.store(not_noted, std::memory_order_relaxed);  // no order: the child has one thread
    measured.store(nullptr, std::memory_order_relaxed);       // no order: the child has one thread
}

}  // namespace tocsin::core
#endif
