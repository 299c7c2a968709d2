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
//
// On Windows readable(), writable() and ready() take a SOCKET, and signaled() a kernel HANDLE: a process, a thread, an
// event or a timer that is reset by hand. Not what a wait takes from (an event that resets itself, a semaphore, a
// mutex): a wait that ends for another reason would lose it. More than 64 of either are fine. A socket that a wait sleeps
// on becomes non-blocking, its WSAEventSelect is the wait's, and only one thread at a time can sleep on it: the second
// gets EBUSY. A closed peer is found `hang_up` when that is asked for, else readable.
#pragma once

#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#if defined(_WIN32)
#include <cstdint>
#endif

namespace tocsin {

#if defined(_WIN32)

// The same for what Windows has instead of descriptors. Both kinds have 32 significant bits; one with more is none of
// the system's and found invalid.
inline source ready(std::uintptr_t socket, readiness asked) noexcept {
    return {socket <= 0x7FFF'FFFF ? static_cast<int>(socket) : -1, asked};
}
inline source readable(std::uintptr_t socket) noexcept { return ready(socket, readiness::readable); }
inline source writable(std::uintptr_t socket) noexcept { return ready(socket, readiness::writable); }
inline source signaled(void* handle) noexcept {
    return ready(reinterpret_cast<std::uintptr_t>(handle), readiness::signaled);
}

#else

// Something to read, or the end of it; a connection to accept; a timer or a process that has ended.
inline source readable(int descriptor) noexcept { return {descriptor, readiness::readable}; }
// Room to write; or connected, or failed to.
inline source writable(int descriptor) noexcept { return {descriptor, readiness::writable}; }
// Any of several: ready(socket, readiness::readable | readiness::hang_up).
inline source ready(int descriptor, readiness asked) noexcept { return {descriptor, asked}; }

#endif

}  // namespace tocsin
