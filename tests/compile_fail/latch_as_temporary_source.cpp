// expect only: tocsin: nobody can set a temporary
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/latch.hpp>
#include <tocsin/wait.hpp>

void wait_for_name(const tocsin::latch& done) { (void)tocsin::wait_any(done); }

#if defined(MISUSE)
void wait_for_temporary() { (void)tocsin::wait_any(tocsin::latch(1)); }
#endif
