// SPDX-License-Identifier: Apache-2.0
// Hands an ended wait to a user's executor. That wait is either of a coroutine, which is to resume, or of an operation,
// whose function is to be called.
//
// State: each wait has a word `posted` in its detail::executor_reference. It says whether the call of the executor is
// over, or whether a thread sleeps until that call is over.
//
// Invariants
//   handover-1  The thread that hands an ended wait over stores `posted` when the executor has returned. Afterwards the
//       thread uses nothing of the wait but the address of `posted`, unless the executor has refused the wait.
//   handover-2  If an ended wait may have been handed over, whoever runs or destroys it first waits for `posted`. So
//       the executor and the wait exist until the call of the executor is over.
//
// Memory order
//   [posted]  The store of `posted` releases; the load of it by whoever runs or destroys the wait acquires.
//
// Checked by: tests/model/await_model_test.cpp, tests/model/operation_model_test.cpp.
#pragma once

#include "core/lot/resume_queue.hpp"
#include "core/sync/activity.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/executor_reference.hpp>

namespace tocsin::core {

inline constexpr std::uint32_t posted = 1;
inline constexpr std::uint32_t awaited = 2;  // a thread sleeps until `posted` is stored

// The messages for an executor that does at once what it must do later.
inline constexpr const char* resumed_too_early =
    "tocsin: an executor resumed a coroutine inside the call that was to have it resumed\n";
inline constexpr const char* called_too_early =
    "tocsin: an executor called an operation's function inside the call that was to have it called\n";

// Gives `who` to the executor. Returns false if the executor has refused it.
inline bool post(detail::executor_reference& to, const resumable& what, void* who) noexcept {
    bool taken;
    {
        const activity_scope inside(activity::post, &what);
        taken = to.post(to.object, who);
    }
    if (to.posted.exchange(posted, std::memory_order_release) == awaited) {  // [posted]
        platform::futex::wake_one(&to.posted);                               // the address alone
    }
    return taken;
}

// If this thread is still inside the call of the executor, ends the program with the message `misuse`.
inline void wait_until_posted(detail::executor_reference& to, const resumable& what,
                              const char* misuse) noexcept {
    if (activity_scope::is_inside(activity::post, &what)) platform::die(misuse);
    std::uint32_t seen = 0;
    to.posted.compare_exchange_strong(seen, awaited,
                                      std::memory_order_relaxed);  // no order: the load after it
    while (to.posted.load(std::memory_order_acquire) != posted) {  // [posted]
        (void)platform::futex::wait(to.posted, awaited, deadline::never());
    }
}

}  // namespace tocsin::core
