// SPDX-License-Identifier: Apache-2.0
// A wait for objects is a wait of tocsin for the sources of these objects (src/wait.cpp, src/core/wait/multi_wait.cpp).
// This file adds what only Windows has: mutexes that the caller owns already, abandoned mutexes, and alertable waits.
//
// Invariants
//   win32_wait-1  A mutex that the caller owns is ready, and stays ready while the caller waits (mutex_state-2). A wait
//       for any looks only at the objects in front of the first such mutex, and does not sleep. A wait for all waits
//       for the other objects, and goes one level deeper into the owned mutex once it has them. So it takes everything
//       at one instant, or nothing.
//   win32_wait-2  A wait that has taken a mutex makes its thread the owner before it returns (mutex_state-1). Until
//       then, no other thread can take the mutex, release it, or find it abandoned.
//   win32_wait-3  An alertable wait for any has the thread's event `called` as its last source (thread-3). So an object
//       that is ready at the start is taken, and queued calls stay queued. A wait for all can't have such a source.
//       Instead, a queued call requests the wait's stop. If a call ends the wait, the wait has taken nothing.
//   win32_wait-4  A wait that finds `called` set may still find no call, because another thread has cancelled the timer
//       that had queued the call. The wait then starts again, with the same deadline. If the wait has not yet signaled
//       its object (signal_and_wait.cpp), it does so when its thread is queued again, as it would have done without the
//       call.
//   win32_wait-5  A wait for one or for any first looks at its objects by way of the thread's cache (handle_cache.hpp),
//       without a use of each. If a handle isn't in the cache, or no object is ready, the wait begins again, with uses.
//       So it takes an object only once it has found all handles valid, as Windows does.
//
// Checked by: win32/tests/unit/mutex_test.cpp, handle_cache_test.cpp, waits_test.cpp, tests/model/win32_model_test.cpp
// (win32_wait-1), win32/tests.
#include "wait.hpp"

#include "small_array.hpp"

#include <tocsin/detail/golden_hash.hpp>
#include <tocsin/wait.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>

#include <sched.h>

