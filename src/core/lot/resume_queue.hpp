// SPDX-License-Identifier: Apache-2.0
// Some waits end without a sleeping thread to wake. This file has what runs then: a coroutine continues, or a flag is
// raised (pollable.cpp).
//
// A thread never resumes a coroutine in the middle of a wake-up. While a thread releases waiters (`defer_resumes`), the
// coroutines that are to continue in this thread stay in a queue of the thread. They continue, one after the other,
// when the last waiter has been released. If such a coroutine sets further events, the coroutines that it releases join
// the same queue. So the stack grows by one coroutine, however many coroutines release one another. Why it is correct:
// resume_queue.cpp.
#pragma once

#include <tocsin/detail/intrusive_list.hpp>

namespace tocsin::core {

class resumable : public detail::list_links<resumable> {
public:
    // Whoever releases the waiter or the node (wait_node.hpp) of this resumable calls `released`, under no lock.
    explicit resumable(void (*released)(resumable&) noexcept) noexcept : released_(released) {}
    resumable(const resumable&) = delete;
    resumable& operator=(const resumable&) = delete;

    void resume() noexcept { released_(*this); }

    // Calls `run(*this)` in this thread as soon as the thread has no waiter left to release.
    void resume_here(void (*run)(resumable&) noexcept) noexcept;
    // For an object that is to be destroyed. Removes it from this thread's queue, and returns whether it was there.
    bool cancel() noexcept;

private:
    friend class defer_resumes;
    friend struct shared_layout;

    void (*const released_)(resumable&) noexcept;
    void (*run_)(resumable&) noexcept = nullptr;  // while it is in a queue
};

// While an object of this class exists in a thread, the thread queues coroutines instead of resuming them. The
// outermost object resumes them at the end of its scope.
class defer_resumes {
public:
    defer_resumes() noexcept;
    ~defer_resumes();
    defer_resumes(const defer_resumes&) = delete;
    defer_resumes& operator=(const defer_resumes&) = delete;

private:
    friend class resumable;
    friend struct shared_layout;

    const bool is_outermost_;
    // Used in the outermost object. Mutable, because scopes are const.
    mutable detail::intrusive_list<resumable> queue_;
};

}  // namespace tocsin::core
