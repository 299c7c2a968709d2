// SPDX-License-Identifier: Apache-2.0
// A latch is a count and a gate, which is a manual-reset event. The call that counts to zero sets the gate. Every wait
// is a wait for the gate, so what src/event.cpp says of a set and of a wait holds for latches.
//
// State
//   left_   how many arrivals are missing. Only count_down() uses it.
//   gate_   the event. It is set at most once (from the start, if nothing is expected), and never reset.
//
// Invariants
//   latch-1  Each count_down() changes the count in one read-modify-write, and learns what was left before. So exactly
//       one call takes away all that was left, and only this call sets the gate. (count_down(0) never sets the gate,
//       even if nothing was left.)
//   latch-2  The gate alone says whether a thread may pass. No wait and no look reads the count. If one did, a thread
//       could find the count at zero and destroy the latch, before the call that reached zero has set the gate.
//   latch-3  The set is the last step of the call that reaches zero. In every other call, the read-modify-write of the
//       count is the last step, and it comes before the set. (Exception: a count_down(0) may come later. So the latch
//       must not be destroyed before that call has returned.) So no call touches the latch after a thread can pass,
//       except as event-5 allows: the set may search the queue of the gate's address.
//
// No lost wake-up: the gate is set after the last arrival, and event.cpp shows that a set reaches every waiter.
//
// Memory order
//   [arrive]    Every count_down() releases and acquires by its read-modify-write. All changes of the count are
//               read-modify-writes, so the last of them acquires from all before it. Its set then passes on what it has
//               acquired, by [event-publish], to every thread that passes.
//
// Checked by: tests/model/latch_model_test.cpp (P18 of docs/proofs.md), tests/unit/latch_test.cpp,
// tests/stress/latch_stress_test.cpp.
#include "platform/system/system.hpp"

#include <tocsin/detail/misuse.hpp>
#include <tocsin/latch.hpp>

#include <cstdio>

namespace tocsin::detail {

void die_of_misuse(const char* type, const void* object, const char* reason) noexcept {
    char message[160];
    std::snprintf(message, sizeof message, "tocsin: %s at %p: %s\n", type, object, reason);
    platform::die(message);
}

}  // namespace tocsin::detail
