// expect of clang: address of stack memory
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>

tocsin::auto_reset_event global;

tocsin::source fine() { return global; }

#if defined(MISUSE)
tocsin::source dangling() {
    tocsin::auto_reset_event local;
    return local;
}
#endif
