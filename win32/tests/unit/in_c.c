// SPDX-License-Identifier: Apache-2.0
/* The header from C: types, constants and calls, in a small program. */
#include <tocsin/win32.h>

#include <stdio.h>

static SRWLOCK lock = SRWLOCK_INIT;
static CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
static HANDLE ready;
static int runs;

static DWORD WINAPI work(LPVOID argument) {
    AcquireSRWLockExclusive(&lock);
    *(int*)argument = 42;
    ReleaseSRWLockExclusive(&lock);
    WakeAllConditionVariable(&changed);
    SetEvent(ready);
    return 7;
}

static BOOL CALLBACK initialize(PINIT_ONCE of, PVOID parameter, PVOID* context) {
    (void)of;
    (void)parameter;
    (void)context;
    ++runs;
    return TRUE;
}

int main(void) {
    HANDLE both[2];
    DWORD code = 0;
    int result = 0;
    ready = CreateEvent(NULL, FALSE, FALSE, NULL);
    both[0] = ready;
    both[1] = CreateThread(NULL, 0, work, &result, 0, NULL);
    if (WaitForMultipleObjects(2, both, TRUE, INFINITE) != WAIT_OBJECT_0) return 1;
    if (!GetExitCodeThread(both[1], &code) || code != 7 || result != 42) return 2;
    InitOnceExecuteOnce(&once, initialize, NULL, NULL);
    InitOnceExecuteOnce(&once, initialize, NULL, NULL);
    if (runs != 1) return 3;
    if (!CloseHandle(both[0]) || CloseHandle(both[0]) || GetLastError() != ERROR_INVALID_HANDLE) return 4;
    CloseHandle(both[1]);
    puts("ok");
    return 0;
}
