// SPDX-License-Identifier: Apache-2.0
// The Python objects over the library's objects, and what their files share.
//
// An object is its header, the library's object and a list of weak references; it holds no reference to another Python
// object, so the garbage collector need not know it. (Those of shared.cpp refer to a buffer.) Everything that threads
// share is inside the library's objects or atomic, or used inside the object's critical section only. So builds without
// the interpreter's lock need no further lock. What belongs to one thread, such as the waits of a loop, has no such
// section.
#pragma once

#include "barging_lock.hpp"
#include "blocking.hpp"

#include <tocsin/detail/event_state.hpp>
#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>

#include <atomic>

#include <structmember.h>

namespace tocsin::python {

struct event_object {
    PyObject_HEAD PyObject* weak_references;
    manual_reset_event event;
};

struct auto_reset_event_object {
    PyObject_HEAD PyObject* weak_references;
    auto_reset_event event;
};

// An event that several interpreters of the process share (interpreter_event.cpp). Each has an object of its own.
struct interpreter_event_object {
    PyObject_HEAD PyObject* weak_references;
    manual_reset_event* event;
};

struct semaphore_object {
    PyObject_HEAD PyObject* weak_references;
    detail::semaphore_word word;
    std::uint32_t max;  // what a release may not exceed
    std::uint32_t first;
    bool bounded;
    bool made;  // __init__ was called
};

struct lock_object {
    PyObject_HEAD PyObject* weak_references;
    barging_lock lock;
};

struct rlock_object {
    PyObject_HEAD PyObject* weak_references;
    barging_lock lock;
    std::atomic<unsigned long> owner;  // 0: nobody
    unsigned long count;               // the owner's alone
};

struct deadline_object {
    PyObject_HEAD long long nanoseconds;  // on the steady clock
};

// What a module of one interpreter has.
struct module_state {
    PyTypeObject* event;
    PyTypeObject* auto_reset_event;
    PyTypeObject* interpreter_event;
    PyTypeObject* semaphore;
    PyTypeObject* bounded_semaphore;
    PyTypeObject* lock;
    PyTypeObject* rlock;
    PyTypeObject* deadline;
    PyTypeObject* ready;  // of readable() and writable()
    PyTypeObject* queue;
    PyTypeObject* wait_set;
    PyTypeObject* signal;
    PyTypeObject* async_wait;
    PyTypeObject* loop_bridge;
    PyTypeObject* shared_memory;
    PyTypeObject* shared_event;
    PyTypeObject* shared_auto_reset_event;
    PyTypeObject* shared_semaphore;
    PyTypeObject* shared_lock;
    PyObject* lock_lost;  // the exception of a shared lock
    PyObject* as_source;  // Python's function for threads and processes
    PyObject* closed;     // the exception of a closed queue
    PyObject* empty;      // queue.Empty and queue.Full
    PyObject* full;
};
inline module_state& state_of(PyObject* module) {
    return *static_cast<module_state*>(PyModule_GetState(module));
}

// Whether this is a module of ours.
bool is_ours(PyObject* module) noexcept;
// The module of a type of ours, or of a subclass. The reference is borrowed.
PyObject* module_of(PyTypeObject* type);

// Each adds its types and functions to the module. They return false with an exception set.
bool add_event_types(PyObject* module);
bool add_interpreter_event_type(PyObject* module);
bool add_semaphore_types(PyObject* module);
bool add_lock_types(PyObject* module);
bool add_sources(PyObject* module);
bool add_queue_type(PyObject* module);
bool add_wait_set_type(PyObject* module);
bool add_signal_type(PyObject* module);
bool add_async_types(PyObject* module);
bool add_diagnosis(PyObject* module);
bool add_shared_types(PyObject* module);

// Makes a type and adds it to the module. The name is that which the user sees, such as "tocsin.Event".
PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, PyTypeObject* base = nullptr);

// Converts a timeout: None or missing is for ever; negative is zero. Refuses nan and what is no number. Returns false
// with an exception set.
bool read_timeout(PyObject* timeout, deadline& until);
// The same for `timeout` and `deadline` together: at most one of them may be given.
bool read_limits(PyObject* timeout, PyObject* when, PyTypeObject* deadline_type, deadline& until);
deadline at_nanoseconds(long long steady) noexcept;
long long steady_now() noexcept;

// Keyword arguments of a fast call, by position. Returns false with an exception set.
bool read_arguments(const char* function, PyObject* const* given, Py_ssize_t positional,
                    PyObject* keyword_names, const char* const* names, std::size_t count, PyObject** out);

// `await object` in asyncio.
PyObject* await_object(PyObject* self);

// The __init__ of types that take no arguments. A subclass may have arguments of its own.
int refuse_arguments(PyObject* self, PyObject* arguments, PyObject* keywords);

// The methods of an event. A call of wait() has its arguments as a fast call has them.
PyObject* set_event(manual_reset_event& event);
PyObject* wait_for_event(manual_reset_event& event, PyObject* const* given, Py_ssize_t positional,
                         PyObject* names);

// Deallocates an object whose memory needs nothing else.
void dealloc(PyObject* self);
extern PyMemberDef weak_reference_members[];

// Sources. `keep` gets a new reference to what must live as long as the source is waited for, or null.
bool to_source(module_state& state, PyObject* from, source& out, PyObject*& keep);

// Releases the waiters of a wake list without the interpreter's lock.
template <class Set>
inline void set_and_wake(Set set) {
    PyThreadState* saved = nullptr;
    {
        wake_list freed;
        set(freed);
        if (!freed.empty()) {
            // A wake makes a system call, and a woken thread would only queue for the interpreter's lock.
            saved = PyEval_SaveThread();
            freed.wake();
        }
    }
    if (saved != nullptr) PyEval_RestoreThread(saved);
}

// Calls a function inside the critical section of an object. Where there is an interpreter's lock, the section is that
// lock. Like that lock, the section is given up while the thread sleeps, and perhaps while Python code runs. When a
// thread takes it back after a sleep, the function's frames must have no object with a destructor (blocking.cpp).
template <class Function>
auto in_critical_section([[maybe_unused]] PyObject* object, Function function) {
#if PY_VERSION_HEX >= 0x030D0000
    decltype(function()) result;
    Py_BEGIN_CRITICAL_SECTION(object);
    result = function();
    Py_END_CRITICAL_SECTION();
    return result;
#else
    return function();
#endif
}

inline PyObject* boolean(bool value) {
    PyObject* const result = value ? Py_True : Py_False;
    Py_INCREF(result);
    return result;
}

template <class T>
T& as(PyObject* self) noexcept {
    return *reinterpret_cast<T*>(self);
}

}  // namespace tocsin::python