namespace tocsin::win32 {

source source_of(object& what) {
    switch (what.type) {
        case kind::event:
        case kind::timer: return static_cast<event_object&>(what).state;
        case kind::semaphore: return static_cast<semaphore_object&>(what).permits.near;
        case kind::mutex: return static_cast<mutex_object&>(what).state.free();
        case kind::thread: return static_cast<thread&>(what).ended;
        case kind::shared_event: return static_cast<shared_event_object&>(what).as_source();
        case kind::shared_semaphore: return static_cast<shared_semaphore_object&>(what).as_source();
        case kind::descriptor: {
            auto& of = static_cast<descriptor_object&>(what);
            return ready(of.descriptor, of.asked);
        }
        default: break;
    }
    return {};
}

void give_back(object& what) noexcept {
    switch (what.type) {
        case kind::event:
        case kind::timer: {
            auto& state = static_cast<event_object&>(what).state;
            if (state.mode() == reset_mode::auto_reset) state.set();
            break;
        }
        case kind::semaphore: static_cast<semaphore_object&>(what).permits.give_back(); break;
        case kind::mutex: static_cast<mutex_object&>(what).undo_take(); break;
        case kind::shared_event:
        case kind::shared_semaphore:
            // It throws only if other processes change the object without end.
            (void)without_exceptions<bool>(false, [&] {
                what.type == kind::shared_event ? static_cast<shared_event_object&>(what).give_back()
                                                : static_cast<shared_semaphore_object&>(what).give_back();
                return true;
            });
            break;
        default: break;
    }
}

DWORD begin_taken_here(object& what) noexcept {
    thread* self = nullptr;
    if (what.type == kind::mutex) {
        self = without_exceptions<thread*>(nullptr, [] { return &current_thread(); });
        if (self == nullptr) {
            give_back(what);
            return WAIT_FAILED;
        }
    }
    return begin_taken(what, self);
}

void give_back_begun(object& what, thread* self, DWORD how) noexcept {
    if (what.type == kind::mutex) {
        static_cast<mutex_object&>(what).release(*self, how == WAIT_ABANDONED_0);
    } else {
        give_back(what);
    }
}

#if defined(__cpp_exceptions)
DWORD code_of(const std::system_error& thrown) noexcept {
    switch (thrown.code().value()) {
        case EBADF:
            return ERROR_INVALID_HANDLE;  // a descriptor that was closed
        // Of objects that processes share: too many threads wait, or this thread owns too many.
        case ENOBUFS:
        case ENOLCK: return ERROR_NO_SYSTEM_RESOURCES;
        // Other processes have written into the memory.
        case EINVAL:
        case ENOTRECOVERABLE: return ERROR_INVALID_DATA;
        default: return ERROR_NOT_ENOUGH_MEMORY;
    }
}
#endif

// Waits once. If a queued call ends the wait, the result is WAIT_OBJECT_0 as well, and `index` is that of `called`.
DWORD any_wait::wait_once(std::span<const source> sources, detail::lock_reference* signal,
                          const std::stop_token* stop) {
    limits how{.until = until};
    if (stop != nullptr) how.stop = *stop;
    const any_result result = detail::wait_any_slow(sources, how, signal);
    if (result.status != wait_status::signaled) return WAIT_TIMEOUT;
    index = result.index;
    return WAIT_OBJECT_0;
}

DWORD any_wait::run(detail::lock_reference* signal, const std::stop_token* stop) {
    const bool has_shared_mutex =
        std::ranges::any_of(objects, [](object* each) { return is_shared_mutex(*each); });
    small_array<source, MAXIMUM_WAIT_OBJECTS + 1> sources(objects.size() + 1);
    if (!has_shared_mutex) {
        for (object* const each : objects) sources.add(source_of(*each));
        if (alertable) sources.add(self->called);
    }
    for (;;) {
        const DWORD how = has_shared_mutex ? wait_with_mutexes() : wait_once(sources.all(), signal, stop);
        if (how != WAIT_OBJECT_0) return how;
        if (index != objects.size()) return begin_taken(*objects[index], self);
        if (signal != nullptr && signal->given_up) signal = nullptr;
        queued_call first;
        if (!self->take_call(first)) continue;  // win32_wait-4
        if (signal != nullptr) signal->give_up();
        first.run(first);
        (void)self->run_queued();
        return WAIT_IO_COMPLETION;
    }
}

namespace {

DWORD wait_for_any(std::span<object* const> objects, bool has_descriptor, thread* self, bool alertable,
                   DWORD milliseconds, std::size_t& index) {
    const auto owned = self == nullptr ? objects.end() : std::ranges::find_if(objects, [&](object* each) {
        return is_owned_by(*each, self);
    });
    const auto others = objects.first(static_cast<std::size_t>(owned - objects.begin()));
    const bool may_sleep = owned == objects.end() && milliseconds != 0;
    const bool polled =
        has_descriptor && std::ranges::any_of(others, [](object* each) { return is_descriptor(*each); });
    if (!polled) {
        for (index = 0; index != others.size(); ++index) {
            if (try_take(*others[index])) return begin_taken(*others[index], self);
        }
    }
    if (polled || may_sleep) {
        any_wait wait{others, self, alertable && owned == objects.end(),
                      may_sleep ? deadline_after(milliseconds) : deadline_after(0)};
        const DWORD how = wait.run();
        index = wait.index;
        if (how != WAIT_TIMEOUT || owned == objects.end()) return how;
    }
    if (owned == objects.end()) {
        const bool called = self != nullptr && alertable && self->run_queued();
        return called ? WAIT_IO_COMPLETION : WAIT_TIMEOUT;
    }
    index = others.size();
    return enter_again(**owned);
}

// Whether an object occurs twice: a hash table that is at most half full has room for all.
bool has_duplicates(std::span<object* const> objects) {
    const std::size_t places = std::bit_ceil(2 * objects.size());
    small_array<object*, std::size_t{2} * MAXIMUM_WAIT_OBJECTS> table(places);
    while (table.size() != places) table.add(nullptr);
    const std::span<object*> seen = table.all();
    for (object* const each : objects) {
        std::size_t place = detail::golden_hash(reinterpret_cast<std::uintptr_t>(each)) >> 32 & (places - 1);
        while (seen[place] != nullptr && seen[place] != each) place = (place + 1) & (places - 1);
        if (seen[place] == each) return true;
        seen[place] = each;
    }
    return false;
}

// win32_wait-3
wait_status wait_for_all_or_call(std::span<const source> sources, thread& self, const deadline& until) {
    for (;;) {
        std::stop_source stop;
        if (!self.stop_when_called(&stop)) stop.request_stop();
        const std::stop_token token = stop.get_token();
        const wait_status how = [&] {
            struct forget {
                thread& of;
                ~forget() { (void)of.stop_when_called(nullptr); }
            } const afterwards{self};  // also after an exception
            return wait_all({.until = until, .stop = token}, sources);
        }();
        if (how != wait_status::stopped || self.run_queued()) return how;
    }
}

DWORD wait_for_all(std::span<object* const> objects, thread* self, bool alertable, DWORD milliseconds) {
    if (has_duplicates(objects)) return fail_wait(ERROR_INVALID_PARAMETER);
    // No single step takes tokens from two objects that processes share (docs/between_processes.md).
    if (std::ranges::any_of(objects, [](object* each) { return is_shared(*each); }))
        return fail_wait(ERROR_NOT_SUPPORTED);
    small_array<source, MAXIMUM_WAIT_OBJECTS> sources(objects.size());
    for (object* const each : objects) {
        if (is_descriptor(*each)) return fail_wait(ERROR_NOT_SUPPORTED);
        if (!is_owned_by(*each, self)) {
            sources.add(source_of(*each));
        } else if (!static_cast<mutex_object*>(each)->state.may_go_deeper()) {
            return fail_wait(ERROR_MUTANT_LIMIT_EXCEEDED);
        }
    }
    if (sources.size() != 0) {
        const deadline until = deadline_after(milliseconds);
        const wait_status how = alertable ? wait_for_all_or_call(sources.all(), *self, until)
                                          : wait_all({.until = until}, sources.all());
        if (how == wait_status::stopped) return WAIT_IO_COMPLETION;
        if (how == wait_status::timed_out) return WAIT_TIMEOUT;
    }
    DWORD result = WAIT_OBJECT_0;
    for (object* const each : objects) {
        const DWORD one = is_owned_by(*each, self) ? enter_again(*each) : begin_taken(*each, self);
        if (one != WAIT_OBJECT_0) result = one;
    }
    return result;
}

// The error with which a wait for this handle fails, or 0.
template <class Use>
DWORD error_of_wait(const Use& use) noexcept {
    if (!use || !is_waited_for(use->type)) return ERROR_INVALID_HANDLE;
    return use.may(SYNCHRONIZE) ? 0 : ERROR_ACCESS_DENIED;
}

// Takes an event or a semaphore.
bool try_take_cached(object& what) noexcept {
    if (what.type == kind::event) return static_cast<event_object&>(what).state.try_wait();
    auto& permits = static_cast<semaphore_object&>(what).permits;
    if (!permits.near.try_acquire()) return false;
    permits.took_one();
    return true;
}

// win32_wait-5: takes the first of the objects that is ready, if the thread has used all these handles lately. If
// nothing is ready or a handle isn't in the cache, returns false, and has done nothing.
bool take_any_cached(std::size_t count, const HANDLE* handles, std::size_t& index) noexcept {
    handle_cache* const cache = this_cache;
    if (cache == nullptr || cache->is_busy) return false;
    // All at once, and the last first, so that the loop ends with the object that is looked at first.
    const handle_slot* slot = nullptr;
    for (std::size_t i = count; i-- != 0;) {
        slot = cache->find(number_of(handles[i]));
        if (slot == nullptr || (slot->access & SYNCHRONIZE) == 0) return false;
    }
    cache->is_busy = true;
    bool taken = false;
    for (index = 0;;) {
        taken = try_take_cached(*static_cast<object*>(static_cast<void*>(slot->object)));
        if (taken || ++index == count) break;
        slot = cache->find(number_of(handles[index]));
        if (slot == nullptr) break;  // another thread has closed it meanwhile
    }
    cache->is_busy = false;
    return taken;
}

// The same for one. `is_there` says whether the handle is in the cache.
bool take_cached(HANDLE handle, bool& is_there) noexcept {
    cached_use use(handle, SYNCHRONIZE);
    is_there = bool(use);
    bool taken = false;
    if (is_there) use.with<object>([&](object& what) { taken = try_take_cached(what); });
    return taken;
}

DWORD wait_for_many(std::size_t count, const HANDLE* handles, bool all, DWORD milliseconds, bool alertable,
                    std::size_t& index) {
    small_array<handle_use, MAXIMUM_WAIT_OBJECTS> uses(count);
    small_array<object*, MAXIMUM_WAIT_OBJECTS> objects(count);
    bool has_mutex = false;
    bool has_descriptor = false;
    DWORD error = 0;
    for (std::size_t i = 0; i != count && error == 0; ++i) {
        const handle_use& use = uses.add(handles[i]);
        error = error_of_wait(use);
        if (error != 0) break;
        objects.add(&*use);
        has_mutex |= use->type == kind::mutex;
        has_descriptor |= is_descriptor(*use);
    }
    if (error != 0) return fail_wait(error);
    thread* const self = thread_of_wait(has_mutex, alertable);
    if (all && !(count == 1 && is_shared(*objects.all()[0])))
        return wait_for_all(objects.all(), self, alertable, milliseconds);
    const DWORD how = wait_for_any(objects.all(), has_descriptor, self, alertable, milliseconds, index);
    if (count <= handle_cache::size()) {  // for the thread's next wait
        for (std::size_t i = 0; i != count; ++i) brief_use::end_or_remember(uses.all()[i], handles[i]);
    }
    return how;
}

// Waits until the time has passed or, if alertable, a call is queued.
DWORD wait_for_call(DWORD milliseconds, bool alertable) {
    static constinit tocsin::manual_reset_event never;
    if (!alertable) {
        (void)never.wait_until(deadline_after(milliseconds));
        return WAIT_TIMEOUT;
    }
    thread& self = current_thread();
    if (self.run_queued()) return WAIT_IO_COMPLETION;
    any_wait wait{{}, &self, true, deadline_after(milliseconds)};
    return wait.run();
}

DWORD wait_for_one(HANDLE handle, DWORD milliseconds, bool alertable) {
    if (is_pseudo_handle(handle)) return wait_for_call(milliseconds, alertable);
    handle_use use;
    {
        brief_use look(handle);
        if (const DWORD error = error_of_wait(look)) return fail_wait(error);
        if (may_be_cached(look->type)) {
            if (try_take_cached(*look)) return WAIT_OBJECT_0;
            if (milliseconds == 0 && !alertable) return WAIT_TIMEOUT;
        }
        handle_use longer = look.lasting();
        use.swap(longer);
    }
    object& what = *use;
    const bool is_mutex = what.type == kind::mutex;
    thread* const self = thread_of_wait(is_mutex, alertable);
    if (is_mutex && is_owned_by(what, self)) return enter_again(what);
    if (try_take(what)) return begin_taken(what, self);
    if (milliseconds == 0 && !alertable && !is_descriptor(what)) return WAIT_TIMEOUT;
    object* const only = &what;
    any_wait wait{{&only, 1}, self, alertable, deadline_after(milliseconds)};
    return wait.run();
}

[[gnu::noinline]] DWORD wait_for_one_slow(HANDLE handle, DWORD milliseconds, BOOL alertable) {
    return caught([&] { return wait_for_one(handle, milliseconds, alertable != 0); });
}

[[gnu::noinline]] DWORD wait_for_many_slow(std::size_t count, const HANDLE* handles, bool all,
                                           DWORD milliseconds, bool alertable, std::size_t& index) {
    return caught([&] { return wait_for_many(count, handles, all, milliseconds, alertable, index); });
}

DWORD wait_for_handles(std::size_t count, const HANDLE* handles, BOOL all, DWORD milliseconds, BOOL alertable,
                       std::size_t& index) {
    if (count == 0 || handles == nullptr) return fail_wait(ERROR_INVALID_PARAMETER);
    if (all == 0 && count <= handle_cache::size() && take_any_cached(count, handles, index))
        return WAIT_OBJECT_0;
    return wait_for_many_slow(count, handles, all != 0, milliseconds, alertable != 0, index);
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

DWORD WaitForSingleObjectEx(HANDLE handle, DWORD milliseconds, BOOL alertable) {
    bool is_there = false;
    if (take_cached(handle, is_there)) return WAIT_OBJECT_0;
    if (is_there && milliseconds == 0 && alertable == 0) return WAIT_TIMEOUT;
    return wait_for_one_slow(handle, milliseconds, alertable);
}
DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds) {
    return WaitForSingleObjectEx(handle, milliseconds, FALSE);
}

DWORD TocsinWaitForManyObjects(size_t count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds,
                               BOOL alertable, size_t* index) {
    std::size_t taken = 0;
    const DWORD how = wait_for_handles(count, handles, wait_all, milliseconds, alertable, taken);
    if (index != nullptr && wait_all == 0 && (how == WAIT_OBJECT_0 || how == WAIT_ABANDONED_0))
        *index = taken;
    return how;
}
DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds,
                               BOOL alertable) {
    if (count > MAXIMUM_WAIT_OBJECTS) return fail_wait(ERROR_INVALID_PARAMETER);
    std::size_t index = 0;
    const DWORD how = wait_for_handles(count, handles, wait_all, milliseconds, alertable, index);
    const bool took_one = wait_all == 0 && (how == WAIT_OBJECT_0 || how == WAIT_ABANDONED_0);
    return took_one ? how + static_cast<DWORD>(index) : how;
}
DWORD WaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds) {
    return WaitForMultipleObjectsEx(count, handles, wait_all, milliseconds, FALSE);
}

DWORD SleepEx(DWORD milliseconds, BOOL alertable) {
    if (milliseconds == 0 && alertable == 0) {
        (void)sched_yield();
        return 0;
    }
    const DWORD how = caught([&] { return wait_for_call(milliseconds, alertable != 0); });
    // There was no memory for the thread's object. So the thread has none, and nobody can queue a call for it.
    if (how == WAIT_FAILED) (void)wait_for_call(milliseconds, false);
    return how == WAIT_IO_COMPLETION ? how : 0;
}
VOID Sleep(DWORD milliseconds) { (void)SleepEx(milliseconds, FALSE); }

}  // extern "C"
