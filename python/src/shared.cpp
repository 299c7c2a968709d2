// SPDX-License-Identifier: Apache-2.0
// The objects in memory that processes share: SharedEvent, SharedAutoResetEvent, SharedSemaphore and SharedLock.
//
// An object of Python refers to an object of the library inside a buffer, which may belong to anybody: a SharedMemory,
// an mmap, the memory of multiprocessing.shared_memory. Processes share the bytes; each has Python objects of its own.
//
// Lifetime
//   shared-1  An object holds the buffer's export (Py_buffer) from __init__ to its end. While there is an export, the
//             buffer's owner refuses to close it, with BufferError. So no call finds the memory unmapped. A thread in a
//             call has a reference to the object.
//   shared-2  While a thread holds a lock, the lock's object has a reference to itself. Otherwise the memory could go
//             while the thread's list of held locks, which the kernel reads, still leads there. If the thread dies with
//             the lock, the reference stays.
//   shared-3  `holder` is the thread that holds the lock by way of this object, as the system numbers threads. Only
//             that thread sets it to its own number, and sets it to 0 before it frees the lock. So a thread that
//             compares it with its own number sees its own writes. In the child of a fork, the number is another one.
//
// Memory order
//   [object]  __init__ publishes the object with a release, and each call acquires it.
//
// How a wait sleeps
//   A thread that runs no signal handlers waits as a C++ thread does, on the object's own words. The main thread waits
//   for the object as a source (blocking.cpp), so it keeps its place while handlers run. A lock is no source, because
//   the thread that waits for it must be the one that gets it. Its main thread waits with a stop token, which an
//   operation on the pipe of signals requests. If a handler then returns, the thread waits again, behind all others.
//   If all slots of an event or a semaphore are taken, a thread waits as the main thread does.
//
// Checked by: python/tests/test_shared.py.
#include "shared.hpp"

#include <tocsin/fd.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/stop_token.hpp>

#include <cerrno>
#include <cstring>
#include <stop_token>

