// SPDX-License-Identifier: Apache-2.0
// Some waits end without a sleeping thread to wake. This file has what runs then: a coroutine continues, or a flag is
// raised (pollable.cpp).
//
// A thread never resumes a coroutine in the middle of a wake-up, and never calls an executor there, which may resume
// one. While a thread releases waiters (`defer_resumes`), what is to run in this thread stays in queues of the thread.
// When the last waiter has been released, the thread first hands over to the executors what is for them. Then the
// coroutines that are to continue in this thread continue, one after the other. If such a coroutine sets further
// events, the coroutines that it releases join the same queue. So the stack grows by one coroutine, however many
// coroutines release one another. Why it is correct: resume_queue.cpp.
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

    // Calls `run(*this)` in this thread as soon as the thread has no waiter left to release, and runs nothing else.
    void resume_here(void (*run)(resumable&) noexcept) noexcept;
    // Calls `run(*this)`, which calls an executor, in this thread as soon as the thread has no waiter left to release.
    void hand_over_here(void (*run)(resumable&) noexcept) noexcept;
    // For an object that is to be destroyed, and that hand_over_here() was never called for. Removes it from this
    // thread's queue, and returns whether it was there.
    bool cancel() noexcept;
    // The same for any object. Reads nothing of the object unless it is in a queue of this thread. Another thread may
    // be handing the object over. Cost: a step for each object in this thread's queues.
    bool cancel_in_this_thread() noexcept;

private:
    friend class defer_resumes;
    friend struct shared_layout;

    void (*const released_)(resumable&) noexcept;
    void (*run_)(resumable&) noexcept = nullptr;  // while it is in a queue
};

// While an object of this class exists in a thread, the thread queues coroutines instead of resuming them, and what is
// for executors instead of handing it over. The outermost object resumes the coroutines at the end of its scope.
class defer_resumes {
public:
    defer_resumes() noexcept;
    ~defer_resumes();
    defer_resumes(const defer_resumes&) = delete;
    defer_resumes& operator=(const defer_resumes&) = delete;

private:
    friend class resumable;
    friend struct shared_layout;

    using queue = detail::intrusive_list<resumable>;

    void hand_over() noexcept;
    static void run(resumable& one) noexcept;

    bool is_outermost_ = false;
    bool is_level_ = false;                 // whether it hands over at the end of its scope (resume_queue-3)
    bool has_ended_ = false;                // a level that hands over, or resumes
    queue to_resume_;                       // of the outermost object
    queue to_hand_over_;                    // of a level
    defer_resumes* outer_level_ = nullptr;  // of a level: the next level outside of it
    // Of the outermost object: the innermost level, and how many levels there are.
    defer_resumes* innermost_ = nullptr;
    unsigned levels_ = 0;
};

}  // namespace tocsin::core
