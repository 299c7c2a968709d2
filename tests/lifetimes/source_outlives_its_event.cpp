// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

void fine(tocsin::auto_reset_event& event) {
    tocsin::source kept;
    kept = event;
    (void)tocsin::wait_any(kept);
}

#if defined(MISUSE)
void outlives() {
    tocsin::source kept;
    {
        tocsin::auto_reset_event local;
        kept = local;
    }
    (void)tocsin::wait_any(kept);
}
#endif
