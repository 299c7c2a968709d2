// SPDX-License-Identifier: Apache-2.0
// The headers of both_headers.c in the other order.
#include <tocsin/win32.h>

#include <tocsin.h>

int readable(void) { return TOCSIN_READABLE; }
