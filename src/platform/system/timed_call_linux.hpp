// SPDX-License-Identifier: Apache-2.0
// System calls of Linux that take a time.
//
// On 32-bit systems Linux has two versions of each such call. The older version takes a time of two longs. The newer
// version, of Linux 5.1, takes seconds of 64 bits. A port of Linux that came after 5.1 has only the newer
// version.
//
// If the C library's timespec has only two longs, this file always makes the older call. If the seconds of a timespec
// have 64 bits (musl 1.2, and glibc where _TIME_BITS says so), this file makes the newer call first. Kernels before
// 5.1 don't have the newer call, and older filters (seccomp) forbid it. If it is refused (optional_call_linux.hpp),
// this file makes the older call, with the time cut to what two longs can express (kernel_time.hpp).
#pragma once

#include "platform/system/kernel_time.hpp"
#include "platform/system/optional_call_linux.hpp"

#include <cstdint>
#include <ctime>

#include <sys/syscall.h>

namespace tocsin::platform {

#if defined(SYS_futex)
inline constexpr long older_futex = SYS_futex;
#else
inline constexpr long older_futex = SYS_futex_time64;
#endif
#if defined(SYS_futex_time64)
inline constexpr long newer_futex = SYS_futex_time64;
#else
inline constexpr long newer_futex = SYS_futex;
#endif

struct time_of_longs {
    long tv_sec;
    long tv_nsec;
};

// `call(number, time)` makes the system call. `Older` and `Newer` are the numbers of its two versions. They are equal
// if there is only one version.
template <long Older, long Newer, class Call>
long timed_call(std::int64_t nanoseconds, Call call) noexcept {
    if constexpr (Older == Newer || sizeof(timespec) == sizeof(time_of_longs)) {
        return call(Older, time_of<timespec>(nanoseconds));
    } else {
        static constinit optional_call newer;
        return newer([&] { return call(Newer, time_of<timespec>(nanoseconds)); },
                     [&] { return call(Older, time_of<time_of_longs>(nanoseconds)); });
    }
}

}  // namespace tocsin::platform
