// SPDX-License-Identifier: Apache-2.0
// The module tocsin._core. It has no state but that of its own objects, so each interpreter makes its own.
#include "objects.hpp"

#include <cstring>

namespace tocsin::python {

PyMemberDef weak_reference_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(event_object, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// All of these types keep their list at the same place.
static_assert(offsetof(event_object, weak_references) == offsetof(semaphore_object, weak_references));
static_assert(offsetof(event_object, weak_references) == offsetof(interpreter_event_object, weak_references));
static_assert(offsetof(event_object, weak_references) == offsetof(rlock_object, weak_references));
static_assert(sizeof(event_object) <= 64 && sizeof(lock_object) <= 64);

void dealloc(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    if (as<event_object>(self).weak_references != nullptr) PyObject_ClearWeakRefs(self);
    type->tp_free(self);
    Py_DECREF(type);
}

int refuse_arguments(PyObject* self, PyObject* arguments, PyObject* keywords) {
    if (PyTuple_GET_SIZE(arguments) == 0 && (keywords == nullptr || PyDict_GET_SIZE(keywords) == 0)) return 0;
    PyErr_Format(PyExc_TypeError, "%s() takes no arguments", Py_TYPE(self)->tp_name);
    return -1;
}

namespace {

// What pickle and copy call. Threads wait on an object's address, so a copy would be another object.
PyObject* refuse_to_copy(PyObject* self, PyObject*) {
    PyErr_Format(
        PyExc_TypeError,
        "cannot pickle or copy a '%s' object: threads share the object itself, and it belongs to one "
        "process; make one in each process",
        Py_TYPE(self)->tp_name);
    return nullptr;
}
PyMethodDef reduce{"__reduce__", refuse_to_copy, METH_NOARGS, nullptr};

bool refuses_to_be_copied(PyTypeObject* type) {
    PyObject* const method = PyDescr_NewMethod(type, &reduce);
    if (method == nullptr) return false;
    const bool good = PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), reduce.ml_name, method) == 0;
    Py_DECREF(method);
    return good;
}

}  // namespace

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, PyTypeObject* base) {
    // What has no constructor is made by functions only.
    bool has_constructor = false;
    bool can_be_pickled = false;
    for (const PyType_Slot* slot = spec.slots; slot->slot != 0; ++slot) {
        has_constructor |= slot->slot == Py_tp_new;
        if (slot->slot != Py_tp_methods) continue;
        for (auto* each = static_cast<const PyMethodDef*>(slot->pfunc); each->ml_name != nullptr; ++each)
            can_be_pickled |= std::strcmp(each->ml_name, reduce.ml_name) == 0;
    }
#if PY_VERSION_HEX >= 0x030A0000
    if (!has_constructor) spec.flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
#endif
    PyObject* bases = nullptr;
    if (base != nullptr) {
        bases = PyTuple_Pack(1, base);
        if (bases == nullptr) return nullptr;
    }
    PyObject* const type = PyType_FromModuleAndSpec(module, &spec, bases);
    Py_XDECREF(bases);
    if (type == nullptr) return nullptr;
#if PY_VERSION_HEX < 0x030A0000
    if (!has_constructor) reinterpret_cast<PyTypeObject*>(type)->tp_new = nullptr;
#endif
    if ((!can_be_pickled && !refuses_to_be_copied(reinterpret_cast<PyTypeObject*>(type))) ||
        PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) != 0) {
        Py_DECREF(type);
        return nullptr;
    }
    return reinterpret_cast<PyTypeObject*>(type);  // the state keeps this reference
}

namespace {

// The exceptions of the standard library, and the number of the main thread.
bool import_names(PyObject* module) {
    auto& state = state_of(module);
    PyObject* const queue = PyImport_ImportModule("queue");
    if (queue == nullptr) return false;
    state.empty = PyObject_GetAttrString(queue, "Empty");
    state.full = PyObject_GetAttrString(queue, "Full");
    Py_DECREF(queue);
    PyObject* const threading = PyImport_ImportModule("threading");
    if (threading == nullptr || state.empty == nullptr || state.full == nullptr) return false;
    PyObject* const main = PyObject_CallMethod(threading, "main_thread", nullptr);
    Py_DECREF(threading);
    PyObject* const number = main == nullptr ? nullptr : PyObject_GetAttrString(main, "ident");
    Py_XDECREF(main);
    if (number == nullptr) return false;
    const unsigned long thread = PyLong_AsUnsignedLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) return false;
    return prepare_blocking(thread);
}

