// SPDX-License-Identifier: Apache-2.0
// Events and stops. C11 and C++ at the same time.
#include "harness.h"

static tocsin_auto_event static_token = TOCSIN_EVENT_SET;
static tocsin_manual_event static_gate = TOCSIN_EVENT_UNSET;
static tocsin_semaphore static_semaphore = TOCSIN_SEMAPHORE_INIT(5);
static tocsin_lock static_lock = TOCSIN_LOCK_INIT;
static tocsin_condition static_condition = TOCSIN_CONDITION_INIT;

static void initializers_are_what_init_makes(void) {
    tocsin_auto_event token;
    tocsin_manual_event gate;
    tocsin_semaphore semaphore;
    tocsin_lock lock;
    tocsin_condition condition;
    CHECK_OK(tocsin_auto_event_init(&token, true));
    CHECK_OK(tocsin_manual_event_init(&gate, false));
    CHECK_OK(tocsin_semaphore_init(&semaphore, 5));
    CHECK_OK(tocsin_lock_init(&lock));
    CHECK_OK(tocsin_condition_init(&condition));
    CHECK(memcmp(&token, &static_token, sizeof token) == 0);
    CHECK(memcmp(&gate, &static_gate, sizeof gate) == 0);
    CHECK(memcmp(&semaphore, &static_semaphore, sizeof semaphore) == 0);
    CHECK(memcmp(&lock, &static_lock, sizeof lock) == 0);
    CHECK(memcmp(&condition, &static_condition, sizeof condition) == 0);
}

static void a_token_is_taken_once(void) {
    tocsin_auto_event event = TOCSIN_EVENT_UNSET;
    CHECK(sizeof event == 1);
    CHECK(tocsin_auto_event_try_wait(&event) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_auto_event_set(&event));
    CHECK(tocsin_auto_event_is_set(&event));
    CHECK_OK(tocsin_auto_event_set(&event));
    CHECK_OK(tocsin_auto_event_wait(&event, NULL));
    CHECK(tocsin_auto_event_try_wait(&event) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_auto_event_set(&event));
    CHECK_OK(tocsin_auto_event_reset(&event));
    CHECK(!tocsin_auto_event_is_set(&event));
    CHECK_OK(tocsin_auto_event_destroy(&event));
}

static void a_gate_lets_everybody_pass(void) {
    tocsin_manual_event event;
    CHECK_OK(tocsin_manual_event_init(&event, true));
    CHECK_OK(tocsin_manual_event_wait(&event, NULL));
    CHECK_OK(tocsin_manual_event_try_wait(&event));
    CHECK_OK(tocsin_manual_event_reset(&event));
    CHECK(tocsin_manual_event_try_wait(&event) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_manual_event_set(&event));
    CHECK(tocsin_manual_event_is_set(&event));
    CHECK_OK(tocsin_manual_event_destroy(&event));
}

static void waits_end_at_their_deadlines_and_not_before(void) {
    tocsin_auto_event event = TOCSIN_EVENT_UNSET;
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 3 * MS);
    int64_t before = tocsin_steady_now();
    CHECK(tocsin_auto_event_wait(&event, &how) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_steady_now() - before >= 3 * MS);

    before = tocsin_steady_now();
    how = until(TOCSIN_CLOCK_STEADY, before + 3 * MS);
    CHECK(tocsin_auto_event_wait(&event, &how) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_steady_now() - before >= 3 * MS);

    how = until(TOCSIN_CLOCK_SYSTEM, 1);  // in 1970
    CHECK(tocsin_auto_event_wait(&event, &how) == TOCSIN_TIMED_OUT);
    how = until(TOCSIN_CLOCK_FROM_NOW, 0);
    CHECK(tocsin_auto_event_wait(&event, &how) == TOCSIN_TIMED_OUT);
    how = until(TOCSIN_CLOCK_FROM_NOW, INT64_MIN);
    CHECK(tocsin_auto_event_wait(&event, &how) == TOCSIN_TIMED_OUT);
    CHECK_OK(tocsin_auto_event_set(&event));
    CHECK_OK(tocsin_auto_event_wait(&event, &how));  // what is there is taken, even after the deadline
}

