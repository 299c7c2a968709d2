// SPDX-License-Identifier: Apache-2.0
// tocsin.WaitSet: members that are added once and waited for often.
//
// State: the library's wait_set; a dictionary from the identity of each member to a tuple of the member, what was made
// of it (a descriptor of a process, say) and the user's data; a dictionary from tags to these identities. The
// dictionaries keep the members alive. A thread uses all of these inside the critical section of this object. The
// section is given up wherever Python code may run and while a wait sleeps, so what a thread has seen before that may
// have changed afterwards.
//
// A tag is never used twice. A wait under way may have taken something from a member that is removed meanwhile. So
// remove() leaves that member's tag for the wait, which reports the member, and drops such tags at its end.
//
// In the main thread the pipe of the signals (blocking.hpp) is a member, too, under the tag 0.
#include "objects.hpp"
#include "shared.hpp"

#include <tocsin/fd.hpp>
#include <tocsin/wait_set.hpp>

namespace tocsin::python {
namespace {

struct wait_set_object {
    PyObject_HEAD PyObject* weak_references;
    PyObject* module;
    PyObject* by_identity;  // identity -> (tag, member, kept, data)
    PyObject* by_tag;       // tag -> the same tuple
    PyObject* leaving;      // the tags of members that were removed during a wait
    unsigned waits;         // how many threads are in wait()
    wait_set* set;
    unsigned long long next_tag;
    int pipe;             // the descriptor that is a member; -1: none
    unsigned generation;  // of forks, in which the set was made
};
static_assert(offsetof(event_object, weak_references) == offsetof(wait_set_object, weak_references));

wait_set_object& set_of(PyObject* self) noexcept { return as<wait_set_object>(self); }

bool failed(const caught& error) {
    if (error.number == -1) return false;
    raise_error(error.number, error.message);
    return true;
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const module = module_of(type);
    if (module == nullptr) return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    wait_set_object& one = set_of(self);
    Py_INCREF(module);
    one.module = module;
    one.pipe = -1;
    one.next_tag = 1;
    one.generation = signal_watch::generation();
    one.by_identity = PyDict_New();
    one.by_tag = PyDict_New();
    one.leaving = PyList_New(0);
    if (one.by_identity == nullptr || one.by_tag == nullptr || one.leaving == nullptr ||
        failed(catching([&] { one.set = new wait_set; }))) {
        Py_DECREF(self);
        return nullptr;
    }
    return self;
}

bool is_usable(const wait_set_object& one) {
    if (one.generation == signal_watch::generation()) return true;
    PyErr_SetString(PyExc_RuntimeError, "this WaitSet belongs to the parent process; make a new one");
    return false;
}

// Inside the critical section.
bool insert(wait_set_object& one, const source& from, PyObject* member, PyObject* kept, PyObject* data) {
    const unsigned long long tag = one.next_tag++;
    PyObject* const identity = PyLong_FromVoidPtr(member);
    PyObject* const tag_number = PyLong_FromUnsignedLongLong(tag);
    PyObject* const entry = Py_BuildValue("(KOOO)", tag, member, kept, data);
    bool good = identity != nullptr && tag_number != nullptr && entry != nullptr;
    if (good) {
        const int there = PyDict_Contains(one.by_identity, identity);
        good = there == 0;
        if (there > 0) PyErr_Format(PyExc_ValueError, "%R is in this WaitSet already", member);
    }
    good = good && PyDict_SetItem(one.by_tag, tag_number, entry) == 0 &&
           PyDict_SetItem(one.by_identity, identity, entry) == 0;
    if (good && failed(catching([&] { one.set->add(from, tag); }))) {
        good = false;
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        (void)PyDict_DelItem(one.by_tag, tag_number);
        (void)PyDict_DelItem(one.by_identity, identity);
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(identity);
    Py_XDECREF(tag_number);
    Py_XDECREF(entry);
    return good;
}

PyObject* add(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"source", "data"};
    PyObject* arguments[2] = {};
    if (!read_arguments("add", given, positional, names, known, 2, arguments)) return nullptr;
    if (arguments[0] == nullptr) {
        PyErr_SetString(PyExc_TypeError, "add() needs a source");
        return nullptr;
    }
    wait_set_object& one = set_of(self);
    if (!is_usable(one)) return nullptr;
    module_state& state = state_of(one.module);
    if (Py_TYPE(arguments[0]) == state.deadline) {
        PyErr_SetString(PyExc_TypeError,
                        "a deadline is no member of a WaitSet; give it to wait(deadline=...)");
        return nullptr;
    }
    if (is_shared_source(state, arguments[0])) {
        PyErr_Format(PyExc_TypeError,
                     "%R can't be a member of a WaitSet, because processes share it; give it to wait_any()",
                     arguments[0]);
        return nullptr;
    }
    source from;
    PyObject* keep = nullptr;
    if (!to_source(state, arguments[0], from, keep)) return nullptr;
    const bool good = in_critical_section(self, [&] {
        return insert(one, from, arguments[0], keep == nullptr ? Py_None : keep,
                      arguments[1] == nullptr ? arguments[0] : arguments[1]);
    });
    Py_XDECREF(keep);
    if (!good) return nullptr;
    Py_RETURN_NONE;
}

// Inside the critical section. A new reference; null with an exception set if there is no such member.
PyObject* entry_of(wait_set_object& one, PyObject* identity, PyObject* member) {
    PyObject* const entry = PyDict_GetItemWithError(one.by_identity, identity);
    if (entry == nullptr && !PyErr_Occurred())
        PyErr_Format(PyExc_KeyError, "%R is not in this WaitSet", member);
    Py_XINCREF(entry);
    return entry;
}

// Inside the critical section. Another thread may have removed the entry meanwhile.
bool erase(wait_set_object& one, const source& from, PyObject* identity, PyObject* entry, PyObject* member) {
    PyObject* const now = entry_of(one, identity, member);
    bool good = now == entry;
    if (now != nullptr && !good) PyErr_Format(PyExc_KeyError, "another thread has removed %R", member);
    Py_XDECREF(now);
    if (!good) return false;
    (void)one.set->remove(from);
    PyObject* const tag = PyTuple_GET_ITEM(entry, 0);
    return (one.waits == 0 ? PyDict_DelItem(one.by_tag, tag) : PyList_Append(one.leaving, tag)) == 0 &&
           PyDict_DelItem(one.by_identity, identity) == 0;
}

PyObject* remove(PyObject* self, PyObject* member) {
    wait_set_object& one = set_of(self);
    if (!is_usable(one)) return nullptr;
    PyObject* const identity = PyLong_FromVoidPtr(member);
    if (identity == nullptr) return nullptr;
    PyObject* const entry = in_critical_section(self, [&] { return entry_of(one, identity, member); });
    if (entry == nullptr) {
        Py_DECREF(identity);
        return nullptr;
    }
    PyObject* const kept = PyTuple_GET_ITEM(entry, 2);
    source from;
    PyObject* none = nullptr;
    const bool good = to_source(state_of(one.module), kept == Py_None ? member : kept, from, none) &&
                      in_critical_section(self, [&] { return erase(one, from, identity, entry, member); });
    Py_XDECREF(none);
    Py_DECREF(identity);
    Py_DECREF(entry);
    if (!good) return nullptr;
    Py_RETURN_NONE;
}

constexpr std::size_t at_once = 64;

struct wait_result {
    set_result how;
    ready_item items[at_once];
};

caught wait_plainly(wait_set& set, const deadline& until, wait_result& result) noexcept {
    return catching([&] { result.how = set.wait({.until = until}, result.items); });
}

// In the main thread. Returns false with an exception set.
bool wait_watching(wait_set_object& one, const deadline& until, wait_result& result) {
    for (;;) {
        signal_watch watch;
        const auto watching = watch.begin();
        if (watching == signal_watch::beginning::failed) return false;
        const bool watches = watching == signal_watch::beginning::watches;
        caught error;
        if (watches && one.pipe != signal_watch::descriptor()) {
            error = catching([&] {
                if (one.pipe >= 0) (void)one.set->remove(readable(one.pipe));
                one.pipe = -1;
                one.set->add(readable(signal_watch::descriptor()), 0);
                one.pipe = signal_watch::descriptor();
            });
        }
        if (error.number == -1 && is_usable(one)) {
            Py_BEGIN_ALLOW_THREADS;
            error = wait_plainly(*one.set, until, result);
            Py_END_ALLOW_THREADS;
        }
        if (watches) watch.end();
        if (PyErr_Occurred()) return false;
        if (failed(error)) return false;
        bool interrupted = false;
        std::size_t kept = 0;
        for (std::size_t i = 0; i != result.how.count; ++i) {
            if (result.items[i].tag == 0) {
                interrupted = true;
            } else {
                result.items[kept++] = result.items[i];
            }
        }
        result.how.count = kept;
        if (interrupted) watch.forward();
        if (!interrupted || kept != 0) return true;
    }
}

PyObject* wait_counted(wait_set_object& one, const deadline& until) {
    wait_result result{{wait_status::timed_out}, {}};
    if (failed(wait_plainly(*one.set, deadline(std::chrono::nanoseconds(0)), result))) return nullptr;
    for (;;) {
        if (result.how.count == 0 && until.which() != deadline::clock::passed) {
            if (!may_block()) return nullptr;
            if (runs_handlers()) {
                if (!wait_watching(one, until, result)) return nullptr;
            } else {
                caught error;
                Py_BEGIN_ALLOW_THREADS;
                error = wait_plainly(*one.set, until, result);
                Py_END_ALLOW_THREADS;
                if (failed(error)) return nullptr;
            }
        }
        PyObject* const ready = PyList_New(0);
        if (ready == nullptr) return nullptr;
        for (std::size_t i = 0; i != result.how.count; ++i) {
            if (result.items[i].tag == 0) continue;  // a signal, which the main thread's next wait sees
            PyObject* const tag = PyLong_FromUnsignedLongLong(result.items[i].tag);
            PyObject* const entry = tag == nullptr ? nullptr : PyDict_GetItemWithError(one.by_tag, tag);
            Py_XDECREF(tag);
            if (entry != nullptr && PyList_Append(ready, PyTuple_GET_ITEM(entry, 3)) == 0) continue;
            if (PyErr_Occurred()) {
                Py_DECREF(ready);
                return nullptr;
            }
        }
        const bool timed_out = result.how.status != wait_status::signaled;
        if (timed_out || PyList_GET_SIZE(ready) != 0 || until.which() == deadline::clock::passed)
            return ready;
        Py_DECREF(ready);
        result.how.count = 0;
    }
}

// The list is taken first: a member that is dropped may run Python code.
bool drop_left(wait_set_object& one) {
    if (PyList_GET_SIZE(one.leaving) == 0) return true;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject* leaving = PyList_New(0);
    bool good = leaving != nullptr;
    if (good) std::swap(leaving, one.leaving);
    for (Py_ssize_t i = 0; good && i != PyList_GET_SIZE(leaving); ++i)
        good = PyDict_DelItem(one.by_tag, PyList_GET_ITEM(leaving, i)) == 0;
    Py_XDECREF(leaving);
    if (good) {
        PyErr_Restore(type, value, traceback);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    return good;
}

PyObject* wait(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"timeout", "deadline"};
    PyObject* limits[2] = {};
    if (!read_arguments("wait", given, positional, names, known, 2, limits)) return nullptr;
    wait_set_object& one = set_of(self);
    deadline until = deadline::never();
    if (!is_usable(one) || !read_limits(limits[0], limits[1], state_of(one.module).deadline, until))
        return nullptr;
    if (PyDict_GET_SIZE(one.by_identity) == 0) {
        PyErr_SetString(PyExc_ValueError, "this WaitSet has no members; add() some");
        return nullptr;
    }
    return in_critical_section(self, [&]() -> PyObject* {
        ++one.waits;
        PyObject* const ready = wait_counted(one, until);
        if (--one.waits == 0 && !drop_left(one)) {
            Py_XDECREF(ready);
            return nullptr;
        }
        return ready;
    });
}

Py_ssize_t number(PyObject* self) { return PyDict_GET_SIZE(set_of(self).by_identity); }

int contains(PyObject* self, PyObject* member) {
    PyObject* const identity = PyLong_FromVoidPtr(member);
    if (identity == nullptr) return -1;
    const int there =
        in_critical_section(self, [&] { return PyDict_Contains(set_of(self).by_identity, identity); });
    Py_DECREF(identity);
    return there;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    wait_set_object& one = set_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(one.module);
    Py_VISIT(one.by_identity);
    Py_VISIT(one.by_tag);
    Py_VISIT(one.leaving);
    return 0;
}

// The library's set goes first: until then, the members must exist.
int clear(PyObject* self) {
    wait_set_object& one = set_of(self);
    delete std::exchange(one.set, nullptr);
    Py_CLEAR(one.by_identity);
    Py_CLEAR(one.by_tag);
    Py_CLEAR(one.leaving);
    return 0;
}

void destroy(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (set_of(self).weak_references != nullptr) PyObject_ClearWeakRefs(self);
    clear(self);
    Py_CLEAR(set_of(self).module);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"add", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(add)), METH_FASTCALL | METH_KEYWORDS,
     "add($self, /, source, data=None)\n--\n\nAdd an event, semaphore, queue, descriptor, thread or process. "
     "When it is "
     "ready, waits report `data`, or the source itself if none is given."},
    {"remove", remove, METH_O, "remove($self, source, /)\n--\n\nRemove a member; KeyError if it is none."},
    {"wait", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(wait)), METH_FASTCALL | METH_KEYWORDS,
     "wait($self, /, timeout=None, deadline=None)\n--\n\nWait until a member is ready, and return the data "
     "of those "
     "that are, at most 64; an empty list if the time has passed. One thread at a time may wait."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {Py_tp_members, weak_reference_members},
    {Py_sq_length, reinterpret_cast<void*>(number)},
    {Py_sq_contains, reinterpret_cast<void*>(contains)},
    {Py_tp_doc,
     const_cast<char*>("WaitSet()\n--\n\nMembers that are added once and waited for often. The cost of a "
                       "wait grows with the members that are ready, not with those that are idle.")},
    {0, nullptr},
};

}  // namespace

bool add_wait_set_type(PyObject* module) {
    PyType_Spec spec{"tocsin.WaitSet", sizeof(wait_set_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                     slots};
    return (state_of(module).wait_set = add_type(module, spec)) != nullptr;
}

}  // namespace tocsin::python
