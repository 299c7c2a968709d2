// SPDX-License-Identifier: Apache-2.0
// Waits of asyncio and trio: an operation (tocsin/operation.hpp) for each wait, and one descriptor for each loop.
//
// State
//   A bridge belongs to one loop. It has a descriptor that the loop watches, and a stack of waits that have ended.
//   A wait has its operation, the future, the sources (to keep them alive) and the bridge.
//
// Invariants
//   async-1  From start() until run_bridge() has taken the wait off the stack, the operation's reference keeps the wait
//            alive.
//   async-2  The operation's function, in whichever thread, stores the result, sets `ended`, and pushes the wait as its
//            last step. It never touches Python. It makes the descriptor readable if the stack was empty. Only
//            run_bridge() empties the stack, after it has made the descriptor unreadable. So while there is a wait on
//            the stack, the descriptor is readable or run_bridge() is about to look.
//   async-3  Only the loop's thread calls run_bridge() and close_bridge(), or any thread once the loop is closed.
//   async-4  What a wait has taken goes to its future, exactly if there is one that is not done when run_bridge()
//            settles the wait. Otherwise it goes back. A coroutine that is cancelled after its future got the result
//            gives it back itself (tocsin/_asyncio.py). trio cancels the wait
//            first, and takes what it has been given (tocsin/_trio.py).
//   async-5  close_bridge() returns once its list has no wait of this process. A thread that ends a wait sets `ended`
//            before it pushes, because run_bridge() may destroy a wait that is on the stack. So after cancel() has seen
//            `ended`, the push may still be to come, and close_bridge() looks at the stack until it has found every
//            wait. That thread needs no lock of the interpreter until it has pushed.
//
// Fork: a bridge and its waits belong to the process that made them. In the child nothing ends a wait of the parent.
// A thread may have been ending it at the fork, so the child neither cancels nor destroys it, and its memory stays. The
// child settles the waits that were on the stack at the fork, and gives back its copy of what they had taken. The two
// processes share the descriptor. The child does not read it: the parent would then miss that a wait has ended.
//
// No lost wake-up: async-2.
//
// Memory order: [async-ended] a push releases; run_bridge() acquires what it takes.
//
// Checked by: python/tests/test_asyncio.py, others.py.
#include "objects.hpp"

#include <tocsin/operation.hpp>

#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

namespace tocsin::python {
namespace {

struct async_wait_object;

struct bridge_object {
    PyObject_HEAD PyObject* weak_references;
    std::atomic<async_wait_object*> stack;
    async_wait_object* waits;  // that run_bridge() has not settled yet; for the loop's thread alone
    int reading;
    int writing;
    unsigned generation;  // of forks, in which the bridge and its waits were made
};

// What an operation of any form is asked.
struct operation_form {
    void (*start)(void* operation);
    bool (*cancel)(void* operation) noexcept;
    void (*destroy)(void* operation) noexcept;
};

struct async_wait_object {
    PyObject_HEAD PyObject* future;  // null once the wait is settled
    PyObject* sources;               // a tuple
    PyObject* kept;                  // a list, or null
    bridge_object* bridge;
    const operation_form* form;
    void* operation;
    async_wait_object* next;    // on the stack
    async_wait_object* before;  // in the bridge's list
    async_wait_object* after;
    any_result how;
    manual_reset_event ended;
    bool started;
    bool all;
};

async_wait_object& wait_of(PyObject* self) noexcept { return as<async_wait_object>(self); }

bool is_of_this_process(const bridge_object& one) noexcept {
    return one.generation == signal_watch::generation();
}

void ring(const bridge_object& one) noexcept {
    const std::uint64_t number = 1;
    const int before = errno;
    // A pipe that is full is readable already.
    (void)!::write(one.writing, &number, one.reading == one.writing ? sizeof number : 1);
    errno = before;
}

void end(async_wait_object& wait, const any_result& how) noexcept {
    bridge_object& bridge = *wait.bridge;
    wait.how = how;
    wait.ended.set();
    async_wait_object* first =
        bridge.stack.load(std::memory_order_relaxed);  // no order: the exchange decides
    do {
        wait.next = first;
        // [async-ended] with the exchange in run_bridge()
    } while (!bridge.stack.compare_exchange_weak(first, &wait, std::memory_order_release,
                                                 std::memory_order_relaxed));
    if (first == nullptr) ring(bridge);
}

// One event or semaphore, the usual case: the small form of an operation.
template <class Object>
struct single_operation {
    struct function {
        async_wait_object* of;
        void operator()(any_result how) const noexcept { end(*of, how); }
    };
    using type = decltype(any_operation(std::declval<function>(), std::declval<Object&>()));

