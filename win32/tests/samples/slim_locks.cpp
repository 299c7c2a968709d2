// SPDX-License-Identifier: Apache-2.0
// A table under a slim reader/writer lock: one writer, three readers, who see both halves of each entry change
// together.
#include <tocsin/win32.h>

#include <stdio.h>

#define READERS 3
#define CHANGES 2000

SRWLOCK gLock = SRWLOCK_INIT;
CONDITION_VARIABLE gChanged = CONDITION_VARIABLE_INIT;
LONG gHalves[2];
volatile LONG gTorn = 0;
BOOL gDone = FALSE;

DWORD WINAPI Reader(LPVOID lpParam) {
    LONG last = -1;
    UNREFERENCED_PARAMETER(lpParam);
    AcquireSRWLockShared(&gLock);
    while (!gDone) {
        if (gHalves[0] != gHalves[1] || gHalves[0] < last) InterlockedIncrement(&gTorn);
        last = gHalves[0];
        SleepConditionVariableSRW(&gChanged, &gLock, 1, CONDITION_VARIABLE_LOCKMODE_SHARED);
    }
    ReleaseSRWLockShared(&gLock);
    return 0;
}

int main(void) {
    HANDLE hThreads[READERS];
    DWORD id;
    int i;
    for (i = 0; i < READERS; i++) hThreads[i] = CreateThread(NULL, 0, Reader, NULL, 0, &id);
    for (i = 0; i < CHANGES; i++) {
        AcquireSRWLockExclusive(&gLock);
        gHalves[0]++;
        gHalves[1]++;
        ReleaseSRWLockExclusive(&gLock);
        WakeAllConditionVariable(&gChanged);
    }
    printf("Try while shared: ");
    AcquireSRWLockShared(&gLock);
    printf("%d\n", TryAcquireSRWLockExclusive(&gLock));
    ReleaseSRWLockShared(&gLock);
    AcquireSRWLockExclusive(&gLock);
    gDone = TRUE;
    ReleaseSRWLockExclusive(&gLock);
    WakeAllConditionVariable(&gChanged);
    WaitForMultipleObjects(READERS, hThreads, TRUE, INFINITE);
    for (i = 0; i < READERS; i++) CloseHandle(hThreads[i]);
    printf("Changes: %d, torn: %d\n", (int)gHalves[0], (int)gTorn);
    return 0;
}
