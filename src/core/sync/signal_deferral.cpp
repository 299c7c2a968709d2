// Makes set() safe in a signal handler.
//
// A handler may interrupt a thread that holds a bucket's lock. If the handler then calls set(), which needs the same
// lock, the thread deadlocks with itself. (Every event that is built on a lock has this trap.) So a thread marks itself
// as inside while it uses such a lock. A set() that finds its own thread marked is deferred: the thread runs it as soon
// as it is outside again, a few steps after the handler has returned.
//
// State, per thread: the mark, a pointer that is null outside; inside, it points to the outermost signal_deferral's
// list of deferred calls, which is on the thread's stack. Only the thread itself and handlers on top of it touch them.
// A handler runs from beginning to end between two steps of the code that it interrupts. The mark is in a slot of the
// thread (platform/shared_table/thread_slots.hpp): found by a few instructions and never allocated, so safe in a
// handler. All copies of the library in a process use the same mark, and each runs calls that another deferred.
//
// Invariants
//   signal_deferral-1  The thread is marked from before it asks for a bucket's lock until after it has freed it.
//   signal_deferral-2  A call is deferred only while the thread is marked. It runs before the outermost signal_deferral
//       has ended: that one clears the mark and then looks for deferred calls once more.
//   signal_deferral-3  Deferred calls run in the order in which they were deferred, each as often as it was deferred.
//       No lock is held then, but the thread is marked: a further handler defers its call instead of overtaking others.
//   signal_deferral-4  There are 16 slots. A thread that waits for a bucket whose holder has lost its core may be
//       interrupted more often. When the slots are full, a repeat of the last deferred call about the same event
//       increments that slot's count. So what happens to one event stays in order, and nothing is lost. Between events,
//       the second of two equal calls may then run before calls that were deferred between the two. Any other further
//       call aborts the program with a message.
//
// So a set in such a handler takes effect some steps after the handler has returned. What a handler does to one event
// stays in order: a reset of an event with waiters is deferred too.
//
// The mark remains while the thread sleeps for a contended bucket; its holder is a few steps from done. The portable
// futex takes a standard mutex and is not safe in a handler, so neither is a set that wakes a thread there.
//
// Checked by: tests/internal/signal_handler_test.cpp; and, with a signal after each instruction of a call, by
// tests/internal/signal_at_each_instruction_test.cpp (signal_deferral-2).
#include "core/sync/signal_deferral.hpp"

#include "platform/system/system.hpp"

#include <new>

namespace tocsin::core {

#if !defined(TOCSIN_MODEL) && !defined(_WIN32) && !defined(__wasm__)

namespace {

// Only one thread and the handlers on top of it make the accesses below; the compiler's order is all they need.
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
        compiler_fence();  // only now may a handler use its slot
        finished_.store(number + 1, relaxed);
    }
}

// signal_deferral-4: increments the last call about the same thing, if it is the same call and is not finished yet.
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

bool deferred_calls::add(void (*run)(void*) noexcept, void* what) noexcept {
    unsigned number = added_.load(relaxed);
    do {
        if (number - finished_.load(relaxed) == slot_count) return increment_last(run, what);
        // One step, even if a handler on top of this one defers calls: they come later.
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
