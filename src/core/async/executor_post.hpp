// SPDX-License-Identifier: Apache-2.0
// Hands an ended wait to a user's executor. That wait is either of a coroutine, which is to resume, or of an operation,
// whose function is to be called.
//
// State: each wait has a word `posted` in its detail::executor_reference. It says whether the call of the executor is
// over, or whether a thread sleeps until that call is over. The thread that calls the executor has a user_call_scope.
//
// Invariants
//   executor_post-1  The thread that hands an ended wait over stores `posted` when the executor has returned.
//       Afterwards the thread uses nothing of the wait but the address of `posted`, unless the executor has refused the
//       wait.
//   executor_post-2  If an ended wait may have been handed over, whoever runs or destroys it first waits for `posted`.
//       So the executor and the wait exist until the call of the executor is over. There is one exception: a
//       dispatching executor runs or destroys the wait inside its call, in the same thread. That thread then marks its
//       own user_call_scope, and does not wait. When the executor returns, the thread finds the mark, and touches
//       nothing of the wait: the wait may be gone, or another one may be at its address.
//   executor_post-3  An executor is called when its thread has made all its releases (core/lot/resume_queue.hpp). So a
//       coroutine that a dispatching executor resumes runs under no lock, and may destroy any other wait, as a
//       coroutine without an executor may.
//
// Memory order
//   [posted]  The store of `posted` releases; the load of it by whoever runs or destroys the wait acquires.
//
// Checked by: tests/model/await_model_test.cpp, tests/model/operation_model_test.cpp.
#pragma once

#include "core/lot/resume_queue.hpp"
#include "core/sync/user_call_scope.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/executor_reference.hpp>

namespace tocsin::core {

inline constexpr std::uint32_t posted = 1;
inline constexpr std::uint32_t awaited = 2;  // a thread sleeps until `posted` is stored

// Gives `who` to the executor. Returns false if the executor has refused it. `what` may be gone afterwards, unless the
// executor has refused.
inline bool post(detail::executor_reference& to, const resumable& what, void* who) noexcept {
    bool taken;
    {
        const user_call_scope inside(user_call::post, &what);
        taken = to.post(to.object, who);
        if (inside.was_left()) return true;  // executor_post-2
    }
    if (to.posted.exchange(posted, std::memory_order_release) == awaited) {  // [posted]
        platform::futex::wake_one(&to.posted);                               // the address alone
    }
    return taken;
}

// Called by whoever runs or destroys an ended wait that may have been handed over.
inline void wait_until_posted(detail::executor_reference& to, const resumable& what) noexcept {
    if (user_call_scope::leave(user_call::post, &what)) return;  // executor_post-2
    std::uint32_t seen = 0;
    to.posted.compare_exchange_strong(seen, awaited,
                                      std::memory_order_relaxed);  // no order: the load after it
    while (to.posted.load(std::memory_order_acquire) != posted) {  // [posted]
        (void)platform::futex::wait(to.posted, awaited, deadline::never());
    }
}

}  // namespace tocsin::core
