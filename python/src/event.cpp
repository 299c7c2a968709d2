// SPDX-License-Identifier: Apache-2.0
// tocsin.Event and tocsin.AutoResetEvent.
#include "objects.hpp"

namespace tocsin::python {
namespace {

template <class Object>
PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self != nullptr) new (&as<Object>(self).event) decltype(Object::event);
    return self;
}

template <class Event>
PyObject* set_and_return(Event& event) {
    set_and_wake([&event](wake_list& freed) noexcept { event.set(freed); });
    Py_RETURN_NONE;
}

template <class Object>
PyObject* set(PyObject* self, PyObject*) {
    return set_and_return(as<Object>(self).event);
}

// set() for a caller that has a lock which the woken thread needs next, as in Condition.notify(). It keeps the
// interpreter's lock while it wakes. Otherwise the woken thread would run at once, only to wait for that other lock.
template <class Object>
PyObject* set_under_lock(PyObject* self, PyObject*) {
    as<Object>(self).event.set();
    Py_RETURN_NONE;
}

template <class Object>
PyObject* clear(PyObject* self, PyObject*) {
    as<Object>(self).event.reset();
    Py_RETURN_NONE;
}

template <class Object>
PyObject* is_set(PyObject* self, PyObject*) {
    return boolean(as<Object>(self).event.is_set());
}

template <class Event>
PyObject* wait_for(Event& event, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"timeout"};
    PyObject* timeout = nullptr;
    if ((positional != 0 || names != nullptr) &&
        !read_arguments("wait", given, positional, names, known, 1, &timeout))
        return nullptr;
    deadline until = deadline::never();
    if (!read_timeout(timeout, until)) return nullptr;
    if (event.try_wait()) Py_RETURN_TRUE;
    if (until.which() == deadline::clock::passed) Py_RETURN_FALSE;
    const outcome end =
        block_on({&event,
                  [](void* it, const deadline& limit, spin_policy spin) noexcept {
                      return static_cast<Event*>(it)->wait_until(limit, spin) == wait_status::signaled;
                  },
                  source(event)},
                 until);
    if (end.how == ending::failed) return nullptr;
    return boolean(end.how == ending::ready);
}

template <class Object>
PyObject* wait(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    return wait_for(as<Object>(self).event, given, positional, names);
}

template <class Object>
PyObject* represent(PyObject* self) {
    return PyUnicode_FromFormat("<%s at %p: %s>", Py_TYPE(self)->tp_name, self,
                                as<Object>(self).event.is_set() ? "set" : "unset");
}

// threading.Event has a condition here, and CPython's tests take it. This one stands for a lock that is always taken.
PyObject* condition(PyObject* self, void*) {
    PyObject* const module = PyImport_ImportModule("tocsin._conditions");
    if (module == nullptr) return nullptr;
    PyObject* const found = PyObject_GetAttrString(module, "_inside");
    Py_DECREF(module);
    (void)self;
    return found;
}
PyGetSetDef attributes[] = {
    {"_cond", condition, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// In the child of a fork nobody waits; what the event says stays.
PyObject* reinit(PyObject*, PyObject*) { Py_RETURN_NONE; }

// As threading.Event has it, deprecated since 3.10.
template <class Object>
PyObject* is_set_deprecated(PyObject* self, PyObject*) {
    if (PyErr_WarnEx(PyExc_DeprecationWarning, "isSet() is deprecated, use is_set() instead", 1) != 0)
        return nullptr;
    return is_set<Object>(self, nullptr);
}

// What differs between the two kinds of event.
template <class Object>
struct texts;
template <>
struct texts<event_object> {
    static constexpr const char* of_type =
        "Event()\n--\n\nA gate: set() releases every thread that waits, also if clear() follows at once, and "
        "lets later ones pass.";
    static constexpr const char* of_set =
        "set($self, /)\n--\n\nRelease every thread that waits at this moment, and let later ones pass until "
        "clear().";
    static constexpr const char* of_wait =
        "wait($self, /, timeout=None)\n--\n\nWait until the event is set, at most `timeout` seconds. Return "
        "whether it was set.";
};
template <>
struct texts<auto_reset_event_object> {
    static constexpr const char* of_type =
        "AutoResetEvent()\n--\n\nA token: each set() releases exactly one thread, one that waits or the next "
        "that arrives.";
    static constexpr const char* of_set =
        "set($self, /)\n--\n\nRelease the thread that has waited longest; if none waits, the next one that "
        "arrives. If the event is set already, nothing changes.";
    static constexpr const char* of_wait =
        "wait($self, /, timeout=None)\n--\n\nWait until the event is set, at most `timeout` seconds, and "
        "make it "
        "unset. Return whether it was set.";
};

template <class Object>
PyMethodDef methods[] = {
    {"set", set<Object>, METH_NOARGS, texts<Object>::of_set},
    {"clear", clear<Object>, METH_NOARGS,
     "clear($self, /)\n--\n\nMake the event unset. Threads that were released stay released."},
    {"is_set", is_set<Object>, METH_NOARGS,
     "is_set($self, /)\n--\n\nReturn whether the event is set now. Takes nothing."},
    {"wait", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(wait<Object>)),
     METH_FASTCALL | METH_KEYWORDS, texts<Object>::of_wait},
    {"isSet", is_set_deprecated<Object>, METH_NOARGS, "isSet($self, /)\n--\n\nDeprecated: use is_set()."},
    {"_set_under_lock", set_under_lock<Object>, METH_NOARGS, nullptr},
    {"_at_fork_reinit", reinit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

template <class Object>
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make<Object>)},
    {Py_tp_init, reinterpret_cast<void*>(refuse_arguments)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(represent<Object>)},
    {Py_tp_methods, methods<Object>},
    {Py_tp_members, weak_reference_members},
    {Py_tp_getset, attributes},
    {Py_am_await, reinterpret_cast<void*>(await_object)},
    {Py_tp_doc, const_cast<char*>(texts<Object>::of_type)},
    {0, nullptr},
};

template <class Object>
PyTypeObject* add(PyObject* module, const char* name) {
    PyType_Spec spec{name, sizeof(Object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots<Object>};
    return add_type(module, spec);
}

}  // namespace

PyObject* set_event(manual_reset_event& event) { return set_and_return(event); }

PyObject* wait_for_event(manual_reset_event& event, PyObject* const* given, Py_ssize_t positional,
                         PyObject* names) {
    return wait_for(event, given, positional, names);
}

bool add_event_types(PyObject* module) {
    auto& state = state_of(module);
    state.event = add<event_object>(module, "tocsin.Event");
    state.auto_reset_event =
        state.event == nullptr ? nullptr : add<auto_reset_event_object>(module, "tocsin.AutoResetEvent");
    return state.auto_reset_event != nullptr;
}

}  // namespace tocsin::python
