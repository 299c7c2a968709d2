// SPDX-License-Identifier: Apache-2.0
// tocsin.SharedMemory: the library's shared_memory as a buffer.
//
// Checked by: python/tests/test_shared.py.
#include "shared.hpp"

#include <tocsin/shared_memory.hpp>

#include <cerrno>
#include <cstring>

namespace tocsin::python {
namespace {

struct memory_object {
    PyObject_HEAD PyObject* weak_references;
    shared_memory* memory;  // null: closed
    PyObject* name;         // or None
    Py_ssize_t exports;     // of the buffer; used inside the critical section, as `memory` is
};
static_assert(offsetof(event_object, weak_references) == offsetof(memory_object, weak_references));

PyObject* made_memory(PyTypeObject* type, PyObject* name, shared_memory* memory) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) {
        delete memory;
        return nullptr;
    }
    Py_INCREF(name);
    as<memory_object>(self).name = name;
    as<memory_object>(self).memory = memory;
    return self;
}

// `make` may block, as a file system does.
template <class Make>
PyObject* new_memory(PyTypeObject* type, PyObject* name, Make make) {
    shared_memory* memory = nullptr;
    caught error;
    Py_BEGIN_ALLOW_THREADS;
    error = catching([&] { memory = new shared_memory(make()); });
    Py_END_ALLOW_THREADS;
    if (error.number == -1) return made_memory(type, name, memory);
    raise_shared_error(error);
    return nullptr;
}

bool is_size(Py_ssize_t size) {
    if (size > 0) return true;
    PyErr_Format(PyExc_ValueError, "the size must be positive, not %zd", size);
    return false;
}

// Null with an exception set if it is no name.
const char* text_of(PyObject* name) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a name is a str, not %.200s", Py_TYPE(name)->tp_name);
        return nullptr;
    }
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(name, &length);
    if (text == nullptr || std::strlen(text) == static_cast<std::size_t>(length)) return text;
    PyErr_SetString(PyExc_ValueError, "embedded null character in a name");
    return nullptr;
}

PyObject* anonymous(PyObject* type, PyObject* given) {
    const Py_ssize_t size = PyNumber_AsSsize_t(given, PyExc_OverflowError);
    if ((size == -1 && PyErr_Occurred()) || !is_size(size)) return nullptr;
    return anonymous_memory(reinterpret_cast<PyTypeObject*>(type), size);
}

template <auto Call>
PyObject* named_memory(PyObject* type, PyObject* arguments, PyObject* keywords) {
    static const char* known[] = {"name", "size", "permissions", nullptr};
    PyObject* name = nullptr;
    Py_ssize_t size = 0;
    unsigned permissions = 0600;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "Un|I", const_cast<char**>(known), &name, &size,
                                     &permissions))
        return nullptr;
    const char* const text = text_of(name);
    if (text == nullptr || !is_size(size)) return nullptr;
    return new_memory(reinterpret_cast<PyTypeObject*>(type), name,
                      [&] { return Call(text, static_cast<std::size_t>(size), permissions); });
}

PyObject* open_memory(PyObject* type, PyObject* name) {
    const char* const text = text_of(name);
    if (text == nullptr) return nullptr;
    return new_memory(reinterpret_cast<PyTypeObject*>(type), name, [&] { return shared_memory::open(text); });
}

PyObject* map_memory(PyObject* type, PyObject* of) {
    const int descriptor = PyObject_AsFileDescriptor(of);
    if (descriptor < 0) return nullptr;
    return new_memory(reinterpret_cast<PyTypeObject*>(type), Py_None,
                      [&] { return shared_memory::map(descriptor); });
}

PyObject* unlink_memory(PyObject*, PyObject* name) {
    const char* const text = text_of(name);
    if (text == nullptr) return nullptr;
    bool was_there = false;
    const caught error = catching([&] { was_there = shared_memory::unlink(text); });
    if (error.number == -1) return boolean(was_there);
    raise_shared_error(error);
    return nullptr;
}

// Inside the critical section. Null with an exception set if the memory is closed.
shared_memory* open_one(PyObject* self) {
    shared_memory* const memory = as<memory_object>(self).memory;
    if (memory == nullptr) PyErr_SetString(PyExc_ValueError, "the SharedMemory is closed");
    return memory;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    return in_critical_section(self, [&] {
        view->obj = nullptr;
        shared_memory* const memory = open_one(self);
        if (memory == nullptr) return -1;
        const int result =
            PyBuffer_FillInfo(view, self, memory->data(), static_cast<Py_ssize_t>(memory->size()), 0, flags);
        if (result == 0) ++as<memory_object>(self).exports;
        return result;
    });
}

void release_buffer(PyObject* self, Py_buffer*) {
    (void)in_critical_section(self, [&] { return --as<memory_object>(self).exports; });
}

PyObject* close_memory(PyObject* self, PyObject*) {
    auto& one = as<memory_object>(self);
    shared_memory* memory = nullptr;
    const Py_ssize_t exports = in_critical_section(self, [&] {
        if (one.exports == 0) memory = std::exchange(one.memory, nullptr);
        return one.exports;
    });
    delete memory;
    if (exports == 0) Py_RETURN_NONE;
    PyErr_Format(
        PyExc_BufferError,
        "cannot close a SharedMemory that %zd objects or memoryviews use; drop or release them first",
        exports);
    return nullptr;
}

