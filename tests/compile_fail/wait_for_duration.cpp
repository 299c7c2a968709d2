// expect only: a duration is no source: limit the wait by wait_any\({.until = 50ms}
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

#if defined(MISUSE)
void wait() { tocsin::wait_any(a, b, std::chrono::seconds(5)); }
#endif
