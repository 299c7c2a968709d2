// SPDX-License-Identifier: Apache-2.0
// What the sources need to know of tocsin.Queue (queue.cpp).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <tocsin/source.hpp>

#include <Python.h>

namespace tocsin::python {

// Ready while there is something to get, and when the queue is closed.
source queue_source(PyObject* queue) noexcept;

}  // namespace tocsin::python
