// expect: could not convert|cannot convert|no viable conversion|conversion from
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>

tocsin::auto_reset_event global;

tocsin::source fine() { return global; }

#if defined(MISUSE)
tocsin::source dangling() { return tocsin::auto_reset_event(); }
#endif
