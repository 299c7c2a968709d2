// SPDX-License-Identifier: Apache-2.0
// Makes set() safe in a signal handler.
//
// A handler may interrupt a thread that holds a bucket's lock. If the handler then calls set(), which needs the same
// lock, the thread deadlocks with itself. (Every event that is built on a lock has this trap.) So a thread marks itself
// as inside the library while it uses such a lock. If a set() in a handler needs such a lock, it finds its own thread
// marked, and is deferred. The thread runs the deferred set() as soon as it is outside again, a few steps after the
// handler has returned.
//
// State, per thread: the mark, which is a pointer. While the thread is outside, the mark is null. While it is inside,
// the mark points to the list of deferred calls. This list is part of the outermost signal_deferral, which is on the
// thread's stack. Only the thread itself and the handlers that interrupt it touch the mark and the list. Such a handler
// runs from beginning to end between two steps of the code that it interrupts. The mark is in a slot of the thread
// (platform/shared_table/thread_slots.hpp). The slot is found by a few instructions and needs no allocation (except on
// OpenBSD: thread_slots.hpp), so a handler may use it. All copies of the library in a process use the same mark. Each
// copy also runs calls that another copy has deferred.
//
// Invariants
//   signal_deferral-1  The thread is marked from before it asks for a bucket's lock until after it has freed the lock.
//   signal_deferral-2  A call is deferred only while the thread is marked. It runs before the outermost signal_deferral
//       has ended: that object clears the mark, and then looks for deferred calls. If it finds some, it sets the mark,
//       runs them, clears the mark, and looks again.
//   signal_deferral-3  Deferred calls run in the order in which they were deferred (exception: signal_deferral-4), each
//       as often as it was deferred. While they run, the thread holds no lock that they need, but is marked. So a
//       further handler defers its call instead of overtaking others.
//   signal_deferral-4  There are 16 slots for deferred calls. A thread may need more, if it is often interrupted while
//       it waits for a bucket whose holder has lost its processor. When all slots are full, a further call about an
//       event is accepted only if it repeats the last deferred call about that event. It then increments the count in
//       the slot of that last call. Any other call aborts the program with a message. So nothing is lost, and what
//       happens to one event stays in order. The order between events may change: the repeated call runs right after
//       the first, before calls about other events that were deferred between the two.
//
// So if a handler interrupts a thread that is inside the library, the handler's set() of an event with waiters takes
// effect some steps after the handler has returned. While such a set() is pending, a reset() of this event with waiters
// is deferred, too, so that it does not overtake the set(). If none is pending, a reset() of an unset event has nothing
// to undo and is never deferred.
// The order is not kept in two cases. First, the last waiter of the event may leave (at a deadline, for instance) while
// calls about the event are pending. If handlers then make further calls before the pending ones run, these further
// calls find no waiter. They are made at once, and so overtake the pending calls. Second, a call overtakes pending
// calls if it is made by a second signal's handler in the few instructions between clearing the mark and looking for
// deferred calls (signal_deferral-2).
//
// The mark stays on while the thread sleeps until another thread frees the bucket's lock, which that thread does after
// a few steps. On a system that uses the portable futex, a set() that wakes a thread is not safe in a handler: that
// futex takes a standard mutex.
//
// Checked by: tests/internal/signal_handler_test.cpp; and, with a signal after each instruction of a call, by
// tests/internal/signal_at_each_instruction_test.cpp (signal_deferral-2).
#include "core/sync/signal_deferral.hpp"

#include "platform/system/system.hpp"

#include <new>

namespace tocsin::core {

#if !defined(TOCSIN_MODEL) && !defined(_WIN32) && !defined(__wasm__)

namespace {

// Only one thread and the handlers that interrupt it make the accesses below. They need only the compiler's order.
constexpr auto relaxed = std::memory_order_relaxed;  // no order: one thread
void compiler_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

void deferred_calls::run_all() noexcept {
    while (!empty()) {
        const unsigned number = finished_.load(relaxed);
        slot& oldest = slot_of(number);
        const auto run = oldest.run.load(relaxed);
        void* const what = oldest.what.load(relaxed);
        do run(what);
        while (oldest.times.fetch_sub(1, relaxed) != 1);
        compiler_fence();  // a handler may use the slot only after the next step
        finished_.store(number + 1, relaxed);
    }
}

// signal_deferral-4: finds the last deferred call about `what` that is not finished. If it is the same call, increments
// its count.
bool deferred_calls::increment_last(void (*run)(void*) noexcept, void* what) noexcept {
    const unsigned end = added_.load(relaxed);
    for (unsigned number = end; number != end - slot_count;) {
        if (!made_[--number % slot_count].load(relaxed)) continue;
        slot& each = slot_of(number);
        unsigned times = each.times.load(relaxed);
        if (times == 0 || each.what.load(relaxed) != what) continue;
        if (each.run.load(relaxed) != run) return false;
        while (times != 0) {
            if (each.times.compare_exchange_weak(times, times + 1, relaxed)) return true;
        }
    }
    return false;
}

bool deferred_calls::has(const void* what) const noexcept {
    for (unsigned number = 0; number != slot_count; ++number) {
        if (!made_[number].load(relaxed)) continue;
        const slot& each = slot_of(number);
        if (each.times.load(relaxed) != 0 && each.what.load(relaxed) == what) return true;
    }
    return false;
}

bool deferred_calls::add(void (*run)(void*) noexcept, void* what) noexcept {
    unsigned number = added_.load(relaxed);
    do {
        if (number - finished_.load(relaxed) == slot_count) return increment_last(run, what);
        // One step takes the slot, whatever handlers interrupt this one. A call that another handler defers after this
        // step gets a later slot.
    } while (!added_.compare_exchange_weak(number, number + 1, relaxed));
    std::atomic<bool>& made = made_[number % slot_count];
    if (!made.load(relaxed)) ::new (static_cast<void*>(&slot_of(number))) slot;
    slot& own = slot_of(number);
    own.what.store(what, relaxed);
    own.run.store(run, relaxed);
    compiler_fence();
    made.store(true, relaxed);
    own.times.store(1, relaxed);
    compiler_fence();
    return true;
}

bool signal_deferral::has_deferred(const void* what) noexcept {
    const auto* const calls =
        static_cast<const deferred_calls*>(platform::slot_of_this_thread(platform::thread_slot::deferral));
    return calls != nullptr && calls->has(what);
}

void signal_deferral::leave() noexcept {
    mark(nullptr);
    while (!calls_.empty()) [[unlikely]] {
        mark(&calls_);
        calls_.run_all();
        mark(nullptr);
    }
}

bool signal_deferral::defer(void (*run)(void*) noexcept, void* what) noexcept {
    auto* const calls =
        static_cast<deferred_calls*>(platform::slot_of_this_thread(platform::thread_slot::deferral));
    if (calls == nullptr) return false;
    if (!calls->add(run, what)) {
        platform::die(
            "tocsin: signal handlers interrupted one call into the library and made more than 16 "
            "different or alternating calls of set() or reset()\n");
    }
    return true;
}

#endif

}  // namespace tocsin::core
