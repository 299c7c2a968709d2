// Makes set() safe in a signal handler.
//
// A handler may interrupt a thread that holds a bucket's lock. If the handler then calls set(), which needs the same
// lock, the thread deadlocks with itself. (Every event that is built on a lock has this trap.) So a thread marks itself
// as inside while it uses such a lock. A set() that finds its own thread marked is deferred: the thread runs it as soon
// as it is outside again, a few steps after the handler has returned.
//
// State, per thread: `depth`, the number of signal_deferral objects that exist; and the deferred calls, in order. Only
// the thread and the handlers that interrupt it touch them. A handler runs from beginning to end between two steps of
// the code that it interrupts.
//
// Invariants
//   signal_deferral-1  `depth` is above zero from before the thread asks for a bucket's lock until after it has freed
//       that lock.
//   signal_deferral-2  A call is deferred only while `depth` is above zero. It runs before the outermost
//       signal_deferral ends, because that object clears `depth` and then looks for deferred calls once more.
//   signal_deferral-3  Deferred calls run in the order in which they were deferred, each as often as it was deferred.
//       While they run, the thread holds no lock, but `depth` is above zero. So a handler that interrupts them defers
//       its call, which can't overtake them.
//   signal_deferral-4  There are 16 slots for deferred calls. A thread that waits for a bucket whose holder has lost
//       its core may be interrupted more often than that. When the slots are full, a call that repeats the last
//       deferred call on the same event increments the count in that call's slot. So the calls on one event stay in
//       order, and none is lost. Across events, the second of two equal calls may then run before calls that were
//       deferred between the two. Any other call made while the slots are full aborts the program with a message.
//
// So a set in such a handler takes effect some steps after the handler has returned. What a handler does to one event
// stays in order: a reset of an event with waiters is deferred too.
//
// A thread stays marked while it sleeps until a contended bucket is free; the holder of the bucket's lock is a few
// steps from freeing it. The portable futex takes a standard mutex, which is not safe in a handler. With that futex, a
// set that wakes a thread is not safe in a handler, either. A mark belongs to one copy of the library
// (platform/shared_table/shared_table.hpp). If a handler calls another copy, that copy does not see it.
//
// Checked by: tests/internal/signal_handler_test.cpp; and, with a signal after each instruction of a call, by
// tests/internal/signal_at_each_instruction_test.cpp (signal_deferral-2).
#include "core/sync/signal_deferral.hpp"

#include "platform/system/system.hpp"

#include <atomic>

namespace tocsin::core {

#if !defined(TOCSIN_MODEL) && !defined(_WIN32) && !defined(__wasm__)

namespace {

constexpr unsigned slot_count = 16;

struct deferred_call {
    std::atomic<void (*)(void*) noexcept> run{nullptr};
    std::atomic<void*> what{nullptr};
    std::atomic<unsigned> times{0};  // runs still due; from 0, only a new call raises it
};

struct handlers_log {
    std::atomic<unsigned> depth{0};
    std::atomic<unsigned> deferred{0};  // calls deferred since the thread began
    std::atomic<unsigned> finished{0};  // of those, calls that have run
    deferred_call slots[slot_count];    // used in turn
};

// In the thread's static block: one instruction finds it and it is never allocated, so a handler may use it.
#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local handlers_log own_log;

// Only the thread and the handlers that interrupt it make the accesses below. They need the compiler's order alone.
constexpr auto relaxed = std::memory_order_relaxed;  // no order: one thread
void compiler_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

void set_depth(unsigned depth) noexcept {
    compiler_fence();
    own_log.depth.store(depth, relaxed);
    compiler_fence();
}

deferred_call& slot_of(unsigned number) noexcept { return own_log.slots[number % slot_count]; }

bool has_deferred_calls() noexcept {
    return own_log.deferred.load(relaxed) != own_log.finished.load(relaxed);
}

// While this runs, handlers may defer further calls, even in the slots of finished ones.
void run_deferred_calls() noexcept {
    while (has_deferred_calls()) {
        const unsigned number = own_log.finished.load(relaxed);
        deferred_call& oldest = slot_of(number);
        const auto run = oldest.run.load(relaxed);
        void* const what = oldest.what.load(relaxed);
        do run(what);
        while (oldest.times.fetch_sub(1, relaxed) != 1);
        compiler_fence();  // only after this may a handler use the slot again
        own_log.finished.store(number + 1, relaxed);
    }
}

// signal_deferral-4: if the last deferred call about `what` is the same call and has not finished, increments its
// count.
bool increment_last(void (*run)(void*) noexcept, void* what) noexcept {
    const unsigned end = own_log.deferred.load(relaxed);
    for (unsigned number = end; number != end - slot_count;) {
        deferred_call& each = slot_of(--number);
        unsigned times = each.times.load(relaxed);
        if (times == 0 || each.what.load(relaxed) != what) continue;
        if (each.run.load(relaxed) != run) return false;
        while (times != 0) {
            if (each.times.compare_exchange_weak(times, times + 1, relaxed)) return true;
        }
    }
    return false;
}

}  // namespace

void signal_deferral::enter() noexcept { set_depth(own_log.depth.load(relaxed) + 1); }

void signal_deferral::leave() noexcept {
    const unsigned depth = own_log.depth.load(relaxed) - 1;
    set_depth(depth);
    if (depth != 0) return;
    while (has_deferred_calls()) [[unlikely]] {
        set_depth(1);
        run_deferred_calls();
        set_depth(0);
    }
}

bool signal_deferral::is_inside() noexcept { return own_log.depth.load(relaxed) != 0; }

bool signal_deferral::defer(void (*run)(void*) noexcept, void* what) noexcept {
    if (!is_inside()) return false;
    unsigned number = own_log.deferred.load(relaxed);
    do {
        if (number - own_log.finished.load(relaxed) == slot_count) {
            if (increment_last(run, what)) return true;
            platform::die(
                "tocsin: signal handlers interrupted one call into the library and made more than 16 "
                "different or alternating calls of set() or reset()\n");
        }
        // One step, so a handler that interrupts this one gets another slot.
    } while (!own_log.deferred.compare_exchange_weak(number, number + 1, relaxed));
    deferred_call& own = slot_of(number);
    own.what.store(what, relaxed);
    own.run.store(run, relaxed);
    compiler_fence();
    own.times.store(1, relaxed);
    compiler_fence();
    return true;
}

#endif

}  // namespace tocsin::core
