// SPDX-License-Identifier: Apache-2.0
// State, per thread: its outermost `defer_resumes`, which holds the queue. The queue contains objects of the class
// `resumable`. Only the thread itself touches it. A thread has one queue, even if the process has several copies of the
// library (platform/shared_table/thread_slots.hpp). So the queue may contain resumables that another copy has put
// there.
//
// Invariants
//   resume_queue-1  If the release of a resumable calls resume_here(), the resumable is in the calling thread's queue
//       until it runs, or until the same thread cancels it. (A coroutine with an executor is handed over at once.)
//   resume_queue-2  No resumable is in a queue when the outermost `defer_resumes` has ended.
//
// Checked by: tests/unit/await_test.cpp, tests/model/await_model_test.cpp; across copies by tests/copies.
#include "core/lot/resume_queue.hpp"

#include "platform/shared_table/thread_slots.hpp"

#include <utility>

namespace tocsin::core {
namespace {

using platform::thread_slot;

defer_resumes* outermost_scope() noexcept {
    return static_cast<defer_resumes*>(platform::slot_of_this_thread(thread_slot::resumes));
}

}  // namespace

defer_resumes::defer_resumes() noexcept : is_outermost_(outermost_scope() == nullptr) {
    if (is_outermost_) platform::set_slot_of_this_thread(thread_slot::resumes, this);
}

defer_resumes::~defer_resumes() {
    if (!is_outermost_) return;
    while (resumable* const next = queue_.take_first()) {
        const auto run = std::exchange(next->run_, nullptr);
        run(*next);
    }
    platform::set_slot_of_this_thread(thread_slot::resumes, nullptr);
}

void resumable::resume_here(void (*run)(resumable&) noexcept) noexcept {
    const defer_resumes scope;
    run_ = run;
    outermost_scope()->queue_.append(*this);
}

bool resumable::cancel() noexcept {
    if (run_ == nullptr) return false;
    run_ = nullptr;
    outermost_scope()->queue_.remove(*this);
    return true;
}

}  // namespace tocsin::core
