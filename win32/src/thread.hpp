// SPDX-License-Identifier: Apache-2.0
// The threads that use this layer. Why it is correct: thread.cpp.
#pragma once

#include "mutex_state.hpp"
#include "object.hpp"
#include "shared_names.hpp"

#include <tocsin/bit_lock.hpp>
#include <tocsin/detail/event_as_lock.hpp>
#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/event.hpp>
#include <tocsin/win32.h>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <pthread.h>

namespace tocsin::win32 {

class thread;

class mutex_object final : public object, public detail::list_links<mutex_object> {
public:
    mutex_object() noexcept : object(kind::mutex) {}
    // A mutex that processes share.
    explicit mutex_object(std::unique_ptr<shared_region> of) noexcept
        : object(kind::mutex), shared(std::in_place, std::move(of)) {}
    ~mutex_object() override;

    // Takes the mutex if it is free, and it is not the caller's.
    bool try_take() { return shared ? is_taken(shared->try_take()) : state.free().try_wait(); }
    // Waits for a mutex that processes share, and takes it (shared_mutex::take()). Returns whether it was taken.
    template <class... Limits>
    bool take_shared(const Limits&... limits) {
        return shared && is_taken(shared->take(limits...));
    }
    // Undoes a take, before begin().
    void undo_take() noexcept {
        if (shared) {
            shared->hand_on(state.forget_abandoned());
        } else {
            state.undo_take();
        }
    }

    // For a thread that has just taken the mutex. Returns whether the mutex was abandoned.
    bool begin(thread& by) noexcept;
    // Called by the owner. If `abandoned`, the next owner is told that the mutex was abandoned, as after an owner's
    // end.
    void release(thread& by, bool abandoned = false) noexcept;

    mutex_state state;
    std::optional<shared_mutex> shared;  // instead of the event in `state`

private:
    friend class thread;

    bool is_taken(shared_mutex::result how) noexcept {
        if (how == shared_mutex::result::taken_abandoned) state.note_abandoned();
        return how != shared_mutex::result::not_taken;
    }
    void hand_on(bool abandoned) noexcept;

    void note_taken() noexcept;
    void note_freed() noexcept;

    thread* owner_ = nullptr;  // has a reference; written by the owner only
    bool unlisted_ =
        false;  // under the owner's lock: the owner has ended, while this object is being deleted
};

// A call that a thread makes in its alertable waits: an APC.
struct queued_call {
    void (*run)(const queued_call&);
    void (*function)();
    std::uintptr_t arguments[3];
};

// A place in a thread's queue of calls. A timer has one for its routine, so a timer that is due needs no memory.
struct call_place : detail::list_links<call_place> {
    queued_call call{};
    bool is_allocated = false;  // for one call: deleted with it
    bool is_queued = false;     // under the thread's lock
};

// What SetThreadPriority() and its relatives have set, and what is known of the thread (thread_properties.cpp).
struct thread_properties {
    word_lock<> lock;       // of what follows
    int system_number = 0;  // on Linux, while the thread runs; else 0
    int priority = THREAD_PRIORITY_NORMAL;
    int usual_nice = 0;  // with which the thread began
    bool boost_disabled = false;
    DWORD ideal_processor = 0;
    std::uintptr_t affinity = 0;  // set before the thread began; 0: none
    std::u16string description;
    std::uint64_t created = 0;  // file times
    std::uint64_t ended = 0;
    std::uint64_t kernel_time = 0;  // at the end, in units of 100 ns
    std::uint64_t user_time = 0;

    // Called by the thread itself.
    void thread_begins() noexcept;
    void thread_ends() noexcept;
};

class thread final : public object, public detail::list_links<thread> {
public:
    // Makes the object of a thread that has not been created yet. The thread is suspended. A stack size of 0 stands for
    // the usual size.
    thread(LPTHREAD_START_ROUTINE function, void* argument, std::size_t stack_size,
           bool is_reservation) noexcept;
    // Makes the object of the calling thread, which something else has created.
    thread() noexcept;
    ~thread() override;

