// What watches times and descriptors for coroutines, which have no thread of their own to do it while they wait. The
// argument: service.cpp.
#pragma once

#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

// What is to be done when the time or the descriptor comes.
class completion {
public:
    completion() noexcept = default;
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;
    virtual ~completion() = default;

    // Under the service's lock: whether there is anything to do. Exists until `act` then.
    virtual bool claim() noexcept = 0;
    // Under no lock, once.
    virtual void run() noexcept = 0;

private:
    friend class completions;
    completion* next_due_ = nullptr;
};

// One errand at a time. One thread watches the system clock, another all others. Start before the first set(), which does nothing for a deadline that is never.
class timer : public completion {
public:
    // What is watched from the first call on takes a thread. Throws std::system_error if there is none to be had.
    static void start(const deadline& when);

    void set(const deadline& when) noexcept;
    // Afterwards it is not claimed any more.
    void cancel() noexcept;

protected:
    // Under the service's lock, when its deadline has passed: another one, watched by the same thread, that it is to
    // wait for now, or null.
    virtual const deadline* postponed() noexcept { return nullptr; }

private:
    friend class timer_heap;
    friend class timer_thread;

    deadline when_ = deadline::never();
    std::int64_t key_ = 0;  // nanoseconds on the clock that watches it
    bool is_set_ = false;
    // In the heap: the first child, the next sibling, and whose first child or next sibling it is.
    timer* child_ = nullptr;
    timer* next_ = nullptr;
    timer* previous_ = nullptr;
};

class poll_request : public completion {
public:
    // The same for descriptors. Throws std::system_error, or std::bad_alloc if so many have not been watched before.
    void set(std::span<platform::poll_entry> what);
    // Afterwards they may be closed. Costs a switch to the thread that polls and back, unless the errand was claimed.
    void cancel() noexcept;

    // Of the poll that ended it, and which of the descriptors it was, if one.
    int error() const noexcept { return error_; }
    std::size_t culprit() const noexcept { return culprit_; }

private:
    friend class poll_thread;

    std::span<platform::poll_entry> what_;
    int error_ = 0;
    std::size_t culprit_ = platform::no_culprit;
    bool is_set_ = false;
    std::size_t place_ = 0;  // in the table that is polled, if `is_polled_`
    bool is_polled_ = false;
    poll_request* next_ = nullptr;
    poll_request* previous_ = nullptr;
};

}  // namespace tocsin::core
