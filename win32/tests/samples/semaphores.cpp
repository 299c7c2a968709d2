// SPDX-License-Identifier: Apache-2.0
// A semaphore lets ten of twelve threads in at a time.
#include <tocsin/win32.h>

#include <stdio.h>

#define MAX_SEM_COUNT 10
#define THREADCOUNT 12

HANDLE ghSemaphore;
volatile LONG gInside = 0, gMost = 0, gDone = 0;

DWORD WINAPI ThreadProc(LPVOID lpParam) {
    DWORD dwWaitResult;
    BOOL bContinue = TRUE;
    UNREFERENCED_PARAMETER(lpParam);
    while (bContinue) {
        dwWaitResult = WaitForSingleObject(ghSemaphore, 1L);
        switch (dwWaitResult) {
            case WAIT_OBJECT_0: {
                LONG inside = InterlockedIncrement(&gInside);
                LONG max = InterlockedCompareExchange(&gMost, 0, 0);
                while (inside > max) {
                    LONG seen = InterlockedCompareExchange(&gMost, inside, max);
                    if (seen == max) break;
                    max = seen;
                }
                Sleep(2);
                InterlockedDecrement(&gInside);
                InterlockedIncrement(&gDone);
                bContinue = FALSE;
                if (!ReleaseSemaphore(ghSemaphore, 1, NULL))
                    printf("ReleaseSemaphore error: %d\n", GetLastError());
                break;
            }
            case WAIT_TIMEOUT: break;
        }
    }
    return TRUE;
}

int main(void) {
    HANDLE aThread[THREADCOUNT];
    DWORD ThreadID;
    LONG lPrevious = -1;
    int i;

    ghSemaphore = CreateSemaphore(NULL, MAX_SEM_COUNT, MAX_SEM_COUNT, NULL);
    if (ghSemaphore == NULL) {
        printf("CreateSemaphore error: %d\n", GetLastError());
        return 1;
    }
    for (i = 0; i < THREADCOUNT; i++)
        aThread[i] = CreateThread(NULL, 0, (LPTHREAD_START_ROUTINE)ThreadProc, NULL, 0, &ThreadID);
    WaitForMultipleObjects(THREADCOUNT, aThread, TRUE, INFINITE);
    for (i = 0; i < THREADCOUNT; i++) CloseHandle(aThread[i]);

    printf("Threads that were inside: %d\n", (int)gDone);
    printf("Never more than %d: %s\n", MAX_SEM_COUNT, gMost <= MAX_SEM_COUNT ? "yes" : "no");
    SetLastError(0);
    printf("One permit too many: %d", ReleaseSemaphore(ghSemaphore, 1, &lPrevious));
    printf(", error %d\n", GetLastError());
    WaitForSingleObject(ghSemaphore, 0);
    ReleaseSemaphore(ghSemaphore, 1, &lPrevious);
    printf("Previous count: %d\n", (int)lPrevious);
    CloseHandle(ghSemaphore);
    return 0;
}
