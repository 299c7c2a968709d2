// The Windows headers and what several of the Windows files share. The build says what the headers shall not define
// (src/CMakeLists.txt).
#pragma once

#include <tocsin/deadline.hpp>

#include <algorithm>
#include <cstdint>

#include <windows.h>

namespace tocsin::platform {

// A function that not every Windows has, or null; of a module that is loaded already. Linked in the usual way it
// would keep the program from starting on a system without it.
template <class Function>
Function* exported(const wchar_t* module, const char* name) noexcept {
    const HMODULE found = ::GetModuleHandleW(module);
    if (found == nullptr) return nullptr;
    return reinterpret_cast<Function*>(reinterpret_cast<void*>(::GetProcAddress(found, name)));
}

// The timeout of a Windows wait: rounded up; one that is too long for it is waited for in several.
inline DWORD milliseconds_left(const deadline& until) noexcept {
    if (until.is_never()) return INFINITE;
    constexpr std::int64_t longest = 1 << 30;
    const std::int64_t left = until.remaining();
    return static_cast<DWORD>(std::min(left / 1'000'000 + (left % 1'000'000 != 0 ? 1 : 0), longest));
}

// Calls `run(what)`, in a thread of the system's, when a deadline of the system clock has passed as that clock then is,
// and every few milliseconds from then on until it is destroyed: so whoever was about to fall asleep is woken, too.
// Does nothing for other deadlines. Windows counts a relative timeout by a clock that nobody sets; only a timer with
// an absolute time follows the system clock when it is set forward. If there is none to be had, such a wait ends by
// its relative timeout.
// Timers and registered waits: Windows 2000.
class system_alarm {
public:
    system_alarm(const deadline& until, void (*run)(void*) noexcept, void* what) noexcept
        : run_(run), what_(what) {
        if (until.which() != deadline::clock::system || until.has_passed()) return;
        timer_ = ::CreateWaitableTimerW(nullptr, FALSE, nullptr);
        if (timer_ == nullptr) return;
        constexpr std::int64_t from_1601_to_1970 =
            116'444'736'000'000'000;  // in 100 ns, as a FILETIME counts
        LARGE_INTEGER due;
        due.QuadPart = from_1601_to_1970 + until.nanoseconds() / 100 + 1;
        constexpr LONG again_after = 5;  // milliseconds
        if (!::SetWaitableTimer(timer_, &due, again_after, nullptr, nullptr, FALSE)) return;
        if (!::RegisterWaitForSingleObject(&wait_, timer_, ring, this, INFINITE, WT_EXECUTEDEFAULT))
            wait_ = nullptr;
    }
    ~system_alarm() {
        if (wait_ != nullptr)
            ::UnregisterWaitEx(wait_, INVALID_HANDLE_VALUE);  // and waits for a ring under way
        if (timer_ != nullptr) ::CloseHandle(timer_);
    }
    system_alarm(const system_alarm&) = delete;
    system_alarm& operator=(const system_alarm&) = delete;

private:
    static void CALLBACK ring(void* self, BOOLEAN) noexcept {
        const auto& alarm = *static_cast<const system_alarm*>(self);
        alarm.run_(alarm.what_);
    }

    void (*const run_)(void*) noexcept;
    void* const what_;
    HANDLE timer_ = nullptr;
    HANDLE wait_ = nullptr;
};

}  // namespace tocsin::platform
