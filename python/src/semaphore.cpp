// SPDX-License-Identifier: Apache-2.0
// tocsin.Semaphore and tocsin.BoundedSemaphore, over the word of the library's semaphore: its bound is known only at
// run time.
#include "objects.hpp"

namespace tocsin::python {
namespace {

constexpr long max_permits = detail::semaphore_state::max;

bool read_count(PyObject* from, const char* what, long least, long& out) {
    out = PyLong_AsLong(from);
    if (out == -1 && PyErr_Occurred()) return false;
    if (out < least || out > max_permits) {
        PyErr_Format(PyExc_ValueError, "%s must be at least %ld and at most %ld, not %ld", what, least,
                     max_permits, out);
        return false;
    }
    return true;
}

template <bool Bounded>
PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    auto& one = as<semaphore_object>(self);
    new (&one.word) detail::semaphore_word(detail::semaphore_state::one);
    one.max = Bounded ? 1 : max_permits;
    one.first = 1;
    one.bounded = Bounded;
    return self;
}

int initialise(PyObject* self, PyObject* arguments, PyObject* keywords) {
    static const char* known[] = {"value", nullptr};
    PyObject* value = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O", const_cast<char**>(known), &value)) return -1;
    auto& one = as<semaphore_object>(self);
    long first = 1;
    if (value != nullptr) {
        first = PyLong_AsLong(value);
        if (first == -1 && PyErr_Occurred()) return -1;
        if (first < 0) {
            PyErr_SetString(PyExc_ValueError, "semaphore initial value must be >= 0");
            return -1;
        }
        if (first > max_permits) {
            PyErr_Format(PyExc_OverflowError, "a semaphore counts to %ld at most", max_permits);
            return -1;
        }
    }
    if (!in_critical_section(self, [&one] { return !std::exchange(one.made, true); })) {
        PyErr_SetString(PyExc_RuntimeError, "a semaphore is initialised once: threads may use it already");
        return -1;
    }
    one.first = static_cast<std::uint32_t>(first);
    if (one.bounded) one.max = one.first;
    one.word.store(one.first * detail::semaphore_state::one,
                   std::memory_order_relaxed);  // no order: nobody else has it
    return 0;
}

std::uint32_t value_of(const semaphore_object& one) noexcept {
    return detail::semaphore_state::free_permits(
        one.word.load(std::memory_order_relaxed));  // no order: a guess
}

PyObject* acquire_until(PyObject* self, const deadline& until) {
    auto& one = as<semaphore_object>(self);
    if (detail::semaphore_try_acquire(one.word, 1)) Py_RETURN_TRUE;
    if (until.which() == deadline::clock::passed) Py_RETURN_FALSE;
    const outcome end =
        block_on({&one.word,
                  [](void* word, const deadline& limit, spin_policy spin) noexcept {
                      return detail::semaphore_wait_slow(*static_cast<detail::semaphore_word*>(word), 1,
                                                         {limit, nullptr, spin}) == wait_status::signaled;
                  },
                  source(&one.word, detail::semaphore_source())},
                 until);
    if (end.how == ending::failed) return nullptr;
    return boolean(end.how == ending::ready);
}

PyObject* acquire(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"blocking", "timeout"};
    PyObject* arguments[2] = {};
    if ((positional != 0 || names != nullptr) &&
        !read_arguments("acquire", given, positional, names, known, 2, arguments))
        return nullptr;
    const int blocking = arguments[0] == nullptr ? 1 : PyObject_IsTrue(arguments[0]);
    if (blocking < 0) return nullptr;
    deadline until = deadline::never();
    if (blocking == 0) {
        if (arguments[1] != nullptr && arguments[1] != Py_None) {
            PyErr_SetString(PyExc_ValueError, "can't specify timeout for non-blocking acquire");
            return nullptr;
        }
        until = deadline(std::chrono::nanoseconds(0));
    } else if (!read_timeout(arguments[1], until)) {
        return nullptr;
    }
    return acquire_until(self, until);
}

