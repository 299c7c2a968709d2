// SPDX-License-Identifier: Apache-2.0
// The functions of system.hpp on Windows. Windows XP and later have all the system calls that this file makes.
#include "platform/system/windows.hpp"

#include "platform/system/cached_urgency.hpp"
#include "platform/system/system.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace tocsin::platform {

unsigned processors() noexcept {
    // Only the first call counts the processors. It comes while the library is being loaded (core/lot/table.cpp), as on
    // other systems. The result is the number of processors that the process may use at that time, in its first group
    // of processors. A group has at most 64 processors. So a program with more gets too small a number, which costs it
    // only some speed.
    static const unsigned count = [] {
        DWORD_PTR ours = 0;
        DWORD_PTR all = 0;
        if (!::GetProcessAffinityMask(::GetCurrentProcess(), &ours, &all) || ours == 0) return 1u;
        return static_cast<unsigned>(std::popcount(static_cast<std::uintptr_t>(ours)));
    }();
    return count;
}

void yield_thread() noexcept { ::SwitchToThread(); }

std::int64_t boot_time() noexcept {
    using query = void WINAPI(ULONGLONG*);  // in units of 100 ns; Windows 10 and later
    static query* const interrupt_time = exported<query>(L"kernelbase.dll", "QueryInterruptTime");
    if (interrupt_time == nullptr) return static_cast<std::int64_t>(::GetTickCount64()) * 1'000'000;
    ULONGLONG now = 0;
    interrupt_time(&now);
    return static_cast<std::int64_t>(now) * 100;
}

std::int64_t recent_time() noexcept { return std::chrono::steady_clock::now().time_since_epoch().count(); }

std::int64_t unique_time(std::int64_t time) noexcept {
    constinit thread_local std::int64_t last = std::numeric_limits<std::int64_t>::min();
    return last = std::max(time, last + 1);
}

std::uint64_t thread_number() noexcept { return ::GetCurrentThreadId(); }
std::uint64_t thread_number_or_nickname() noexcept { return thread_number(); }
learnt_number learn_thread_number() noexcept { return {thread_number(), 0}; }
void forget_thread_number() noexcept {}

namespace {

constinit thread_local cached_urgency known_urgency;

// The priority within the process's class: -15 to 15, but for the class of real-time processes.
unsigned ask_urgency() noexcept {
    const int priority = ::GetThreadPriority(::GetCurrentThread());
    if (priority == -15) return 0;
    if (priority == 15) return real_time_urgency;
    return priority < -9 || priority > 9 ? ordinary_urgency : static_cast<unsigned>(10 + priority);
}

}  // namespace

unsigned thread_urgency(std::int64_t now) noexcept { return known_urgency.at(now, ask_urgency); }

unsigned known_thread_urgency() noexcept { return known_urgency.known(); }

void forget_thread_urgency() noexcept { known_urgency.forget(); }

bool exchange_look_due(bool due) noexcept {
    constinit thread_local bool is_due = false;
    return std::exchange(is_due, due);
}

std::uint32_t drawn_number() noexcept {
    static constinit std::atomic<std::uint32_t> drawn{0};
    return static_cast<std::uint32_t>(
        mix(drawn.fetch_add(1, std::memory_order_relaxed), 0));  // no order: any will do
}

signal_mask signal_mask::current() noexcept { return {}; }
signal_mask signal_mask::exchange() const noexcept { return {}; }

// The library calls this function while it is being loaded. The system's random number generator may have to load a
// module, which is not allowed at that time. So this function mixes what others don't know exactly: times, the numbers
// of the process and the thread, and where things are in memory.
std::uint64_t random_number() noexcept {
    LARGE_INTEGER ticks{};
    ::QueryPerformanceCounter(&ticks);
    FILETIME now{}, created{}, exited{}, kernel{}, user{};
    ::GetSystemTimeAsFileTime(&now);
    ::GetProcessTimes(::GetCurrentProcess(), &created, &exited, &kernel, &user);
    const auto number_of = [](const FILETIME& time) {
        return static_cast<std::uint64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime;
    };
    const auto address_of = [](const void* what) {
        return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(what));
    };
    std::uint64_t drawn = mix(static_cast<std::uint64_t>(ticks.QuadPart), number_of(now));
    drawn = mix(drawn, number_of(created));
    drawn = mix(drawn, ::GetCurrentProcessId() + (static_cast<std::uint64_t>(::GetCurrentThreadId()) << 32));
    drawn = mix(drawn, address_of(&ticks));                                        // the stack
    drawn = mix(drawn, address_of(reinterpret_cast<const void*>(&yield_thread)));  // this module
    return mix(drawn, address_of(::GetProcessHeap()));
}

namespace {

DWORD WINAPI body(void* what) noexcept {
    reinterpret_cast<void (*)() noexcept>(what)();
    return 0;
}

}  // namespace

void keep_loaded() noexcept {
    static constinit std::atomic<bool> is_kept{false};
    if (is_kept.load(std::memory_order_relaxed)) return;  // no order: it only saves a second call
    HMODULE pinned = nullptr;
    ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                         reinterpret_cast<const wchar_t*>(keep_loaded), &pinned);
    is_kept.store(true, std::memory_order_relaxed);  // no order
}

int start_thread(void (*run)() noexcept) noexcept {
    const HANDLE thread = ::CreateThread(nullptr, 0, body, reinterpret_cast<void*>(run), 0, nullptr);
    if (thread == nullptr) return EAGAIN;
    ::CloseHandle(thread);
    return 0;
}

bool other_threads_are_gone() noexcept {
    using function = BYTE WINAPI();
    static function* const shutdown_in_progress =
        exported<function>(L"ntdll.dll", "RtlDllShutdownInProgress");
    return shutdown_in_progress != nullptr && shutdown_in_progress() != 0;
}

bool is_exiting() noexcept { return other_threads_are_gone(); }

// Windows has no fork.
void on_fork_in_child(void (*)() noexcept) noexcept {}

void close_descriptor(int descriptor) noexcept {
    ::CloseHandle(reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor)));
}

std::uint32_t descriptor_identity(int) noexcept { return 0; }

void say(const char* message) noexcept {
    // One write, so that messages of several threads do not mix. If it fails, there is nowhere to report that.
    DWORD written = 0;
    ::WriteFile(::GetStdHandle(STD_ERROR_HANDLE), message, static_cast<DWORD>(std::strlen(message)), &written,
                nullptr);
}

void die(const char* message) noexcept {
    say(message);
    std::abort();
}

}  // namespace tocsin::platform
