// SPDX-License-Identifier: Apache-2.0
// SRW locks (shared_lock.hpp), critical sections, and condition variables (src/condition.cpp). They are words in the
// caller's memory, without handles: no table, no allocation, nothing to destroy.
//
// Critical sections: a bit lock (include/tocsin/bit_lock.hpp) in `LockSemaphore`, and the fields that Windows has. Only
// the owner writes `OwningThread`, `LockCount` and `RecursionCount`, and `OwningThread` says who that is. A thread that
// compares `OwningThread` with its own number finds it equal exactly if it owns the section, because only this thread
// writes that number there.
//
// Memory order: [lock-release] of the bit lock orders the fields. Threads read `OwningThread` without owning
// the section, and some programs read `LockCount`, too. So these two are atomic, without order.
//
// Checked by: win32/tests/unit/locks_test.cpp, win32/tests.
#include "shared_lock.hpp"
#include "thread.hpp"
#include "wait.hpp"

#include <tocsin/bit_lock.hpp>
#include <tocsin/condition.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace tocsin::win32 {
namespace {

// Unused where an SRWLOCK always has room: clang 22 says so.
[[noreturn, maybe_unused]] void refuse(PSRWLOCK lock) noexcept {
    std::fprintf(stderr, "tocsin: SRW lock at %p: not aligned to 4 bytes\n", static_cast<void*>(lock));
    std::abort();
}

// The word of the lock: four aligned bytes inside the SRWLOCK. On 64-bit systems, the SRWLOCK has eight bytes, so it
// may be at any address, as on Windows. On 32-bit systems it has only four. If these are not aligned, there is no room
// for the word, and the call ends the program.
shared_lock lock_of(PSRWLOCK lock) noexcept {
    const auto address = (reinterpret_cast<std::uintptr_t>(lock) + 3) & ~std::uintptr_t{3};
    if constexpr (sizeof(SRWLOCK) == sizeof(shared_lock::word)) {
        if (address != reinterpret_cast<std::uintptr_t>(lock)) [[unlikely]]
            refuse(lock);
    }
    return shared_lock(*reinterpret_cast<shared_lock::word*>(address));
}

// None of these accesses has an order; the top of this file says why.
HANDLE number_of_this_thread() noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::uintptr_t>(id_of_this_thread()));
}
void set_owner(LPCRITICAL_SECTION of, HANDLE owner) noexcept {
    std::atomic_ref(of->OwningThread)
        .store(owner, std::memory_order_relaxed);  // no order: only the owner writes
    std::atomic_ref(of->LockCount)
        .store(owner != nullptr ? -2 : -1, std::memory_order_relaxed);  // no order: the same
}
bool is_owned(LPCRITICAL_SECTION of) noexcept {
    // no order: only this thread writes its own number
    return std::atomic_ref(of->OwningThread).load(std::memory_order_relaxed) == number_of_this_thread();
}
bit_lock<std::uint32_t> lock_of(LPCRITICAL_SECTION of) noexcept {
    void* const word = static_cast<void*>(&of->LockSemaphore);
    return {*static_cast<detail::atomic<std::uint32_t>*>(word), 0};
}

[[maybe_unused]] void refuse(LPCRITICAL_SECTION section, const char* what) noexcept {
    std::fprintf(stderr, "tocsin: critical section at %p: %s\n", static_cast<void*>(section), what);
    std::abort();
}

tocsin::condition& condition_of(PCONDITION_VARIABLE from) noexcept {
    return *std::launder(reinterpret_cast<tocsin::condition*>(from));
}
static_assert(sizeof(tocsin::condition) == sizeof(CONDITION_VARIABLE));
static_assert(alignof(tocsin::condition) <= alignof(CONDITION_VARIABLE));

constexpr DWORD max_spins = 0x00FF'FFFF;  // the other bits were flags once

// What a sleep gives up and takes back.
struct section_lock {
    LPCRITICAL_SECTION section;
    void lock() noexcept { EnterCriticalSection(section); }
    void unlock() noexcept { LeaveCriticalSection(section); }
};
struct srw_lock {
    PSRWLOCK of;
    bool shared;
    void lock() noexcept { shared ? AcquireSRWLockShared(of) : AcquireSRWLockExclusive(of); }
    void unlock() noexcept { shared ? ReleaseSRWLockShared(of) : ReleaseSRWLockExclusive(of); }
};

