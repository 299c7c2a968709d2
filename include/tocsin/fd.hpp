// Descriptors as sources of wait_any() (wait.hpp): sockets, pipes, eventfds, timerfds, pidfds.
//
//     switch (tocsin::wait_any(shutdown, job, tocsin::readable(connection)).index) { ... }
//
// A descriptor that is ready is not taken: it stays ready until somebody reads or writes, so another thread may be
// faster; use O_NONBLOCK where that matters. What was found is in the result (any_result::found). A wait looks at
// descriptors only if no source before them is ready, and then at all of them in one system call. It sleeps in that
// call, too; who sets an event that it waits for rings a doorbell (one descriptor a thread, opened at its first such
// wait, kept for its next). A wait without descriptors opens and touches none.
//
// Errors, thrown before anything is taken, as std::system_error with the number of the source and the descriptor: EBADF
// for one that is closed; EMFILE, ENFILE, ENOMEM when there is no doorbell to be had. A descriptor that another thread
// closes during the wait may go unnoticed: shut a socket down first.
// Not in wait_all(): nothing can keep a descriptor ready until the last source comes.
#pragma once

#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

namespace tocsin {

// Something to read, or the end of it; a connection to accept; a timer or a process that has ended.
inline source readable(int descriptor) noexcept { return {descriptor, readiness::readable}; }
// Room to write; or connected, or failed to.
inline source writable(int descriptor) noexcept { return {descriptor, readiness::writable}; }
// Any of several: ready(socket, readiness::readable | readiness::hang_up).
inline source ready(int descriptor, readiness asked) noexcept { return {descriptor, asked}; }

}  // namespace tocsin
