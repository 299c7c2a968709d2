// SPDX-License-Identifier: Apache-2.0
// The objects that processes share: what the other files of the package need to know of them.
#pragma once

#include "objects.hpp"

namespace tocsin::python {

// Whether this is a SharedEvent, SharedAutoResetEvent or SharedSemaphore, which are sources of waits for the first of
// several.
bool is_shared_source(const module_state& state, PyObject* of) noexcept;
bool is_shared_lock(const module_state& state, PyObject* of) noexcept;
// Where the library's object is, of a lock or a source; null with an exception set if there is none.
const void* shared_address(PyObject* of);
// The source that such an object is. Returns false with an exception set.
bool to_shared_source(const module_state& state, PyObject* of, source& out);

bool add_shared_memory_type(PyObject* module);
// A new SharedMemory without a name; null with an exception set.
PyObject* anonymous_memory(PyTypeObject* type, Py_ssize_t size);

// Raises what the library has refused: a ValueError for bad arguments.
void raise_shared_error(const caught& error);
// Calls a function of tocsin/_shared.py with the object.
PyObject* call_helper(const char* function, PyObject* self);

// A function with any of the signatures that a PyMethodDef may have.
template <auto Function>
PyCFunction as_function() {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Function));
}

}  // namespace tocsin::python
