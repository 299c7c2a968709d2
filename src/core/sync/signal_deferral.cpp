// Makes set() safe in a signal handler.
//
// A handler may interrupt a thread that holds a bucket's lock, and call set(), which needs the same lock: the thread
// would deadlock with itself (trap of every event built on a lock). So a thread marks itself as inside while it uses
// such a lock. A set() that finds its own thread marked defers itself. The thread runs the deferred call as soon as it
// is outside again, a few steps after the handler has returned.
//
// State, per thread: `depth`, how many signal_deferral objects exist, and the deferred calls, in order. Only the thread
// itself and handlers on top of it touch them. A handler runs from beginning to end between two steps of the code that
// it interrupts.
//
// Invariants
//   signal_deferral-1  `depth` is above zero from before the thread asks for a bucket's lock until after it has freed
//       it.
//   signal_deferral-2  A call is deferred only with depth above zero. It runs before the outermost signal_deferral has
//       ended: that one clears `depth` and then looks for deferred calls once more.
//   signal_deferral-3  Deferred calls run in the order in which they were deferred, each as often as it was deferred.
//       No lock is held then, but depth is above zero: a further handler defers its call instead of overtaking others.
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
// futex takes a standard mutex and is not safe in a handler, so neither is a set that wakes a thread there. A mark
// belongs to one copy of the library (platform/shared_table/shared_table.hpp): a handler that calls another copy does
// not see it.
//
// Checked by: tests/internal/signal_handler_test.cpp, and after each instruction of a call by
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
    std::atomic<unsigned> times{0};  // still to run; once it is 0, only a new call raises it
};

struct handlers_log {
    std::atomic<unsigned> depth{0};
    std::atomic<unsigned> deferred{0};  // calls, since the thread began
    std::atomic<unsigned> finished{0};  // of them
    deferred_call slots[slot_count];    // used in turn
};

// In the thread's static block: found by one instruction and never allocated, so safe in a handler.
#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local handlers_log own_log;

// Only one thread and the handlers on top of it make the accesses below; the compiler's order is all they need.
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

// Handlers may defer further calls in between, even in the slots of finished ones.
void run_deferred_calls() noexcept {
    while (has_deferred_calls()) {
        const unsigned number = own_log.finished.load(relaxed);
        deferred_call& oldest = slot_of(number);
        const auto run = oldest.run.load(relaxed);
        void* const what = oldest.what.load(relaxed);
        do run(what);
        while (oldest.times.fetch_sub(1, relaxed) != 1);
        compiler_fence();  // only now may a handler use its slot
        own_log.finished.store(number + 1, relaxed);
    }
}

// signal_deferral-4: increments the last call about the same thing, if it is the same call and is not finished yet.
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
        // One step, even if a handler on top of this one defers calls: they come later.
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
