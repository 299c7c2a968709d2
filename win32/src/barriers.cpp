// SPDX-License-Identifier: Apache-2.0
// Synchronization barriers, by tocsin's waits on addresses (src/address.cpp). `left` counts down the threads that a
// phase still lacks. The last thread sets it back to the total, and then changes `phase`, which begins the next phase
// and wakes the others. No thread can arrive for the next phase before that change. `inside` counts the threads for
// which DeleteSynchronizationBarrier() waits. A thread's last step is to count itself out of `inside`. After this, it
// touches the barrier no more (address.hpp).
//
// Memory order: [win32-barrier] The changes that wake are sequentially consistent, and all loads acquire. So a thread
// that sees a change sees what came before that change.
//
// Checked by: win32/tests/unit/locks_test.cpp, win32/tests/once_and_barrier_test.cpp.
#include "object.hpp"

#include <tocsin/address.hpp>

#include <atomic>

namespace tocsin::win32 {
namespace {

struct barrier {
    DWORD left;
    DWORD total;
    DWORD phase;
    DWORD inside;
};
static_assert(sizeof(barrier) <= sizeof(SYNCHRONIZATION_BARRIER));

barrier& barrier_of(LPSYNCHRONIZATION_BARRIER from) noexcept { return *reinterpret_cast<barrier*>(from); }

bool arrive(barrier& at) noexcept {
    const DWORD phase = std::atomic_ref(at.phase).load(std::memory_order_acquire);  // [win32-barrier]
    const DWORD total = at.total;
    // [win32-barrier] releases what this thread did, and acquires what those that arrived before did.
    if (std::atomic_ref(at.left).fetch_sub(1, std::memory_order_acq_rel) != 1) {
        (void)wait_until_changed(&at.phase, phase);
        return false;
    }
    std::atomic_ref(at.left).store(total,
                                   std::memory_order_relaxed);  // no order: the phase's change publishes it
    store(&at.phase, phase + 1, wake_all);
    return true;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

BOOL InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER from, LONG total_threads, LONG spin_count) {
    if (from == nullptr || total_threads <= 0 || spin_count < -1) return fail(ERROR_INVALID_PARAMETER);
    *from = {};
    barrier_of(from) = {static_cast<DWORD>(total_threads), static_cast<DWORD>(total_threads), 0, 0};
    from->Reserved5 = spin_count == -1 ? 2000 : static_cast<DWORD>(spin_count);
    return TRUE;
}

BOOL EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER from, DWORD flags) {
    barrier& at = barrier_of(from);
    const bool counts = (flags & SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE) == 0;
    // no order: the thread that calls Delete knows that this one has arrived
    if (counts) std::atomic_ref(at.inside).fetch_add(1, std::memory_order_relaxed);
    const bool last = arrive(at);
    if (counts) (void)tocsin::fetch_sub(&at.inside, 1u, tocsin::wake_all);
    return last ? TRUE : FALSE;
}

BOOL DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER from) {
    (void)tocsin::wait_until_accepted(&barrier_of(from).inside, [](DWORD inside) { return inside == 0; });
    return TRUE;
}

}  // extern "C"