namespace tocsin::python {
namespace {

constexpr std::chrono::microseconds first_sleep(200);  // of the main thread: as in blocking.cpp

struct shared_object {
    PyObject_HEAD PyObject* weak_references;
    std::atomic<void*> object;  // of the library, in the buffer; null: __init__ was not called
    PyObject* buffer;           // what the user gave
    Py_ssize_t offset;
    Py_buffer view;
    bool made;                          // __init__ was called; used inside the critical section
    std::atomic<unsigned long> holder;  // of a lock: shared-3
    bool owner_died;                    // of a lock: the holder's alone
};
static_assert(offsetof(event_object, weak_references) == offsetof(shared_object, weak_references));

// ---- The objects in it

PyObject* make_object(PyTypeObject* type, PyObject*, PyObject*) { return type->tp_alloc(type, 0); }

// Null with an exception set, or a new reference to what exports the bytes.
PyObject* exporter_of(PyObject* buffer) {
    if (PyObject_CheckBuffer(buffer)) {
        Py_INCREF(buffer);
        return buffer;
    }
    PyObject* const bytes =
        PyObject_GetAttrString(buffer, "buf");  // multiprocessing.shared_memory.SharedMemory
    if (bytes != nullptr && PyObject_CheckBuffer(bytes)) return bytes;
    if (bytes == Py_None) {
        PyErr_SetString(PyExc_ValueError, "the shared memory is closed");
    } else if (bytes != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Format(
            PyExc_TypeError,
            "buffer must be memory that processes share (tocsin.SharedMemory, "
            "multiprocessing.shared_memory.SharedMemory, mmap.mmap), or a memoryview of it, not %.200s",
            Py_TYPE(buffer)->tp_name);
    }
    Py_XDECREF(bytes);
    return nullptr;
}

// Inside the critical section. Takes the buffer, and finds the object in it.
template <class Object>
bool attach(PyObject* self, PyObject* given, Py_ssize_t offset) {
    auto& one = as<shared_object>(self);
    PyObject* const buffer =
        given == Py_None ? anonymous_memory(state_of(module_of(Py_TYPE(self))).shared_memory, sizeof(Object))
                         : (Py_INCREF(given), given);
    if (buffer == nullptr) return false;
    PyObject* const exporter = exporter_of(buffer);
    const bool exported = exporter != nullptr && PyObject_GetBuffer(exporter, &one.view, PyBUF_WRITABLE) == 0;
    Py_XDECREF(exporter);
    if (!exported) {
        Py_DECREF(buffer);
        return false;
    }
    void* found = nullptr;
    if (offset < 0 || offset > one.view.len) {
        PyErr_Format(PyExc_ValueError, "offset %zd is not in the buffer, which has %zd bytes", offset,
                     one.view.len);
    } else {
        const caught error = catching([&] {
            found = &shared_at<Object>(static_cast<char*>(one.view.buf) + offset,
                                       static_cast<std::size_t>(one.view.len - offset));
        });
        if (error.number != -1) raise_shared_error(error);
    }
    if (found == nullptr) {
        PyBuffer_Release(&one.view);
        Py_DECREF(buffer);
        return false;
    }
    one.buffer = buffer;
    one.offset = offset;
    one.object.store(found, std::memory_order_release);  // [object]
    return true;
}

template <class Object>
int initialise(PyObject* self, PyObject* buffer, Py_ssize_t offset) {
    auto& one = as<shared_object>(self);
    if (buffer == Py_None && offset != 0) {
        PyErr_SetString(PyExc_ValueError, "offset is a place in a buffer, and no buffer is given");
        return -1;
    }
    // The section may be given up while Python runs in between.
    if (!in_critical_section(self, [&] { return !std::exchange(one.made, true); })) {
        PyErr_Format(PyExc_RuntimeError, "a %s is initialised once: threads may use it already",
                     Py_TYPE(self)->tp_name);
        return -1;
    }
    return in_critical_section(self, [&] {
        if (attach<Object>(self, buffer, offset)) return 0;
        one.made = false;
        return -1;
    });
}

// Null with an exception set if there is none.
template <class Object>
Object* get(PyObject* self) {
    void* const object = as<shared_object>(self).object.load(std::memory_order_acquire);  // [object]
    if (object == nullptr)
        PyErr_Format(PyExc_RuntimeError, "%s.__init__() was not called", Py_TYPE(self)->tp_name);
    return static_cast<Object*>(object);
}

template <class Object>
int initialise_plain(PyObject* self, PyObject* arguments, PyObject* keywords) {
    static const char* known[] = {"buffer", "offset", nullptr};
    PyObject* buffer = Py_None;
    Py_ssize_t offset = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$On", const_cast<char**>(known), &buffer,
                                     &offset))
        return -1;
    return initialise<Object>(self, buffer, offset);
}

int initialise_semaphore(PyObject* self, PyObject* arguments, PyObject* keywords) {
    static const char* known[] = {"value", "buffer", "offset", nullptr};
    PyObject* value = Py_None;
    PyObject* buffer = Py_None;
    Py_ssize_t offset = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$On", const_cast<char**>(known), &value, &buffer,
                                     &offset))
        return -1;
    if (buffer != Py_None) {
        if (value == Py_None) return initialise<shared_semaphore>(self, buffer, offset);
        PyErr_SetString(
            PyExc_ValueError,
            "a semaphore in a buffer has the permits that the memory says, in zeroed memory none: "
            "give no value, and let one process release() the first permits");
        return -1;
    }
    Py_ssize_t first = 1;
    if (value != Py_None) {
        first = PyNumber_AsSsize_t(value, nullptr);
        if (first == -1 && PyErr_Occurred()) return -1;
    }
    if (first < 0) {
        PyErr_SetString(PyExc_ValueError, "semaphore initial value must be >= 0");
        return -1;
    }
    if (first > shared_semaphore::max()) {
        PyErr_Format(PyExc_OverflowError, "a semaphore counts to %zd at most",
                     static_cast<Py_ssize_t>(shared_semaphore::max()));
        return -1;
    }
    if (initialise<shared_semaphore>(self, buffer, offset) != 0) return -1;
    shared_semaphore* const one = get<shared_semaphore>(self);
    const caught error = catching([&] { one->release(first); });
    if (error.number == -1) return 0;
    raise_shared_error(error);
    return -1;
}

