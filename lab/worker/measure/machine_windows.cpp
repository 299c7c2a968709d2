// SPDX-License-Identifier: Apache-2.0
// Windows has no public interface for context switches, for exact timers before Windows 10 1803, and for whether a
// thread sleeps. Here a thread sleeps if it has used no processor cycles for a while (or it waits for a processor).
#include "clock.hpp"
#include "futex.hpp"
#include "machine.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <malloc.h>

#define WIN32_LEAN_AND_MEAN
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
#undef far
#undef near
#include <psapi.h>  // after windows.h

namespace lab {
namespace {

constexpr std::int64_t millisecond = 1'000'000;

class thread_handle {
public:
    explicit thread_handle(pid_t thread, DWORD access) noexcept
        : handle_(OpenThread(access, FALSE, static_cast<DWORD>(thread))) {}
    ~thread_handle() {
        if (handle_ != nullptr) CloseHandle(handle_);
    }
    thread_handle(const thread_handle&) = delete;
    thread_handle& operator=(const thread_handle&) = delete;

    HANDLE get() const noexcept { return handle_; }

private:
    const HANDLE handle_;
};

std::int64_t nanoseconds_of(const FILETIME& time) noexcept {  // which counts units of 100 ns
    return static_cast<std::int64_t>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime) * 100;
}

std::vector<ULONG64> cycles_of(std::span<const pid_t> threads) {
    std::vector<ULONG64> all;
    for (const pid_t thread : threads) {
        const thread_handle handle(thread, THREAD_QUERY_LIMITED_INFORMATION);
        ULONG64 cycles = 0;
        if (handle.get() != nullptr) QueryThreadCycleTime(handle.get(), &cycles);
        all.push_back(cycles);
    }
    return all;
}

bool pin(HANDLE thread, int core) noexcept {
    return SetThreadAffinityMask(thread, DWORD_PTR{1} << core) != 0;
}

// From now until then on the steady clock, in the milliseconds of a Windows wait, rounded up.
DWORD milliseconds_until(const timespec* until) noexcept {
    if (until == nullptr) return INFINITE;
    const std::int64_t left = std::int64_t{until->tv_sec} * 1'000'000'000 + until->tv_nsec - now();
    return left <= 0 ? 0 : static_cast<DWORD>((left + millisecond - 1) / millisecond);
}

}  // namespace

// clock.hpp

std::int64_t now() noexcept {
    static const std::int64_t frequency = [] {
        LARGE_INTEGER ticks;
        QueryPerformanceFrequency(&ticks);
        return ticks.QuadPart;
    }();
    LARGE_INTEGER ticks;
    QueryPerformanceCounter(&ticks);
    return ticks.QuadPart / frequency * 1'000'000'000 +
           ticks.QuadPart % frequency * 1'000'000'000 / frequency;
}

std::int64_t thread_cpu() noexcept {
    FILETIME begun{}, ended{}, system{}, user{};
    GetThreadTimes(GetCurrentThread(), &begun, &ended, &system, &user);
    return nanoseconds_of(system) + nanoseconds_of(user);
}

std::int64_t process_cpu() noexcept {
    FILETIME begun{}, ended{}, system{}, user{};
    GetProcessTimes(GetCurrentProcess(), &begun, &ended, &system, &user);
    return nanoseconds_of(system) + nanoseconds_of(user);
}

void sleep_until(std::int64_t when) noexcept {
    // As exact as the system has one. Each thread keeps its own until the process ends.
    static thread_local const HANDLE timer = [] {
        constexpr DWORD high_resolution = 2;  // CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
        const HANDLE exact = CreateWaitableTimerExW(nullptr, nullptr, high_resolution, TIMER_ALL_ACCESS);
        return exact != nullptr ? exact : CreateWaitableTimerExW(nullptr, nullptr, 0, TIMER_ALL_ACCESS);
    }();
    for (std::int64_t left = when - now(); left > 0; left = when - now()) {
        LARGE_INTEGER due;
        due.QuadPart = -std::max<std::int64_t>(left / 100, 1);  // relative, in 100 ns
        if (timer == nullptr || !SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE)) {
            Sleep(1);
        } else {
            WaitForSingleObject(timer, INFINITE);
        }
    }
}

// futex.hpp

bool futex_wait(const futex_word& word, std::uint32_t expected, const timespec* until) noexcept {
    auto* const address = const_cast<futex_word*>(&word);
    const DWORD longest = milliseconds_until(until);
    return WaitOnAddress(address, &expected, sizeof expected, longest) || GetLastError() != ERROR_TIMEOUT;
}

