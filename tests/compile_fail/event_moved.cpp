// expect: use of deleted function|deleted constructor
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

#include <utility>

tocsin::auto_reset_event event;

#if defined(MISUSE)
tocsin::auto_reset_event moved(std::move(event));
#endif
