// SPDX-License-Identifier: Apache-2.0
// wait_any() and wait_all() over Python objects, deadlines, and descriptors.
#include "objects.hpp"
#include "queue.hpp"
#include "shared.hpp"

#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <cmath>

namespace tocsin::python {
namespace {

struct ready_object {
    PyObject_HEAD PyObject* of;  // what the user gave
    int descriptor;
    bool to_write;
};

// The sources of one call. It has no destructor, because a thread may end in the wait (blocking.cpp).
struct read_sources {
    source* all;
    PyObject** kept;
    std::size_t count;
    alignas(source) char few[16 * sizeof(source)];
    PyObject* few_kept[16];

    bool read(module_state& state, PyObject* const* given, Py_ssize_t number) {
        count = 0;
        all = reinterpret_cast<source*>(few);
        kept = few_kept;
        if (number > 16) {
            all = static_cast<source*>(PyMem_Malloc(static_cast<std::size_t>(number) * sizeof(source)));
            kept =
                static_cast<PyObject**>(PyMem_Malloc(static_cast<std::size_t>(number) * sizeof(PyObject*)));
            if (all == nullptr || kept == nullptr) {
                PyErr_NoMemory();
                return false;
            }
        }
        for (Py_ssize_t i = 0; i != number; ++i) {
            new (all + i) source;
            if (!to_source(state, given[i], all[i], kept[i])) return false;
            ++count;
        }
        return true;
    }
    void free() {
        for (std::size_t i = 0; i != count; ++i) Py_XDECREF(kept[i]);
        if (all != reinterpret_cast<source*>(few)) {
            PyMem_Free(all);
            PyMem_Free(kept);
        }
    }
};

// The first look, which never sleeps. Returns false with an exception set.
bool look(const read_sources& list, bool all, outcome& end) {
    any_result found{wait_status::timed_out};
    const deadline now(std::chrono::nanoseconds(0));
    const caught error = catching([&] {
        const std::span<const source> sources(list.all, list.count);
        if (all) {
            found.status = wait_all({.until = now}, sources);
        } else {
            found = wait_any({.until = now}, sources);
        }
    });
    if (error.number != -1) {
        raise_error(error.number, error.message);
        return false;
    }
    end = {found.status == wait_status::signaled ? ending::ready : ending::timed_out, found.index};
    return true;
}

bool wait_for(PyObject* module, const char* function, PyObject* const* given, Py_ssize_t positional,
              PyObject* names, bool all, outcome& end) {
    module_state& state = state_of(module);
    PyObject* limits[2] = {};
    static const char* const known[] = {"timeout", "deadline"};
    if (names != nullptr && !read_arguments(function, given + positional, 0, names, known, 2, limits))
        return false;
    if (positional == 0) {
        PyErr_Format(PyExc_ValueError, "%s() needs something to wait for; to sleep, use time.sleep()",
                     function);
        return false;
    }
    for (Py_ssize_t i = 0; all && i != positional; ++i) {
        if (!is_shared_source(state, given[i])) continue;
        PyErr_Format(
            PyExc_TypeError,
            "%s() can't take %R in one step with others, because processes share it; wait for it with "
            "wait_any(), or take one object after another",
            function, given[i]);
        return false;
    }
    deadline until = deadline::never();
    if (!read_limits(limits[0], limits[1], state.deadline, until)) return false;
    read_sources list;
    bool done = list.read(state, given, positional) && look(list, all, end);
    if (done && end.how != ending::ready && until.which() != deadline::clock::passed) {
        end = block_on(list.all, list.count, all, until);
        done = end.how != ending::failed;
    }
    list.free();
    return done;
}

PyObject* any(PyObject* module, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    outcome end;
    if (!wait_for(module, "wait_any", given, positional, names, false, end)) return nullptr;
    if (end.how != ending::ready) Py_RETURN_NONE;
    return PyLong_FromSize_t(end.index);
}

PyObject* all(PyObject* module, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    outcome end;
    if (!wait_for(module, "wait_all", given, positional, names, true, end)) return nullptr;
    return boolean(end.how == ending::ready);
}

PyObject* make_ready(PyObject* module, PyObject* of, bool to_write) {
    const int descriptor = PyObject_AsFileDescriptor(of);
    if (descriptor < 0) return nullptr;
    PyTypeObject* const type = state_of(module).ready;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    auto& one = as<ready_object>(self);
    Py_INCREF(of);
    one.of = of;
    one.descriptor = descriptor;
    one.to_write = to_write;
    return self;
}
PyObject* make_readable(PyObject* module, PyObject* of) { return make_ready(module, of, false); }
PyObject* make_writable(PyObject* module, PyObject* of) { return make_ready(module, of, true); }

void ready_dealloc(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(as<ready_object>(self).of);
    type->tp_free(self);
    Py_DECREF(type);
}
int ready_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as<ready_object>(self).of);
    return 0;
}
int ready_clear(PyObject* self) {
    Py_CLEAR(as<ready_object>(self).of);
    return 0;
}
PyObject* ready_represent(PyObject* self) {
    const auto& one = as<ready_object>(self);
    return PyUnicode_FromFormat("tocsin.%s(%R)", one.to_write ? "writable" : "readable", one.of);
}

