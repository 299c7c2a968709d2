// SPDX-License-Identifier: Apache-2.0
// tocsin.Queue: a queue that one can wait for alongside other things, and that can be closed.
//
// State: a ring of items behind a lock that is held for a few steps; a semaphore `items` with a permit for each item;
// if the queue is bounded, a semaphore `room` with a permit for each free place; the manual-reset events `readable`,
// `shut` and `finished`.
//
// Invariants
//   queue-1  A put stores its item before it gives the permit. A get takes a permit, and then removes one item. So
//            there is an item for each thread that has a permit, and threads that wait get items in the order in which
//            they came.
//   queue-2  Whoever gives or takes a permit of `items` afterwards sets or resets `readable` under the lock: set if
//            there are free permits or the queue is closed. So the last such change leaves `readable` right. A thread
//            that finds it set finds a permit, unless another thread has taken that meanwhile.
//   queue-3  Under the lock, nothing of Python's runs: no reference is dropped, no object made, no thread woken.
//   queue-4  close() marks the queue closed under the lock, and then sets `shut`. A put looks at the mark under the
//            lock. So after `shut` no item is added. A get that finds no permit after `shut` reports the end, except
//            as in queue-6.
//   queue-5  `finished` is set, under the lock, exactly while `unfinished` is zero.
//   queue-6  `arriving` counts the items that a put has stored without having given the permit yet. Such a put has been
//            accepted, so somebody must get the item: after `shut`, a get reports the end only if it has found
//            `arriving` zero, and then no permit. Until then it looks again. Between the two changes of `arriving`, the
//            put neither needs the interpreter's lock nor runs anything of Python's. The child of a fork begins at
//            zero, because there the parent's threads are gone.
//
// Memory order: [queue-arriving] a put that has given its permit releases; a get acquires, and then looks for permits.
//
// No lost wake-up: a get waits for [items, shut], a put for [room, shut]. All of these keep what nobody has taken.
//
// Checked by: python/tests/test_queue.py.
#include "queue.hpp"

#include "objects.hpp"

#include <tocsin/wait.hpp>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <mutex>
#include <thread>

