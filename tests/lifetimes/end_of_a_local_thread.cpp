// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/handler_thread.hpp>
#include <tocsin/wait.hpp>

void fine(tocsin::handler_thread& thread) {
    const tocsin::source ended = thread.ended();
    (void)ended;
}

#if defined(MISUSE)
tocsin::source dangles() {
    tocsin::handler_thread thread;
    return thread.ended();
}
#endif
