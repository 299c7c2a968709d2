// SPDX-License-Identifier: Apache-2.0
// RegisterWaitForSingleObject(): a coroutine waits for the object (include/tocsin/await.hpp), and runs in threads of a
// pool. So a registered wait needs no thread of its own while nothing happens.
//
// State of a registered wait, under its lock
//   busy          A callback will be called or is running. The wait has ended, and its coroutine is queued in the pool
//                 or runs.
//   unregistered  UnregisterWait() has been called.
// The coroutine has a reference to the registered wait, which has the use of the object's handle. `finished` is set
// when the coroutine ends.
//
// Invariants
//   registered_wait-1  The coroutine runs in the pool. start() posts it there the first time. After that, the executor
//       of each wait that suspends it does. (If the pool can't take it, the thread that ended the wait runs it.) The
//       executor marks the registered wait busy, unless it is unregistered.
//   registered_wait-2  UnregisterWait() marks the wait and sets `cancel`, the first source of the coroutine's wait. If
//       the wait is not busy at that moment, no further callback is called. If the coroutine has already taken the
//       object, it gives the object back. If the wait is busy, that one callback is called (unless there is no memory
//       for it, see below), and the coroutine ends after it.
//   registered_wait-3  Nobody holds a lock while a callback runs, nor while `cancel` is set.
//
// A wait that the system refuses ends like one that is unregistered: without a callback. That happens if a descriptor
// was closed before its handle, or if no thread could poll it. A wait that has taken a mutex ends like this, too, if
// there is no memory to make the callback's thread the mutex's owner. The mutex is free again then.
//
// When a coroutine is posted and more coroutines are queued than threads are idle, the pool starts a thread, up to 500
// threads (as on Windows). A thread that was idle for ten seconds ends.
//
// Checked by: tests/win32_unit/waits_test.cpp, memory_test.cpp, tests/win32.
#include "wait.hpp"

#include <tocsin/await.hpp>
#include <tocsin/semaphore.hpp>

#include <chrono>
#include <coroutine>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace tocsin::win32 {
namespace {

class pool {
public:
    // Returns false if there is no thread and none can be started, or if there is no memory.
    bool post(std::coroutine_handle<> next) noexcept {
        return without_exceptions<bool>(false, [&] {
            bool start = false;
            {
                const std::lock_guard held(lock_);
                queue_.push_back(next);
                start = idle_ < queue_.size() && threads_ < most_threads;
                if (start) ++threads_;
                work_.release();  // under the lock: a thread that is about to end looks once more
            }
            if (start && !start_thread()) {
                const std::lock_guard held(lock_);
                if (--threads_ != 0) return true;
                std::erase(queue_, next);  // there is no thread that could have taken it
                (void)work_.try_acquire();
                return false;
            }
            return true;
        });
    }

private:
    static constexpr std::size_t most_threads = 500;

    bool start_thread() noexcept {
        sigset_t all;
        sigset_t old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        pthread_t made;
        const bool started = pthread_create(&made, nullptr, serve, this) == 0;
        if (started) (void)pthread_detach(made);
        pthread_sigmask(SIG_SETMASK, &old, nullptr);
        return started;
    }

    static void* serve(void* self) {
        pool& me = *static_cast<pool*>(self);
        while (const auto next = me.take()) next.resume();
        return nullptr;
    }

    // Null: the thread is to end.
    std::coroutine_handle<> take() noexcept {
        {
            const std::lock_guard held(lock_);
            ++idle_;
        }
        const bool in_time = work_.try_acquire_for(std::chrono::seconds(10));
        const std::lock_guard held(lock_);
        --idle_;
        if (!in_time && !work_.try_acquire()) return --threads_, nullptr;
        const auto next = queue_.front();
        queue_.pop_front();
        return next;
    }

    std::mutex lock_;  // of what follows
    std::deque<std::coroutine_handle<>> queue_;
    std::size_t idle_ = 0;
    std::size_t threads_ = 0;
    tocsin::counting_semaphore<> work_{0};  // a permit for each coroutine in the queue
};

// Never destroyed: its threads may run while the process ends.
pool& the_pool() {
    static pool& one = *new pool;
    return one;
}

class registered_wait;
thread_local constinit const registered_wait* running = nullptr;  // whose callback this thread runs

// A coroutine that frees itself.
struct detached {
    struct promise_type {
        detached get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<> coroutine;
};

class registered_wait final : public object {
public:
    registered_wait(handle_use of, WAITORTIMERCALLBACK callback, void* context, DWORD milliseconds, bool once)
        : object(kind::registered_wait),
          object_(std::move(of)),
          callback_(callback),
          context_(context),
          milliseconds_(milliseconds),
          once_(once) {}

    bool start() {
        pool& threads = the_pool();
        const detached made = run(*this);
        keep();  // for the coroutine
        if (threads.post(made.coroutine)) return true;
        made.coroutine.destroy();
        drop();
        return false;
    }