// What the part in Python has: the function for threads and processes, and the exception of a closed queue.
PyObject* set_names(PyObject* module, PyObject* arguments) {
    PyObject* as_source = nullptr;
    PyObject* closed = nullptr;
    if (!PyArg_ParseTuple(arguments, "OO", &as_source, &closed)) return nullptr;
    Py_INCREF(as_source);
    Py_XSETREF(state_of(module).as_source, as_source);
    Py_INCREF(closed);
    Py_XSETREF(state_of(module).closed, closed);
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_set_names", set_names, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

int execute(PyObject* module) {
    const bool made = import_names(module) && add_event_types(module) && add_interpreter_event_type(module) &&
                      add_semaphore_types(module) && add_lock_types(module) && add_sources(module) &&
                      add_queue_type(module) && add_diagnosis(module) && add_wait_set_type(module) &&
                      add_async_types(module) && add_signal_type(module) && add_shared_types(module) &&
                      PyModule_AddStringConstant(module, "__version__", TOCSIN_PYTHON_VERSION) == 0;
    return made ? 0 : -1;
}

template <class Visit>
int each_reference(PyObject* module, Visit visit) {
    auto& state = state_of(module);
    PyObject** const types[] = {reinterpret_cast<PyObject**>(&state.event),
                                reinterpret_cast<PyObject**>(&state.auto_reset_event),
                                reinterpret_cast<PyObject**>(&state.interpreter_event),
                                reinterpret_cast<PyObject**>(&state.semaphore),
                                reinterpret_cast<PyObject**>(&state.bounded_semaphore),
                                reinterpret_cast<PyObject**>(&state.lock),
                                reinterpret_cast<PyObject**>(&state.rlock),
                                reinterpret_cast<PyObject**>(&state.deadline),
                                reinterpret_cast<PyObject**>(&state.ready),
                                reinterpret_cast<PyObject**>(&state.queue),
                                reinterpret_cast<PyObject**>(&state.wait_set),
                                reinterpret_cast<PyObject**>(&state.signal),
                                reinterpret_cast<PyObject**>(&state.async_wait),
                                reinterpret_cast<PyObject**>(&state.loop_bridge),
                                reinterpret_cast<PyObject**>(&state.shared_memory),
                                reinterpret_cast<PyObject**>(&state.shared_event),
                                reinterpret_cast<PyObject**>(&state.shared_auto_reset_event),
                                reinterpret_cast<PyObject**>(&state.shared_semaphore),
                                reinterpret_cast<PyObject**>(&state.shared_lock),
                                &state.lock_lost,
                                &state.as_source,
                                &state.closed,
                                &state.empty,
                                &state.full};
    for (PyObject** each : types)
        if (const int result = visit(*each)) return result;
    return 0;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
    return each_reference(module, [&](PyObject*& one) { return one == nullptr ? 0 : visit(one, arg); });
}
int clear(PyObject* module) {
    return each_reference(module, [](PyObject*& one) {
        Py_CLEAR(one);
        return 0;
    });
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "tocsin._core",
    .m_doc = "The part of tocsin that is compiled.",
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = [](void* module) { clear(static_cast<PyObject*>(module)); },
};

}  // namespace

bool is_ours(PyObject* module) noexcept { return PyModule_GetDef(module) == &definition; }

PyObject* module_of(PyTypeObject* type) {
    PyObject* const bases = type->tp_mro;
    for (Py_ssize_t i = 0; i != PyTuple_GET_SIZE(bases); ++i) {
        auto* const each = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
        if ((each->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) continue;
        PyObject* const module = reinterpret_cast<PyHeapTypeObject*>(each)->ht_module;
        if (module != nullptr && is_ours(module)) return module;
    }
    PyErr_SetString(PyExc_SystemError, "tocsin: a type without its module");
    return nullptr;
}

}  // namespace tocsin::python

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&tocsin::python::definition); }
