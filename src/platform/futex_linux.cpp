// Linux: futex(2), private to the process.
//
// Promised by the kernel (futex(2), Linux 2.6.28 and later): the comparison and the enqueueing are atomic
// with respect to FUTEX_WAKE; FUTEX_WAIT_BITSET takes an absolute deadline on CLOCK_MONOTONIC, or on
// CLOCK_REALTIME with a flag, and follows that clock when it is set; a wake on an unmapped address does
// nothing. Not promised: that a return means a wake.
#include "platform/futex.hpp"
#include "platform/system.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;

long futex(const void* word, int operation, std::uint32_t value, const timespec* until) noexcept {
    // The call whose time is the C library's: on 32-bit systems there are two.
#if defined(SYS_futex_time64)
    constexpr long call = sizeof(timespec) > 2 * sizeof(long) ? SYS_futex_time64 : SYS_futex;
#else
    constexpr long call = SYS_futex;
#endif
    return ::syscall(call, word, operation, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    const bool on_system_clock = until.which() == deadline::clock::system;
    const int operation = FUTEX_WAIT_BITSET_PRIVATE | (on_system_clock ? FUTEX_CLOCK_REALTIME : 0);
    const std::int64_t at = until.nanoseconds() > 0 ? until.nanoseconds() : 0;  // before 1970: the kernel
                                                                                // rejects it
    // Some 32-bit systems count seconds up to 2038. What is later is slept for till then.
    constexpr std::int64_t last_second = std::numeric_limits<decltype(timespec::tv_sec)>::max();
    timespec time{};
    time.tv_sec = static_cast<decltype(time.tv_sec)>(std::min(at / nanoseconds_a_second, last_second));
    time.tv_nsec = static_cast<decltype(time.tv_nsec)>(at % nanoseconds_a_second);
    const long result = futex(&word, operation, expected, until.is_never() ? nullptr : &time);
    const bool timed_out = result == -1 && errno == ETIMEDOUT && at / nanoseconds_a_second <= last_second;
    return timed_out ? sleep_result::timed_out : sleep_result::returned;
}

}  // namespace

namespace linux_futex {

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    const errno_kept kept;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

void futex_wake_one(const void* word) noexcept {
    const errno_kept kept;
    futex(word, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

void futex_after_fork() noexcept {}  // the kernel keeps the list

void*& futex_sleepers() noexcept {
    static constinit void* kernels = nullptr;
    return kernels;
}

}  // namespace linux_futex

}  // namespace tocsin::platform