PyType_Slot ready_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(ready_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(ready_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(ready_clear)},
    {Py_tp_repr, reinterpret_cast<void*>(ready_represent)},
    {Py_tp_doc, const_cast<char*>("A descriptor to wait for, made by readable() or writable().")},
    {0, nullptr},
};

// Seconds as nanoseconds, rounded up; the greatest value if there are too many.
bool to_nanoseconds(PyObject* seconds, const char* what, long long& out) {
    constexpr long long max = 0x7FFF'FFFF'FFFF'FFFF;
    double value;
    if (PyFloat_Check(seconds)) {
        value = PyFloat_AS_DOUBLE(seconds);
    } else {
        if (!PyLong_Check(seconds) && (Py_TYPE(seconds)->tp_as_number == nullptr ||
                                       (Py_TYPE(seconds)->tp_as_number->nb_float == nullptr &&
                                        Py_TYPE(seconds)->tp_as_number->nb_index == nullptr))) {
            PyErr_Format(PyExc_TypeError, "%s must be a number of seconds or None, not %.200s", what,
                         Py_TYPE(seconds)->tp_name);
            return false;
        }
        value = PyFloat_AsDouble(seconds);
        if (value == -1 && PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
            PyErr_Clear();
            PyObject* const zero = PyLong_FromLong(0);
            const int negative = zero == nullptr ? -1 : PyObject_RichCompareBool(seconds, zero, Py_LT);
            Py_XDECREF(zero);
            if (negative < 0) return false;
            out = negative != 0 ? 0 : max;
            return true;
        }
    }
    if (std::isnan(value)) {
        PyErr_Format(PyExc_ValueError, "%s is not a number (nan)", what);
        return false;
    }
    const double exact = std::ceil(value * 1e9);
    out = exact >= 9.2e18 ? max : exact <= 0 ? 0 : static_cast<long long>(exact);
    return true;
}

PyObject* monotonic_deadline(PyObject* module, PyObject* seconds) {
    long long nanoseconds = 0;
    if (!to_nanoseconds(seconds, "the number of seconds", nanoseconds)) return nullptr;
    PyTypeObject* const type = state_of(module).deadline;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    const long long now = steady_now();
    constexpr long long max = 0x7FFF'FFFF'FFFF'FFFF;
    as<deadline_object>(self).nanoseconds = nanoseconds > max - now ? max : now + nanoseconds;
    return self;
}

PyObject* remaining(PyObject* self, PyObject*) {
    const long long left = as<deadline_object>(self).nanoseconds - steady_now();
    return PyFloat_FromDouble(left <= 0 ? 0.0 : static_cast<double>(left) / 1e9);
}
PyObject* passed(PyObject* self, PyObject*) {
    return boolean(as<deadline_object>(self).nanoseconds <= steady_now());
}

PyMethodDef deadline_methods[] = {
    {"remaining", remaining, METH_NOARGS,
     "remaining($self, /)\n--\n\nReturn the seconds that are left, at least 0."},
    {"passed", passed, METH_NOARGS, "passed($self, /)\n--\n\nReturn whether the deadline has passed."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot deadline_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(+[](PyObject* self) {
         PyTypeObject* const type = Py_TYPE(self);
         type->tp_free(self);
         Py_DECREF(type);
     })},
    {Py_tp_methods, deadline_methods},
    {Py_tp_doc,
     const_cast<char*>("A moment on the monotonic clock, made by monotonic_deadline(). It is a source, and "
                       "the `deadline` of a wait.")},
    {0, nullptr},
};

PyMethodDef functions[] = {
    {"wait_any", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(any)),
     METH_FASTCALL | METH_KEYWORDS,
     "wait_any($module, /, *sources, timeout=None, deadline=None)\n--\n\nWait until one of the sources is "
     "ready, take "
     "it and no other, and return its index; None if the time has passed first. If several are ready at the "
     "start, the "
     "lowest index wins."},
    {"wait_all", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(all)),
     METH_FASTCALL | METH_KEYWORDS,
     "wait_all($module, /, *sources, timeout=None, deadline=None)\n--\n\nWait until all sources are ready at "
     "the same "
     "instant, and take them in one step. Return False if the time has passed first; then nothing was "
     "taken."},
    {"readable", make_readable, METH_O,
     "readable($module, descriptor, /)\n--\n\nA source that is ready when there is something to read."},
    {"writable", make_writable, METH_O,
     "writable($module, descriptor, /)\n--\n\nA source that is ready when there is room to write."},
    {"monotonic_deadline", monotonic_deadline, METH_O,
     "monotonic_deadline($module, seconds, /)\n--\n\nThe moment that is so many seconds from now."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

long long steady_now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

deadline at_nanoseconds(long long steady) noexcept {
    return deadline(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(steady)));
}

