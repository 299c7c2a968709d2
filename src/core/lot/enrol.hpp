// SPDX-License-Identifier: Apache-2.0
// How a wait joins the queue of what it waits for, and leaves it again. Every wait in the lot does so here, except that
// of a lock: bit_lock.cpp moves its nodes within their queue, and has no mark to clear.
//
// What a source owes (the contract of detail::lot_source, and of the waits in the .cpp of each source)
//   look       try_take and looks_ready. Without the lock of the source's bucket. Nothing below relies on a look.
//   hold       Under the lock. If the source is ready, keeps it so until take_held or unhold, and returns true.
//   take n     Under the lock. take_held takes what is held. A semaphore's own wait takes up to n permits at once.
//   mark       Under the lock. Notes that a node is about to be queued. Unless it is told to mark a ready source, too,
//              it does so in one step that fails if the source is ready. An address has no bit for this: there,
//              prepare_wait() marks the key in the lot, and a look after it takes the place of that step.
//   clear      Under the lock. Notes that no node is queued any more.
//   give back  Without the lock. Makes ready again what a wait has taken and does not use.
//   guard      What a condition's wait holds until its node is queued: the lock of its caller. The source is "made
//              ready" by a notification, and whoever notifies has held that lock since the wait gave it up.
//   signal     Whoever makes the source ready does it in one of two ways:
//              - in one step that changes nothing if the source is marked. If it is marked, the signaller takes the
//                lock of the bucket, and looks at the queue.
//              - in a step that is followed by a look at the mark, with a full fence between the two or an order as
//                strong. If the source is marked, it takes the lock, and looks at the queue.
//
// Invariants
//   enrol-1  A node is queued in the same hold of the lock as the mark before it. No step between the two frees it.
//   enrol-2  Whenever the lock is free, the source is marked if its queue has nodes. Whoever takes the last node out of
//       the queue clears the mark in the same hold of the lock. (In the child of a fork, the mark may be on although
//       the queue is empty: the fork has emptied all queues.)
//   enrol-3  A wait that ends without having been taken off withdraws its node before it returns. If another thread has
//       taken the node off, withdraw() does not touch the source, which may be gone.
//
// No lost wake-up: compare the step that makes the source ready with the mark of the wait.
// - The signal comes first. Then the mark fails, or the look after prepare_wait() finds the source ready. The wait
//   takes it, and queues no node.
// - The mark comes first. Then the signal finds the source marked, and takes the lock. By enrol-1, it does not get the
//   lock before the node is queued. So it finds the node, unless another thread has taken the node off: then that
//   thread has ended the wait, or the wait has ended itself (waiter.cpp).
// One of the two comes first: all changes of one word have one order. Where the mark and what it is about are two words
// (an address, a condition), the fences or the guard decide: [wake-check] in lot.cpp, [registered] in condition.cpp.
// What each source adds to this (which step is the signal, which bit the mark) is in its own file.
//
// Memory order: the lock orders the mark, the queue and `queued` ([bucket] in lot.cpp).
//
// Checked by: the models of all that wait; the mutants of this file are planted in many_model_test, await_model_test,
// operation_model_test, event_model_test and condition_model_test.
#pragma once

#include "core/lot/lot.hpp"

#include <tocsin/source.hpp>

namespace tocsin::core {

// The object that a node in the lot waits for.
inline void* object_of(const wait_node& node) noexcept { return const_cast<void*>(node.key.address); }

// Each function below but the last is called under the lock of the queue's bucket.

// Queues the node, whether or not the source is ready.
inline void enrol(wait_queue& queue, wait_node& node, const detail::lot_source& how,
                  const wait_origin& from = {}, queue_order order = queue_order::arrival) noexcept {
    how.mark_parked(object_of(node), true);
    queue.join(node, from, order);
}

// If the source is ready, holds it and returns true. Otherwise queues the node and returns false.
inline bool hold_or_enrol(wait_queue& queue, wait_node& node, const detail::lot_source& how,
                          const wait_origin& from) noexcept {
    for (;;) {
        if (how.hold(object_of(node))) return true;
        if (how.mark_parked(object_of(node), false)) break;  // fails if the source has become ready
    }
    queue.join(node, from, how.order);
    return false;
}

// Takes a cancelable node out of the queue, and returns true. If that empties the queue, calls `clear()`, which clears
// the mark. Returns false, and does nothing, if another thread has taken the node off.
template <class Clear>
bool withdraw(wait_queue& queue, wait_node& node, Clear clear) noexcept {
    if (!node.queued) return false;
    queue.remove(node);
    if (queue.empty()) clear();
    return true;
}
inline bool withdraw(wait_queue& queue, wait_node& node, const detail::lot_source& how) noexcept {
    return withdraw(queue, node, [&]() noexcept { how.clear_parked(object_of(node)); });
}
// The same for a caller that does not have the lock.
template <class How>
bool withdraw(wait_node& node, const How& how) noexcept {
    locked_queue queue(node.key);
    return withdraw(queue, node, how);
}

}  // namespace tocsin::core
