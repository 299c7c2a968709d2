// SPDX-License-Identifier: Apache-2.0
// Pools of threads, and the objects whose callbacks run there: registered waits, timers of timer queues, work items,
// and the objects of CreateThreadpoolWork() and its relatives. Why it is correct: pool.cpp.
#pragma once

#include "object.hpp"

#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/win32.h>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tocsin::win32 {

// What a thread of a pool is to run. It is in one queue at most.
class pool_task : public detail::list_links<pool_task> {
public:
    pool_task() noexcept = default;
    pool_task(const pool_task&) = delete;
    pool_task& operator=(const pool_task&) = delete;
    virtual ~pool_task() = default;

private:
    friend class pool;
    virtual void run() = 0;  // by a thread of the pool, under no lock
};

// Each thread of a pool has a reference to it, too.
class pool : public counted<pool> {
public:
    static constexpr std::size_t usual_max = 500;  // as on Windows
    static constexpr unsigned priorities = 3;      // 0 is served first

    // `max` threads at most. If `keeps_threads`, no thread ends while the pool has users.
    pool(std::size_t max, bool keeps_threads) noexcept : keeps_threads_(keeps_threads), max_(max) {}

    // The process' own pools, which are never destroyed.
    static pool& usual();         // for callbacks without a pool of their own
    static pool& wait_thread();   // one thread: WT_EXECUTEINWAITTHREAD
    static pool& timer_thread();  // one thread: WT_EXECUTEINTIMERTHREAD
    static pool& persistent();    // threads that do not end: WT_EXECUTEINPERSISTENTTHREAD

    // Before anything is posted. False: the pool has no thread, and none can be started.
    bool join() noexcept;
    void leave() noexcept;
    // For a user of the pool.
    void post(pool_task& task, unsigned priority) noexcept;

    void set_max(std::size_t threads) noexcept;
    // Starts threads until there are so many. False: not all could be started.
    bool set_least(std::size_t threads) noexcept;
    void set_stack_size(std::size_t bytes) noexcept;
    std::size_t stack_size() noexcept;
    // Whether a thread is free for another callback, or can be made.
    bool has_room() noexcept;

private:
    friend class counted<pool>;
    ~pool() = default;
    static pool& of_the_process(std::size_t max, bool keeps_threads);
    static void* serve(void* self);
    pool_task* take() noexcept;
    pool_task* next() noexcept;    // under the lock
    bool start_thread() noexcept;  // under no lock; the caller has counted the thread
    std::size_t least() const noexcept { return least_ > 1 ? least_ : 1; }
    bool is_over() const noexcept { return users_ == 0 && !is_of_the_process_; }

    const bool keeps_threads_;
    bool is_of_the_process_ = false;
    std::mutex lock_;  // of what follows
    detail::intrusive_list<pool_task> queues_[priorities];
    std::size_t queued_ = 0;
    std::size_t idle_ = 0;
    std::size_t threads_ = 0;
    std::size_t users_ = 0;
    std::size_t least_ = 0;
    std::size_t max_;
    std::size_t stack_size_ = 0;  // 0: the system's
    tocsin::counting_semaphore<> work_{0};
};

class pooled;

// What PTP_CALLBACK_INSTANCE points to. A callback is given it, to ask for something that is done when it has returned.
class callback_instance {
public:
    explicit callback_instance(pooled& whose) noexcept : of(whose) {}

    static callback_instance& at(PTP_CALLBACK_INSTANCE instance) noexcept {
        return *reinterpret_cast<callback_instance*>(instance);
    }
    PTP_CALLBACK_INSTANCE opaque() noexcept { return reinterpret_cast<PTP_CALLBACK_INSTANCE>(this); }
    void at_end() noexcept;

    pooled& of;
    bool counts = true;  // until DisassociateCurrentThreadFromCallback()
    PCRITICAL_SECTION section = nullptr;
    HANDLE mutex = nullptr;
    HANDLE semaphore = nullptr;
    DWORD permits = 0;
    HANDLE event = nullptr;
};

// An object whose callback runs in a pool. It has been asked to run `pending` times, and runs `running` times.
class pooled : public object, private pool_task {
public:
    // Asks for one more call.
    void submit() noexcept;
    // Takes back the calls that have not begun. Returns how many these were.
    std::size_t cancel() noexcept;
    // Until no call is pending or running.
    void wait_until_idle() noexcept { idle_.wait(); }
    bool runs_here() const noexcept { return running_here() == this; }
    // Whose callback this thread runs, or null.
    static const pooled* running_here() noexcept;
    bool has_room() noexcept { return in_.has_room(); }
    bool is_in(const pool& which) const noexcept { return &in_ == &which; }
    // Counts a running call until end_running(): a call is on its way here, and not submitted yet.
    void begin_running() noexcept;
    // Also for DisassociateCurrentThreadFromCallback().
    void end_running() noexcept;
    // If a call is pending or running, keeps the use of this event's handle, and sets the event once none is. If not,
    // sets it at once. Returns whether a call is pending or running. `done` may be empty.
    bool tell_when_idle(handle_use done) noexcept;

    // Ends what submits: a wait, or a timer. Later, neither submits any more.
    virtual void stop() noexcept {}

protected:
    // The pool must have been joined. Takes over the joining, and keeps the pool.
    pooled(kind its_kind, pool& in, unsigned priority) noexcept
        : object(its_kind), in_(in), priority_(priority) {
        in_.keep();
    }
    ~pooled() override {
        in_.leave();
        in_.drop();
    }

    // A call. Runs in a thread of the pool.
    virtual void call(callback_instance& here) = 0;

private:
    void run() final;
    bool begin() noexcept;
    void be_idle(wake_list& freed, handle_use& done) noexcept;  // under the lock
    static void tell(wake_list& freed, const handle_use& done) noexcept;

    pool& in_;
    const unsigned priority_;  // 0 to pool::priorities - 1
    tocsin::manual_reset_event idle_{true};
    word_lock<> lock_;  // of what follows
    bool queued_ = false;
    std::size_t pending_ = 0;
    std::size_t running_ = 0;
    handle_use done_;  // of an event
};

// Makes a pooled object. Null: the pool has no thread, and can't start one. Throws std::bad_alloc.
template <class Pooled, class... Arguments>
Pooled* new_pooled(pool& in, Arguments&&... arguments) {
    if (!in.join()) return nullptr;
    struct joined {
        pool* in;
        ~joined() {
            if (in != nullptr) in->leave();
        }
    } unless_made{&in};
    auto* const made = new Pooled(in, std::forward<Arguments>(arguments)...);
    unless_made.in = nullptr;
    return made;
}

}  // namespace tocsin::win32
