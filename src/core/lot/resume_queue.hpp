// What runs when a wait is over for which no thread sleeps: a coroutine continues, or a flag is raised (pollable.cpp).
//
// No code of the user runs in the middle of a wake-up. While a thread releases others (`defer_resumes`), the coroutines
// that are to continue in it wait in a queue of that thread. They continue, one after the other, when the last waiter
// has been released. A coroutine that runs so and sets further events adds to that queue. So the stack grows by one
// coroutine, however long the chain is.
//
// State, per thread: the queue, whether the thread is inside a `defer_resumes`, and which coroutine it is handing to an
// executor. Only the thread itself touches them. A queue belongs to one copy of the library
// (platform/shared_table/shared_table.hpp): the copy that releases.
//
// Invariants
//   resume_queue-1  A resumable whose release calls resume_here() is in the queue of that thread until it runs, or
//       until the same thread cancels it. (A coroutine with an executor is handed over at once.)
//   resume_queue-2  No resumable is in a queue when the outermost `defer_resumes` has ended.
//
// Checked by: tests/unit/await_test.cpp.
#pragma once

#include <tocsin/detail/intrusive_list.hpp>

namespace tocsin::core {

class resumable : public detail::list_links<resumable> {
public:
    // Whoever releases its waiter, or its node (wait_node.hpp), calls `released`, under no lock.
    explicit resumable(void (*released)(resumable&) noexcept) noexcept : released_(released) {}
    resumable(const resumable&) = delete;
    resumable& operator=(const resumable&) = delete;

    void resume() noexcept { released_(*this); }

    // Calls `run(*this)` in this thread, as soon as this thread has nobody left to release.
    void resume_here(void (*run)(resumable&) noexcept) noexcept;
    // Call before destroying it. Removes it from this thread's queue; returns whether it was there.
    bool cancel() noexcept;

private:
    friend class defer_resumes;

    void (*const released_)(resumable&) noexcept;
    void (*run_)(resumable&) noexcept = nullptr;  // while it is in a queue
};

// The time in which a user's executor is given a coroutine. The executor may not resume it inside that call.
class executor_scope {
public:
    explicit executor_scope(const resumable& what) noexcept;
    ~executor_scope();
    executor_scope(const executor_scope&) = delete;
    executor_scope& operator=(const executor_scope&) = delete;

    // Whether this thread is handing it to an executor.
    static bool is_inside(const resumable& what) noexcept;

private:
    [[maybe_unused]] const resumable* outer_ = nullptr;
};

// In its scope, this thread queues coroutines instead of resuming them. The outermost one resumes them at its end.
class defer_resumes {
public:
    defer_resumes() noexcept;
    ~defer_resumes();
    defer_resumes(const defer_resumes&) = delete;
    defer_resumes& operator=(const defer_resumes&) = delete;

private:
    [[maybe_unused]] bool outermost_ = false;
};

}  // namespace tocsin::core
