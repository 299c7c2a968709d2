// SPDX-License-Identifier: Apache-2.0
// Runs what follows a wait that no thread sleeps in, once the wake that ended it is over.
//
// State, per thread: its outermost `defer_resumes`, which holds the queue of what is to resume, and the levels (below),
// each of which holds a queue of what is to be handed over. The queues contain objects of the class `resumable`. Only
// the thread itself touches them. A thread has them once, even if the process has several copies of the library
// (platform/shared_table/thread_slots.hpp). So a queue may contain resumables that another copy has put there.
//
// Invariants
//   resume_queue-1  If the release of a resumable calls resume_here(), the resumable is in the calling thread's queue
//       until it runs, or until the same thread cancels it. The same is true of hand_over_here().
//   resume_queue-2  No resumable is in a queue when the outermost `defer_resumes` has ended.
//   resume_queue-3  What is for executors waits only for the releases that the thread is making, not for coroutines
//       that the thread runs. So a thread has levels. The outermost scope is a level. A scope that begins while the
//       thread runs code of the user (a coroutine, a function or an executor), which a level has called at its end, is
//       a level inside that one. A level that ends hands over what has been queued in it. A dispatching executor may
//       resume a coroutine inside its call. That coroutine may set an event, whose level calls a dispatching executor,
//       and so on. So the number of levels has a limit. At the limit, what is for executors waits until the code of the
//       user that the innermost level has called returns.
//   resume_queue-4  A signal handler that interrupts a scope's constructor finds the scope whole, or not yet there. Its
//       own scopes begin and end inside that moment, and leave the outermost scope as they found it.
//
// Checked by: tests/unit/await_test.cpp, tests/internal/signal_at_each_instruction_test.cpp,
// tests/model/await_model_test.cpp; across copies by tests/copies.
#include "core/lot/resume_queue.hpp"

#include "platform/shared_table/thread_slots.hpp"

#include <atomic>
#include <utility>

namespace tocsin::core {
namespace {

using platform::thread_slot;

// How many levels a thread has at most. A dispatching executor and a coroutine between two levels take about a kilobyte
// of the stack.
constexpr unsigned max_levels = 16;

defer_resumes* outermost_scope() noexcept {
    return static_cast<defer_resumes*>(platform::slot_of_this_thread(thread_slot::resumes));
}

}  // namespace

defer_resumes::defer_resumes() noexcept {
    defer_resumes* const outermost = outermost_scope();
    if (outermost == nullptr) {
        is_outermost_ = true;
        is_level_ = true;
        innermost_ = this;
        levels_ = 1;
        std::atomic_signal_fence(std::memory_order_release);  // no order between threads: resume_queue-4
        platform::set_slot_of_this_thread(thread_slot::resumes, this);
    } else if (outermost->innermost_->has_ended_ && outermost->levels_ != max_levels) {
        is_level_ = true;
        outer_level_ = outermost->innermost_;
        ++outermost->levels_;
        std::atomic_signal_fence(std::memory_order_release);  // no order between threads: resume_queue-4
        outermost->innermost_ = this;
    }
}

defer_resumes::~defer_resumes() {
    if (!is_level_) return;
    has_ended_ = true;
    hand_over();
    if (!is_outermost_) {
        defer_resumes& outermost = *outermost_scope();
        outermost.innermost_ = outer_level_;
        --outermost.levels_;
        return;
    }
    while (resumable* const next = to_resume_.take_first()) {
        run(*next);
        hand_over();
    }
    platform::set_slot_of_this_thread(thread_slot::resumes, nullptr);
}

void defer_resumes::run(resumable& one) noexcept { std::exchange(one.run_, nullptr)(one); }

void defer_resumes::hand_over() noexcept {
    while (resumable* const next = to_hand_over_.take_first()) run(*next);
}

void resumable::resume_here(void (*run)(resumable&) noexcept) noexcept {
    const defer_resumes scope;
    run_ = run;
    outermost_scope()->to_resume_.append(*this);
}

void resumable::hand_over_here(void (*run)(resumable&) noexcept) noexcept {
    const defer_resumes scope;
    run_ = run;
    outermost_scope()->innermost_->to_hand_over_.append(*this);
}

bool resumable::cancel() noexcept {
    if (run_ == nullptr) return false;
    run_ = nullptr;
    outermost_scope()->to_resume_.remove(*this);
    return true;
}

bool resumable::cancel_in_this_thread() noexcept {
    const auto remove_from = [this](detail::intrusive_list<resumable>& queue) noexcept {
        for (const resumable* each = queue.first(); each != nullptr; each = queue.next(*each)) {
            if (each != this) continue;
            run_ = nullptr;
            queue.remove(*this);
            return true;
        }
        return false;
    };
    defer_resumes* const outermost = outermost_scope();
    if (outermost == nullptr) return false;
    for (defer_resumes* level = outermost->innermost_; level != nullptr; level = level->outer_level_) {
        if (remove_from(level->to_hand_over_)) return true;
    }
    return remove_from(outermost->to_resume_);
}

}  // namespace tocsin::core
