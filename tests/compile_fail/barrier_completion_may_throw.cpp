// expect only: tocsin: a barrier calls its completion function without arguments
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/barrier.hpp>

void pass_quietly() {
    tocsin::barrier(1, []() noexcept {}).arrive_and_wait();
}

#if defined(MISUSE)
void pass_or_throw() {
    tocsin::barrier(1, []() {}).arrive_and_wait();
}
#endif
