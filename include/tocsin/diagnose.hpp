// Who waits on what, right now: for a log, a debugger, a test.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tocsin {

// One parked wait. A thread that has not queued yet, or has been released, is not parked; one that timed out
// or was stopped still is until it has left the queue. Members of a wait_set and views (pollable) are no waits,
// nor is the thread that sleeps in a set.
struct parked_wait {
    enum class kind : std::uint8_t { event, address, lock };

    kind what;
    const void* address;                          // of the event, the object, the lock's word
    unsigned bit;                                 // of a lock
    std::uint64_t thread;                         // as the system numbers it (Linux: the kernel's thread id)
    std::chrono::steady_clock::time_point since;  // when it was parked
    std::string name;                             // given by name_address, or empty
};

// How many waits are parked on this address, of any kind. Locks one bucket for the length of its queue.
[[nodiscard]] TOCSIN_API std::size_t waiting_on(const volatile void* address) noexcept;

// All parked waits of the process. A picture in pieces: each queue is read in one step, the whole is not.
// May throw std::bad_alloc. Costs a lock for each of some thousand buckets: not for a hot path.
[[nodiscard]] TOCSIN_API std::vector<parked_wait> parked_waits();

// The same as text, a line a wait: "event 0x7ffe... 'shutdown': thread 4711, for 12.3 s". The address is written as
// printf's %p does here.
[[nodiscard]] TOCSIN_API std::string describe_parked_waits();

// Gives an event, object or lock a name for the two above, until it is given another; an empty one takes it
// away. Do so before the address is used for something else. May throw std::bad_alloc.
TOCSIN_API void name_address(const volatile void* address, std::string name);

}  // namespace tocsin
