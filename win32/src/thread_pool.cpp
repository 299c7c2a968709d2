// SPDX-License-Identifier: Apache-2.0
// The objects of Windows' thread pool: work, timers, waits, callbacks that run once, cleanup groups, and environments.
// The pools and what counts callbacks: pool.cpp.
//
// State: an object has a reference of the program, until the program closes it, or closes the members of its cleanup
// group. Pending and running callbacks have references, too (pool-4), so an object that is closed meanwhile lives until
// they have ended. A cleanup group has a list of its members, under its lock. Each member keeps the group.
//
// Invariants
//   thread_pool-1  Whoever takes a member off its group's list drops the program's reference: the call that closes the
//       object, the group's, or the thread that has run a callback that runs once. So it is dropped once.
//   thread_pool-2  A wait of CreateThreadpoolWait() has one current arming at most, under its lock. An arming waits by
//       an operation (object_wait.hpp). When the operation ends by the object or the timeout, the arming moves to the
//       list of those that ended, in the order in which they ended, and one call is submitted for it. A call takes the
//       first of that list. If SetThreadpoolWait() has ended the operation, the arming has taken nothing.
//   thread_pool-3  A call that is taken back takes its arming off the list, and what this had taken goes back to the
//       object.
//   thread_pool-4  An arming that stops being the current one is leaving, in the same step under the lock. An object
//       with leaving armings is not idle: each counts as a running call. Whoever makes an arming no longer leaving ends
//       that count: the thread that has submitted its call, the one whose cancel() has ended its operation, or the one
//       that takes it back. So after SetThreadpoolWait(), no call comes that WaitForThreadpoolWaitCallbacks() does not
//       see, even if another thread has claimed the operation and has not submitted the call yet.
//   thread_pool-5  An arming that is taken back while it is leaving is on no list. When its operation's function is
//       called, what the arming had taken goes back to the object. So neither SetThreadpoolWait() nor taking back waits
//       for another thread. An executor of an operation may call both, even if its thread is about to end this wait's
//       operation, too. There, WaitForThreadpoolWaitCallbacks() without taking back would wait for its own thread.
//   thread_pool-6  Once an object has been stopped, nothing sets it. So a timer is in no map when its last reference is
//       dropped, and a callback that sets its own object after the program has closed it has no effect.
//   thread_pool-7  A callback that runs once counts as running from before it is in its group until it is submitted,
//       and has a reference until then. So a group that is closed meanwhile waits for it.
//
// Checked by: win32/tests/thread_pool_test.cpp, win32/tests/unit/pool_ends_test.cpp, memory_test.cpp.
#include "object_wait.hpp"
#include "pool.hpp"
#include "thread.hpp"
#include "timer_queue.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace tocsin::win32 {
namespace {

class member;

class cleanup_group : public counted<cleanup_group> {
public:
    void add(member& one) noexcept;
    // False: another call has taken it off the list (thread_pool-1).
    bool remove(member& one) noexcept;
    void close_members(bool cancel, void* cleanup_context) noexcept;

private:
    word_lock<> lock_;
    detail::intrusive_list<member> members_;
};

unsigned priority_of(const TP_CALLBACK_ENVIRON* environment) noexcept {
    if (environment == nullptr || environment->Version < 3) return TP_CALLBACK_PRIORITY_NORMAL;
    return std::min<unsigned>(environment->CallbackPriority, TP_CALLBACK_PRIORITY_LOW);
}

pool& pool_of(const TP_CALLBACK_ENVIRON* environment) {
    if (environment != nullptr && environment->Pool != nullptr)
        return *reinterpret_cast<pool*>(environment->Pool);
    return environment != nullptr && (environment->Flags & 2) != 0 ? pool::persistent() : pool::usual();
}

// An object of the thread pool, perhaps in a cleanup group.
class member : public pooled, public detail::list_links<member> {
public:
    // Once it is made.
    void join_group() noexcept {
        if (group_ != nullptr) group_->add(*this);
    }
    // For the program, which closes its object.
    void close() noexcept {
        stop();
        if (leave_group()) drop();
    }
    // Takes back the calls that have not begun.
    virtual bool cancel_calls() noexcept { return cancel() != 0; }
    void wait_for_calls(bool cancel_first) noexcept {
        if (cancel_first) (void)cancel_calls();
        wait_until_idle();
    }
    void call_canceled(void* cleanup_context) noexcept {
        if (canceled_ != nullptr) canceled_(context_, cleanup_context);
    }

protected:
    member(pool& in, void* context, const TP_CALLBACK_ENVIRON* environment) noexcept
        : pooled(kind::pooled, in, priority_of(environment)), context_(context) {
        if (environment == nullptr || environment->CleanupGroup == nullptr) return;
        group_ = reinterpret_cast<cleanup_group*>(environment->CleanupGroup);
        canceled_ = environment->CleanupGroupCancelCallback;
        group_->keep();
    }
    ~member() override {
        if (group_ != nullptr) group_->drop();
    }
    void* context() const noexcept { return context_; }
    bool leave_group() noexcept { return group_ == nullptr || group_->remove(*this); }

private:
    friend class cleanup_group;

