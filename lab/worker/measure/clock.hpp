// SPDX-License-Identifier: Apache-2.0
// Time in integer nanoseconds. On Linux reading the steady clock takes no system call (20-40 ns), reading the thread's
// CPU clock takes one. Windows: machine_windows.cpp.
#pragma once

#include <cstdint>
#include <ctime>

namespace lab {

inline timespec timespec_of(std::int64_t nanoseconds) noexcept {
    timespec split{};
    split.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
    split.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
    return split;
}

#if defined(_WIN32)

std::int64_t now() noexcept;
// Windows counts CPU time in ticks of up to 15.6 ms.
std::int64_t thread_cpu() noexcept;
std::int64_t process_cpu() noexcept;

// Returns at `when` or later.
void sleep_until(std::int64_t when) noexcept;

#else

inline std::int64_t read_clock(clockid_t which) noexcept {
    timespec now{};
    clock_gettime(which, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline std::int64_t now() noexcept { return read_clock(CLOCK_MONOTONIC); }
inline std::int64_t thread_cpu() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
inline std::int64_t process_cpu() noexcept { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

// Returns at `when` or later, even if interrupted. Makes one system call, or more if it is interrupted.
inline void sleep_until(std::int64_t when) noexcept {
    const timespec at = timespec_of(when);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
    }
}

#endif

}  // namespace lab
