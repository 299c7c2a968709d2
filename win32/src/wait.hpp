// SPDX-License-Identifier: Apache-2.0
// What waits ask of an object. Used by wait.cpp, signal_and_wait.cpp and registered_wait.cpp.
#pragma once

#include "thread.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/lock_reference.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/source.hpp>

#include <chrono>
#include <cstddef>
#include <new>
#include <span>
#include <stop_token>
#include <system_error>

namespace tocsin::win32 {

inline deadline deadline_after(DWORD milliseconds) noexcept {
    return milliseconds == INFINITE ? deadline::never() : deadline(std::chrono::milliseconds(milliseconds));
}

inline bool is_descriptor(const object& what) noexcept { return what.type == kind::descriptor; }
inline bool is_owned_by(const object& what, const thread* by) noexcept {
    return what.type == kind::mutex && by != nullptr &&
           static_cast<const mutex_object&>(what).state.is_owned_by(by);
}

// A mutex that processes share is no source: the thread that waits for it must be the one that owns it.
inline bool is_shared_mutex(const object& what) noexcept {
    return what.type == kind::mutex && static_cast<const mutex_object&>(what).shared.has_value();
}
inline bool is_shared(const object& what) noexcept {
    return what.type == kind::shared_event || what.type == kind::shared_semaphore || is_shared_mutex(what);
}

// Takes the object if it is ready. Never takes a descriptor. The caller then calls begin_taken(). Throws only for
// objects that processes share.
inline bool try_take(object& what) {
    switch (what.type) {
        case kind::event:
        case kind::timer: return static_cast<event_object&>(what).state.try_wait();
        case kind::semaphore: return static_cast<semaphore_object&>(what).permits.near.try_acquire();
        case kind::mutex: return static_cast<mutex_object&>(what).try_take();
        case kind::thread: return static_cast<thread&>(what).ended.try_wait();
        case kind::shared_event: return static_cast<shared_event_object&>(what).try_wait();
        case kind::shared_semaphore: return static_cast<shared_semaphore_object&>(what).try_acquire();
        default: return false;
    }
}

// Not for a mutex that processes share. Throws only for objects that processes share.
source source_of(object& what);

// For a thread that has taken the object, which every take has to be followed by: makes the thread the owner of a
// mutex. Returns WAIT_OBJECT_0 or WAIT_ABANDONED_0.
inline DWORD begin_taken(object& what, thread* self) noexcept {
    if (what.type == kind::mutex)
        return static_cast<mutex_object&>(what).begin(*self) ? WAIT_ABANDONED_0 : WAIT_OBJECT_0;
    if (what.type == kind::semaphore) static_cast<semaphore_object&>(what).permits.took_one();
    return WAIT_OBJECT_0;
}
// The same for a thread that this layer may not know yet. Returns WAIT_FAILED if there is no memory to make the thread
// the owner of a mutex; the mutex is then given back.
DWORD begin_taken_here(object& what) noexcept;
// For a thread that owns the mutex: owns it once more. Returns WAIT_OBJECT_0, or WAIT_FAILED if it can't.
inline DWORD enter_again(object& owned) noexcept {
    mutex_state& state = static_cast<mutex_object&>(owned).state;
    if (!state.may_go_deeper()) return fail_wait(ERROR_MUTANT_LIMIT_EXCEEDED);
    state.go_deeper();
    return WAIT_OBJECT_0;
}
// Undoes a try_take(), before begin_taken().
void give_back(object& what) noexcept;
// Undoes a take after begin_taken(), which returned `how`. A mutex that was abandoned is abandoned again.
void give_back_begun(object& what, thread* self, DWORD how) noexcept;

// The calling thread, if the wait needs to know it.
inline thread* thread_of_wait(bool has_mutex, bool alertable) {
    return has_mutex || alertable ? &current_thread() : nullptr;
}

// Waits until one of the objects is ready or, if `alertable`, a call is queued for `self`. The objects must not include
// a mutex that `self` owns. Sets `index` to the index of the object that it took. Returns WAIT_OBJECT_0 or
// WAIT_ABANDONED_0 (without adding the index), WAIT_IO_COMPLETION, or WAIT_TIMEOUT (also after a stop). Throws what the
// wait throws (caught() below).
struct any_wait {
    std::span<object* const> objects;
    thread* self;
    bool alertable;
    deadline until;
    std::size_t index = 0;

    DWORD run(detail::lock_reference* signal = nullptr, const std::stop_token* stop = nullptr);

private:
    DWORD wait_once(std::span<const source> sources, detail::lock_reference* signal,
                    const std::stop_token* stop);
    DWORD wait_with_mutexes();  // shared_waits.cpp
};

// Runs `wait()`, and turns what it throws into WAIT_FAILED and an error. Not noexcept: a queued call may end the
// thread, and glibc then unwinds the stack through the wait (pthread_exit).
template <class Wait>
DWORD caught(Wait wait) {
#if defined(__cpp_exceptions)
    try {
        return wait();
    } catch (const std::system_error& thrown) {
        return fail_wait(code_of(thrown));
    } catch (const std::bad_alloc&) {
        return fail_wait(ERROR_NOT_ENOUGH_MEMORY);
    }
#else
    return wait();
#endif
}

}  // namespace tocsin::win32