    // Returns whether a callback has yet to end. If `done` is not null, this event is set when the last callback has
    // ended. Until then, this object keeps the use of that event's handle.
    bool unregister(handle_use done) noexcept {
        bool busy = false;
        {
            const std::lock_guard held(lock_);
            unregistered_ = true;
            busy = busy_;
            if (busy) done_.swap(done);
        }
        if (done) static_cast<event_object&>(*done).state.set();
        cancel_.set();
        return busy;
    }
    void wait_until_finished() noexcept { finished_.wait(); }
    bool is_running_here() const noexcept { return running == this; }

private:
    static detached run(registered_wait& me) {
        for (;;) {
            const auto post = [&me](std::coroutine_handle<> next) noexcept { return me.post_busy(next); };
            any_result how;
#if defined(__cpp_exceptions)
            try {
#endif
                how = co_await async_wait_any({.until = deadline_after(me.milliseconds_)}, me.cancel_,
                                              source_of(*me.object_))
                          .on(post);
#if defined(__cpp_exceptions)
            } catch (...) {  // a descriptor that was closed, or no thread that could poll it
                how.status = wait_status::stopped;
            }
#endif
            if (how.status == wait_status::stopped || how.index == 0) break;
            if (!me.call(how.status == wait_status::timed_out) || me.once_) break;
        }
        me.finish();
    }

    bool post_busy(std::coroutine_handle<> next) noexcept {
        {
            const std::lock_guard held(lock_);
            busy_ = !unregistered_;
        }
        return the_pool().post(next);
    }

    // Returns whether the wait continues.
    bool call(bool timed_out) {
        const bool has_mutex = !timed_out && object_->what == kind::mutex;
        thread* const owner =
            has_mutex ? without_exceptions<thread*>(nullptr, [] { return &current_thread(); }) : nullptr;
        {
            const std::lock_guard held(lock_);
            if ((unregistered_ && !busy_) || (has_mutex && owner == nullptr)) {
                if (!timed_out) give_back(*object_);  // registered_wait-2
                return false;
            }
            busy_ = true;
        }
        if (has_mutex) (void)begin_taken(*object_, owner);
        running = this;
        callback_(context_, timed_out ? TRUE : FALSE);
        running = nullptr;
        const std::lock_guard held(lock_);
        if (!once_) busy_ = false;
        return !unregistered_;
    }

    void finish() noexcept {
        {
            const std::lock_guard held(lock_);
            busy_ = false;
            if (done_) static_cast<event_object&>(*done_).state.set();
        }
        finished_.set();
        drop();
    }

    const handle_use object_;
    const WAITORTIMERCALLBACK callback_;
    void* const context_;
    const DWORD milliseconds_;
    const bool once_;
    tocsin::manual_reset_event cancel_;
    tocsin::manual_reset_event finished_;
    word_lock<> lock_;  // of what follows
    bool busy_ = false;
    bool unregistered_ = false;
    handle_use done_;  // of an event
};

BOOL register_wait(PHANDLE wait, HANDLE handle, WAITORTIMERCALLBACK callback, void* context,
                   DWORD milliseconds, DWORD flags) {
    if (wait == nullptr || callback == nullptr) return fail(ERROR_INVALID_PARAMETER);
    handle_use use(handle);
    if (!use || use->what == kind::registered_wait) return fail(ERROR_INVALID_HANDLE);
    if (!use.may(SYNCHRONIZE)) return fail(ERROR_ACCESS_DENIED);
    auto* const made = new registered_wait(std::move(use), callback, context, milliseconds,
                                           (flags & WT_EXECUTEONLYONCE) != 0);
    made->keep();
    const HANDLE opened = open_handle(made, 0);
    if (opened != nullptr) *wait = opened;  // before the first callback, which may use it
    const bool started = opened != nullptr && without_exceptions<bool>(false, [&] { return made->start(); });
    if (opened != nullptr && !started) (void)close_handle(opened, true);
    made->drop();
    return started ? TRUE : fail(ERROR_NOT_ENOUGH_MEMORY);
}

BOOL unregister_wait(HANDLE wait, HANDLE done) noexcept {
    const bool blocks = done == INVALID_HANDLE_VALUE;
    const handle_use use(wait);
    if (!use || use->what != kind::registered_wait) return fail(ERROR_INVALID_HANDLE);
    auto& which = static_cast<registered_wait&>(*use);
    if (blocks && which.is_running_here()) return fail(ERROR_POSSIBLE_DEADLOCK);
    handle_use event(blocks ? nullptr : done);
    if (done != nullptr && !blocks &&
        of_kind<event_object>(event, kind::event, EVENT_MODIFY_STATE) == nullptr)
        return FALSE;
    if (!close_handle(wait, true)) return fail(ERROR_INVALID_HANDLE);
    const bool busy = which.unregister(std::move(event));
    if (blocks) which.wait_until_finished();
    return busy && !blocks ? fail(ERROR_IO_PENDING) : TRUE;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

BOOL RegisterWaitForSingleObject(PHANDLE wait, HANDLE object, WAITORTIMERCALLBACK callback, PVOID context,
                                 ULONG milliseconds, ULONG flags) {
    return without_exceptions<BOOL>(
        FALSE, [&] { return register_wait(wait, object, callback, context, milliseconds, flags); });
}
BOOL UnregisterWaitEx(HANDLE wait, HANDLE done) { return unregister_wait(wait, done); }
BOOL UnregisterWait(HANDLE wait) { return unregister_wait(wait, nullptr); }

}  // extern "C"
