// SPDX-License-Identifier: Apache-2.0
// How a Python thread sleeps: without the interpreter's lock, and in the main thread so that a signal ends the sleep.
// The argument is in blocking.cpp.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <tocsin/deadline.hpp>
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>

#include <cstddef>

#include <Python.h>

namespace tocsin::python {

// How a wait ended. `failed`: an exception is set, and nothing was taken.
enum class ending { ready, timed_out, failed };

struct outcome {
    ending how = ending::failed;
    std::size_t index = 0;  // of the source that was taken, if `how` is `ready` and the wait was for any
};

// A wait for one object, as the library does it best: `wait` spins as `spin` says, sleeps until `until`, and returns
// whether it took the object.
struct single {
    void* object;
    bool (*wait)(void* object, const deadline& until, spin_policy spin) noexcept;
    source from;
};

// Sleep until a source is ready, all of them are, or the deadline has passed. The caller has looked already, and has
// the interpreter's lock (or, in a build without that lock, is attached). Warn, once in a process, if an asyncio loop
// runs in this thread.
outcome block_on(const single& one, const deadline& until);
outcome block_on(const source* sources, std::size_t count, bool all, const deadline& until);

// A wait of a thread that runs signal handlers, for one source. Each time that the thread has taken the source, it
// calls `ends_wait`, still without the interpreter's lock; after false it waits for the source again. If a deadline
// and the source come at the same moment, the outcome may be `ready` without such a call.
struct confirmation {
    void* object = nullptr;
    bool (*ends_wait)(void* object) noexcept = nullptr;
};
outcome block_on(const source& one, const deadline& until, const confirmation& confirm);

// The sleep of a thread that runs no signal handlers and has given up the interpreter's lock. Returns whether it has
// taken the event. Neither call spins: a system call of the thread that frees a lock gives the woken one time to take
// it.
bool sleep_for(auto_reset_event& event, const deadline& until) noexcept;

// Gives back what a wait has taken.
void give_back(const source& taken) noexcept;

// Warns, once in a process, if an asyncio loop runs in this thread. Returns false if the warning was made an exception.
bool may_block();

// Whether this thread runs Python's signal handlers.
bool runs_handlers() noexcept;

// Makes the arrival of a signal a descriptor that is readable. Call these with the interpreter's lock, in the main
// thread.
class signal_watch {
public:
    enum class beginning { watches, cannot, failed };  // `failed`: a handler has raised an exception

    // Directs signals to the pipe, and runs the handlers of those that have arrived. `cannot`: Python says that this
    // thread runs no handlers.
    beginning begin();
    void end();                        // the slot is as it was before
    void forward() const noexcept;     // takes what has arrived, and hands it on to the slot's former owner
    static int descriptor() noexcept;  // of the pipe
    static unsigned generation() noexcept;  // changes at a fork

private:
    long former_ = -1;          // what end() puts into the slot
    long receiver_ = -1;        // gets what has arrived; -1: nobody
    long outer_receiver_ = -1;  // of the sleep whose handler runs this one
};

// Called once, when the module is first imported.
bool prepare_blocking(unsigned long main_thread);

// The exception for an error of a wait: OSError with this number, or ValueError for 0.
void raise_error(int number, const char* message);

// Calls a function that may throw, and turns the exception into an error that is raised later, with the interpreter's
// lock. No object with a destructor is left over.
struct caught {
    int number = -1;  // of the error; -1: none; 0: an argument was refused
    char message[200] = {};
};
template <class Function>
caught catching(Function function) noexcept;

}  // namespace tocsin::python

#include <cstdio>
#include <new>
#include <stdexcept>
#include <system_error>

template <class Function>
tocsin::python::caught tocsin::python::catching(Function function) noexcept {
    caught result;
    try {
        function();
    } catch (const std::system_error& error) {
        result.number = error.code().value();
        std::snprintf(result.message, sizeof result.message, "%s", error.what());
    } catch (const std::bad_alloc&) {
        result.number = ENOMEM;
        std::snprintf(result.message, sizeof result.message, "out of memory");
    } catch (const std::exception& error) {
        result.number = 0;
        std::snprintf(result.message, sizeof result.message, "%s", error.what());
    }
    return result;
}
