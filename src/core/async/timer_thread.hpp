// SPDX-License-Identifier: Apache-2.0
// Deadlines and timers of asynchronous waits. Why it is correct: timer_thread.cpp.
#pragma once

#include "core/async/due_call.hpp"
#include "core/async/service.hpp"
#include "core/sync/timer_queue.hpp"

#include <tocsin/deadline.hpp>

#include <cstdint>
#include <utility>

namespace tocsin::core {

// Holds one deadline at a time. One thread of the library serves the timers on the system clock, and another serves
// those on all other clocks, unless a driver does.
class timer : public due_call, timer_entry {
public:
    // If `by` is null, starts the thread that serves such a deadline, if that thread isn't running. Must be called
    // before the first set(). Throws std::system_error if the system can't start a thread.
    static void start(const deadline& when, service* by = nullptr);

    // Does nothing if the deadline is never. A null `by` means the library's threads. The service must exist until
    // cancel().
    void set(const deadline& when, service* by = nullptr) noexcept;
    // After cancel(), nobody claims the timer any more, and the service knows nothing of it.
    void cancel() noexcept;

protected:
    // Called by claim(), which then returns false. The timer is due again when `later` has passed. If the former
    // deadline was on the system clock, `later` must be, too; otherwise it must not be.
    void postpone(const deadline& later) noexcept {
        when_ = later;
        is_postponed_ = true;
    }

private:
    friend class served_timers;

    timer_service* by_ = nullptr;  // null: not set. Only set() and cancel() use it.
};

// The timers on one clock, under the lock of the service that has them.
class served_timers {
public:
    explicit constexpr served_timers(timer_queue::clock which) noexcept : queue_(which) {}

    // Returns whether the server must be told, so that it looks at the timers earlier than it is going to. After it was
    // told, it need not be told of a timer that is due later.
    bool insert(timer& one, const deadline& when) noexcept {
        queue_.insert(one, when);
        if (!timer_queue::is_due_before(one, looks_at_)) return false;
        looks_at_ = queue_.first_due();
        return true;
    }
    // Does nothing if the timer isn't in a queue.
    void remove(timer& one) noexcept { queue_.remove(one); }

    // Takes each due timer out of the queue, and then claims it. A timer is due if its clock has reached its deadline,
    // and if the deadline is not after `now` (nanoseconds on the queue's clock).
    void claim_due(due_calls& due, std::int64_t now = timer_queue::no_limit) noexcept {
        while (timer_entry* const entry = queue_.take_due(now)) {
            auto& one = static_cast<timer&>(*entry);
            due.claim(one);
            // The timer exists even if claim() has refused: nobody destroys it before cancel(), which takes the lock
            // that is held here.
            if (std::exchange(one.is_postponed_, false)) queue_.insert(one, one.when_);
        }
    }

    // When the server has to look at the timers again. It undertakes to look then, or earlier.
    deadline next() noexcept {
        looks_at_ = queue_.first_due();
        return queue_.next();
    }
    // The server undertakes to look again, or to call next(), before it sleeps. Until then, it need not be told of any
    // timer.
    void will_look() noexcept { looks_at_ = timer_queue::at_once; }

    // The clock of a timer that is set. Postponing does not change it.
    static timer_queue::clock clock_of(const timer& one) noexcept { return timer_queue::clock_of(one.when_); }

private:
    timer_queue queue_;
    // When the server looks at the timers at the latest, on the queue's clock. A timer that is due earlier than this is
    // one of which the server has been told, or is being told.
    detail::plain<std::int64_t> looks_at_{timer_queue::no_limit};
};

}  // namespace tocsin::core
