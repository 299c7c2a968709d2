// expect only: a wait for all takes no descriptor, process, signal or object that processes share
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/shared_event.hpp>

tocsin::auto_reset_event a;
tocsin::shared_auto_reset_event b;

void fine() {
    auto first = tocsin::any_operation([](tocsin::any_result) noexcept {}, a, b);
}

#if defined(MISUSE)
void wait() {
    auto both = tocsin::all_operation([](tocsin::wait_status) noexcept {}, a, b);
}
#endif
