// expect only: this argument is no source: sources are events
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <string>

tocsin::auto_reset_event a;

void fine() { tocsin::wait_any(a); }

#if defined(MISUSE)
void wait(std::string& text) { tocsin::wait_any(a, text); }
#endif
