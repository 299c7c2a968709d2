// SPDX-License-Identifier: Apache-2.0
// Who waits for what: the library's list of parked waits, for tocsin.parked_waits() (tocsin/_diagnosis.py).
#include "objects.hpp"
#include "queue.hpp"
#include "shared.hpp"

#include <tocsin/diagnose.hpp>

namespace tocsin::python {
namespace {

// The addresses are those of the library's objects inside ours.
const void* address_of(PyObject* module, PyObject* of) {
    module_state& state = state_of(module);
    PyTypeObject* const type = Py_TYPE(of);
    if (PyType_IsSubtype(type, state.lock)) return &as<lock_object>(of).lock.event();
    if (PyType_IsSubtype(type, state.rlock)) return &as<rlock_object>(of).lock.event();
    if (is_shared_source(state, of) || is_shared_lock(state, of)) return shared_address(of);
    source from;
    PyObject* keep = nullptr;
    if (!to_source(state, of, from, keep)) return nullptr;
    Py_XDECREF(keep);
    if (from.what() == source::kind::lot) return from.object();
    PyErr_Format(PyExc_TypeError, "%R has no waits that are listed", of);
    return nullptr;
}

PyObject* waiting(PyObject* module, PyObject* of) {
    const void* const address = address_of(module, of);
    return address == nullptr ? nullptr : PyLong_FromSize_t(waiting_on(address));
}

PyObject* name(PyObject* module, PyObject* arguments) {
    PyObject* of = nullptr;
    const char* text = nullptr;
    if (!PyArg_ParseTuple(arguments, "Os:name", &of, &text)) return nullptr;
    const void* const address = address_of(module, of);
    if (address == nullptr) return nullptr;
    const caught error = catching([&] { name_address(address, text); });
    if (error.number == -1) Py_RETURN_NONE;
    raise_error(error.number, error.message);
    return nullptr;
}

PyObject* waits(PyObject*, PyObject*) {
    PyObject* const list = PyList_New(0);
    if (list == nullptr) return nullptr;
    std::vector<parked_wait> all;
    const caught error = catching([&] { all = tocsin::parked_waits(); });
    if (error.number != -1) {
        raise_error(error.number, error.message);
        Py_DECREF(list);
        return nullptr;
    }
    const auto now = std::chrono::steady_clock::now();
    for (const parked_wait& each : all) {
        const double seconds = std::chrono::duration<double>(now - each.since).count();
        const auto where = each.what == parked_wait::kind::descriptor
                               ? each.bit
                               : reinterpret_cast<std::uintptr_t>(each.address);
        PyObject* const row = Py_BuildValue("(sKKds)", each.type, static_cast<unsigned long long>(where),
                                            static_cast<unsigned long long>(each.thread),
                                            seconds < 0 ? 0.0 : seconds, each.name.c_str());
        if (row == nullptr || PyList_Append(list, row) != 0) {
            Py_XDECREF(row);
            Py_DECREF(list);
            return nullptr;
        }
        Py_DECREF(row);
    }
    return list;
}

PyObject* address(PyObject* module, PyObject* of) {
    const void* const found = address_of(module, of);
    return found == nullptr ? nullptr : PyLong_FromVoidPtr(const_cast<void*>(found));
}

PyMethodDef functions[] = {
    {"waiting_on", waiting, METH_O,
     "waiting_on($module, source, /)\n--\n\nReturn how many waits are queued for this object; of one that "
     "processes share, how many of this process."},
    {"_name", name, METH_VARARGS, nullptr},
    {"_address", address, METH_O, nullptr},
    {"_parked_waits", waits, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_diagnosis(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace tocsin::python
