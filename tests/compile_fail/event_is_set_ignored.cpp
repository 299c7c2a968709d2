// expect: unused-result
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

bool seen(tocsin::auto_reset_event& event) { return event.is_set(); }

#if defined(MISUSE)
void ignored(tocsin::auto_reset_event& event) { event.is_set(); }
#endif
