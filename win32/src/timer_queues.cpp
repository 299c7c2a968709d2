// SPDX-License-Identifier: Apache-2.0
// Timer queues: timers that call back in a pool. The timers themselves: timers.cpp. The callbacks: pool.cpp.
//
// State of a queue, under its lock: the list of its timers, each of which keeps the queue, and whether it is deleted. A
// timer is in the list until it is deleted. A timer in the list has a reference, which belongs to its handle.
//
// Invariants
//   timer_queues-1  DeleteTimerQueueTimer() closes the handle, so one such call succeeds. Then it takes the timer off
//       the list, stops it, and takes back the callbacks that have not begun. After that, no callback begins.
//   timer_queues-2  DeleteTimerQueueEx() closes the queue's handle and marks the queue, so that no timer is added any
//       more. Then it deletes the timers one by one. A timer enters the list when its handle is open. In the list, it
//       keeps its handle's slot until it is deleted, so the number of a timer of a deleted queue names no other timer.
//   timer_queues-3  A queue's event is set when the last of its callbacks has ended: the queue counts the timers that
//       have not ended, and `done` is its own from the deletion on.
//   timer_queues-4  Once a timer has been stopped, nothing sets it: both happen under the lock of the timers. A timer
//       is stopped, or was never set, before its last reference is dropped. So it is in no map then.
//
// Checked by: win32/tests/timer_queue_test.cpp, win32/tests/unit/timer_queue_test.cpp, memory_test.cpp.
#include "pool.hpp"
#include "thread.hpp"
#include "timer_queue.hpp"

#include <mutex>
#include <utility>

namespace tocsin::win32 {
namespace {

class queued_timer;

class queue_of_timers final : public object {
public:
    queue_of_timers() noexcept : object(kind::timer_queue) {}

    // For each timer that is made.
    void timer_begun() noexcept {
        const std::lock_guard held(lock_);
        ++left_;
    }
    // Once its handle is open. False: the queue is deleted.
    bool add(queued_timer& timer) noexcept;
    // False: it is not in this queue.
    bool remove(queued_timer& timer) noexcept;
    // Stops the timers, and closes their handles. Afterwards, `done` is set when no callback runs any more.
    void delete_all(handle_use done) noexcept;
    // Called for each timer that is deleted and runs no callback.
    void timer_ended() noexcept;
    // Whether callbacks run.
    bool has_callbacks() noexcept {
        const std::lock_guard held(lock_);
        return left_ != 0;
    }
    void wait_until_over() noexcept { over_.wait(); }

private:
    word_lock<> lock_;  // of what follows
    detail::intrusive_list<queued_timer> timers_;
    bool is_deleted_ = false;
    std::size_t left_ = 0;  // timers whose destructor has not run
    handle_use done_;
    tocsin::manual_reset_event over_;
};

// The queue that NULL stands for.
queue_of_timers& usual_queue() {
    static queue_of_timers& one = *new queue_of_timers;
    return one;
}

class queued_timer final : public pooled, public timed, public detail::list_links<queued_timer> {
public:
    queued_timer(pool& in, queue_of_timers& queue, WAITORTIMERCALLBACK callback, void* context, bool once)
        : pooled(kind::queued_timer, in, TP_CALLBACK_PRIORITY_NORMAL),
          queue_(queue),
          callback_(callback),
          context_(context),
          once_(once) {
        queue_.keep();
        queue_.timer_begun();
    }
    ~queued_timer() override {
        queue_.timer_ended();
        queue_.drop();
    }

    // Times in milliseconds. False: no thread. Does nothing if the timer is deleted.
    bool set(DWORD due, DWORD period) noexcept { return set_if(true, due, period); }
    // A timer that calls once and has expired stays as it is.
    bool change(DWORD due, DWORD period) noexcept { return set_if(false, due, period); }
    void stop() noexcept override {
        {
            const std::lock_guard held(timers().lock);
            stopped_ = true;
            run_out();
        }
        (void)cancel();
    }
    bool is_of(const queue_of_timers& which) const noexcept { return &queue_ == &which; }

