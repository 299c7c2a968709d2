// SPDX-License-Identifier: Apache-2.0
// The events of several processes.
//
// State of a shared_auto_reset_event: src/core/shared/token_queue.cpp. Here is the shared_manual_reset_event.
//
// State: one word. Its lowest bit is on while the event is set. `shared_sleepers` is on if a thread may have begun to
// sleep since the last reset. The other bits count the *rounds*: each reset of a set event begins the next one. (The
// word stands where other objects have their tickets.)
//
// Invariants
//   shared_event-1  A wait that began in round r has been released if the event is set, or if the round is not r any
//       more: only a reset of a set event ends a round. So nobody needs to know who waits, and set(); reset() releases
//       all who waited. (The count wraps around after 2^30 resets. A thread would have to be held up for that long
//       between two of its instructions to take the same number for the same round.)
//   shared_event-2  A thread sleeps only on a word with `shared_sleepers` and without the lowest bit. A set of such a
//       word is one system call, FUTEX_WAKE_OP, which turns the bit on and wakes all sleepers in one step.
//
// No lost wake-up: a thread falls asleep only if the word is what it saw, and every set and reset changes the word. A
// set that sees no `shared_sleepers` is an exchange, which fails if a thread turns `shared_sleepers` on meanwhile.
//
// Death: no thread has anything in hand. A set happens as a whole or not at all (dies-4 in shared_futex.hpp), and the
// kernel forgets a sleeper that dies. `shared_sleepers` may stay on: then one set more makes the system call. (Where
// the kernel has no FUTEX_WAKE_OP, as in some emulators, there are two steps, and a kill between them leaves sleepers
// asleep.)
//
// Looks: before a thread sleeps, it may look for a moment, without and then with `shared_sleepers` (spinner.cpp). It
// has begun to wait by then: the round decides, as it does for one that sleeps.
//
// Memory order
//   [gate]  A set releases, also if the event is set already. Whoever passes acquires. The reset is both: a thread that
//       passes because it sees the next round has read it from the reset, or from a later change, all of which are
//       read-modify-writes.
//
// Checked by: proof P30 (docs/proofs.md), tests/model/shared_gate_model_test.cpp; tests/unit/shared_event_test.cpp,
// shared_death_test.cpp.
#include "core/shared/token_queue.hpp"
#include "core/sync/happens_before.hpp"
#include "core/wait/diagnosed_wait.hpp"
#include "core/wait/spinner.hpp"

#include <tocsin/shared_event.hpp>

namespace tocsin::detail {
namespace {

wait_status wait_for_gate(shared_header& header, const deadline& until, const stop_token* token) {
    atomic<std::uint32_t>& word = header.tickets;
    std::uint32_t seen = word.load(std::memory_order_acquire);  // [gate]
    const std::uint32_t first = seen / shared_round;
    const auto released = [&] { return (seen & shared_set) != 0 || seen / shared_round != first; };
    if (released()) return wait_status::signaled;
    if (token != nullptr && token->stop_requested()) return wait_status::stopped;
    if (until.which() == deadline::clock::passed) return wait_status::timed_out;
    core::shared_check_stamp({header, nullptr, 0, shared_kind::manual_reset_event});
    const wait_options how_to_look{until, token, {}};
    core::spinner looks({&header, core::wait_kind::event}, how_to_look, false);
    const auto look = [&] {
        seen = word.load(std::memory_order_acquire);  // [gate]
        return released();
    };
    if (looks.before_parking(look)) return wait_status::signaled;
    const core::shared_stop stop(token);
    core::diagnosed_sleeper shown({core::shared_kind_name(shared_kind::manual_reset_event), &header});
    for (;;) {
        if (released()) return wait_status::signaled;
        if ((seen & shared_sleepers) == 0 &&
            !word.compare_exchange_weak(seen, seen | shared_sleepers, std::memory_order_acquire,
                                        std::memory_order_acquire))  // [gate]
            continue;
        if (looks.while_parked(look)) return wait_status::signaled;
        core::sleep_list words({.narrow = &word, .expected = seen | shared_sleepers});
        words.add_stop(stop);
        shown.enter();
        const platform::shared_sleep how = words.sleep(until);
        seen = word.load(std::memory_order_acquire);  // [gate]
        if (released()) return wait_status::signaled;
        if (stop.is_requested()) return wait_status::stopped;
        if (how == platform::shared_sleep::timed_out) return wait_status::timed_out;
    }
}

}  // namespace

void shared_gate_set_slow(shared_header& header) noexcept {
    core::order::before(&header.tickets);
    platform::shared_futex::set_lowest_bit_and_wake_all(header.tickets);
}

wait_status shared_gate_wait(shared_header& header, const deadline& until, const stop_token* token) {
    const wait_status ended = wait_for_gate(header, until, token);
    return core::order::after(&header.tickets, ended, wait_status::signaled);
}

bool shared_token_try_slow(const shared_parts& object) noexcept {
    return core::order::after(&object.header.control, core::take_from_dead(object), true);
}

void shared_token_drop(const shared_parts& object) noexcept {
    // no order: a token that is dropped publishes nothing
    if ((object.header.control.load(std::memory_order_relaxed) & shared_queued) != 0)
        core::drop_from_dead(object);
}

wait_status shared_token_wait(const shared_parts& object, const deadline& until, const stop_token* stop) {
    const wait_status ended = core::wait_for_token(object, {until, stop, {}});
    return core::order::after(&object.header.control, ended, wait_status::signaled);
}

bool shared_token_give(const shared_parts& object, std::uint32_t limit) {
    core::order::before(&object.header.control);
    return core::give_token(object, limit);
}

}  // namespace tocsin::detail
