// SPDX-License-Identifier: Apache-2.0
// SignalObjectAndWait(): the thread is queued for one object before it signals the other.
//
// If a wait of tocsin is given a lock, it gives up that lock once the thread is queued for all sources
// (lock_reference.hpp). Conditions use this. Here, giving up the "lock" signals the object. So whatever another thread
// does because of the signal, even a pulse, finds this thread in the queue.
//
// If the timeout is zero, or the caller owns the mutex to wait for, or processes share that mutex, the call signals
// first and then waits. Otherwise,
// if the object to wait for is ready at the start, the wait takes it without queueing. The signal then follows. No
// thread can tell the difference, unless both objects are the same auto-reset event. In that case the wait has taken
// the event, which was set, and this call leaves the signal out. (A signal before the wait would have changed nothing.)
//
// A semaphore may reach its maximum between the check and the signal. Then the wait is stopped. If the wait has been
// given its object all the same, the object goes back.
//
// Checked by: win32/tests/unit/waits_test.cpp, win32/tests.
#include "wait.hpp"

#include <tocsin/detail/lock_reference.hpp>

namespace tocsin::win32 {
namespace {

class signal_then_wait {
public:
    signal_then_wait(object& signal, object& wait_on, bool alertable)
        : signal_(signal),
          wait_on_(wait_on),
          alertable_(alertable),
          self_(thread_of_wait(wait_on.type == kind::mutex || signal.type == kind::mutex, alertable)),
          can_fail_(signal.type == kind::semaphore || is_shared(signal)),
          stop_(can_fail_ ? std::stop_source() : std::stop_source(std::nostopstate)) {}

    // 0, or why the object can't be signaled.
    DWORD error() noexcept {
        if (signal_.type == kind::mutex && !is_owned_by(signal_, self_)) return ERROR_NOT_OWNER;
        const bool is_full =
            (signal_.type == kind::semaphore && static_cast<semaphore_object&>(signal_).permits.is_full()) ||
            (signal_.type == kind::shared_semaphore &&
             static_cast<shared_semaphore_object&>(signal_).is_full());
        if (is_full) return ERROR_TOO_MANY_POSTS;
        return 0;
    }

    DWORD run(DWORD milliseconds) {
        object* const only = &wait_on_;
        any_wait wait{{&only, 1}, self_, alertable_, deadline_after(milliseconds)};
        if (milliseconds == 0 || is_owned_by(wait_on_, self_) || is_shared_mutex(wait_on_)) {
            if (!signal()) return fail_wait(ERROR_TOO_MANY_POSTS);
            return is_owned_by(wait_on_, self_) ? enter_again(wait_on_) : wait.run();
        }
        detail::lock_reference queued{
            this, [](void* me) noexcept { static_cast<signal_then_wait*>(me)->signal_once(); },
            [](void*) noexcept {}, detail::lock_reference::any_lock};
        const std::stop_token token = stop_.get_token();
        const DWORD how = wait.run(&queued, can_fail_ ? &token : nullptr);
        if (!signaled_ && !is_absorbed(how)) signal_once();
        if (!failed_) return how;
        if (how == WAIT_OBJECT_0 || how == WAIT_ABANDONED_0) give_back_begun(wait_on_, self_, how);
        return fail_wait(ERROR_TOO_MANY_POSTS);
    }

private:
    // Whether the wait has taken the very event that it had to set, and that was set already.
    bool is_absorbed(DWORD how) const noexcept {
        return how == WAIT_OBJECT_0 && &signal_ == &wait_on_ && as_asked_for(signal_.type) == kind::event;
    }

    void signal_once() noexcept {
        if (signaled_) return;
        signaled_ = true;
        if (signal()) return;
        failed_ = true;
        stop_.request_stop();
    }

    // False: the semaphore is full, or other processes change the object without end.
    bool signal() noexcept {
        switch (signal_.type) {
            case kind::event: static_cast<event_object&>(signal_).state.set(); return true;
            case kind::mutex: static_cast<mutex_object&>(signal_).release(*self_); return true;
            case kind::shared_event:
                return without_exceptions<bool>(false, [&] {
                    static_cast<shared_event_object&>(signal_).set();
                    return true;
                });
            case kind::shared_semaphore:
                return without_exceptions<bool>(false, [&] {
                    return static_cast<shared_semaphore_object&>(signal_).release(1, nullptr);
                });
            default: break;
        }
        return static_cast<semaphore_object&>(signal_).permits.release(1, nullptr);
    }

    object& signal_;
    object& wait_on_;
    const bool alertable_;
    thread* const self_;
    const bool can_fail_;
    std::stop_source stop_;
    bool signaled_ = false;
    bool failed_ = false;
};

// A wait for a pseudo-handle. Only its timeout or a queued call ends it.
DWORD signal_and_wait_for_never(HANDLE signal, DWORD milliseconds, bool alertable) {
    const HANDLE never = CreateEventA(nullptr, TRUE, FALSE, nullptr);
    if (never == nullptr) return WAIT_FAILED;
    const DWORD how = SignalObjectAndWait(signal, never, milliseconds, alertable ? TRUE : FALSE);
    (void)CloseHandle(never);
    return how;
}

DWORD signal_and_wait(HANDLE signal, HANDLE wait_on, DWORD milliseconds, bool alertable) {
    if (is_pseudo_handle(wait_on)) return signal_and_wait_for_never(signal, milliseconds, alertable);
    const handle_use to_signal(signal);
    const handle_use to_wait_on(wait_on);
    if (!to_signal || !to_wait_on || !is_waited_for(to_wait_on->type)) return fail_wait(ERROR_INVALID_HANDLE);
    switch (to_signal->type) {
        case kind::event:
        case kind::semaphore:
        case kind::shared_event:
        case kind::shared_semaphore:
            if (!to_signal.may(EVENT_MODIFY_STATE)) return fail_wait(ERROR_ACCESS_DENIED);
            break;
        case kind::mutex: break;
        default: return fail_wait(ERROR_INVALID_HANDLE);
    }
    if (!to_wait_on.may(SYNCHRONIZE)) return fail_wait(ERROR_ACCESS_DENIED);
    signal_then_wait both(*to_signal, *to_wait_on, alertable);
    if (const DWORD error = both.error()) return fail_wait(error);
    return both.run(milliseconds);
}

}  // namespace
}  // namespace tocsin::win32

extern "C" DWORD SignalObjectAndWait(HANDLE signal, HANDLE wait_on, DWORD milliseconds, BOOL alertable) {
    return tocsin::win32::caught(
        [&] { return tocsin::win32::signal_and_wait(signal, wait_on, milliseconds, alertable != 0); });
}
