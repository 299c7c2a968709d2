// expect: unused-result
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

bool tried(tocsin::auto_reset_event& event) { return event.try_wait(); }

#if defined(MISUSE)
void ignored(tocsin::auto_reset_event& event) { event.try_wait(); }
#endif
