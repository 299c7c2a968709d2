// SPDX-License-Identifier: Apache-2.0
// macOS and iOS: os_sync_wait_on_address, public since macOS 14.4 and iOS 17.4. The library imports this function
// weakly. Where the running system lacks the function, threads sleep with the portable backend (portable.cpp). The
// loader looks for the function once, so all threads of a process use the same mechanism. If the build's SDK lacks the
// function, threads sleep with the portable backend on every system.
//
// With TOCSIN_APPLE_ULOCK, which is off by default, threads sleep with __ulock_wait (macOS 10.12 and later) wherever
// they would otherwise sleep with the portable backend. __ulock_wait is a private interface: app stores refuse programs
// that use it, and it may change without notice.
//
// The system promises (os/os_sync_wait_on_address.h):
//   - A wait compares the word and enqueues the thread in one step with respect to a wake.
//   - A wake uses only the address, not the word there. It wakes only threads of the same process.
//   - A wait may return without a wake.
//   - A timeout is an interval on the clock of mach_absolute_time, which nobody can set. That clock stops while the
//     machine is suspended.
//
// A timeout that ends does not prove that the deadline has passed: the deadline may be on a clock that runs during a
// suspension, or that somebody sets. So after each timeout the thread asks the deadline itself (relative_sleep.hpp).
//
// Built, never run: we have no such machine.
#include "platform/futex/futex.hpp"
#include "platform/futex/relative_sleep.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <cstddef>

// Whether the program can be linked with os_sync_wait_on_address. The functions are declared again below, weakly,
// because the SDK declares them only for new systems.
#if !defined(TOCSIN_APPLE_OS_SYNC)
#if __has_include(<os/os_sync_wait_on_address.h>)
#define TOCSIN_APPLE_OS_SYNC 1
#else
#define TOCSIN_APPLE_OS_SYNC 0
#endif
#endif
#if !defined(TOCSIN_APPLE_ULOCK)
#define TOCSIN_APPLE_ULOCK 0
#endif

extern "C" {
#if TOCSIN_APPLE_OS_SYNC
__attribute__((weak_import)) int os_sync_wait_on_address(void* address, std::uint64_t value, std::size_t size,
                                                         std::uint32_t flags);
__attribute__((weak_import)) int os_sync_wait_on_address_with_timeout(void* address, std::uint64_t value,
                                                                      std::size_t size, std::uint32_t flags,
                                                                      std::uint32_t clock,
                                                                      std::uint64_t nanoseconds);
__attribute__((weak_import)) int os_sync_wake_by_address_any(void* address, std::size_t size,
                                                             std::uint32_t flags);
__attribute__((weak_import)) int os_sync_wake_by_address_all(void* address, std::size_t size,
                                                             std::uint32_t flags);
#endif
#if TOCSIN_APPLE_ULOCK
int __ulock_wait(std::uint32_t operation, void* address, std::uint64_t value, std::uint32_t microseconds);
int __ulock_wake(std::uint32_t operation, void* address, std::uint64_t value);
#endif
}

