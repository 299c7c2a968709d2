// SPDX-License-Identifier: Apache-2.0
/* The calls of Windows by which threads wait and wake each other, for Linux, macOS and the BSDs, in C and C++: events,
 * mutexes, semaphores, waitable timers, threads, WaitForMultipleObjects(), SRW locks, condition variables,
 * WaitOnAddress() and their relatives. On Windows, this header only includes Windows' own headers.
 *
 *     HANDLE ready = CreateEvent(NULL, FALSE, FALSE, NULL);
 *     HANDLE both[] = {ready, mutex};
 *     if (WaitForMultipleObjects(2, both, TRUE, 5000) == WAIT_OBJECT_0) ...
 *
 * Except for the differences that win32/docs/porting_from_windows.md lists, each call does what Windows documents, and
 * returns the same values and error codes. That page lists the calls that do the same, those that differ, and those
 * that are missing. The differences that matter most:
 * - Everything stays inside the process, unless TocsinShareNames() makes names known to other processes (on Linux).
 *   GetCurrentProcess() is the only handle of a process. SECURITY_ATTRIBUTES are ignored.
 * - A pulse is exact: PulseEvent() releases those that wait at that moment. Windows may miss a thread.
 * - TerminateThread() and SuspendThread() end and suspend only threads that have not started yet.
 * - A WCHAR is a char16_t, so it has 16 bits, as on Windows. In C++, the W forms also take a wchar_t name, so L"..."
 *   works.
 * The types and constants are in tocsin/win32/types.h, the pools of threads in win32/thread_pool.h, the atomic
 * operations in win32/interlocked.h, thread-local storage, properties of threads, dates and the heap in win32/system.h.
 * This header includes them all.
 *
 * Handles: a HANDLE is a number that contains a generation, and every call looks it up in a table. So a handle that is
 * closed, of another kind, or no handle at all gives ERROR_INVALID_HANDLE, and never undefined behaviour. (A stale
 * handle could be mistaken for a new one only after its place in the table has been used 4 billion times, or 16,000
 * times on 32-bit systems.) On 64-bit systems a handle has more than 32 bits: store it in a whole pointer. Its two
 * lowest bits are zero, and every call ignores them. A handle may be closed while other threads wait. Those threads
 * still wait for the object, which exists until its last handle is closed and its last wait has ended.
 *
 * Order, memory and time are those of tocsin's own objects (event.hpp, semaphore.hpp, wait.hpp). A set hands the object
 * to the thread that has waited longest among those that can take it. A timeout consumes no signal, a wait for all
 * takes all objects in one step or none, and no wait times out early. What a thread did before it signaled an object is
 * visible to the thread whose wait the signal ends.
 *
 * Cost: a call makes two read-modify-writes for each handle that it uses (about 11 ns on a machine where one of them
 * takes 4.6 ns), in addition to the object's own cost. Making and closing a handle costs more. Waits for up to 16
 * objects allocate nothing, except in four cases: an alertable wait for all; an alertable wait for any of 16 objects,
 * because the thread's queue of calls counts as an object; a call of SignalObjectAndWait() that signals a semaphore or
 * waits for a pseudo-handle; and a thread's first wait for a mutex or first alertable wait, if CreateThread() has not
 * created the thread. No call may be made in a signal handler, nor in the child of a fork before it calls exec.
 */
#ifndef TOCSIN_WIN32_H
#define TOCSIN_WIN32_H

#if defined(_WIN32)

#include <process.h>
#include <windows.h>

#else

#include <tocsin/win32/types.h>

#define TOCSIN_WIN32_API __attribute__((visibility("default")))

#define WINAPI
#define CALLBACK
#define APIENTRY
#define NTAPI
#ifndef __stdcall
#define __stdcall
#endif
#ifndef __cdecl
#define __cdecl
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The error of a thread's last failed call ----------------------------------------------------------------- */

TOCSIN_WIN32_API DWORD WINAPI GetLastError(void);
TOCSIN_WIN32_API VOID WINAPI SetLastError(DWORD code);

/* ---- Handles -------------------------------------------------------------------------------------------------- */

TOCSIN_WIN32_API BOOL WINAPI CloseHandle(HANDLE handle);
TOCSIN_WIN32_API BOOL WINAPI DuplicateHandle(HANDLE source_process, HANDLE source, HANDLE target_process,
                                             LPHANDLE target, DWORD access, BOOL inherit, DWORD options);
