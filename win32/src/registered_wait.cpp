// SPDX-License-Identifier: Apache-2.0
// RegisterWaitForSingleObject(): an operation waits for the object (object_wait.hpp), and the callback runs in a pool
// (pool.cpp). So a registered wait needs no thread of its own while nothing happens.
//
// State of a registered wait, under its lock
//   unregistered  UnregisterWait() has been called.
//   finished      No callback will be called any more, and none runs.
// At any time, the operation waits, or a call is pending or running in the pool, or the wait is finished. (Or a thread
// is on its way from one to the next.) A wait that is waiting, pending or running has a reference to itself.
//
// Invariants
//   registered_wait-1  UnregisterWait() marks the wait and cancels the operation. If that has ended the operation, the
//       wait has taken nothing, no callback will be called, and the wait is finished. If not, the object's signal or
//       the timeout came first: then the callback is pending or runs, as UnregisterWait() says, and the wait is
//       finished after it. So a signal ends in exactly one callback, or stays in the object: nothing is given back.
//   registered_wait-2  After a callback, the thread starts the operation again unless it finds the mark. It looks for
//       the mark once more afterwards, and then cancels the operation. So a mark that is made while the operation
//       starts, which cancel() may not see yet, is seen here. (In between, UnregisterWait() reports a callback that
//       runs, which is true.)
//   registered_wait-3  No lock is held while a callback runs, nor while `done` or `finished` is set.
//
// A wait that the system refuses later than at its registration ends like one that is unregistered: without a callback.
// That happens if a descriptor was closed before its handle, or if no thread could poll it. A wait that has taken a
// mutex ends like this, too, if there is no memory to make the callback's thread the mutex's owner. The mutex is free
// again then.
//
// Checked by: win32/tests/registered_wait_test.cpp, win32/tests/unit/waits_test.cpp, inside_test.cpp,
// memory_test.cpp.
#include "object_wait.hpp"
#include "pool.hpp"
#include "wait.hpp"

#include <mutex>
#include <utility>

namespace tocsin::win32 {
namespace {

class registered_wait final : public pooled {
public:
    registered_wait(pool& in, handle_use of, WAITORTIMERCALLBACK callback, void* context, DWORD milliseconds,
                    bool once)
        : pooled(kind::registered_wait, in, 1),
          object_(std::move(of)),
          callback_(callback),
          context_(context),
          milliseconds_(milliseconds),
          once_(once) {}
    ~registered_wait() override {
        if (wait_ != nullptr) wait_->drop();
    }

    // Before the handle is given out. Throws std::bad_alloc.
    void prepare() {
        wait_ = new object_wait(
            *object_,
            [](void* me, wait_status how) noexcept { static_cast<registered_wait*>(me)->ended(how); }, this);
    }
    bool wait() noexcept {
        keep();
        if (wait_->start(deadline_after(milliseconds_))) return true;
        drop();
        return false;
    }

    // Returns whether a callback has yet to end. If `done` is not null, this event is set when the last callback has
    // ended. Until then, this object keeps the use of that event's handle.
    bool unregister(handle_use done) noexcept {
        {
            const std::lock_guard held(lock_);
            unregistered_ = true;
        }
        const bool ended_here = wait_->cancel();
        bool busy = false;
        {
            const std::lock_guard held(lock_);
            busy = !ended_here && !is_finished_;
            if (busy) done_.swap(done);
        }
        if (done) static_cast<event_object&>(*done).state.set();
        return busy;
    }
    void wait_until_finished() noexcept { finished_.wait(); }

private:
    void ended(wait_status how) noexcept {
        how_ = how;
        if (how == wait_status::stopped) {
            finish();
        } else {
            submit();
        }
        drop();
    }

