// SPDX-License-Identifier: Apache-2.0
// What a machine does to threads at bad moments: signals, moves to other processors, other priorities.
#pragma once

#include "book.hpp"
#include "crew.hpp"

#include <atomic>
#include <cstdint>

namespace soak {

struct disturbance_counts {
    std::atomic<std::uint64_t> moves{0};       // of single threads to other processors
    std::atomic<std::uint64_t> removals{0};    // of all threads from one processor, as if it was unplugged
    std::atomic<std::uint64_t> priorities{0};  // changes of a thread's nice value
    std::atomic<std::uint64_t> real_time{0};   // threads made real-time for a moment
};
disturbance_counts& disturbed();

// Whether this build and backend promise that a signal handler may set events.
bool handlers_may_set();

// Pins each thread that has started to one processor, in turn. Otherwise two threads that meet often may share one
// processor for seconds: each has just run there, so the system leaves it there.
void spread(crew& hands);

// Starts the threads that disturb the others of this crew until the act is over. `signals` is the book of events set in
// signal handlers.
void disturb(crew& hands, book& signals, book& others);

}  // namespace soak
