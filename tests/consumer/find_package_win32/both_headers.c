// SPDX-License-Identifier: Apache-2.0
// A program in C that uses Windows' names and tocsin's own.
#include <tocsin/win32.h>

#include <stdio.h>
#include <tocsin.h>

int main(void) {
    const HANDLE job = CreateEventW(NULL, FALSE, TRUE, u"Local\\job");
    if (WaitForSingleObject(job, INFINITE) != WAIT_OBJECT_0 || !CloseHandle(job)) return 1;
    if (TOCSIN_READABLE != 1 || TOCSIN_WRITABLE != 2 || TOCSIN_HANG_UP != 8) return 2;
    puts("both");
    return 0;
}