static void a_set_releases_a_thread_that_sleeps(void) {
    tocsin_auto_event event = TOCSIN_EVENT_UNSET;
    pthread_t first = start(wait_for_token, &event), second = start(wait_for_token, &event);
    until_parked(&event, 2);
    CHECK_OK(tocsin_auto_event_set(&event));
    CHECK_OK(tocsin_auto_event_set(&event));
    join(first);
    join(second);
    CHECK(!tocsin_auto_event_is_set(&event));
}

struct late {
    tocsin_manual_event gate;
    tocsin_auto_event token;
    tocsin_semaphore passed;
};

static void* pass_gate(void* late) {
    CHECK_OK(tocsin_manual_event_wait(&((struct late*)late)->gate, NULL));
    CHECK_OK(tocsin_semaphore_release(&((struct late*)late)->passed, 1));
    return NULL;
}
static void* take_token(void* late) {
    CHECK_OK(tocsin_auto_event_wait(&((struct late*)late)->token, NULL));
    CHECK_OK(tocsin_semaphore_release(&((struct late*)late)->passed, 1));
    return NULL;
}

static void a_set_into_a_list_wakes_later(void) {
    struct late late;
    tocsin_wake_list list;
    pthread_t first, second;
    memset(&late, 0, sizeof late);
    CHECK_OK(tocsin_wake_list_init(&list));
    first = start(pass_gate, &late);
    second = start(take_token, &late);
    until_parked(&late.gate, 1);
    until_parked(&late.token, 1);
    CHECK_OK(tocsin_manual_event_set_into(&late.gate, &list));
    CHECK_OK(tocsin_auto_event_set_into(&late.token, &list));
    CHECK(tocsin_manual_event_is_set(&late.gate) &&
          !tocsin_auto_event_is_set(&late.token));                                // open; handed over
    CHECK(tocsin_semaphore_try_acquire(&late.passed, 1) == TOCSIN_NOTHING_DONE);  // both sleep
    CHECK_OK(tocsin_wake_list_wake(&list));
    CHECK_OK(tocsin_semaphore_acquire(&late.passed, 2, NULL));
    join(first);
    join(second);
    CHECK_OK(tocsin_wake_list_destroy(&list));
    REFUSED(tocsin_auto_event_set_into(&late.token, NULL));
    REFUSED(tocsin_auto_event_set_into(NULL, &list));
}

struct stoppable {
    tocsin_manual_event event;
    tocsin_stop stop;
};

static void* wait_until_stopped(void* argument) {
    struct stoppable* shared = (struct stoppable*)argument;
    tocsin_limits how = until(TOCSIN_CLOCK_NEVER, 0);
    how.stop = &shared->stop;
    CHECK(tocsin_manual_event_wait(&shared->event, &how) == TOCSIN_STOPPED);
    return NULL;
}

static void a_stop_ends_waits(void) {
    struct stoppable shared;
    tocsin_stop other;
    pthread_t thread;
    tocsin_manual_event_init(&shared.event, false);
    CHECK_OK(tocsin_stop_init(&shared.stop));
    CHECK_OK(tocsin_stop_share(&shared.stop, &other));
    REFUSED(tocsin_stop_share(&other, &other));
    thread = start(wait_until_stopped, &shared);
    until_parked(&shared.event, 1);
    CHECK(!tocsin_stop_is_requested(&shared.stop));
    CHECK_OK(tocsin_stop_request(&other));
    join(thread);
    CHECK(tocsin_stop_is_requested(&shared.stop));
    CHECK(tocsin_stop_request(&shared.stop) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_stop_destroy(&shared.stop));
    CHECK(tocsin_stop_is_requested(&other));
    CHECK_OK(tocsin_stop_destroy(&other));
    REFUSED(tocsin_stop_destroy(&other));
    REFUSED(tocsin_stop_share(&other, &shared.stop));
    REFUSED(tocsin_stop_request(&shared.stop));
}

const test_case events_cases[] = {
    CASE(initializers_are_what_init_makes),
    CASE(a_token_is_taken_once),
    CASE(a_gate_lets_everybody_pass),
    CASE(waits_end_at_their_deadlines_and_not_before),
    CASE(a_set_releases_a_thread_that_sleeps),
    CASE(a_set_into_a_list_wakes_later),
    CASE(a_stop_ends_waits),
    {NULL, NULL},
};