long futex_wake(const futex_word& word, int count) noexcept {
    auto* const address = const_cast<futex_word*>(&word);
    if (count == INT_MAX) {
        WakeByAddressAll(address);
    } else {
        for (int i = 0; i < count; ++i) WakeByAddressSingle(address);
    }
    return 0;  // the system does not say how many it woke
}

// machine.hpp

const std::vector<int>& usable_cores() {
    static const std::vector<int> cores = [] {
        DWORD_PTR ours = 0, all = 0;
        GetProcessAffinityMask(GetCurrentProcess(), &ours, &all);
        std::vector<int> found;
        for (; ours != 0; ours &= ours - 1) found.push_back(std::countr_zero(ours));
        return found;
    }();
    return cores;
}

bool pin_to(int core) noexcept { return pin(GetCurrentThread(), core); }

bool pin_to_nth(std::size_t index) noexcept {
    const std::vector<int>& cores = usable_cores();
    return !cores.empty() && pin_to(cores[index % cores.size()]);
}

bool pin_thread_to_nth(pid_t thread, std::size_t index) noexcept {
    const std::vector<int>& cores = usable_cores();
    const thread_handle handle(thread, THREAD_SET_INFORMATION | THREAD_QUERY_INFORMATION);
    return handle.get() != nullptr && !cores.empty() && pin(handle.get(), cores[index % cores.size()]);
}

// The nearest equivalent: the system raises the priority of a woken thread unless told not to.
void never_preempt_others() noexcept { SetThreadPriorityBoost(GetCurrentThread(), TRUE); }

void exact_timers() noexcept {}  // sleep_until() asks for one

pid_t thread_id() noexcept { return static_cast<pid_t>(GetCurrentThreadId()); }

bool wait_until_asleep(std::span<const pid_t> threads, int patience_ms) {
    const std::int64_t give_up = now() + patience_ms * millisecond;
    std::vector<ULONG64> before = cycles_of(threads);
    do {
        sleep_until(now() + 5 * millisecond);
        std::vector<ULONG64> after = cycles_of(threads);
        if (after == before) return true;
        before = std::move(after);
    } while (now() < give_up);
    return false;
}

std::uint64_t context_switches() { return 0; }
std::uint64_t context_switches_of(std::span<const pid_t>) { return 0; }

std::uint64_t open_descriptors() {
    DWORD count = 0;
    GetProcessHandleCount(GetCurrentProcess(), &count);
    return count;
}

void allow_descriptors() {}

double heap_in_use() {
    const auto heap = reinterpret_cast<HANDLE>(_get_heap_handle());
    double sum = 0;
    PROCESS_HEAP_ENTRY entry{};
    HeapLock(heap);
    while (HeapWalk(heap, &entry)) {
        if ((entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) != 0) sum += entry.cbData;
    }
    HeapUnlock(heap);
    return sum;
}

std::uint64_t resident_bytes() {
    PROCESS_MEMORY_COUNTERS counters{};
    counters.cb = sizeof counters;
    GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
    return counters.WorkingSetSize;
}

void enter_kernel() noexcept { SwitchToThread(); }

bool started_with(std::string_view futex) {
    char value[32];
    return GetEnvironmentVariableA("TOCSIN_WINDOWS_SLEEP", value, sizeof value) == futex.size() &&
           futex == value;
}

int start_with(std::string_view futex) {
    SetEnvironmentVariableA("TOCSIN_WINDOWS_SLEEP", std::string(futex).c_str());
    std::string command = GetCommandLineA();
    STARTUPINFOA how{};
    how.cb = sizeof how;
    PROCESS_INFORMATION made{};
    constexpr int failed = 2;
    if (!CreateProcessA(nullptr, command.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &how, &made))
        return failed;
    DWORD code = failed;
    WaitForSingleObject(made.hProcess, INFINITE);
    GetExitCodeProcess(made.hProcess, &code);
    CloseHandle(made.hThread);
    CloseHandle(made.hProcess);
    return static_cast<int>(code);
}

void start_watchdog(unsigned seconds) {
    const auto bark = [](void* its_seconds) -> DWORD {
        Sleep(static_cast<DWORD>(reinterpret_cast<std::uintptr_t>(its_seconds)) * 1'000);
        DWORD written = 0;
        WriteFile(GetStdHandle(STD_ERROR_HANDLE), watchdog_message, sizeof watchdog_message - 1, &written,
                  nullptr);
        TerminateProcess(GetCurrentProcess(), 3);
        return 0;
    };
    using routine = DWORD(WINAPI*)(void*);
    const HANDLE thread = CreateThread(nullptr, 0, static_cast<routine>(bark),
                                       reinterpret_cast<void*>(std::uintptr_t{seconds}), 0, nullptr);
    if (thread != nullptr) CloseHandle(thread);
}

}  // namespace lab
