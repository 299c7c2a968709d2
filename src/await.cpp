// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait for one event without limits: async_wait(event), with no deadline and no stop token. Such a wait
// is a single_wait (core/wait/single_wait.cpp). Every other wait of a coroutine is a pending_wait (pending.cpp).
//
// State: an event_awaiter's memory holds the event's address until the coroutine suspends. From then on, it holds the
// event_awaiting.
//
// Invariants
//   await-1  Once park() has returned true, the suspending thread touches nothing of the wait: the coroutine may be
//       running, or gone (single_wait-1).
//   await-2  The thread that released the wait resumes the coroutine or hands it to its executor, exactly once. A
//       thread that withdrew the wait, saw `posted`, or took the coroutine out of its own resume_queue may destroy the
//       coroutine. With an executor, executor_post-2 applies as well (core/async/executor_post.hpp).
//
// No lost wake-up: as for a single_wait. If a wait is destroyed after it was given an auto-reset event, but before the
// coroutine continues, the destructor gives the event back, as if by another set().
//
// Memory order: [posted] in executor_post.hpp; single_wait.cpp orders everything else.
//
// Checked by: tests/model/await_model_test.cpp, tests/unit/await_test.cpp, tests/stress/await_stress_test.cpp.
#include "core/async/executor_post.hpp"
#include "core/wait/single_wait.hpp"

#include <tocsin/await.hpp>

#include <cstddef>
#include <new>

namespace tocsin::detail {

// The wait for one event. It takes all the memory of an event_awaiter, which has no room for more.
class event_awaiting final : public core::single_wait {
public:
    using single_wait::single_wait;

    static event_awaiting& in(event_awaiter_base& awaiter) noexcept {
        return *std::launder(reinterpret_cast<event_awaiting*>(awaiter.memory));
    }
    static void released(resumable& self) noexcept;
    static void released_to_executor(resumable& self) noexcept;

    // Called when the coroutine is destroyed while it waits (await-2).
    void abandon(const lot_source& how, executor_reference* executor) noexcept;

private:
    // The awaiter in whose memory this object is.
    event_awaiter_base& awaiter() noexcept {
        static_assert(offsetof(event_awaiter_base, memory) == 0);
        return *reinterpret_cast<event_awaiter_base*>(this);
    }
};

static_assert(sizeof(event_awaiting) <= async_event_size && alignof(event_awaiting) <= 8);

void event_awaiting::released(resumable& self) noexcept {
    self.resume_here(
        [](resumable& next) noexcept { static_cast<event_awaiting&>(next).awaiter().who_.resume(); });
}

void event_awaiting::released_to_executor(resumable& self) noexcept {
    self.hand_over_here([](resumable& next) noexcept {
        auto& awaiter =
            static_cast<event_awaiter_with_executor&>(static_cast<event_awaiting&>(next).awaiter());
        if (!core::post(awaiter.executor_, next, awaiter.who_.address())) released(next);
    });
}

void event_awaiting::abandon(const lot_source& how, executor_reference* executor) noexcept {
    if (!is_of_this_process() || withdraw(how)) return;
    const bool was_queued = executor != nullptr ? cancel_in_this_thread() : cancel();
    if (!was_queued && executor != nullptr) core::wait_until_posted(*executor, *this);
    if (how.give_back != nullptr) how.give_back(object());
}

bool event_awaiter_base::suspend(const lot_source& how, std::coroutine_handle<> who,
                                 executor_reference* executor) noexcept {
    const core::wait_key key{object, static_cast<core::wait_kind>(how.wait_kind)};
    who_ = who;
    auto* const waiting = ::new (memory) event_awaiting(
        executor != nullptr ? event_awaiting::released_to_executor : event_awaiting::released, key);
    if (waiting->park(how)) return true;
    who_ = nullptr;
    waiting->~event_awaiting();
    return false;
}

void event_awaiter_base::finish(executor_reference* executor) noexcept {
    auto& waiting = event_awaiting::in(*this);
    if (executor != nullptr) core::wait_until_posted(*executor, waiting);
    waiting.~event_awaiting();
    who_ = nullptr;
}

void event_awaiter_base::abandon(const lot_source& how, executor_reference* executor) noexcept {
    auto& waiting = event_awaiting::in(*this);
    waiting.abandon(how, executor);
    waiting.~event_awaiting();
}

}  // namespace tocsin::detail
