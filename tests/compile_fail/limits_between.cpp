// expect only: limits come first: wait_all\({.until = 50ms}, a, b\)
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

#if defined(MISUSE)
void wait() { (void)tocsin::wait_all(a, {.until = std::chrono::seconds(5)}, b); }
#endif
