// SPDX-License-Identifier: Apache-2.0
/* The Interlocked functions of Windows, each the compiler's own atomic instruction. Only tocsin/win32.h includes this
 * file.
 *
 * As on Windows, a function without a suffix is a full barrier, ...Acquire and ...Release are half ones, and ...NoFence
 * is none. The functions for 8, 16, 32 and 64 bits take pointers to CHAR, SHORT, LONG and LONG64. In C++, those for 32
 * bits also take pointers to unsigned, long and unsigned long, because a LONG is an int here. An object must be aligned
 * to its size. The Interlocked...128 functions exist on 64-bit x86 and ARM. */
#ifndef TOCSIN_WIN32_INTERLOCKED_H
#define TOCSIN_WIN32_INTERLOCKED_H

/* Programs compile it with warnings that its macros and its C can't please in C++. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#define MemoryBarrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define _ReadWriteBarrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define _ReadBarrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define _WriteBarrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#if defined(__x86_64__) || defined(__i386__)
#define YieldProcessor() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define YieldProcessor() __asm__ __volatile__("yield" ::: "memory")
#else
#define YieldProcessor() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif

/* On x86, an atomic read-modify-write is a full barrier. Elsewhere, a sequentially consistent one orders less than
 * Windows promises, so a fence follows. */
#if defined(__x86_64__) || defined(__i386__)
#define TOCSIN_WIN32_FULL_BARRIER() ((void)0)
#else
#define TOCSIN_WIN32_FULL_BARRIER() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#define TOCSIN_WIN32_NO_BARRIER() ((void)0)

#ifdef __cplusplus
extern "C" {
#endif

/* One family of functions: for one width, with one order. */
#define TOCSIN_WIN32_INTERLOCKED(type, width, suffix, order, failed, barrier)                       \
    static inline type InterlockedExchange##width##suffix(type volatile* target, type value) {      \
        const type before = __atomic_exchange_n(target, value, order);                              \
        barrier();                                                                                  \
        return before;                                                                              \
    }                                                                                               \
    static inline type InterlockedExchangeAdd##width##suffix(type volatile* target, type value) {   \
        const type before = __atomic_fetch_add(target, value, order);                               \
        barrier();                                                                                  \
        return before;                                                                              \
    }                                                                                               \
    static inline type InterlockedCompareExchange##width##suffix(type volatile* target, type value, \
                                                                 type expected) {                   \
        (void)__atomic_compare_exchange_n(target, &expected, value, 0, order, failed);              \
        barrier();                                                                                  \
        return expected;                                                                            \
    }                                                                                               \
    static inline type InterlockedAnd##width##suffix(type volatile* target, type value) {           \
        const type before = __atomic_fetch_and(target, value, order);                               \
        barrier();                                                                                  \
        return before;                                                                              \
    }                                                                                               \
    static inline type InterlockedOr##width##suffix(type volatile* target, type value) {            \
        const type before = __atomic_fetch_or(target, value, order);                                \
        barrier();                                                                                  \
        return before;                                                                              \
    }                                                                                               \
    static inline type InterlockedXor##width##suffix(type volatile* target, type value) {           \
        const type before = __atomic_fetch_xor(target, value, order);                               \
        barrier();                                                                                  \
        return before;                                                                              \
    }
/* Not for 8 bits: */
#define TOCSIN_WIN32_INTERLOCKED_COUNT(type, width, suffix, order, barrier)         \
    static inline type InterlockedIncrement##width##suffix(type volatile* target) { \
        const type after = __atomic_add_fetch(target, 1, order);                    \
        barrier();                                                                  \
        return after;                                                               \
    }                                                                               \
    static inline type InterlockedDecrement##width##suffix(type volatile* target) { \
        const type after = __atomic_sub_fetch(target, 1, order);                    \
        barrier();                                                                  \
        return after;                                                               \
    }
/* For 32 and 64 bits only: */
#define TOCSIN_WIN32_INTERLOCKED_ADD(type, width, suffix, order, barrier)                 \
    static inline type InterlockedAdd##width##suffix(type volatile* target, type value) { \
        const type after = __atomic_add_fetch(target, value, order);                      \
        barrier();                                                                        \
        return after;                                                                     \
    }
