// The half of signal_deferral.hpp that is not inline; the argument is there.
#include "core/sync/signal_deferral.hpp"

#include "platform/system/system.hpp"

#include <atomic>

namespace tocsin::core {

#if !defined(TOCSIN_MODEL) && !defined(_WIN32) && !defined(__wasm__)

namespace {

// Notes that handlers can leave in one thread before it carries them out.
constexpr unsigned most_notes = 16;

struct note {
    std::atomic<void (*)(void*) noexcept> run{nullptr};
    std::atomic<void*> what{nullptr};
    std::atomic<unsigned> left{0};  // times to be carried out; at 0 it is not added to any more
};

struct thread_state {
    std::atomic<unsigned> depth{0};
    std::atomic<unsigned> left_by_handlers{0};  // notes, since the thread began
    std::atomic<unsigned> carried_out{0};       // of them
    note notes[most_notes];                     // in turn
};

// In the thread's static block: found by one instruction and never allocated, so safe in a handler.
#if defined(__ELF__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local thread_state self;

// Every access below is of one thread and the handlers on top of it; the compiler's order is all they need.
constexpr auto relaxed = std::memory_order_relaxed;  // no order: one thread
void compiler_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

void set_depth(unsigned depth) noexcept {
    compiler_fence();
    self.depth.store(depth, relaxed);
    compiler_fence();
}

note& at(unsigned number) noexcept { return self.notes[number % most_notes]; }

bool has_notes() noexcept { return self.left_by_handlers.load(relaxed) != self.carried_out.load(relaxed); }

// Handlers may go on to leave notes meanwhile, also in the places of those carried out.
void carry_out_notes() noexcept {
    while (has_notes()) {
        const unsigned number = self.carried_out.load(relaxed);
        note& oldest = at(number);
        const auto run = oldest.run.load(relaxed);
        void* const what = oldest.what.load(relaxed);
        do run(what);
        while (oldest.left.fetch_sub(1, relaxed) != 1);
        compiler_fence();  // only now may a handler take its place
        self.carried_out.store(number + 1, relaxed);
    }
}

// signal_deferral-4: adds to the last note about the same thing, if that says the same and is not carried out yet.
bool add_to_note(void (*run)(void*) noexcept, void* what) noexcept {
    const unsigned end = self.left_by_handlers.load(relaxed);
    for (unsigned number = end; number != end - most_notes;) {
        note& each = at(--number);
        unsigned left = each.left.load(relaxed);
        if (left == 0 || each.what.load(relaxed) != what) continue;
        if (each.run.load(relaxed) != run) return false;
        while (left != 0) {
            if (each.left.compare_exchange_weak(left, left + 1, relaxed)) return true;
        }
    }
    return false;
}

}  // namespace

void signal_deferral::step_in() noexcept { set_depth(self.depth.load(relaxed) + 1); }

void signal_deferral::step_out() noexcept {
    const unsigned depth = self.depth.load(relaxed) - 1;
    set_depth(depth);
    if (depth != 0) return;
    while (has_notes()) [[unlikely]] {
        set_depth(1);
        carry_out_notes();
        set_depth(0);
    }
}

bool signal_deferral::is_inside() noexcept { return self.depth.load(relaxed) != 0; }

bool signal_deferral::defer(void (*run)(void*) noexcept, void* what) noexcept {
    if (!is_inside()) return false;
    unsigned number = self.left_by_handlers.load(relaxed);
    do {
        if (number - self.carried_out.load(relaxed) == most_notes) {
            if (add_to_note(run, what)) return true;
            platform::die(
                "tocsin: signal handlers set or reset more than 16 events by turns in one critical "
                "section\n");
        }
        // One step, also for handlers on top of this one, whose notes then come later.
    } while (!self.left_by_handlers.compare_exchange_weak(number, number + 1, relaxed));
    note& own = at(number);
    own.what.store(what, relaxed);
    own.run.store(run, relaxed);
    compiler_fence();
    own.left.store(1, relaxed);
    compiler_fence();
    return true;
}

#endif

}  // namespace tocsin::core
