// expect: use of deleted function|deleted constructor
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

tocsin::manual_reset_event event;

#if defined(MISUSE)
tocsin::manual_reset_event copy(event);
#endif
