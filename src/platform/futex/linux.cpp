// SPDX-License-Identifier: Apache-2.0
// Linux: futex(2), private to the process.
//
// The kernel promises (futex(2), Linux 2.6.28 and later):
//   - A wait compares the word and enqueues the thread in one step with respect to FUTEX_WAKE.
//   - FUTEX_WAIT_BITSET takes an absolute deadline on CLOCK_MONOTONIC or, with a flag, on CLOCK_REALTIME. If somebody
//     sets CLOCK_REALTIME during the wait, the wait still ends when that clock reaches the deadline.
//   - A wake on an unmapped address does nothing.
//   - A wait may return without a wake.
// On 32-bit systems Linux has two versions of this system call, and the kernel may lack the newer one
// (timed_call_linux.hpp).
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"
#include "platform/system/timed_call_linux.hpp"

#include <cerrno>
#include <limits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    const bool on_system_clock = until.which() == deadline::clock::system;
    const int operation = FUTEX_WAIT_BITSET_PRIVATE | (on_system_clock ? FUTEX_CLOCK_REALTIME : 0);
    bool cut = false;
    const long result =
        timed_call<older_futex, newer_futex>(until.nanoseconds(), [&]<class Time>(long call, Time end) {
            cut = !fits<Time>(until.nanoseconds());
            return ::syscall(call, &word, operation, expected, until.is_never() ? nullptr : &end, nullptr,
                             FUTEX_BITSET_MATCH_ANY);
        });
    if (result != -1) return sleep_result::returned;
    if (errno == EAGAIN) return sleep_result::differed;
    return errno == ETIMEDOUT && !cut ? sleep_result::timed_out : sleep_result::returned;
}

void wake(const void* word, int max) noexcept {
    const errno_guard guard;
    (void)timed_call<older_futex, newer_futex>(0, [=](long call, const auto&) {
        return ::syscall(call, word, FUTEX_WAKE_PRIVATE, max, nullptr, nullptr, 0);
    });
}

}  // namespace

template <>
sleep_result linux_futex::wait(const futex_word& word, std::uint32_t expected,
                               const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

template <>
void linux_futex::wake_one(const void* word) noexcept {
    wake(word, 1);
}

template <>
void linux_futex::wake_all(const void* word) noexcept {
    wake(word, std::numeric_limits<int>::max());
}

template <>
void linux_futex::after_fork() noexcept {}

template <>
void** linux_futex::sleepers() noexcept {
    return nullptr;  // the kernel keeps them
}

}  // namespace tocsin::platform
