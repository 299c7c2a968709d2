// expect only: this argument is no source: sources are events
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

#if defined(MISUSE)
struct other {
} one;
void wait() { tocsin::wait_all(a, one); }
#endif