    static constexpr operation_form form{
        [](void* it) { static_cast<type*>(it)->start(); },
        [](void* it) noexcept { return static_cast<type*>(it)->cancel(); },
        [](void* it) noexcept { std::destroy_at(static_cast<type*>(it)); },
    };

    static bool make(async_wait_object& wait, void* object) {
        wait.operation = PyMem_RawMalloc(sizeof(type));
        if (wait.operation == nullptr) return false;
        ::new (wait.operation) type(any_operation(function{&wait}, *static_cast<Object*>(object)));
        wait.form = &form;
        return true;
    }
};

constexpr operation_form span_form{
    [](void* it) { static_cast<span_operation*>(it)->start(); },
    [](void* it) noexcept { return static_cast<span_operation*>(it)->cancel(); },
    [](void* it) noexcept { std::destroy_at(static_cast<span_operation*>(it)); },
};

bool make_span(async_wait_object& wait, const source* sources, std::size_t count) {
    wait.operation = PyMem_RawMalloc(span_operation::size(count));
    if (wait.operation == nullptr) return false;
    wait.operation = &span_operation::make(
        wait.operation, wait.all, std::span<const source>(sources, count), {},
        [](void* of, const any_result& how) noexcept { end(*static_cast<async_wait_object*>(of), how); },
        &wait);
    wait.form = &span_form;
    return true;
}

// The sources once more, to give back what was taken.
bool give_back_taken(PyObject* module, async_wait_object& wait) {
    if (wait.how.status != wait_status::signaled) return true;
    for (Py_ssize_t i = 0; i != PyTuple_GET_SIZE(wait.sources); ++i) {
        if (!wait.all && static_cast<std::size_t>(i) != wait.how.index) continue;
        source from;
        PyObject* keep = nullptr;
        if (!to_source(state_of(module), PyTuple_GET_ITEM(wait.sources, i), from, keep)) return false;
        Py_XDECREF(keep);
        // The child of a fork has a copy of what a local object gave. An object that processes share gave it to the
        // parent alone.
        if (from.what() != source::kind::custom || is_of_this_process(*wait.bridge)) give_back(from);
    }
    return true;
}

// _begin_async(bridge, future, sources, all)
PyObject* begin(PyObject* module, PyObject* arguments) {
    module_state& state = state_of(module);
    PyObject *bridge = nullptr, *future = nullptr, *sources = nullptr;
    int all = 0;
    if (!PyArg_ParseTuple(arguments, "O!OO!p", state.loop_bridge, &bridge, &future, &PyTuple_Type, &sources,
                          &all))
        return nullptr;
    if (!is_of_this_process(as<bridge_object>(bridge))) {
        PyErr_SetString(PyExc_RuntimeError, "this event loop belongs to the parent process; make a new one");
        return nullptr;
    }
    const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(sources));
    PyTypeObject* const type = state.async_wait;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    async_wait_object& wait = wait_of(self);
    new (&wait.ended) manual_reset_event;
    wait.how = {wait_status::stopped};
    wait.all = all != 0;
    Py_INCREF(bridge);
    wait.bridge = reinterpret_cast<bridge_object*>(bridge);
    Py_INCREF(future);
    wait.future = future;
    Py_INCREF(sources);
    wait.sources = sources;
    auto* const list = static_cast<source*>(PyMem_Malloc((count == 0 ? 1 : count) * sizeof(source)));
    bool good = list != nullptr;
    if (!good) PyErr_NoMemory();
    for (std::size_t i = 0; good && i != count; ++i) {
        new (list + i) source;
        PyObject* keep = nullptr;
        good = to_source(state, PyTuple_GET_ITEM(sources, static_cast<Py_ssize_t>(i)), list[i], keep);
        if (good && keep != nullptr) {
            if (wait.kept == nullptr) wait.kept = PyList_New(0);
            good = wait.kept != nullptr && PyList_Append(wait.kept, keep) == 0;
            Py_DECREF(keep);
        }
    }
    if (good) {
        PyObject* const only = count == 1 ? PyTuple_GET_ITEM(sources, 0) : Py_None;
        bool made;
        if (PyObject_TypeCheck(only, state.event)) {
            made = single_operation<manual_reset_event>::make(wait, &as<event_object>(only).event);
        } else if (PyObject_TypeCheck(only, state.auto_reset_event)) {
            made = single_operation<auto_reset_event>::make(wait, &as<auto_reset_event_object>(only).event);
        } else if (PyObject_TypeCheck(only, state.interpreter_event)) {
            made = single_operation<manual_reset_event>::make(wait, as<interpreter_event_object>(only).event);
        } else if (PyObject_TypeCheck(only, state.semaphore)) {
            static_assert(sizeof(counting_semaphore<>) == sizeof(detail::semaphore_word));
            made = single_operation<counting_semaphore<>>::make(wait, &as<semaphore_object>(only).word);
        } else {
            made = make_span(wait, list, count);
        }
        if (!made) PyErr_NoMemory();
        good = made;
    }
    PyMem_Free(list);
    if (good) {
        Py_INCREF(self);  // async-1
        const caught error = catching([&] { wait.form->start(wait.operation); });
        if (error.number == -1) {
            wait.started = true;
            wait.after = wait.bridge->waits;
            if (wait.after != nullptr) wait.after->before = &wait;
            wait.bridge->waits = &wait;
        } else {
            Py_DECREF(self);
            raise_error(error.number, error.message);
            good = false;
        }
    }
    if (good) return self;
    Py_DECREF(self);
    return nullptr;
}

// Settles one wait that has ended: async-4. Takes over the operation's reference.
bool settle(PyObject* module, async_wait_object& wait) {
    (wait.before != nullptr ? wait.before->after : wait.bridge->waits) = wait.after;
    if (wait.after != nullptr) wait.after->before = wait.before;
    PyObject* const future = std::exchange(wait.future, nullptr);
    bool good = true;
    if (future == nullptr) {
        good = give_back_taken(module, wait);
    } else {
        PyObject* const done = PyObject_CallMethod(future, "done", nullptr);
        const int is_done = done == nullptr ? -1 : PyObject_IsTrue(done);
        Py_XDECREF(done);
        if (is_done != 0) {
            good = give_back_taken(module, wait) && is_done > 0;
        } else {
            PyObject* const value = wait.how.status != wait_status::signaled ? Py_BuildValue("")
                                    : wait.all ? PyLong_FromLong(0)
                                               : PyLong_FromSize_t(wait.how.index);
            PyObject* const set =
                value == nullptr ? nullptr : PyObject_CallMethod(future, "set_result", "O", value);
            Py_XDECREF(value);
            Py_XDECREF(set);
            good = set != nullptr;
        }
        Py_DECREF(future);
    }
    Py_DECREF(reinterpret_cast<PyObject*>(&wait));
    return good;
}

PyObject* run_bridge(PyObject* module, PyObject* self) {
    if (Py_TYPE(self) != state_of(module).loop_bridge) {
        PyErr_SetString(PyExc_TypeError, "not a bridge");
        return nullptr;
    }
    auto& one = as<bridge_object>(self);
    char bytes[64];
    while (is_of_this_process(one) &&
           ::read(one.reading, bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes)) {
    }
    // [async-ended] with the push in end()
    async_wait_object* stack = one.stack.exchange(nullptr, std::memory_order_acquire);
    async_wait_object* in_order = nullptr;
    while (stack != nullptr) {
        async_wait_object* const next = stack->next;
        stack->next = in_order;
        in_order = stack;
        stack = next;
    }
    bool good = true;
    while (in_order != nullptr) {
        async_wait_object* const next = in_order->next;
        if (!settle(module, *in_order)) {
            if (good) good = false;
            if (next != nullptr) PyErr_WriteUnraisable(self);
        }
        in_order = next;
    }
    if (!good && PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
}

PyObject* make_bridge(PyObject* module, PyObject*) {
    PyTypeObject* const type = state_of(module).loop_bridge;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    auto& one = as<bridge_object>(self);
    new (&one.stack) std::atomic<async_wait_object*>(nullptr);
    one.generation = signal_watch::generation();
#if defined(__linux__)
    one.reading = one.writing = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
#else
    int ends[2] = {-1, -1};
    if (::pipe(ends) == 0) {
        for (const int each : ends) {
            ::fcntl(each, F_SETFD, FD_CLOEXEC);
            ::fcntl(each, F_SETFL, O_NONBLOCK);
        }
    }
    one.reading = ends[0];
    one.writing = ends[1];
#endif
    if (one.reading >= 0) return self;
    PyErr_SetFromErrno(PyExc_OSError);
    Py_DECREF(self);
    return nullptr;
}

PyObject* bridge_fileno(PyObject* self, PyObject*) {
    return PyLong_FromLong(as<bridge_object>(self).reading);
}

void bridge_destroy(PyObject* self) {
    auto& one = as<bridge_object>(self);
    if (one.reading >= 0) ::close(one.reading);
    if (one.writing != one.reading && one.writing >= 0) ::close(one.writing);
    dealloc(self);
}

// Ends the wait, whatever its future says. What it has taken or will be found to have taken goes back in settle(),
// because the future is done or is forgotten here. False: something else had ended it, or it is the parent's.
PyObject* cancel(PyObject* self, PyObject*) {
    async_wait_object& wait = wait_of(self);
    if (!wait.started || !is_of_this_process(*wait.bridge)) Py_RETURN_FALSE;
    bool ended;
    Py_BEGIN_ALLOW_THREADS;
    ended = wait.form->cancel(wait.operation);
    // Otherwise another thread has ended it, and is about to say so.
    if (!ended) wait.ended.wait();
    Py_END_ALLOW_THREADS;
    return boolean(ended);
}

// The loop is closed: ends all of its waits, and gives back what they have taken (async-5).
PyObject* close_bridge(PyObject* module, PyObject* self) {
    if (Py_TYPE(self) != state_of(module).loop_bridge) {
        PyErr_SetString(PyExc_TypeError, "not a bridge");
        return nullptr;
    }
    auto& one = as<bridge_object>(self);
    for (async_wait_object* each = one.waits; each != nullptr; each = each->after) {
        PyObject* const wait = reinterpret_cast<PyObject*>(each);
        Py_INCREF(wait);
        Py_XDECREF(cancel(wait, nullptr));
        PyObject* const future = std::exchange(each->future, nullptr);
        Py_XDECREF(future);
        Py_DECREF(wait);
    }
    for (;;) {
        PyObject* const none = run_bridge(module, self);
        if (none == nullptr) PyErr_WriteUnraisable(self);  // the other waits are to be found all the same
        Py_XDECREF(none);
        if (one.waits == nullptr || !is_of_this_process(one)) Py_RETURN_NONE;
        Py_BEGIN_ALLOW_THREADS;
        std::this_thread::yield();
        Py_END_ALLOW_THREADS;
    }
}

// Nobody waits for the future any more.
PyObject* forget(PyObject* self, PyObject*) {
    Py_CLEAR(wait_of(self).future);
    Py_RETURN_NONE;
}

PyObject* give_back_method(PyObject* module, PyObject* self) {
    if (Py_TYPE(self) != state_of(module).async_wait) {
        PyErr_SetString(PyExc_TypeError, "not a wait");
        return nullptr;
    }
    if (!give_back_taken(module, wait_of(self))) return nullptr;
    Py_RETURN_NONE;
}

int wait_traverse(PyObject* self, visitproc visit, void* arg) {
    async_wait_object& wait = wait_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(wait.future);
    Py_VISIT(wait.sources);
    Py_VISIT(wait.kept);
    return 0;
}

void wait_destroy(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    async_wait_object& wait = wait_of(self);
    if (wait.form != nullptr) wait.form->destroy(wait.operation);
    PyMem_RawFree(wait.operation);
    Py_CLEAR(wait.future);
    Py_CLEAR(wait.sources);
    Py_CLEAR(wait.kept);
    Py_XDECREF(reinterpret_cast<PyObject*>(wait.bridge));
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef wait_methods[] = {
    {"cancel", cancel, METH_NOARGS, nullptr},
    {"forget", forget, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot wait_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(wait_destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(wait_traverse)},
    {Py_tp_methods, wait_methods},
    {0, nullptr},
};
PyMethodDef bridge_methods[] = {
    {"fileno", bridge_fileno, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot bridge_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(bridge_destroy)},
    {Py_tp_methods, bridge_methods},
    {Py_tp_members, weak_reference_members},
    {0, nullptr},
};
PyMethodDef functions[] = {
    {"_begin_async", begin, METH_VARARGS, nullptr},    {"_make_bridge", make_bridge, METH_NOARGS, nullptr},
    {"_run_bridge", run_bridge, METH_O, nullptr},      {"_close_bridge", close_bridge, METH_O, nullptr},
    {"_give_back", give_back_method, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* await_object(PyObject* self) {
    PyObject* const waits = PyImport_ImportModule("tocsin._coroutines");
    if (waits == nullptr) return nullptr;
    PyObject* const iterator = PyObject_CallMethod(waits, "wait_one", "O", self);
    Py_DECREF(waits);
    return iterator;
}

bool add_async_types(PyObject* module) {
    auto& state = state_of(module);
    PyType_Spec wait{"tocsin._core.AsyncWait", sizeof(async_wait_object), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, wait_slots};
    state.async_wait = add_type(module, wait);
    if (state.async_wait == nullptr) return false;
    PyType_Spec bridge{"tocsin._core.LoopBridge", sizeof(bridge_object), 0, Py_TPFLAGS_DEFAULT, bridge_slots};
    state.loop_bridge = add_type(module, bridge);
    return state.loop_bridge != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tocsin::python