    void* const context_;
    cleanup_group* group_ = nullptr;
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK canceled_ = nullptr;
    bool is_listed_ = false;  // under the group's lock
};

void cleanup_group::add(member& one) noexcept {
    const std::lock_guard held(lock_);
    members_.append(one);
    one.is_listed_ = true;
}

bool cleanup_group::remove(member& one) noexcept {
    const std::lock_guard held(lock_);
    if (!std::exchange(one.is_listed_, false)) return false;
    members_.remove(one);
    return true;
}

void cleanup_group::close_members(bool cancel, void* cleanup_context) noexcept {
    detail::intrusive_list<member> mine;
    {
        const std::lock_guard held(lock_);
        while (member* const one = members_.take_first()) {
            one->is_listed_ = false;
            mine.append(*one);
        }
    }
    // Nothing may begin while this thread waits for what runs, so these are two passes.
    for (member* one = mine.first(); one != nullptr; one = mine.next(*one)) {
        one->stop();
        if (cancel && one->cancel_calls()) one->call_canceled(cleanup_context);
    }
    while (member* const one = mine.take_first()) {
        one->wait_until_idle();
        one->drop();
    }
}

class simple_work final : public member {
public:
    simple_work(pool& in, PTP_SIMPLE_CALLBACK callback, void* context,
                const TP_CALLBACK_ENVIRON* environment) noexcept
        : member(in, context, environment), callback_(callback) {}

private:
    void call(callback_instance& here) override {
        callback_(here.opaque(), context());
        if (leave_group()) drop();  // thread_pool-1
    }

    const PTP_SIMPLE_CALLBACK callback_;
};

class user_work final : public pooled {
public:
    user_work(pool& in, LPTHREAD_START_ROUTINE function, void* context) noexcept
        : pooled(kind::pooled, in, TP_CALLBACK_PRIORITY_NORMAL), function_(function), context_(context) {}

private:
    void call(callback_instance&) override {
        (void)function_(context_);
        drop();
    }

    const LPTHREAD_START_ROUTINE function_;
    void* const context_;
};

class work final : public member {
public:
    work(pool& in, PTP_WORK_CALLBACK callback, void* context, const TP_CALLBACK_ENVIRON* environment) noexcept
        : member(in, context, environment), callback_(callback) {}

private:
    void call(callback_instance& here) override {
        callback_(here.opaque(), context(), reinterpret_cast<PTP_WORK>(this));
    }

    const PTP_WORK_CALLBACK callback_;
};

class pool_timer final : public member, public timed {
public:
    pool_timer(pool& in, PTP_TIMER_CALLBACK callback, void* context, const TP_CALLBACK_ENVIRON* environment)
        : member(in, context, environment), callback_(callback) {}

