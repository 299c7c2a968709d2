// What every system must provide: a thread sleeps on a word until another thread wakes it or a deadline passes.
//
// A new system is one file, <mechanism>.cpp. The file defines the functions of futex_backend for its mechanism; all
// mechanisms are listed below. The build chooses the backend that the library calls. tests/internal/futex_test.cpp runs
// over every backend of the machine.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::platform {

using futex_word = detail::atomic<std::uint32_t>;

enum class sleep_result : std::uint8_t { returned, timed_out };

template <class Mechanism>
struct futex_backend {
    // Returns at once if the word does not hold `expected`. Otherwise the thread sleeps until a wake on that word
    // (`returned`) or until `until` has passed (`timed_out`, never early). A wait may also return for no reason
    // (`returned`), so callers look at the word again. The thread compares and falls asleep in one step with respect to
    // wake_one. The wait gives no memory order; the caller's own loads do. Signals do not end it. Preserves errno.
    //
    // A deadline on the steady or the system clock is followed on that clock, even while somebody sets it. For a
    // user's clock the backend sleeps until the estimated end, then asks the deadline whether it has passed
    // (sleep_until below).
    static sleep_result wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;

    // Wakes one thread that sleeps on the word at this address, if there is one. The word may be gone by then, and its
    // memory unmapped or in other use: at worst a thread returns for no reason. Preserves errno.
    static void wake_one(const void* word) noexcept;

    // Called in the child of a fork: forgets what the backend knew of threads that the child does not have.
    static void after_fork() noexcept;

    // The pointer to the backend's table of sleepers, which all copies of the library in a process must share
    // (shared_table.hpp). Null if the system keeps the sleepers.
    static void** sleepers() noexcept;

    // Whether the running system has the mechanism. Defined only by mechanisms among which another backend chooses.
    static bool is_available() noexcept;
};

using linux_futex = futex_backend<class linux_mechanism>;
using apple_futex = futex_backend<class apple_mechanism>;
using freebsd_futex = futex_backend<class freebsd_mechanism>;
using openbsd_futex = futex_backend<class openbsd_mechanism>;
using wasm_futex = futex_backend<class wasm_mechanism>;
using portable_futex = futex_backend<class portable_mechanism>;
using windows_futex =
    futex_backend<class windows_mechanism>;  // the best of the next three that the system has
using windows_waitonaddress_futex = futex_backend<class windows_waitonaddress_mechanism>;
using windows_srw_futex = futex_backend<class windows_srw_mechanism>;
using windows_kernel_event_futex = futex_backend<class windows_kernel_event_mechanism>;
using model_futex = futex_backend<class model_mechanism>;  // of tests/model

using futex = TOCSIN_FUTEX_CHOSEN;

// Defined in the file of the mechanism, and declared before any use.
template <>
sleep_result futex::wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
template <>
void futex::wake_one(const void* word) noexcept;
template <>
void futex::after_fork() noexcept;
template <>
void** futex::sleepers() noexcept;

// Calls `sleep(until)` if the deadline is `never`, or is on the steady or the system clock. For a deadline on another
// clock the thread sleeps until the estimated end on the steady clock, then asks the deadline again.
template <class Sleep>
sleep_result sleep_until(const deadline& until, Sleep sleep) noexcept {
    switch (until.which()) {
        case deadline::clock::passed: return sleep_result::timed_out;
        case deadline::clock::never:
        case deadline::clock::steady:
        case deadline::clock::system: return sleep(until);
        case deadline::clock::other: break;
    }
    for (;;) {
        const std::int64_t left = until.remaining();
        if (left <= 0) return sleep_result::timed_out;
        if (sleep(deadline(std::chrono::nanoseconds(left))) == sleep_result::returned) {
            return sleep_result::returned;
        }
    }
}

}  // namespace tocsin::platform
