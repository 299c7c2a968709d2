// expect: the function of an any_operation is called with an any_result
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>

tocsin::auto_reset_event event;

void fine() {
    tocsin::any_operation([](tocsin::any_result) noexcept {}, event).start();
}

#if defined(MISUSE)
void wait() {
    tocsin::any_operation([](const char*) noexcept {}, event).start();
}
#endif