    void call(callback_instance&) override {
        const bool timed_out = how_ == wait_status::timed_out;
        if (timed_out || begin_taken_here(*object_) != WAIT_FAILED) {
            callback_(context_, timed_out ? TRUE : FALSE);
            if (!once_ && !is_unregistered() && wait()) {
                if (is_unregistered()) (void)wait_->cancel();  // registered_wait-2
                return;
            }
        }
        finish();
    }

    bool is_unregistered() noexcept {
        const std::lock_guard held(lock_);
        return unregistered_;
    }

    void finish() noexcept {
        handle_use done;
        {
            const std::lock_guard held(lock_);
            is_finished_ = true;
            done.swap(done_);
        }
        if (done) static_cast<event_object&>(*done).state.set();
        finished_.set();
    }

    const handle_use object_;
    const WAITORTIMERCALLBACK callback_;
    void* const context_;
    const DWORD milliseconds_;
    const bool once_;
    object_wait* wait_ = nullptr;
    wait_status how_{};  // of the wait that ended last; passed on by submit()
    tocsin::manual_reset_event finished_;
    word_lock<> lock_;  // of what follows
    bool unregistered_ = false;
    bool is_finished_ = false;
    handle_use done_;  // of an event
};

pool& pool_of_wait(DWORD flags) {
    if ((flags & WT_EXECUTEINWAITTHREAD) != 0) return pool::wait_thread();
    return (flags & WT_EXECUTEINPERSISTENTTHREAD) != 0 ? pool::persistent() : pool::usual();
}

BOOL register_wait(PHANDLE wait, HANDLE handle, WAITORTIMERCALLBACK callback, void* context,
                   DWORD milliseconds, DWORD flags) {
    if (wait == nullptr || callback == nullptr) return fail(ERROR_INVALID_PARAMETER);
    handle_use use(handle);
    if (!use || !is_waited_for(use->type)) return fail(ERROR_INVALID_HANDLE);
    if (!use.may(SYNCHRONIZE)) return fail(ERROR_ACCESS_DENIED);
    if (is_shared_mutex(*use)) return fail(ERROR_NOT_SUPPORTED);  // its owner would be another thread
    auto* const made = new_pooled<registered_wait>(pool_of_wait(flags), std::move(use), callback, context,
                                                   milliseconds, (flags & WT_EXECUTEONLYONCE) != 0);
    if (made == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    const bool prepared = without_exceptions<bool>(false, [&] { return made->prepare(), true; });
    made->keep();
    const HANDLE opened = prepared ? open_handle(made, 0) : (made->drop(), nullptr);
    if (opened != nullptr) *wait = opened;                   // before the first callback, which may use it
    const bool started = opened != nullptr && made->wait();  // a failure has set the error
    const DWORD error = GetLastError();
    if (opened != nullptr && !started) (void)close_handle(opened, kind::registered_wait);
    made->drop();
    return started ? TRUE : fail(error);
}

BOOL unregister_wait(HANDLE wait, HANDLE done) noexcept {
    const bool blocks = done == INVALID_HANDLE_VALUE;
    const handle_use use(wait);
    if (!use || use->type != kind::registered_wait) return fail(ERROR_INVALID_HANDLE);
    auto& which = static_cast<registered_wait&>(*use);
    if (blocks && which.runs_here()) return fail(ERROR_POSSIBLE_DEADLOCK);
    handle_use event(blocks ? nullptr : done);
    if (done != nullptr && !blocks &&
        of_kind<event_object>(event, kind::event, EVENT_MODIFY_STATE) == nullptr)
        return FALSE;
    if (!close_handle(wait, kind::registered_wait)) return fail(ERROR_INVALID_HANDLE);
    const bool busy = which.unregister(std::move(event));
    if (blocks && busy) which.wait_until_finished();
    // The wait thread itself knows that nothing else of its own is running.
    const bool in_wait_thread = which.runs_here() && which.is_in(pool::wait_thread());
    return busy && !blocks && !in_wait_thread ? fail(ERROR_IO_PENDING) : TRUE;
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