namespace tocsin::platform {
namespace {

enum class mechanism : std::uint8_t { os_sync, ulock, portable };

#if TOCSIN_APPLE_OS_SYNC
constexpr std::uint32_t no_flags = 0;
constexpr std::uint32_t mach_absolute = 32;  // OS_CLOCK_MACH_ABSOLUTE_TIME

// How a sleep ended. `result` is what the system's wait returned: -1 for an error, which is in errno.
sleep_result ended(int result) noexcept {
    return result < 0 && errno == ETIMEDOUT ? sleep_result::timed_out : sleep_result::returned;
}

sleep_result os_sync_sleep(const futex_word& word, std::uint32_t expected,
                           std::int64_t nanoseconds) noexcept {
    void* const address = const_cast<futex_word*>(&word);
    if (nanoseconds == no_end) {
        return ended(os_sync_wait_on_address(address, expected, sizeof expected, no_flags));
    }
    return ended(os_sync_wait_on_address_with_timeout(address, expected, sizeof expected, no_flags,
                                                      mach_absolute,
                                                      static_cast<std::uint64_t>(nanoseconds)));
}
#endif

#if TOCSIN_APPLE_ULOCK
constexpr std::uint32_t compare_and_wait = 1;
constexpr std::uint32_t wake_every_thread = 0x0100;  // ULF_WAKE_ALL
constexpr std::uint32_t no_errno = 0x0100'0000;      // an error is returned as a negative number

sleep_result ulock_sleep(const futex_word& word, std::uint32_t expected, std::int64_t nanoseconds) noexcept {
    // To __ulock_wait, 0 means no end. A slice is an hour at most, which has fewer than 2^32 microseconds.
    const auto microseconds =
        nanoseconds == no_end ? 0u : static_cast<std::uint32_t>((nanoseconds + 999) / 1'000);
    const int result =
        __ulock_wait(compare_and_wait | no_errno, const_cast<futex_word*>(&word), expected, microseconds);
    return result == -ETIMEDOUT ? sleep_result::timed_out : sleep_result::returned;
}
#endif

// The result need not be stored: it follows from an address that the loader has filled in, so it never changes.
mechanism chosen() noexcept {
#if TOCSIN_APPLE_OS_SYNC
    if (&os_sync_wake_by_address_any != nullptr) return mechanism::os_sync;
#endif
    return TOCSIN_APPLE_ULOCK ? mechanism::ulock : mechanism::portable;
}

}  // namespace

template <>
sleep_result apple_futex::wait(const futex_word& word, std::uint32_t expected,
                               const deadline& until) noexcept {
    const errno_guard guard;
    [[maybe_unused]] const auto slept_by = [&](auto sleep) {
        return sleep_until(until, [&](const deadline& end) {
            return sleep_in_slices(
                end, [&](std::int64_t nanoseconds) { return sleep(word, expected, nanoseconds); });
        });
    };
    switch (chosen()) {
#if TOCSIN_APPLE_OS_SYNC
        case mechanism::os_sync: return slept_by(os_sync_sleep);
#endif
#if TOCSIN_APPLE_ULOCK
        case mechanism::ulock: return slept_by(ulock_sleep);
#endif
        default: return portable_futex::wait(word, expected, until);
    }
}

template <>
void apple_futex::wake_one(const void* word) noexcept {
    const errno_guard guard;
    switch (chosen()) {
#if TOCSIN_APPLE_OS_SYNC
        case mechanism::os_sync:
            os_sync_wake_by_address_any(const_cast<void*>(word), sizeof(std::uint32_t), no_flags);
            return;
#endif
#if TOCSIN_APPLE_ULOCK
        case mechanism::ulock: __ulock_wake(compare_and_wait | no_errno, const_cast<void*>(word), 0); return;
#endif
        default: portable_futex::wake_one(word);
    }
}

template <>
void apple_futex::wake_all(const void* word) noexcept {
    const errno_guard guard;
    switch (chosen()) {
#if TOCSIN_APPLE_OS_SYNC
        case mechanism::os_sync:
            os_sync_wake_by_address_all(const_cast<void*>(word), sizeof(std::uint32_t), no_flags);
            return;
#endif
#if TOCSIN_APPLE_ULOCK
        case mechanism::ulock:
            __ulock_wake(compare_and_wait | wake_every_thread | no_errno, const_cast<void*>(word), 0);
            return;
#endif
        default: portable_futex::wake_all(word);
    }
}

template <>
void apple_futex::after_fork() noexcept {
    portable_futex::after_fork();
}

template <>
void** apple_futex::sleepers() noexcept {
    return chosen() == mechanism::portable ? portable_futex::sleepers() : nullptr;
}

}  // namespace tocsin::platform
