// SPDX-License-Identifier: Apache-2.0
// A producer, two consumers, a buffer with room for ten items.
#include <tocsin/win32.h>

#include <stdio.h>

#define BUFFER_SIZE 10
#define PRODUCED 1000

LONG Buffer[BUFFER_SIZE];
ULONG QueueSize, QueueStartOffset;
LONGLONG TotalConsumed;
LONG ItemsConsumed;
CONDITION_VARIABLE BufferNotEmpty;
CONDITION_VARIABLE BufferNotFull;
CRITICAL_SECTION BufferLock;
BOOL StopRequested;

DWORD WINAPI ProducerThreadProc(PVOID p) {
    UNREFERENCED_PARAMETER(p);
    for (LONG Item = 1; Item <= PRODUCED; Item++) {
        EnterCriticalSection(&BufferLock);
        while (QueueSize == BUFFER_SIZE && StopRequested == FALSE)
            SleepConditionVariableCS(&BufferNotFull, &BufferLock, INFINITE);
        Buffer[(QueueStartOffset + QueueSize) % BUFFER_SIZE] = Item;
        QueueSize++;
        LeaveCriticalSection(&BufferLock);
        WakeConditionVariable(&BufferNotEmpty);
    }
    return 0;
}

DWORD WINAPI ConsumerThreadProc(PVOID p) {
    UNREFERENCED_PARAMETER(p);
    while (TRUE) {
        EnterCriticalSection(&BufferLock);
        while (QueueSize == 0 && StopRequested == FALSE)
            SleepConditionVariableCS(&BufferNotEmpty, &BufferLock, INFINITE);
        if (StopRequested == TRUE && QueueSize == 0) {
            LeaveCriticalSection(&BufferLock);
            break;
        }
        TotalConsumed += Buffer[QueueStartOffset];
        ItemsConsumed++;
        QueueStartOffset = (QueueStartOffset + 1) % BUFFER_SIZE;
        QueueSize--;
        LeaveCriticalSection(&BufferLock);
        WakeConditionVariable(&BufferNotFull);
    }
    return 0;
}

int main(void) {
    HANDLE hProducer, hConsumer[2];
    DWORD id;

    InitializeConditionVariable(&BufferNotEmpty);
    InitializeConditionVariable(&BufferNotFull);
    InitializeCriticalSection(&BufferLock);
    hProducer = CreateThread(NULL, 0, ProducerThreadProc, NULL, 0, &id);
    for (int i = 0; i < 2; i++) hConsumer[i] = CreateThread(NULL, 0, ConsumerThreadProc, NULL, 0, &id);
    WaitForSingleObject(hProducer, INFINITE);
    EnterCriticalSection(&BufferLock);
    StopRequested = TRUE;
    LeaveCriticalSection(&BufferLock);
    WakeAllConditionVariable(&BufferNotFull);
    WakeAllConditionVariable(&BufferNotEmpty);
    WaitForMultipleObjects(2, hConsumer, TRUE, INFINITE);
    printf("Consumed %d items, their sum is %d.\n", (int)ItemsConsumed, (int)TotalConsumed);
    CloseHandle(hProducer);
    for (int i = 0; i < 2; i++) CloseHandle(hConsumer[i]);
    DeleteCriticalSection(&BufferLock);
    return 0;
}
