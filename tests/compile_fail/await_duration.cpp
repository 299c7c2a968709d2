// expect only: a duration is no source
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

tocsin::auto_reset_event a;

void fine() { (void)tocsin::async_wait({.until = std::chrono::seconds(5)}, a); }

#if defined(MISUSE)
void wait() { (void)tocsin::async_wait_any(a, std::chrono::seconds(5)); }
#endif