    HANDLE its_handle = nullptr;  // written before the timer is in the list
    bool is_listed = false;       // under the queue's lock

private:
    // One critical section, so nothing comes between the question and the setting.
    bool set_if(bool even_if_expired, DWORD due, DWORD period) noexcept {
        wake_list freed;
        bool runs = false;
        {
            const std::lock_guard held(timers().lock);
            if (stopped_) return true;  // timer_queues-4
            if (!even_if_expired && has_expired_ && !is_set()) return true;
            run_out();
            runs = due == INFINITE || start(-ticks{due} * ticks_per_millisecond - (due == 0 ? 1 : 0),
                                            once_ ? 0 : ticks{period} * ticks_per_millisecond, freed);
        }
        freed.wake();
        return runs;
    }
    bool fire(wake_list&) noexcept override {
        has_expired_ = true;
        submit();
        return true;
    }
    void call(callback_instance&) override { callback_(context_, TRUE); }

    queue_of_timers& queue_;
    const WAITORTIMERCALLBACK callback_;
    void* const context_;
    const bool once_;
    bool has_expired_ = false;  // under the lock of the timers
    bool stopped_ = false;      // under the lock of the timers
};

bool queue_of_timers::add(queued_timer& timer) noexcept {
    const std::lock_guard held(lock_);
    if (is_deleted_) return false;
    timers_.append(timer);
    timer.is_listed = true;
    return true;
}

bool queue_of_timers::remove(queued_timer& timer) noexcept {
    const std::lock_guard held(lock_);
    if (!std::exchange(timer.is_listed, false)) return false;
    timers_.remove(timer);
    return true;
}

void queue_of_timers::timer_ended() noexcept {
    handle_use done;
    bool over = false;
    {
        const std::lock_guard held(lock_);
        over = --left_ == 0 && is_deleted_;
        if (over) done.swap(done_);
    }
    if (!over) return;
    if (done) static_cast<event_object&>(*done).state.set();
    over_.set();
}

void queue_of_timers::delete_all(handle_use done) noexcept {
    {
        const std::lock_guard held(lock_);
        is_deleted_ = true;
        done_.swap(done);
        ++left_;  // this call
    }
    for (;;) {
        queued_timer* one = nullptr;
        {
            const std::lock_guard held(lock_);
            one = timers_.take_first();
            if (one == nullptr) break;
            one->is_listed = false;
            one->keep();
        }
        one->stop();
        (void)close_handle(one->its_handle, kind::queued_timer);
        one->drop();
    }
    timer_ended();
}

pool& pool_of_timer(DWORD flags) {
    if ((flags & WT_EXECUTEINTIMERTHREAD) != 0) return pool::timer_thread();
    return (flags & WT_EXECUTEINPERSISTENTTHREAD) != 0 ? pool::persistent() : pool::usual();
}

// Calls act(queue_of_timers&) for the queue that the handle names.
template <class Act>
BOOL with_queue(HANDLE handle, Act act) noexcept {
    return without_exceptions<BOOL>(FALSE, [&]() -> BOOL {
        if (handle == nullptr) return act(usual_queue());
        const handle_use use(handle);
        auto* const found = of_kind<queue_of_timers>(use, kind::timer_queue, 0);
        return found != nullptr ? act(*found) : FALSE;
    });
}

BOOL create_timer_in(queue_of_timers& queue, PHANDLE timer, WAITORTIMERCALLBACK callback, void* context,
                     DWORD due, DWORD period, DWORD flags) {
    if (!timed::start_threads()) return fail(ERROR_NOT_ENOUGH_MEMORY);
    auto* const made = new_pooled<queued_timer>(pool_of_timer(flags), queue, callback, context,
                                                (flags & WT_EXECUTEONLYONCE) != 0);
    if (made == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    made->keep();
    const HANDLE opened = open_handle(made, 0);
    made->its_handle = opened;
    if (opened == nullptr || !queue.add(*made)) {
        if (opened != nullptr) (void)close_handle(opened, kind::queued_timer);
        made->drop();
        return fail(opened == nullptr ? ERROR_NOT_ENOUGH_MEMORY : ERROR_INVALID_HANDLE);
    }
    *timer = opened;  // before the first callback, which may use it
    (void)made->set(due, period);
    made->drop();
    return TRUE;
}

bool runs_callback_of(const queue_of_timers& queue) noexcept {
    const pooled* const here = pooled::running_here();
    return here != nullptr && here->type == kind::queued_timer &&
           static_cast<const queued_timer*>(here)->is_of(queue);
}

// Whether `done` is what a call that deletes accepts. Stores the event in `event`, if it is one.
bool is_completion(HANDLE done, handle_use& event) noexcept {
    if (done == nullptr || done == INVALID_HANDLE_VALUE) return true;
    handle_use use(done);
    if (of_kind<event_object>(use, kind::event, EVENT_MODIFY_STATE) == nullptr) return false;
    event.swap(use);
    return true;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

HANDLE CreateTimerQueue() {
    return made([] { return open_handle(new queue_of_timers, 0); });
}

BOOL CreateTimerQueueTimer(PHANDLE timer, HANDLE queue, WAITORTIMERCALLBACK callback, PVOID context,
                           DWORD due, DWORD period, ULONG flags) {
    if (timer == nullptr || callback == nullptr) return fail(ERROR_INVALID_PARAMETER);
    return with_queue(queue, [&](queue_of_timers& in) {
        return create_timer_in(in, timer, callback, context, due, period, flags);
    });
}

BOOL ChangeTimerQueueTimer(HANDLE queue, HANDLE timer, ULONG due, ULONG period) {
    return with_queue(queue, [&](queue_of_timers& in) -> BOOL {
        const handle_use use(timer);
        auto* const found = of_kind<queued_timer>(use, kind::queued_timer, 0);
        if (found == nullptr) return FALSE;
        if (!found->is_of(in)) return fail(ERROR_INVALID_HANDLE);
        return found->change(due, period) ? TRUE : fail(ERROR_NOT_ENOUGH_MEMORY);
    });
}

BOOL DeleteTimerQueueTimer(HANDLE queue, HANDLE timer, HANDLE done) {
    return with_queue(queue, [&](queue_of_timers& in) -> BOOL {
        const bool blocks = done == INVALID_HANDLE_VALUE;
        const handle_use use(timer);
        auto* const found = of_kind<queued_timer>(use, kind::queued_timer, 0);
        if (found == nullptr) return FALSE;
        if (!found->is_of(in)) return fail(ERROR_INVALID_HANDLE);
        if (blocks && found->runs_here()) return fail(ERROR_POSSIBLE_DEADLOCK);
        handle_use event;
        if (!is_completion(done, event)) return FALSE;
        if (!close_handle(timer, kind::queued_timer)) return fail(ERROR_INVALID_HANDLE);
        (void)in.remove(*found);
        found->stop();
        if (blocks) return found->wait_until_idle(), TRUE;
        return found->tell_when_idle(std::move(event)) ? fail(ERROR_IO_PENDING) : TRUE;
    });
}

BOOL DeleteTimerQueueEx(HANDLE queue, HANDLE done) {
    if (queue == nullptr) return fail(ERROR_INVALID_HANDLE);
    return with_queue(queue, [&](queue_of_timers& which) -> BOOL {
        handle_use event;
        if (!is_completion(done, event)) return FALSE;
        if (done == INVALID_HANDLE_VALUE && runs_callback_of(which)) return fail(ERROR_POSSIBLE_DEADLOCK);
        if (!close_handle(queue, kind::timer_queue)) return fail(ERROR_INVALID_HANDLE);
        which.delete_all(std::move(event));
        if (done == INVALID_HANDLE_VALUE) return which.wait_until_over(), TRUE;
        return which.has_callbacks() ? fail(ERROR_IO_PENDING) : TRUE;
    });
}
BOOL DeleteTimerQueue(HANDLE queue) { return DeleteTimerQueueEx(queue, nullptr); }

}  // extern "C"