#define TOCSIN_WIN32_INTERLOCKED_POINTER(suffix, order, failed, barrier)                               \
    static inline PVOID InterlockedExchangePointer##suffix(PVOID volatile* target, PVOID value) {      \
        PVOID const before = __atomic_exchange_n(target, value, order);                                \
        barrier();                                                                                     \
        return before;                                                                                 \
    }                                                                                                  \
    static inline PVOID InterlockedCompareExchangePointer##suffix(PVOID volatile* target, PVOID value, \
                                                                  PVOID expected) {                    \
        (void)__atomic_compare_exchange_n(target, &expected, value, 0, order, failed);                 \
        barrier();                                                                                     \
        return expected;                                                                               \
    }
#define TOCSIN_WIN32_INTERLOCKED_ALL(suffix, order, failed, barrier)     \
    TOCSIN_WIN32_INTERLOCKED(CHAR, 8, suffix, order, failed, barrier)    \
    TOCSIN_WIN32_INTERLOCKED(SHORT, 16, suffix, order, failed, barrier)  \
    TOCSIN_WIN32_INTERLOCKED_COUNT(SHORT, 16, suffix, order, barrier)    \
    TOCSIN_WIN32_INTERLOCKED(LONG, , suffix, order, failed, barrier)     \
    TOCSIN_WIN32_INTERLOCKED_COUNT(LONG, , suffix, order, barrier)       \
    TOCSIN_WIN32_INTERLOCKED_ADD(LONG, , suffix, order, barrier)         \
    TOCSIN_WIN32_INTERLOCKED(LONG64, 64, suffix, order, failed, barrier) \
    TOCSIN_WIN32_INTERLOCKED_COUNT(LONG64, 64, suffix, order, barrier)   \
    TOCSIN_WIN32_INTERLOCKED_ADD(LONG64, 64, suffix, order, barrier)     \
    TOCSIN_WIN32_INTERLOCKED_POINTER(suffix, order, failed, barrier)
TOCSIN_WIN32_INTERLOCKED_ALL(, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, TOCSIN_WIN32_FULL_BARRIER)
TOCSIN_WIN32_INTERLOCKED_ALL(Acquire, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE, TOCSIN_WIN32_NO_BARRIER)
TOCSIN_WIN32_INTERLOCKED_ALL(Release, __ATOMIC_RELEASE, __ATOMIC_RELAXED, TOCSIN_WIN32_NO_BARRIER)
TOCSIN_WIN32_INTERLOCKED_ALL(NoFence, __ATOMIC_RELAXED, __ATOMIC_RELAXED, TOCSIN_WIN32_NO_BARRIER)
#undef TOCSIN_WIN32_INTERLOCKED_ALL
#undef TOCSIN_WIN32_INTERLOCKED_POINTER
#undef TOCSIN_WIN32_INTERLOCKED_ADD
#undef TOCSIN_WIN32_INTERLOCKED_COUNT
#undef TOCSIN_WIN32_INTERLOCKED

static inline BOOLEAN InterlockedBitTestAndSet(LONG volatile* base, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((InterlockedOr(base + (bit >> 5), mask) & mask) != 0);
}
static inline BOOLEAN InterlockedBitTestAndReset(LONG volatile* base, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((InterlockedAnd(base + (bit >> 5), ~mask) & mask) != 0);
}
static inline BOOLEAN InterlockedBitTestAndComplement(LONG volatile* base, LONG bit) {
    const LONG mask = (LONG)(1u << (bit & 31));
    return (BOOLEAN)((InterlockedXor(base + (bit >> 5), mask) & mask) != 0);
}
static inline BOOLEAN InterlockedBitTestAndSet64(LONG64 volatile* base, LONG64 bit) {
    const LONG64 mask = (LONG64)((ULONG64)1 << (bit & 63));
    return (BOOLEAN)((InterlockedOr64(base + (bit >> 6), mask) & mask) != 0);
}
static inline BOOLEAN InterlockedBitTestAndReset64(LONG64 volatile* base, LONG64 bit) {
    const LONG64 mask = (LONG64)((ULONG64)1 << (bit & 63));
    return (BOOLEAN)((InterlockedAnd64(base + (bit >> 6), ~mask) & mask) != 0);
}

/* Compares 16 bytes, aligned to 16, with those at `expected`. If they are equal, writes the new halves. If not, writes
 * what is there to `expected`. A full barrier. */
