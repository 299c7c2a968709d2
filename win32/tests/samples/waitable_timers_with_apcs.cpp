// SPDX-License-Identifier: Apache-2.0
// A waitable timer that queues a routine to its thread, three times.
#include <tocsin/win32.h>

#include <stdio.h>

#define _SECOND 10000000

typedef struct _MYDATA {
    const char* szText;
    DWORD dwValue;
} MYDATA;

VOID CALLBACK TimerAPCProc(LPVOID lpArg, DWORD dwTimerLowValue, DWORD dwTimerHighValue) {
    MYDATA* pMyData = (MYDATA*)lpArg;
    UNREFERENCED_PARAMETER(dwTimerLowValue);
    UNREFERENCED_PARAMETER(dwTimerHighValue);
    if (pMyData->dwValue == 103) return;  // due again before it was cancelled
    printf("Message: %s\nValue: %d\n\n", pMyData->szText, (int)pMyData->dwValue++);
}

int main(void) {
    HANDLE hTimer;
    BOOL bSuccess;
    LONGLONG qwDueTime;
    LARGE_INTEGER liDueTime;
    MYDATA MyData;

    MyData.szText = "This is my data";
    MyData.dwValue = 100;

    hTimer = CreateWaitableTimer(NULL, FALSE, NULL);
    if (hTimer == NULL) {
        printf("CreateWaitableTimer failed with error %d\n", GetLastError());
        return 1;
    }
    qwDueTime = -_SECOND / 100;
    liDueTime.LowPart = (DWORD)(qwDueTime & 0xFFFFFFFF);
    liDueTime.HighPart = (LONG)(qwDueTime >> 32);
    bSuccess = SetWaitableTimer(hTimer, &liDueTime, 20, TimerAPCProc, &MyData, FALSE);
    if (!bSuccess) {
        printf("SetWaitableTimer failed with error %d\n", GetLastError());
        return 1;
    }
    for (; MyData.dwValue < 103;) SleepEx(INFINITE, TRUE);
    CancelWaitableTimer(hTimer);
    printf("Calls: %d\n", (int)MyData.dwValue - 100);
    CloseHandle(hTimer);
    return 0;
}
