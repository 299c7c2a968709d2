// SPDX-License-Identifier: Apache-2.0
// OpenBSD: futex(2), private to the process.
//
// The kernel promises (futex(2), OpenBSD 6.2 and later):
//   - A wait compares the word and enqueues the thread in one step with respect to FUTEX_WAKE.
//   - A timeout is a length, which stays the same if somebody sets a clock. So the end of a timeout does not tell
//     whether the deadline has passed: the thread asks the deadline itself (relative_sleep.hpp).
//   - A wait may return without a wake.
// Kernels report an error in two ways. Older kernels, such as 6.2's, return the error's number and leave errno alone.
// Newer kernels return -1 and set errno.
//
// Built, but never run on OpenBSD: we have no such machine. This file's tests run over a stand-in made of Linux's futex
// (tests/support/futexes).
#include "platform/futex/futex.hpp"
#include "platform/futex/relative_sleep.hpp"
#include "platform/system/kernel_time.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <ctime>
#include <limits>

#include <sys/futex.h>
#include <sys/time.h>
#include <sys/types.h>

namespace tocsin::platform {
namespace {

// The kernel's type for a word.
volatile std::uint32_t* kernel_word(const void* word) noexcept {
    return static_cast<volatile std::uint32_t*>(const_cast<void*>(word));
}

sleep_result sleep(const futex_word& word, std::uint32_t expected, std::int64_t nanoseconds) noexcept {
    const auto length = time_of<timespec>(nanoseconds);
    const int result = ::futex(kernel_word(&word), FUTEX_WAIT_PRIVATE, static_cast<int>(expected),
                               nanoseconds == no_end ? nullptr : &length, nullptr);
    const int error = result == -1 ? errno : result;
    return error == ETIMEDOUT ? sleep_result::timed_out : sleep_result::returned;
}

void wake(const void* word, int max) noexcept {
    const errno_guard guard;
    ::futex(kernel_word(word), FUTEX_WAKE_PRIVATE, max, nullptr, nullptr);
}

}  // namespace

template <>
sleep_result openbsd_futex::wait(const futex_word& word, std::uint32_t expected,
                                 const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) {
        return sleep_in_slices(end,
                               [&](std::int64_t nanoseconds) { return sleep(word, expected, nanoseconds); });
    });
}

template <>
void openbsd_futex::wake_one(const void* word) noexcept {
    wake(word, 1);
}

template <>
void openbsd_futex::wake_all(const void* word) noexcept {
    wake(word, std::numeric_limits<int>::max());
}

template <>
void openbsd_futex::after_fork() noexcept {}

template <>
void** openbsd_futex::sleepers() noexcept {
    return nullptr;  // the kernel keeps them
}

}  // namespace tocsin::platform
