// SPDX-License-Identifier: Apache-2.0
// FreeBSD: _umtx_op(2), private to the process.
//
// The kernel promises (_umtx_op(2), FreeBSD 10 and later):
//   - A wait compares the word and enqueues the thread in one step with respect to a wake.
//   - A timeout may be absolute, on CLOCK_MONOTONIC or CLOCK_REALTIME. Since FreeBSD 12 the kernel looks again at a
//     timeout on CLOCK_REALTIME when that clock is set.
//   - A wait may return without a wake.
// On i386 the kernel can't express a time after 2038 (kernel_time.hpp).
//
// Built, but never run on FreeBSD: we have no such machine. This file's tests run over a stand-in made of Linux's futex
// (tests/support/futexes).
#include "platform/futex/futex.hpp"
#include "platform/system/kernel_time.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <limits>

#include <sys/types.h>
#include <sys/umtx.h>

namespace tocsin::platform {
namespace {

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    _umtx_time end{};
    end._timeout = time_of<timespec>(until.nanoseconds());
    end._flags = UMTX_ABSTIME;
    end._clockid = until.which() == deadline::clock::system ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    // _umtx_op takes the size of its fifth argument as its fourth.
    void* const size = until.is_never() ? nullptr : reinterpret_cast<void*>(sizeof end);
    const int result = ::_umtx_op(const_cast<futex_word*>(&word), UMTX_OP_WAIT_UINT_PRIVATE, expected, size,
                                  until.is_never() ? nullptr : &end);
    const bool timed_out = result == -1 && errno == ETIMEDOUT && fits<timespec>(until.nanoseconds());
    return timed_out ? sleep_result::timed_out : sleep_result::returned;
}

void wake(const void* word, int max) noexcept {
    const errno_guard guard;
    ::_umtx_op(const_cast<void*>(word), UMTX_OP_WAKE_PRIVATE, static_cast<unsigned long>(max), nullptr,
               nullptr);
}

}  // namespace

template <>
sleep_result freebsd_futex::wait(const futex_word& word, std::uint32_t expected,
                                 const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

template <>
void freebsd_futex::wake_one(const void* word) noexcept {
    wake(word, 1);
}

template <>
void freebsd_futex::wake_all(const void* word) noexcept {
    wake(word, std::numeric_limits<int>::max());
}

template <>
void freebsd_futex::after_fork() noexcept {}

template <>
void** freebsd_futex::sleepers() noexcept {
    return nullptr;  // the kernel keeps them
}

}  // namespace tocsin::platform
