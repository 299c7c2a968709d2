// SPDX-License-Identifier: Apache-2.0
// Two events; a thread sets one of them, and the main thread learns which. Then it waits for both.
#include <tocsin/win32.h>

#include <stdio.h>

HANDLE ghEvents[2];

DWORD WINAPI ThreadProc(LPVOID lpParam) {
    UNREFERENCED_PARAMETER(lpParam);
    if (!SetEvent(ghEvents[0])) {
        printf("SetEvent failed (%d)\n", GetLastError());
        return 1;
    }
    return 0;
}

int main(void) {
    HANDLE hThread;
    DWORD i, dwEvent, dwThreadID;

    for (i = 0; i < ARRAYSIZE(ghEvents); i++) {
        ghEvents[i] = CreateEvent(NULL,   // default security attributes
                                  FALSE,  // auto-reset event object
                                  FALSE,  // initial state is nonsignaled
                                  NULL);  // unnamed object
        if (ghEvents[i] == NULL) {
            printf("CreateEvent error: %d\n", GetLastError());
            ExitProcess(0);
        }
    }

    hThread = CreateThread(NULL, 0, (LPTHREAD_START_ROUTINE)ThreadProc, NULL, 0, &dwThreadID);
    if (hThread == NULL) {
        printf("CreateThread error: %d\n", GetLastError());
        return 1;
    }

    dwEvent = WaitForMultipleObjects(2, ghEvents, FALSE, INFINITE);
    switch (dwEvent) {
        case WAIT_OBJECT_0 + 0: printf("First event was signaled.\n"); break;
        case WAIT_OBJECT_0 + 1: printf("Second event was signaled.\n"); break;
        case WAIT_TIMEOUT: printf("Wait timed out.\n"); break;
        default: printf("Wait error: %d\n", GetLastError()); ExitProcess(0);
    }

    dwEvent = WaitForMultipleObjects(2, ghEvents, TRUE, 10);
    printf("Both: %s\n", dwEvent == WAIT_TIMEOUT ? "timed out" : "signaled");
    for (i = 0; i < 2; i++) SetEvent(ghEvents[i]);
    dwEvent = WaitForMultipleObjects(2, ghEvents, TRUE, INFINITE);
    printf("Both: %s\n", dwEvent == WAIT_TIMEOUT ? "timed out" : "signaled");

    WaitForSingleObject(hThread, INFINITE);
    for (i = 0; i < 2; i++) CloseHandle(ghEvents[i]);
    CloseHandle(hThread);
    return 0;
}