namespace tocsin::python {

struct queue_object {
    PyObject_HEAD PyObject* weak_references;
    PyObject* module;
    PyObject** ring;
    std::size_t places;  // of the ring, a power of two
    std::size_t first;
    std::size_t number;
    std::size_t unfinished;
    std::atomic<std::size_t> arriving;
    unsigned generation;  // of forks, to which `arriving` belongs
    long bound;           // 0: none
    detail::semaphore_word items;
    detail::semaphore_word room;
    word_lock<> lock;
    manual_reset_event readable;
    manual_reset_event shut;
    manual_reset_event finished;
    bool closed;
    bool made;
};
static_assert(offsetof(event_object, weak_references) == offsetof(queue_object, weak_references));

namespace {

constexpr long max_items = detail::semaphore_state::max;

queue_object& queue_of(PyObject* self) noexcept { return as<queue_object>(self); }
module_state& state_for(queue_object& one) noexcept { return state_of(one.module); }

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const module = module_of(type);
    if (module == nullptr) return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    queue_object& one = queue_of(self);
    Py_INCREF(module);
    one.module = module;
    new (&one.items) detail::semaphore_word(0);
    new (&one.room) detail::semaphore_word(0);
    new (&one.arriving) std::atomic<std::size_t>(0);
    one.generation = signal_watch::generation();
    new (&one.lock) word_lock<>;
    new (&one.readable) manual_reset_event;
    new (&one.shut) manual_reset_event;
    new (&one.finished) manual_reset_event(true);
    return self;
}

int initialise(PyObject* self, PyObject* arguments, PyObject* keywords) {
    static const char* known[] = {"maxsize", nullptr};
    long bound = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|l", const_cast<char**>(known), &bound)) return -1;
    if (bound > max_items) {
        PyErr_Format(PyExc_OverflowError, "a queue holds %ld items at most", max_items);
        return -1;
    }
    queue_object& one = queue_of(self);
    if (!in_critical_section(self, [&one] { return !std::exchange(one.made, true); })) {
        PyErr_SetString(PyExc_RuntimeError, "a queue is initialised once: threads may use it already");
        return -1;
    }
    one.bound = bound > 0 ? bound : 0;
    // No order: nobody else has the queue yet.
    one.room.store(static_cast<std::uint32_t>(one.bound) * detail::semaphore_state::one,
                   std::memory_order_relaxed);
    return 0;
}

// queue-2
void update_readable(queue_object& one) {
    set_and_wake([&one](wake_list& freed) noexcept {
        const std::lock_guard held(one.lock);
        const bool is_free = detail::semaphore_state::free_permits(
                                 one.items.load(std::memory_order_relaxed)) != 0;  // no order: the lock
        if (is_free || one.closed) {
            one.readable.set(freed);
        } else if (one.readable.is_set()) {
            one.readable.reset();
        }
    });
}

// Under the lock.
void begin_again_after_fork(queue_object& one) noexcept {
    if (one.generation == signal_watch::generation()) return;
    one.generation = signal_watch::generation();
    one.arriving.store(0, std::memory_order_relaxed);  // no order: the lock
}

void release_permit(queue_object& one, detail::semaphore_word& word) noexcept {
    std::uint32_t before = 0;
    (void)detail::semaphore_try_release(word, 1, detail::semaphore_state::max, before);
    // [queue-arriving] with the load in take_remaining()
    if (&word == &one.items) one.arriving.fetch_sub(1, std::memory_order_release);
}

void give_permit(queue_object& one, detail::semaphore_word& word) {
    if ((word.load(std::memory_order_relaxed) & detail::semaphore_state::parked_bit) ==
        0) {  // no order: a hint
        release_permit(one, word);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        release_permit(one, word);
        Py_END_ALLOW_THREADS;
    }
}

// After `shut`: takes the permit of an item that is there or has been accepted (queue-6); false at the end.
bool take_remaining(queue_object& one) {
    for (;;) {
        bool all_are_here;
        {
            const std::lock_guard held(one.lock);
            begin_again_after_fork(one);
            // [queue-arriving] with the subtraction in release_permit()
            all_are_here = one.arriving.load(std::memory_order_acquire) == 0;
        }
        if (detail::semaphore_try_acquire(one.items, 1)) return true;
        if (all_are_here) return false;
        Py_BEGIN_ALLOW_THREADS;
        std::this_thread::yield();
        Py_END_ALLOW_THREADS;
    }
}

enum class permit { taken, timed_out, shut, failed };

permit take_permit(queue_object& one, detail::semaphore_word& word, bool blocking, PyObject* timeout) {
    deadline until = deadline::never();
    if (blocking && timeout != nullptr && timeout != Py_None) {
        if (!read_timeout(timeout, until)) return permit::failed;
        const double seconds = PyFloat_AsDouble(timeout);
        if (seconds < 0 && seconds == seconds) {
            PyErr_SetString(PyExc_ValueError, "'timeout' must be a non-negative number");
            return permit::failed;
        }
        PyErr_Clear();
    }
    const auto take_after_shut = [&] {
        const bool took = &word == &one.items ? take_remaining(one) : detail::semaphore_try_acquire(word, 1);
        return took ? permit::taken : permit::shut;
    };
    if (detail::semaphore_try_acquire(word, 1)) return permit::taken;
    if (one.shut.is_set()) return take_after_shut();
    if (!blocking || until.which() == deadline::clock::passed) return permit::timed_out;
    const source sources[] = {source(&word, detail::semaphore_source()), source(one.shut)};
    const outcome end = block_on(sources, 2, false, until);
    if (end.how == ending::failed) return permit::failed;
    if (end.how == ending::timed_out) return permit::timed_out;
    return end.index == 0 ? permit::taken : take_after_shut();
}

bool push(queue_object& one, PyObject* item) {
    if (one.number == one.places) {
        const std::size_t places = one.places == 0 ? 8 : one.places * 2;
        auto** const ring = static_cast<PyObject**>(PyMem_RawMalloc(places * sizeof(PyObject*)));
        if (ring == nullptr) return false;
        for (std::size_t i = 0; i != one.number; ++i) ring[i] = one.ring[(one.first + i) & (one.places - 1)];
        PyMem_RawFree(one.ring);
        one.ring = ring;
        one.places = places;
        one.first = 0;
    }
    one.ring[(one.first + one.number++) & (one.places - 1)] = item;
    return true;
}

// Returns the first item, with its reference.
PyObject* pop(queue_object& one) {
    const std::lock_guard held(one.lock);
    PyObject* const item = one.ring[one.first];
    one.first = (one.first + 1) & (one.places - 1);
    --one.number;
    return item;
}

PyObject* raise_closed(queue_object& one) {
    PyErr_SetString(state_for(one).closed, "the queue is closed");
    return nullptr;
}

PyObject* put_item(PyObject* self, PyObject* item, bool blocking, PyObject* timeout) {
    queue_object& one = queue_of(self);
    if (one.bound != 0) {
        switch (take_permit(one, one.room, blocking, timeout)) {
            case permit::taken: break;
            case permit::timed_out: PyErr_SetNone(state_for(one).full); return nullptr;
            case permit::shut: return raise_closed(one);
            case permit::failed: return nullptr;
        }
    }
    Py_INCREF(item);
    bool closed;
    bool pushed = false;
    {
        const std::lock_guard held(one.lock);
        closed = one.closed;
        if (!closed) pushed = push(one, item);
        begin_again_after_fork(one);
        if (pushed) one.arriving.fetch_add(1, std::memory_order_relaxed);  // no order: the lock
        if (pushed && one.unfinished++ == 0) one.finished.reset();
    }
    if (!pushed) {
        Py_DECREF(item);
        if (one.bound != 0) give_permit(one, one.room);
        return closed ? raise_closed(one) : PyErr_NoMemory();
    }
    give_permit(one, one.items);
    update_readable(one);
    Py_RETURN_NONE;
}

PyObject* get_item(PyObject* self, bool blocking, PyObject* timeout) {
    queue_object& one = queue_of(self);
    switch (take_permit(one, one.items, blocking, timeout)) {
        case permit::taken: break;
        case permit::timed_out: PyErr_SetNone(state_for(one).empty); return nullptr;
        case permit::shut: return raise_closed(one);
        case permit::failed: return nullptr;
    }
    PyObject* const item = pop(one);
    if (one.bound != 0) give_permit(one, one.room);
    update_readable(one);
    return item;
}

bool read_blocking(PyObject* given, bool& blocking) {
    const int truth = given == nullptr ? 1 : PyObject_IsTrue(given);
    blocking = truth > 0;
    return truth >= 0;
}

PyObject* put(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"item", "block", "timeout"};
    PyObject* arguments[3] = {};
    bool blocking;
    if (!read_arguments("put", given, positional, names, known, 3, arguments)) return nullptr;
    if (arguments[0] == nullptr) {
        PyErr_SetString(PyExc_TypeError, "put() needs an item");
        return nullptr;
    }
    if (!read_blocking(arguments[1], blocking)) return nullptr;
    return put_item(self, arguments[0], blocking, arguments[2]);
}
PyObject* put_nowait(PyObject* self, PyObject* item) { return put_item(self, item, false, nullptr); }

