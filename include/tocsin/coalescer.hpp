// Waking a consumer at most once an interval, whatever the rate of signals.
//
//     tocsin::auto_reset_event dirty;                       // producers: dirty.set()
//     tocsin::coalescer frames(16ms);
//     while (tocsin::wait_any(dirty, shutdown).index == 0) {
//         frames.start();
//         redraw();
//         frames.pause();                                   // what redraw() has left of the 16 ms
//     }
//
// The consumer waits for nothing while it pauses. A signal then only leaves its event set, without a system call and
// without a wake-up. The wait after the pause finds all of them: nothing is lost, and a signal waits for an interval at
// most.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/status.hpp>

#include <chrono>

namespace tocsin {

// Belongs to one consumer: two threads must not use it at a time. Owns nothing. Goes with any wait: wait_any(), a
// wait_set, an event's own wait().
class coalescer {
public:
    // Zero or less: no pause. Rounded up to a nanosecond; one that is out of range lasts for ever.
    template <class Rep, class Period>
    explicit coalescer(std::chrono::duration<Rep, Period> interval) noexcept
        : interval_(detail::nanoseconds_up(interval)) {}

    // After a wait: the interval begins. One look at the clock.
    void start() noexcept { next_ = deadline(interval_); }

    // Before the next wait: sleeps until the interval is over, then returns `signaled`. Returns at once if it is over
    // already, or if there was no start(). A deadline that passes or a stop that is requested before ends the pause
    // early (`timed_out`, `stopped`). Takes nothing from anything. Never allocates or throws.
    TOCSIN_API wait_status pause(const limits& how = {}) const noexcept;

private:
    std::chrono::nanoseconds interval_;
    deadline next_ = std::chrono::nanoseconds(0);  // when the pause is over
};

}  // namespace tocsin
