// SPDX-License-Identifier: Apache-2.0
// Everything that is due at a time: waitable timers, timers of timer queues, timers of the thread pool. Two background
// threads serve them, one for each clock. Why it is correct: timers.cpp.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/event.hpp>
#include <tocsin/win32.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace tocsin::win32 {

using ticks = std::int64_t;  // of 100 ns

inline constexpr ticks ticks_per_second = 10'000'000;
inline constexpr ticks ticks_per_millisecond = 10'000;
inline constexpr ticks ticks_to_1970 = 11'644'473'600 * ticks_per_second;  // from 1601

class timed;

// One clock's timers, and the thread that serves them.
class timer_queue {
public:
    explicit timer_queue(bool absolute) noexcept : absolute_(absolute) {}

    using map = std::multimap<ticks, timed*>;

    ticks now() const noexcept;
    deadline at(ticks when) const noexcept;

    // These are called under the lock.
    bool start_thread() noexcept;
    map::iterator add(map::node_type&& timer) noexcept {
        const map::iterator added = timers_.insert(std::move(timer));
        if (added == timers_.begin()) changed_.set();  // timers-3
        return added;
    }
    map::node_type remove(map::iterator at) noexcept { return timers_.extract(at); }

private:
    static void* serve(void* self) noexcept;
    deadline fire_due(wake_list& freed) noexcept;

    const bool absolute_;
    bool started_ = false;
    map timers_;
    tocsin::auto_reset_event changed_;
};

struct all_timers {
    std::mutex lock;
    timer_queue relative{false};
    timer_queue absolute{true};
};
all_timers& timers();

// Something that is due, once or periodically. Its place in the queues is allocated with it, so setting it needs no
// memory. run_out() must have been called under the lock before the destructor of this class (timers-2).
class timed {
public:
    timed();
    timed(const timed&) = delete;
    timed& operator=(const timed&) = delete;
    virtual ~timed() = default;

    // Both clocks' threads. False: one can't be started.
    static bool start_threads() noexcept;

    // These are called under the lock.
    // Sets it, also if it is set. `due`, as Windows has it: negative for a time from now, else from 1601 on. If it is
    // due already, it fires at once. False: the clock's thread can't be started.
    bool start(ticks due, ticks period, wake_list& freed) noexcept;
    void run_out() noexcept;
    bool is_set() const noexcept { return queue_ != nullptr; }

protected:
    // It is due. Called under the lock. False: it is not to be due again.
    virtual bool fire(wake_list& freed) noexcept = 0;

private:
    friend class timer_queue;
    void be_due(ticks now, wake_list& freed) noexcept;

    timer_queue* queue_ = nullptr;  // null: it does not run
    timer_queue::map::iterator at_{};
    timer_queue::map::node_type node_;  // while it does not run
    ticks period_ = 0;
};

std::uint64_t file_time_now() noexcept;  // from 1601 on
inline ticks ticks_of(const FILETIME& time) noexcept {
    return static_cast<ticks>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
}

}  // namespace tocsin::win32
