// Descriptors as sources of wait_any() (wait.hpp): sockets, pipes, eventfds, timerfds, pidfds.
//
//     switch (tocsin::wait_any(shutdown, job, tocsin::readable(connection)).index) { ... }
//
// A wait does not take a descriptor that is ready: the descriptor stays ready until a thread reads or writes. Another
// thread may be faster, so use O_NONBLOCK where that matters. The result says what was found (any_result::found). A
// wait looks at descriptors only if no source in front of the first one is ready, and then at all of them in one system
// call. The thread sleeps in such a call, too. If it also waits for an event, setting the event wakes it through a
// doorbell. A doorbell is one descriptor for each thread (two where it is a pipe). A thread opens it at its first such
// wait and keeps it for the next. A wait without descriptors opens and touches none.
//
// A wait throws std::system_error before it takes anything: EBADF for a closed descriptor, with the index of the source
// and the descriptor; EMFILE, ENFILE or ENOMEM if it cannot get a doorbell. If another thread closes a descriptor
// during the wait, the wait may not notice. Shut a socket down first. wait_all() refuses descriptors, because nothing
// can keep one ready until the last source is ready.
//
// On Windows, readable(), writable() and ready() take a SOCKET. signaled() takes a kernel HANDLE: a process, a thread,
// or a manual-reset event or timer. Do not give it a HANDLE from which a wait takes something (an auto-reset event, a
// semaphore, a mutex): a wait that ends for another reason would lose what it took. More than 64 of either kind are
// fine. A socket that a wait sleeps on becomes non-blocking, and the wait uses the socket's WSAEventSelect. Only one
// thread at a time can sleep on a socket; a second one gets EBUSY. A closed peer is found as `hang_up` if that is asked
// for, else as readable.
#pragma once

#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#if defined(_WIN32)
#include <cstdint>
#endif

namespace tocsin {

#if defined(_WIN32)

// The same for what Windows has instead of descriptors. A SOCKET and a HANDLE both have 32 significant bits. A number
// above 2^31 - 1 is found invalid.
inline source ready(std::uintptr_t socket, readiness asked) noexcept {
    return {socket <= 0x7FFF'FFFF ? static_cast<int>(socket) : -1, asked};
}
inline source readable(std::uintptr_t socket) noexcept { return ready(socket, readiness::readable); }
inline source writable(std::uintptr_t socket) noexcept { return ready(socket, readiness::writable); }
inline source signaled(void* handle) noexcept {
    return ready(reinterpret_cast<std::uintptr_t>(handle), readiness::signaled);
}

#else

// Ready if there is something to read or the end is reached, if there is a connection to accept, or if a timer or a
// process has ended.
inline source readable(int descriptor) noexcept { return {descriptor, readiness::readable}; }
// Ready if there is room to write, or if it is connected or has failed to connect.
inline source writable(int descriptor) noexcept { return {descriptor, readiness::writable}; }
// Any of several: ready(socket, readiness::readable | readiness::hang_up).
inline source ready(int descriptor, readiness asked) noexcept { return {descriptor, asked}; }

#endif

}  // namespace tocsin
