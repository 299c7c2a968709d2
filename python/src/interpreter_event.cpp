// SPDX-License-Identifier: Apache-2.0
// tocsin.InterpreterEvent: an event that the interpreters of a process share.
//
// An object of Python belongs to one interpreter. So the event is in a block of its own, and each interpreter has an
// object that points to it. The module's code and its static data are in the process once, also if each interpreter has
// a lock of its own. An object in another interpreter finds the block by its handle, a number that is used only once.
//
// Invariants
//   interpreter-1  A block is in the table from its first object's beginning to its last object's end, and its count is
//                  that of its objects. The table's lock guards both.
//   interpreter-2  No Python runs under the table's lock, and nobody asks for an interpreter's lock there. So a thread
//                  may have its interpreter's lock when it takes the table's.
//   interpreter-3  A fork happens outside the table's lock.
//
// A thread that waits has a reference to its object, so nobody waits for a block that goes.
//
// Checked by: python/tests/test_interpreters.py.
#include "objects.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include <pthread.h>
#include <unistd.h>

namespace tocsin::python {
namespace {

struct block {
    manual_reset_event event;  // objects point here
    std::uint64_t handle = 0;
    std::size_t objects = 1;
};

struct table {
    std::mutex lock;
    std::uint64_t last = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<block>> blocks;
};

// It is never destroyed: objects may go after static data has.
table& all() {
    static table* const one = [] {
        auto* const made = new table;
        // Without memory for these, only a fork in the middle of another thread's look would be a danger.
        (void)::pthread_atfork([] { all().lock.lock(); }, [] { all().lock.unlock(); },
                               [] { all().lock.unlock(); });
        return made;
    }();
    return *one;
}

block& block_of(PyObject* self) {
    // The event is the first member.
    return *reinterpret_cast<block*>(as<interpreter_event_object>(self).event);
}

PyObject* object_for(PyTypeObject* type, block& shared) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self != nullptr) as<interpreter_event_object>(self).event = &shared.event;
    return self;
}

void leave(block& shared) noexcept {
    std::unique_ptr<block> last;
    const std::lock_guard guard(all().lock);
    if (--shared.objects != 0) return;
    const auto where = all().blocks.find(shared.handle);
    last = std::move(where->second);
    all().blocks.erase(where);
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    block* shared = nullptr;
    const caught error = catching([&] {
        auto made = std::make_unique<block>();
        const std::lock_guard guard(all().lock);
        made->handle = ++all().last;
        shared = all().blocks.emplace(made->handle, std::move(made)).first->second.get();
    });
    if (error.number != -1) return PyErr_NoMemory();
    PyObject* const self = object_for(type, *shared);
    if (self == nullptr) leave(*shared);
    return self;
}

void destroy(PyObject* self) {
    block* const shared = as<interpreter_event_object>(self).event == nullptr ? nullptr : &block_of(self);
    PyTypeObject* const type = Py_TYPE(self);
    if (as<interpreter_event_object>(self).weak_references != nullptr) PyObject_ClearWeakRefs(self);
    type->tp_free(self);
    Py_DECREF(type);
    if (shared != nullptr) leave(*shared);
}

PyObject* attach(PyObject* type, PyObject* number) {
    if (!PyLong_Check(number)) {
        PyErr_Format(PyExc_TypeError, "attach() takes the handle of an InterpreterEvent, an int, not '%s'",
                     Py_TYPE(number)->tp_name);
        return nullptr;
    }
    std::uint64_t handle = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        handle = 0;
    }
    block* shared = nullptr;
    {
        const std::lock_guard guard(all().lock);
        const auto where = all().blocks.find(handle);
        if (where != all().blocks.end()) {
            shared = where->second.get();
            ++shared->objects;
        }
    }
    if (shared == nullptr) {
        PyErr_Format(
            PyExc_ValueError,
            "no InterpreterEvent of this process has the handle %R: keep the object that gave it until "
            "the other interpreter has attached",
            number);
        return nullptr;
    }
    PyObject* const self = object_for(reinterpret_cast<PyTypeObject*>(type), *shared);
    if (self == nullptr) leave(*shared);
    return self;
}