    // Returns whether the timer was set before.
    bool set(const FILETIME* due, DWORD period) noexcept {
        wake_list freed;
        bool before = false;
        {
            const std::lock_guard held(timers().lock);
            if (stopped_) return false;  // thread_pool-6
            before = is_set();
            run_out();
            if (due != nullptr) (void)start(ticks_of(*due), ticks{period} * ticks_per_millisecond, freed);
        }
        freed.wake();
        return before;
    }
    bool is_set_now() noexcept {
        const std::lock_guard held(timers().lock);
        return is_set();
    }
    void stop() noexcept override {
        const std::lock_guard held(timers().lock);
        stopped_ = true;
        run_out();
    }

private:
    bool fire(wake_list&) noexcept override { return submit(), true; }
    void call(callback_instance& here) override {
        callback_(here.opaque(), context(), reinterpret_cast<PTP_TIMER>(this));
    }

    const PTP_TIMER_CALLBACK callback_;
    bool stopped_ = false;  // under the lock of the timers
};

class pool_wait;

// One SetThreadpoolWait(): thread_pool-2. Its operation has a reference, and then the list of those that ended.
class arming final : public counted<arming>, public detail::list_links<arming> {
public:
    // Throws std::bad_alloc.
    arming(pool_wait& whose, handle_use waited_for) : owner(whose), object(std::move(waited_for)) {
        wait = new object_wait(*object, ended, this);
    }
    arming(const arming&) = delete;
    arming& operator=(const arming&) = delete;
    ~arming() { wait->drop(); }

    static void ended(void* self, wait_status how) noexcept;

    pool_wait& owner;
    const handle_use object;
    object_wait* wait = nullptr;
    wait_status how{};
    bool is_leaving = false;  // under the owner's lock
};

class pool_wait final : public member {
public:
    pool_wait(pool& in, PTP_WAIT_CALLBACK callback, void* context,
              const TP_CALLBACK_ENVIRON* environment) noexcept
        : member(in, context, environment), callback_(callback) {}
    ~pool_wait() override {
        while (arming* const left = ended_.take_first()) left->drop();
    }

    // Ends the current wait. Returns whether it has: false if there is none, or if something else has ended it.
    bool end() noexcept {
        arming* which = nullptr;
        {
            const std::lock_guard held(lock_);
            which = leave();
        }
        return which != nullptr && end_and_drop(*which);
    }
    // Throws std::bad_alloc. False: the system refuses, and the error says why.
    bool wait_for(handle_use use, const deadline& until) {
        auto* const made = new arming(*this, std::move(use));
        made->keep();  // for this call; the other reference is the operation's
        arming* before = nullptr;
        bool refused = false;
        {
            const std::lock_guard held(lock_);
            refused = stopped_;  // thread_pool-6
            if (!refused) {
                before = leave();  // another thread's, since end()
                armed_ = made;
            }
        }
        if (refused) return drop_both(*made), true;
        if (before != nullptr) (void)end_and_drop(*before);
        keep();  // for the operation
        const bool started = made->wait->start(until);
        if (started) {
            // Another thread may have ended this wait while it started, which its cancel() may not have seen.
            if (is_armed(made)) return made->drop(), true;
            (void)end_and_drop(*made);
            return true;
        }
        bool has_left = false;
        {
            const std::lock_guard held(lock_);
            if (armed_ == made) armed_ = nullptr;
            has_left = no_longer_leaving(*made);
        }
        if (has_left) end_running();
        drop_both(*made);
        drop();
        return false;
    }
    void ended(arming& which) noexcept {
        const bool calls = which.how != wait_status::stopped;
        bool has_left = false;
        {
            const std::lock_guard held(lock_);
            if (armed_ == &which) leave()->drop();  // the operation's reference stays
            has_left = no_longer_leaving(which);
            if (has_left && calls) ended_.append(which);
        }
        if (has_left && calls) {
            submit();
        } else {
            if (which.how == wait_status::signaled) give_back(*which.object);  // thread_pool-5
            which.drop();
        }
        if (has_left) end_running();
        drop();
    }