#if defined(__x86_64__)
static inline BOOLEAN InterlockedCompareExchange128(LONG64 volatile* target, LONG64 high, LONG64 low,
                                                    LONG64* expected) {
    BOOLEAN equal;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(equal), "+m"(*(LONG64 volatile(*)[2])target), "+a"(expected[0]),
                           "+d"(expected[1])
                         : "b"(low), "c"(high)
                         : "memory");
    return equal;
}
#elif defined(__aarch64__)
static inline BOOLEAN InterlockedCompareExchange128(LONG64 volatile* target, LONG64 high, LONG64 low,
                                                    LONG64* expected) {
    LONG64 seen_low;
    LONG64 seen_high;
    int failed;
    do {
        LONG64 next_low;
        LONG64 next_high;
        __asm__ __volatile__("ldaxp %0, %1, %2"
                             : "=&r"(seen_low), "=&r"(seen_high)
                             : "Q"(*(LONG64 volatile(*)[2])target)
                             : "memory");
        next_low = seen_low == expected[0] && seen_high == expected[1] ? low : seen_low;
        next_high = seen_low == expected[0] && seen_high == expected[1] ? high : seen_high;
        __asm__ __volatile__("stlxp %w0, %2, %3, %1"
                             : "=&r"(failed), "=Q"(*(LONG64 volatile(*)[2])target)
                             : "r"(next_low), "r"(next_high)
                             : "memory");
    } while (failed);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (seen_low == expected[0] && seen_high == expected[1]) return 1;
    expected[0] = seen_low;
    expected[1] = seen_high;
    return 0;
}
#endif

/* ---- Loads and stores with an order --------------------------------------------------------------------------- */

#define TOCSIN_WIN32_READ_WRITE(name, type)                                  \
    static inline type Read##name##Acquire(type const volatile* from) {      \
        return __atomic_load_n(from, __ATOMIC_ACQUIRE);                      \
    }                                                                        \
    static inline type Read##name##NoFence(type const volatile* from) {      \
        return __atomic_load_n(from, __ATOMIC_RELAXED);                      \
    }                                                                        \
    static inline VOID Write##name##Release(type volatile* to, type value) { \
        __atomic_store_n(to, value, __ATOMIC_RELEASE);                       \
    }                                                                        \
    static inline VOID Write##name##NoFence(type volatile* to, type value) { \
        __atomic_store_n(to, value, __ATOMIC_RELAXED);                       \
    }
TOCSIN_WIN32_READ_WRITE(, LONG)
TOCSIN_WIN32_READ_WRITE(64, LONG64)
TOCSIN_WIN32_READ_WRITE(ULong, ULONG)
TOCSIN_WIN32_READ_WRITE(ULong64, ULONG64)
TOCSIN_WIN32_READ_WRITE(Pointer, PVOID)
#undef TOCSIN_WIN32_READ_WRITE

#ifdef __cplusplus
} /* extern "C" */

