// SPDX-License-Identifier: Apache-2.0
// One-time initialization. The word is 0 (new), 1 (one thread initializes, others sleep while it is 1), 3 (threads
// initialize asynchronously), or the context with 2 in its lowest bits (done). All steps are compare-and-exchanges of
// that word, and a thread that changes it from 1 to another value wakes all (src/address.cpp).
//
// Memory order: [win32-once] The changes that wake are sequentially consistent, and all loads acquire. So a thread that
// sees a change sees what came before that change.
//
// Checked by: win32/tests/unit/locks_test.cpp, win32/tests/once_and_barrier_test.cpp.
#include "object.hpp"

#include <tocsin/address.hpp>

#include <atomic>
#include <cstdint>

namespace tocsin::win32 {
namespace {

using once_word = std::uintptr_t;

constexpr once_word is_new = 0;
constexpr once_word begun = 1;
constexpr once_word begun_async = 3;
constexpr once_word low_bits = 3;
constexpr once_word done = 2;

once_word& word_of(PINIT_ONCE once) noexcept { return *reinterpret_cast<once_word*>(once); }
once_word look(PINIT_ONCE once) noexcept {
    return std::atomic_ref(word_of(once)).load(std::memory_order_acquire);  // [win32-once]
}
bool move_on(PINIT_ONCE once, once_word from, once_word to) noexcept {
    return compare_exchange(&word_of(once), from, to, wake_all);  // [win32-once]
}
BOOL already_done(once_word seen, PBOOL pending, LPVOID* context) noexcept {
    *pending = FALSE;
    if (context != nullptr) *context = reinterpret_cast<void*>(seen & ~low_bits);
    return TRUE;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

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
    // The callback is given the caller's own pointer. What is there afterwards is the context, even if the callback has
    // not written it.
    if (function(once, parameter, context) == 0) {
        const DWORD error = GetLastError();
        (void)InitOnceComplete(once, INIT_ONCE_INIT_FAILED, nullptr);
        SetLastError(error);
        return FALSE;
    }
    if (InitOnceComplete(once, 0, context != nullptr ? *context : nullptr) != 0) return TRUE;
    (void)InitOnceComplete(once, INIT_ONCE_INIT_FAILED, nullptr);  // its low bits are not zero
    return fail(ERROR_INVALID_PARAMETER);
}

}  // extern "C"
