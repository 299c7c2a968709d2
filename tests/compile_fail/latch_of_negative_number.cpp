// expect: refuse_arrivals
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/latch.hpp>

constinit tocsin::latch zero(0);

#if defined(MISUSE)
constinit tocsin::latch negative(-1);
#endif
