// SPDX-License-Identifier: Apache-2.0
#include "core/lot/wake_sample.hpp"

#if !defined(TOCSIN_MODEL)
#include <algorithm>
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
constinit detail::atomic<std::int64_t> wake_sample::began_at{0};

// No order in this file: what is measured is a guess (wake_sample.hpp).
bool wake_sample::begin(const waiter& own) noexcept {
    const std::int64_t now = steady_nanoseconds();
    const waiter* seen = measured.load(std::memory_order_relaxed);                    // no order: above
    if (seen != nullptr && now - began_at.load(std::memory_order_relaxed) < longest)  // no order: above
        return false;
    if (!measured.compare_exchange_strong(seen, &own, std::memory_order_relaxed))
        return false;                                         // no order: above
    began_at.store(now, std::memory_order_relaxed);           // no order: above
    released_at.store(not_noted, std::memory_order_relaxed);  // no order: above
    return true;
}

void wake_sample::end(const waiter& own, sleep_report& learnt) noexcept {
    const std::int64_t began = began_at.load(std::memory_order_relaxed);        // no order: above
    const std::int64_t released = released_at.load(std::memory_order_relaxed);  // no order: above
    const waiter* seen = &own;
    if (!measured.compare_exchange_strong(seen, nullptr, std::memory_order_relaxed)) {  // no order: above
        learnt.slept = longest;
        return;
    }
    if (released == not_noted) return;
    learnt.wake = std::max<std::int64_t>(0, steady_nanoseconds() - released);
    learnt.slept = std::clamp<std::int64_t>(released - began, 0, longest);
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
