// SPDX-License-Identifier: Apache-2.0
// Measures what waking a thread takes: the time from its release until it runs. Also measures how long it slept before.
//
// State: `measured`, the waiter whose wake-up is being measured, or null; `began_at`, when its thread began to sleep;
// `released_at`, when that waiter was released.
//
// At most one wake-up at a time is measured, so a release only compares one pointer that rarely changes. The waiting
// thread makes `measured` its waiter before it sleeps, and makes it null afterwards. So whoever finds its waiter there
// is releasing the very waiter that is measured. It stores the time before the exchange that releases the waiter, and
// the thread reads it after it has seen that exchange: [release] in waiter.cpp orders the two. A release by another
// copy of the library stores nothing, and then nothing is learned.
//
// A thread that sleeps for long must not keep all others from measuring. So after `longest`, another thread may put its
// own waiter into `measured`. The thread that has been replaced learns that it has slept for so long.
//
// What is measured is a guess, and no result depends on it, so all accesses are relaxed. One race makes it wrong: a
// releaser finds its waiter in `measured`, and stores the time after another thread has replaced that waiter. The other
// thread may then find the time of that release in place of its own, if its own is not stored.
//
// A fork while a thread of the parent measures leaves its waiter in `measured`: the child makes it null (table.cpp).
#pragma once

#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::core {

class waiter;

// What a thread learns from one sleep.
struct sleep_report {
    bool measures = false;   // set by the caller: measure the wake-up, if nobody else is measuring
    bool early = false;      // the thread was released before it was asleep
    std::int64_t wake = -1;  // nanoseconds from the release until the thread ran; -1: not measured
    std::int64_t slept =
        -1;  // nanoseconds from the beginning of the sleep until the release; -1: not measured
};

#if defined(TOCSIN_MODEL)
// All runs of a model must be the same, so nothing is measured there.
class wake_sample {
public:
    static bool begin(const waiter&) noexcept { return false; }
    static void end(const waiter&, sleep_report&) noexcept {}
    static void note_release(const waiter&) noexcept {}
    static void forget() noexcept {}
};
#else
class wake_sample {
public:
    static constexpr std::int64_t longest = 1'000'000;  // nanoseconds

    // Returns whether the caller, whose waiter this is, must call end() after its sleep.
    static bool begin(const waiter& own) noexcept;
    // Called by the thread that runs again. Fills in what was measured.
    static void end(const waiter& own, sleep_report& learnt) noexcept;
    // Called before the waiter is released.
    static void note_release(const waiter& whose) noexcept {
        if (measured.load(std::memory_order_relaxed) == &whose)
            note_time();  // no order: only its own waiter matters
    }
    // Called in the child of a fork.
    static void forget() noexcept;

private:
    static void note_time() noexcept;

    static detail::atomic<const waiter*> measured;
    static detail::atomic<std::int64_t> released_at;
    static detail::atomic<std::int64_t> began_at;
};
#endif

}  // namespace tocsin::core