int traverse_object(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as<shared_object>(self).buffer);
    Py_VISIT(as<shared_object>(self).view.obj);
    return 0;
}

// Nobody else has the object: it is no object of the library any more.
int clear_object(PyObject* self) {
    auto& one = as<shared_object>(self);
    if (one.object.exchange(nullptr, std::memory_order_relaxed) == nullptr) return 0;  // no order: see above
    PyBuffer_Release(&one.view);
    Py_CLEAR(one.buffer);
    return 0;
}

void destroy_object(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (as<shared_object>(self).weak_references != nullptr) PyObject_ClearWeakRefs(self);
    clear_object(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* reduce_object(PyObject* self, PyObject*) { return call_helper("reduce_object", self); }

PyObject* buffer_of(PyObject* self, void*) {
    if (get<void>(self) == nullptr) return nullptr;
    PyObject* const buffer = as<shared_object>(self).buffer;
    Py_INCREF(buffer);
    return buffer;
}
PyObject* offset_of(PyObject* self, void*) {
    return get<void>(self) == nullptr ? nullptr : PyLong_FromSsize_t(as<shared_object>(self).offset);
}

// Whether a call that gives may have to wake somebody. The layout is that of shared_layout.hpp. This decides only
// whether the interpreter's lock is given up meanwhile.
bool may_wake(shared_manual_reset_event& event) noexcept {
    // no order: a hint
    return (reinterpret_cast<detail::shared_header&>(event).tickets.load(std::memory_order_relaxed) &
            detail::shared_sleepers) != 0;
}
template <class Object>
bool may_wake(Object& object) noexcept {
    // no order: a hint
    return (reinterpret_cast<detail::shared_header&>(object).control.load(std::memory_order_relaxed) &
            detail::shared_queued) != 0;
}

// Calls `give` without the interpreter's lock if it may have to wake somebody. Returns None, or null with an exception.
template <class Object, class Give>
PyObject* give(Object& object, Give call) {
    caught error;
    if (may_wake(object)) {
        Py_BEGIN_ALLOW_THREADS;
        error = catching(call);
        Py_END_ALLOW_THREADS;
    } else {
        error = catching(call);
    }
    if (error.number == -1) Py_RETURN_NONE;
    raise_shared_error(error);
    return nullptr;
}

// The conversion may have to start threads of the library.
template <class Object>
bool convert(Object& object, source& out) {
    const caught error = catching([&] { out = object; });
    if (error.number == -1) return true;
    raise_shared_error(error);
    return false;
}

// Sleeps until `wait` has taken the object, which the caller has looked at already.
template <class Object, class Wait>
PyObject* sleep_on(Object& object, const deadline& until, Wait wait) {
    if (until.which() == deadline::clock::passed) Py_RETURN_FALSE;
    if (!runs_handlers()) {
        if (!may_block()) return nullptr;
        bool taken = false;
        caught error;
        Py_BEGIN_ALLOW_THREADS;
        error = catching([&] { taken = wait(); });
        Py_END_ALLOW_THREADS;
        if (error.number == -1) return boolean(taken);
        if (error.number != ENOBUFS) {
            raise_shared_error(error);
            return nullptr;
        }
    }
    source from;
    if (!convert(object, from)) return nullptr;
    const outcome end = block_on(&from, 1, false, until);
    return end.how == ending::failed ? nullptr : boolean(end.how == ending::ready);
}

template <class Event>
PyObject* set(PyObject* self, PyObject*) {
    Event* const event = get<Event>(self);
    return event == nullptr ? nullptr : give(*event, [event] { event->set(); });
}

template <class Event>
PyObject* clear(PyObject* self, PyObject*) {
    Event* const event = get<Event>(self);
    if (event == nullptr) return nullptr;
    event->reset();
    Py_RETURN_NONE;
}

template <class Event>
PyObject* is_set(PyObject* self, PyObject*) {
    Event* const event = get<Event>(self);
    return event == nullptr ? nullptr : boolean(event->is_set());
}

template <class Event>
PyObject* wait(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"timeout"};
    PyObject* timeout = nullptr;
    if ((positional != 0 || names != nullptr) &&
        !read_arguments("wait", given, positional, names, known, 1, &timeout))
        return nullptr;
    deadline until = deadline::never();
    Event* const event = get<Event>(self);
    if (event == nullptr || !read_timeout(timeout, until)) return nullptr;
    if (event->try_wait()) Py_RETURN_TRUE;
    return sleep_on(*event, until, [&] { return event->wait_until(until) == wait_status::signaled; });
}

template <class Event>
PyObject* represent_event(PyObject* self) {
    Event* const event = get<Event>(self);
    if (event == nullptr) return nullptr;
    return PyUnicode_FromFormat("<%s at %p: %s>", Py_TYPE(self)->tp_name, self,
                                event->is_set() ? "set" : "unset");
}

// What acquire() of a semaphore or a lock is given. Returns false with an exception set.
bool read_acquire(PyObject* const* given, Py_ssize_t positional, PyObject* names, deadline& until) {
    static const char* const known[] = {"blocking", "timeout"};
    PyObject* arguments[2] = {};
    if ((positional != 0 || names != nullptr) &&
        !read_arguments("acquire", given, positional, names, known, 2, arguments))
        return false;
    const int blocking = arguments[0] == nullptr ? 1 : PyObject_IsTrue(arguments[0]);
    if (blocking < 0) return false;
    if (blocking != 0) return read_timeout(arguments[1], until);
    if (arguments[1] == nullptr || arguments[1] == Py_None) {
        until = deadline(std::chrono::nanoseconds(0));
        return true;
    }
    PyErr_SetString(PyExc_ValueError, "can't specify timeout for non-blocking acquire");
    return false;
}

PyObject* acquire_permit(PyObject* self, const deadline& until) {
    shared_semaphore* const permits = get<shared_semaphore>(self);
    if (permits == nullptr) return nullptr;
    if (permits->try_acquire()) Py_RETURN_TRUE;
    return sleep_on(*permits, until, [&] { return permits->try_acquire_until(until); });
}

PyObject* acquire_semaphore(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    deadline until = deadline::never();
    return read_acquire(given, positional, names, until) ? acquire_permit(self, until) : nullptr;
}

PyObject* release_permits(PyObject* self, Py_ssize_t number) {
    shared_semaphore* const permits = get<shared_semaphore>(self);
    if (permits == nullptr) return nullptr;
    bool too_many = false;
    PyObject* const result = give(*permits, [&] {
        try {
            permits->release(number);
        } catch (const std::system_error& error) {
            too_many = error.code() == std::errc::value_too_large;
            if (!too_many) throw;
        }
    });
    if (!too_many) return result;
    Py_XDECREF(result);
    PyErr_Format(PyExc_OverflowError, "a semaphore counts to %zd at most",
                 static_cast<Py_ssize_t>(shared_semaphore::max()));
    return nullptr;
}

PyObject* release_semaphore(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"n"};
    PyObject* number = nullptr;
    if ((positional != 0 || names != nullptr) &&
        !read_arguments("release", given, positional, names, known, 1, &number))
        return nullptr;
    Py_ssize_t permits = 1;
    if (number != nullptr) {
        permits = PyNumber_AsSsize_t(number, nullptr);
        if (permits == -1 && PyErr_Occurred()) return nullptr;
        if (permits < 1) {
            PyErr_SetString(PyExc_ValueError, "n must be one or more");
            return nullptr;
        }
    }
    return release_permits(self, permits);
}