bool give(semaphore_object& one, long permits) {
    std::uint32_t before = 0;
    bool given;
    const auto try_give = [&]() noexcept {
        return detail::semaphore_try_release(one.word, static_cast<std::uint32_t>(permits), one.max, before);
    };
    if ((one.word.load(std::memory_order_relaxed) & detail::semaphore_state::parked_bit) ==
        0) {  // no order: a hint
        given = try_give();
    } else {
        Py_BEGIN_ALLOW_THREADS;
        given = try_give();
        Py_END_ALLOW_THREADS;
    }
    if (given) return true;
    if (one.bounded) {
        PyErr_SetString(PyExc_ValueError, "Semaphore released too many times");
    } else {
        PyErr_Format(PyExc_OverflowError, "a semaphore counts to %ld at most", max_permits);
    }
    return false;
}

PyObject* release(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"n"};
    PyObject* number = nullptr;
    if ((positional != 0 || names != nullptr) &&
        !read_arguments("release", given, positional, names, known, 1, &number))
        return nullptr;
    long permits = 1;
    if (number != nullptr && !read_count(number, "n", 1, permits)) return nullptr;
    if (!give(as<semaphore_object>(self), permits)) return nullptr;
    Py_RETURN_NONE;
}

PyObject* enter(PyObject* self, PyObject*) { return acquire_until(self, deadline::never()); }

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
    if (!give(as<semaphore_object>(self), 1)) return nullptr;
    Py_RETURN_NONE;
}

PyObject* represent(PyObject* self) {
    const auto& one = as<semaphore_object>(self);
    if (!one.bounded)
        return PyUnicode_FromFormat("<%s at %p: value=%u>", Py_TYPE(self)->tp_name, self, value_of(one));
    return PyUnicode_FromFormat("<%s at %p: value=%u/%u>", Py_TYPE(self)->tp_name, self, value_of(one),
                                one.first);
}

PyObject* reinit(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyObject* value(PyObject* self, void*) {
    return PyLong_FromUnsignedLong(value_of(as<semaphore_object>(self)));
}

PyGetSetDef attributes[] = {
    {"value", value, nullptr, "How many permits are free now.", nullptr},
    {"_value", value, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"acquire", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(acquire)),
     METH_FASTCALL | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=None)\n--\n\nTake a permit; wait until there is one, at most "
     "`timeout` "
     "seconds. Return whether it took one. Waiting threads are served first in, first out."},
    {"release", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(release)),
     METH_FASTCALL | METH_KEYWORDS,
     "release($self, /, n=1)\n--\n\nGive `n` permits: to threads that wait, oldest first, and the rest to "
     "the count."},
    {"__enter__", enter, METH_NOARGS, "__enter__($self, /)\n--\n\nacquire()"},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nrelease()"},
    {"_at_fork_reinit", reinit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

template <bool Bounded>
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make<Bounded>)},
    {Py_tp_init, reinterpret_cast<void*>(initialise)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_am_await, reinterpret_cast<void*>(await_object)},
    {Py_tp_members, weak_reference_members},
    {Py_tp_doc,
     const_cast<char*>(Bounded ? "BoundedSemaphore(value=1)\n--\n\nA count of permits that never exceeds "
                                 "its first value: release() raises ValueError instead."
                               : "Semaphore(value=1)\n--\n\nA count of permits. Each permit is handed to "
                                 "the thread that has waited longest.")},
    {0, nullptr},
};

}  // namespace

bool add_semaphore_types(PyObject* module) {
    auto& state = state_of(module);
    PyType_Spec spec{"tocsin.Semaphore", sizeof(semaphore_object), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots<false>};
    state.semaphore = add_type(module, spec);
    if (state.semaphore == nullptr) return false;
    PyType_Spec bounded{"tocsin.BoundedSemaphore", sizeof(semaphore_object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots<true>};
    state.bounded_semaphore = add_type(module, bounded, state.semaphore);
    return state.bounded_semaphore != nullptr;
}

}  // namespace tocsin::python