template <class Lock>
BOOL sleep(PCONDITION_VARIABLE condition, Lock lock, DWORD milliseconds) noexcept {
    const bool woken =
        condition_of(condition).wait_until(lock, deadline_after(milliseconds)) == cv_status::no_timeout;
    return woken ? TRUE : fail(ERROR_TIMEOUT);
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

VOID InitializeSRWLock(PSRWLOCK lock) { *lock = SRWLOCK_INIT; }
VOID AcquireSRWLockExclusive(PSRWLOCK lock) { lock_of(lock).lock(); }
VOID AcquireSRWLockShared(PSRWLOCK lock) { lock_of(lock).lock_shared(); }
BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK lock) { return lock_of(lock).try_lock() ? 1 : 0; }
BOOLEAN TryAcquireSRWLockShared(PSRWLOCK lock) { return lock_of(lock).try_lock_shared() ? 1 : 0; }
VOID ReleaseSRWLockExclusive(PSRWLOCK lock) { lock_of(lock).unlock(); }
VOID ReleaseSRWLockShared(PSRWLOCK lock) { lock_of(lock).unlock_shared(); }

VOID InitializeCriticalSection(LPCRITICAL_SECTION section) {
    *section = {reinterpret_cast<PVOID>(LONG_PTR{-1}), -1, 0, nullptr, nullptr, 0};
}
BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION section, DWORD spin_count, DWORD flags) {
    constexpr DWORD known = CRITICAL_SECTION_NO_DEBUG_INFO | RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN |
                            RTL_CRITICAL_SECTION_FLAG_STATIC_INIT | RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE |
                            RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO;
    if ((flags & ~known) != 0 || spin_count > max_spins) return fail(ERROR_INVALID_PARAMETER);
    InitializeCriticalSection(section);
    section->SpinCount = spin_count;
    return TRUE;
}
BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION section, DWORD spin_count) {
    return InitializeCriticalSectionEx(section, spin_count & max_spins, 0);
}
DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION section, DWORD spin_count) {
    const auto before = static_cast<DWORD>(section->SpinCount);
    section->SpinCount = spin_count & max_spins;
    return before;
}
VOID EnterCriticalSection(LPCRITICAL_SECTION section) {
    if (!is_owned(section)) {
        lock_of(section).lock();
        set_owner(section, number_of_this_thread());
    }
    ++section->RecursionCount;
}
BOOL TryEnterCriticalSection(LPCRITICAL_SECTION section) {
    if (!is_owned(section)) {
        if (!lock_of(section).try_lock()) return FALSE;
        set_owner(section, number_of_this_thread());
    }
    ++section->RecursionCount;
    return TRUE;
}
VOID LeaveCriticalSection(LPCRITICAL_SECTION section) {
#if TOCSIN_CHECKED
    if (!is_owned(section)) refuse(section, "left by a thread that does not own it");
#endif
    if (--section->RecursionCount != 0) return;
    set_owner(section, nullptr);
    lock_of(section).unlock();
}
VOID DeleteCriticalSection(LPCRITICAL_SECTION section) {
#if TOCSIN_CHECKED
    if (section->OwningThread != nullptr) refuse(section, "deleted while a thread owns it");
#endif
    *section = {nullptr, -1, 0, nullptr, nullptr, 0};
}

VOID InitializeConditionVariable(PCONDITION_VARIABLE condition) { *condition = CONDITION_VARIABLE_INIT; }
BOOL SleepConditionVariableCS(PCONDITION_VARIABLE condition, PCRITICAL_SECTION section, DWORD milliseconds) {
    return sleep(condition, section_lock{section}, milliseconds);
}
BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE condition, PSRWLOCK lock, DWORD milliseconds,
                               ULONG flags) {
    if ((flags & ~CONDITION_VARIABLE_LOCKMODE_SHARED) != 0) return fail(ERROR_INVALID_PARAMETER);
    return sleep(condition, srw_lock{lock, flags != 0}, milliseconds);
}
VOID WakeConditionVariable(PCONDITION_VARIABLE condition) { condition_of(condition).notify_one(); }
VOID WakeAllConditionVariable(PCONDITION_VARIABLE condition) { condition_of(condition).notify_all(); }

}  // extern "C"
