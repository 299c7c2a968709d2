// SPDX-License-Identifier: Apache-2.0
// Three threads go through five phases together.
#include <tocsin/win32.h>

#include <stdio.h>

#define THREADCOUNT 3
#define PHASES 5

SYNCHRONIZATION_BARRIER gBarrier;
volatile LONG gArrived[PHASES], gLast[PHASES], gEarly = 0;

DWORD WINAPI ThreadProc(LPVOID lpParam) {
    UNREFERENCED_PARAMETER(lpParam);
    for (int i = 0; i < PHASES; i++) {
        InterlockedIncrement(&gArrived[i]);
        if (EnterSynchronizationBarrier(&gBarrier, SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY))
            InterlockedIncrement(&gLast[i]);
        if (gArrived[i] != THREADCOUNT) InterlockedIncrement(&gEarly);
    }
    return 0;
}

int main(void) {
    HANDLE hThreads[THREADCOUNT];
    DWORD id;
    int i;
    if (!InitializeSynchronizationBarrier(&gBarrier, THREADCOUNT, -1)) {
        printf("InitializeSynchronizationBarrier failed (%d)\n", GetLastError());
        return 1;
    }
    for (i = 0; i < THREADCOUNT; i++) hThreads[i] = CreateThread(NULL, 0, ThreadProc, NULL, 0, &id);
    WaitForMultipleObjects(THREADCOUNT, hThreads, TRUE, INFINITE);
    for (i = 0; i < PHASES; i++)
        printf("Phase %d: %d threads, %d last\n", i, (int)gArrived[i], (int)gLast[i]);
    printf("Too early: %d\n", (int)gEarly);
    DeleteSynchronizationBarrier(&gBarrier);
    for (i = 0; i < THREADCOUNT; i++) CloseHandle(hThreads[i]);
    return 0;
}