void destroy_memory(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    auto& one = as<memory_object>(self);
    if (one.weak_references != nullptr) PyObject_ClearWeakRefs(self);
    delete one.memory;
    Py_XDECREF(one.name);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* enter_memory(PyObject* self, PyObject*) {
    if (in_critical_section(self, [&] { return open_one(self); }) == nullptr) return nullptr;
    Py_INCREF(self);
    return self;
}
PyObject* leave_memory(PyObject* self, PyObject* const*, Py_ssize_t) { return close_memory(self, nullptr); }

PyObject* name_of_memory(PyObject* self, void*) {
    PyObject* const name = as<memory_object>(self).name;
    Py_INCREF(name);
    return name;
}
PyObject* size_of_memory(PyObject* self, void*) {
    return in_critical_section(self, [&]() -> PyObject* {
        shared_memory* const memory = open_one(self);
        return memory == nullptr ? nullptr : PyLong_FromSize_t(memory->size());
    });
}
PyObject* descriptor_of_memory(PyObject* self, void*) {
    return in_critical_section(self, [&]() -> PyObject* {
        shared_memory* const memory = open_one(self);
        return memory == nullptr ? nullptr : PyLong_FromLong(memory->descriptor());
    });
}
PyObject* bytes_of_memory(PyObject* self, void*) { return PyMemoryView_FromObject(self); }

PyObject* represent_memory(PyObject* self) {
    const auto& one = as<memory_object>(self);
    const Py_ssize_t size = in_critical_section(self, [&]() -> Py_ssize_t {
        return one.memory == nullptr ? -1 : static_cast<Py_ssize_t>(one.memory->size());
    });
    if (size < 0) return PyUnicode_FromFormat("<%s %R, closed>", Py_TYPE(self)->tp_name, one.name);
    return PyUnicode_FromFormat("<%s %R, %zd bytes>", Py_TYPE(self)->tp_name, one.name, size);
}

PyObject* reduce_memory(PyObject* self, PyObject*) { return call_helper("reduce_memory", self); }

PyMethodDef memory_methods[] = {
    {"anonymous", anonymous, METH_O | METH_CLASS,
     "anonymous($type, size, /)\n--\n\nMake memory without a name, full of zeros. It can be pickled while a "
     "child process is being started. Nobody can truncate it."},
    {"create", as_function<named_memory<shared_memory::create>>(), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "create($type, /, name, size, permissions=0o600)\n--\n\nMake memory with a name, full of zeros. "
     "FileExistsError if there is such memory. A name is a slash and up to 254 other characters."},
    {"open", open_memory, METH_O | METH_CLASS,
     "open($type, name, /)\n--\n\nOpen the memory with this name. FileNotFoundError if there is none."},
    {"open_or_create", as_function<named_memory<shared_memory::open_or_create>>(),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "open_or_create($type, /, name, size, permissions=0o600)\n--\n\nOpen the memory with this name, or make "
     "it. ValueError if it has another size. Several processes may call this at once."},
    {"map", map_memory, METH_O | METH_CLASS,
     "map($type, descriptor, /)\n--\n\nMap the whole of a file or a memfd. The descriptor stays the "
     "caller's."},
    {"unlink", unlink_memory, METH_O | METH_STATIC,
     "unlink(name, /)\n--\n\nRemove the name, and return whether there was one. Who has the memory keeps it. "
     "Nothing else removes a name: neither close() nor the end of a process."},
    {"close", close_memory, METH_NOARGS,
     "close($self, /)\n--\n\nUnmap the memory. BufferError while an object or a memoryview uses it."},
    {"__enter__", enter_memory, METH_NOARGS, "__enter__($self, /)\n--\n\nReturn the memory itself."},
    {"__exit__", as_function<leave_memory>(), METH_FASTCALL,
     "__exit__($self, type, value, traceback, /)\n--\n\nclose()"},
    {"__reduce__", reduce_memory, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef memory_attributes[] = {
    {"name", name_of_memory, nullptr, "The name, or None.", nullptr},
    {"size", size_of_memory, nullptr, "The number of bytes.", nullptr},
    {"buf", bytes_of_memory, nullptr, "The bytes, as a new memoryview.", nullptr},
    {"descriptor", descriptor_of_memory, nullptr,
     "The number of the file descriptor, for socket.send_fds() and map(). close() closes it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_memory)},
    {Py_tp_repr, reinterpret_cast<void*>(represent_memory)},
    {Py_tp_methods, memory_methods},
    {Py_tp_getset, memory_attributes},
    {Py_tp_members, weak_reference_members},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {Py_tp_doc, const_cast<char*>("Memory that processes share, made by anonymous(), create(), open(), "
                                  "open_or_create() or map(). It is a buffer.")},
    {0, nullptr},
};

}  // namespace

void raise_shared_error(const caught& error) {
    raise_error(error.number == EINVAL ? 0 : error.number, error.message);
}

PyObject* call_helper(const char* function, PyObject* self) {
    PyObject* const module = PyImport_ImportModule("tocsin._shared");
    if (module == nullptr) return nullptr;
    PyObject* const result = PyObject_CallMethod(module, function, "O", self);
    Py_DECREF(module);
    return result;
}

PyObject* anonymous_memory(PyTypeObject* type, Py_ssize_t size) {
    return new_memory(type, Py_None,
                      [&] { return shared_memory::anonymous(static_cast<std::size_t>(size)); });
}

bool add_shared_memory_type(PyObject* module) {
    PyType_Spec spec{"tocsin.SharedMemory", sizeof(memory_object), 0, Py_TPFLAGS_DEFAULT, memory_slots};
    return (state_of(module).shared_memory = add_type(module, spec)) != nullptr;
}

}  // namespace tocsin::python