bool read_timeout(PyObject* timeout, deadline& until) {
    if (timeout == nullptr || timeout == Py_None) return true;
    long long nanoseconds = 0;
    if (!to_nanoseconds(timeout, "timeout", nanoseconds)) return false;
    until = deadline(std::chrono::nanoseconds(nanoseconds));
    return true;
}

bool read_limits(PyObject* timeout, PyObject* when, PyTypeObject* deadline_type, deadline& until) {
    if (when == nullptr || when == Py_None) return read_timeout(timeout, until);
    if (timeout != nullptr && timeout != Py_None) {
        PyErr_SetString(PyExc_TypeError, "give a timeout or a deadline, not both");
        return false;
    }
    if (Py_TYPE(when) != deadline_type) {
        PyErr_Format(PyExc_TypeError, "deadline must be made by tocsin.monotonic_deadline(), not %.200s",
                     Py_TYPE(when)->tp_name);
        return false;
    }
    until = at_nanoseconds(as<deadline_object>(when).nanoseconds);
    return true;
}

bool read_arguments(const char* function, PyObject* const* given, Py_ssize_t positional,
                    PyObject* keyword_names, const char* const* names, std::size_t count, PyObject** out) {
    if (static_cast<std::size_t>(positional) > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zu arguments, %zd given", function, count,
                     positional);
        return false;
    }
    for (Py_ssize_t i = 0; i != positional; ++i) out[i] = given[i];
    const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
    for (Py_ssize_t i = 0; i != keywords; ++i) {
        PyObject* const name = PyTuple_GET_ITEM(keyword_names, i);
        std::size_t at = 0;
        while (at != count && PyUnicode_CompareWithASCIIString(name, names[at]) != 0) ++at;
        if (at == count || out[at] != nullptr) {
            PyErr_Format(PyExc_TypeError,
                         at == count ? "%s() has no argument '%U'" : "%s() was given '%U' twice", function,
                         name);
            return false;
        }
        out[at] = given[positional + i];
    }
    return true;
}

bool to_source(module_state& state, PyObject* from, source& out, PyObject*& keep) {
    keep = nullptr;
    PyTypeObject* const type = Py_TYPE(from);
    const auto is = [type](PyTypeObject* wanted) {
        return type == wanted || PyType_IsSubtype(type, wanted) != 0;
    };
    if (is(state.event)) {
        out = source(as<event_object>(from).event);
    } else if (is(state.auto_reset_event)) {
        out = source(as<auto_reset_event_object>(from).event);
    } else if (is(state.interpreter_event)) {
        out = source(*as<interpreter_event_object>(from).event);
    } else if (is(state.semaphore)) {
        out = source(&as<semaphore_object>(from).word, detail::semaphore_source());
    } else if (is(state.queue)) {
        out = queue_source(from);
    } else if (is(state.deadline)) {
        out = at(std::chrono::steady_clock::time_point(
            std::chrono::nanoseconds(as<deadline_object>(from).nanoseconds)));
    } else if (is(state.ready)) {
        const auto& one = as<ready_object>(from);
        out = one.to_write ? writable(one.descriptor) : readable(one.descriptor);
    } else if (!PyBool_Check(from) && (PyLong_Check(from) || PyObject_HasAttrString(from, "fileno"))) {
        const int descriptor = PyObject_AsFileDescriptor(from);
        if (descriptor < 0) return false;
        out = readable(descriptor);
    } else if (is_shared_source(state, from)) {
        return to_shared_source(state, from, out);
    } else if (is_shared_lock(state, from)) {
        PyErr_SetString(
            PyExc_TypeError,
            "a SharedLock can't be waited for alongside others, because the thread that waits must be the "
            "one that owns it; call acquire()");
        return false;
    } else {
        // A thread or a process; Python's function refuses everything else.
        keep = PyObject_CallFunctionObjArgs(state.as_source, from, nullptr);
        if (keep == nullptr) return false;
        PyObject* none = nullptr;
        const bool known = to_source(state, keep, out, none);
        Py_XDECREF(none);
        if (!known) Py_CLEAR(keep);
        return known;
    }
    return true;
}

bool add_sources(PyObject* module) {
    auto& state = state_of(module);
    PyType_Spec ready{"tocsin.Ready", sizeof(ready_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                      ready_slots};
    state.ready = add_type(module, ready);
    if (state.ready == nullptr) return false;
    PyType_Spec deadline{"tocsin.Deadline", sizeof(deadline_object), 0, Py_TPFLAGS_DEFAULT, deadline_slots};
    state.deadline = add_type(module, deadline);
    return state.deadline != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tocsin::python
