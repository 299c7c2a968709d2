// SPDX-License-Identifier: Apache-2.0
/* Windows' pools of threads: CreateThreadpoolWork() and its relatives, QueueUserWorkItem(), timer queues. Only
 * tocsin/win32.h includes this file.
 *
 * Callbacks run in threads of pools. The process has one pool for callbacks without a pool of their own, with up to 500
 * threads. A pool of CreateThreadpool() has as many as SetThreadpoolThreadMaximum() says, at first 500 as well. A
 * thread is started when a callback is to run and all threads are busy, so a callback that waits holds up no other
 * until so many wait. A thread that is idle for ten seconds ends, unless it is the last. The threads block all signals.
 *
 * A wait or timer needs no thread of its own. Objects need memory only when they are made: nothing that submits a
 * callback later can fail. (SetThreadpoolWait() with a handle is the exception: it sets the last error.) */
#ifndef TOCSIN_WIN32_THREAD_POOL_H
#define TOCSIN_WIN32_THREAD_POOL_H

/* Programs compile it with warnings that its macros and its C can't please in C++. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Work items and timer queues ------------------------------------------------------------------------------ */

/* Runs the function in the pool. Of the flags, WT_EXECUTEINPERSISTENTTHREAD has an effect: a thread that does not end.
 * */
TOCSIN_WIN32_API BOOL WINAPI QueueUserWorkItem(LPTHREAD_START_ROUTINE function, PVOID context, ULONG flags);

/* A timer calls back in the pool or, with WT_EXECUTEINTIMERTHREAD, in one thread that serves all such timers. `queue`
 * is a queue of CreateTimerQueue(), or NULL for the queue of the process. Times are in milliseconds; a period of 0
 * calls once. */
TOCSIN_WIN32_API HANDLE WINAPI CreateTimerQueue(void);
TOCSIN_WIN32_API BOOL WINAPI CreateTimerQueueTimer(PHANDLE timer, HANDLE queue, WAITORTIMERCALLBACK callback,
                                                   PVOID context, DWORD due, DWORD period, ULONG flags);
/* A timer that calls once and has expired stays as it is. */
TOCSIN_WIN32_API BOOL WINAPI ChangeTimerQueueTimer(HANDLE queue, HANDLE timer, ULONG due, ULONG period);
/* No callback begins afterwards. `done` is as for UnregisterWaitEx(). */
TOCSIN_WIN32_API BOOL WINAPI DeleteTimerQueueTimer(HANDLE queue, HANDLE timer, HANDLE done);
TOCSIN_WIN32_API BOOL WINAPI DeleteTimerQueueEx(HANDLE queue, HANDLE done);
TOCSIN_WIN32_API BOOL WINAPI DeleteTimerQueue(HANDLE queue);

/* ---- The thread pool ------------------------------------------------------------------------------------------ */

typedef struct _TP_CALLBACK_INSTANCE TP_CALLBACK_INSTANCE, *PTP_CALLBACK_INSTANCE;
typedef struct _TP_POOL TP_POOL, *PTP_POOL;
typedef struct _TP_CLEANUP_GROUP TP_CLEANUP_GROUP, *PTP_CLEANUP_GROUP;
typedef struct _TP_WORK TP_WORK, *PTP_WORK;
typedef struct _TP_WAIT TP_WAIT, *PTP_WAIT;
typedef struct _TP_TIMER TP_TIMER, *PTP_TIMER;
typedef DWORD TP_VERSION, *PTP_VERSION;
typedef DWORD TP_WAIT_RESULT;

typedef VOID(NTAPI* PTP_SIMPLE_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context);
typedef VOID(NTAPI* PTP_CLEANUP_GROUP_CANCEL_CALLBACK)(PVOID object_context, PVOID cleanup_context);
typedef VOID(NTAPI* PTP_WORK_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work);
typedef VOID(NTAPI* PTP_TIMER_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer);
typedef VOID(NTAPI* PTP_WAIT_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait,
                                       TP_WAIT_RESULT result);

