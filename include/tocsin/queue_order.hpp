// SPDX-License-Identifier: Apache-2.0
// In which order the waiters of a semaphore or an auto-reset event are served.
//
//     tocsin::counting_semaphore<8, tocsin::queue_order::priority> permits(8);
//     tocsin::auto_reset_priority_event ready;
//
// docs/priorities.md says how tocsin learns how urgent a thread is.
#pragma once

#include <cstdint>

namespace tocsin {

enum class queue_order : std::uint8_t {
    // First in, first out.
    arrival,
    // The most urgent thread first, as POSIX orders the waiters of a semaphore. Threads that are equally urgent are
    // served in the order of arrival. A wait for all, a coroutine and an operation queue as ordinary threads.
    // Exceptions:
    // - A member of a wait_set and a pollable join at the end.
    // - A wait for several permits that has begun to collect them keeps its place in front.
    // - A wait that queues during the moment in which a release or a set has freed the queue's lock, because more than
    //   64 waits for all or members of wait_sets are queued, joins at the end.
    // Cost: each wait that blocks asks the system for the priority of its thread. To queue costs 50 to 200 ns, under a
    // short lock, for each waiter that is less urgent.
    priority,
};

}  // namespace tocsin
