// SPDX-License-Identifier: Apache-2.0
/* What ported programs need besides waits: thread-local storage, the properties of threads, the machine, dates, the
 * heap. Only tocsin/win32.h includes this file. */
#ifndef TOCSIN_WIN32_SYSTEM_H
#define TOCSIN_WIN32_SYSTEM_H

/* Programs compile it with warnings that its macros and its C can't please in C++. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Thread-local storage ------------------------------------------------------------------------------------- */

/* Up to 1,088 indexes. A value is NULL until its thread sets it. TlsGetValue() is a load or two; the first
 * TlsSetValue() of a thread allocates. Works in every thread, however it was made. */
#define TLS_MINIMUM_AVAILABLE 64
#define TLS_OUT_OF_INDEXES 0xFFFFFFFFu
TOCSIN_WIN32_API DWORD WINAPI TlsAlloc(void);
TOCSIN_WIN32_API BOOL WINAPI TlsFree(DWORD index);
/* Sets the last error to ERROR_SUCCESS, as on Windows, since NULL may be a value. */
TOCSIN_WIN32_API LPVOID WINAPI TlsGetValue(DWORD index);
TOCSIN_WIN32_API BOOL WINAPI TlsSetValue(DWORD index, LPVOID value);

/* Up to 4,079 indexes. There are no fibers, so each thread has one value. The callback is called with each value that
 * is not NULL: at its thread's end, before the thread's handle is signaled, and by FlsFree() for the values of all
 * threads. (Not at the end of the process, nor for the thread that calls exit().) */
typedef VOID(WINAPI* PFLS_CALLBACK_FUNCTION)(PVOID value);
#define FLS_OUT_OF_INDEXES 0xFFFFFFFFu
TOCSIN_WIN32_API DWORD WINAPI FlsAlloc(PFLS_CALLBACK_FUNCTION callback);
TOCSIN_WIN32_API BOOL WINAPI FlsFree(DWORD index);
TOCSIN_WIN32_API PVOID WINAPI FlsGetValue(DWORD index);
TOCSIN_WIN32_API BOOL WINAPI FlsSetValue(DWORD index, PVOID value);

/* ---- Properties of threads ------------------------------------------------------------------------------------ */

/* Finds a thread of CreateThread(), or one that has used this layer, by the number that GetCurrentThreadId() returns.
 * */
TOCSIN_WIN32_API HANDLE WINAPI OpenThread(DWORD access, BOOL inherit, DWORD id);
TOCSIN_WIN32_API DWORD WINAPI GetProcessIdOfThread(HANDLE handle);
TOCSIN_WIN32_API DWORD WINAPI GetProcessId(HANDLE process);

/* On Linux, a priority is a nice value relative to the one with which the thread began: from 19 more
 * (THREAD_PRIORITY_IDLE) over 10, 5, 0, 5 less, 10 less to 20 less (THREAD_PRIORITY_TIME_CRITICAL). A system that does
 * not allow this to the process gives ERROR_ACCESS_DENIED, for example when a lowered priority is raised again. Other
 * systems have no priority of this kind for a thread: ERROR_NOT_SUPPORTED. */
TOCSIN_WIN32_API BOOL WINAPI SetThreadPriority(HANDLE handle, int priority);
TOCSIN_WIN32_API int WINAPI GetThreadPriority(HANDLE handle);
/* Kept, and without effect. */
TOCSIN_WIN32_API BOOL WINAPI SetThreadPriorityBoost(HANDLE handle, BOOL disable);
TOCSIN_WIN32_API BOOL WINAPI GetThreadPriorityBoost(HANDLE handle, PBOOL disabled);

