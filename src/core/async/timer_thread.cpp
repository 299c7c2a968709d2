// State
//   The steady and the system clock each have a queue of timers (core/sync/timer_queue.hpp), and a thread that sleeps
//   until the first of these timers is due. Each thread starts when it is first needed and lives as long as the
//   process.
//
// Invariants
//   timer_thread-1  A queue is touched only under its own lock.
//   timer_thread-2  A due timer leaves the queue and is then claimed, both in one critical section. So after cancel(),
//       either the timer was claimed before and runs, or nobody will ever claim it.
//   timer_thread-3  Timers run under no lock. All that are due run before any coroutine resumes
//       (core/lot/resume_queue.hpp).
//   timer_thread-4  A thread sleeps on a word (a futex) until the deadline that it saw under the lock. Whoever sets a
//       timer that becomes the earliest changes this word, and then wakes the thread. (After a cancel() the thread may
//       wake for nothing. It then looks again.)
//
// No lost wake-up: the thread reads its word under the lock, together with the earliest timer. If the word changes
// before the thread is asleep, the futex does not let it sleep (timer_thread-4).
//
// Locks: no thread takes another lock while it holds one of this file, nor takes one of these while it holds a lock of
// the lot.
//
// Exit and fork: nothing is destroyed, so the threads may keep running while the process exits. The child of a fork has
// no timers and neither of the threads. Timers and threads begin anew there.
//
// Several copies of the library in a process: each has threads of its own. A copy that has started a thread can't be
// unloaded.
//
// Memory order: the locks order everything. The word of a thread is a futex, of which only the value matters.
//
// Checked by: tests/model/timer_model_test.cpp (P13 of docs/proofs.md), tests/unit/await_test.cpp,
// tests/stress/await_stress_test.cpp.
#include "core/async/timer_thread.hpp"

#include "core/async/background.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/timer_queue.hpp"
#include "platform/futex/futex.hpp"

#include <cstdint>
#include <mutex>
#include <utility>

namespace tocsin::core {

class timer_thread {
public:
    explicit constexpr timer_thread(timer_queue::clock which) noexcept : queue_(which) {}

    void start(void (*body)() noexcept) {
        const std::lock_guard guard(lock_);
        thread_.start(body);
    }

    void set(timer& one, const deadline& when) noexcept {
        {
            const std::lock_guard guard(lock_);
            queue_.insert(one, when);
            if (queue_.first() != &one) return;
            changed_.fetch_add(1, std::memory_order_relaxed);  // no order: under the lock (timer_thread-4)
        }
        platform::futex::wake_one(&changed_);
    }

    void cancel(timer& one) noexcept {
        const std::lock_guard guard(lock_);
        queue_.remove(one);
    }

    void run() noexcept {
        for (;;) {
            completions due;
            std::uint32_t seen;
            deadline next = deadline::never();
            {
                const std::lock_guard guard(lock_);
                claim_due(due);
                seen = changed_.load(std::memory_order_relaxed);  // no order: under the lock (timer_thread-4)
                next = queue_.next();
            }
            if (!due.run(thread_.makers_signals())) (void)platform::futex::wait(changed_, seen, next);
        }
    }

private:
    void claim_due(completions& due) noexcept {
        while (timer_entry* const entry = queue_.take_due()) {
            auto& one = static_cast<timer&>(*entry);
            due.claim(one);
            // The timer exists even if claim() has refused: cancel() would first take the lock, which is held here.
            if (std::exchange(one.is_postponed_, false)) queue_.insert(one, one.when_);
        }
    }

    futex_lock lock_;
    timer_queue queue_;
    platform::futex_word changed_{0};
    background_thread thread_;
};

namespace {

struct timer_threads {
    timer_thread steady{timer_queue::clock::steady};
    timer_thread system{timer_queue::clock::system};
};

constinit never_destroyed<timer_threads> threads;

const renewed_in_child<threads> threads_renewed;

timer_thread& thread_of(bool system) noexcept { return system ? threads.it.system : threads.it.steady; }

}  // namespace

void timer::start(const deadline& when) {
    if (when.is_never()) return;
    const auto run_steady = []() noexcept { threads.it.steady.run(); };
    const auto run_system = []() noexcept { threads.it.system.run(); };
    const bool system = timer_queue::clock_of(when) == timer_queue::clock::system;
    thread_of(system).start(system ? +run_system : +run_steady);
}

void timer::set(const deadline& when) noexcept {
    if (when.is_never()) return;
    has_thread_ = true;
    is_on_system_clock_ = timer_queue::clock_of(when) == timer_queue::clock::system;
    thread_of(is_on_system_clock_).set(*this, when);
}

void timer::cancel() noexcept {
    if (has_thread_) thread_of(is_on_system_clock_).cancel(*this);
}

}  // namespace tocsin::core
