// SPDX-License-Identifier: Apache-2.0
// Which threads are waiting at this moment, and for what: for a log, a debugger, a test.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tocsin {

// One parked wait: a wait that is in the queue of what it waits for, or sleeps. A thread that has not queued yet, or
// has been released, is not parked. (But a thread that waits for a lock stays parked until it has the lock or gives
// up.) A wait that timed out or was stopped stays parked until it has left the queue, except at descriptors, channels
// and custom sources, where the wait is no longer shown once it has ended. A wait for several sources is parked once
// for each of them that is an event, a latch, a barrier, a semaphore, a condition, a channel's send or receive, a
// custom source (source.hpp) or a descriptor. That holds for coroutines and operations, too, whether our threads or a
// driver watch their descriptors. A thread that sleeps in a wait_set is parked once for the set, and once for each
// member that is an event or the like. A thread that waits in a group_commit is parked there until its flush has ended.
// A wait for an object that processes share (shared_event.hpp) is shown in the process that waits, at the address that
// the object has there, and until the wait has returned.
// The functions below do not show timers, the descriptors in a wait_set, or pollables. If the process has several
// copies of the library, each copy shows all of these waits, with an exception: of those for descriptors, channels,
// custom sources and objects that processes share, and in wait_sets and group_commits, it shows the ones that were made
// with this copy.
struct parked_wait {
    // What a wait is for. `source`: for a custom source (source.hpp), an object that processes share, a
    // wait_set or a group_commit.
    enum class kind : std::uint8_t {
        event,
        address,
        lock,
        semaphore,
        condition,
        latch,
        barrier,
        source,
        descriptor
    };

    kind what;  // what this one is for
    // What `what` is called in the text and in the JSON: "event", "latch" and so on. If `what` is `source`: what the
    // source's label() says, such as "channel receive", or "source" (source.hpp), or "shared_lock", "wait_set" or
    // "group_commit".
    // Never freed.
    const char* type;
    const void*
        address;   // of the event, latch, channel ...; the lock's word; a barrier's first or second byte
    unsigned bit;  // of a lock: which bit of the word; of a descriptor, which has no address: its number
    std::uint64_t thread;  // as the system numbers it (Linux: the kernel's thread id)
    // In a checked build, for a lock or the event of a win32.h mutex: the thread that has it, or 0 if unknown. In other
    // builds: 0. On Linux the library may not know the number of a thread that has never waited, because taking a lock
    // that nobody contends makes no system call. If the process has several copies of the library, each copy knows only
    // locks that checked code has taken with that copy. If such a lock was then freed with another copy, or by code
    // that is not checked, the thread that took it first may still seem to hold it.
    std::uint64_t owner;
    // When it was parked. For a coroutine or an operation, up to 10 ms too early.
    std::chrono::steady_clock::time_point since;
    std::string name;  // given by name_address(), or empty
};

// Returns how many waits of any kind are parked on this address. Cost: a short lock for each of 68 queues (of events,
// addresses, semaphores, conditions, and 64 lock bits) in the library's table of waiters, and for each of 64 lists of
// waits for other sources. Each lock is held while the waits of its queue or list are counted. A member of a wait_set
// does not count at its own address; the thread in the set counts at the set's.
[[nodiscard]] TOCSIN_API std::size_t waiting_on(const volatile void* address) noexcept;

// Returns all parked waits of the process. Each queue is read in one step, but not all queues at the same time. May
// throw std::bad_alloc. Cost: a lock for each of some thousand buckets, so do not call it on a hot path.
[[nodiscard]] TOCSIN_API std::vector<parked_wait> parked_waits();

// Returns the same as text, one line for each wait, the oldest first: "event 0x7ffe... 'shutdown': thread 4711, for
// 12.300 s". The address is written as printf's %p writes it on this system. If the owner of a lock is known
// (parked_wait::owner), the line ends with ", held by thread 4712". A descriptor is written as "descriptor 5". At the
// end there is a line "deadlock: ..." for each of the deadlocks(). A control character in a name is written as a
// question mark.
[[nodiscard]] TOCSIN_API std::string describe_parked_waits();

// Returns the same as one JSON object (RFC 8259), whose text has no line breaks:
//     {"parked_waits":[{"type":"lock","address":"0x7ffe...","bit":0,"name":"cache","thread":4711,"owner":4712,
//      "seconds":12.300}],"deadlocks":[[4711,4712]]}
// "bit" is there for locks only, "name" and "owner" if they are known. A descriptor has "descriptor", its number, in
// place of "address". A byte of a name that is not UTF-8 is written as the replacement character, "\ufffd".
[[nodiscard]] TOCSIN_API std::string parked_waits_as_json();

// Returns the cycles among `waits`. In a cycle, each thread waits for a lock that the next thread has, and the last
// thread waits for a lock of the first. A mutex of win32.h counts as a lock if its waiter waits for nothing else. Waits
// with a deadline count, too. Only checked builds know the owners of locks, so in other builds the result is empty.
// With several copies of the library, parked_wait::owner says which locks the result covers.
[[nodiscard]] TOCSIN_API std::vector<std::vector<std::uint64_t>> deadlocks(
    const std::vector<parked_wait>& waits);

// Names what is at an address: an event, a channel, a lock's word, an object of yours. The functions above that list
// waits show the name until another name replaces it. An empty name removes it. Remove a name before its address is
// used for something else. May throw std::bad_alloc.
TOCSIN_API void name_address(const volatile void* address, std::string name);

}  // namespace tocsin