typedef struct _PROCESSOR_NUMBER {
    WORD Group;
    BYTE Number;
    BYTE Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;
typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    WORD Group;
    WORD Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;
#define ALL_PROCESSOR_GROUPS 0xFFFF
#define MAXIMUM_PROCESSORS 64
/* For the first 64 (on 32-bit systems: 32) processors, on Linux. Elsewhere: 0, ERROR_NOT_SUPPORTED. */
TOCSIN_WIN32_API DWORD_PTR WINAPI SetThreadAffinityMask(HANDLE handle, DWORD_PTR mask);
TOCSIN_WIN32_API BOOL WINAPI SetThreadGroupAffinity(HANDLE handle, const GROUP_AFFINITY* affinity,
                                                    PGROUP_AFFINITY previous);
TOCSIN_WIN32_API BOOL WINAPI GetThreadGroupAffinity(HANDLE handle, PGROUP_AFFINITY affinity);
TOCSIN_WIN32_API BOOL WINAPI GetProcessAffinityMask(HANDLE process, PDWORD_PTR mask, PDWORD_PTR system_mask);
/* A hint, which is kept and has no effect. */
TOCSIN_WIN32_API DWORD WINAPI SetThreadIdealProcessor(HANDLE handle, DWORD processor);
TOCSIN_WIN32_API BOOL WINAPI SetThreadIdealProcessorEx(HANDLE handle, PPROCESSOR_NUMBER processor,
                                                       PPROCESSOR_NUMBER previous);
TOCSIN_WIN32_API BOOL WINAPI GetThreadIdealProcessorEx(HANDLE handle, PPROCESSOR_NUMBER processor);
TOCSIN_WIN32_API DWORD WINAPI GetCurrentProcessorNumber(void);
TOCSIN_WIN32_API VOID WINAPI GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER processor);

/* The description is also the thread's name for the system, which cuts it (on Linux after 15 bytes). Free what
 * GetThreadDescription() gives with LocalFree(). */
TOCSIN_WIN32_API HRESULT WINAPI SetThreadDescription(HANDLE handle, PCWSTR description);
TOCSIN_WIN32_API HRESULT WINAPI GetThreadDescription(HANDLE handle, PWSTR* description);
/* Of a thread that CreateThread() has made, or that has used this layer. The times on the processor have the resolution
 * of the system (on Linux, 10 ms while another thread runs). Systems without such times give ERROR_NOT_SUPPORTED. */
TOCSIN_WIN32_API BOOL WINAPI GetThreadTimes(HANDLE handle, LPFILETIME created, LPFILETIME ended,
                                            LPFILETIME kernel, LPFILETIME user);
TOCSIN_WIN32_API BOOL WINAPI GetThreadIOPendingFlag(HANDLE handle, PBOOL pending);
/* The part of the address space that is the calling thread's stack. Elsewhere than on Linux: both 0. */
TOCSIN_WIN32_API VOID WINAPI GetCurrentThreadStackLimits(PULONG_PTR low, PULONG_PTR high);

/* ---- Messages: there are none, so these wait for the handles, or for the time --------------------------------- */

#define QS_KEY 0x0001u
#define QS_MOUSEMOVE 0x0002u
#define QS_MOUSEBUTTON 0x0004u
#define QS_MOUSE (QS_MOUSEMOVE | QS_MOUSEBUTTON)
#define QS_POSTMESSAGE 0x0008u
#define QS_TIMER 0x0010u
#define QS_PAINT 0x0020u
#define QS_SENDMESSAGE 0x0040u
#define QS_HOTKEY 0x0080u
#define QS_ALLPOSTMESSAGE 0x0100u
#define QS_RAWINPUT 0x0400u
#define QS_INPUT (QS_MOUSE | QS_KEY | QS_RAWINPUT)
#define QS_ALLEVENTS (QS_INPUT | QS_POSTMESSAGE | QS_TIMER | QS_PAINT | QS_HOTKEY)
#define QS_ALLINPUT (QS_ALLEVENTS | QS_SENDMESSAGE)
#define MWMO_WAITALL 0x0001u
#define MWMO_ALERTABLE 0x0002u
#define MWMO_INPUTAVAILABLE 0x0004u
/* Up to 63 handles, and also none. A wait for all of them waits for a message as well, so it only ends by its time. */
TOCSIN_WIN32_API DWORD WINAPI MsgWaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL wait_all,
                                                        DWORD milliseconds, DWORD wake_mask);
TOCSIN_WIN32_API DWORD WINAPI MsgWaitForMultipleObjectsEx(DWORD count, const HANDLE* handles,
                                                          DWORD milliseconds, DWORD wake_mask, DWORD flags);
#define HasOverlappedIoCompleted(overlapped) ((DWORD)(overlapped)->Internal != STATUS_PENDING)

/* ---- The machine, clocks and dates ---------------------------------------------------------------------------- */

