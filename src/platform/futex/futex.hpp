// SPDX-License-Identifier: Apache-2.0
// What every system must provide: a thread sleeps on a word until another thread wakes it or a deadline passes.
//
// To support a new system, add one file, <mechanism>.cpp, that defines the functions of futex_backend for its
// mechanism. Add the mechanism to the list below and to src/CMakeLists.txt. The build chooses the backend that the
// library calls. tests/internal/futex_test.cpp runs over every backend that the machine has.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::platform {

using futex_word = detail::atomic<std::uint32_t>;

// `differed`: the word held another value, so the thread did not sleep. Backends that can't tell say `returned`.
enum class sleep_result : std::uint8_t { returned, timed_out, differed };

template <class Mechanism>
struct futex_backend {
    // If the word holds `expected`, the thread sleeps until a wake on that word (the result is `returned`) or until the
    // deadline `until` has passed (`timed_out`, never early). If the word holds another value, returns at once, with
    // `differed` if the backend can tell that from a wake, and with `returned` if not. A wait
    // may also return for no reason, with `returned`, so the caller looks at the word again. The thread compares the
    // word and falls asleep in one step with respect to wakes. The wait gives no memory order; the caller's own loads
    // do. A signal handler may make the wait return for no reason. Preserves errno.
    //
    // For a deadline on the steady or the system clock, the backend follows that clock, even while somebody sets it.
    // For a deadline on a user's clock, the thread asks the deadline how much time is left, and sleeps that long on the
    // steady clock. That length is an estimate, so after the sleep the thread asks whether the deadline has passed
    // (sleep_until below).
    static sleep_result wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;

    // Wakes one thread that sleeps on the word at this address, if there is such a thread. The word may already be
    // gone, and its memory unmapped or in other use. At worst, a thread that waits on what is there now returns for no
    // reason. Preserves errno.
    static void wake_one(const void* word) noexcept;

    // Wakes all threads that sleep on the word at this address when the call begins. If the system has one call for
    // this, makes that call. Otherwise wakes them one by one, as wake_one does.
    static void wake_all(const void* word) noexcept;

    // Called in the child of a fork. Forgets what the backend knew of the parent's threads, which the child does not
    // have.
    static void after_fork() noexcept;

    // The address of the backend's pointer to its table of sleepers. All copies of the library in a process must share
    // that table (shared_table.hpp). Null if the system keeps the sleepers.
    static void** sleepers() noexcept;

    // Whether the running system has the mechanism. Only the backends among which windows.cpp chooses define it.
    static bool is_available() noexcept;
};

using linux_futex = futex_backend<class linux_mechanism>;
using apple_futex = futex_backend<class apple_mechanism>;
using freebsd_futex = futex_backend<class freebsd_mechanism>;
using openbsd_futex = futex_backend<class openbsd_mechanism>;
using wasm_futex = futex_backend<class wasm_mechanism>;
using portable_futex = futex_backend<class portable_mechanism>;
using windows_futex = futex_backend<class windows_mechanism>;  // the best of the next two that the system has
using windows_waitonaddress_futex = futex_backend<class windows_waitonaddress_mechanism>;
using windows_srw_futex = futex_backend<class windows_srw_mechanism>;
using model_futex = futex_backend<class model_mechanism>;  // of tests/model

using futex = TOCSIN_FUTEX_CHOSEN;

// The mechanism's file defines these functions. They are declared here because a specialization must be declared before
// it is used.
template <>
sleep_result futex::wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
template <>
void futex::wake_one(const void* word) noexcept;
template <>
void futex::wake_all(const void* word) noexcept;
template <>
void futex::after_fork() noexcept;
template <>
void** futex::sleepers() noexcept;

// Calls `sleep(until)` if the deadline is `never`, or is on the steady or the system clock. Does not sleep if the
// deadline is `passed`. For a deadline on another clock, the thread asks the deadline how long it may sleep, sleeps
// that long on the steady clock, and then asks again.
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
        const std::int64_t left = until.longest_sleep();
        if (left <= 0) return sleep_result::timed_out;
        const sleep_result result = sleep(deadline(std::chrono::nanoseconds(left)));
        if (result != sleep_result::timed_out) return result;
    }
}

}  // namespace tocsin::platform
