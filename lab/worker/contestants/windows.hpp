// SPDX-License-Identifier: Apache-2.0
// What Windows itself offers: kernel events and semaphores, slim locks, critical sections and condition variables.
#pragma once

#include "../contestant.hpp"
#include "handles.hpp"
#include "monitor.hpp"

namespace lab {

struct windows_event : handle_events {
    static constexpr contestant_info info{
        .name = "windows_event",
        .label = "kernel event",
        .role = role::peer,
        .about = "CreateEvent, SetEvent, WaitForSingleObject; for several WaitForMultipleObjects",
        .limits = "a kernel object each; every call enters the kernel; 64 in one wait",
        .no_lock = "is an event",
        .no_address_wait = "is a kernel object, not an address",
    };
};

struct windows_semaphore : handle_semaphores {
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
};

struct windows_interlocked : interlocked_functions {
    static constexpr contestant_info info =
        interlocked_info("windows_interlocked", "Interlocked", role::peer,
                         "InterlockedIncrement, InterlockedExchange, InterlockedCompareExchange");
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

// tocsin over the way to sleep that older Windows has: the same program, started with another choice.

inline constexpr contestant_info tocsin_srw{
    .name = "tocsin_srw",
    .label = "tocsin (srw)",
    .role = role::variant,
    .about = "tocsin over slim locks and condition variables, as on Windows Vista and 7",
    .futex = "srw",
};

}  // namespace lab
