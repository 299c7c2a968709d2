// expect only: make a std::vector<tocsin::source>\(begin, end\)
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

#if defined(MISUSE)
tocsin::auto_reset_event events[2];
void wait() { tocsin::wait_any(events); }
#endif
