// SPDX-License-Identifier: Apache-2.0
// Pools of threads.
//
// State of a pool, under its lock: queues of tasks, one for each priority; how many threads it has, and how many of
// them look for work; how many users it has (objects that may post). The semaphore `work_` has a permit for each task
// that no thread has been given, and now and then one more.
//
// Invariants
//   pool-1  A task that is posted is in a queue, and a permit has been released for it, in one step under the lock. A
//       thread that gets a permit and finds no task looks for work again. So while a task is queued, a permit is free,
//       or a thread that has one is about to look into the queues.
//   pool-2  While a pool has users, it has a thread: join() starts the first, and a thread ends only if another is
//       left, or if the pool is over. So a post always finds a thread, and never fails. When a task is posted and
//       more tasks are queued than threads look for work, a further thread is started, up to the greatest number.
//   pool-3  A thread that is idle for ten seconds ends, unless it is one of the least number of threads (the last
//       thread always is), or the pool keeps its threads. The threads that are not to end sleep without a deadline. A
//       pool of CreateThreadpool() is over once it has been closed and has no users. Then permits wake its threads, and
//       they end.
//
// State of a pooled object, under its lock: `pending`, `running`, and whether it is queued in the pool.
//   pool-4  It is in the pool's queue once at most, whatever `pending` is, and has a reference while it is there. A
//       thread that takes it takes one pending call, and posts the object again before the call if more are pending.
//       So calls that are pending run at the same time in several threads, and nothing is allocated.
//   pool-5  `idle_` is set exactly while nothing is pending and nothing runs. It changes under the lock. A call that is
//       on its way, but not pending yet, may count as running (thread_pool.cpp).
//   pool-6  No lock is held during a call.
//
// The threads of pools block all signals. They are scheduled as the program's first thread was when the library was
// loaded, whichever thread posted the task for which they were started (include/tocsin/detail/library_thread.hpp).
//
// Checked by: win32/tests/registered_wait_test.cpp, thread_pool_test.cpp, timer_queue_test.cpp,
// win32/tests/unit/memory_test.cpp, background_threads_test.cpp.
#include "pool.hpp"

#include "thread.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/library_thread.hpp>

#include <algorithm>
#include <chrono>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace tocsin::win32 {
namespace {

thread_local constinit const pooled* running = nullptr;  // whose callback this thread runs

}  // namespace

pool& pool::of_the_process(std::size_t max, bool keeps_threads) {
    pool& made = *new pool(max, keeps_threads);
    made.is_of_the_process_ = true;
    return made;
}
pool& pool::usual() {
    static pool& one = of_the_process(usual_max, false);
    return one;
}
pool& pool::wait_thread() {
    static pool& one = of_the_process(1, false);
    return one;
}
pool& pool::timer_thread() {
    static pool& one = of_the_process(1, false);
    return one;
}
pool& pool::persistent() {
    static pool& one = of_the_process(usual_max, true);
    return one;
}

bool pool::join() noexcept {
    {
        const std::lock_guard held(lock_);
        ++users_;
        if (threads_ != 0) return true;
        ++threads_;
    }
    if (start_thread()) return true;
    const std::lock_guard held(lock_);
    --threads_;
    if (threads_ != 0) return true;  // another thread has been started meanwhile
    --users_;
    return false;
}

void pool::leave() noexcept {
    const std::lock_guard held(lock_);
    --users_;
    if (is_over()) work_.release(static_cast<std::ptrdiff_t>(idle_));  // pool-3
}

void pool::post(pool_task& task, unsigned priority) noexcept {
    {
        const std::lock_guard held(lock_);
        queues_[priority].append(task);
        ++queued_;
        work_.release();  // pool-1
        if (idle_ >= queued_ || threads_ >= max_) return;
        ++threads_;
    }
    if (start_thread()) return;
    const std::lock_guard held(lock_);
    --threads_;  // pool-2: there is another
}

void pool::set_max(std::size_t threads) noexcept {
    const std::lock_guard held(lock_);
    max_ = std::max<std::size_t>(threads, 1);
    least_ = std::min(least_, max_);
    if (threads_ > max_) work_.release(static_cast<std::ptrdiff_t>(idle_));
}

bool pool::set_least(std::size_t threads) noexcept {
    for (;;) {
        {
            const std::lock_guard held(lock_);
            least_ = threads;
            max_ = std::max(max_, least_);
            if (threads_ >= least_) return true;
            ++threads_;
        }
        if (start_thread()) continue;
        const std::lock_guard held(lock_);
        --threads_;
        least_ = threads_;
        return false;
    }
}

