// SPDX-License-Identifier: Apache-2.0
// Windows 8 and later, Windows Server 2012 and later: WaitOnAddress, WakeByAddressSingle, WakeByAddressAll.
//
// The system promises (Microsoft's reference of WaitOnAddress):
//   - The call compares the word and falls asleep in one step with respect to wakes of that address in the same
//     process.
//   - The call may return for no reason.
//   - A wake uses only the address, not the word there.
//
// The system promises no order among sleepers, and nothing between processes. Timeouts are inexact: they are in
// milliseconds, counted in ticks of up to 15.6 ms. A sleep may end before its timeout, so the thread asks the deadline
// whether it has passed.
//
// The library looks the system's functions up at run time: first in the API set that defines them, then in the module
// that contains them.
//
// Checked by: tests/internal/futex_test.cpp; every suite, as the first choice of windows.cpp.
#include "platform/futex/futex.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/system.hpp"
#include "platform/system/windows.hpp"

namespace tocsin::platform {
namespace {

struct functions {
    using wait_function = BOOL WINAPI(volatile void*, void*, SIZE_T, DWORD);
    using wake_function = void WINAPI(void*);

    wait_function* wait = nullptr;
    wake_function* wake_one = nullptr;
    wake_function* wake_all = nullptr;

    functions() noexcept {
        for (const wchar_t* const module : {L"api-ms-win-core-synch-l1-2-0.dll", L"kernelbase.dll"}) {
            wait = exported<wait_function>(module, "WaitOnAddress");
            wake_one = exported<wake_function>(module, "WakeByAddressSingle");
            wake_all = exported<wake_function>(module, "WakeByAddressAll");
            if (are_there()) return;
        }
    }
    bool are_there() const noexcept { return wait != nullptr && wake_one != nullptr && wake_all != nullptr; }
};

const functions& system() noexcept {
    static const functions found;
    return found;
}

void* address_of(const void* word) noexcept { return const_cast<void*>(word); }

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    const system_alarm alarm(until, [](void* at) noexcept { system().wake_all(at); }, address_of(&word));
    for (;;) {
        if (system().wait(address_of(&word), &expected, sizeof expected, milliseconds_left(until)) ||
            ::GetLastError() != ERROR_TIMEOUT) {
            return sleep_result::returned;
        }
        if (until.has_passed()) return sleep_result::timed_out;
    }
}

}  // namespace

template <>
bool windows_waitonaddress_futex::is_available() noexcept {
    return system().are_there();
}

template <>
sleep_result windows_waitonaddress_futex::wait(const futex_word& word, std::uint32_t expected,
                                               const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

template <>
void windows_waitonaddress_futex::wake_one(const void* word) noexcept {
    system().wake_one(address_of(word));
}

template <>
void windows_waitonaddress_futex::wake_all(const void* word) noexcept {
    system().wake_all(address_of(word));
}

template <>
void windows_waitonaddress_futex::after_fork() noexcept {}

template <>
void** windows_waitonaddress_futex::sleepers() noexcept {
    return nullptr;  // the system keeps them
}

}  // namespace tocsin::platform