typedef enum _TP_CALLBACK_PRIORITY {
    TP_CALLBACK_PRIORITY_HIGH,
    TP_CALLBACK_PRIORITY_NORMAL,
    TP_CALLBACK_PRIORITY_LOW,
    TP_CALLBACK_PRIORITY_INVALID,
    TP_CALLBACK_PRIORITY_COUNT = TP_CALLBACK_PRIORITY_INVALID
} TP_CALLBACK_PRIORITY;

typedef struct _TP_POOL_STACK_INFORMATION {
    SIZE_T StackReserve;
    SIZE_T StackCommit;
} TP_POOL_STACK_INFORMATION, *PTP_POOL_STACK_INFORMATION;

typedef struct _TP_CALLBACK_ENVIRON {
    TP_VERSION Version;
    PTP_POOL Pool;
    PTP_CLEANUP_GROUP CleanupGroup;
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK CleanupGroupCancelCallback;
    PVOID RaceDll;
    DWORD Flags; /* bit 0: runs long; bit 1: in a thread that does not end */
    TP_CALLBACK_PRIORITY CallbackPriority;
} TP_CALLBACK_ENVIRON, *PTP_CALLBACK_ENVIRON;

static inline VOID InitializeThreadpoolEnvironment(PTP_CALLBACK_ENVIRON environment) {
    environment->Version = 3;
    environment->Pool = NULL;
    environment->CleanupGroup = NULL;
    environment->CleanupGroupCancelCallback = NULL;
    environment->RaceDll = NULL;
    environment->Flags = 0;
    environment->CallbackPriority = TP_CALLBACK_PRIORITY_NORMAL;
}
static inline VOID SetThreadpoolCallbackPool(PTP_CALLBACK_ENVIRON environment, PTP_POOL pool) {
    environment->Pool = pool;
}
static inline VOID SetThreadpoolCallbackCleanupGroup(PTP_CALLBACK_ENVIRON environment,
                                                     PTP_CLEANUP_GROUP group,
                                                     PTP_CLEANUP_GROUP_CANCEL_CALLBACK canceled) {
    environment->CleanupGroup = group;
    environment->CleanupGroupCancelCallback = canceled;
}
static inline VOID SetThreadpoolCallbackRunsLong(PTP_CALLBACK_ENVIRON environment) {
    environment->Flags |= 1u;
}
static inline VOID SetThreadpoolCallbackPersistent(PTP_CALLBACK_ENVIRON environment) {
    environment->Flags |= 2u;
}
static inline VOID SetThreadpoolCallbackPriority(PTP_CALLBACK_ENVIRON environment,
                                                 TP_CALLBACK_PRIORITY priority) {
    environment->CallbackPriority = priority;
}
/* Has no effect: keep a library loaded until its callbacks have ended. */
static inline VOID SetThreadpoolCallbackLibrary(PTP_CALLBACK_ENVIRON environment, PVOID library) {
    environment->RaceDll = library;
}
static inline VOID DestroyThreadpoolEnvironment(PTP_CALLBACK_ENVIRON environment) { (void)environment; }

TOCSIN_WIN32_API PTP_POOL WINAPI CreateThreadpool(PVOID reserved);
TOCSIN_WIN32_API VOID WINAPI CloseThreadpool(PTP_POOL which);
TOCSIN_WIN32_API VOID WINAPI SetThreadpoolThreadMaximum(PTP_POOL which, DWORD max);
TOCSIN_WIN32_API BOOL WINAPI SetThreadpoolThreadMinimum(PTP_POOL which, DWORD least);
TOCSIN_WIN32_API BOOL WINAPI SetThreadpoolStackInformation(PTP_POOL which, PTP_POOL_STACK_INFORMATION stack);
TOCSIN_WIN32_API BOOL WINAPI QueryThreadpoolStackInformation(PTP_POOL which,
                                                             PTP_POOL_STACK_INFORMATION stack);

TOCSIN_WIN32_API PTP_CLEANUP_GROUP WINAPI CreateThreadpoolCleanupGroup(void);
/* Closes all members: waits for their callbacks, and frees them. With `cancel`, takes back the callbacks that have not
 * begun, and calls the group's function for each object that had one. */
TOCSIN_WIN32_API VOID WINAPI CloseThreadpoolCleanupGroupMembers(PTP_CLEANUP_GROUP group, BOOL cancel,
                                                                PVOID cleanup_context);
