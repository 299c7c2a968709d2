// Which threads wait on what, right now: for a log, a debugger, a test.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tocsin {

// One parked wait: a wait that is in the queue of what it waits for. A thread that has not queued yet, or has been
// released, is not parked. A wait that timed out or was stopped stays parked until it has left the queue. The functions
// below neither count nor list the members of a wait_set, a thread that sleeps in a wait_set, or views (pollable).
struct parked_wait {
    enum class kind : std::uint8_t { event, address, lock, semaphore };

    kind what;
    const void* address;   // of the event, the object, the semaphore, or the lock's word
    unsigned bit;          // if `what` is a lock: which bit of the word
    std::uint64_t thread;  // as the system numbers it (Linux: the kernel's thread id)
    std::chrono::steady_clock::time_point since;  // when it was parked
    std::string name;                             // given by name_address(), or empty
};

// Returns how many waits of any kind are parked on this address. Cost: 67 short locks, one for each kind of wait
// (event, address, semaphore, 64 lock bits). Each kind has a queue in the library's table of waiters, and the call
// counts the waits in one queue under each lock.
[[nodiscard]] TOCSIN_API std::size_t waiting_on(const volatile void* address) noexcept;

// Returns all parked waits of the process. Each queue is read in one step, but not all queues at the same time. May
// throw std::bad_alloc. Cost: a lock for each of some thousand buckets, so do not call it on a hot path.
[[nodiscard]] TOCSIN_API std::vector<parked_wait> parked_waits();

// Returns the same as text, one line for each wait: "event 0x7ffe... 'shutdown': thread 4711, for 12.3 s". The address
// is written as printf's %p writes it on this system.
[[nodiscard]] TOCSIN_API std::string describe_parked_waits();

// Names an event, semaphore, object or lock. parked_waits() and describe_parked_waits() show the name until another
// name replaces it. An empty name removes it. Remove a name before its address is used for something else. May throw
// std::bad_alloc.
TOCSIN_API void name_address(const volatile void* address, std::string name);

}  // namespace tocsin
