// SPDX-License-Identifier: Apache-2.0
// A wait for one source in the lot that blocks no thread: of a coroutine (await.cpp) or of an operation
// (operation.cpp). Why it is correct: single_wait.cpp.
//
//     if (wait.park(how)) return;           // the source is not ready: whoever ends the wait calls `released`
//     ...
//     if (wait.withdraw(how)) ...           // nobody else has ended the wait, and nobody will
#pragma once

#include "core/lot/resume_queue.hpp"
#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"

#include <tocsin/detail/event_use.hpp>
#include <tocsin/source.hpp>

namespace tocsin::core {

class single_wait : public resumable {
public:
    // `released` is called by the thread that ends the wait, under no lock.
    single_wait(void (*released)(resumable&) noexcept, const wait_key& key,
                detail::event_use use = {}) noexcept;

    // Begins the wait. Returns false if it has taken the source instead. After true, the wait may be over, and its
    // memory gone (single_wait-1). A wait that is over may begin again.
    bool park(const detail::lot_source& how) noexcept;
    // Takes a wait that has begun out of its queue, and returns true. Returns false if another thread has done so.
    bool withdraw(const detail::lot_source& how) noexcept;
    // For a wait that withdraw() has taken out of its queue. Ends the wait as `stopped`, and calls `released`.
    void end_stopped() noexcept { self_.stop(); }

    // For a wait that is over.
    claim outcome() const noexcept { return self_.outcome(); }
    // False in the child of a fork, if the wait was made in the parent.
    bool is_of_this_process() const noexcept;
    void* object() const noexcept { return const_cast<void*>(node_.key.address); }

private:
    waiter self_;
    // In other waits, a node's number says which source it is for. Here it is what forks() returned when the wait was
    // made.
    wait_node node_;
};

}  // namespace tocsin::core
