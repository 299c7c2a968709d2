// SPDX-License-Identifier: Apache-2.0
// Timers (timer_queue.hpp), served by two background threads, one for each clock. And waitable timers: events that
// these threads set.
//
// State, under one lock. Each clock has a map of the timers that run, ordered by the time at which they are due. Each
// timer knows whether it runs, and its period. A waitable timer also knows the call that is queued when it is due. A
// clock's thread starts with the first timer that needs it, and stays until the process ends.
//
// Invariants
//   timers-1  A timer fires only under the lock, by a thread that finds the timer running and due. So after
//       SetWaitableTimer(), CancelWaitableTimer() or the like, an earlier setting has no effect any more. (A timer that
//       calls back in a pool may have posted a callback before.)
//   timers-2  A running timer is in the map of its clock. The map keeps no reference. A waitable timer's destructor
//       takes it out, under the lock. So it may be touched under the lock, even while it is being deleted. A timer that
//       calls back in a pool takes a reference when it fires, so it is out of the map for good before its last
//       reference is dropped (thread_pool-6, timer_queues-4).
//   timers-3  A clock's thread sleeps until the first timer in the map is due, or until `changed` is set. Whenever a
//       timer enters the map as the first, `changed` is set.
//   timers-4  A periodic timer on the relative clock is due again one period after the time at which it was due. If
//       that time has passed, too, the timer skips as many periods as have passed. A periodic timer that was due at an
//       absolute time is due again one period after it fired, by the relative clock. From then on, setting the
//       system's clock does not move its times.
//
// Checked by: win32/tests/unit/waits_test.cpp, memory_test.cpp, win32/tests.
#include "thread.hpp"
#include "timer_queue.hpp"

#include <tocsin/detail/library_thread.hpp>
#include <tocsin/detail/never_destroyed.hpp>

#include <chrono>
#include <mutex>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace tocsin::win32 {

all_timers& timers() {
    static detail::never_destroyed<all_timers> all;  // their threads never end
    return all.it;
}

std::uint64_t file_time_now() noexcept {
    return static_cast<std::uint64_t>(timers().absolute.now() + ticks_to_1970);
}

ticks timer_queue::now() const noexcept {
    using unit = std::chrono::duration<ticks, std::ratio<1, ticks_per_second>>;
    if (!absolute_)
        return std::chrono::duration_cast<unit>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return std::chrono::duration_cast<unit>(std::chrono::system_clock::now().time_since_epoch()).count();
}

deadline timer_queue::at(ticks when) const noexcept {
    constexpr ticks latest = INT64_MAX / 100 - 1;  // in nanoseconds, it still fits
    const std::chrono::nanoseconds since(100 * (when < latest ? when : latest));
    if (!absolute_)
        return std::chrono::steady_clock::time_point(
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(since));
    return std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>(since);
}

deadline timer_queue::fire_due(wake_list& freed) noexcept {
    const std::lock_guard held(timers().lock);
    const ticks present = now();
    while (!timers_.empty() && timers_.begin()->first <= present)
        timers_.begin()->second->be_due(present, freed);
    return timers_.empty() ? deadline::never() : at(timers_.begin()->first);
}

void* timer_queue::serve(void* self) noexcept {
    timer_queue& me = *static_cast<timer_queue*>(self);
    detail::schedule_this_library_thread();
    for (;;) {
        wake_list freed;
        const deadline next = me.fire_due(freed);
        freed.wake();
        (void)me.changed_.wait_until(next);
    }
}

