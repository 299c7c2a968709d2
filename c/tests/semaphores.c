// SPDX-License-Identifier: Apache-2.0
// Semaphores, latches and barriers. C11 and C++ at the same time.
#include "harness.h"

static void* acquire_two(void* semaphore) {
    CHECK_OK(tocsin_semaphore_acquire((tocsin_semaphore*)semaphore, 2, NULL));
    return NULL;
}

static void a_semaphore_counts(void) {
    tocsin_semaphore semaphore;
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 1);
    pthread_t thread;
    CHECK_OK(tocsin_semaphore_init(&semaphore, 2));
    CHECK_OK(tocsin_semaphore_try_acquire(&semaphore, 2));
    CHECK(tocsin_semaphore_try_acquire(&semaphore, 1) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_semaphore_acquire(&semaphore, 1, &how) == TOCSIN_TIMED_OUT);
    thread = start(acquire_two, &semaphore);
    until_parked(&semaphore, 1);
    CHECK_OK(tocsin_semaphore_release(&semaphore, 1));
    CHECK_OK(tocsin_semaphore_release(&semaphore, 2));
    join(thread);
    CHECK_OK(tocsin_semaphore_acquire(&semaphore, 1, NULL));
    CHECK(tocsin_semaphore_try_acquire(&semaphore, 1) == TOCSIN_NOTHING_DONE);

    CHECK_OK(tocsin_semaphore_release(&semaphore, TOCSIN_SEMAPHORE_MAX));
    CHECK(tocsin_semaphore_release(&semaphore, 1) == TOCSIN_ERROR_TOO_GREAT);
    CHECK(tocsin_semaphore_release(&semaphore, UINT32_MAX) == TOCSIN_ERROR_TOO_GREAT);
    CHECK_OK(tocsin_semaphore_try_acquire(&semaphore, TOCSIN_SEMAPHORE_MAX));
    REFUSED(tocsin_semaphore_try_acquire(&semaphore, TOCSIN_SEMAPHORE_MAX + 1));
    REFUSED(tocsin_semaphore_init(&semaphore, TOCSIN_SEMAPHORE_MAX + 1));
    CHECK_OK(tocsin_semaphore_destroy(&semaphore));
}

static void* count_down(void* latch) {
    CHECK_OK(tocsin_latch_count_down((tocsin_latch*)latch, 1));
    return NULL;
}

static void a_latch_opens_at_zero(void) {
    tocsin_latch latch;
    pthread_t thread;
    CHECK_OK(tocsin_latch_init(&latch, 3));
    CHECK(tocsin_latch_try_wait(&latch) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_latch_count_down(&latch, 2));
    thread = start(count_down, &latch);
    CHECK_OK(tocsin_latch_wait(&latch, NULL));
    CHECK_OK(tocsin_latch_try_wait(&latch));
    join(thread);
    CHECK_OK(tocsin_latch_destroy(&latch));
    REFUSED(tocsin_latch_init(&latch, TOCSIN_ARRIVALS_MAX + 1));
}

static void* arrive_and_pass(void* latch) {
    CHECK_OK(tocsin_latch_arrive_and_wait((tocsin_latch*)latch, 1));
    return NULL;
}

static void threads_arrive_at_a_latch_and_wait_for_each_other(void) {
    tocsin_latch latch;
    pthread_t thread;
    CHECK_OK(tocsin_latch_init(&latch, 3));
    thread = start(arrive_and_pass, &latch);
    until_parked(&latch, 1);
    CHECK(tocsin_latch_try_wait(&latch) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_latch_arrive_and_wait(&latch, 2));
    join(thread);
    CHECK_OK(tocsin_latch_arrive_and_wait(&latch, 0));
    REFUSED(tocsin_latch_arrive_and_wait(&latch, TOCSIN_ARRIVALS_MAX + 1));
    REFUSED(tocsin_latch_arrive_and_wait(NULL, 1));
    CHECK_OK(tocsin_latch_destroy(&latch));
}

static void count_phase(void* phases) { ++*(int*)phases; }

static void* arrive_and_wait(void* barrier) {
    for (int phase = 0; phase != 100; ++phase)
        CHECK_OK(tocsin_barrier_arrive_and_wait((tocsin_barrier*)barrier));
    return NULL;
}

static void a_barrier_has_phases(void) {
    tocsin_barrier barrier;
    tocsin_barrier_token token = {NULL};
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 1);
    int phases = 0;
    pthread_t thread;
    CHECK_OK(tocsin_barrier_init(&barrier, 2, count_phase, &phases));
    thread = start(arrive_and_wait, &barrier);
    arrive_and_wait(&barrier);
    join(thread);
    CHECK(phases == 100);

    CHECK_OK(tocsin_barrier_arrive(&barrier, 1, &token));
    CHECK(tocsin_barrier_try_wait(&barrier, &token) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_barrier_wait(&barrier, &token, &how) == TOCSIN_TIMED_OUT);
    CHECK_OK(tocsin_barrier_arrive_and_drop(&barrier));
    CHECK_OK(tocsin_barrier_wait(&barrier, &token, NULL));
    {
        tocsin_source phase = source_at(TOCSIN_SOURCE_BARRIER_TOKEN, &token);
        CHECK_OK(tocsin_wait_any(&phase, 1, NULL, NULL));
    }
    CHECK_OK(tocsin_barrier_arrive_and_wait(&barrier));  // alone since the drop
    CHECK(phases == 102);
    CHECK_OK(tocsin_barrier_destroy(&barrier));
    token.opaque = NULL;
    REFUSED(tocsin_barrier_wait(&barrier, &token, NULL));
    REFUSED(tocsin_barrier_arrive(&barrier, 0, &token));
}

const test_case semaphores_cases[] = {
    CASE(a_semaphore_counts),
    CASE(a_latch_opens_at_zero),
    CASE(threads_arrive_at_a_latch_and_wait_for_each_other),
    CASE(a_barrier_has_phases),
    {NULL, NULL},
};
