// SPDX-License-Identifier: Apache-2.0
// The futexes of FreeBSD and OpenBSD, built on Linux's. With them, tests show how the backends call these systems, but
// not what the systems themselves do.
#include <cerrno>

#include <sys/futex.h>
#include <sys/syscall.h>
#include <sys/umtx.h>
#include <unistd.h>

namespace {

// Linux's numbers. Linux's header can't be included, because it defines the same names as OpenBSD's.
constexpr int wait_for = 0;
constexpr int wake = 1;
constexpr int wait_until = 9;
constexpr int is_private = 128;
constexpr int on_system_clock = 256;

long linux_futex(const volatile void* word, int operation, unsigned value, const timespec* time) {
#if defined(SYS_futex_time64)
    constexpr long number = sizeof(timespec) > 2 * sizeof(long) ? SYS_futex_time64 : SYS_futex;
#else
    constexpr long number = SYS_futex;
#endif
    constexpr unsigned all = ~0u;
    return syscall(number, word, operation | is_private, value, time, nullptr, all);
}

}  // namespace

int _umtx_op(void* word, int operation, unsigned long value, void*, void* time) {
    const auto number = static_cast<unsigned>(value);
    if (operation == UMTX_OP_WAKE_PRIVATE) {
        return linux_futex(word, wake, number, nullptr) < 0 ? -1 : 0;
    }
    const auto* const until = static_cast<const _umtx_time*>(time);
    const bool system = until != nullptr && until->_clockid == CLOCK_REALTIME;
    const int how = wait_until | (system ? on_system_clock : 0);
    if (linux_futex(word, how, number, until != nullptr ? &until->_timeout : nullptr) == 0) return 0;
    if (errno == EAGAIN) return 0;  // the word has another value
    return -1;
}

int futex(volatile std::uint32_t* word, int operation, int value, const timespec* length,
          volatile std::uint32_t*) {
    const int before = errno;
    const bool wakes = operation == FUTEX_WAKE_PRIVATE;
    const long result =
        linux_futex(word, wakes ? wake : wait_for, static_cast<unsigned>(value), wakes ? nullptr : length);
    if (result >= 0 || !support::futex_returns_errors) return static_cast<int>(result);
    const int error = errno;
    errno = before;
    return error;
}
