// SPDX-License-Identifier: Apache-2.0
// The end of a process, as a source alongside events, sockets and timers.
//
//     tocsin::process_end ended(child);
//     switch (tocsin::wait_any({.until = 10s}, ended, shutdown).index) { ... }
//
// The source never reaps. The child remains for the program's own waitpid(), and nobody's SIGCHLD is touched. Once the
// process has ended, the source stays ready for ever, and for every waiter.
//
// It is a descriptor (on Windows a HANDLE), so what fd.hpp says of descriptors holds for it. wait_any(), a wait_set and
// co_await take it. wait_all() refuses it, as it refuses every descriptor. `descriptor()` may be given to any other
// event loop. The source must outlive every wait for it, and its membership of a wait_set.
//
// - On Linux the descriptor is a pidfd. It needs pidfd_open(2) of Linux 5.3. Where the kernel does not have that call,
//   the constructor throws std::system_error with ENOSYS. Where a sandbox forbids the call, it throws the sandbox's
//   error (usually EPERM, EACCES or ENOSYS). There is no substitute.
// - On macOS, FreeBSD and OpenBSD it is a kqueue with one EVFILT_PROC filter. (If the system refuses the filter for a
//   child that has ended, it is a pipe whose other end is closed.) A kqueue does not survive a fork: only the process
//   that made the source may use it. This code was built for these systems and never run there.
// - On Windows it is a HANDLE of the process.
// - On every other system the constructor throws std::system_error with ENOSYS.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#include <optional>

namespace tocsin {

// How a process ended.
struct process_exit {
    unsigned code = 0;       // what it returned or gave to exit(); or the number of the signal that ended it
    bool by_signal = false;  // always false on Windows
    friend bool operator==(const process_exit&, const process_exit&) = default;
};

// The end of one process.
class process_end {
public:
#if defined(_WIN32)
    using number = unsigned long;
    // Duplicates the HANDLE of a process; the HANDLE must have the right SYNCHRONIZE. Unlike the number of a process, a
    // HANDLE can't come to mean another process.
    TOCSIN_API explicit process_end(void* handle);
#else
    using number = int;  // pid_t
#endif

    // Any process may be named, not only a child. It may have ended already, if it is not reaped yet.
    // The number of a reaped process may already belong to another process. So name a child that nobody has reaped
    // yet. From then on, the source keeps to that process, even if the number is used again. (For a pidfd or a HANDLE
    // of your own, use readable(pidfd) or signaled(handle) of fd.hpp.)
    // A process ends when its last thread ends. So if its first thread has ended by pthread_exit(), the source waits
    // for the others.
    // Throws std::invalid_argument for a number that is not above zero; std::system_error: ESRCH if there is no such
    // process (also for the number of a thread that is not its process's first), EACCES (Windows), EMFILE, ENFILE,
    // ENOMEM, and what is said above.
    // Cost: one system call (a few with a kqueue) and one descriptor. No thread, no signal, no allocation.
    TOCSIN_API explicit process_end(number id);
    process_end(const process_end&) = delete;
    process_end& operator=(const process_end&) = delete;
    TOCSIN_API ~process_end();

    // Whether the process has ended. Never blocks. Cost: one system call.
    [[nodiscard]] TOCSIN_API bool try_wait() const noexcept;

    // How the process ended, without reaping it. On POSIX systems, the result is empty unless the process is a child of
    // the caller that has ended and is not reaped yet. On Linux 5.3, which lacks P_PIDFD, the result is always empty.
    // With a kqueue, the answer goes by the number of the process. So, if the child was reaped and the number now
    // belongs to another ended child, the answer is about the other child. On Windows, the result is empty until the
    // process has ended, or if the handle lacks the right to query.
    [[nodiscard]] TOCSIN_API std::optional<process_exit> exit_status() const noexcept;

    // Returns the same descriptor until the object is destroyed.
    int descriptor() const noexcept { return descriptor_; }

    // As in a custom source: wait_all() refuses it (source.hpp).
    static constexpr bool stays_ready = false;

    operator source() const& noexcept { return {descriptor_, asked}; }
    operator source() const&& = delete;

private:
#if defined(_WIN32)
    static constexpr readiness asked = readiness::signaled;
#else
    static constexpr readiness asked = readiness::readable;
#endif

    int descriptor_ = -1;
    number id_ = 0;
};

}  // namespace tocsin
