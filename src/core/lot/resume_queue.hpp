// What goes on when a wait is over that no thread sleeps for: a coroutine.
//
// Nothing of the user's runs in the middle of a wake-up: while a thread releases others (`defer_resumes`), the
// coroutines that are to go on in it stand in a list of the thread's own, and go on, one after the other, when the
// last has been released. A coroutine that runs so and sets further events adds to that list: the stack grows
// by one coroutine, however long the chain is.
//
// State, per thread: the list, and whether it is inside. Only the thread itself touches them. A thread's list
// belongs to one copy of the library (platform/shared_table/shared_table.hpp): the copy that releases.
//
// Invariants
//   resume_queue-1  A resumable is in a list from the release of its waiter until it runs or is called off by the same thread.
//   resume_queue-2  None is in a list when the outermost `defer_resumes` has ended.
//
// Checked by: tests/unit/await_test.cpp.
#pragma once

#include <tocsin/detail/intrusive_list.hpp>

namespace tocsin::core {

class resumable : public detail::list_links<resumable> {
public:
    // `released` is called, under no lock, by whoever releases its waiter.
    explicit resumable(void (*released)(resumable&) noexcept) noexcept : released_(released) {}
    resumable(const resumable&) = delete;
    resumable& operator=(const resumable&) = delete;

    void resume() noexcept { released_(*this); }

    // Calls `run(*this)` in this thread, as soon as nobody is left whom it has to release.
    void resume_here(void (*run)(resumable&) noexcept) noexcept;
    // Before it is destroyed: true if it was to go on in this thread and had not yet; it will not.
    bool cancel() noexcept;

private:
    friend class defer_resumes;

    void (*const released_)(resumable&) noexcept;
    void (*run_)(resumable&) noexcept = nullptr;  // while it is in a queue
};

// While an executor of the user's is given what to resume. It may not resume it inside.
class executor_scope {
public:
    explicit executor_scope(const resumable& what) noexcept;
    ~executor_scope();
    executor_scope(const executor_scope&) = delete;
    executor_scope& operator=(const executor_scope&) = delete;

    // Whether this thread is giving it away.
    static bool is_inside(const resumable& what) noexcept;

private:
    [[maybe_unused]] const resumable* outer_ = nullptr;
};

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
