// SPDX-License-Identifier: Apache-2.0
// tocsin.Lock and tocsin.RLock.
#include "objects.hpp"

namespace tocsin::python {
namespace {

constexpr double longest_timeout = 9223372036.0;  // threading.TIMEOUT_MAX

// The arguments of acquire(blocking=True, timeout=-1), as strict as those of _thread.lock.
bool read_acquire(PyObject* const* given, Py_ssize_t positional, PyObject* names, deadline& until) {
    static const char* const known[] = {"blocking", "timeout"};
    PyObject* arguments[2] = {};
    if (positional == 0 && names == nullptr) return true;
    if (!read_arguments("acquire", given, positional, names, known, 2, arguments)) return false;
    const int blocking = arguments[0] == nullptr ? 1 : PyObject_IsTrue(arguments[0]);
    if (blocking < 0) return false;
    double seconds = -1;
    if (arguments[1] != nullptr) {
        seconds = PyFloat_AsDouble(arguments[1]);
        if (seconds == -1 && PyErr_Occurred()) return false;
    }
    if (blocking == 0) {
        if (seconds != -1) {
            PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
            return false;
        }
        until = deadline(std::chrono::nanoseconds(0));
    } else if (seconds != -1) {
        if (!(seconds >= 0)) {
            PyErr_SetString(PyExc_ValueError, "timeout value must be a non-negative number");
            return false;
        }
        if (seconds > longest_timeout) {
            PyErr_SetString(PyExc_OverflowError, "timeout value is too large");
            return false;
        }
        return read_timeout(arguments[1], until);
    }
    return true;
}

bool unlock(barging_lock& lock) {
    bool wake = false;
    if (!lock.unlock(wake)) return false;
    if (wake) set_and_wake([&](wake_list& freed) noexcept { lock.event().set(freed); });
    return true;
}

struct pending_lock {
    barging_lock& lock;
    bool taken;
};

// Returns 1 if it has taken the lock, 0 if the deadline has passed, -1 with an exception set.
int take(barging_lock& lock, const deadline& until) {
    if (lock.try_lock()) return 1;
    if (until.which() == deadline::clock::passed) return 0;
    ending how = ending::ready;
    bool taken;
    if (runs_handlers()) {
        taken = lock.lock_slow([&](auto_reset_event& event, bool& has_lock) {
            pending_lock pending{lock, false};
            how = block_on(source(event), until,
                           {&pending,
                            [](void* to) noexcept {
                                auto& it = *static_cast<pending_lock*>(to);
                                return it.taken = it.lock.take_once_woken();
                            }})
                      .how;
            has_lock = pending.taken;
            return how == ending::ready;
        });
    } else {
        if (!may_block()) return -1;
        Py_BEGIN_ALLOW_THREADS;
        taken =
            lock.lock_slow([&](auto_reset_event& event, bool&) noexcept { return sleep_for(event, until); });
        Py_END_ALLOW_THREADS;
    }
    if (how == ending::failed) {
        if (taken) unlock(lock);  // it was handed over at the moment of the exception
        return -1;
    }
    return taken ? 1 : 0;
}

PyObject* answer(int taken) { return taken < 0 ? nullptr : boolean(taken != 0); }

template <class Object>
PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    new (&as<Object>(self).lock) barging_lock;
    if constexpr (requires(Object& one) { one.owner; })
        new (&as<Object>(self).owner) std::atomic<unsigned long>(0);
    return self;
}

template <class Object>
PyObject* locked(PyObject* self, PyObject*) {
    return boolean(as<Object>(self).lock.is_locked());
}

PyObject* lock_acquire(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    deadline until = deadline::never();
    if (!read_acquire(given, positional, names, until)) return nullptr;
    return answer(take(as<lock_object>(self).lock, until));
}
PyObject* lock_enter(PyObject* self, PyObject*) {
    return answer(take(as<lock_object>(self).lock, deadline::never()));
}

PyObject* lock_release(PyObject* self, PyObject*) {
    if (unlock(as<lock_object>(self).lock)) Py_RETURN_NONE;
    PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
    return nullptr;
}
PyObject* lock_exit(PyObject* self, PyObject* const*, Py_ssize_t) { return lock_release(self, nullptr); }

PyObject* lock_represent(PyObject* self) {
    return PyUnicode_FromFormat("<%s %s object at %p>",
                                as<lock_object>(self).lock.is_locked() ? "locked" : "unlocked",
                                Py_TYPE(self)->tp_name, self);
}

PyObject* lock_reinit(PyObject* self, PyObject*) {
    as<lock_object>(self).lock.reset_after_fork();
    Py_RETURN_NONE;
}

unsigned long me() noexcept { return PyThread_get_thread_ident(); }

bool is_mine(const rlock_object& one) noexcept {
    return one.owner.load(std::memory_order_relaxed) == me();  // no order: only this thread stores its number
}

int rlock_take(PyObject* self, const deadline& until) {
    auto& one = as<rlock_object>(self);
    if (is_mine(one)) {
        ++one.count;
        return 1;
    }
    const int taken = take(one.lock, until);
    if (taken > 0) {
        one.owner.store(me(), std::memory_order_relaxed);  // no order: see is_mine()
        one.count = 1;
    }
    return taken;
}

PyObject* rlock_acquire(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    deadline until = deadline::never();
    if (!read_acquire(given, positional, names, until)) return nullptr;
    return answer(rlock_take(self, until));
}
PyObject* rlock_enter(PyObject* self, PyObject*) { return answer(rlock_take(self, deadline::never())); }

bool owns(const rlock_object& one) {
    if (is_mine(one)) return true;
    PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
    return false;
}

void free_all(rlock_object& one) {
    one.count = 0;
    one.owner.store(0, std::memory_order_relaxed);  // no order: see is_mine()
    unlock(one.lock);
}

PyObject* rlock_release(PyObject* self, PyObject*) {
    auto& one = as<rlock_object>(self);
    if (!owns(one)) return nullptr;
    if (one.count == 1) {
        free_all(one);
    } else {
        --one.count;
    }
    Py_RETURN_NONE;
}
PyObject* rlock_exit(PyObject* self, PyObject* const*, Py_ssize_t) { return rlock_release(self, nullptr); }

PyObject* rlock_is_owned(PyObject* self, PyObject*) { return boolean(is_mine(as<rlock_object>(self))); }

PyObject* rlock_recursion_count(PyObject* self, PyObject*) {
    const auto& one = as<rlock_object>(self);
    return PyLong_FromUnsignedLong(is_mine(one) ? one.count : 0);
}

// What a condition calls around its sleep.
PyObject* rlock_release_save(PyObject* self, PyObject*) {
    auto& one = as<rlock_object>(self);
    if (!owns(one)) return nullptr;
    PyObject* const saved = Py_BuildValue("(kk)", one.count, me());
    if (saved != nullptr) free_all(one);
    return saved;
}
PyObject* rlock_acquire_restore(PyObject* self, PyObject* saved) {
    unsigned long count = 0;
    unsigned long owner = 0;
    if (!PyTuple_Check(saved) || !PyArg_ParseTuple(saved, "kk:_acquire_restore", &count, &owner))
        return nullptr;
    auto& one = as<rlock_object>(self);
    if (take(one.lock, deadline::never()) < 0) return nullptr;
    one.owner.store(owner, std::memory_order_relaxed);  // no order: see is_mine()
    one.count = count;
    Py_RETURN_NONE;
}

PyObject* rlock_represent(PyObject* self) {
    const auto& one = as<rlock_object>(self);
    return PyUnicode_FromFormat("<%s %s object owner=%lu count=%lu at %p>",
                                one.lock.is_locked() ? "locked" : "unlocked", Py_TYPE(self)->tp_name,
                                one.owner.load(std::memory_order_relaxed),  // no order: a guess
                                one.count, self);
}

PyObject* rlock_reinit(PyObject* self, PyObject*) {
    auto& one = as<rlock_object>(self);
    one.lock.reset_after_fork();
    one.owner.store(0, std::memory_order_relaxed);  // no order: the only thread
    one.count = 0;
    Py_RETURN_NONE;
}

#define ACQUIRE_DOC                                                                                      \
    "acquire($self, /, blocking=True, timeout=-1)\n--\n\nTake the lock; wait until it is free, at most " \
    "`timeout` "                                                                                         \
    "seconds. Return whether it was taken."

PyMethodDef lock_methods[] = {
    {"acquire", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(lock_acquire)),
     METH_FASTCALL | METH_KEYWORDS, ACQUIRE_DOC},
    {"release", lock_release, METH_NOARGS, "release($self, /)\n--\n\nFree the lock. Any thread may do so."},
    {"locked", locked<lock_object>, METH_NOARGS,
     "locked($self, /)\n--\n\nReturn whether the lock is taken now."},
    {"__enter__", lock_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nacquire()"},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(lock_exit)), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nrelease()"},
    {"_at_fork_reinit", lock_reinit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef rlock_methods[] = {
    {"acquire", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(rlock_acquire)),
     METH_FASTCALL | METH_KEYWORDS, ACQUIRE_DOC},
    {"release", rlock_release, METH_NOARGS,
     "release($self, /)\n--\n\nUndo one acquire() of this thread; the last one frees the lock."},
    {"locked", locked<rlock_object>, METH_NOARGS,
     "locked($self, /)\n--\n\nReturn whether any thread has the lock."},
    {"__enter__", rlock_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nacquire()"},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(rlock_exit)), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nrelease()"},
    {"_is_owned", rlock_is_owned, METH_NOARGS, nullptr},
    {"_recursion_count", rlock_recursion_count, METH_NOARGS, nullptr},
    {"_release_save", rlock_release_save, METH_NOARGS, nullptr},
    {"_acquire_restore", rlock_acquire_restore, METH_O, nullptr},
    {"_at_fork_reinit", rlock_reinit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot lock_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make<lock_object>)},
    {Py_tp_init, reinterpret_cast<void*>(refuse_arguments)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(lock_represent)},
    {Py_tp_methods, lock_methods},
    {Py_tp_members, weak_reference_members},
    {Py_tp_doc,
     const_cast<char*>("Lock()\n--\n\nA lock that one thread has at a time, and that any thread may free.")},
    {0, nullptr},
};
PyType_Slot rlock_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make<rlock_object>)},
    {Py_tp_init, reinterpret_cast<void*>(refuse_arguments)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(rlock_represent)},
    {Py_tp_methods, rlock_methods},
    {Py_tp_members, weak_reference_members},
    {Py_tp_doc,
     const_cast<char*>("RLock()\n--\n\nA lock that its owner may take several times, and frees as often.")},
    {0, nullptr},
};

}  // namespace

bool add_lock_types(PyObject* module) {
    auto& state = state_of(module);
    PyType_Spec lock{"tocsin.Lock", sizeof(lock_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                     lock_slots};
    state.lock = add_type(module, lock);
    if (state.lock == nullptr) return false;
    PyType_Spec rlock{"tocsin.RLock", sizeof(rlock_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      rlock_slots};
    state.rlock = add_type(module, rlock);
    return state.rlock != nullptr;
}

}  // namespace tocsin::python
