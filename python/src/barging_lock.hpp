// SPDX-License-Identifier: Apache-2.0
// The lock behind tocsin.Lock: any thread may free it, and a running thread may take it before a woken one.
//
// A lock that always handed itself to the oldest waiter would make every release a switch of threads: the new owner has
// to get the interpreter's lock first, and the thread that released it blocks at its next acquire. So a thread that
// runs may take this lock before a woken one. A woken thread takes it before it asks for the interpreter's lock.
// (Otherwise a thread that takes the lock again and again would keep it from the woken one, which gets the
// interpreter's lock only every 5 ms, and then mostly finds this lock taken.) A woken thread that finds the lock taken
// again asks for it: the next release hands the lock over, so nobody takes it before a waiter does (decision 53). Why
// not tocsin::word_lock: a wait in the main thread must also end when a signal arrives, so the lock needs something
// that a wait over several sources takes, an event.
//
// State: a word with the bits `locked`, `waking`, `asked` and `handed` and a count of waiters, and an auto-reset event
// on which waiters sleep.
//
// Invariants
//   barging-1  A thread counts as a waiter from before it looks at `locked` for the last time until after it has taken
//              the lock or given up.
//   barging-2  `waking` is on from a release that found waiters until a waiter has taken the event that this release
//              set. While it is on, the event is set, is about to be set, or was handed to such a waiter. So there is
//              one wake-up in flight at most.
//   barging-3  A waiter that takes the event turns `waking` off. In the same step it takes the lock, if that is free
//              or handed, or else turns `asked` on.
//   barging-4  `asked` is on only while the lock is taken, a waiter counts, and `waking` is off. The next release turns
//              it off, and `handed` and `waking` on; `locked` stays on. The last waiter that gives up turns it off.
//   barging-5  While `handed` is on, `locked` and `waking` are on, a waiter counts, and no thread has the lock. The
//              waiter that takes the event gets the lock, or one that gives up before.
//
// No lost wake-up: suppose that the lock is free or handed, and a waiter sleeps. The last release has found the waiter
// counted (barging-1: otherwise the waiter's look, which comes later in the order of changes of the word, has found the
// lock free; it is handed only to a waiter that counts). That release either set the event, or found `waking` on. In
// both cases some waiter takes the event and, if the lock is free or handed, takes the lock (barging-3). Otherwise
// another thread has it, whose release comes later still. A waiter that gives up without the event leaves the event to
// the others, and takes a lock that was handed (barging-5). If there are no others, the event stays set with `waking`
// on: the next waiter takes it at once and looks again.
//
// Nobody starves for long: a waiter that was woken for nothing is passed by at most the thread that has the lock then,
// and by waiters that came before it.
//
// Memory order: [barging] a release of the lock releases, and whoever takes the lock acquires. The count, `waking` and
// `asked` need no order of their own: all changes are of one word.
//
// Checked by: tests/model/barging_lock_model_test.cpp, python/tests.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/event.hpp>

#include <cstdint>
#include <utility>

namespace tocsin::python {

class barging_lock {
public:
    barging_lock() noexcept = default;
    barging_lock(const barging_lock&) = delete;
    barging_lock& operator=(const barging_lock&) = delete;

    bool is_locked() const noexcept {
        return (word_.load(std::memory_order_relaxed) & locked) != 0;  // no order: a guess
    }

    bool try_lock() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        while ((seen & locked) == 0) {
            // [barging] with the release in unlock()
            if (word_.compare_exchange_weak(seen, seen | locked, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        }
        return false;
    }

    // Sleeps with `sleep`, which waits for the event that it is given and returns whether it has taken the event.
    // Returns true once it has taken the lock. Returns false if `sleep` has not taken the event, unless the lock was
    // handed to this thread meanwhile. `sleep` may call take_once_woken() itself, for the event that it has taken; if
    // that took the lock, it stores true in `has_lock`.
    template <class Sleep>
    bool lock_slow(Sleep sleep) noexcept(noexcept(sleep(std::declval<auto_reset_event&>(),
                                                        std::declval<bool&>()))) {
        // No order: barging-1. All changes of the word have one order.
        std::uint32_t seen = word_.fetch_add(one_waiter, std::memory_order_relaxed) + one_waiter;
        while ((seen & locked) == 0) {
            if (change(seen, (seen | locked) - one_waiter)) return true;
        }
        for (;;) {
            bool has_lock = false;
            if (!sleep(event_, has_lock)) return give_up();
            if (has_lock || take_once_woken()) return true;
        }
    }

    // Called by a waiter for each time that it has taken the event (barging-3). Returns whether it has taken the lock;
    // then it counts no more. Otherwise it has to wait for the event again.
    bool take_once_woken() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        for (;;) {
            const bool takes = (seen & locked) == 0 || (seen & handed) != 0;
            const std::uint32_t awake = seen & ~waking;
            if (change(seen, takes ? ((awake | locked) & ~handed) - one_waiter : awake | asked)) return takes;
        }
    }

    // Frees the lock, or hands it to a waiter. Returns false if no thread has it. Otherwise `wake` says whether the
    // caller has to set event().
    bool unlock(bool& wake) noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        std::uint32_t then = 0;
        do {
            if ((seen & (locked | handed)) != locked) return false;
            wake = seen >= one_waiter && (seen & waking) == 0;
            then = (seen & asked) != 0 ? (seen & ~asked) | handed : seen & ~locked;
            if (wake) then |= waking;
            // [barging] with the acquire of whoever takes the lock next
        } while (
            !word_.compare_exchange_weak(seen, then, std::memory_order_release, std::memory_order_relaxed));
        return true;
    }
    auto_reset_event& event() noexcept { return event_; }

    // In the child of a fork: free, with no waiters.
    void reset_after_fork() noexcept {
        word_.store(0, std::memory_order_relaxed);  // no order: the only thread
        event_.reset();
    }

private:
    // A waiter that has not taken the event counts no more. Returns whether it has taken the lock (barging-5).
    bool give_up() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        for (;;) {
            const bool takes = (seen & handed) != 0;
            const bool is_last = seen < 2 * one_waiter;
            if (change(seen, (takes ? seen & ~handed : is_last ? seen & ~asked : seen) - one_waiter))
                return takes;
        }
    }

    bool change(std::uint32_t& seen, std::uint32_t then) noexcept {
        // [barging] with the release in unlock()
        return word_.compare_exchange_weak(seen, then, std::memory_order_acquire, std::memory_order_relaxed);
    }

    static constexpr std::uint32_t locked = 0b0001;
    static constexpr std::uint32_t waking = 0b0010;
    static constexpr std::uint32_t asked = 0b0100;
    static constexpr std::uint32_t handed = 0b1000;
    static constexpr std::uint32_t one_waiter = 0b10000;

    detail::atomic<std::uint32_t> word_{0};
    auto_reset_event event_;
};

}  // namespace tocsin::python
