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
//
// Checked by: tests/win32/thread_pool_test.cpp, tests/win32_unit/memory_test.cpp.
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
    ~pool_timer() override { stop(); }

    // Returns whether the timer was set before.
    bool set(const FILETIME* due, DWORD period) noexcept {
        wake_list freed;
        bool before = false;
        {
            const std::lock_guard held(timers().lock);
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
    void stop() noexcept override { (void)set(nullptr, 0); }

private:
    bool fire(wake_list&) noexcept override { return submit(), true; }
    void call(callback_instance& here) override {
        callback_(here.opaque(), context(), reinterpret_cast<PTP_TIMER>(this));
    }

    const PTP_TIMER_CALLBACK callback_;
};

class pool_wait;

// One SetThreadpoolWait(): thread_pool-2.
class arming : public detail::list_links<arming> {
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
};

class pool_wait final : public member {
public:
    pool_wait(pool& in, PTP_WAIT_CALLBACK callback, void* context,
              const TP_CALLBACK_ENVIRON* environment) noexcept
        : member(in, context, environment), callback_(callback) {}
    ~pool_wait() override {
        while (arming* const left = ended_.take_first()) delete left;
    }

    // Ends the current wait. Returns whether it has: false if there is none, or if a callback is submitted for it.
    bool end() noexcept {
        object_wait* current = nullptr;
        {
            const std::lock_guard held(lock_);
            if (armed_ == nullptr) return false;
            current = armed_->wait;
            current->keep();
            armed_ = nullptr;  // its operation deletes it
        }
        const bool ended_here = current->cancel();
        current->drop();
        return ended_here;
    }
    // Throws std::bad_alloc. False: the system refuses, and the error says why.
    bool wait_for(handle_use use, const deadline& until) {
        auto* const made = new arming(*this, std::move(use));
        {
            const std::lock_guard held(lock_);
            armed_ = made;
        }
        keep();  // for the operation
        object_wait* const wait = made->wait;
        wait->keep();
        const bool started = wait->start(until);
        // Another thread may have ended this wait while it started, which its cancel() may not have seen.
        if (started && !is_armed(made)) (void)wait->cancel();
        wait->drop();
        if (started) return true;
        forget(*made);
        delete made;
        drop();
        return false;
    }
    void ended(arming& which) noexcept {
        forget(which);
        if (which.how == wait_status::stopped) {
            delete &which;
        } else {
            {
                const std::lock_guard held(lock_);
                ended_.append(which);
            }
            submit();
        }
        drop();
    }

    void stop() noexcept override { (void)end(); }
    bool cancel_calls() noexcept override {
        const std::size_t taken_back = cancel();
        for (std::size_t i = 0; i != taken_back; ++i) {
            arming* const which = take_ended();
            if (which == nullptr) break;
            if (which->how == wait_status::signaled) give_back(*which->object);
            delete which;
        }
        return taken_back != 0;
    }

private:
    bool is_armed(const arming* which) noexcept {
        const std::lock_guard held(lock_);
        return armed_ == which;
    }
    void forget(arming& which) noexcept {
        const std::lock_guard held(lock_);
        if (armed_ == &which) armed_ = nullptr;
    }
    arming* take_ended() noexcept {
        const std::lock_guard held(lock_);
        return ended_.take_first();
    }

    void call(callback_instance& here) override {
        arming* const which = take_ended();
        const TP_WAIT_RESULT result =
            which->how == wait_status::signaled ? begin_taken_here(*which->object) : WAIT_TIMEOUT;
        delete which;
        if (result == WAIT_FAILED) return;
        callback_(here.opaque(), context(), reinterpret_cast<PTP_WAIT>(this), result);
    }

    const PTP_WAIT_CALLBACK callback_;
    word_lock<> lock_;  // of what follows
    arming* armed_ = nullptr;
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
    if (!use || !is_waited_for(use->what)) {
        (void)fail(ERROR_INVALID_HANDLE);
    } else if (!use.may(SYNCHRONIZE)) {
        (void)fail(ERROR_ACCESS_DENIED);
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

// Makes an object, as the program gets it.
template <class Object, class Opaque, class Callback>
Opaque* make_object(Callback callback, void* context, const TP_CALLBACK_ENVIRON* environment) noexcept {
    if (callback == nullptr) return fail(ERROR_INVALID_PARAMETER), nullptr;
    Object* const made = without_exceptions<Object*>(
        nullptr, [&] { return new_pooled<Object>(pool_of(environment), callback, context, environment); });
    if (made == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY), nullptr;
    made->join_group();
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
    pool* const made = without_exceptions<pool*>(nullptr, [] { return new pool(pool::usual_most, false); });
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
VOID SetThreadpoolThreadMaximum(PTP_POOL which, DWORD most) { object_of<pool>(which).set_most(most); }
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
    auto* const made = make_object<simple_work, simple_work>(callback, context, environment);
    if (made == nullptr) return FALSE;
    made->submit();
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