PyObject* get(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"block", "timeout"};
    PyObject* arguments[2] = {};
    bool blocking;
    if (!read_arguments("get", given, positional, names, known, 2, arguments) ||
        !read_blocking(arguments[0], blocking))
        return nullptr;
    return get_item(self, blocking, arguments[1]);
}
PyObject* get_nowait(PyObject* self, PyObject*) { return get_item(self, false, nullptr); }

PyObject* next(PyObject* self) {
    PyObject* const item = get_item(self, true, nullptr);
    if (item == nullptr && PyErr_ExceptionMatches(state_for(queue_of(self)).closed)) PyErr_Clear();
    return item;
}

std::size_t number_of(queue_object& one) {
    const std::lock_guard held(one.lock);
    return one.number;
}

PyObject* size(PyObject* self, PyObject*) { return PyLong_FromSize_t(number_of(queue_of(self))); }
PyObject* is_empty(PyObject* self, PyObject*) { return boolean(number_of(queue_of(self)) == 0); }
PyObject* is_full(PyObject* self, PyObject*) {
    queue_object& one = queue_of(self);
    return boolean(one.bound != 0 && number_of(one) >= static_cast<std::size_t>(one.bound));
}

// Returns false if more are done than were put.
bool finish(queue_object& one, std::size_t done) {
    bool enough = true;
    set_and_wake([&](wake_list& freed) noexcept {
        const std::lock_guard held(one.lock);
        enough = one.unfinished >= done;
        if (!enough || done == 0) return;
        one.unfinished -= done;
        if (one.unfinished == 0) one.finished.set(freed);
    });
    return enough;
}

PyObject* task_done(PyObject* self, PyObject*) {
    if (finish(queue_of(self), 1)) Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "task_done() called too many times");
    return nullptr;
}

PyObject* join(PyObject* self, PyObject*) {
    queue_object& one = queue_of(self);
    if (!one.finished.is_set()) {
        const source until_done(one.finished);
        if (block_on(&until_done, 1, false, deadline::never()).how == ending::failed) return nullptr;
    }
    Py_RETURN_NONE;
}

PyObject* close_queue(queue_object& one) {
    {
        const std::lock_guard held(one.lock);
        one.closed = true;
    }
    set_and_wake([&one](wake_list& freed) noexcept { one.shut.set(freed); });
    update_readable(one);
    Py_RETURN_NONE;
}
PyObject* close(PyObject* self, PyObject*) { return close_queue(queue_of(self)); }

