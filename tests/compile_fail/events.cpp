// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

#include <utility>

tocsin::auto_reset_event event;
tocsin::auto_reset_event initially_set(true);

bool seen() { return event.is_set(); }
bool tried() { return event.try_wait(); }

// expect: use of deleted function|deleted
#ifdef MISUSE_event_assigned
void assign(tocsin::auto_reset_event& one, tocsin::auto_reset_event& other) { one = other; }
#endif

// expect: use of deleted function|deleted constructor
#ifdef MISUSE_event_copied
tocsin::auto_reset_event copy(event);
#endif

// expect: could not convert|cannot convert|no viable conversion|conversion from
#ifdef MISUSE_event_from_bool
tocsin::auto_reset_event by_accident = true;
#endif

// expect: unused-result
#ifdef MISUSE_event_is_set_ignored
void ignored(tocsin::auto_reset_event& event) { event.is_set(); }
#endif

// expect: use of deleted function|deleted constructor
#ifdef MISUSE_event_moved
tocsin::auto_reset_event moved(std::move(event));
#endif

// expect: unused-result
#ifdef MISUSE_event_try_wait_ignored
void ignored(tocsin::auto_reset_event& event) { event.try_wait(); }
#endif
