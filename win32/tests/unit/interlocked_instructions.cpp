// SPDX-License-Identifier: Apache-2.0
// Compiled to assembler twice, once with the compiler's own functions (BUILTIN). The texts must be the same.
#include <tocsin/win32.h>

#if defined(BUILTIN)
#define OR_BUILTIN(ours, builtin) builtin
#else
#define OR_BUILTIN(ours, builtin) ours
#endif
// On x86, atomic read-modify-writes are full barriers. Elsewhere Windows promises more than one does.
#if defined(__x86_64__) || defined(__i386__)
#define BARRIER
#else
#define BARRIER __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#define ONE(type, name, before_barrier)                       \
    extern "C" type name(type volatile* target, type value) { \
        const type result = before_barrier;                   \
        OR_BUILTIN(, BARRIER);                                \
        return result;                                        \
    }
#define FAMILY(type, width)                                                                                  \
    ONE(type, exchange##width,                                                                               \
        OR_BUILTIN(InterlockedExchange##width(target, value),                                                \
                   __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST)))                                    \
    ONE(type, add##width,                                                                                    \
        OR_BUILTIN(InterlockedExchangeAdd##width(target, value),                                             \
                   __atomic_fetch_add(target, value, __ATOMIC_SEQ_CST)))                                     \
    ONE(type, both##width,                                                                                   \
        OR_BUILTIN(InterlockedAnd##width(target, value),                                                     \
                   __atomic_fetch_and(target, value, __ATOMIC_SEQ_CST)))                                     \
    ONE(type, either##width,                                                                                 \
        OR_BUILTIN(InterlockedOr##width(target, value), __atomic_fetch_or(target, value, __ATOMIC_SEQ_CST))) \
    ONE(type, one_of##width,                                                                                 \
        OR_BUILTIN(InterlockedXor##width(target, value),                                                     \
                   __atomic_fetch_xor(target, value, __ATOMIC_SEQ_CST)))                                     \
    extern "C" type compare##width(type volatile* target, type value, type expected) {                       \
        OR_BUILTIN(return InterlockedCompareExchange##width(target, value, expected),                        \
                          (void)__atomic_compare_exchange_n(target, &expected, value, 0, __ATOMIC_SEQ_CST,   \
                                                            __ATOMIC_SEQ_CST);                               \
                   BARRIER; return expected);                                                                \
    }
FAMILY(CHAR, 8)
FAMILY(SHORT, 16)
FAMILY(LONG, )
FAMILY(LONG64, 64)

#define COUNT(type, width)                                                                                 \
    ONE(type, up##width,                                                                                   \
        OR_BUILTIN(InterlockedIncrement##width(target), __atomic_add_fetch(target, 1, __ATOMIC_SEQ_CST)) + \
            (value - value))                                                                               \
    ONE(type, down##width,                                                                                 \
        OR_BUILTIN(InterlockedDecrement##width(target), __atomic_sub_fetch(target, 1, __ATOMIC_SEQ_CST)) + \
            (value - value))
COUNT(LONG, )
COUNT(LONG64, 64)
ONE(LONG, sum, OR_BUILTIN(InterlockedAdd(target, value), __atomic_add_fetch(target, value, __ATOMIC_SEQ_CST)))

extern "C" LONG acquire(LONG volatile* target, LONG value) {
    return OR_BUILTIN(InterlockedExchangeAddAcquire(target, value),
                      __atomic_fetch_add(target, value, __ATOMIC_ACQUIRE));
}
