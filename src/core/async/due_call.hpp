// SPDX-License-Identifier: Apache-2.0
// What is to be done when a timer or a poll of an asynchronous wait is due. No thread is blocked in such a wait, so
// none can do it there. Instead, a background thread or a driver's loop does it.
#pragma once

#include "core/lot/resume_queue.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <cstddef>

namespace tocsin::core {

class due_call : public detail::list_links<due_call> {
public:
    due_call() noexcept = default;
    due_call(const due_call&) = delete;
    due_call& operator=(const due_call&) = delete;
    virtual ~due_call() = default;

    // Called when the timer or poll is due, under the lock of the service that serves it. Returns whether the calling
    // thread must call run(). If so, the object exists until then.
    virtual bool claim() noexcept = 0;
    // Called under no lock, once.
    virtual void run() noexcept = 0;
};

// A list of such calls, all of them due.
class due_calls {
public:
    void claim(due_call& due) noexcept {
        if (due.claim()) due_.append(due);
    }

    bool empty() const noexcept { return due_.empty(); }

    // Runs all of them, which calls executors, before any coroutine resumes. Then resumes coroutines and calls
    // functions, unless an outer defer_resumes is to do so. Returns how many calls there were.
    std::size_t run() noexcept {
        std::size_t count = 0;
        const defer_resumes until_all_have_run;
        for (; due_call* const each = due_.take_first(); ++count) each->run();  // after which it may be gone
        return count;
    }
    // The same in a background thread, under the signal mask `makers`, which the thread's maker had. Returns whether
    // there were any.
    bool run(const platform::signal_mask& makers) noexcept {
        if (due_.empty()) return false;
        const platform::with_signals_of scope(makers);
        return run() != 0;
    }

private:
    detail::intrusive_list<due_call> due_;
};

}  // namespace tocsin::core
