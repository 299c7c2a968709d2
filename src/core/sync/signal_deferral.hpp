// What makes set() safe in a signal handler.
//
// A handler may interrupt a thread that holds a bucket's lock, and call set(), which needs the same lock: a
// deadlock of a thread with itself (trap of every event built on a lock). So a thread marks that it is inside
// a critical section; a set that finds the mark in its own thread leaves a note, and the thread carries it
// out as soon as it has left, a few steps after the handler returns.
//
// State, per thread: how deep it is inside, and the notes, in order. Only the thread itself and handlers on
// top of it touch them; a handler runs from beginning to end between two of its steps.
//
// Invariants
//   signal_deferral-1  `depth` is above zero from before a bucket's lock is asked for until after it is freed.
//   signal_deferral-2  A note is left only with depth above zero, and is carried out before the outermost critical section
//       has ended: it ends by clearing `depth` and then looking for notes once more.
//   signal_deferral-3  Notes are carried out in the order in which they were left, each as often as it was, with no lock held,
//       but with depth above zero: a further handler leaves a further note instead of going in between.
//   signal_deferral-4  There is room for so many notes. A thread that waits for a bucket whose holder has lost its core may be
//       interrupted more often than that. Then a note that says what the last one about the same event says is
//       counted there: what happens to one event stays in order, and nothing is lost. Between events the later of
//       two equal calls may then come before what was noted between them. Who makes more calls, all different or by
//       turns, is stopped.
//
// So a set in such a handler takes effect some steps after the handler returns. What a handler does in order
// to one event stays in order: a reset of an event with waiters is noted, too.
//
// The mark is on while the thread sleeps for a contended bucket, too; its holder is a few steps from done.
// The portable futex takes a standard mutex and is not safe in a handler, so neither is a set that wakes
// somebody there. A thread's mark belongs to one copy of the library (platform/shared_table/shared_table.hpp): a handler of
// another copy's does not see it.
//
// Checked by: tests/internal/signal_handler_test.cpp.
#pragma once

namespace tocsin::core {

#if defined(TOCSIN_MODEL) || defined(_WIN32) || defined(__wasm__)

// No handlers.
class signal_deferral {
public:
    signal_deferral() noexcept {}
    ~signal_deferral() {}
    static bool defer(void (*)(void*) noexcept, void*) noexcept { return false; }
    static bool is_inside() noexcept { return false; }
};

#else

class signal_deferral {
public:
    signal_deferral() noexcept { step_in(); }
    ~signal_deferral() { step_out(); }
    signal_deferral(const signal_deferral&) = delete;
    signal_deferral& operator=(const signal_deferral&) = delete;

    // In a handler on top of a thread that is inside: notes `run(what)` for later and returns true.
    static bool defer(void (*run)(void*) noexcept, void* what) noexcept;
    // Whether this is such a handler.
    static bool is_inside() noexcept;

private:
    static void step_in() noexcept;
    static void step_out() noexcept;
};

#endif

}  // namespace tocsin::core
