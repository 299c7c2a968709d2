// Which threads wait on what, right now: for a log, a debugger, a test.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tocsin {

// One parked wait. A thread that has not queued yet, or has been released, is not parked. A wait that timed out or was
// stopped is parked until it has left the queue. Not listed are the members of a wait_set, the thread that sleeps in
// it, and views (pollable).
struct parked_wait {
    enum class kind : std::uint8_t { event, address, lock };

    kind what;
    const void* address;                          // of the event, the object, the lock's word
    unsigned bit;                                 // of a lock
    std::uint64_t thread;                         // as the system numbers it (Linux: the kernel's thread id)
    std::chrono::steady_clock::time_point since;  // when it was parked
    std::string name;                             // given by name_address, or empty
};

// How many waits of any kind are parked on this address. Cost: for each of the 66 kinds (event, address, 64 lock bits)
// it locks one bucket while it walks through the queue there.
[[nodiscard]] TOCSIN_API std::size_t waiting_on(const volatile void* address) noexcept;

// All parked waits of the process. Each queue is read in one step, but not all queues together. May throw
// std::bad_alloc. Cost: a lock for each of some thousand buckets, so it is not for a hot path.
[[nodiscard]] TOCSIN_API std::vector<parked_wait> parked_waits();

// The same as text, one line for each wait: "event 0x7ffe... 'shutdown': thread 4711, for 12.3 s". The address is
// written as printf's %p writes it here.
[[nodiscard]] TOCSIN_API std::string describe_parked_waits();

// Gives an event, object or lock a name for the two functions above, until it is given another. An empty name removes
// it; do so before the address is used for something else. May throw std::bad_alloc.
TOCSIN_API void name_address(const volatile void* address, std::string name);

}  // namespace tocsin
