// SPDX-License-Identifier: Apache-2.0
/* The types and constants of Windows' calls, for every other system. tocsin/win32.h includes this file. */
#ifndef TOCSIN_WIN32_TYPES_H
#define TOCSIN_WIN32_TYPES_H

/* Programs compile it with warnings that its macros and its C can't please in C++. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- Types ---------------------------------------------------------------------------------------------------- */

/* Windows' LONG, DWORD and ULONG have 32 bits. Here a long may have 64, so they are int and unsigned: print them with
 * %d and %u, or convert them to long for %ld and %lu. */
typedef void VOID;
#define CONST const
typedef int BOOL;
typedef int INT;
typedef short SHORT;
typedef float FLOAT;
typedef double DOUBLE;
typedef unsigned char UCHAR;
typedef unsigned short USHORT;
typedef unsigned char BYTE;
typedef BYTE BOOLEAN;
typedef char CHAR;
#ifdef __cplusplus
typedef char16_t WCHAR;
#else
typedef __CHAR16_TYPE__ WCHAR; /* the type of u"...", without <uchar.h>, which macOS lacks */
#endif
typedef uint16_t WORD;
typedef uint32_t DWORD;
typedef uint32_t UINT;
typedef uint32_t ULONG;
typedef int32_t LONG;
typedef int8_t INT8;
typedef uint8_t UINT8;
typedef int16_t INT16;
typedef uint16_t UINT16;
typedef int32_t INT32;
typedef uint32_t UINT32;
typedef int64_t INT64;
typedef uint64_t UINT64;
typedef int32_t LONG32;
typedef uint32_t ULONG32;
typedef uint32_t DWORD32;
typedef int64_t LONG64;
typedef uint64_t ULONG64;
typedef int64_t LONGLONG;
typedef uint64_t ULONGLONG;
typedef uint64_t DWORDLONG;
typedef uint64_t DWORD64;
typedef intptr_t INT_PTR;
typedef uintptr_t UINT_PTR;
typedef intptr_t LONG_PTR;
typedef uintptr_t ULONG_PTR;
typedef uintptr_t DWORD_PTR;
typedef uintptr_t KAFFINITY;
typedef size_t SIZE_T;
typedef intptr_t SSIZE_T;
typedef LONG HRESULT;
typedef ULONG_PTR WPARAM;
typedef LONG_PTR LPARAM;
typedef LONG_PTR LRESULT;
typedef void* PVOID;
typedef void* LPVOID;
typedef const void* LPCVOID;
typedef void* HANDLE;
typedef HANDLE* PHANDLE;
typedef HANDLE* LPHANDLE;
typedef struct HINSTANCE__* HINSTANCE;
typedef HINSTANCE HMODULE;
typedef BOOL* PBOOL;
typedef BOOL* LPBOOL;
typedef BOOLEAN* PBOOLEAN;
typedef BYTE* PBYTE;
typedef BYTE* LPBYTE;
typedef UCHAR* PUCHAR;
typedef CHAR* PCHAR;
typedef INT* PINT;
typedef INT* LPINT;
typedef UINT* PUINT;
typedef WORD* PWORD;
typedef WORD* LPWORD;
typedef USHORT* PUSHORT;
typedef DWORD* PDWORD;
typedef DWORD* LPDWORD;
typedef ULONG* PULONG;
typedef LONG* PLONG;
typedef LONG* LPLONG;
typedef LONG64* PLONG64;
typedef ULONG64* PULONG64;
typedef LONGLONG* PLONGLONG;
typedef ULONGLONG* PULONGLONG;
typedef DWORD64* PDWORD64;
typedef SIZE_T* PSIZE_T;
typedef ULONG_PTR* PULONG_PTR;
typedef LONG_PTR* PLONG_PTR;
typedef DWORD_PTR* PDWORD_PTR;
typedef CHAR* PSTR;
typedef CHAR* LPSTR;
typedef const CHAR* PCSTR;
typedef const CHAR* LPCSTR;
typedef WCHAR* PWCHAR;
typedef WCHAR* PWSTR;
typedef WCHAR* LPWSTR;
typedef const WCHAR* PCWSTR;
typedef const WCHAR* LPCWSTR;
#if defined(UNICODE)
typedef WCHAR TCHAR;
#define TOCSIN_WIN32_TEXT(text) u##text
#else
typedef CHAR TCHAR;
#define TOCSIN_WIN32_TEXT(text) text
#endif
#define TEXT(text) TOCSIN_WIN32_TEXT(text)
typedef TCHAR* PTSTR;
typedef TCHAR* LPTSTR;
typedef const TCHAR* PCTSTR;
typedef const TCHAR* LPCTSTR;