PyObject* enter_semaphore(PyObject* self, PyObject*) { return acquire_permit(self, deadline::never()); }
PyObject* leave_semaphore(PyObject* self, PyObject* const*, Py_ssize_t) { return release_permits(self, 1); }

PyObject* value_of_semaphore(PyObject* self, void*) {
    shared_semaphore* const permits = get<shared_semaphore>(self);
    return permits == nullptr ? nullptr : PyLong_FromSsize_t(static_cast<Py_ssize_t>(permits->available()));
}

PyObject* represent_semaphore(PyObject* self) {
    shared_semaphore* const permits = get<shared_semaphore>(self);
    if (permits == nullptr) return nullptr;
    return PyUnicode_FromFormat("<%s at %p: value=%zd>", Py_TYPE(self)->tp_name, self,
                                static_cast<Py_ssize_t>(permits->available()));
}

// ---- SharedLock

// The wait of the main thread. It has objects with destructors only while the interpreter's lock is given up, and in
// functions that return before (blocking.cpp). Returns false with an exception set.
bool lock_watching(shared_lock& lock, const deadline& until, lock_status& how) {
    const deadline soon(first_sleep);
    const bool is_short = until.remaining() <= soon.remaining();
    caught error;
    Py_BEGIN_ALLOW_THREADS;
    error = catching([&] { how = lock.try_lock_until(is_short ? until : soon); });
    Py_END_ALLOW_THREADS;
    if (is_short || error.number != -1 || how != lock_status::timed_out) {
        if (error.number != -1) raise_shared_error(error);
        return error.number == -1;
    }
    for (;;) {
        signal_watch watch;
        const auto watching = watch.begin();
        if (watching == signal_watch::beginning::failed) return false;
        const bool watches = watching == signal_watch::beginning::watches;
        caught refused;
        Py_BEGIN_ALLOW_THREADS;
        error = catching([&] {
            if (!watches) {
                how = lock.try_lock_until(until);
                return;
            }
            std::stop_source arrival;
            manual_reset_event told;
            auto request = any_operation(
                [&](const any_result&) noexcept {
                    arrival.request_stop();
                    told.set();
                },
                readable(signal_watch::descriptor()));
            request.on(inline_executor).start();
            refused = catching([&] { how = lock.try_lock_until(until, arrival.get_token()); });
            if (!request.cancel()) told.wait();  // soon: another thread is in the operation's function
        });
        Py_END_ALLOW_THREADS;
        if (error.number == -1) error = refused;
        if (watches) {
            watch.end();
            watch.forward();
        }
        if (error.number != -1) {
            raise_shared_error(error);
            return false;
        }
        if (how != lock_status::stopped) return true;
    }
}