#define PROCESSOR_ARCHITECTURE_INTEL 0
#define PROCESSOR_ARCHITECTURE_ARM 5
#define PROCESSOR_ARCHITECTURE_AMD64 9
#define PROCESSOR_ARCHITECTURE_ARM64 12
#define PROCESSOR_ARCHITECTURE_UNKNOWN 0xFFFF
typedef struct _SYSTEM_INFO {
    union {
        DWORD dwOemId;
        __extension__ struct {
            WORD wProcessorArchitecture;
            WORD wReserved;
        };
    };
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress;
    LPVOID lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask;
    DWORD dwNumberOfProcessors;
    DWORD dwProcessorType;
    DWORD dwAllocationGranularity;
    WORD wProcessorLevel;
    WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;
/* The processors, the page size and the kind of processor; the other fields are 0. */
TOCSIN_WIN32_API VOID WINAPI GetSystemInfo(LPSYSTEM_INFO info);
TOCSIN_WIN32_API VOID WINAPI GetNativeSystemInfo(LPSYSTEM_INFO info);
TOCSIN_WIN32_API DWORD WINAPI GetActiveProcessorCount(WORD group);
TOCSIN_WIN32_API DWORD WINAPI GetMaximumProcessorCount(WORD group);
TOCSIN_WIN32_API WORD WINAPI GetActiveProcessorGroupCount(void);

TOCSIN_WIN32_API VOID WINAPI GetSystemTimePreciseAsFileTime(LPFILETIME time);
TOCSIN_WIN32_API VOID WINAPI GetSystemTime(LPSYSTEMTIME time);
TOCSIN_WIN32_API VOID WINAPI GetLocalTime(LPSYSTEMTIME time);
TOCSIN_WIN32_API BOOL WINAPI SystemTimeToFileTime(const SYSTEMTIME* from, LPFILETIME to);
TOCSIN_WIN32_API BOOL WINAPI FileTimeToSystemTime(const FILETIME* from, LPSYSTEMTIME to);
TOCSIN_WIN32_API BOOL WINAPI FileTimeToLocalFileTime(const FILETIME* from, LPFILETIME to);
TOCSIN_WIN32_API BOOL WINAPI LocalFileTimeToFileTime(const FILETIME* from, LPFILETIME to);
TOCSIN_WIN32_API LONG WINAPI CompareFileTime(const FILETIME* first, const FILETIME* second);
TOCSIN_WIN32_API BOOL WINAPI QueryUnbiasedInterruptTime(PULONGLONG time);

/* ---- The process and the heap --------------------------------------------------------------------------------- */

/* exit(): functions of atexit() and destructors run, while other threads run. */
TOCSIN_WIN32_API VOID WINAPI ExitProcess(UINT code) __attribute__((noreturn));

#define HEAP_NO_SERIALIZE 0x1u
#define HEAP_GENERATE_EXCEPTIONS 0x4u /* has no effect */
#define HEAP_ZERO_MEMORY 0x8u
#define LMEM_FIXED 0x0u
#define LMEM_ZEROINIT 0x40u
#define LPTR (LMEM_FIXED | LMEM_ZEROINIT)
typedef HANDLE HLOCAL;
/* malloc() and its relatives. The handle of the heap is never used. */
static inline HANDLE GetProcessHeap(void) { return (HANDLE)(ULONG_PTR)8u; }
static inline LPVOID HeapAlloc(HANDLE heap, DWORD flags, SIZE_T bytes) {
    (void)heap;
    return (flags & HEAP_ZERO_MEMORY) != 0 ? calloc(bytes != 0 ? bytes : 1, 1)
                                           : malloc(bytes != 0 ? bytes : 1);
}
static inline BOOL HeapFree(HANDLE heap, DWORD flags, LPVOID memory) {
    (void)heap;
    (void)flags;
    free(memory);
    return TRUE;
}
static inline HLOCAL LocalAlloc(UINT flags, SIZE_T bytes) {
    return HeapAlloc(NULL, (flags & LMEM_ZEROINIT) != 0 ? HEAP_ZERO_MEMORY : 0, bytes);
}
static inline HLOCAL LocalFree(HLOCAL memory) {
    free(memory);
    return NULL;
}
static inline PVOID TocsinSecureZeroMemory(PVOID destination, SIZE_T length) {
    volatile unsigned char* byte = (volatile unsigned char*)destination;
    for (; length != 0; --length) *byte++ = 0;
    return destination;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOCSIN_WIN32_SYSTEM_H */
