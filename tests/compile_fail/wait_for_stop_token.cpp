// expect only: a stop token is no source: write wait_any\({.stop = token}
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

#if defined(MISUSE)
void wait(const tocsin::stop_token& token) { tocsin::wait_any(a, b, token); }
#endif