unsigned long this_thread() noexcept { return PyThread_get_thread_native_id(); }

bool holds(const shared_object& one) noexcept {
    return one.holder.load(std::memory_order_relaxed) == this_thread();  // no order: shared-3
}

// 1: this thread has the lock now. 0: not in this time. -1: an exception is set.
int acquire_lock(PyObject* self, const deadline& until) {
    shared_lock* const lock = get<shared_lock>(self);
    if (lock == nullptr) return -1;
    lock_status how = lock_status::busy;
    caught error = catching([&] { how = lock->try_lock(); });
    if (error.number == EDEADLK) {
        PyErr_SetString(PyExc_RuntimeError,
                        "this thread has the lock already, and a SharedLock is not recursive");
        return -1;
    }
    if (error.number == -1 && how == lock_status::busy && until.which() != deadline::clock::passed) {
        if (!may_block()) return -1;
        if (runs_handlers()) {
            if (!lock_watching(*lock, until, how)) return -1;
        } else {
            Py_BEGIN_ALLOW_THREADS;
            error = catching([&] { how = lock->try_lock_until(until); });
            Py_END_ALLOW_THREADS;
        }
    }
    if (error.number != -1) {
        raise_shared_error(error);
        return -1;
    }
    if (how == lock_status::lost) {
        PyErr_SetString(state_of(module_of(Py_TYPE(self))).lock_lost,
                        "the lock is lost: a thread that was told owner_died has released it without "
                        "mark_repaired(). Make a new lock, in memory that is full of zeros");
        return -1;
    }
    if (how != lock_status::acquired && how != lock_status::owner_died) return 0;
    auto& one = as<shared_object>(self);
    one.owner_died = how == lock_status::owner_died;
    one.holder.store(this_thread(), std::memory_order_relaxed);  // no order: shared-3
    Py_INCREF(self);                                             // shared-2
    return 1;
}

PyObject* acquire_and_return(PyObject* self, const deadline& until) {
    const int result = acquire_lock(self, until);
    return result < 0 ? nullptr : boolean(result == 1);
}

