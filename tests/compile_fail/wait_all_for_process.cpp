// expect only: a wait for all takes no descriptor, process, signal or object that processes share
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/process.hpp>

tocsin::auto_reset_event a;

void fine(const tocsin::process_end& child) { (void)tocsin::async_wait_any(a, child); }

#if defined(MISUSE)
void wait(const tocsin::process_end& child) {
    (void)tocsin::async_wait_all({.until = std::chrono::seconds(5)}, a, child);
}
#endif