typedef union _LARGE_INTEGER {
    struct {
        DWORD LowPart; /* of a little-endian processor */
        LONG HighPart;
    } u;
    __extension__ struct {
        DWORD LowPart;
        LONG HighPart;
    };
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
    struct {
        DWORD LowPart;
        DWORD HighPart;
    } u;
    __extension__ struct {
        DWORD LowPart;
        DWORD HighPart;
    };
    ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef struct _SYSTEMTIME {
    WORD wYear;
    WORD wMonth;
    WORD wDayOfWeek;
    WORD wDay;
    WORD wHour;
    WORD wMinute;
    WORD wSecond;
    WORD wMilliseconds;
} SYSTEMTIME, *PSYSTEMTIME, *LPSYSTEMTIME;

/* Only its event is of use here: no call begins overlapped input or output. */
typedef struct _OVERLAPPED {
    ULONG_PTR Internal;
    ULONG_PTR InternalHigh;
    union {
        __extension__ struct {
            DWORD Offset;
            DWORD OffsetHigh;
        };
        PVOID Pointer;
    };
    HANDLE hEvent;
} OVERLAPPED, *LPOVERLAPPED;

typedef struct _FILETIME {
    DWORD dwLowDateTime;
    DWORD dwHighDateTime;
} FILETIME, *PFILETIME, *LPFILETIME;

typedef struct _SECURITY_ATTRIBUTES {
    DWORD nLength;
    LPVOID lpSecurityDescriptor;
    BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

typedef struct _REASON_CONTEXT {
    ULONG Version;
    DWORD Flags;
    LPVOID Reason;
} REASON_CONTEXT, *PREASON_CONTEXT;

/* ---- Constants ------------------------------------------------------------------------------------------------ */

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif
#define INFINITE 0xFFFFFFFFu
#ifdef __cplusplus
#define INVALID_HANDLE_VALUE (reinterpret_cast<HANDLE>(static_cast<LONG_PTR>(-1)))
#else
#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)(-1))
#endif
#define MAX_PATH 260
#define MINLONG 0x80000000
#define MAXLONG 0x7FFFFFFF
#define MAXBYTE 0xFF
#define MAXWORD 0xFFFF
#define MAXDWORD 0xFFFFFFFFu

/* Macros that programs expect of windows.h. In C++, IN and OUT would get into the way of other headers: they are
 * defined unless TOCSIN_WIN32_NO_IN_OUT is. */
#if !defined(TOCSIN_WIN32_NO_IN_OUT)
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef OPTIONAL
#define OPTIONAL
#endif
#endif
#define UNREFERENCED_PARAMETER(P) ((void)(P))
#define DBG_UNREFERENCED_PARAMETER(P) ((void)(P))
#define DBG_UNREFERENCED_LOCAL_VARIABLE(V) ((void)(V))
#define ZeroMemory(destination, length) memset((destination), 0, (length))
#define FillMemory(destination, length, fill) memset((destination), (fill), (length))
#define CopyMemory(destination, source, length) memcpy((destination), (source), (length))
#define MoveMemory(destination, source, length) memmove((destination), (source), (length))
#define SecureZeroMemory(destination, length) TocsinSecureZeroMemory((destination), (length))
#ifndef ARRAYSIZE
#define ARRAYSIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif
#ifndef _countof
#define _countof(array) ARRAYSIZE(array)
#endif
#define LOWORD(value) ((WORD)((DWORD_PTR)(value) & 0xFFFF))
#define HIWORD(value) ((WORD)((DWORD_PTR)(value) >> 16 & 0xFFFF))
#define LOBYTE(value) ((BYTE)((DWORD_PTR)(value) & 0xFF))
#define HIBYTE(value) ((BYTE)((DWORD_PTR)(value) >> 8 & 0xFF))
#define S_OK ((HRESULT)0)
#define S_FALSE ((HRESULT)1)
#define E_FAIL ((HRESULT)0x80004005u)
#define E_INVALIDARG ((HRESULT)0x80070057u)
#define E_OUTOFMEMORY ((HRESULT)0x8007000Eu)
#define SUCCEEDED(result) (((HRESULT)(result)) >= 0)
#define FAILED(result) (((HRESULT)(result)) < 0)
#define HRESULT_FROM_WIN32(error) \
    ((HRESULT)(error) <= 0 ? (HRESULT)(error) : (HRESULT)(((error) & 0xFFFFu) | 0x80070000u))
#define HandleToULong(handle) ((ULONG)(ULONG_PTR)(handle))
#define HandleToLong(handle) ((LONG)(LONG_PTR)(handle))
#define ULongToPtr(value) ((PVOID)(ULONG_PTR)(ULONG)(value))
#define LongToPtr(value) ((PVOID)(LONG_PTR)(LONG)(value))
#define PtrToUlong(pointer) ((ULONG)(ULONG_PTR)(pointer))
#define PtrToLong(pointer) ((LONG)(LONG_PTR)(pointer))

#define WAIT_OBJECT_0 0x00000000u
#define WAIT_ABANDONED 0x00000080u
#define WAIT_ABANDONED_0 0x00000080u
#define WAIT_IO_COMPLETION 0x000000C0u
#define WAIT_TIMEOUT 258u
#define WAIT_FAILED 0xFFFFFFFFu
#define MAXIMUM_WAIT_OBJECTS 64
#define STATUS_PENDING 0x00000103u
#define STILL_ACTIVE STATUS_PENDING

#define NO_ERROR 0u
#define ERROR_SUCCESS 0u
#define ERROR_INVALID_FUNCTION 1u
#define ERROR_FILE_NOT_FOUND 2u
#define ERROR_PATH_NOT_FOUND 3u
#define ERROR_TOO_MANY_OPEN_FILES 4u
#define ERROR_ACCESS_DENIED 5u
#define ERROR_INVALID_HANDLE 6u
#define ERROR_NOT_ENOUGH_MEMORY 8u
#define ERROR_INVALID_DATA 13u
#define ERROR_OUTOFMEMORY 14u
#define ERROR_NOT_READY 21u
#define ERROR_BAD_LENGTH 24u
#define ERROR_GEN_FAILURE 31u
#define ERROR_SHARING_VIOLATION 32u
#define ERROR_LOCK_VIOLATION 33u
#define ERROR_HANDLE_EOF 38u
#define ERROR_NOT_SUPPORTED 50u
#define ERROR_INVALID_PARAMETER 87u
#define ERROR_BROKEN_PIPE 109u
#define ERROR_CALL_NOT_IMPLEMENTED 120u
#define ERROR_SEM_TIMEOUT 121u
#define ERROR_INSUFFICIENT_BUFFER 122u
#define ERROR_INVALID_NAME 123u
#define ERROR_PROC_NOT_FOUND 127u
#define ERROR_SIGNAL_REFUSED 156u
#define ERROR_MAX_THRDS_REACHED 164u
#define ERROR_BUSY 170u
#define ERROR_ALREADY_EXISTS 183u
#define ERROR_SEM_NOT_FOUND 187u
#define ERROR_FILENAME_EXCED_RANGE 206u
#define ERROR_MORE_DATA 234u
#define ERROR_NO_MORE_ITEMS 259u
#define ERROR_NOT_OWNER 288u
#define ERROR_TOO_MANY_POSTS 298u
#define ERROR_INVALID_ADDRESS 487u
#define ERROR_PIPE_CONNECTED 535u
#define ERROR_MUTANT_LIMIT_EXCEEDED 587u
#define ERROR_ABANDONED_WAIT_0 735u
#define ERROR_OPERATION_ABORTED 995u
#define ERROR_IO_INCOMPLETE 996u
#define ERROR_IO_PENDING 997u
#define ERROR_NOACCESS 998u
#define ERROR_INVALID_FLAGS 1004u
#define ERROR_POSSIBLE_DEADLOCK 1131u
#define ERROR_DEVICE_NOT_CONNECTED 1167u
#define ERROR_NOT_FOUND 1168u
#define ERROR_CANCELLED 1223u
#define ERROR_ALREADY_INITIALIZED 1247u
#define ERROR_PRIVILEGE_NOT_HELD 1314u
#define ERROR_NO_SYSTEM_RESOURCES 1450u
#define ERROR_WORKING_SET_QUOTA 1453u
#define ERROR_TIMEOUT 1460u
#define ERROR_NOT_ENOUGH_QUOTA 1816u

#define DELETE 0x00010000u
#define READ_CONTROL 0x00020000u
#define SYNCHRONIZE 0x00100000u
#define STANDARD_RIGHTS_REQUIRED 0x000F0000u
#define WRITE_DAC 0x00040000u
#define WRITE_OWNER 0x00080000u
#define ACCESS_SYSTEM_SECURITY 0x01000000u
#define MAXIMUM_ALLOWED 0x02000000u
#define GENERIC_READ 0x80000000u
#define GENERIC_WRITE 0x40000000u
#define GENERIC_EXECUTE 0x20000000u
#define GENERIC_ALL 0x10000000u
#define EVENT_MODIFY_STATE 0x0002u
#define EVENT_ALL_ACCESS 0x001F0003u
#define SEMAPHORE_MODIFY_STATE 0x0002u
#define SEMAPHORE_ALL_ACCESS 0x001F0003u
#define MUTANT_QUERY_STATE 0x0001u
#define MUTEX_MODIFY_STATE MUTANT_QUERY_STATE
#define MUTEX_ALL_ACCESS 0x001F0001u
#define TIMER_QUERY_STATE 0x0001u
#define TIMER_MODIFY_STATE 0x0002u
#define TIMER_ALL_ACCESS 0x001F0003u
#define THREAD_TERMINATE 0x0001u
#define THREAD_SUSPEND_RESUME 0x0002u
#define THREAD_GET_CONTEXT 0x0008u
#define THREAD_SET_CONTEXT 0x0010u
#define THREAD_SET_INFORMATION 0x0020u
#define THREAD_QUERY_INFORMATION 0x0040u
#define THREAD_SET_THREAD_TOKEN 0x0080u
#define THREAD_IMPERSONATE 0x0100u
#define THREAD_DIRECT_IMPERSONATION 0x0200u
#define THREAD_SET_LIMITED_INFORMATION 0x0400u
#define THREAD_QUERY_LIMITED_INFORMATION 0x0800u
#define THREAD_RESUME 0x1000u
#define THREAD_ALL_ACCESS 0x001FFFFFu
#define PROCESS_ALL_ACCESS 0x001FFFFFu

#define THREAD_PRIORITY_IDLE (-15)
#define THREAD_PRIORITY_LOWEST (-2)
#define THREAD_PRIORITY_BELOW_NORMAL (-1)
#define THREAD_PRIORITY_NORMAL 0
#define THREAD_PRIORITY_ABOVE_NORMAL 1
#define THREAD_PRIORITY_HIGHEST 2
#define THREAD_PRIORITY_TIME_CRITICAL 15
#define THREAD_PRIORITY_ERROR_RETURN MAXLONG
#define THREAD_MODE_BACKGROUND_BEGIN 0x00010000
#define THREAD_MODE_BACKGROUND_END 0x00020000
#define MAXIMUM_SUSPEND_COUNT 127

#define CREATE_EVENT_MANUAL_RESET 0x00000001u
#define CREATE_EVENT_INITIAL_SET 0x00000002u
#define CREATE_MUTEX_INITIAL_OWNER 0x00000001u
#define CREATE_WAITABLE_TIMER_MANUAL_RESET 0x00000001u
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002u
#define CREATE_SUSPENDED 0x00000004u
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x00010000u
#define DUPLICATE_CLOSE_SOURCE 0x00000001u
#define DUPLICATE_SAME_ACCESS 0x00000002u

#define WT_EXECUTEDEFAULT 0x00000000u
#define WT_EXECUTEINIOTHREAD 0x00000001u
#define WT_EXECUTEINWAITTHREAD 0x00000004u
#define WT_EXECUTEONLYONCE 0x00000008u
#define WT_EXECUTELONGFUNCTION 0x00000010u
#define WT_EXECUTEINTIMERTHREAD 0x00000020u
#define WT_EXECUTEINPERSISTENTTHREAD 0x00000080u
#define WT_TRANSFER_IMPERSONATION 0x00000100u
#define WT_EXECUTEDELETEWAIT WT_EXECUTEINWAITTHREAD
#define WT_SET_MAX_THREADPOOL_THREADS(flags, limit) ((flags) |= (ULONG)(limit) << 16)

#endif /* TOCSIN_WIN32_TYPES_H */