PyObject* acquire_shared_lock(PyObject* self, PyObject* const* given, Py_ssize_t positional,
                              PyObject* names) {
    deadline until = deadline::never();
    return read_acquire(given, positional, names, until) ? acquire_and_return(self, until) : nullptr;
}

// Whether this thread has the lock by way of this object; else false with an exception set.
bool must_hold(PyObject* self, const char* call) {
    if (get<shared_lock>(self) == nullptr) return false;
    if (holds(as<shared_object>(self))) return true;
    PyErr_Format(PyExc_RuntimeError, "%s() by a thread that has not acquired the lock with this object",
                 call);
    return false;
}

// The wake, if there is one, is of the one thread that has waited longest, mostly of another process. So the
// interpreter's lock stays: to give it up could mean to wait for it, with all the others.
PyObject* release_shared_lock(PyObject* self, PyObject*) {
    if (!must_hold(self, "release")) return nullptr;
    auto& one = as<shared_object>(self);
    one.holder.store(0, std::memory_order_relaxed);  // no order: shared-3
    const caught error = catching([&] { get<shared_lock>(self)->unlock(); });
    if (error.number != -1) {  // somebody has written into the memory; the thread's list may lead there
        raise_shared_error(error);
        return nullptr;
    }
    Py_DECREF(self);  // shared-2; the caller has a reference, too
    Py_RETURN_NONE;
}

PyObject* enter_lock(PyObject* self, PyObject*) { return acquire_and_return(self, deadline::never()); }
PyObject* leave_lock(PyObject* self, PyObject* const*, Py_ssize_t) {
    return release_shared_lock(self, nullptr);
}

PyObject* mark_repaired(PyObject* self, PyObject*) {
    if (!must_hold(self, "mark_repaired")) return nullptr;
    const caught error = catching([&] { get<shared_lock>(self)->mark_repaired(); });
    if (error.number != -1) {
        raise_shared_error(error);
        return nullptr;
    }
    as<shared_object>(self).owner_died = false;
    Py_RETURN_NONE;
}

PyObject* owner_died(PyObject* self, void*) {
    if (get<shared_lock>(self) == nullptr) return nullptr;
    const auto& one = as<shared_object>(self);
    return boolean(holds(one) && one.owner_died);
}

PyObject* represent_lock(PyObject* self) {
    if (get<shared_lock>(self) == nullptr) return nullptr;
    return PyUnicode_FromFormat("<%s at %p%s>", Py_TYPE(self)->tp_name, self,
                                holds(as<shared_object>(self)) ? ", held by this thread" : "");
}

// ---- The types

// What all objects have.
constexpr PyMethodDef reduce_method{"__reduce__", reduce_object, METH_NOARGS, nullptr};
constexpr PyGetSetDef buffer_attribute{"buffer", buffer_of, nullptr, "The memory that the object is in.",
                                       nullptr};
constexpr PyGetSetDef offset_attribute{"offset", offset_of, nullptr, "Its place there, in bytes.", nullptr};

