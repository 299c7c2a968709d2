// The library's internal lock. It sleeps instead of spinning without bound.
//
// State: free, held, or held and perhaps wanted by a sleeper.
// No lost wake-up: a thread sleeps only on `wanted`, which it wrote itself. unlock() exchanges: either it sees `wanted`
// and wakes a sleeper, or the sleeper's exchange saw `is_free` and took the lock. A woken thread takes the lock as
// `wanted`, because others may still sleep.
// Memory order: [bucket] the exchange that takes the lock acquires, the one that frees it releases.
// Checked by: tests/model/lot_model_test.cpp, through every operation of the lot.
#include "core/sync/futex_lock.hpp"

namespace tocsin::core {

void futex_lock::lock_slow() noexcept {
    // A holder takes only a few steps. Where it can be running on another processor, looks again for about as long as
    // they take. Bounded, so that a preempted or lower-priority holder hangs no thread.
    const unsigned looks = platform::processors() > 1 ? 20 : 0;
    for (unsigned i = 0; i != looks; ++i) {
        detail::cpu_relax();
        std::uint32_t seen = is_free;
        if (word_.load(std::memory_order_relaxed) == is_free &&                   // no order: a hint
            word_.compare_exchange_strong(seen, held, std::memory_order_acquire,  // [bucket]
                                          std::memory_order_relaxed)) {
            return;
        }
    }
    while (word_.exchange(wanted, std::memory_order_acquire) != is_free) {  // [bucket]
        platform::futex::wait(word_, wanted, deadline::never());
    }
}

}  // namespace tocsin::core
