// SPDX-License-Identifier: Apache-2.0
// The library's internal lock. It sleeps instead of spinning without bound.
//
// State: one word. It is `is_free`, `held` or `wanted`. `wanted` means that the lock is held, and that a thread may be
// sleeping until the lock is free.
// No lost wake-up: a thread sleeps only while the word is `wanted`. The thread has written this value itself, by an
// exchange. unlock() exchanges the word, too. If unlock()'s exchange comes second, unlock() sees `wanted` and wakes a
// sleeper. If unlock()'s exchange comes first, the thread's exchange sees `is_free`, and the thread has the lock. A
// woken thread takes the lock as `wanted`, because other threads may still be asleep.
// Memory order: [bucket] Taking the lock acquires, freeing it releases.
// Checked by: tests/model/lot_model_test.cpp, through every operation of the lot.
#include "core/sync/futex_lock.hpp"

namespace tocsin::core {

void futex_lock::lock_slow() noexcept {
    // A holder frees the lock after a few steps. If the holder may be running on another processor, this thread looks
    // at the word for about that long before it sleeps. The number of looks is bounded, so that a holder that is
    // preempted, or has a lower priority, can't keep this thread looking forever.
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
