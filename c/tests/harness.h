// SPDX-License-Identifier: Apache-2.0
// What the tests of tocsin.h share: a check, threads, and waits for facts. In C11 and in C++.
#ifndef TOCSIN_C_TESTS_HARNESS_H
#define TOCSIN_C_TESTS_HARNESS_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tocsin.h>

#define MS INT64_C(1000000)

// A file has the cases of one subject, in a list that ends with a null name. tests.c runs them.
typedef struct test_case {
    const char* name;
    void (*run)(void);
} test_case;
#define CASE(name) {#name, name}
extern const test_case events_cases[], semaphores_cases[], addresses_cases[], waits_cases[],
    operations_cases[], conditions_cases[], sets_cases[], group_commit_cases[], errors_cases[],
    diagnose_cases[], shared_cases[];

extern int failures;
void check(bool holds, const char* what, const char* file, int line);
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CHECK_OK(call) check((call) == TOCSIN_OK, #call, __FILE__, __LINE__)
#define REFUSED(call) check((call) == TOCSIN_ERROR_INVALID, #call " is refused", __FILE__, __LINE__)

static inline tocsin_limits until(tocsin_clock clock, int64_t nanoseconds) {
    tocsin_limits how = {{TOCSIN_CLOCK_NEVER, 0}, NULL, {TOCSIN_SPIN_DEFAULT, 0}, TOCSIN_ORDER_LISTED, false};
    how.until.clock = clock;
    how.until.nanoseconds = nanoseconds;
    return how;
}

static inline tocsin_source source_at(tocsin_source_kind kind, void* object) {
    tocsin_source from;
    memset(&from, 0, sizeof from);
    from.kind = kind;
    from.of.object = object;
    return from;
}
static inline tocsin_source descriptor_source(int descriptor, uint32_t asked) {
    tocsin_source from = source_at(TOCSIN_SOURCE_DESCRIPTOR, NULL);
    from.asked = asked;
    from.of.descriptor = descriptor;
    return from;
}
static inline tocsin_source timer_source(int64_t from_now) {
    tocsin_source from = source_at(TOCSIN_SOURCE_TIMER, NULL);
    from.of.deadline.clock = TOCSIN_CLOCK_FROM_NOW;
    from.of.deadline.nanoseconds = from_now;
    return from;
}

static inline pthread_t start(void* (*run)(void*), void* argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0) abort();
    return thread;
}
static inline void join(pthread_t thread) { pthread_join(thread, NULL); }

// A thread's function: takes the token of the tocsin_auto_event.
void* wait_for_token(void* event);

// Returns when so many waits are parked on the address.
static inline void until_parked(const volatile void* address, size_t count) {
    while (tocsin_waiting_on(address) != count) sched_yield();
}

#endif