TOCSIN_WIN32_API BOOL WINAPI GetHandleInformation(HANDLE handle, LPDWORD flags);

/* TocsinHandleOfDescriptor() is no call of Windows. It makes a handle of a descriptor (a socket, a pipe, a timerfd
 * ...). WaitForSingleObject(), or a wait for any of several handles, returns when the descriptor is readable or
 * writable, as `readiness` asks: one of the two constants below, or both. The handle does not own the descriptor: keep
 * the descriptor open until the handle is closed and no thread waits. A wait for all refuses such a handle: it returns
 * WAIT_FAILED, with the error ERROR_NOT_SUPPORTED. */
#if !defined(TOCSIN_H) /* <tocsin.h> has constants of these names and values */
#define TOCSIN_READABLE 1u
#define TOCSIN_WRITABLE 2u
#endif
TOCSIN_WIN32_API HANDLE TocsinHandleOfDescriptor(int descriptor, DWORD readiness);

/* TocsinShareNames() is no call of Windows. From then on, the names of events, mutexes and semaphores are known to all
 * processes of the user that call it with the same folder, and so are the objects. NULL stands for the folder
 * /dev/shm/tocsin-UID, with the user's number. The call makes the folder if there is none. Another folder is given by
 * its whole path. Call it before the process makes its first named object. win32/docs/porting_from_windows.md says what
 * then holds, and what differs: such an object is refused in a wait for all, and its pulse has two steps.
 *
 * Returns FALSE if it fails: ERROR_NOT_SUPPORTED (the system is not Linux), ERROR_BUSY (the process has named objects,
 * or has called this with another folder), ERROR_ACCESS_DENIED (the folder is another user's, or others may use it),
 * ERROR_PATH_NOT_FOUND, ERROR_INVALID_PARAMETER (not a whole path). */
TOCSIN_WIN32_API BOOL TocsinShareNames(LPCSTR folder);

/* ---- Events --------------------------------------------------------------------------------------------------- */

