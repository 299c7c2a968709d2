// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>

void fine(tocsin::auto_reset_event& event, tocsin::driver& loop) {
    auto wait = tocsin::any_operation([](tocsin::any_result) noexcept {}, event);
    wait.by(loop).start();
}

#if defined(MISUSE)
void dangles(tocsin::auto_reset_event& event, tocsin::driver& loop) {
    auto& wait = tocsin::any_operation([](tocsin::any_result) noexcept {}, event).by(loop);
    wait.start();
}
#endif
