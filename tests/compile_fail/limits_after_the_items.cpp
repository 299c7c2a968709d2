// expect only: limits come first: wait\({.until = 50ms}, items\)
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/wait_set.hpp>

tocsin::wait_set set;
tocsin::ready_item found[2];

void fine() { (void)set.wait({.until = std::chrono::seconds(5)}, found); }

#if defined(MISUSE)
void wait() { set.wait(found, {.until = std::chrono::seconds(5)}); }
#endif