/* For the types that LONG is on Windows, and for unsigned ones. */
#define TOCSIN_WIN32_INTERLOCKED_FOR(type)                                                                  \
    static inline type InterlockedIncrement(type volatile* target) {                                        \
        return __atomic_add_fetch(target, static_cast<type>(1), __ATOMIC_SEQ_CST);                          \
    }                                                                                                       \
    static inline type InterlockedDecrement(type volatile* target) {                                        \
        return __atomic_sub_fetch(target, static_cast<type>(1), __ATOMIC_SEQ_CST);                          \
    }                                                                                                       \
    static inline type InterlockedExchange(type volatile* target, type value) {                             \
        return __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);                                        \
    }                                                                                                       \
    static inline type InterlockedExchangeAdd(type volatile* target, type value) {                          \
        return __atomic_fetch_add(target, value, __ATOMIC_SEQ_CST);                                         \
    }                                                                                                       \
    static inline type InterlockedExchangeSubtract(type volatile* target, type value) {                     \
        return __atomic_fetch_sub(target, value, __ATOMIC_SEQ_CST);                                         \
    }                                                                                                       \
    static inline type InterlockedCompareExchange(type volatile* target, type value, type expected) {       \
        (void)__atomic_compare_exchange_n(target, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return expected;                                                                                    \
    }                                                                                                       \
    static inline type InterlockedAnd(type volatile* target, type value) {                                  \
        return __atomic_fetch_and(target, value, __ATOMIC_SEQ_CST);                                         \
    }                                                                                                       \
    static inline type InterlockedOr(type volatile* target, type value) {                                   \
        return __atomic_fetch_or(target, value, __ATOMIC_SEQ_CST);                                          \
    }                                                                                                       \
    static inline type InterlockedXor(type volatile* target, type value) {                                  \
        return __atomic_fetch_xor(target, value, __ATOMIC_SEQ_CST);                                         \
    }
TOCSIN_WIN32_INTERLOCKED_FOR(unsigned)
TOCSIN_WIN32_INTERLOCKED_FOR(long)
TOCSIN_WIN32_INTERLOCKED_FOR(unsigned long)
#undef TOCSIN_WIN32_INTERLOCKED_FOR
#endif

/* The compiler's names for them on Windows. */
#define _InterlockedIncrement InterlockedIncrement
#define _InterlockedIncrement16 InterlockedIncrement16
#define _InterlockedIncrement64 InterlockedIncrement64
#define _InterlockedDecrement InterlockedDecrement
#define _InterlockedDecrement16 InterlockedDecrement16
#define _InterlockedDecrement64 InterlockedDecrement64
#define _InterlockedExchange InterlockedExchange
#define _InterlockedExchange16 InterlockedExchange16
#define _InterlockedExchange64 InterlockedExchange64
#define _InterlockedExchangeAdd InterlockedExchangeAdd
#define _InterlockedExchangeAdd16 InterlockedExchangeAdd16
#define _InterlockedExchangeAdd64 InterlockedExchangeAdd64
#define _InterlockedCompareExchange InterlockedCompareExchange
#define _InterlockedCompareExchange16 InterlockedCompareExchange16
#define _InterlockedCompareExchange64 InterlockedCompareExchange64
#define _InterlockedAnd InterlockedAnd
#define _InterlockedAnd16 InterlockedAnd16
#define _InterlockedAnd64 InterlockedAnd64
#define _InterlockedOr InterlockedOr
#define _InterlockedOr16 InterlockedOr16
#define _InterlockedOr64 InterlockedOr64
#define _InterlockedXor InterlockedXor
#define _InterlockedXor16 InterlockedXor16
#define _InterlockedXor64 InterlockedXor64
#define _InterlockedExchange8 InterlockedExchange8
#define _InterlockedExchangeAdd8 InterlockedExchangeAdd8
#define _InterlockedCompareExchange8 InterlockedCompareExchange8
#define _InterlockedAnd8 InterlockedAnd8
#define _InterlockedOr8 InterlockedOr8
#define _InterlockedXor8 InterlockedXor8
#define _InterlockedExchangePointer InterlockedExchangePointer
#define _InterlockedCompareExchangePointer InterlockedCompareExchangePointer
#define _InterlockedCompareExchange128 InterlockedCompareExchange128
#define _interlockedbittestandset InterlockedBitTestAndSet
#define _interlockedbittestandreset InterlockedBitTestAndReset

#define InterlockedIncrementSizeT(target) InterlockedIncrement64((LONG64 volatile*)(target))
#define InterlockedDecrementSizeT(target) InterlockedDecrement64((LONG64 volatile*)(target))
#define InterlockedExchangeAddSizeT(target, value) \
    InterlockedExchangeAdd64((LONG64 volatile*)(target), (LONG64)(value))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Singly linked lists -------------------------------------------------------------------------------------- */

/* Any thread may push and pop at any time. A list has a short lock, under which a thread that waits for it sleeps. (On
 * Windows, there is none.) So an entry that was popped may be freed at once. Depths count up to 65,535, and then start
 * again at 0, as on Windows. */
typedef struct _SLIST_ENTRY {
    struct _SLIST_ENTRY* Next;
} SLIST_ENTRY, *PSLIST_ENTRY;
typedef union _SLIST_HEADER {
    struct {
        PSLIST_ENTRY First;
        uint32_t Lock;
        uint16_t Depth;
        uint16_t Sequence;
    } State;
    ULONGLONG Alignment;
} __attribute__((aligned(16))) SLIST_HEADER, *PSLIST_HEADER;
#define MEMORY_ALLOCATION_ALIGNMENT 16
#define DECLSPEC_ALIGN(bytes) __attribute__((aligned(bytes)))

TOCSIN_WIN32_API VOID WINAPI InitializeSListHead(PSLIST_HEADER list);
TOCSIN_WIN32_API PSLIST_ENTRY WINAPI InterlockedPushEntrySList(PSLIST_HEADER list, PSLIST_ENTRY entry);
TOCSIN_WIN32_API PSLIST_ENTRY WINAPI InterlockedPopEntrySList(PSLIST_HEADER list);
TOCSIN_WIN32_API PSLIST_ENTRY WINAPI InterlockedFlushSList(PSLIST_HEADER list);
TOCSIN_WIN32_API PSLIST_ENTRY WINAPI InterlockedPushListSListEx(PSLIST_HEADER list, PSLIST_ENTRY first,
                                                                PSLIST_ENTRY last, ULONG count);
TOCSIN_WIN32_API USHORT WINAPI QueryDepthSList(PSLIST_HEADER list);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOCSIN_WIN32_INTERLOCKED_H */