    void stop() noexcept override {
        {
            const std::lock_guard held(lock_);
            stopped_ = true;
        }
        (void)end();
    }
    bool cancel_calls() noexcept override {
        std::size_t leaving = 0;
        {
            const std::lock_guard held(lock_);
            for (; arming* const which = leaving_.take_first(); ++leaving) which->is_leaving = false;
        }
        for (std::size_t i = 0; i != leaving; ++i) end_running();
        const std::size_t taken_back = cancel();
        for (std::size_t i = 0; i != taken_back; ++i) {
            arming* const which = take_ended();
            if (which == nullptr) break;
            if (which->how == wait_status::signaled) give_back(*which->object);
            which->drop();
        }
        return leaving + taken_back != 0;
    }

private:
    // Under the lock. Makes the current arming a leaving one, and returns it with a reference. Null: there is none.
    arming* leave() noexcept {
        arming* const which = std::exchange(armed_, nullptr);
        if (which == nullptr) return nullptr;
        which->keep();
        which->is_leaving = true;
        leaving_.append(*which);
        begin_running();  // thread_pool-4
        return which;
    }
    // Under the lock. True: the caller then calls end_running().
    bool no_longer_leaving(arming& which) noexcept {
        if (!std::exchange(which.is_leaving, false)) return false;
        leaving_.remove(which);
        return true;
    }
    // Of an arming that is not the current one. Returns whether this call has ended its operation.
    bool end_and_drop(arming& which) noexcept {
        const bool ended_here = which.wait->cancel();
        bool has_left = false;
        if (ended_here) {
            const std::lock_guard held(lock_);
            has_left = no_longer_leaving(which);
        }
        if (has_left) end_running();
        which.drop();
        return ended_here;
    }
    // Of an arming whose operation has not started: the operation's reference, and the caller's.
    static void drop_both(arming& which) noexcept {
        which.drop();
        which.drop();
    }
    bool is_armed(const arming* which) noexcept {
        const std::lock_guard held(lock_);
        return armed_ == which;
    }
    arming* take_ended() noexcept {
        const std::lock_guard held(lock_);
        return ended_.take_first();
    }

    void call(callback_instance& here) override {
        arming* const which = take_ended();
        const TP_WAIT_RESULT result =
            which->how == wait_status::signaled ? begin_taken_here(*which->object) : WAIT_TIMEOUT;
        which->drop();
        if (result == WAIT_FAILED) return;
        callback_(here.opaque(), context(), reinterpret_cast<PTP_WAIT>(this), result);
    }

