// expect: use of deleted function|deleted
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

void assign(tocsin::auto_reset_event& one, tocsin::auto_reset_event& other);

#if defined(MISUSE)
void assign(tocsin::auto_reset_event& one, tocsin::auto_reset_event& other) { one = other; }
#endif
