// The half of critical_section.hpp that is not inline; the argument is there.
#include "core/critical_section.hpp"

#include "platform/system.hpp"

#include <atomic>

namespace tocsin::core {

#if !defined(TOCSIN_MODEL) && !defined(_WIN32)

namespace {

// Calls that handlers can put off within one critical section of the thread they interrupt.
constexpr unsigned most_notes = 16;

struct note {
    std::atomic<void (*)(void*) noexcept> run{nullptr};
    std::atomic<void*> what{nullptr};
};

struct thread_state {
    std::atomic<unsigned> depth{0};
    std::atomic<unsigned> count{0};
    note notes[most_notes];
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

// Empties the log. Handlers may go on to write at its end meanwhile; then it is not empty yet.
void carry_out_notes() noexcept {
    unsigned done = 0;
    unsigned count = self.count.load(relaxed);
    do {
        for (; done != count; ++done) self.notes[done].run.load(relaxed)(self.notes[done].what.load(relaxed));
    } while (!self.count.compare_exchange_strong(count, 0, relaxed));
}

}  // namespace

void critical_section::step_in() noexcept { set_depth(self.depth.load(relaxed) + 1); }

void critical_section::step_out() noexcept {
    const unsigned depth = self.depth.load(relaxed) - 1;
    set_depth(depth);
    if (depth != 0) return;
    while (self.count.load(relaxed) != 0) [[unlikely]] {
        set_depth(1);
        carry_out_notes();
        set_depth(0);
    }
}

bool critical_section::is_inside() noexcept { return self.depth.load(relaxed) != 0; }

bool critical_section::defer(void (*run)(void*) noexcept, void* what) noexcept {
    if (!is_inside()) return false;
    const unsigned place =
        self.count.fetch_add(1, relaxed);  // one step, also for handlers on top of this one
    if (place >= most_notes) {
        platform::die("tocsin: signal handlers made more than 16 calls inside one critical section\n");
    }
    self.notes[place].what.store(what, relaxed);
    self.notes[place].run.store(run, relaxed);
    compiler_fence();
    return true;
}

#endif

}  // namespace tocsin::core
