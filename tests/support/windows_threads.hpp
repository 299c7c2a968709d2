// SPDX-License-Identifier: Apache-2.0
// What the tests ask about a thread from outside, on Windows.
//
// The suites run under Wine. There each thread is a thread of the host, and the host's kernel says what the thread
// does. So a thread's number is the host's, and one of the host's system calls returns it. Windows itself would need
// another source: there the facts about sleep are not available, and a test that asks for them ends the program.
#pragma once

#include <cstdint>
#include <string>

#include <pthread.h>
#include <sys/types.h>

#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
#undef far
#undef near

namespace support {

inline bool runs_under_wine() {
    static const bool it_does = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != nullptr;
    return it_does;
}

// Makes a system call without arguments of the x86-64 Linux on which Wine runs.
inline long host_call(long number) {
    long result = 0;
    asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
    return result;
}

inline pid_t thread_id() {
    constexpr long gettid = 186;
    return runs_under_wine() ? host_call(gettid) : static_cast<pid_t>(GetCurrentThreadId());
}

// The number by which the library names the calling thread: Windows' number, not the host's.
inline std::uint64_t thread_number() { return GetCurrentThreadId(); }

// The host's folder about a thread of this process.
inline std::string about_thread(pid_t thread) {
    constexpr long getpid = 39;
    return "Z:\\proc\\" + std::to_string(host_call(getpid)) + "\\task\\" + std::to_string(thread) + "\\";
}

}  // namespace support
