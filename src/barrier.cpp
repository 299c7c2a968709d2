// SPDX-License-Identifier: Apache-2.0
// A barrier is a count and two gates, which are manual-reset events: one for the phases with even numbers, and one for
// those with odd numbers. A phase lasts until as many arrivals have been counted as it expects. The thread that makes
// the last arrival of a phase ends it. Each wait is for the gate of its own phase, so what src/event.cpp says of a set
// and of a wait holds for barriers.
//
// State
//   missing_   how many arrivals the current phase still expects, times two, plus one if the phase's number is odd.
//   expected_  how many arrivals the next phase will expect.
//   ended_     the two gates.
//
// Invariants
//   barrier-1  Each arrival (a call, which may count for several) changes `missing_` in one read-modify-write. This
//       tells the arrival how many arrivals were missing, and whether the phase is odd. So exactly one arrival of a
//       phase finds no more missing than it brings: the last one. Only the thread of this last arrival calls the
//       completion function and end().
//   barrier-2  From the last arrival until the gate is set, only the thread of the last arrival changes the barrier.
//       (Waits may still queue at a gate.) Any other arrival in this time is one too many. If it comes before end() has
//       stored the new count, it finds zero missing and ends the program. If it comes after that store, it is counted
//       in the new phase. To arrive so early is always a mistake in the program, since nothing has told the thread yet
//       that the new phase has begun.
//   barrier-3  While a phase is current, its gate is unset. end() resets the next phase's gate before it stores the new
//       count. The two gates alternate, so the next phase's gate was also the gate of the phase before the one that
//       ends. Nobody may wait for that older phase any more, so the gate has no waiters. (The header requires this of
//       everyone who uses a token, as the standard does.)
//   barrier-4  The set of the gate is the last step of the last arrival. In every other arrival, the read-modify-write
//       of `missing_` is the last step, and it comes before the set. So no arrival touches the barrier after a thread
//       can pass, except as event-5 allows: the set may search the queue of the gate's address.
//
// No lost wake-up: the last arrival sets the gate, and event.cpp shows that a set reaches every waiter.
//
// Memory order
//   [arrive]    Every arrival releases and acquires by its read-modify-write. Within a phase, all changes of `missing_`
//               are read-modify-writes, so the last arrival acquires from all before it. The set of the gate passes on
//               what it has acquired, and what the completion function did, by [event-publish].
//   new phase   end() resets the new phase's gate, makes the store that begins the phase, and then sets the old phase's
//               gate. Any thread that may arrive in the new phase has passed the old phase's gate, has set it, or has
//               heard from a thread that did. So it sees the reset and the store, and the store needs no order.
//   expected_   arrive_and_drop() lowers `expected_` before it arrives, and the last arrival reads `expected_`. So
//               [arrive] orders the two. Several threads may drop at once, so each lowers `expected_` by a
//               read-modify-write.
//
// Checked by: tests/model/barrier_model_test.cpp (P18 of docs/proofs.md), tests/unit/barrier_test.cpp,
// tests/stress/latch_stress_test.cpp.
#include "core/sync/happens_before.hpp"

#include <tocsin/barrier.hpp>

namespace tocsin::detail {

void phases::end(std::uint32_t parity) noexcept {
    const std::uint32_t next = parity ^ 1;
    ended_[next].reset();
    const std::uint32_t expected = expected_.load(std::memory_order_relaxed);  // no order: [arrive] orders it
    missing_.store((expected << 1) | next, std::memory_order_relaxed);  // no order: the gate's set orders it
    core::order::before(&ended_[parity]);
    ended_[parity].set();  // barrier-4
}

}  // namespace tocsin::detail
