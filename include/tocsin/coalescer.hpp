// SPDX-License-Identifier: Apache-2.0
// Wakes a consumer at most once per interval, however often other threads signal.
//
//     tocsin::auto_reset_event dirty;                       // producers: dirty.set()
//     tocsin::coalescer frames(16ms);
//     while (tocsin::wait_any(dirty, shutdown).index == 0) {
//         frames.start();
//         redraw();
//         frames.pause();                                   // sleeps for what redraw() has left of the 16 ms
//     }
//
// While the consumer works or pauses, it waits for no event. So a signal (a producer's set()) makes no system call and
// wakes nobody. The wait after the pause finds all events that were set by then. So no signal is lost, and the pause
// delays a signal by one interval at most.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/status.hpp>

#include <chrono>

namespace tocsin {

// Belongs to one consumer: two threads must not use it at the same time. Owns nothing. Works with any wait: wait_any(),
// a wait_set, an event's own wait().
class coalescer {
public:
    // The interval is rounded up to whole nanoseconds. If it is zero or less, there is no pause. An interval that is
    // out of range never ends.
    template <class Rep, class Period>
    explicit coalescer(std::chrono::duration<Rep, Period> interval) noexcept
        : interval_(detail::nanoseconds_up(interval)) {}

    // Begins the interval. Call it after a wait. Cost: one look at the clock.
    void start() noexcept { next_ = deadline(interval_); }

    // Sleeps until the interval is over, and returns `signaled`. Call it before the next wait. Returns at once if the
    // interval is over already, or if start() was never called. A deadline or a stop may end the pause early
    // (`timed_out`, `stopped`). The pause takes no signal: the next wait finds all signals. Ignores the spin policy.
    // Never allocates or throws.
    // Cost: a look at the clock. If it sleeps, a few more looks, and one system call to sleep.
    TOCSIN_API wait_status pause(const limits& how = {}) const noexcept;

private:
    std::chrono::nanoseconds interval_;
    deadline next_ = std::chrono::nanoseconds(0);  // when the pause is over
};

}  // namespace tocsin
