// Descriptors as sources of wait_any() (wait.hpp): sockets, pipes, eventfds, timerfds, pidfds.
//
//     switch (tocsin::wait_any(shutdown, job, tocsin::readable(connection)).index) { ... }
//
// A wait does not take a descriptor that is ready: it stays ready until a thread reads or writes. Another thread may
// be faster, so use O_NONBLOCK where that matters. The result says what was found (any_result::found). A wait looks
// at descriptors only if no source before them is ready, and then at all of them in one system call. The thread
// sleeps in that call. Setting an event that it also waits for wakes it through a doorbell (one descriptor for each
// thread, two where it is a pipe, opened at its first such wait and kept for the next). A wait without descriptors
// opens and touches none.
//
// Throws std::system_error, with the index of the source and the descriptor, before it takes anything: EBADF for a
// closed descriptor; EMFILE, ENFILE or ENOMEM if it cannot get a doorbell. If another thread closes a descriptor
// during the wait, that may go unnoticed: shut a socket down first. wait_all() refuses descriptors: nothing can keep
// one ready until the last source is ready.
//
// On Windows, readable(), writable() and ready() take a SOCKET, and signaled() takes a kernel HANDLE: a process, a
// thread, or an event or timer that is reset by hand. Not one from which a wait takes something (an event that resets
// itself, a semaphore, a mutex): a wait that ends for another reason would lose it. More than 64 of either are fine.
// A socket that a wait sleeps on becomes non-blocking, and the wait uses its WSAEventSelect. Only one thread at a
// time can sleep on it; a second one gets EBUSY. A closed peer is found as `hang_up` if that is asked for, else as
// readable.
#pragma once

#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#if defined(_WIN32)
#include <cstdint>
#endif

namespace tocsin {

#if defined(_WIN32)

// The same for what Windows has instead of descriptors. Both kinds have 32 significant bits. A number above 2^31 - 1
// is found invalid.
inline source ready(std::uintptr_t socket, readiness asked) noexcept {
    return {socket <= 0x7FFF'FFFF ? static_cast<int>(socket) : -1, asked};
}
inline source readable(std::uintptr_t socket) noexcept { return ready(socket, readiness::readable); }
inline source writable(std::uintptr_t socket) noexcept { return ready(socket, readiness::writable); }
inline source signaled(void* handle) noexcept {
    return ready(reinterpret_cast<std::uintptr_t>(handle), readiness::signaled);
}

#else

// There is something to read, or the end; a connection to accept; a timer or a process that has ended.
inline source readable(int descriptor) noexcept { return {descriptor, readiness::readable}; }
// There is room to write; or it is connected, or has failed to.
inline source writable(int descriptor) noexcept { return {descriptor, readiness::writable}; }
// Any of several: ready(socket, readiness::readable | readiness::hang_up).
inline source ready(int descriptor, readiness asked) noexcept { return {descriptor, asked}; }

#endif

}  // namespace tocsin
