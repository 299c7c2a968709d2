// SPDX-License-Identifier: Apache-2.0
// The headers of both_headers.c in the other order.
// clang-format off
#include <tocsin.h>
#include <tocsin/win32.h>
// clang-format on

int readable(void) { return TOCSIN_READABLE; }
