// SPDX-License-Identifier: Apache-2.0
// A wait for one source in the lot that blocks no thread.
//
// State: a waiter (waiter.cpp) and its one node (lot.cpp).
//
// Invariants
//   single_wait-1  park() stores `suspended` in the waiter's word while the node is not queued, so nobody can end the
//       wait. Then it queues the node under the bucket's lock, and frees that lock. After this, the thread in park()
//       touches nothing of the wait. By then, another thread may have ended the wait. Then the wait's memory may be
//       gone, or the wait may have begun again.
//   single_wait-2  Whoever takes the node off its queue, under the bucket's lock, decides how the wait ends, and is the
//       only one to do so. A thread that wakes the queue claims the waiter in the same step, and later releases it. A
//       thread in withdraw() claims nothing. Afterwards, this thread either calls end_stopped(), which claims and
//       releases the waiter, or destroys the wait.
//   single_wait-3  A wait begins again only after it has ended, in a thread that knows this. Another thread may be in
//       withdraw() at that time. It finds either the ended wait or the new one. Until it knows which, it reads only two
//       things: the node's key, which never changes; and whether the node is queued, which changes only under the lock.
//
// No lost wake-up: core/lot/enrol.hpp.
//
// Memory order: the bucket's lock orders park(), withdraw() and whoever takes the node off. So what came before park()
// is visible to whoever ends the wait. [release] in core/lot/waiter.cpp orders what came before the release.
//
// Checked by: tests/model/await_model_test.cpp, tests/model/operation_model_test.cpp.
#include "core/wait/single_wait.hpp"

#include "core/lot/enrol.hpp"
#include "core/sync/happens_before.hpp"

namespace tocsin::core {

single_wait::single_wait(void (*released)(resumable&) noexcept, const wait_key& key,
                         detail::event_use use) noexcept
    : resumable(released), self_(this), node_(key, self_, true, forks(), use) {}

bool single_wait::is_of_this_process() const noexcept {
    return (forks() & wait_node::max_index) == node_.index;
}

bool single_wait::park(const detail::lot_source& how) noexcept {
    self_.suspend_unqueued();
    const auto origin = wait_origin::of_suspension();
    locked_queue queue(node_.key);
    if (!hold_or_enrol(queue, node_, how, origin)) return true;
    how.take_held(object());
    order::after(object());
    return false;
}

bool single_wait::withdraw(const detail::lot_source& how) noexcept { return core::withdraw(node_, how); }

}  // namespace tocsin::core
