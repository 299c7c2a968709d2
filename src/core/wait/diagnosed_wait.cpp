// SPDX-License-Identifier: Apache-2.0
// The lists of the waits that have no node in the lot, for diagnosis.
//
// State: 64 lists, each with a lock and in a cache line of its own. A wait for a custom source has a diagnosed_wait,
// and a hash of that object's address selects the list. So has a thread that sleeps in a poll, in a wait_set, in a
// group_commit or on an object between processes, and a coroutine or operation that waits for descriptors. Threads have
// these objects on their stacks, which are far apart. So two threads rarely use the same list.
//
// A wait that is listed takes its list's lock twice: when it is enlisted or is about to sleep, and before it returns.
// Waits for events, and all others that queue in the lot, are in none of these lists. Nor are the members of a
// wait_set: their nodes in the lot lead to the thread that sleeps in it (source_member::sleeps()).
//
// Invariants
//   diagnosed_wait-1  A wait leaves its list before it delists its source, and so before it returns. So while a thread
//       holds the list's lock and looks at the list, the waits in the list, their waiters and what they poll exist. (A
//       wait for descriptors leaves before it frees the entries for its poll.) No code of the user runs under this
//       lock: enter() asks for the source's label before it takes the lock. No thread takes another lock while it
//       holds this one.
//
// Fork: the child begins with empty lists. If the child ends a wait that was listed in the parent, it does not remove
// the wait from a list.
//
// The models leave the lists out: nobody reads them there, and their locks would only multiply the executions.
//
// Checked by: tests/unit/diagnose_test.cpp, shared_diagnose_test.cpp.
#include "core/wait/diagnosed_wait.hpp"

#include "core/lot/lot.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/signal_deferral.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <cstddef>
#include <mutex>
#include <new>

namespace tocsin::core {

bool diagnosed_wait::is_open() const noexcept { return !who_->is_claimed(); }

#if defined(TOCSIN_MODEL)

void diagnosed_wait::enter(const source&, const waiter&, const wait_origin&) noexcept {}
void diagnosed_wait::enter(const source_label&, const waiter&, const wait_origin&) noexcept {}
void diagnosed_wait::leave() noexcept {}
void diagnosed_sleeper::enter() noexcept {}
void for_each_diagnosed(void (*)(const diagnosed_wait&, void*), void*) noexcept {}

#else

namespace {

diagnosed_list& list_of(const diagnosed_wait* one) noexcept {
    return diagnosed_lists[detail::golden_hash(reinterpret_cast<std::uintptr_t>(one)) >>
                           (64 - diagnosed_lists_bits)];
}

// In place of the waiter that a diagnosed_sleeper lacks: nobody ends its wait but its thread.
constinit const waiter never_claimed;

const in_child empties_lists(child_duty::diagnosed_waits, []() noexcept {
    for (diagnosed_list& each : diagnosed_lists) new (&each) diagnosed_list;
});

}  // namespace

constinit diagnosed_list diagnosed_lists[std::size_t{1} << diagnosed_lists_bits];

void diagnosed_wait::enter(const source& what, const waiter& who, const wait_origin& from) noexcept {
    const source_label label = what.label();
    [[maybe_unused]] constexpr std::uint8_t source = 255;  // in place of a wait_kind
    TOCSIN_PROBE(park, &who, label.address, in_register(source), from.thread);
    enter(label, who, from);
}

void diagnosed_wait::enter(const source_label& what, const waiter& who, const wait_origin& from) noexcept {
    who_ = &who;
    label_ = what;
    origin_ = from;
    process_ = process_stamp();  // a signal handler may have forked since this was made
    diagnosed_list& to = list_of(this);
    const signal_deferral inside;
    const std::lock_guard held(to.lock);
    to.waits.append(*this);
}

void diagnosed_wait::leave() noexcept {
    if (!is_listed()) return;
    if (process_.is_of_this_process()) {
        diagnosed_list& from = list_of(this);
        const signal_deferral inside;
        const std::lock_guard held(from.lock);
        from.waits.remove(*this);
    }
    who_ = nullptr;
}

void diagnosed_sleeper::enter() noexcept {
    if (!entry_.is_listed()) entry_.enter(what_, never_claimed, wait_origin::here());
}

void for_each_diagnosed(void (*look)(const diagnosed_wait&, void*), void* context) noexcept {
    for (diagnosed_list& each : diagnosed_lists) {
        const signal_deferral inside;
        const std::lock_guard held(each.lock);
        for (const diagnosed_wait* one = each.waits.first(); one != nullptr; one = each.waits.next(*one))
            look(*one, context);
    }
}

#endif

}  // namespace tocsin::core
