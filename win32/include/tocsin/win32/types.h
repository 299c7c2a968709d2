// SPDX-License-Identifier: Apache-2.0
/* The types and constants of Windows' calls, for every other system. tocsin/win32.h includes this file. */
#ifndef TOCSIN_WIN32_TYPES_H
#define TOCSIN_WIN32_TYPES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Types ---------------------------------------------------------------------------------------------------- */

typedef void VOID;
typedef int BOOL;
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
typedef int64_t LONGLONG;
typedef uint64_t ULONGLONG;
typedef uint64_t DWORD64;
typedef intptr_t LONG_PTR;
typedef uintptr_t ULONG_PTR;
typedef uintptr_t DWORD_PTR;
typedef size_t SIZE_T;
typedef void* PVOID;
typedef void* LPVOID;
typedef const void* LPCVOID;
typedef void* HANDLE;
typedef HANDLE* PHANDLE;
typedef HANDLE* LPHANDLE;
typedef BOOL* PBOOL;
typedef BOOL* LPBOOL;
typedef DWORD* PDWORD;
typedef DWORD* LPDWORD;
typedef LONG* PLONG;
typedef LONG* LPLONG;
typedef const char* LPCSTR;
typedef const WCHAR* LPCWSTR;

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
#define MAXLONG 0x7FFFFFFF

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
#define ERROR_FILE_NOT_FOUND 2u
#define ERROR_PATH_NOT_FOUND 3u
#define ERROR_ACCESS_DENIED 5u
#define ERROR_INVALID_HANDLE 6u
#define ERROR_NOT_ENOUGH_MEMORY 8u
#define ERROR_GEN_FAILURE 31u
#define ERROR_NOT_SUPPORTED 50u
#define ERROR_INVALID_PARAMETER 87u
#define ERROR_SEM_TIMEOUT 121u
#define ERROR_ALREADY_EXISTS 183u
#define ERROR_FILENAME_EXCED_RANGE 206u
#define ERROR_SIGNAL_REFUSED 156u
#define ERROR_NOT_OWNER 288u
#define ERROR_TOO_MANY_POSTS 298u
#define ERROR_MUTANT_LIMIT_EXCEEDED 587u
#define ERROR_IO_PENDING 997u
#define ERROR_POSSIBLE_DEADLOCK 1131u
#define ERROR_PRIVILEGE_NOT_HELD 1314u
#define ERROR_TIMEOUT 1460u

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
#define THREAD_ALL_ACCESS 0x001FFFFFu

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
#define WT_EXECUTEINPERSISTENTTHREAD 0x00000080u
#define WT_TRANSFER_IMPERSONATION 0x00000100u

#endif /* TOCSIN_WIN32_TYPES_H */
