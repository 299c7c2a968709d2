// SPDX-License-Identifier: Apache-2.0
// tocsin.Signal: the deliveries of one signal as a source. What the library promises of it is in tocsin/signal.hpp;
// Python's own handler of the signal runs as well.
//
// close() destroys what the other methods use, so all of them are in the object's critical section.
#include "objects.hpp"

#include <tocsin/signal.hpp>

namespace tocsin::python {
namespace {

struct signal_object {
    PyObject_HEAD PyObject* weak_references;
    signal_source* from;  // null once it is closed
};
static_assert(offsetof(event_object, weak_references) == offsetof(signal_object, weak_references));

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    static const char* known[] = {"signalnum", nullptr};
    int number = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "i", const_cast<char**>(known), &number))
        return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    signal_source*& from = as<signal_object>(self).from;
    const caught error = catching([&] { from = new signal_source(number); });
    if (error.number == -1) return self;
    Py_DECREF(self);
    raise_error(error.number == EINVAL ? 0 : error.number, error.message);
    return nullptr;
}

signal_source* open_source(PyObject* self) {
    signal_source* const from = as<signal_object>(self).from;
    if (from == nullptr) PyErr_SetString(PyExc_ValueError, "this Signal is closed");
    return from;
}

PyObject* descriptor(PyObject* self, PyObject*) {
    return in_critical_section(self, [self]() -> PyObject* {
        const signal_source* const from = open_source(self);
        return from == nullptr ? nullptr : PyLong_FromLong(from->descriptor());
    });
}

PyObject* take(PyObject* self, PyObject*) {
    return in_critical_section(self, [self]() -> PyObject* {
        signal_source* const from = open_source(self);
        return from == nullptr ? nullptr : boolean(from->try_wait());
    });
}

PyObject* close(PyObject* self, PyObject*) {
    delete in_critical_section(self, [self] { return std::exchange(as<signal_object>(self).from, nullptr); });
    Py_RETURN_NONE;
}
PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) { return close(self, nullptr); }

PyObject* enter(PyObject* self, PyObject*) {
    Py_INCREF(self);
    return self;
}

void destroy(PyObject* self) {
    delete as<signal_object>(self).from;
    dealloc(self);
}

PyMethodDef methods[] = {
    {"fileno", descriptor, METH_NOARGS,
     "fileno($self, /)\n--\n\nReturn the descriptor, which is readable when the signal has arrived. Only "
     "poll it."},
    {"take", take, METH_NOARGS,
     "take($self, /)\n--\n\nReturn whether the signal has arrived since the last call that returned True."},
    {"close", close, METH_NOARGS, "close($self, /)\n--\n\nRestore what the signal did before."},
    {"__enter__", enter, METH_NOARGS, "__enter__($self, /)\n--\n\nReturn the object."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nclose()"},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {Py_tp_members, weak_reference_members},
    {Py_tp_doc, const_cast<char*>(
                    "Signal(signalnum)\n--\n\nThe arrivals of a signal as a source of any thread. While it "
                    "exists, the signal's default action does not happen.")},
    {0, nullptr},
};

}  // namespace

bool add_signal_type(PyObject* module) {
    PyType_Spec spec{"tocsin.Signal", sizeof(signal_object), 0, Py_TPFLAGS_DEFAULT, slots};
    return (state_of(module).signal = add_type(module, spec)) != nullptr;
}

}  // namespace tocsin::python
