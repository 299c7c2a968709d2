// SPDX-License-Identifier: Apache-2.0
/* Calls of Windows that can't be had here. A program that uses one of them does not compile, and the compiler's message
 * says what to use instead. Only tocsin/win32.h includes this file. */
#ifndef TOCSIN_WIN32_REFUSED_H
#define TOCSIN_WIN32_REFUSED_H

#if defined(__has_attribute)
#if __has_attribute(unavailable)
#define TOCSIN_WIN32_UNAVAILABLE(why) __attribute__((unavailable(why)))
#endif
#endif
#if !defined(TOCSIN_WIN32_UNAVAILABLE)
#if defined(__GNUC__) && !defined(__clang__)
#define TOCSIN_WIN32_UNAVAILABLE(why) __attribute__((error(why)))
#else
#define TOCSIN_WIN32_UNAVAILABLE(why)
#endif
#endif

#ifdef __cplusplus
extern "C" {
#define TOCSIN_WIN32_ANY ...
#else
#define TOCSIN_WIN32_ANY
#endif
#define TOCSIN_WIN32_REFUSED(result, name, why) \
    result name(TOCSIN_WIN32_ANY) TOCSIN_WIN32_UNAVAILABLE(#name " is not in tocsin/win32.h: " why);

#define TOCSIN_WIN32_NO_PORTS \
    "there are no completion ports; wait for descriptors with TocsinHandleOfDescriptor or wait_set"
TOCSIN_WIN32_REFUSED(HANDLE, CreateIoCompletionPort, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(BOOL, GetQueuedCompletionStatus, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(BOOL, GetQueuedCompletionStatusEx, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(BOOL, PostQueuedCompletionStatus, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(BOOL, BindIoCompletionCallback, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(void*, CreateThreadpoolIo, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(VOID, StartThreadpoolIo, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(VOID, CancelThreadpoolIo, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(VOID, WaitForThreadpoolIoCallbacks, TOCSIN_WIN32_NO_PORTS)
TOCSIN_WIN32_REFUSED(VOID, CloseThreadpoolIo, TOCSIN_WIN32_NO_PORTS)
#define TOCSIN_WIN32_NO_OVERLAPPED \
    "there is no overlapped input or output; wait for the event itself, or for a descriptor"
TOCSIN_WIN32_REFUSED(BOOL, GetOverlappedResult, TOCSIN_WIN32_NO_OVERLAPPED)
TOCSIN_WIN32_REFUSED(BOOL, GetOverlappedResultEx, TOCSIN_WIN32_NO_OVERLAPPED)
TOCSIN_WIN32_REFUSED(BOOL, CancelIo, TOCSIN_WIN32_NO_OVERLAPPED)
TOCSIN_WIN32_REFUSED(BOOL, CancelIoEx, TOCSIN_WIN32_NO_OVERLAPPED)
TOCSIN_WIN32_REFUSED(BOOL, CancelSynchronousIo, TOCSIN_WIN32_NO_OVERLAPPED)
#define TOCSIN_WIN32_NO_PROCESSES \
    "there are no handles of other processes; use process_end of tocsin/process.hpp"
TOCSIN_WIN32_REFUSED(HANDLE, OpenProcess, TOCSIN_WIN32_NO_PROCESSES)
TOCSIN_WIN32_REFUSED(BOOL, CreateProcessA, TOCSIN_WIN32_NO_PROCESSES)
TOCSIN_WIN32_REFUSED(BOOL, CreateProcessW, TOCSIN_WIN32_NO_PROCESSES)
TOCSIN_WIN32_REFUSED(BOOL, GetExitCodeProcess, TOCSIN_WIN32_NO_PROCESSES)
TOCSIN_WIN32_REFUSED(HANDLE, CreateRemoteThread, TOCSIN_WIN32_NO_PROCESSES)
TOCSIN_WIN32_REFUSED(HANDLE, CreateRemoteThreadEx, TOCSIN_WIN32_NO_PROCESSES)
#define TOCSIN_WIN32_NO_FIBERS "there are no fibers; use coroutines"
TOCSIN_WIN32_REFUSED(LPVOID, CreateFiber, TOCSIN_WIN32_NO_FIBERS)
TOCSIN_WIN32_REFUSED(LPVOID, CreateFiberEx, TOCSIN_WIN32_NO_FIBERS)
TOCSIN_WIN32_REFUSED(VOID, DeleteFiber, TOCSIN_WIN32_NO_FIBERS)
TOCSIN_WIN32_REFUSED(VOID, SwitchToFiber, TOCSIN_WIN32_NO_FIBERS)
TOCSIN_WIN32_REFUSED(LPVOID, ConvertThreadToFiber, TOCSIN_WIN32_NO_FIBERS)
TOCSIN_WIN32_REFUSED(LPVOID, ConvertThreadToFiberEx, TOCSIN_WIN32_NO_FIBERS)
TOCSIN_WIN32_REFUSED(BOOL, ConvertFiberToThread, TOCSIN_WIN32_NO_FIBERS)
#define TOCSIN_WIN32_NO_CONTEXT "no other thread's registers can be read or written"
TOCSIN_WIN32_REFUSED(BOOL, GetThreadContext, TOCSIN_WIN32_NO_CONTEXT)
TOCSIN_WIN32_REFUSED(BOOL, SetThreadContext, TOCSIN_WIN32_NO_CONTEXT)
#undef TOCSIN_WIN32_NO_PORTS
#undef TOCSIN_WIN32_NO_OVERLAPPED
#undef TOCSIN_WIN32_NO_PROCESSES
#undef TOCSIN_WIN32_NO_FIBERS
#undef TOCSIN_WIN32_NO_CONTEXT
#undef TOCSIN_WIN32_REFUSED
#undef TOCSIN_WIN32_ANY

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOCSIN_WIN32_REFUSED_H */
