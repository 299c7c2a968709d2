// State
//   The steady and the system clock can't be translated into each other. For each of them there is a heap of timers,
//   the earliest on top, and a thread that sleeps until that one is due. A timer on a user's clock is in the steady
//   clock's heap at its estimated end; when that comes, its clock is asked again. Each thread starts when it is first
//   needed and lives as long as the process.
//
// Invariants
//   timer_thread-1  A heap is touched under its own lock only.
//   timer_thread-2  A due timer leaves the heap first; it is claimed under the same lock. So after cancel() a timer
//       either has been claimed, and will run, or never will be.
//   timer_thread-3  Timers run under no lock. All that are due run before any coroutine resumes
//       (core/lot/resume_queue.hpp).
//   timer_thread-4  A thread sleeps on what it saw under the lock: whoever sets a timer that becomes the earliest
//       changes the thread's word, then wakes the thread. (After a cancel() the thread may wake for nothing, and looks
//       again.)
//
// No lost wake-up: the thread reads its word under the lock, together with the earliest timer. If the word changes
// before the thread has fallen asleep, the futex does not let it sleep (timer_thread-4).
//
// Locks: no other lock is taken under those of this file. None of them is taken under a lock of the lot.
//
// Exit and fork: nothing is destroyed, so the threads may keep running while the process exits. The child of a fork has
// no timers and neither thread; both begin anew there.
//
// Several copies of the library in a process each have their own threads. A copy that has started one can't be
// unloaded.
//
// Memory order: the locks order everything. The word of a thread is a futex; only its value counts.
//
// Checked by: tests/model/timer_model_test.cpp (P13), tests/unit/await_test.cpp, tests/stress/await_stress_test.cpp.
#include "core/async/timer_thread.hpp"

#include "core/async/background.hpp"
#include "core/sync/futex_lock.hpp"
#include "platform/futex/futex.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <utility>

namespace tocsin::core {

// A pairing heap.
class timer_heap {
public:
    timer* earliest() const noexcept { return root_; }

    void insert(timer& one) noexcept {
        one.child_ = one.next_ = one.previous_ = nullptr;
        root_ = meld(root_, &one);
    }

    void remove(timer& one) noexcept {
        timer* const below = meld_all(std::exchange(one.child_, nullptr));
        if (&one == root_) {
            root_ = below;
            return;
        }
        (one.previous_->child_ == &one ? one.previous_->child_ : one.previous_->next_) = one.next_;
        if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
        root_ = meld(root_, below);
    }

private:
    static timer* meld(timer* a, timer* b) noexcept {
        if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
        if (b->due_ < a->due_) std::swap(a, b);
        b->next_ = a->child_;
        if (b->next_ != nullptr) b->next_->previous_ = b;
        b->previous_ = a;
        a->child_ = b;
        return a;
    }

    // Melds siblings: in pairs from the left, then the pairs from the right.
    static timer* meld_all(timer* first) noexcept {
        timer* pairs = nullptr;
        while (first != nullptr) {
            timer* const second = std::exchange(first->next_, nullptr);
            timer* const remaining = second != nullptr ? std::exchange(second->next_, nullptr) : nullptr;
            timer* const pair = meld(first, second);
            pair->next_ = std::exchange(pairs, pair);
            first = remaining;
        }
        timer* all = nullptr;
        while (pairs != nullptr) {
            timer* const next = std::exchange(pairs->next_, nullptr);
            all = meld(all, pairs);
            pairs = next;
        }
        if (all != nullptr) all->previous_ = nullptr;
        return all;
    }

    timer* root_ = nullptr;
};

class timer_thread {
public:
    void start(void (*body)() noexcept) {
        const std::lock_guard guard(lock_);
        thread_.start(body);
    }

    void set(timer& one) noexcept {
        {
            const std::lock_guard guard(lock_);
            insert(one);
            if (heap_.earliest() != &one) return;
            changed_.fetch_add(1, std::memory_order_relaxed);  // no order: the lock's (timer_thread-4)
        }
        platform::futex::wake_one(&changed_);
    }

    void cancel(timer& one) noexcept {
        const std::lock_guard guard(lock_);
        if (std::exchange(one.is_set_, false)) heap_.remove(one);
    }

    void run(bool steady) noexcept {
        for (;;) {
            completions due;
            std::uint32_t seen;
            deadline next = deadline::never();
            {
                const std::lock_guard guard(lock_);
                take_due(due);
                seen = changed_.load(std::memory_order_relaxed);  // no order: the lock's (timer_thread-4)
                if (const timer* const earliest = heap_.earliest()) next = at(earliest->due_, steady);
            }
            if (!due.run()) (void)platform::futex::wait(changed_, seen, next);
        }
    }

private:
    static deadline at(std::int64_t nanoseconds, bool steady) noexcept {
        const std::chrono::nanoseconds since(nanoseconds);
        using std::chrono::steady_clock;
        using std::chrono::system_clock;
        using in_nanoseconds = std::chrono::time_point<system_clock, std::chrono::nanoseconds>;
        return steady ? deadline(steady_clock::time_point(since)) : deadline(in_nanoseconds(since));
    }

    static std::int64_t nanoseconds_of(const deadline& when) noexcept {
        using clock = deadline::clock;
        if (when.which() == clock::steady || when.which() == clock::system) return when.nanoseconds();
        const std::int64_t now =
            std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
        return now + std::min(when.remaining(), std::numeric_limits<std::int64_t>::max() - now);
    }

    void insert(timer& one) noexcept {
        one.due_ = nanoseconds_of(one.when_);
        one.is_set_ = true;
        heap_.insert(one);
    }

    void take_due(completions& due) noexcept {
        while (timer* const earliest = heap_.earliest()) {
            const bool estimated = earliest->when_.which() == deadline::clock::other;
            if (!(estimated ? at(earliest->due_, true) : earliest->when_).has_passed()) return;
            heap_.remove(*earliest);
            earliest->is_set_ = false;
            const bool has_passed = earliest->when_.has_passed();
            if (has_passed) due.claim(*earliest);
            // It exists even if claim() has refused: cancel() takes the lock.
            if (!has_passed || std::exchange(earliest->is_postponed_, false)) insert(*earliest);
        }
    }

    futex_lock lock_;
    timer_heap heap_;
    platform::futex_word changed_{0};
    background_thread thread_;
};

namespace {

struct timer_threads {
    timer_thread steady;
    timer_thread system;
};

constinit never_destroyed<timer_threads> threads;

const renewed_in_child<threads> threads_renewed;

timer_thread& thread_of(bool system) noexcept { return system ? threads.it.system : threads.it.steady; }

}  // namespace

void timer::start(const deadline& when) {
    if (when.is_never()) return;
    const auto run_steady = []() noexcept { threads.it.steady.run(true); };
    const auto run_system = []() noexcept { threads.it.system.run(false); };
    const bool system = when.which() == deadline::clock::system;
    thread_of(system).start(system ? +run_system : +run_steady);
}

void timer::set(const deadline& when) noexcept {
    if (when.is_never()) return;
    when_ = when;
    has_thread_ = true;
    is_on_system_clock_ = when.which() == deadline::clock::system;
    thread_of(is_on_system_clock_).set(*this);
}

void timer::cancel() noexcept {
    if (has_thread_) thread_of(is_on_system_clock_).cancel(*this);
}

}  // namespace tocsin::core
