// expect only: for a descriptor write tocsin::readable\(number\)
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

tocsin::auto_reset_event a;

void fine() { (void)tocsin::async_wait({.until = std::chrono::seconds(5)}, a); }

#if defined(MISUSE)
void wait(int descriptor) { (void)tocsin::async_wait(descriptor); }
#endif
