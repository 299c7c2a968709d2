// SPDX-License-Identifier: Apache-2.0
// The threads that end asynchronous waits at their deadlines, one for each clock.
//
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
//   timer_thread-4  The queue knows when the thread looks at it next, at the latest (served_timers): at the deadline
//       until which the thread sleeps on its word (a futex), or before it sleeps, while it runs what is due. If a timer
//       is set that is due earlier, the thread that sets it changes the word, and then wakes the sleeping thread. So
//       the thread need not be woken for a timer that is due later than one that has been cancelled: it wakes at the
//       deadline of the cancelled one, and looks again.
//       legal: the thread sleeps until a moment at which nothing is due. Cost: it looks once for nothing.
//       illegal: a timer is due before the thread looks, and nobody has changed the word since the thread looked.
//
// No lost wake-up: the thread reads its word under the lock, and in the same critical section tells the queue when it
// looks next. If the word changes before the thread is asleep, the futex does not let the thread sleep. A timer that is
// set while the thread runs what is due is seen by the look that follows (timer_thread-4).
//
// What it costs: a start and a cancel of a wait whose time-out never comes make no system call, except about one in
// each time-out's length. A wait that the thread itself starts, as a coroutine does that the thread has resumed, wakes
// nobody: if its time runs out, it costs the one call in which the thread sleeps.
//
// Locks: no thread takes another lock while it holds a lock of this file. No thread takes a lock of this file while it
// holds a lock of the lot.
//
// Exit and fork: nothing is destroyed, so the threads may keep running while the process exits. The child of a fork has
// no timers and neither of the threads. Timers and threads begin again there.
//
// Several copies of the library in a process: each has threads of its own. A copy that has started a thread can't be
// unloaded.
//
// Memory order: the locks order everything. A thread's word is a futex, and only its value matters: nothing else is
// published through it.
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

class timer_thread final : public timer_service {
public:
    explicit constexpr timer_thread(timer_queue::clock which) noexcept : timers_(which) {}

    void start(void (*body)() noexcept) {
        background_thread::prepare();
        const std::lock_guard guard(lock_);
        thread_.start(body, "tocsin: can't start the thread that serves deadlines");
    }

    void set(timer& one, const deadline& when) noexcept override {
        {
            const std::lock_guard guard(lock_);
            if (!timers_.insert(one, when)) return;
            changed_.fetch_add(1, std::memory_order_relaxed);  // no order: under the lock (timer_thread-4)
        }
        platform::futex::wake_one(&changed_);
    }

    void cancel(timer& one) noexcept override {
        const std::lock_guard guard(lock_);
        timers_.remove(one);
    }

    void run() noexcept {
        for (;;) {
            due_calls due;
            std::uint32_t seen;
            deadline next = deadline::never();
            {
                const std::lock_guard guard(lock_);
                timers_.claim_due(due);
                seen = changed_.load(std::memory_order_relaxed);  // no order: under the lock (timer_thread-4)
                due.empty() ? void(next = timers_.next()) : timers_.will_look();
            }
            if (!due.run(thread_.makers_signals())) (void)platform::futex::wait(changed_, seen, next);
        }
    }

private:
    futex_lock lock_;
    served_timers timers_;
    platform::futex_word changed_{0};
    background_thread thread_;
};

namespace {

struct timer_threads {
    timer_thread steady{timer_queue::clock::steady};
    timer_thread system{timer_queue::clock::system};
};

constinit detail::never_destroyed<timer_threads> threads;

const in_child renews_threads(child_duty::timer_threads, renew<threads>);

bool is_on_system_clock(const deadline& when) noexcept {
    return timer_queue::clock_of(when) == timer_queue::clock::system;
}

timer_thread& thread_for(const deadline& when) noexcept {
    return is_on_system_clock(when) ? threads.it.system : threads.it.steady;
}

}  // namespace

void timer::start(const deadline& when, service* by) {
    if (by != nullptr || when.is_never()) return;
    const auto run_steady = []() noexcept { threads.it.steady.run(); };
    const auto run_system = []() noexcept { threads.it.system.run(); };
    thread_for(when).start(is_on_system_clock(when) ? +run_system : +run_steady);
}

void timer::set(const deadline& when, service* by) noexcept {
    if (when.is_never()) return;
    by_ = by != nullptr ? static_cast<timer_service*>(by) : &thread_for(when);
    by_->set(*this, when);
}

void timer::cancel() noexcept {
    if (timer_service* const by = std::exchange(by_, nullptr)) by->cancel(*this);
}

}  // namespace tocsin::core