PyGetSetDef event_attributes[] = {
    buffer_attribute,
    offset_attribute,
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <class Event>
struct texts;
template <>
struct texts<shared_manual_reset_event> {
    static constexpr const char* of_type =
        "SharedEvent(*, buffer=None, offset=0)\n--\n\nAn Event of several processes. It lives in a buffer, "
        "or "
        "in memory of its own. Zeroed memory is an unset event. A process that is killed blocks nobody.";
    static constexpr const char* of_set =
        "set($self, /)\n--\n\nRelease every thread that waits at this moment, in all processes, and let "
        "later "
        "ones pass until clear().";
    static constexpr const char* of_wait =
        "wait($self, /, timeout=None)\n--\n\nWait until the event is set, at most `timeout` seconds. Return "
        "whether it was set.";
};
template <>
struct texts<shared_auto_reset_event> {
    static constexpr const char* of_type =
        "SharedAutoResetEvent(*, buffer=None, offset=0)\n--\n\nAn AutoResetEvent of several processes: each "
        "set() releases exactly one thread. What was handed to a process that dies goes to the next thread.";
    static constexpr const char* of_set =
        "set($self, /)\n--\n\nRelease the thread that has waited longest, in whichever process; if none "
        "waits, the next one that arrives. If the event is set already, nothing changes.";
    static constexpr const char* of_wait =
        "wait($self, /, timeout=None)\n--\n\nWait until the event is set, at most `timeout` seconds, and "
        "make "
        "it unset. Return whether it was set.";
};

template <class Event>
PyMethodDef event_methods[] = {
    {"set", set<Event>, METH_NOARGS, texts<Event>::of_set},
    {"clear", clear<Event>, METH_NOARGS,
     "clear($self, /)\n--\n\nMake the event unset. Threads that were released stay released."},
    {"is_set", is_set<Event>, METH_NOARGS,
     "is_set($self, /)\n--\n\nReturn whether the event is set now. Takes nothing."},
    {"wait", as_function<wait<Event>>(), METH_FASTCALL | METH_KEYWORDS, texts<Event>::of_wait},
    reduce_method,
    {nullptr, nullptr, 0, nullptr},
};

template <class Event>
PyType_Slot event_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_object)},
    {Py_tp_init, reinterpret_cast<void*>(initialise_plain<Event>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_object)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_object)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_object)},
    {Py_tp_repr, reinterpret_cast<void*>(represent_event<Event>)},
    {Py_tp_methods, event_methods<Event>},
    {Py_tp_getset, event_attributes},
    {Py_tp_members, weak_reference_members},
    {Py_am_await, reinterpret_cast<void*>(await_object)},
    {Py_tp_doc, const_cast<char*>(texts<Event>::of_type)},
    {0, nullptr},
};

PyMethodDef semaphore_methods[] = {
    {"acquire", as_function<acquire_semaphore>(), METH_FASTCALL | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=None)\n--\n\nTake a permit; wait until there is one, at most "
     "`timeout` seconds. Return whether it took one. Waiting threads are served first in, first out, "
     "whichever processes they are in."},
    {"release", as_function<release_semaphore>(), METH_FASTCALL | METH_KEYWORDS,
     "release($self, /, n=1)\n--\n\nGive `n` permits: to threads that wait, oldest first, and the rest to "
     "the count."},
    {"__enter__", enter_semaphore, METH_NOARGS, "__enter__($self, /)\n--\n\nacquire()"},
    {"__exit__", as_function<leave_semaphore>(), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nrelease()"},
    reduce_method,
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef semaphore_attributes[] = {
    {"value", value_of_semaphore, nullptr, "How many permits are free now.", nullptr},
    buffer_attribute,
    offset_attribute,
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot semaphore_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_object)},
    {Py_tp_init, reinterpret_cast<void*>(initialise_semaphore)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_object)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_object)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_object)},
    {Py_tp_repr, reinterpret_cast<void*>(represent_semaphore)},
    {Py_tp_methods, semaphore_methods},
    {Py_tp_getset, semaphore_attributes},
    {Py_tp_members, weak_reference_members},
    {Py_am_await, reinterpret_cast<void*>(await_object)},
    {Py_tp_doc,
     const_cast<char*>("SharedSemaphore(value=1, *, buffer=None, offset=0)\n--\n\nA Semaphore of several "
                       "processes, in memory of its own, or in a buffer: then it has the permits that the "
                       "memory says, in zeroed memory none, and no value may be given.")},
    {0, nullptr},
};

