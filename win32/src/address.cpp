// SPDX-License-Identifier: Apache-2.0
// WaitOnAddress(), one-time initialization and synchronization barriers: all are built on tocsin's waits on addresses
// (src/address.cpp). A wake releases only threads that wait at this moment, first in, first out.
//
// InitOnce: the word is 0 (new), 1 (one thread initializes, others sleep while it is 1), 3 (threads initialize
// asynchronously), or the context with 2 in its lowest bits (done). All steps are compare-and-exchanges of that word,
// and a thread that changes it from 1 to another value wakes all.
//
// Barriers: `left` counts down the threads that a phase still lacks. The last thread sets it back to the total, and
// then changes `phase`, which begins the next phase and wakes the others. No thread can arrive for the next phase
// before that change. `inside` counts the threads for which DeleteSynchronizationBarrier() waits. A thread's last step
// is to count itself out of `inside`. After this, it touches the barrier no more (address.hpp).
//
// Memory order: [win32-address] The changes that wake are sequentially consistent, and all looks acquire: a thread that
// sees the change sees what came before it.
//
// Checked by: tests/win32_unit/locks_test.cpp, tests/win32.
#include "object.hpp"
#include "wait.hpp"

#include <tocsin/address.hpp>

#include <atomic>
#include <cstring>

namespace tocsin::win32 {
namespace {

template <class T>
BOOL wait_on(const volatile void* address, const void* compare, DWORD milliseconds) {
    T expected;
    std::memcpy(&expected, compare, sizeof expected);
    const auto how = wait_on_address(const_cast<const T*>(static_cast<const volatile T*>(address)), expected,
                                     deadline_after(milliseconds));
    return how == address_status::timed_out ? fail(ERROR_TIMEOUT) : TRUE;
}

// ---- One-time initialization ----------------------------------------------------------------------------------------

using once_word = std::uintptr_t;

constexpr once_word is_new = 0;
constexpr once_word begun = 1;
constexpr once_word begun_async = 3;
constexpr once_word low_bits = 3;
constexpr once_word done = 2;

once_word& word_of(PINIT_ONCE once) noexcept { return *reinterpret_cast<once_word*>(once); }
once_word look(PINIT_ONCE once) noexcept {
    return std::atomic_ref(word_of(once)).load(std::memory_order_acquire);  // [win32-address]
}
bool move_on(PINIT_ONCE once, once_word from, once_word to) noexcept {
    return compare_exchange(&word_of(once), from, to, wake_all);
}
BOOL already_done(once_word seen, PBOOL pending, LPVOID* context) noexcept {
    *pending = FALSE;
    if (context != nullptr) *context = reinterpret_cast<void*>(seen & ~low_bits);
    return TRUE;
}

// ---- Barriers -------------------------------------------------------------------------------------------------------

struct barrier {
    DWORD left;
    DWORD total;
    DWORD phase;
    DWORD inside;
};
static_assert(sizeof(barrier) <= sizeof(SYNCHRONIZATION_BARRIER));

barrier& barrier_of(LPSYNCHRONIZATION_BARRIER from) noexcept { return *reinterpret_cast<barrier*>(from); }

bool arrive(barrier& at) noexcept {
    const DWORD phase = std::atomic_ref(at.phase).load(std::memory_order_acquire);  // [win32-address]
    const DWORD total = at.total;
    // [win32-address] releases what this thread did, and acquires what those that arrived before did.
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

BOOL WaitOnAddress(volatile VOID* address, PVOID compare, SIZE_T size, DWORD milliseconds) {
    const bool is_width = size == 1 || size == 2 || size == 4 || size == 8;
    if (!is_width || address == nullptr || compare == nullptr ||
        reinterpret_cast<std::uintptr_t>(address) % size != 0)
        return fail(ERROR_INVALID_PARAMETER);
    switch (size) {
        case 1: return wait_on<std::uint8_t>(address, compare, milliseconds);
        case 2: return wait_on<std::uint16_t>(address, compare, milliseconds);
        case 4: return wait_on<std::uint32_t>(address, compare, milliseconds);
        default: return wait_on<std::uint64_t>(address, compare, milliseconds);
    }
}
VOID WakeByAddressSingle(PVOID address) {
    if (address != nullptr) (void)tocsin::wake_by_address_one(address);
}
VOID WakeByAddressAll(PVOID address) {
    if (address != nullptr) (void)tocsin::wake_by_address_all(address);
}

VOID InitOnceInitialize(PINIT_ONCE once) { *once = INIT_ONCE_STATIC_INIT; }

BOOL InitOnceBeginInitialize(LPINIT_ONCE once, DWORD flags, PBOOL pending, LPVOID* context) {
    if ((flags & ~(INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC)) != 0 ||
        flags == (INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC))
        return fail(ERROR_INVALID_PARAMETER);
    for (;;) {
        const once_word seen = look(once);
        if ((seen & low_bits) == done) return already_done(seen, pending, context);
        if (flags == INIT_ONCE_CHECK_ONLY) return fail(ERROR_GEN_FAILURE);
        const bool async = flags == INIT_ONCE_ASYNC;
        if (seen != is_new && async != (seen == begun_async)) return fail(ERROR_INVALID_PARAMETER);
        if (seen == begun) {
            (void)tocsin::wait_on_address(&word_of(once), begun);
        } else if (seen == begun_async || move_on(once, is_new, async ? begun_async : begun)) {
            *pending = TRUE;
            return TRUE;
        }
    }
}

BOOL InitOnceComplete(LPINIT_ONCE once, DWORD flags, LPVOID context) {
    const bool failed = (flags & INIT_ONCE_INIT_FAILED) != 0;
    const bool async = (flags & INIT_ONCE_ASYNC) != 0;
    const auto value = reinterpret_cast<once_word>(context);
    if ((flags & ~(INIT_ONCE_INIT_FAILED | INIT_ONCE_ASYNC)) != 0 || (failed && (async || value != 0)) ||
        (value & low_bits) != 0)
        return fail(ERROR_INVALID_PARAMETER);
    const once_word seen = look(once);
    if (seen == (async ? begun : begun_async)) return fail(ERROR_INVALID_PARAMETER);
    const once_word next = failed ? is_new : value | done;
    return move_on(once, async ? begun_async : begun, next) ? TRUE : fail(ERROR_GEN_FAILURE);
}

BOOL InitOnceExecuteOnce(PINIT_ONCE once, PINIT_ONCE_FN function, PVOID parameter, LPVOID* context) {
    BOOL pending = FALSE;
    if (InitOnceBeginInitialize(once, 0, &pending, context) == 0) return FALSE;
    if (pending == 0) return TRUE;
    PVOID made = nullptr;
    if (function(once, parameter, &made) == 0) {
        const DWORD error = GetLastError();
        (void)InitOnceComplete(once, INIT_ONCE_INIT_FAILED, nullptr);
        SetLastError(error);
        return FALSE;
    }
    if (InitOnceComplete(once, 0, made) == 0) {
        (void)InitOnceComplete(once, INIT_ONCE_INIT_FAILED, nullptr);
        return fail(ERROR_INVALID_PARAMETER);
    }
    if (context != nullptr) *context = made;
    return TRUE;
}

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
