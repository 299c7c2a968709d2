// SPDX-License-Identifier: Apache-2.0
// Events, semaphores and atomic numbers by Windows' calls: Windows' own, or elsewhere those of tocsin/win32.h.
#pragma once

#include "../contestant.hpp"
#include "../measure/clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#if defined(_WIN32)
#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
#undef far
#undef near
#else
#include <tocsin/win32.h>
#endif

namespace lab {

// From now until then, in the milliseconds of a Windows wait, rounded up.
inline DWORD milliseconds_until(std::int64_t when) noexcept {
    const std::int64_t left = when - now();
    return left <= 0 ? 0 : static_cast<DWORD>((left + 999'999) / 1'000'000);
}

// An object to wait for; the wait takes what there is to take.
class handle_owner {
public:
    explicit handle_owner(HANDLE made) noexcept : handle_(made) {}
    ~handle_owner() { CloseHandle(handle_); }
    handle_owner(const handle_owner&) = delete;
    handle_owner& operator=(const handle_owner&) = delete;

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
class handle_group {
public:
    explicit handle_group(std::size_t count) {
        for (std::size_t i = 0; i != count; ++i)
            events_.push_back(CreateEventW(nullptr, FALSE, FALSE, nullptr));
    }
    ~handle_group() {
        for (const HANDLE each : events_) CloseHandle(each);
    }
    handle_group(const handle_group&) = delete;
    handle_group& operator=(const handle_group&) = delete;

    void set(std::size_t which) noexcept { SetEvent(events_[which]); }
    std::size_t wait_any() noexcept { return wait(FALSE) - WAIT_OBJECT_0; }
    void wait_all() noexcept { wait(TRUE); }

private:
    DWORD wait(BOOL all) noexcept {
        return WaitForMultipleObjects(static_cast<DWORD>(events_.size()), events_.data(), all, INFINITE);
    }

    std::vector<HANDLE> events_;
};

struct handle_events {
    class manual_event : public handle_owner {
    public:
        manual_event() noexcept : handle_owner(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {}
        void set() noexcept { SetEvent(handle_); }
        void reset() noexcept { ResetEvent(handle_); }
        bool is_set() const noexcept { return try_take(); }  // takes nothing
    };

    class auto_event : public handle_owner {
    public:
        auto_event() noexcept : handle_owner(CreateEventW(nullptr, FALSE, FALSE, nullptr)) {}
        void set() noexcept { SetEvent(handle_); }
        bool try_wait() noexcept { return try_take(); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept { return take_within(longest); }
    };

    using event_group = handle_group;
};

struct handle_semaphores {
    class auto_event : public handle_owner {
    public:
        static constexpr bool counts = true;
        auto_event() noexcept : handle_owner(CreateSemaphoreW(nullptr, 0, 0x7FFF'FFFF, nullptr)) {}
        void set() noexcept { ReleaseSemaphore(handle_, 1, nullptr); }
        bool try_wait() noexcept { return try_take(); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept { return take_within(longest); }
    };
};

struct interlocked_functions {
    class atomic_number {
    public:
        LONG increment() noexcept { return InterlockedIncrement(&number_); }
        LONG exchange(LONG to) noexcept { return InterlockedExchange(&number_, to); }
        LONG compare_exchange(LONG to, LONG expected) noexcept {
            return InterlockedCompareExchange(&number_, to, expected);
        }

    private:
        LONG volatile number_ = 0;
    };
};

// The `info` of contestants that are nothing but such functions.
constexpr contestant_info interlocked_info(std::string_view name, std::string_view label, lab::role role,
                                           std::string_view about) {
    return {.name = name,
            .label = label,
            .role = role,
            .about = about,
            .no_manual_event = "is a function for numbers",
            .no_auto_event = "is a function for numbers",
            .no_lock = "is a function for numbers",
            .no_address_wait = "is a function for numbers"};
}

}  // namespace lab