PyObject* shut_down(PyObject* self, PyObject* const* given, Py_ssize_t positional, PyObject* names) {
    static const char* const known[] = {"immediate"};
    PyObject* immediate = nullptr;
    if (!read_arguments("shutdown", given, positional, names, known, 1, &immediate)) return nullptr;
    const int at_once = immediate == nullptr ? 0 : PyObject_IsTrue(immediate);
    if (at_once < 0) return nullptr;
    queue_object& one = queue_of(self);
    PyObject* const none = close_queue(one);
    while (at_once != 0 && take_remaining(one)) {
        PyObject* const item = pop(one);
        (void)finish(one, 1);
        Py_DECREF(item);
    }
    return none;
}

PyObject* is_closed(PyObject* self, void*) { return boolean(queue_of(self).shut.is_set()); }
PyObject* bound_of(PyObject* self, void*) { return PyLong_FromLong(queue_of(self).bound); }

PyObject* represent(PyObject* self) {
    queue_object& one = queue_of(self);
    return PyUnicode_FromFormat("<%s at %p: %zu items%s>", Py_TYPE(self)->tp_name, self, number_of(one),
                                one.shut.is_set() ? ", closed" : "");
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    queue_object& one = queue_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(one.module);
    for (std::size_t i = 0; i != one.number; ++i) Py_VISIT(one.ring[(one.first + i) & (one.places - 1)]);
    return 0;
}

// Only an object that nobody can reach any more is cleared, so nobody waits.
int clear(PyObject* self) {
    queue_object& one = queue_of(self);
    while (detail::semaphore_try_acquire(one.items, 1)) {
        PyObject* const item = pop(one);
        Py_DECREF(item);
    }
    return 0;
}

void destroy(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (queue_of(self).weak_references != nullptr) PyObject_ClearWeakRefs(self);
    clear(self);
    PyMem_RawFree(queue_of(self).ring);
    Py_CLEAR(queue_of(self).module);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* class_item(PyObject* type, PyObject* arguments) { return Py_GenericAlias(type, arguments); }

PyMethodDef methods[] = {
    {"put", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(put)), METH_FASTCALL | METH_KEYWORDS,
     "put($self, /, item, block=True, timeout=None)\n--\n\nPut an item; wait while the queue is full. Raises "
     "queue.Full, or QueueClosed."},
    {"put_nowait", put_nowait, METH_O, "put_nowait($self, item, /)\n--\n\nput(item, block=False)"},
    {"get", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(get)), METH_FASTCALL | METH_KEYWORDS,
     "get($self, /, block=True, timeout=None)\n--\n\nRemove and return an item; wait while there is none. "
     "Raises "
     "queue.Empty, or QueueClosed once the queue is closed and empty."},
    {"get_nowait", get_nowait, METH_NOARGS, "get_nowait($self, /)\n--\n\nget(block=False)"},
    {"qsize", size, METH_NOARGS, "qsize($self, /)\n--\n\nReturn how many items there are."},
    {"empty", is_empty, METH_NOARGS, "empty($self, /)\n--\n\nReturn whether there are no items."},
    {"full", is_full, METH_NOARGS, "full($self, /)\n--\n\nReturn whether there are `maxsize` items."},
    {"task_done", task_done, METH_NOARGS,
     "task_done($self, /)\n--\n\nSay that one item is done, for join()."},
    {"join", join, METH_NOARGS, "join($self, /)\n--\n\nWait until all items that were put are done."},
    {"close", close, METH_NOARGS,
     "close($self, /)\n--\n\nLet no more items in. Those that are there can still be got; then get() raises "
     "QueueClosed, and iteration ends."},
    {"shutdown", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(shut_down)),
     METH_FASTCALL | METH_KEYWORDS,
     "shutdown($self, /, immediate=False)\n--\n\nclose(); if `immediate`, also drop the items."},
    {"__class_getitem__", class_item, METH_O | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"closed", is_closed, nullptr, "Whether close() was called.", nullptr},
    {"maxsize", bound_of, nullptr, "How many items the queue holds at most; 0: any number.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_init, reinterpret_cast<void*>(initialise)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(next)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, weak_reference_members},
    {Py_tp_doc,
     const_cast<char*>("Queue(maxsize=0)\n--\n\nA first-in, first-out queue of threads, as queue.Queue, that "
                       "can be closed and waited for alongside other things.")},
    {0, nullptr},
};

}  // namespace

source queue_source(PyObject* queue) noexcept { return source(queue_of(queue).readable); }

bool add_queue_type(PyObject* module) {
    PyType_Spec spec{"tocsin.Queue", sizeof(queue_object), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    return (state_of(module).queue = add_type(module, spec)) != nullptr;
}

}  // namespace tocsin::python
