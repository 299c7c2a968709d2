// SPDX-License-Identifier: Apache-2.0
// POSIX signals as sources alongside events, sockets and timers.
//
//     tocsin::signal_source terminate(SIGTERM);
//     while (tocsin::wait_any(job, terminate).index == 0) work();
//     terminate.try_wait();     // takes it
//
// What happens to a signal
//   The first source of a signal installs a handler of this library. Whenever the signal is delivered to a thread of
//   the process, the handler marks every source of the signal, and then calls the handler that was there before. So a
//   source takes a signal from nobody. This holds for SIGCHLD, too: the library reaps no process. If the program
//   ignores SIGCHLD, its children still leave no zombies. A handler that was there before is called with the flags and
//   the mask that it was installed with (and on the alternate stack, if there is one).
//   Only the default action is replaced: while a source exists, SIGTERM does not end the process, and SIGTSTP does not
//   stop it. System calls that such a signal interrupts are then restarted (SA_RESTART).
//   When the last source of a signal is destroyed, the former action is restored. A signal that is delivered during
//   this change may be lost. If somebody has installed another handler by then, that handler stays, and may still call
//   this library's handler. This library's handler then calls the handler that was there before it. If there was none,
//   it does nothing, not even the default action: without this library, the other handler would have had nothing to
//   call. If the other handler is taken away later, this library's handler is the signal's action again. Then the next
//   delivery restores the former action, and is passed to that action.
//   All this also holds if several copies of the library in the process have sources of the signal. (Each plug-in may
//   contain a copy.) The default action happens when none of them has a source any more.
//
// What is promised of a source
//   - A marked source is ready for every wait until a try_wait() returns true. All signals that arrive before that
//     count as one: a source does not count signals, not even real-time signals. After a try_wait() that returned true,
//     every later delivery makes the source ready again. Of several threads that race for one delivery, exactly one
//     gets true.
//   - A signal delivered before the constructor returned may be missed; a signal delivered afterwards is not missed.
//   - What the sender did before, say in another thread with pthread_kill(), is visible after try_wait() has
//     returned true only as far as the system orders it: a signal is no synchronisation.
//   - The library leaves the signal masks of the program's threads as they are. A signal that every thread blocks stays
//     pending, and marks nothing. A signal that somebody takes with sigwait() or a signalfd marks nothing either. The
//     library's background threads (of timers, polls and reports) block all signals, except while they run code of the
//     user: coroutines, functions of operations, reports. While a background thread runs such code, it blocks the
//     signals that were blocked in the thread that first needed it. A handler_thread blocks the signals that were
//     blocked in the thread that made it. So a signal handler may run in all these threads.
//   - Sources belong to the process that made them. After a fork, the signals of the child do not reach the parent's
//     sources. In the child, a signal without a source of the child does what it did before the parent made sources.
//     The child may destroy the parent's sources, and make its own. exec resets all handlers, as always. So a program
//     started by exec gets the default action of a signal that has a source, even if this process ignored the signal
//     before.
//   - The program must not change the action of a signal at the very moment at which another thread makes or destroys
//     a source of that signal, or at which a delivery restores the former action.
//
// A signal_source is a descriptor, so what fd.hpp says of descriptors holds for it. wait_any(), a wait_set and co_await
// take it; wait_all() refuses it. `descriptor()` may be given to another event loop, which must only poll it. A source
// must outlive every wait for it. A copy of the library that has made a source is never unloaded, because its handler
// might still be called. So if a plug-in contains that copy, dlclose() does not destroy the plug-in's static objects.
// Destroy the plug-in's sources before you call dlclose(). Making a source takes the dynamic linker's lock. So the
// constructor of a plug-in's static object must not wait for another thread that makes a source.
// Windows and WebAssembly have no such signals: there, making a signal_source is a compile error.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#include <memory>

namespace tocsin {

#if defined(_WIN32) || defined(__wasm__)

// The deliveries of one signal.
class signal_source {
public:
    template <class Number>
    explicit signal_source(Number) {
        static_assert(sizeof(Number) == 0, "tocsin::signal_source: this system has no POSIX signals");
    }
};

#else

// The deliveries of one signal.
class signal_source {
public:
    // The sources that one copy of the library can have at the same time.
    static constexpr int max = 64;

    // Throws
    // - std::invalid_argument for a number that is no signal below NSIG; for SIGKILL and SIGSTOP, which cannot be
    //   handled; and for SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS and SIGTRAP, after which the thread could not
    //   continue;
    // - std::system_error: EBUSY if another handler was installed over this library's (the two handlers might call each
    //   other without end); ENOTSUP if the former handler is to be called only once (SA_RESETHAND); EAGAIN beyond
    //   `max` sources; EMFILE, ENFILE, ENOMEM; EINVAL for a signal that the C library reserves;
    // - std::bad_alloc.
    // Call neither this constructor nor the destructor in a signal handler.
    // Cost: a few system calls, a descriptor (two where it is a pipe) and two allocations. A delivery costs a look at
    // the 64 slots for sources, three system calls, one more for each source of the signal, and the former handler.
    TOCSIN_API explicit signal_source(int number);
    signal_source(const signal_source&) = delete;
    signal_source& operator=(const signal_source&) = delete;
    // Waits a few steps for handlers that are about to mark the source.
    TOCSIN_API ~signal_source();

    // If the signal was delivered since the last call that returned true, returns true. Never blocks. Any thread may
    // call it. Cost: a system call.
    [[nodiscard]] TOCSIN_API bool try_wait() noexcept;

    TOCSIN_API int descriptor() const noexcept;  // the same until the object is destroyed

    // As in a custom source: wait_all() refuses it (source.hpp).
    static constexpr bool stays_ready = false;

    operator source() const& noexcept { return {descriptor(), readiness::readable}; }
    operator source() const&& = delete;

private:
    class state;
    std::unique_ptr<state> state_;
};

#endif

}  // namespace tocsin
