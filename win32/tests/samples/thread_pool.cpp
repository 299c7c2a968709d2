// SPDX-License-Identifier: Apache-2.0
// A pool of one thread, a cleanup group, a work item, a timer and a wait.
#include <tocsin/win32.h>

#include <stdio.h>

HANDLE gCalledBack;

VOID CALLBACK MyWorkCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Parameter, PTP_WORK Work) {
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Parameter);
    UNREFERENCED_PARAMETER(Work);
    printf("MyWorkCallback: Task performed.\n");
}

VOID CALLBACK MyTimerCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Parameter, PTP_TIMER Timer) {
    UNREFERENCED_PARAMETER(Parameter);
    UNREFERENCED_PARAMETER(Timer);
    printf("MyTimerCallback: timer has fired.\n");
    SetEventWhenCallbackReturns(Instance, gCalledBack);
}

VOID CALLBACK MyWaitCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Parameter, PTP_WAIT Wait,
                             TP_WAIT_RESULT WaitResult) {
    UNREFERENCED_PARAMETER(Parameter);
    UNREFERENCED_PARAMETER(Wait);
    printf("MyWaitCallback: wait is over (%d).\n", (int)WaitResult);
    SetEventWhenCallbackReturns(Instance, gCalledBack);
}

int main(void) {
    TP_CALLBACK_ENVIRON CallBackEnviron;
    PTP_POOL pool = NULL;
    PTP_CLEANUP_GROUP cleanupgroup = NULL;
    PTP_WORK work = NULL;
    PTP_TIMER timer = NULL;
    PTP_WAIT wait = NULL;
    FILETIME FileDueTime;
    ULARGE_INTEGER ulDueTime;
    HANDLE hEvent;

    gCalledBack = CreateEvent(NULL, FALSE, FALSE, NULL);
    hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);

    InitializeThreadpoolEnvironment(&CallBackEnviron);
    pool = CreateThreadpool(NULL);
    if (NULL == pool) {
        printf("CreateThreadpool failed. LastError: %u\n", GetLastError());
        return 1;
    }
    SetThreadpoolThreadMaximum(pool, 1);
    if (FALSE == SetThreadpoolThreadMinimum(pool, 1)) {
        printf("SetThreadpoolThreadMinimum failed. LastError: %u\n", GetLastError());
        return 1;
    }
    cleanupgroup = CreateThreadpoolCleanupGroup();
    if (NULL == cleanupgroup) return 1;
    SetThreadpoolCallbackPool(&CallBackEnviron, pool);
    SetThreadpoolCallbackCleanupGroup(&CallBackEnviron, cleanupgroup, NULL);

    work = CreateThreadpoolWork(MyWorkCallback, NULL, &CallBackEnviron);
    if (NULL == work) return 1;
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);

    timer = CreateThreadpoolTimer(MyTimerCallback, NULL, &CallBackEnviron);
    if (NULL == timer) return 1;
    ulDueTime.QuadPart = (ULONGLONG) - (1 * 10 * 1000 * 10);
    FileDueTime.dwHighDateTime = ulDueTime.HighPart;
    FileDueTime.dwLowDateTime = ulDueTime.LowPart;
    SetThreadpoolTimer(timer, &FileDueTime, 0, 0);
    WaitForSingleObject(gCalledBack, INFINITE);

    wait = CreateThreadpoolWait(MyWaitCallback, NULL, &CallBackEnviron);
    if (NULL == wait) return 1;
    for (int i = 0; i < 3; i++) {
        SetThreadpoolWait(wait, hEvent, NULL);
        SetEvent(hEvent);
        WaitForSingleObject(gCalledBack, INFINITE);
    }

    CloseThreadpoolCleanupGroupMembers(cleanupgroup, FALSE, NULL);
    CloseThreadpoolCleanupGroup(cleanupgroup);
    CloseThreadpool(pool);
    CloseHandle(hEvent);
    CloseHandle(gCalledBack);
    printf("Done.\n");
    return 0;
}
