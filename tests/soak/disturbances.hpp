// What a machine does to threads at bad moments: signals, other processors, other priorities.
#pragma once

#include "book.hpp"
#include "crew.hpp"

#include <atomic>
#include <cstdint>

namespace soak {

struct disturbance_counts {
    std::atomic<std::uint64_t> moves{0};       // of one thread to other processors
    std::atomic<std::uint64_t> removals{0};    // of all threads from one processor, as if it were unplugged
    std::atomic<std::uint64_t> priorities{0};  // changes of a thread's nice value
    std::atomic<std::uint64_t> real_time{0};   // threads made real-time for a moment
};
disturbance_counts& disturbed();

// Whether this build and backend promise that a signal handler may set events.
bool handlers_may_set();

// Gives the threads that have begun the processors in turn, each one. Two that meet often may otherwise share one for
// seconds: each has just run there, so the system thinks it better off where it is.
void spread(crew& hands);

// Starts the threads that disturb the others of this crew until the act is over. `signals` is the book of
// events set in signal handlers.
void disturb(crew& hands, book& signals, book& others);

}  // namespace soak
