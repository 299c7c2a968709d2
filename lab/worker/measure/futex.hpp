// The bare system call, for the harness's own gates and for the contestants made of it.
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lab {

using futex_word = std::atomic<std::uint32_t>;

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

}  // namespace lab
