// Deadlines of coroutines. Why it is correct: timer_thread.cpp.
#pragma once

#include "core/async/completion.hpp"
#include "core/sync/timer_queue.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

namespace tocsin::core {

// Holds one deadline at a time. One thread serves the timers on the system clock. Another serves those on all other
// clocks.
class timer : public completion, timer_entry {
public:
    // Starts the thread that serves such a deadline, if it isn't running. Must be called before the first set(). Throws
    // std::system_error if the system can't start a thread.
    static void start(const deadline& when);

    // Does nothing if the deadline is never.
    void set(const deadline& when) noexcept;
    // Afterwards nobody claims the timer any more.
    void cancel() noexcept;

protected:
    // Called by claim(), which then returns false. The timer is due again when `later` has passed. The same thread must
    // serve the clock of `later`.
    void postpone(const deadline& later) noexcept {
        when_ = later;
        is_postponed_ = true;
    }

private:
    friend class timer_thread;

    detail::plain<bool> is_postponed_{false};  // under the lock of the thread that serves it
    // Only set() writes these, so cancel() reads them without the lock.
    bool has_thread_ = false;
    bool is_on_system_clock_ = false;
};

}  // namespace tocsin::core
