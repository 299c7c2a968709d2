// SPDX-License-Identifier: Apache-2.0
// Two threads write to one record under a mutex. A third ends while it owns the mutex.
#include <tocsin/win32.h>

#include <stdio.h>

#define THREADCOUNT 2

HANDLE ghMutex;
int gRecord = 0;

DWORD WINAPI WriteToDatabase(LPVOID lpParam) {
    DWORD dwCount = 0, dwWaitResult;
    UNREFERENCED_PARAMETER(lpParam);
    while (dwCount < 20) {
        dwWaitResult = WaitForSingleObject(ghMutex, INFINITE);
        switch (dwWaitResult) {
            case WAIT_OBJECT_0:
                gRecord++;
                dwCount++;
                if (!ReleaseMutex(ghMutex)) printf("ReleaseMutex error: %d\n", GetLastError());
                break;
            case WAIT_ABANDONED: return FALSE;
        }
    }
    return TRUE;
}

DWORD WINAPI OwnAndEnd(LPVOID lpParam) {
    UNREFERENCED_PARAMETER(lpParam);
    WaitForSingleObject(ghMutex, INFINITE);
    return 0;
}

int main(void) {
    HANDLE aThread[THREADCOUNT], hOwner;
    DWORD ThreadID;
    int i;

    ghMutex = CreateMutex(NULL, FALSE, NULL);
    if (ghMutex == NULL) {
        printf("CreateMutex error: %d\n", GetLastError());
        return 1;
    }
    for (i = 0; i < THREADCOUNT; i++) {
        aThread[i] = CreateThread(NULL, 0, (LPTHREAD_START_ROUTINE)WriteToDatabase, NULL, 0, &ThreadID);
        if (aThread[i] == NULL) {
            printf("CreateThread error: %d\n", GetLastError());
            return 1;
        }
    }
    WaitForMultipleObjects(THREADCOUNT, aThread, TRUE, INFINITE);
    for (i = 0; i < THREADCOUNT; i++) CloseHandle(aThread[i]);
    printf("Records written: %d\n", gRecord);

    hOwner = CreateThread(NULL, 0, OwnAndEnd, NULL, 0, &ThreadID);
    WaitForSingleObject(hOwner, INFINITE);
    CloseHandle(hOwner);
    printf("Wait: 0x%x\n", WaitForSingleObject(ghMutex, INFINITE));
    printf("Once more: 0x%x\n", WaitForSingleObject(ghMutex, 0));
    printf("Release: %d %d\n", ReleaseMutex(ghMutex), ReleaseMutex(ghMutex));
    SetLastError(0);
    printf("One too many: %d", ReleaseMutex(ghMutex));
    printf(", error %d\n", GetLastError());
    CloseHandle(ghMutex);
    return 0;
}
