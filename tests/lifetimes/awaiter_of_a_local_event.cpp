// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

using awaited = tocsin::async_event_wait<tocsin::auto_reset_event>;

awaited fine(tocsin::auto_reset_event& event) { return awaited(event); }

#if defined(MISUSE)
awaited dangles() {
    tocsin::auto_reset_event local;
    return awaited(local);
}
#endif
