// The half of futex_lock.hpp that waits.
#include "core/sync/futex_lock.hpp"

namespace tocsin::core {

void futex_lock::lock_slow() noexcept {
    // A holder does a handful of steps; look again for about as long as that takes, where it can be
    // running on another processor. Bounded, so that a preempted or lower-priority holder hangs nobody.
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
