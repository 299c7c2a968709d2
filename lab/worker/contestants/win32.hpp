// SPDX-License-Identifier: Apache-2.0
// tocsin by Windows' names: what a handle costs compared with the object itself.
#pragma once

#include "../contestant.hpp"
#include "handles.hpp"

namespace lab {

struct tocsin_win32 : handle_events {
    static constexpr contestant_info info{
        .name = "tocsin_win32",
        .label = "tocsin (win32)",
        .role = role::variant,
        .about =
            "tocsin/win32.h: CreateEvent, SetEvent, WaitForSingleObject; for several WaitForMultipleObjects",
        .limits = "an allocated object each; every call looks its handle up; 64 in one wait",
        .no_lock = "is an event",
        .no_address_wait = "is a handle, not an address",
    };
};

struct tocsin_win32_semaphore : handle_semaphores {
    static constexpr contestant_info info{
        .name = "tocsin_win32_semaphore",
        .label = "tocsin (win32 semaphore)",
        .role = role::variant,
        .about = "tocsin/win32.h: CreateSemaphore, ReleaseSemaphore, WaitForSingleObject",
        .limits =
            "counts: sets don't absorb each other; an allocated object each; every call looks its handle up",
        .no_manual_event = "lets one through for each release",
        .no_lock = "any thread may release it",
        .no_address_wait = "is a handle, not an address",
    };
};

struct tocsin_interlocked : interlocked_functions {
    static constexpr contestant_info info = interlocked_info(
        "tocsin_interlocked", "tocsin (Interlocked)", role::variant,
        "tocsin/win32.h: InterlockedIncrement, InterlockedExchange, InterlockedCompareExchange");
};

}  // namespace lab
