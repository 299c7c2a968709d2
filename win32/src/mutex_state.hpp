// SPDX-License-Identifier: Apache-2.0
// The owner of a mutex, and how it passes from one thread to the next.
//
// State
//   free_       An auto-reset event, set while nobody owns the mutex. Every wait for the mutex is a wait for this
//               event, whether it waits for the mutex alone, for any of several objects, or for all of them. So what
//               src/event.cpp says of auto-reset events holds for mutexes, too: the order, the atomic wait for all, and
//               the timeout that takes nothing.
//   owner_      The thread that owns the mutex, or null. It is still null while a thread has been given the event but
//               has not run yet.
//   depth_      How often the owner has to release it.
//   abandoned_  Whether the last owner ended without releasing the mutex.
//
// Invariants
//   mutex_state-1  At any time at most one thread has the right to the mutex, because one set of the event releases one
//       thread. Between the end of its wait and give_up(), only this thread writes the state.
//   mutex_state-2  A thread can make only itself the owner. Only the owner ends its ownership, by a release or at the
//       end of the thread. So `owner_ == me` is never out of date in the thread that asks. A mutex that the caller owns
//       stays the caller's while the caller waits for other objects. So a wait treats this mutex as ready from the
//       start, and leaves it out of the sources. A wait for all then waits for the others, and still takes everything
//       at one instant.
//   mutex_state-3  An owner that ends marks the mutex as abandoned, and then hands it on. The next thread to take it
//       finds the mark, and removes it.
//
// Memory order
//   [mutex] Setting the event releases what the owner did, including its writes of this state, and the thread that
//            takes the event acquires ([event-publish] in src/event.cpp). Only `owner_` is read by threads without the
//            right to the mutex. It needs no order (mutex_state-2).
//
// Checked by: tests/model/win32_model_test.cpp (P24 of docs/proofs.md), win32/tests/unit/mutex_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/event.hpp>

#include <cstdint>

namespace tocsin::win32 {

class mutex_state {
public:
    static constexpr std::uint32_t max = 0x7FFF'FFFF;  // how often a thread can own it

    explicit constexpr mutex_state() noexcept : free_(true) {}

    auto_reset_event& free() noexcept { return free_; }

    bool is_owned_by(const void* thread) const noexcept {
        return owner_.load(std::memory_order_relaxed) == thread;  // no order: mutex_state-2
    }

    // For a thread that has just taken the event. Returns whether the mutex was abandoned.
    bool begin(const void* thread) noexcept {
        owner_.store(thread, std::memory_order_relaxed);  // no order: mutex_state-2
        depth_ = 1;
        return forget_abandoned();
    }

    // For the owner. False: the owner can't take the mutex once more.
    bool may_go_deeper() const noexcept { return depth_ != max; }
    void go_deeper(std::uint32_t levels = 1) noexcept { depth_ = depth_ + levels; }
    // For the owner. True: that was the last release, and the caller has to call give_up().
    bool leave() noexcept {
        depth_ = depth_ - 1;
        return depth_ == 0;
    }

    // For the owner, which has released the mutex or is ending: hands the mutex on.
    void give_up(bool abandoned) noexcept {
        abandoned_ = abandoned;
        forget_owner();
        free_.set();  // [mutex] with the wait that takes it
    }
    // The same for a mutex that processes share: the caller hands on its lock, which orders what the event orders here.
    void forget_owner() noexcept {
        owner_.store(nullptr, std::memory_order_relaxed);  // no order: mutex_state-2
    }
    // For a thread that has just taken the lock of such a mutex, and has not called begin().
    void note_abandoned() noexcept { abandoned_ = true; }
    bool forget_abandoned() noexcept {
        const bool was_abandoned = abandoned_;
        abandoned_ = false;
        return was_abandoned;
    }
    // For a thread that has just taken the event, and has not called begin().
    void undo_take() noexcept { free_.set(); }  // [mutex]

private:
    auto_reset_event free_;
    detail::atomic<const void*> owner_{nullptr};
    detail::plain<std::uint32_t> depth_{0};
    detail::plain<bool> abandoned_{false};
};

}  // namespace tocsin::win32