TOCSIN_WIN32_API VOID WINAPI CloseThreadpoolCleanupGroup(PTP_CLEANUP_GROUP group);

TOCSIN_WIN32_API BOOL WINAPI TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK callback, PVOID context,
                                                         PTP_CALLBACK_ENVIRON environment);

TOCSIN_WIN32_API PTP_WORK WINAPI CreateThreadpoolWork(PTP_WORK_CALLBACK callback, PVOID context,
                                                      PTP_CALLBACK_ENVIRON environment);
TOCSIN_WIN32_API VOID WINAPI SubmitThreadpoolWork(PTP_WORK which);
TOCSIN_WIN32_API VOID WINAPI WaitForThreadpoolWorkCallbacks(PTP_WORK which, BOOL cancel);
TOCSIN_WIN32_API VOID WINAPI CloseThreadpoolWork(PTP_WORK which);

/* `due` is in units of 100 ns: negative from now on, positive since 1601, NULL stops the timer. */
TOCSIN_WIN32_API PTP_TIMER WINAPI CreateThreadpoolTimer(PTP_TIMER_CALLBACK callback, PVOID context,
                                                        PTP_CALLBACK_ENVIRON environment);
TOCSIN_WIN32_API VOID WINAPI SetThreadpoolTimer(PTP_TIMER which, PFILETIME due, DWORD period_milliseconds,
                                                DWORD window);
TOCSIN_WIN32_API BOOL WINAPI SetThreadpoolTimerEx(PTP_TIMER which, PFILETIME due, DWORD period_milliseconds,
                                                  DWORD window);
TOCSIN_WIN32_API BOOL WINAPI IsThreadpoolTimerSet(PTP_TIMER which);
TOCSIN_WIN32_API VOID WINAPI WaitForThreadpoolTimerCallbacks(PTP_TIMER which, BOOL cancel);
TOCSIN_WIN32_API VOID WINAPI CloseThreadpoolTimer(PTP_TIMER which);

/* Waits once for the object, and then calls back with WAIT_OBJECT_0, WAIT_ABANDONED_0 or WAIT_TIMEOUT. A mutex belongs
 * to the callback's thread. NULL instead of a handle ends the wait. The Ex form returns whether it has ended an earlier
 * wait. A call that is taken back (`cancel`) gives back what its wait has taken. */
TOCSIN_WIN32_API PTP_WAIT WINAPI CreateThreadpoolWait(PTP_WAIT_CALLBACK callback, PVOID context,
                                                      PTP_CALLBACK_ENVIRON environment);
TOCSIN_WIN32_API VOID WINAPI SetThreadpoolWait(PTP_WAIT which, HANDLE object, PFILETIME timeout);
TOCSIN_WIN32_API BOOL WINAPI SetThreadpoolWaitEx(PTP_WAIT which, HANDLE object, PFILETIME timeout,
                                                 PVOID reserved);
TOCSIN_WIN32_API VOID WINAPI WaitForThreadpoolWaitCallbacks(PTP_WAIT which, BOOL cancel);
TOCSIN_WIN32_API VOID WINAPI CloseThreadpoolWait(PTP_WAIT which);

/* Inside a callback: what is done once it has returned, and before anyone learns that it has. */
TOCSIN_WIN32_API VOID WINAPI SetEventWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance, HANDLE event);
TOCSIN_WIN32_API VOID WINAPI ReleaseSemaphoreWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance,
                                                                 HANDLE semaphore, DWORD permits);
TOCSIN_WIN32_API VOID WINAPI ReleaseMutexWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance, HANDLE mutex);
TOCSIN_WIN32_API VOID WINAPI LeaveCriticalSectionWhenCallbackReturns(PTP_CALLBACK_INSTANCE instance,
                                                                     PCRITICAL_SECTION section);
/* Returns whether another thread is there for other callbacks, or can be made. */
TOCSIN_WIN32_API BOOL WINAPI CallbackMayRunLong(PTP_CALLBACK_INSTANCE instance);
/* From now on, nobody waits for this callback. */
TOCSIN_WIN32_API VOID WINAPI DisassociateCurrentThreadFromCallback(PTP_CALLBACK_INSTANCE instance);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOCSIN_WIN32_THREAD_POOL_H */
