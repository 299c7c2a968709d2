// SPDX-License-Identifier: Apache-2.0
// An event that is made by the first thread that needs it: synchronously, and asynchronously.
#include <tocsin/win32.h>

#include <stdio.h>

INIT_ONCE g_InitOnce = INIT_ONCE_STATIC_INIT;
INIT_ONCE g_InitOnceAsync = INIT_ONCE_STATIC_INIT;
volatile LONG g_Made = 0;

BOOL CALLBACK InitHandleFunction(PINIT_ONCE InitOnce, PVOID Parameter, PVOID* lpContext) {
    HANDLE hEvent = CreateEvent(NULL, TRUE, TRUE, NULL);
    UNREFERENCED_PARAMETER(InitOnce);
    UNREFERENCED_PARAMETER(Parameter);
    if (NULL == hEvent) return FALSE;
    InterlockedIncrement(&g_Made);
    *lpContext = hEvent;
    return TRUE;
}

HANDLE OpenEventHandleSync(void) {
    PVOID lpContext;
    return InitOnceExecuteOnce(&g_InitOnce, InitHandleFunction, NULL, &lpContext) ? (HANDLE)lpContext
                                                                                  : INVALID_HANDLE_VALUE;
}

HANDLE OpenEventHandleAsync(void) {
    PVOID lpContext;
    BOOL fPending;
    HANDLE hEvent;
    if (!InitOnceBeginInitialize(&g_InitOnceAsync, INIT_ONCE_ASYNC, &fPending, &lpContext))
        return INVALID_HANDLE_VALUE;
    if (!fPending) return (HANDLE)lpContext;
    hEvent = CreateEvent(NULL, TRUE, TRUE, NULL);
    if (NULL == hEvent) return INVALID_HANDLE_VALUE;
    if (InitOnceComplete(&g_InitOnceAsync, INIT_ONCE_ASYNC, (PVOID)hEvent)) return hEvent;
    // Another thread was faster.
    CloseHandle(hEvent);
    if (InitOnceBeginInitialize(&g_InitOnceAsync, INIT_ONCE_CHECK_ONLY, &fPending, &lpContext) && !fPending)
        return (HANDLE)lpContext;
    return INVALID_HANDLE_VALUE;
}

HANDLE g_Sync[4], g_Async[4];

DWORD WINAPI ThreadProc(LPVOID lpParam) {
    int i = (int)(INT_PTR)lpParam;
    g_Sync[i] = OpenEventHandleSync();
    g_Async[i] = OpenEventHandleAsync();
    return 0;
}

int main(void) {
    HANDLE hThreads[4];
    DWORD id;
    BOOL bSame = TRUE;
    int i;
    for (i = 0; i < 4; i++) hThreads[i] = CreateThread(NULL, 0, ThreadProc, (LPVOID)(INT_PTR)i, 0, &id);
    WaitForMultipleObjects(4, hThreads, TRUE, INFINITE);
    for (i = 0; i < 4; i++) {
        if (g_Sync[i] != g_Sync[0] || g_Async[i] != g_Async[0]) bSame = FALSE;
        CloseHandle(hThreads[i]);
    }
    printf("Made: %d\n", (int)g_Made);
    printf("All threads have the same handles: %s\n", bSame ? "yes" : "no");
    printf("Wait: %d %d\n", (int)WaitForSingleObject(g_Sync[0], 0), (int)WaitForSingleObject(g_Async[0], 0));
    CloseHandle(g_Sync[0]);
    CloseHandle(g_Async[0]);
    return 0;
}