PyObject* attach_unpickled(PyObject* type, PyObject* arguments) {
    long process = 0;
    PyObject* handle = nullptr;
    if (!PyArg_ParseTuple(arguments, "lO:_attach_unpickled", &process, &handle)) return nullptr;
    if (process == static_cast<long>(::getpid())) return attach(type, handle);
    PyErr_Format(PyExc_ValueError,
                 "an InterpreterEvent belongs to the process that made it (%ld), and this is process %ld",
                 process, static_cast<long>(::getpid()));
    return nullptr;
}

// Interpreters hand most objects to each other by pickle.
PyObject* reduce(PyObject* self, PyObject*) {
    PyObject* const attach_it =
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "_attach_unpickled");
    if (attach_it == nullptr) return nullptr;
    return Py_BuildValue("N(lK)", attach_it, static_cast<long>(::getpid()),
                         static_cast<unsigned long long>(block_of(self).handle));
}

PyObject* handle_of(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(block_of(self).handle); }

PyObject* set(PyObject* self, PyObject*) { return set_event(block_of(self).event); }
PyObject* clear(PyObject* self, PyObject*) {
    block_of(self).event.reset();
    Py_RETURN_NONE;
}
PyObject* is_set(PyObject* self, PyObject*) { return boolean(block_of(self).event.is_set()); }
PyObject* wait(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    return wait_for_event(block_of(self).event, given, positional, names);
}

PyObject* represent(PyObject* self) {
    const block& shared = block_of(self);
    return PyUnicode_FromFormat("<%s at %p, handle %llu: %s>", Py_TYPE(self)->tp_name, self,
                                static_cast<unsigned long long>(shared.handle),
                                shared.event.is_set() ? "set" : "unset");
}

PyMethodDef methods[] = {
    {"set", set, METH_NOARGS,
     "set($self, /)\n--\n\nRelease every thread that waits at this moment, in whichever interpreter, and let "
     "later ones pass until clear()."},
    {"clear", clear, METH_NOARGS,
     "clear($self, /)\n--\n\nMake the event unset. Threads that were released stay released."},
    {"is_set", is_set, METH_NOARGS,
     "is_set($self, /)\n--\n\nReturn whether the event is set now. Takes nothing."},
    {"wait", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(wait)), METH_FASTCALL | METH_KEYWORDS,
     "wait($self, /, timeout=None)\n--\n\nWait until the event is set, at most `timeout` seconds. Return "
     "whether it was set."},
    {"attach", attach, METH_O | METH_CLASS,
     "attach($type, handle, /)\n--\n\nReturn an object for the event that has this handle, in whichever "
     "interpreter of this process it was made. ValueError if it has gone."},
    {"_attach_unpickled", attach_unpickled, METH_VARARGS | METH_CLASS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef attributes[] = {
    {"handle", handle_of, nullptr,
     "The number by which another interpreter of this process attaches to the event. It holds while any "
     "object for "
     "the event lives.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_init, reinterpret_cast<void*>(refuse_arguments)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, methods},
    {Py_tp_members, weak_reference_members},
    {Py_tp_getset, attributes},
    {Py_am_await, reinterpret_cast<void*>(await_object)},
    {Py_tp_doc,
     const_cast<char*>("InterpreterEvent()\n--\n\nAn event that interpreters of one process share: "
                       "each has an object of its own, made by attach() or by unpickling. All "
                       "objects of an event compare as different ones.")},
    {0, nullptr},
};

}  // namespace

bool add_interpreter_event_type(PyObject* module) {
    PyType_Spec spec{"tocsin.InterpreterEvent", sizeof(interpreter_event_object), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return (state_of(module).interpreter_event = add_type(module, spec)) != nullptr;
}

}  // namespace tocsin::python
