// Deadlines of coroutines. The argument: timer_thread.cpp.
#pragma once

#include "core/async/completion.hpp"

#include <tocsin/deadline.hpp>

#include <cstdint>

namespace tocsin::core {

// Holds one deadline at a time. One thread serves the timers on the system clock, another those on all other clocks.
class timer : public completion {
public:
    // Starts the thread that serves such a deadline, once. Must come before the first set(). Throws std::system_error
    // if the system has no thread.
    static void start(const deadline& when);

    // Does nothing if the deadline is never.
    void set(const deadline& when) noexcept;
    // Afterwards it is not claimed any more.
    void cancel() noexcept;

protected:
    // For claim(), which then returns false: the timer is due again when `later` has passed, on a clock that the same
    // thread serves.
    void postpone(const deadline& later) noexcept {
        when_ = later;
        is_postponed_ = true;
    }

private:
    friend class timer_heap;
    friend class timer_thread;

    // From set() on, under the lock of the thread that serves it:
    deadline when_ = deadline::never();
    std::int64_t due_ = 0;  // nanoseconds on the clock of that thread
    bool is_set_ = false;
    bool is_postponed_ = false;
    // Only set() writes these, so cancel() reads them without the lock.
    bool has_thread_ = false;
    bool is_on_system_clock_ = false;
    // In the heap, under that lock: the first child; the next sibling; the node whose first child or next sibling this
    // one is.
    timer* child_ = nullptr;
    timer* next_ = nullptr;
    timer* previous_ = nullptr;
};

}  // namespace tocsin::core