TOCSIN_WIN32_API HANDLE WINAPI CreateEventA(LPSECURITY_ATTRIBUTES security, BOOL manual_reset,
                                            BOOL initially_set, LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateEventW(LPSECURITY_ATTRIBUTES security, BOOL manual_reset,
                                            BOOL initially_set, LPCWSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateEventExA(LPSECURITY_ATTRIBUTES security, LPCSTR name, DWORD flags,
                                              DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI CreateEventExW(LPSECURITY_ATTRIBUTES security, LPCWSTR name, DWORD flags,
                                              DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI OpenEventA(DWORD access, BOOL inherit, LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI OpenEventW(DWORD access, BOOL inherit, LPCWSTR name);
TOCSIN_WIN32_API BOOL WINAPI SetEvent(HANDLE event);
TOCSIN_WIN32_API BOOL WINAPI ResetEvent(HANDLE event);
/* In one step, releases threads that wait at this moment: all of them (manual reset), or the one that has waited
 * longest among those that can take it (auto reset). The event is unset afterwards. A wait for all takes part only if
 * the event is an auto-reset event. */
TOCSIN_WIN32_API BOOL WINAPI PulseEvent(HANDLE event);

/* ---- Semaphores ----------------------------------------------------------------------------------------------- */

TOCSIN_WIN32_API HANDLE WINAPI CreateSemaphoreA(LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum,
                                                LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateSemaphoreW(LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum,
                                                LPCWSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateSemaphoreExA(LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum,
                                                  LPCSTR name, DWORD flags, DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI CreateSemaphoreExW(LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum,
                                                  LPCWSTR name, DWORD flags, DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI OpenSemaphoreA(DWORD access, BOOL inherit, LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI OpenSemaphoreW(DWORD access, BOOL inherit, LPCWSTR name);
TOCSIN_WIN32_API BOOL WINAPI ReleaseSemaphore(HANDLE semaphore, LONG count, LPLONG previous);

/* ---- Mutexes -------------------------------------------------------------------------------------------------- */

TOCSIN_WIN32_API HANDLE WINAPI CreateMutexA(LPSECURITY_ATTRIBUTES security, BOOL initial_owner, LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES security, BOOL initial_owner, LPCWSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateMutexExA(LPSECURITY_ATTRIBUTES security, LPCSTR name, DWORD flags,
                                              DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI CreateMutexExW(LPSECURITY_ATTRIBUTES security, LPCWSTR name, DWORD flags,
                                              DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI OpenMutexA(DWORD access, BOOL inherit, LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI OpenMutexW(DWORD access, BOOL inherit, LPCWSTR name);
TOCSIN_WIN32_API BOOL WINAPI ReleaseMutex(HANDLE mutex);

/* ---- Waitable timers ------------------------------------------------------------------------------------------ */

typedef VOID(APIENTRY* PTIMERAPCROUTINE)(LPVOID argument, DWORD time_low, DWORD time_high);

TOCSIN_WIN32_API HANDLE WINAPI CreateWaitableTimerA(LPSECURITY_ATTRIBUTES security, BOOL manual_reset,
                                                    LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateWaitableTimerW(LPSECURITY_ATTRIBUTES security, BOOL manual_reset,
                                                    LPCWSTR name);
TOCSIN_WIN32_API HANDLE WINAPI CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES security, LPCSTR name,
                                                      DWORD flags, DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES security, LPCWSTR name,
                                                      DWORD flags, DWORD access);
TOCSIN_WIN32_API HANDLE WINAPI OpenWaitableTimerA(DWORD access, BOOL inherit, LPCSTR name);
TOCSIN_WIN32_API HANDLE WINAPI OpenWaitableTimerW(DWORD access, BOOL inherit, LPCWSTR name);
TOCSIN_WIN32_API BOOL WINAPI SetWaitableTimer(HANDLE timer, const LARGE_INTEGER* due,
                                              LONG period_milliseconds, PTIMERAPCROUTINE routine,
                                              LPVOID argument, BOOL resume);
TOCSIN_WIN32_API BOOL WINAPI SetWaitableTimerEx(HANDLE timer, const LARGE_INTEGER* due,
                                                LONG period_milliseconds, PTIMERAPCROUTINE routine,
                                                LPVOID argument, PREASON_CONTEXT context,
                                                ULONG tolerable_delay);
TOCSIN_WIN32_API BOOL WINAPI CancelWaitableTimer(HANDLE timer);

/* ---- Threads -------------------------------------------------------------------------------------------------- */

typedef DWORD(WINAPI* LPTHREAD_START_ROUTINE)(LPVOID argument);
typedef LPTHREAD_START_ROUTINE PTHREAD_START_ROUTINE;
typedef VOID(NTAPI* PAPCFUNC)(ULONG_PTR argument);

TOCSIN_WIN32_API HANDLE WINAPI CreateThread(LPSECURITY_ATTRIBUTES security, SIZE_T stack_size,
                                            LPTHREAD_START_ROUTINE function, LPVOID argument, DWORD flags,
                                            LPDWORD id);
TOCSIN_WIN32_API uintptr_t __cdecl _beginthreadex(void* security, unsigned stack_size,
                                                  unsigned(__stdcall* function)(void*), void* argument,
                                                  unsigned flags, unsigned* id);
TOCSIN_WIN32_API void __cdecl _endthreadex(unsigned code) __attribute__((noreturn));
/* Ends the calling thread as pthread_exit() does. With glibc, the destructors of objects on the stack run; with some
 * other C libraries they don't. */
TOCSIN_WIN32_API VOID WINAPI ExitThread(DWORD code) __attribute__((noreturn));
TOCSIN_WIN32_API BOOL WINAPI GetExitCodeThread(HANDLE thread, LPDWORD code);
TOCSIN_WIN32_API DWORD WINAPI ResumeThread(HANDLE thread);
TOCSIN_WIN32_API DWORD WINAPI SuspendThread(HANDLE thread);
TOCSIN_WIN32_API BOOL WINAPI TerminateThread(HANDLE thread, DWORD code);
TOCSIN_WIN32_API HANDLE WINAPI GetCurrentThread(void);
TOCSIN_WIN32_API DWORD WINAPI GetCurrentThreadId(void);
TOCSIN_WIN32_API DWORD WINAPI GetThreadId(HANDLE thread);
TOCSIN_WIN32_API HANDLE WINAPI GetCurrentProcess(void);
TOCSIN_WIN32_API DWORD WINAPI GetCurrentProcessId(void);
TOCSIN_WIN32_API DWORD WINAPI QueueUserAPC(PAPCFUNC function, HANDLE thread, ULONG_PTR argument);
TOCSIN_WIN32_API BOOL WINAPI SwitchToThread(void);

/* ---- Waiting -------------------------------------------------------------------------------------------------- */

TOCSIN_WIN32_API DWORD WINAPI WaitForSingleObject(HANDLE handle, DWORD milliseconds);
TOCSIN_WIN32_API DWORD WINAPI WaitForSingleObjectEx(HANDLE handle, DWORD milliseconds, BOOL alertable);
TOCSIN_WIN32_API DWORD WINAPI WaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL wait_all,
                                                     DWORD milliseconds);
TOCSIN_WIN32_API DWORD WINAPI WaitForMultipleObjectsEx(DWORD count, const HANDLE* handles, BOOL wait_all,
                                                       DWORD milliseconds, BOOL alertable);
/* Queues the thread for `wait_on` before it signals `signal`. So the thread misses nothing that happens because of the
 * signal, not even a pulse. (With a timeout of 0, the call signals, and then only tries to take `wait_on`.) */
TOCSIN_WIN32_API DWORD WINAPI SignalObjectAndWait(HANDLE signal, HANDLE wait_on, DWORD milliseconds,
                                                  BOOL alertable);
/* Not a name of Windows: waits for any number of handles. The result is WAIT_OBJECT_0, WAIT_ABANDONED_0, WAIT_TIMEOUT,
 * WAIT_IO_COMPLETION or WAIT_FAILED. Unless `index` is null, a wait for any sets `*index` to the number of the object
 * that it took. For more than 16 handles, a call may allocate memory; for more than 64, each call allocates several
 * blocks. */
TOCSIN_WIN32_API DWORD TocsinWaitForManyObjects(size_t count, const HANDLE* handles, BOOL wait_all,
                                                DWORD milliseconds, BOOL alertable, size_t* index);
TOCSIN_WIN32_API VOID WINAPI Sleep(DWORD milliseconds);
TOCSIN_WIN32_API DWORD WINAPI SleepEx(DWORD milliseconds, BOOL alertable);

typedef VOID(CALLBACK* WAITORTIMERCALLBACK)(PVOID context, BOOLEAN timed_out);

/* The callbacks run in threads of a pool (win32/thread_pool.h): with WT_EXECUTEINWAITTHREAD one after another in one
 * thread, with WT_EXECUTEINPERSISTENTTHREAD in threads that do not end. While a registered wait has no callback to
 * call, it needs no thread of its own. */
TOCSIN_WIN32_API BOOL WINAPI RegisterWaitForSingleObject(PHANDLE wait, HANDLE object,
                                                         WAITORTIMERCALLBACK callback, PVOID context,
                                                         ULONG milliseconds, ULONG flags);
/* A signal that comes at the same time is not lost. Either the callback is called for it: then the result is FALSE,
 * ERROR_IO_PENDING until the callback has ended. (In the callback itself as well, except with WT_EXECUTEINWAITTHREAD.)
 * Or the result is TRUE, no callback is called any more, and the object has kept the signal. */
TOCSIN_WIN32_API BOOL WINAPI UnregisterWait(HANDLE wait);
/* `done` is NULL, an event, or INVALID_HANDLE_VALUE. With INVALID_HANDLE_VALUE, the call waits for the callbacks.
 * Inside the wait's own callback, such a call fails with ERROR_POSSIBLE_DEADLOCK. (On Windows, the thread waits for
 * ever.) */
TOCSIN_WIN32_API BOOL WINAPI UnregisterWaitEx(HANDLE wait, HANDLE done);

/* ---- Clocks --------------------------------------------------------------------------------------------------- */

TOCSIN_WIN32_API DWORD WINAPI GetTickCount(void);
TOCSIN_WIN32_API ULONGLONG WINAPI GetTickCount64(void);
TOCSIN_WIN32_API VOID WINAPI GetSystemTimeAsFileTime(LPFILETIME time);
TOCSIN_WIN32_API BOOL WINAPI QueryPerformanceCounter(LARGE_INTEGER* count);
TOCSIN_WIN32_API BOOL WINAPI QueryPerformanceFrequency(LARGE_INTEGER* frequency);

/* ---- Waiting on an address ------------------------------------------------------------------------------------ */

/* Unlike on Windows, an address that is NULL or not aligned to `size` is refused: FALSE, ERROR_INVALID_PARAMETER. */
TOCSIN_WIN32_API BOOL WINAPI WaitOnAddress(volatile VOID* address, PVOID compare, SIZE_T size,
                                           DWORD milliseconds);
TOCSIN_WIN32_API VOID WINAPI WakeByAddressSingle(PVOID address);
TOCSIN_WIN32_API VOID WINAPI WakeByAddressAll(PVOID address);

/* ---- Slim reader/writer locks --------------------------------------------------------------------------------- */

typedef struct _RTL_SRWLOCK {
    PVOID Ptr;
} SRWLOCK, *PSRWLOCK;
#define SRWLOCK_INIT {0}

TOCSIN_WIN32_API VOID WINAPI InitializeSRWLock(PSRWLOCK lock);
TOCSIN_WIN32_API VOID WINAPI AcquireSRWLockExclusive(PSRWLOCK lock);
TOCSIN_WIN32_API VOID WINAPI AcquireSRWLockShared(PSRWLOCK lock);
TOCSIN_WIN32_API BOOLEAN WINAPI TryAcquireSRWLockExclusive(PSRWLOCK lock);
TOCSIN_WIN32_API BOOLEAN WINAPI TryAcquireSRWLockShared(PSRWLOCK lock);
TOCSIN_WIN32_API VOID WINAPI ReleaseSRWLockExclusive(PSRWLOCK lock);
TOCSIN_WIN32_API VOID WINAPI ReleaseSRWLockShared(PSRWLOCK lock);

/* ---- Critical sections ---------------------------------------------------------------------------------------- */

typedef struct _RTL_CRITICAL_SECTION {
    PVOID DebugInfo; /* -1 while initialized, NULL once deleted */
    LONG LockCount;  /* -1: free; -2: owned */
    LONG RecursionCount;
    HANDLE OwningThread;  /* the number of the owner (GetCurrentThreadId()), or NULL */
    HANDLE LockSemaphore; /* the lock itself */
    ULONG_PTR SpinCount;
} CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;
#define CRITICAL_SECTION_NO_DEBUG_INFO 0x01000000u
#define RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO 0x01000000u
#define RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN 0x02000000u
#define RTL_CRITICAL_SECTION_FLAG_STATIC_INIT 0x04000000u
#define RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE 0x08000000u
#define RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO 0x10000000u

TOCSIN_WIN32_API VOID WINAPI InitializeCriticalSection(LPCRITICAL_SECTION section);
TOCSIN_WIN32_API BOOL WINAPI InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION section,
                                                                   DWORD spin_count);
TOCSIN_WIN32_API BOOL WINAPI InitializeCriticalSectionEx(LPCRITICAL_SECTION section, DWORD spin_count,
                                                         DWORD flags);
TOCSIN_WIN32_API DWORD WINAPI SetCriticalSectionSpinCount(LPCRITICAL_SECTION section, DWORD spin_count);
TOCSIN_WIN32_API VOID WINAPI EnterCriticalSection(LPCRITICAL_SECTION section);
TOCSIN_WIN32_API BOOL WINAPI TryEnterCriticalSection(LPCRITICAL_SECTION section);
TOCSIN_WIN32_API VOID WINAPI LeaveCriticalSection(LPCRITICAL_SECTION section);
TOCSIN_WIN32_API VOID WINAPI DeleteCriticalSection(LPCRITICAL_SECTION section);

/* ---- Condition variables: aligned to 8 bytes, and 8 bytes wide on 32-bit systems, too ------------------------- */

typedef struct _RTL_CONDITION_VARIABLE {
    union {
        uint64_t Word
            __attribute__((aligned(8))); /* i386 aligns it to 4 otherwise. First: {{0}} clears it all */
        PVOID Ptr;
    };
} CONDITION_VARIABLE, *PCONDITION_VARIABLE;
#define CONDITION_VARIABLE_INIT {{0}}
#define CONDITION_VARIABLE_LOCKMODE_SHARED 0x1u

TOCSIN_WIN32_API VOID WINAPI InitializeConditionVariable(PCONDITION_VARIABLE condition);
TOCSIN_WIN32_API BOOL WINAPI SleepConditionVariableCS(PCONDITION_VARIABLE condition,
                                                      PCRITICAL_SECTION section, DWORD milliseconds);
TOCSIN_WIN32_API BOOL WINAPI SleepConditionVariableSRW(PCONDITION_VARIABLE condition, PSRWLOCK lock,
                                                       DWORD milliseconds, ULONG flags);
TOCSIN_WIN32_API VOID WINAPI WakeConditionVariable(PCONDITION_VARIABLE condition);
TOCSIN_WIN32_API VOID WINAPI WakeAllConditionVariable(PCONDITION_VARIABLE condition);

/* ---- One-time initialization ---------------------------------------------------------------------------------- */

typedef union _RTL_RUN_ONCE {
    PVOID Ptr;
} INIT_ONCE, *PINIT_ONCE, *LPINIT_ONCE;
typedef BOOL(WINAPI* PINIT_ONCE_FN)(PINIT_ONCE once, PVOID parameter, PVOID* context);
#define INIT_ONCE_STATIC_INIT {0}
#define INIT_ONCE_CHECK_ONLY 0x1u
#define INIT_ONCE_ASYNC 0x2u
#define INIT_ONCE_INIT_FAILED 0x4u
#define INIT_ONCE_CTX_RESERVED_BITS 2

TOCSIN_WIN32_API VOID WINAPI InitOnceInitialize(PINIT_ONCE once);
TOCSIN_WIN32_API BOOL WINAPI InitOnceExecuteOnce(PINIT_ONCE once, PINIT_ONCE_FN function, PVOID parameter,
                                                 LPVOID* context);
TOCSIN_WIN32_API BOOL WINAPI InitOnceBeginInitialize(LPINIT_ONCE once, DWORD flags, PBOOL pending,
                                                     LPVOID* context);
TOCSIN_WIN32_API BOOL WINAPI InitOnceComplete(LPINIT_ONCE once, DWORD flags, LPVOID context);

/* ---- Synchronization barriers --------------------------------------------------------------------------------- */

typedef struct _RTL_BARRIER {
    DWORD Reserved1;
    DWORD Reserved2;
    ULONG_PTR Reserved3[2];
    DWORD Reserved4;
    DWORD Reserved5;
} SYNCHRONIZATION_BARRIER, *PSYNCHRONIZATION_BARRIER, *LPSYNCHRONIZATION_BARRIER;
#define SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY 0x01u
#define SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY 0x02u
#define SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE 0x04u

TOCSIN_WIN32_API BOOL WINAPI InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER barrier,
                                                              LONG total_threads, LONG spin_count);
TOCSIN_WIN32_API BOOL WINAPI EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER barrier, DWORD flags);
TOCSIN_WIN32_API BOOL WINAPI DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER barrier);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include <tocsin/win32/interlocked.h>
#include <tocsin/win32/refused.h>
#include <tocsin/win32/system.h>
#include <tocsin/win32/thread_pool.h>

/* ---- Names without A or W: W if UNICODE is defined, else A ---------------------------------------------------- */

#if defined(UNICODE)
#define TOCSIN_WIN32_FORM(name) name##W
#else
#define TOCSIN_WIN32_FORM(name) name##A
#endif
#define CreateEvent TOCSIN_WIN32_FORM(CreateEvent)
#define CreateEventEx TOCSIN_WIN32_FORM(CreateEventEx)
#define OpenEvent TOCSIN_WIN32_FORM(OpenEvent)
#define CreateSemaphore TOCSIN_WIN32_FORM(CreateSemaphore)
#define CreateSemaphoreEx TOCSIN_WIN32_FORM(CreateSemaphoreEx)
#define OpenSemaphore TOCSIN_WIN32_FORM(OpenSemaphore)
#define CreateMutex TOCSIN_WIN32_FORM(CreateMutex)
#define CreateMutexEx TOCSIN_WIN32_FORM(CreateMutexEx)
#define OpenMutex TOCSIN_WIN32_FORM(OpenMutex)
#define CreateWaitableTimer TOCSIN_WIN32_FORM(CreateWaitableTimer)
#define CreateWaitableTimerEx TOCSIN_WIN32_FORM(CreateWaitableTimerEx)
#define OpenWaitableTimer TOCSIN_WIN32_FORM(OpenWaitableTimer)

#ifdef __cplusplus
#include <tocsin/win32/wide_names.h>
#endif

#endif /* not Windows */
#endif /* TOCSIN_WIN32_H */