bool timer_queue::start_thread() noexcept {
    if (started_) return true;
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t made;
    started_ = pthread_create(&made, nullptr, serve, this) == 0;
    if (started_) {
        detail::schedule_library_thread(&made);
        (void)pthread_detach(made);
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return started_;
}

timed::timed() {
    timer_queue::map one;
    node_ = one.extract(one.emplace(0, this));
}

bool timed::start_threads() noexcept {
    const std::lock_guard held(timers().lock);
    return timers().relative.start_thread() && timers().absolute.start_thread();
}

bool timed::start(ticks due, ticks period, wake_list& freed) noexcept {
    run_out();
    timer_queue& on = due < 0 ? timers().relative : timers().absolute;
    if (!on.start_thread() || (period != 0 && !timers().relative.start_thread())) return false;
    const ticks now = on.now();
    const ticks when = due >= 0 ? due - ticks_to_1970 : due < now - INT64_MAX ? INT64_MAX : now - due;
    node_.key() = when;
    at_ = on.add(std::move(node_));
    queue_ = &on;
    period_ = period;
    if (when <= now) be_due(now, freed);
    return true;
}

void timed::run_out() noexcept {
    if (queue_ == nullptr) return;
    node_ = queue_->remove(at_);
    queue_ = nullptr;
}

void timed::be_due(ticks now, wake_list& freed) noexcept {
    timer_queue& relative = timers().relative;
    const ticks was_due = at_->first;
    const bool was_relative = queue_ == &relative;
    const bool again = fire(freed) && period_ != 0;
    run_out();
    if (!again) return;
    const ticks missed = (now - was_due) / period_;
    node_.key() = was_relative ? was_due + (missed + 1) * period_ : relative.now() + period_;  // timers-4
    at_ = relative.add(std::move(node_));
    queue_ = &relative;
}

namespace {

class timer_object final : public event_object, public timed {
public:
    explicit timer_object(reset_mode mode) : event_object(kind::timer, mode, false) {}
    ~timer_object() override {
        const std::lock_guard held(timers().lock);
        stop();
    }

    // These are called under the lock.
    void stop() noexcept {
        run_out();
        if (caller_ == nullptr) return;
        caller_->take_back(place_);
        caller_->drop();
        caller_ = nullptr;
    }
    // Takes over a reference to `caller`, whose thread is to run the routine. Null: there is no routine.
    bool set(ticks due, LONG period, PTIMERAPCROUTINE routine, void* argument, thread* caller,
             wake_list& freed) noexcept {
        routine_ = routine;
        argument_ = argument;
        caller_ = caller;
        return start(due, ticks{period} * ticks_per_millisecond, freed);
    }

private:
    bool fire(wake_list& freed) noexcept override;

    PTIMERAPCROUTINE routine_ = nullptr;
    void* argument_ = nullptr;
    thread* caller_ = nullptr;  // of the routine, which may still be queued there; has a reference
    call_place place_;          // of the routine
};

bool timer_object::fire(wake_list& freed) noexcept {
    if (caller_ == nullptr) return state.set(freed), true;
    if (caller_->has_ended()) return false;  // its thread's end cancels the timer
    state.set(freed);
    const std::uint64_t when = file_time_now();
    const queued_call call{
        [](const queued_call& made) {
            const auto routine = reinterpret_cast<PTIMERAPCROUTINE>(made.function);
            routine(reinterpret_cast<void*>(made.arguments[0]), static_cast<DWORD>(made.arguments[1]),
                    static_cast<DWORD>(made.arguments[2]));
        },
        reinterpret_cast<void (*)()>(routine_),
        {reinterpret_cast<std::uintptr_t>(argument_), static_cast<std::uintptr_t>(when & 0xFFFF'FFFF),
         static_cast<std::uintptr_t>(when >> 32)}};
    (void)caller_->queue(call, place_);
    return true;
}

HANDLE create_timer(const object_name& name, DWORD flags, DWORD access) {
    if ((flags & ~(CREATE_WAITABLE_TIMER_MANUAL_RESET | CREATE_WAITABLE_TIMER_HIGH_RESOLUTION)) != 0)
        return no_handle(ERROR_INVALID_PARAMETER);
    const bool manual = (flags & CREATE_WAITABLE_TIMER_MANUAL_RESET) != 0;
    return create(name, kind::timer, granted(access), [&] {
        return new timer_object(manual ? reset_mode::manual_reset : reset_mode::auto_reset);
    });
}

DWORD manual_flag(BOOL manual_reset) noexcept {
    return manual_reset != 0 ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0;
}

BOOL set_timer(timer_object& timer, ticks due, LONG period, PTIMERAPCROUTINE routine, void* argument) {
    thread* const caller = routine != nullptr ? &current_thread() : nullptr;
    if (caller != nullptr) caller->keep();
    wake_list freed;
    bool runs = false;
    {
        const std::lock_guard held(timers().lock);
        timer.stop();
        timer.state.reset();
        runs = timer.set(due, period, routine, argument, caller, freed);
        if (!runs) timer.stop();
    }
    freed.wake();
    return runs ? TRUE : fail(ERROR_NOT_ENOUGH_MEMORY);
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

HANDLE CreateWaitableTimerA(LPSECURITY_ATTRIBUTES, BOOL manual_reset, LPCSTR name) {
    return made([&] { return create_timer(object_name(name), manual_flag(manual_reset), all_access); });
}
HANDLE CreateWaitableTimerW(LPSECURITY_ATTRIBUTES, BOOL manual_reset, LPCWSTR name) {
    return made([&] { return create_timer(object_name(name), manual_flag(manual_reset), all_access); });
}
HANDLE CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES, LPCSTR name, DWORD flags, DWORD access) {
    return made([&] { return create_timer(object_name(name), flags, access); });
}
HANDLE CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES, LPCWSTR name, DWORD flags, DWORD access) {
    return made([&] { return create_timer(object_name(name), flags, access); });
}
HANDLE OpenWaitableTimerA(DWORD access, BOOL, LPCSTR name) {
    return made([&] { return open_named(object_name(name), kind::timer, access); });
}
HANDLE OpenWaitableTimerW(DWORD access, BOOL, LPCWSTR name) {
    return made([&] { return open_named(object_name(name), kind::timer, access); });
}

BOOL SetWaitableTimer(HANDLE timer, const LARGE_INTEGER* due, LONG period, PTIMERAPCROUTINE routine,
                      LPVOID argument, BOOL resume) {
    const handle_use use(timer);
    auto* const found = of_kind<timer_object>(use, kind::timer, TIMER_MODIFY_STATE);
    if (found == nullptr) return FALSE;
    if (due == nullptr || period < 0) return fail(ERROR_INVALID_PARAMETER);
    const BOOL done = without_exceptions<BOOL>(
        FALSE, [&] { return set_timer(*found, due->QuadPart, period, routine, argument); });
    if (done != 0 && resume != 0) SetLastError(ERROR_NOT_SUPPORTED);  // the system is not woken up
    return done;
}
BOOL SetWaitableTimerEx(HANDLE timer, const LARGE_INTEGER* due, LONG period, PTIMERAPCROUTINE routine,
                        LPVOID argument, PREASON_CONTEXT, ULONG) {
    return SetWaitableTimer(timer, due, period, routine, argument, FALSE);
}
BOOL CancelWaitableTimer(HANDLE timer) {
    const handle_use use(timer);
    auto* const found = of_kind<timer_object>(use, kind::timer, TIMER_MODIFY_STATE);
    if (found == nullptr) return FALSE;
    const std::lock_guard held(timers().lock);
    found->stop();
    return TRUE;
}

DWORD GetTickCount() { return static_cast<DWORD>(GetTickCount64()); }
ULONGLONG GetTickCount64() { return static_cast<ULONGLONG>(timers().relative.now() / ticks_per_millisecond); }
VOID GetSystemTimeAsFileTime(LPFILETIME time) {
    const std::uint64_t now = file_time_now();
    *time = {static_cast<DWORD>(now & 0xFFFF'FFFF), static_cast<DWORD>(now >> 32)};
}
BOOL QueryPerformanceCounter(LARGE_INTEGER* count) {
    count->QuadPart = timers().relative.now();
    return TRUE;
}
BOOL QueryPerformanceFrequency(LARGE_INTEGER* frequency) {
    frequency->QuadPart = ticks_per_second;
    return TRUE;
}

}  // extern "C"
