// SPDX-License-Identifier: Apache-2.0
// The bare system call, for the harness's own gates and for the contestants made of it. On Windows: WaitOnAddress and
// WakeByAddress (Windows 8), which keep their sleepers in a list in the process and call the kernel only for those.
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

#if !defined(_WIN32)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace lab {

using futex_word = std::atomic<std::uint32_t>;

#if defined(_WIN32)

// Sleeps if the word holds `expected`. `until`: absolute, on the steady clock. False on a timeout.
bool futex_wait(const futex_word& word, std::uint32_t expected, const timespec* until = nullptr) noexcept;
long futex_wake(const futex_word& word, int count = INT_MAX) noexcept;

#else

// Sleeps if the word holds `expected`. `until`: absolute, on the monotonic clock. False on a timeout.
inline bool futex_wait(const futex_word& word, std::uint32_t expected,
                       const timespec* until = nullptr) noexcept {
    const long result = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, until, nullptr,
                                FUTEX_BITSET_MATCH_ANY);
    return !(result != 0 && errno == ETIMEDOUT);
}

inline long futex_wake(const futex_word& word, int count = INT_MAX) noexcept {
    return syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count);
}

#endif

}  // namespace lab
