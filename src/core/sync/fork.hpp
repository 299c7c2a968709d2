// SPDX-License-Identifier: Apache-2.0
// A fork: what the child does before its fork() returns, and how an object knows that it belongs to the parent. What
// differs for a reason: signal_flag.cpp holds its lock across a fork, so it also has handlers for the parent.
#pragma once

#include <cstdint>

namespace tocsin::core {

// What each copy of the library does in the child of a fork, in this order. The child has one thread, and none of the
// parent's other threads, which may have held any lock and changed anything by halves. So nothing here waits. Before
// the first duty, the child counts the fork and forgets what the platform has noted about the parent's threads.
enum class child_duty : std::uint8_t {
    table,        // empties the queues, if this copy owns them; forgets doorbells and futexes (lot/table.cpp)
    lock_owners,  // forgets who holds which lock (sync/lock_owners.cpp)
    diagnosed_waits,  // empties the lists of waits for custom sources (wait/diagnosed_wait.cpp)
    default_service,  // forgets the default driver, whose loop does not run in the child (async/service.cpp)
    timer_threads,  // begins without timers and without the threads that serve them (async/timer_thread.cpp)
    poll_thread,    // the same for descriptors (async/poll_thread.cpp)
    watchdogs,      // the same for watchdogs (watchdog.cpp)
    keepers,        // the same for waits for shared objects (shared_source.cpp)
    names,          // forgets the names of events if one was being changed (diagnose.cpp)
};

// Says how this copy does a duty, for as long as the process runs. A duty that nobody declares is skipped: the program
// does not link what it is about.
class in_child {
public:
    in_child(child_duty which, void (*how)() noexcept) noexcept;
};

// How many forks lie between the process that loaded the library and this process.
std::uint32_t forks() noexcept;

// Remembers in which process it was made. An object with a stamp of another process began in a parent of this process:
// its waits, its threads and its place in queues do not exist here.
class process_stamp {
public:
    process_stamp() noexcept = default;
    // Of the process in which forks() returned this number.
    explicit process_stamp(std::uint32_t forks_then) noexcept : forks_(forks_then) {}

    bool is_of_this_process() const noexcept { return forks_ == forks(); }

private:
    std::uint32_t forks_ = forks();
};

}  // namespace tocsin::core