PyMethodDef lock_methods[] = {
    {"acquire", as_function<acquire_shared_lock>(), METH_FASTCALL | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=None)\n--\n\nTake the lock; wait until it is free, at most "
     "`timeout` seconds. Return whether it was taken; then look at `owner_died`. LockLost if nobody can have "
     "it any more. First come, first served."},
    {"release", release_shared_lock, METH_NOARGS,
     "release($self, /)\n--\n\nFree the lock. Only the thread that has acquired it may do so, with the same "
     "object. While `owner_died` is true, this makes the lock lost for all."},
    {"mark_repaired", mark_repaired, METH_NOARGS,
     "mark_repaired($self, /)\n--\n\nSay that what the lock protects is in order again, after an owner has "
     "died. Then `owner_died` is false."},
    {"__enter__", enter_lock, METH_NOARGS, "__enter__($self, /)\n--\n\nacquire()"},
    {"__exit__", as_function<leave_lock>(), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nrelease()"},
    reduce_method,
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef lock_attributes[] = {
    {"owner_died", owner_died, nullptr,
     "Whether an earlier owner has died with the lock, and nobody has called mark_repaired() since. True "
     "only "
     "for the thread that has the lock.",
     nullptr},
    buffer_attribute,
    offset_attribute,
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot lock_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_object)},
    {Py_tp_init, reinterpret_cast<void*>(initialise_plain<shared_lock>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_object)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_object)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_object)},
    {Py_tp_repr, reinterpret_cast<void*>(represent_lock)},
    {Py_tp_methods, lock_methods},
    {Py_tp_getset, lock_attributes},
    {Py_tp_members, weak_reference_members},
    {Py_tp_doc, const_cast<char*>(
                    "SharedLock(*, buffer=None, offset=0)\n--\n\nA lock of several processes that outlives "
                    "its owner: if the thread or process that has it dies, the next owner gets it, and "
                    "`owner_died` is true. Zeroed memory is a free lock.")},
    {0, nullptr},
};

// Adds a type, and says how many bytes of a buffer an object takes.
template <class Object>
PyTypeObject* add(PyObject* module, const char* name, PyType_Slot* slots) {
    PyType_Spec spec{name, sizeof(shared_object), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    PyTypeObject* const type = add_type(module, spec);
    if (type == nullptr) return nullptr;
    PyObject* const size = PyLong_FromSize_t(sizeof(Object));
    const bool good =
        size != nullptr && PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "SIZE", size) == 0;
    Py_XDECREF(size);
    return good ? type : nullptr;
}

}  // namespace

bool is_shared_source(const module_state& state, PyObject* of) noexcept {
    return PyObject_TypeCheck(of, state.shared_event) ||
           PyObject_TypeCheck(of, state.shared_auto_reset_event) ||
           PyObject_TypeCheck(of, state.shared_semaphore);
}

bool is_shared_lock(const module_state& state, PyObject* of) noexcept {
    return PyObject_TypeCheck(of, state.shared_lock);
}

const void* shared_address(PyObject* of) { return get<void>(of); }

bool to_shared_source(const module_state& state, PyObject* of, source& out) {
    if (PyObject_TypeCheck(of, state.shared_event)) {
        auto* const event = get<shared_manual_reset_event>(of);
        return event != nullptr && convert(*event, out);
    }
    if (PyObject_TypeCheck(of, state.shared_auto_reset_event)) {
        auto* const event = get<shared_auto_reset_event>(of);
        return event != nullptr && convert(*event, out);
    }
    auto* const permits = get<shared_semaphore>(of);
    return permits != nullptr && convert(*permits, out);
}

bool add_shared_types(PyObject* module) {
    auto& state = state_of(module);
    state.lock_lost = PyErr_NewExceptionWithDoc("tocsin.LockLost",
                                                "Nobody can have the SharedLock any more: an owner died, and "
                                                "the next one did not repair what the lock "
                                                "protects.",
                                                PyExc_RuntimeError, nullptr);
    // (PyModule_AddObjectRef() is newer than CPython 3.9.)
    return state.lock_lost != nullptr && PyObject_SetAttrString(module, "LockLost", state.lock_lost) == 0 &&
           add_shared_memory_type(module) &&
           (state.shared_event = add<shared_manual_reset_event>(
                module, "tocsin.SharedEvent", event_slots<shared_manual_reset_event>)) != nullptr &&
           (state.shared_auto_reset_event = add<shared_auto_reset_event>(
                module, "tocsin.SharedAutoResetEvent", event_slots<shared_auto_reset_event>)) != nullptr &&
           (state.shared_semaphore =
                add<shared_semaphore>(module, "tocsin.SharedSemaphore", semaphore_slots)) != nullptr &&
           (state.shared_lock = add<shared_lock>(module, "tocsin.SharedLock", lock_slots)) != nullptr;
}

}  // namespace tocsin::python
