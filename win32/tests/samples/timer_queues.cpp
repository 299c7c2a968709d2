// SPDX-License-Identifier: Apache-2.0
// A timer of a timer queue that fires once, and one that fires again and again.
#include <tocsin/win32.h>

#include <stdio.h>

HANDLE gDoneEvent;
volatile LONG gTicks = 0;

VOID CALLBACK TimerRoutine(PVOID lpParam, BOOLEAN TimerOrWaitFired) {
    if (lpParam == NULL) {
        printf("TimerRoutine lpParam is NULL\n");
    } else {
        printf("Timer routine called. Parameter is %d.\n", *(int*)lpParam);
        if (TimerOrWaitFired) {
            printf("The wait timed out.\n");
        } else {
            printf("The wait event was signaled.\n");
        }
    }
    SetEvent(gDoneEvent);
}

VOID CALLBACK Tick(PVOID lpParam, BOOLEAN TimerOrWaitFired) {
    UNREFERENCED_PARAMETER(TimerOrWaitFired);
    if (InterlockedIncrement(&gTicks) == 3) SetEvent((HANDLE)lpParam);
}

int main(void) {
    HANDLE hTimer = NULL, hTicks = NULL;
    HANDLE hTimerQueue = NULL;
    int arg = 123;

    gDoneEvent = CreateEvent(NULL, TRUE, FALSE, NULL);
    if (NULL == gDoneEvent) {
        printf("CreateEvent failed (%d)\n", GetLastError());
        return 1;
    }
    hTimerQueue = CreateTimerQueue();
    if (NULL == hTimerQueue) {
        printf("CreateTimerQueue failed (%d)\n", GetLastError());
        return 2;
    }
    printf("Call timer routine in 50 milliseconds...\n");
    if (!CreateTimerQueueTimer(&hTimer, hTimerQueue, (WAITORTIMERCALLBACK)TimerRoutine, &arg, 50, 0, 0)) {
        printf("CreateTimerQueueTimer failed (%d)\n", GetLastError());
        return 3;
    }
    if (WaitForSingleObject(gDoneEvent, INFINITE) != WAIT_OBJECT_0)
        printf("WaitForSingleObject failed (%d)\n", GetLastError());

    ResetEvent(gDoneEvent);
    if (!CreateTimerQueueTimer(&hTicks, hTimerQueue, Tick, gDoneEvent, 5, 5, WT_EXECUTEINTIMERTHREAD))
        return 4;
    WaitForSingleObject(gDoneEvent, INFINITE);
    printf("Three ticks.\n");
    if (!DeleteTimerQueueEx(hTimerQueue, INVALID_HANDLE_VALUE))
        printf("DeleteTimerQueueEx failed (%d)\n", GetLastError());
    CloseHandle(gDoneEvent);
    return 0;
}
