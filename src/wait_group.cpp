// SPDX-License-Identifier: Apache-2.0
// A wait_group is a count and a gate, which is a manual-reset event. The done() that reaches zero sets the gate, and
// the add() that leaves zero resets it. Every wait is a wait for the gate.
//
// State
//   word_   the count, and below it two bits: `closing` (an add() has found zero and has not reset the gate yet) and
//           `awaited` (another add() sleeps until it has).
//   gate_   the event. It is set from the start if the count is zero then.
//
// What the user promises: each done() belongs to an add() that has returned before it. So the count can't reach zero
// while an add() is under way that found zero, or that counted after one that did: what that add() counts is still
// counted.
//
// Invariants
//   wait_group-1  The count leaves zero by one compare-and-exchange, which also turns `closing` on. The add() that made
//       it waits until the gate is set, resets it, and turns `closing` off, in this order. The count reaches zero only
//       while `closing` is off, by one fetch_sub, and that call sets the gate. So sets and resets alternate. Each reset
//       comes after the set of the zero before it, and each set comes after the reset of the count before it.
//   wait_group-2  An add() that finds `closing` on returns only when it is off. So when any add() has returned, the
//       gate is closed until the count is zero again.
//   wait_group-3  The gate alone says whether a thread may pass, and the set is the last step of a done(), as for a
//       latch (latch-2, latch-3). So a thread that passes may destroy the group.
//
// No lost wake-up: event.cpp shows that a set reaches every waiter. An add() sleeps on `word_` as a futex. It turns
// `awaited` on before it sleeps, while `closing` is on, and whoever turns `closing` off learns in the same step whether
// `awaited` was on. The add() that found zero waits for the gate like any thread. The done() that made the count zero
// sets the gate without waiting for anything.
//
// Memory order
//   [group-count]   As [arrive] of a latch: every change of the count is a read-modify-write that releases and
//                   acquires, so the last done() passes on, by [event-publish], what came before all others.
//   [group-closed]  Turning `closing` off releases, and an add() that finds it off acquires. So a wait after that add()
//                   sees the gate closed.
//
// Checked by: tests/model/wait_group_model_test.cpp (P26 of docs/proofs.md), tests/unit/wait_group_test.cpp.
#include "core/sync/happens_before.hpp"
#include "platform/futex/futex.hpp"

#include <tocsin/wait_group.hpp>

namespace tocsin {

void wait_group::add_to_zero(std::uint32_t more) noexcept {
    core::order::before(&word_);
    std::uint32_t seen = 0;
    if (!word_.compare_exchange_strong(seen, more | closing, std::memory_order_acq_rel,  // [group-count]
                                       std::memory_order_relaxed))  // no order: add() looks again
        return add(static_cast<std::ptrdiff_t>(more / one));
    gate_.wait();
    gate_.reset();
    core::order::after(&gate_);
    const std::uint32_t before =
        word_.fetch_and(~(closing | awaited), std::memory_order_release);  // [group-closed]
    if ((before & awaited) != 0) platform::futex::wake_all(&word_);
}

void wait_group::wait_until_closed() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_acquire);  // [group-closed]
    while ((seen & closing) != 0) {
        const std::uint32_t asleep = seen | awaited;
        // no order: it publishes nothing, and the load below acquires
        if (seen == asleep || word_.compare_exchange_weak(seen, asleep, std::memory_order_relaxed))
            (void)platform::futex::wait(word_, asleep, deadline::never());
        seen = word_.load(std::memory_order_acquire);  // [group-closed]
    }
    core::order::after(&word_);
}

}  // namespace tocsin
