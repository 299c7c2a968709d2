// System calls of Linux that take a time.
//
// On 32-bit systems there are two of each: an older one, whose time is two longs, and a younger one, whose seconds have
// 64 bits (since Linux 5.1; a port younger than that has only this one). The C library's time has 64 bits with musl
// 1.2, and with glibc where _TIME_BITS says so: the younger call takes it. Kernels before 5.1 don't have that call, and
// older filters (seccomp) forbid it: ENOSYS or EPERM, which the calls made here give for no other reason. From then on
// the older one is called, with its time cut (kernel_time.hpp).
#pragma once

#include "platform/system/kernel_time.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace tocsin::platform {

struct time_of_longs {
    long tv_sec;
    long tv_nsec;
};

// `call(number, time)` makes the system call. `Older` and `Younger` are its two numbers, equal if there is only one.
template <long Older, long Younger, class Call>
long timed_call(std::int64_t nanoseconds, Call call) noexcept {
    if constexpr (Older == Younger || sizeof(timespec) == sizeof(time_of_longs)) {
        return call(Older, time_of<timespec>(nanoseconds));
    } else {
        static constinit std::atomic<bool> refused{false};
        if (!refused.load(std::memory_order_relaxed)) {  // no order: a hint
            const long result = call(Younger, time_of<timespec>(nanoseconds));
            if (result >= 0 || (errno != ENOSYS && errno != EPERM)) return result;
            refused.store(true, std::memory_order_relaxed);  // no order: a hint
        }
        return call(Older, time_of<time_of_longs>(nanoseconds));
    }
}

}  // namespace tocsin::platform
