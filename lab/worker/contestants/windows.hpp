// What Windows itself offers: kernel events and semaphores, slim locks, critical sections and condition variables.
#pragma once

#include "../contestant.hpp"
#include "../measure/clock.hpp"
#include "monitor.hpp"

#include <climits>
#include <cstddef>
#include <vector>

#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
#undef far
#undef near

namespace lab {

// From now until then, in the milliseconds of a Windows wait, rounded up.
inline DWORD milliseconds_until(std::int64_t when) noexcept {
    const std::int64_t left = when - now();
    return left <= 0 ? 0 : static_cast<DWORD>((left + 999'999) / 1'000'000);
}

// A kernel object to wait for; the wait takes what there is to take.
class kernel_object {
public:
    explicit kernel_object(HANDLE made) noexcept : handle_(made) {}
    ~kernel_object() { CloseHandle(handle_); }
    kernel_object(const kernel_object&) = delete;
    kernel_object& operator=(const kernel_object&) = delete;

    void wait() noexcept { WaitForSingleObject(handle_, INFINITE); }

protected:
    bool try_take() const noexcept { return WaitForSingleObject(handle_, 0) == WAIT_OBJECT_0; }
    bool take_within(std::chrono::nanoseconds longest) noexcept {
        const std::int64_t until = now() + longest.count();
        do {
            if (WaitForSingleObject(handle_, milliseconds_until(until)) == WAIT_OBJECT_0) return true;
        } while (now() < until);
        return false;
    }

    const HANDLE handle_;
};

// Auto-reset events, at most 64, and WaitForMultipleObjects over all of them.
class kernel_event_group {
public:
    explicit kernel_event_group(std::size_t count) {
        for (std::size_t i = 0; i != count; ++i)
            events_.push_back(CreateEventW(nullptr, FALSE, FALSE, nullptr));
    }
    ~kernel_event_group() {
        for (const HANDLE each : events_) CloseHandle(each);
    }
    kernel_event_group(const kernel_event_group&) = delete;
    kernel_event_group& operator=(const kernel_event_group&) = delete;

    void set(std::size_t which) noexcept { SetEvent(events_[which]); }
    std::size_t wait_any() noexcept { return wait(FALSE) - WAIT_OBJECT_0; }
    void wait_all() noexcept { wait(TRUE); }

private:
    DWORD wait(BOOL all) noexcept {
        return WaitForMultipleObjects(static_cast<DWORD>(events_.size()), events_.data(), all, INFINITE);
    }

    std::vector<HANDLE> events_;
};

struct windows_event {
    static constexpr contestant_info info{
        .name = "windows_event",
        .label = "kernel event",
        .role = role::peer,
        .about = "CreateEvent, SetEvent, WaitForSingleObject; for several WaitForMultipleObjects",
        .limits = "a kernel object each; every call enters the kernel; 64 in one wait",
        .no_lock = "is an event",
        .no_address_wait = "is a kernel object, not an address",
    };

    class manual_event : public kernel_object {
    public:
        manual_event() noexcept : kernel_object(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {}
        void set() noexcept { SetEvent(handle_); }
        void reset() noexcept { ResetEvent(handle_); }
        bool is_set() const noexcept { return try_take(); }  // takes nothing
    };

    class auto_event : public kernel_object {
    public:
        auto_event() noexcept : kernel_object(CreateEventW(nullptr, FALSE, FALSE, nullptr)) {}
        void set() noexcept { SetEvent(handle_); }
        bool try_wait() noexcept { return try_take(); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept { return take_within(longest); }
    };

    using event_group = kernel_event_group;
};

struct windows_semaphore {
    static constexpr contestant_info info{
        .name = "windows_semaphore",
        .label = "kernel semaphore",
        .role = role::peer,
        .about = "CreateSemaphore, ReleaseSemaphore, WaitForSingleObject",
        .limits = "counts: sets don't absorb each other; a kernel object each; every call enters the kernel",
        .no_manual_event = "lets one through for each release",
        .no_lock = "any thread may release it",
        .no_address_wait = "is a kernel object, not an address",
    };

    class auto_event : public kernel_object {
    public:
        static constexpr bool counts = true;
        auto_event() noexcept : kernel_object(CreateSemaphoreW(nullptr, 0, LONG_MAX, nullptr)) {}
        void set() noexcept { ReleaseSemaphore(handle_, 1, nullptr); }
        bool try_wait() noexcept { return try_take(); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept { return take_within(longest); }
    };
};

class srw_monitor {
public:
    void lock() noexcept { AcquireSRWLockExclusive(&lock_); }
    void unlock() noexcept { ReleaseSRWLockExclusive(&lock_); }
    void sleep() noexcept { SleepConditionVariableSRW(&changed_, &lock_, INFINITE, 0); }
    bool sleep_until(std::int64_t when) noexcept {
        return SleepConditionVariableSRW(&changed_, &lock_, milliseconds_until(when), 0) || now() < when;
    }
    void wake_one() noexcept { WakeConditionVariable(&changed_); }
    void wake_all() noexcept { WakeAllConditionVariable(&changed_); }

private:
    SRWLOCK lock_ = SRWLOCK_INIT;
    CONDITION_VARIABLE changed_ = CONDITION_VARIABLE_INIT;
};

struct srw_cond : monitored<srw_monitor> {
    static constexpr contestant_info info{
        .name = "srw_cond",
        .label = "SRWLOCK + cond",
        .role = role::peer,
        .about = "a flag under an SRWLOCK, waited for with a CONDITION_VARIABLE",
        .limits = monitored::limits,
        .no_lock = "its lock is the contestant srw_lock",
        .no_address_wait = "waits on its own condition variable only",
    };
};

class critical_section {
public:
    critical_section() noexcept { InitializeCriticalSection(&section_); }
    ~critical_section() { DeleteCriticalSection(&section_); }
    critical_section(const critical_section&) = delete;
    critical_section& operator=(const critical_section&) = delete;

    void lock() noexcept { EnterCriticalSection(&section_); }
    void unlock() noexcept { LeaveCriticalSection(&section_); }

protected:
    CRITICAL_SECTION section_;
};

class critical_section_monitor : public critical_section {
public:
    void sleep() noexcept { SleepConditionVariableCS(&changed_, &section_, INFINITE); }
    bool sleep_until(std::int64_t when) noexcept {
        return SleepConditionVariableCS(&changed_, &section_, milliseconds_until(when)) || now() < when;
    }
    void wake_one() noexcept { WakeConditionVariable(&changed_); }
    void wake_all() noexcept { WakeAllConditionVariable(&changed_); }

private:
    CONDITION_VARIABLE changed_ = CONDITION_VARIABLE_INIT;
};

struct critical_section_cond : monitored<critical_section_monitor> {
    static constexpr contestant_info info{
        .name = "critical_section_cond",
        .label = "CRITICAL_SECTION + cond",
        .role = role::peer,
        .about = "a flag under a CRITICAL_SECTION, waited for with a CONDITION_VARIABLE",
        .limits = monitored::limits,
        .no_lock = "its lock is the contestant critical_section",
        .no_address_wait = "waits on its own condition variable only",
    };
};

// The `info` of all locks.
constexpr contestant_info windows_lock(std::string_view name, std::string_view label,
                                       std::string_view limits) {
    return {.name = name,
            .label = label,
            .role = role::peer,
            .about = "the lock of that name",
            .limits = limits,
            .no_manual_event = "is a lock",
            .no_auto_event = "is a lock: only its owner may unlock it",
            .no_address_wait = "is a lock"};
}

struct srw_lock {
    static constexpr contestant_info info =
        windows_lock("srw_lock", "SRWLOCK", "8 bytes, whatever size the case asks for");
    class own_lock {
    public:
        void lock() noexcept { AcquireSRWLockExclusive(&lock_); }
        void unlock() noexcept { ReleaseSRWLockExclusive(&lock_); }

    private:
        SRWLOCK lock_ = SRWLOCK_INIT;
    };
};

struct critical_section_lock {
    static constexpr contestant_info info =
        windows_lock("critical_section", "CRITICAL_SECTION", "40 bytes, whatever size the case asks for");
    using own_lock = critical_section;
};

// tocsin over the ways to sleep that older Windows has: the same program, started with another choice.

inline constexpr contestant_info tocsin_srw{
    .name = "tocsin_srw",
    .label = "tocsin (srw)",
    .role = role::variant,
    .about = "tocsin over slim locks and condition variables, as on Windows Vista and 7",
    .futex = "srw",
};
inline constexpr contestant_info tocsin_kernel_event{
    .name = "tocsin_kernel_event",
    .label = "tocsin (kernel event)",
    .role = role::variant,
    .about = "tocsin over kernel events, as on Windows before Vista",
    .futex = "kernel_event",
};

}  // namespace lab
