// expect: could not convert|cannot convert|no viable conversion|conversion from
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>

tocsin::auto_reset_event initially_set(true);

#if defined(MISUSE)
tocsin::auto_reset_event by_accident = true;
#endif
