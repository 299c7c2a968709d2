// SPDX-License-Identifier: Apache-2.0
// The Windows headers, and helpers that several of the Windows files share. src/CMakeLists.txt defines the macros that
// keep the headers small (WIN32_LEAN_AND_MEAN, NOMINMAX).
#pragma once

#include <tocsin/deadline.hpp>

#include <algorithm>
#include <cstdint>

#include <windows.h>
// Words that the Windows headers define as macros, which a unity build would put into the files behind this one.
#undef far
#undef interface
#undef near
#undef small

namespace tocsin::platform {

// Returns a function that not every Windows has, from a module that is already loaded. Returns null if the module is
// not loaded or does not have the function. If the program were linked to such a function in the usual way, the program
// would not start on a system that lacks the function.
template <class Function>
Function* exported(const wchar_t* module, const char* name) noexcept {
    const HMODULE found = ::GetModuleHandleW(module);
    if (found == nullptr) return nullptr;
    return reinterpret_cast<Function*>(reinterpret_cast<void*>(::GetProcAddress(found, name)));
}

// The timeout of a Windows wait until the deadline, rounded up. It is INFINITE for `never`, otherwise at most 2^30
// milliseconds. So a thread that sleeps longer makes several calls.
inline DWORD milliseconds_left(const deadline& until) noexcept {
    if (until.is_never()) return INFINITE;
    constexpr std::int64_t longest = 1 << 30;
    const std::int64_t left = until.longest_sleep();
    return static_cast<DWORD>(std::min(left / 1'000'000 + (left % 1'000'000 != 0 ? 1 : 0), longest));
}

// A critical section. Every Windows has critical sections, and each needs only one initialization.
class mutex {
public:
    mutex() noexcept { ::InitializeCriticalSection(&it_); }
    ~mutex() { ::DeleteCriticalSection(&it_); }
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    void lock() noexcept { ::EnterCriticalSection(&it_); }
    void unlock() noexcept { ::LeaveCriticalSection(&it_); }

private:
    CRITICAL_SECTION it_;
};

class lock_guard {
public:
    explicit lock_guard(mutex& what) noexcept : what_(what) { what_.lock(); }
    ~lock_guard() { what_.unlock(); }
    lock_guard(const lock_guard&) = delete;
    lock_guard& operator=(const lock_guard&) = delete;

private:
    mutex& what_;
};

}  // namespace tocsin::platform