    // The thread with this number, with a reference, or null.
    static thread* find(DWORD its_id) noexcept;

    const DWORD id;
    tocsin::manual_reset_event ended;   // set at the end: waits for the handle wait for it
    tocsin::manual_reset_event called;  // set while a call is queued: thread-3
    thread_properties properties;

    DWORD exit_code() const noexcept {
        // no order: `ended` publishes it
        return code_.load(std::memory_order_relaxed);
    }
    void set_exit_code(DWORD code) noexcept {
        has_code_ = true;
        code_.store(code, std::memory_order_relaxed);  // no order: `ended` publishes it
    }

    // Of a thread that has not begun. The results are those of SuspendThread() and ResumeThread(). The thread begins
    // when it has been resumed as often as it was suspended. It is made suspended once.
    DWORD suspend() noexcept;
    DWORD resume() noexcept;
    // Ends a thread that has not started. False: it has started, and not ended.
    bool end_unstarted(DWORD code) noexcept;

    // Queues a call. False: the thread has ended.
    bool queue(const queued_call& call);
    // Queues a call in this place, unless one is queued there already. False: the thread has ended.
    bool queue(const queued_call& call, call_place& place) noexcept;
    // Takes back the call that is queued in this place, if there is one.
    void take_back(call_place& place) noexcept;
    bool has_ended() noexcept;
    // The last thing that a thread does here.
    void finish() noexcept;
    // For the thread itself. Takes the oldest queued call, for the caller to run. False: none is queued.
    bool take_call(queued_call& taken) noexcept;
    // For the thread itself. Runs the queued calls, and those that they queue. Returns whether there were any.
    bool run_queued();
    // For the thread itself, during an alertable wait for all: from now on, a call that is queued requests this stop.
    // Null ends that. False: a call is queued already.
    bool stop_when_called(std::stop_source* stop) noexcept;

private:
    friend class mutex_object;
    enum class state : std::uint8_t { suspended, started, ended };

    static void* main(void* self);
    void be_listed() noexcept;
    void abandon_mutexes() noexcept;
    void remove(call_place& place) noexcept;  // under the lock
    void forget_calls() noexcept;             // under the lock

    const LPTHREAD_START_ROUTINE function_;
    void* const argument_;
    const std::size_t stack_size_;
    const bool is_reservation_;  // else the stack has at least the usual size
    std::atomic<DWORD> code_{STILL_ACTIVE};
    bool has_code_ = false;  // for the thread itself
    word_lock<> lock_;       // of what follows
    state state_ = state::suspended;
    DWORD suspensions_ = 1;  // while suspended
    detail::intrusive_list<mutex_object> mutexes_;
    detail::intrusive_list<call_place> calls_;
    std::stop_source* stop_ = nullptr;
};

// Sets the size of the stack of a thread that is to be made, as CreateThread() does.
void set_thread_stack(pthread_attr_t& how, std::size_t wanted, bool is_reservation) noexcept;

// The object of the calling thread. For a thread that this layer has not created, the first call makes the object, and
// throws std::bad_alloc if there is no memory, or no pthread key.
thread& current_thread();
// Null: the thread has no object yet, so it owns no mutex.
thread* current_thread_or_null() noexcept;
// The number of the calling thread. Needs no object.
DWORD id_of_this_thread() noexcept;
// A new handle of the calling thread, or null (the error is set).
HANDLE handle_of_this_thread() noexcept;

// Calls `act(thread&)` for the thread that the handle names, which may be the pseudo-handle of the calling thread.
template <class Result, class Act>
Result with_thread(HANDLE handle, Result failed, Act act) noexcept {
    return without_exceptions<Result>(failed, [&]() -> Result {
        if (handle == current_thread_handle) return act(current_thread());
        const handle_use use(handle);
        auto* const found = of_kind<thread>(use, kind::thread, 0);
        return found != nullptr ? act(*found) : failed;
    });
}

}  // namespace tocsin::win32