void pool::set_stack_size(std::size_t bytes) noexcept {
    const std::lock_guard held(lock_);
    stack_size_ = bytes;
}
std::size_t pool::stack_size() noexcept {
    const std::lock_guard held(lock_);
    return stack_size_;
}

bool pool::has_room() noexcept {
    const std::lock_guard held(lock_);
    return threads_ < max_ || idle_ > queued_;
}

bool pool::start_thread() noexcept {
    keep();
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_attr_t how;
    (void)pthread_attr_init(&how);
    if (const std::size_t bytes = stack_size(); bytes != 0) set_thread_stack(how, bytes, true);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t made;
    const bool started = pthread_create(&made, &how, serve, this) == 0;
    if (started) {
        detail::schedule_library_thread(&made);
        (void)pthread_detach(made);
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    (void)pthread_attr_destroy(&how);
    if (!started) drop();
    return started;
}

void* pool::serve(void* self) {
    detail::schedule_this_library_thread();
    pool& me = *static_cast<pool*>(self);
    while (pool_task* const task = me.take()) task->run();
    me.drop();
    return nullptr;
}

pool_task* pool::next() noexcept {
    for (auto& queue : queues_) {
        if (pool_task* const first = queue.take_first()) {
            --queued_;
            return first;
        }
    }
    return nullptr;
}

// Null: the thread is to end.
pool_task* pool::take() noexcept {
    for (;;) {
        deadline until = deadline::never();
        {
            const std::lock_guard held(lock_);
            if (is_over() && queued_ == 0) return --threads_, nullptr;
            ++idle_;
            if (threads_ > least() && !keeps_threads_) until = std::chrono::seconds(10);
        }
        const bool in_time = work_.try_acquire_until(until);
        const std::lock_guard held(lock_);
        --idle_;
        if (pool_task* const task = next()) {
            if (!in_time) (void)work_.try_acquire();  // pool-1: its permit, or another thread has that
            return task;
        }
        if (is_over() || threads_ > max_ || (!in_time && threads_ > least())) return --threads_, nullptr;
    }
}

void pooled::submit() noexcept {
    {
        const std::lock_guard held(lock_);
        ++pending_;
        idle_.reset();
        if (queued_) return;
        queued_ = true;
    }
    keep();  // pool-4
    in_.post(*this, priority_);
}

void pooled::be_idle(wake_list& freed, handle_use& done) noexcept {
    idle_.set(freed);
    done.swap(done_);
}
void pooled::tell(wake_list& freed, const handle_use& done) noexcept {
    freed.wake();
    if (done) static_cast<event_object&>(*done).state.set();
}

std::size_t pooled::cancel() noexcept {
    wake_list freed;
    handle_use done;
    std::size_t pending = 0;
    {
        const std::lock_guard held(lock_);
        pending = pending_;
        pending_ = 0;
        if (running_ == 0) be_idle(freed, done);
    }
    tell(freed, done);
    return pending;
}

void pooled::begin_running() noexcept {
    const std::lock_guard held(lock_);
    ++running_;
    idle_.reset();
}

void pooled::end_running() noexcept {
    wake_list freed;
    handle_use done;
    {
        const std::lock_guard held(lock_);
        if (--running_ == 0 && pending_ == 0) be_idle(freed, done);
    }
    tell(freed, done);
}

bool pooled::tell_when_idle(handle_use done) noexcept {
    bool busy = false;
    {
        const std::lock_guard held(lock_);
        busy = pending_ != 0 || running_ != 0;
        if (busy) done_.swap(done);
    }
    if (!busy && done) static_cast<event_object&>(*done).state.set();
    return busy;
}

const pooled* pooled::running_here() noexcept { return running; }

// Takes one pending call. False: none is left, because they were taken back.
bool pooled::begin() noexcept {
    bool more = false;
    {
        const std::lock_guard held(lock_);
        const bool any = pending_ != 0;
        if (any) {
            --pending_;
            ++running_;
        }
        more = queued_ = pending_ != 0;
        if (!any) return false;
    }
    if (more) {
        keep();
        in_.post(*this, priority_);  // pool-4
    }
    return true;
}

void pooled::run() {
    if (begin()) {
        callback_instance here(*this);
        running = this;
        call(here);
        running = nullptr;
        here.at_end();
        if (here.counts) end_running();
    }
    drop();
}

void callback_instance::at_end() noexcept {
    if (section != nullptr) LeaveCriticalSection(section);
    if (mutex != nullptr) (void)ReleaseMutex(mutex);
    if (semaphore != nullptr) (void)ReleaseSemaphore(semaphore, static_cast<LONG>(permits), nullptr);
    if (event != nullptr) (void)SetEvent(event);
}

}  // namespace tocsin::win32
