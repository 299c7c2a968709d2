// SPDX-License-Identifier: Apache-2.0
// Descriptors as sources of wait_any() (wait.hpp): sockets, pipes, eventfds, timerfds, pidfds.
//
//     switch (tocsin::wait_any(shutdown, job, tocsin::readable(connection)).index) { ... }
//
// A wait does not take a descriptor that is ready: the descriptor stays ready until a thread reads or writes. Another
// thread may do that first, so use O_NONBLOCK where that matters. The result says what was found (any_result::found).
//
// A wait first looks at the sources in front of its first descriptor. If one of these is ready, the wait makes no
// system call. Otherwise the thread sleeps in one system call, which also finds the descriptors that are ready already.
// The cost of this call grows with the number of descriptors; for many of them, use a wait_set (wait_set.hpp). (With a
// deadline on the system clock, the sleep takes a few calls more. On Windows it always does.)
//
// In these cases the wait first makes another call, which looks at all descriptors and does not sleep:
// - A source that follows a descriptor is ready, or is a custom source (source.hpp).
// - The deadline has passed, or a stop was requested.
// - The spin policy lets the wait spin.
// - The wait cannot get a doorbell (see below).
// - The thread's last wait with descriptors took a source that follows a descriptor, and the descriptor may have been
//   ready before that source. This can happen if the source becomes ready after the wait has begun and before the wait
//   has looked at the descriptors. Since the next wait looks first, two waits of a thread in a row never both pass over
//   a descriptor.
//
// If the thread also waits for an event, a set() of that event wakes the thread through its doorbell, a descriptor of
// the thread's own (two where it is a pipe). The thread opens its doorbell when a wait with descriptors is first about
// to sleep, and keeps it for later waits. A wait without descriptors neither opens nor touches a doorbell.
//
// A wait throws std::system_error before it takes anything:
// - EBADF for a closed descriptor. The message has the index of the source and the number of the descriptor.
// - EMFILE, ENFILE or ENOMEM if the wait cannot get a doorbell.
// - Another error if the system refuses to poll, such as EINVAL for more descriptors than the process may have open.
//
// If another thread closes a descriptor during the wait, the wait may not notice. So shut a socket down before you
// close it. wait_all() refuses descriptors, because nothing can keep one ready until the last source is ready: a call
// that names one does not compile, and a call with one in its list throws.
//
// On Windows:
// - readable(), writable() and ready() take a SOCKET. If the peer has closed, the socket is found as `hang_up`,
//   `readable` or both, as the wait asks.
// - A socket that a wait sleeps on becomes non-blocking, and the wait uses the socket's WSAEventSelect. So only one
//   thread at a time can sleep on a socket: the wait of a second thread throws std::system_error with EBUSY.
// - signaled() takes a kernel HANDLE of a process, a thread, or a manual-reset event or timer. Do not give it a HANDLE
//   from which a wait takes something (an auto-reset event, a semaphore, a mutex). The wait might take it and yet end
//   for another reason, and what it took would be lost.
// - A wait may have more than 64 sockets, and more than 64 HANDLEs.
#pragma once

#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#if defined(_WIN32)
#include <cstdint>
#endif

namespace tocsin {

#if defined(_WIN32)

// The same functions for a SOCKET or a HANDLE, which Windows has instead of descriptors. Both may have 32 significant
// bits, but a wait reports `invalid` for a number above 2^31 - 1.
inline descriptor_source ready(std::uintptr_t socket, readiness asked) noexcept {
    return {socket <= 0x7FFF'FFFF ? static_cast<int>(socket) : -1, asked};
}
inline descriptor_source readable(std::uintptr_t socket) noexcept {
    return ready(socket, readiness::readable);
}
inline descriptor_source writable(std::uintptr_t socket) noexcept {
    return ready(socket, readiness::writable);
}
inline descriptor_source signaled(void* handle) noexcept {
    return ready(reinterpret_cast<std::uintptr_t>(handle), readiness::signaled);
}

#else

// Ready if there is something to read or the end is reached, if there is a connection to accept, or if a timer or a
// process has ended.
inline descriptor_source readable(int descriptor) noexcept { return {descriptor, readiness::readable}; }
// Ready if there is room to write, or if a connection has been made or has failed.
inline descriptor_source writable(int descriptor) noexcept { return {descriptor, readiness::writable}; }
// Ready if at least one of the things asked for is: ready(socket, readiness::readable | readiness::hang_up).
inline descriptor_source ready(int descriptor, readiness asked) noexcept { return {descriptor, asked}; }

#endif

}  // namespace tocsin
