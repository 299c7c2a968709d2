// expect only: nobody can set a temporary
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/sender.hpp>

tocsin::auto_reset_event a;

void fine() { (void)tocsin::as_sender({.until = std::chrono::seconds(5)}, a); }

#if defined(MISUSE)
auto made() { return tocsin::as_sender(a, tocsin::auto_reset_event()); }
#endif