    const PTP_WAIT_CALLBACK callback_;
    word_lock<> lock_;  // of what follows
    bool stopped_ = false;
    arming* armed_ = nullptr;
    detail::intrusive_list<arming> leaving_;
    detail::intrusive_list<arming> ended_;
};

void arming::ended(void* self, wait_status how) noexcept {
    auto& me = *static_cast<arming*>(self);
    me.how = how;
    me.owner.ended(me);
}

bool set_wait(pool_wait& wait, HANDLE object, const FILETIME* timeout) noexcept {
    const bool before = wait.end();
    if (object == nullptr) return before;
    handle_use use(object);
    if (!use || !is_waited_for(use->type)) {
        (void)fail(ERROR_INVALID_HANDLE);
    } else if (!use.may(SYNCHRONIZE)) {
        (void)fail(ERROR_ACCESS_DENIED);
    } else if (is_shared_mutex(*use)) {
        (void)fail(ERROR_NOT_SUPPORTED);  // its owner would be another thread
    } else {
        deadline until = deadline::never();
        if (timeout != nullptr) {
            const ticks when = ticks_of(*timeout);
            const timer_queue& clock = when < 0 ? timers().relative : timers().absolute;
            const ticks now = clock.now();
            until = when >= 0 ? clock.at(when - ticks_to_1970)
                              : clock.at(when < now - INT64_MAX ? INT64_MAX : now - when);
        }
        (void)without_exceptions<bool>(false, [&] { return wait.wait_for(std::move(use), until); });
    }
    return before;
}

// Makes an object, which is in no group yet. Null: it can't, and the error says why.
template <class Object, class Callback>
Object* new_object(Callback callback, void* context, const TP_CALLBACK_ENVIRON* environment) noexcept {
    if (callback == nullptr) return fail(ERROR_INVALID_PARAMETER), nullptr;
    Object* const made = without_exceptions<Object*>(
        nullptr, [&] { return new_pooled<Object>(pool_of(environment), callback, context, environment); });
    if (made == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY), nullptr;
    return made;
}

// Makes an object, as the program gets it.
template <class Object, class Opaque, class Callback>
Opaque* make_object(Callback callback, void* context, const TP_CALLBACK_ENVIRON* environment) noexcept {
    Object* const made = new_object<Object>(callback, context, environment);
    if (made != nullptr) made->join_group();
    return reinterpret_cast<Opaque*>(made);
}

template <class Object, class Opaque>
Object& object_of(Opaque* from) noexcept {
    return *reinterpret_cast<Object*>(from);
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

BOOL QueueUserWorkItem(LPTHREAD_START_ROUTINE function, PVOID context, ULONG flags) {
    if (function == nullptr) return fail(ERROR_INVALID_PARAMETER);
    user_work* const made = without_exceptions<user_work*>(nullptr, [&] {
        pool& in = (flags & WT_EXECUTEINPERSISTENTTHREAD) != 0 ? pool::persistent() : pool::usual();
        return new_pooled<user_work>(in, function, context);
    });
    if (made == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    made->submit();
    return TRUE;
}

PTP_POOL CreateThreadpool(PVOID) {
    pool* const made = without_exceptions<pool*>(nullptr, [] { return new pool(pool::usual_max, false); });
    if (made == nullptr) return nullptr;
    if (made->join()) return reinterpret_cast<PTP_POOL>(made);
    made->drop();
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return nullptr;
}
VOID CloseThreadpool(PTP_POOL which) {
    pool& it = object_of<pool>(which);
    it.leave();
    it.drop();
}
VOID SetThreadpoolThreadMaximum(PTP_POOL which, DWORD max) { object_of<pool>(which).set_max(max); }
BOOL SetThreadpoolThreadMinimum(PTP_POOL which, DWORD least) {
    return object_of<pool>(which).set_least(least) ? TRUE : fail(ERROR_NOT_ENOUGH_MEMORY);
}
BOOL SetThreadpoolStackInformation(PTP_POOL which, PTP_POOL_STACK_INFORMATION stack) {
    if (stack == nullptr || stack->StackReserve < stack->StackCommit) return fail(ERROR_INVALID_PARAMETER);
    object_of<pool>(which).set_stack_size(stack->StackReserve);
    return TRUE;
}
BOOL QueryThreadpoolStackInformation(PTP_POOL which, PTP_POOL_STACK_INFORMATION stack) {
    if (stack == nullptr) return fail(ERROR_INVALID_PARAMETER);
    *stack = {object_of<pool>(which).stack_size(), 0};
    return TRUE;
}

PTP_CLEANUP_GROUP CreateThreadpoolCleanupGroup() {
    return reinterpret_cast<PTP_CLEANUP_GROUP>(
        without_exceptions<cleanup_group*>(nullptr, [] { return new cleanup_group; }));
}
VOID CloseThreadpoolCleanupGroupMembers(PTP_CLEANUP_GROUP group, BOOL cancel, PVOID cleanup_context) {
    object_of<cleanup_group>(group).close_members(cancel != 0, cleanup_context);
}
VOID CloseThreadpoolCleanupGroup(PTP_CLEANUP_GROUP group) { object_of<cleanup_group>(group).drop(); }

BOOL TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK callback, PVOID context,
                                 PTP_CALLBACK_ENVIRON environment) {
    auto* const made = new_object<simple_work>(callback, context, environment);
    if (made == nullptr) return FALSE;
    made->keep();
    made->begin_running();  // thread_pool-7
    made->join_group();
    made->submit();
    made->end_running();
    made->drop();
    return TRUE;
}

PTP_WORK CreateThreadpoolWork(PTP_WORK_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment) {
    return make_object<work, TP_WORK>(callback, context, environment);
}
VOID SubmitThreadpoolWork(PTP_WORK which) { object_of<work>(which).submit(); }
VOID WaitForThreadpoolWorkCallbacks(PTP_WORK which, BOOL cancel) {
    object_of<work>(which).wait_for_calls(cancel != 0);
}
VOID CloseThreadpoolWork(PTP_WORK which) { object_of<work>(which).close(); }

PTP_TIMER CreateThreadpoolTimer(PTP_TIMER_CALLBACK callback, PVOID context,
                                PTP_CALLBACK_ENVIRON environment) {
    if (!timed::start_threads()) return fail(ERROR_NOT_ENOUGH_MEMORY), nullptr;
    return make_object<pool_timer, TP_TIMER>(callback, context, environment);
}
BOOL SetThreadpoolTimerEx(PTP_TIMER which, PFILETIME due, DWORD period, DWORD) {
    return object_of<pool_timer>(which).set(due, period) ? TRUE : FALSE;
}
VOID SetThreadpoolTimer(PTP_TIMER which, PFILETIME due, DWORD period, DWORD window) {
    (void)SetThreadpoolTimerEx(which, due, period, window);
}
BOOL IsThreadpoolTimerSet(PTP_TIMER which) {
    return object_of<pool_timer>(which).is_set_now() ? TRUE : FALSE;
}
VOID WaitForThreadpoolTimerCallbacks(PTP_TIMER which, BOOL cancel) {
    object_of<pool_timer>(which).wait_for_calls(cancel != 0);
}
VOID CloseThreadpoolTimer(PTP_TIMER which) { object_of<pool_timer>(which).close(); }

PTP_WAIT CreateThreadpoolWait(PTP_WAIT_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment) {
    return make_object<pool_wait, TP_WAIT>(callback, context, environment);
}
BOOL SetThreadpoolWaitEx(PTP_WAIT which, HANDLE object, PFILETIME timeout, PVOID) {
    return set_wait(object_of<pool_wait>(which), object, timeout) ? TRUE : FALSE;
}
VOID SetThreadpoolWait(PTP_WAIT which, HANDLE object, PFILETIME timeout) {
    (void)SetThreadpoolWaitEx(which, object, timeout, nullptr);
}
VOID WaitForThreadpoolWaitCallbacks(PTP_WAIT which, BOOL cancel) {
    object_of<pool_wait>(which).wait_for_calls(cancel != 0);
}
VOID CloseThreadpoolWait(PTP_WAIT which) { object_of<pool_wait>(which).close(); }

VOID SetEventWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance, HANDLE event) {
    callback_instance::at(instance).event = event;
}
VOID ReleaseSemaphoreWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance, HANDLE semaphore, DWORD permits) {
    callback_instance::at(instance).semaphore = semaphore;
    callback_instance::at(instance).permits = permits;
}
VOID ReleaseMutexWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance, HANDLE mutex) {
    callback_instance::at(instance).mutex = mutex;
}
VOID LeaveCriticalSectionWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance, PCRITICAL_SECTION section) {
    callback_instance::at(instance).section = section;
}
BOOL CallbackMayRunLong(PTP_CALLBACK_INSTANCE instance) {
    return callback_instance::at(instance).of.has_room() ? TRUE : FALSE;
}
VOID DisassociateCurrentThreadFromCallback(PTP_CALLBACK_INSTANCE instance) {
    callback_instance& here = callback_instance::at(instance);
    if (!here.counts) return;
    here.counts = false;
    here.of.end_running();
}

}  // extern "C"
