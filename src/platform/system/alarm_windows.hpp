// SPDX-License-Identifier: Apache-2.0
// Windows: wakes a sleeper when a deadline on the system clock has passed.
#pragma once

#include "platform/system/object_watch_windows.hpp"
#include "platform/system/windows.hpp"

#include <tocsin/deadline.hpp>

namespace tocsin::platform {

// Calls `run(what)` in a system thread when a deadline on the system clock has passed, even if somebody has set that
// clock. Repeats the call every 5 milliseconds until the alarm is destroyed: a thread that was only about to fall
// asleep misses the first call, and a later call wakes it. Does nothing for other deadlines, nor for one that has
// passed already. For what `run` must not do, see object_watch.
//
// A wait needs this alarm because somebody may set the system clock forward. A relative timeout does not notice that,
// because Windows counts it by a clock that nobody sets. Only a timer with an absolute time follows the system clock.
// Windows has had such waitable timers since NT 4.0. If the system can't make one, the wait ends by its relative
// timeout.
class system_alarm {
public:
    system_alarm(const deadline& until, void (*run)(void*) noexcept, void* what) noexcept {
        if (until.which() != deadline::clock::system || until.has_passed()) return;
        timer_.handle = ::CreateWaitableTimerW(nullptr, FALSE, nullptr);
        if (timer_.handle == nullptr) return;
        constexpr std::int64_t from_1601_to_1970 =
            116'444'736'000'000'000;  // in 100 ns, as a FILETIME counts
        LARGE_INTEGER due;
        due.QuadPart = from_1601_to_1970 + until.nanoseconds() / 100 + 1;
        constexpr LONG again_after = 5;  // milliseconds
        if (!::SetWaitableTimer(timer_.handle, &due, again_after, nullptr, nullptr, FALSE)) return;
        (void)watch_.start(timer_.handle, WT_EXECUTEDEFAULT, run, what);
    }

private:
    struct owned {
        owned() = default;
        ~owned() {
            if (handle != nullptr) ::CloseHandle(handle);
        }
        owned(const owned&) = delete;
        owned& operator=(const owned&) = delete;

        HANDLE handle = nullptr;
    };

    owned timer_;
    object_watch watch_;  // ends first
};

}  // namespace tocsin::platform
