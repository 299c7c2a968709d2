// SPDX-License-Identifier: Apache-2.0
// A function that is called when a wait ends, and loops of the user. C11 and C++ at the same time.
#include "harness.h"

#include <poll.h>
#include <unistd.h>

struct ending {
    tocsin_operation* operation;  // to start again, or null
    tocsin_manual_event called;
    tocsin_status how;
    tocsin_any_result result;
    int calls, restarts;
    void* queued;  // by an executor
};

static void note_end(void* context, tocsin_status how, const tocsin_any_result* result) {
    struct ending* ending = (struct ending*)context;
    ending->how = how;
    ending->result = *result;
    ++ending->calls;
    if (ending->restarts != 0) {
        --ending->restarts;
        CHECK_OK(tocsin_operation_start(ending->operation, NULL));
        return;
    }
    tocsin_manual_event_set(&ending->called);
}

static bool queue_it(void* context, void* ended) {
    ((struct ending*)context)->queued = ended;
    return true;
}
static bool refuse_it(void* context, void* ended) {
    (void)context;
    (void)ended;
    return false;
}

static void* set_token(void* event) {
    CHECK_OK(tocsin_auto_event_set((tocsin_auto_event*)event));
    return NULL;
}

static void a_function_is_called_when_a_wait_ends(void) {
    struct ending ending;
    tocsin_auto_event token = TOCSIN_EVENT_UNSET;
    tocsin_operation operation;
    tocsin_source sources[2];
    tocsin_limits soon = until(TOCSIN_CLOCK_FROM_NOW, MS);
    int ends[2];
    pthread_t thread;
    memset(&ending, 0, sizeof ending);
    ending.operation = &operation;
    CHECK(pipe(ends) == 0);
    sources[0] = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    sources[1] = descriptor_source(ends[0], TOCSIN_READABLE);
    CHECK_OK(tocsin_operation_init(&operation, sources, 2, false, note_end, &ending));

    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK(tocsin_operation_start(&operation, NULL) == TOCSIN_ERROR_BUSY);
    thread = start(set_token, &token);
    CHECK_OK(tocsin_manual_event_wait(&ending.called, NULL));
    join(thread);
    CHECK(ending.calls == 1 && ending.how == TOCSIN_OK && ending.result.index == 0);

    tocsin_manual_event_reset(&ending.called);  // at a deadline
    CHECK_OK(tocsin_operation_start(&operation, &soon));
    CHECK_OK(tocsin_manual_event_wait(&ending.called, NULL));
    CHECK(ending.calls == 2 && ending.how == TOCSIN_TIMED_OUT && ending.result.index == SIZE_MAX);

    tocsin_manual_event_reset(&ending.called);  // by a descriptor
    CHECK(write(ends[1], "", 1) == 1);
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK_OK(tocsin_manual_event_wait(&ending.called, NULL));
    CHECK(ending.how == TOCSIN_OK && ending.result.index == 1 && ending.result.found == TOCSIN_READABLE);
    CHECK_OK(tocsin_operation_destroy(&operation));

    CHECK_OK(tocsin_operation_init(&operation, sources, 1, false, note_end, &ending));  // by a cancel
    CHECK(tocsin_operation_cancel(&operation) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK_OK(tocsin_operation_cancel(&operation));
    CHECK(ending.calls == 4 && ending.how == TOCSIN_STOPPED);

    ending.restarts = 1;  // started again by its own function
    CHECK_OK(tocsin_auto_event_set(&token));
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK_OK(tocsin_auto_event_set(&token));
    CHECK(ending.calls == 6 && ending.how == TOCSIN_OK && !tocsin_auto_event_is_set(&token));

    CHECK_OK(tocsin_operation_set_executor(&operation, queue_it, &ending));  // by an executor
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK_OK(tocsin_auto_event_set(&token));
    CHECK(ending.calls == 6 && ending.queued != NULL);
    tocsin_operation_run_ended(ending.queued);
    CHECK(ending.calls == 7);
    CHECK_OK(tocsin_operation_set_executor(&operation, refuse_it, NULL));
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK_OK(tocsin_auto_event_set(&token));
    CHECK(ending.calls == 8);

    CHECK_OK(tocsin_operation_start(&operation, NULL));  // destroyed while it waits
    CHECK_OK(tocsin_operation_destroy(&operation));
    CHECK_OK(tocsin_auto_event_set(&token));
    CHECK(ending.calls == 8 && tocsin_auto_event_is_set(&token));
    REFUSED(tocsin_operation_start(&operation, NULL));
    REFUSED(tocsin_operation_init(&operation, sources, 2, false, NULL, &ending));

    sources[1] = source_at(TOCSIN_SOURCE_MANUAL_EVENT, &ending.called);  // for all sources
    CHECK_OK(tocsin_operation_init(&operation, sources, 2, true, note_end, &ending));
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK(ending.calls == 9 && ending.result.index == SIZE_MAX && !tocsin_auto_event_is_set(&token));
    CHECK_OK(tocsin_operation_destroy(&operation));
    close(ends[0]);
    close(ends[1]);
}

struct watching {
    uint64_t id;
    int calls, descriptor, renewals;
    uint32_t asked;
};

static void note_watch(void* context, const tocsin_watch* watch) {
    struct watching* watching = (struct watching*)context;
    ++watching->calls;
    watching->id = watch->id;
    watching->descriptor = watch->descriptor;
    watching->asked = watch->asked;
    watching->renewals += watch->renewed ? 1 : 0;
}
static void count_call(void* count) { ++*(int*)count; }

static void a_loop_of_the_user_serves_operations(void) {
    struct ending ending;
    struct watching watching;
    tocsin_auto_event token = TOCSIN_EVENT_UNSET;
    tocsin_operation operation;
    tocsin_driver driver, other;
    tocsin_deadline next;
    tocsin_source sources[2];
    tocsin_limits soon = until(TOCSIN_CLOCK_FROM_NOW, 50 * MS);
    tocsin_limits late = until(TOCSIN_CLOCK_FROM_NOW, 3600000 * (int64_t)MS);
    int changes = 0;
    int ends[2];
    memset(&ending, 0, sizeof ending);
    memset(&watching, 0, sizeof watching);
    ending.operation = &operation;
    CHECK(pipe(ends) == 0);
    sources[0] = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    sources[1] = descriptor_source(ends[0], TOCSIN_READABLE);
    CHECK_OK(tocsin_driver_init(&driver, count_call, &changes));
    CHECK_OK(tocsin_operation_init(&operation, sources, 2, false, note_end, &ending));
    CHECK_OK(tocsin_operation_set_driver(&operation, &driver));
    CHECK_OK(tocsin_driver_next_deadline(&driver, &next));
    CHECK(next.clock == TOCSIN_CLOCK_NEVER && tocsin_driver_poll_timeout(&driver) == -1);

    do {  // at a deadline, in the loop; again if it is over before the wait begins
        changes = ending.calls = 0;
        CHECK_OK(tocsin_operation_start(&operation, &soon));
    } while (ending.calls != 0);
    CHECK(changes == 1);
    CHECK(tocsin_operation_set_driver(&operation, &driver) == TOCSIN_ERROR_BUSY);
    CHECK_OK(tocsin_driver_next_deadline(&driver, &next));
    CHECK(next.clock == TOCSIN_CLOCK_STEADY && next.nanoseconds > 0);
    CHECK(tocsin_driver_run_due_at(&driver, next.nanoseconds - 1) == TOCSIN_NOTHING_DONE &&
          ending.calls == 0);
    while (tocsin_driver_run_due_at(&driver, next.nanoseconds) == TOCSIN_NOTHING_DONE) sched_yield();
    CHECK(ending.calls == 1 && ending.how == TOCSIN_TIMED_OUT);
    CHECK(tocsin_steady_now() >= next.nanoseconds);
    CHECK(tocsin_driver_run_due(&driver) == TOCSIN_NOTHING_DONE);

    CHECK_OK(tocsin_operation_start(&operation, &late));  // by a descriptor
    CHECK_OK(tocsin_driver_update(&driver, note_watch, &watching));
    CHECK(watching.calls == 1 && watching.descriptor == ends[0] && watching.asked == TOCSIN_READABLE);
    CHECK(tocsin_driver_poll_timeout(&driver) > 3000000);
    CHECK(tocsin_driver_notify(&driver, watching.id, TOCSIN_WRITABLE) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_driver_notify(&driver, watching.id, TOCSIN_READABLE));
    CHECK(ending.calls == 2 && ending.how == TOCSIN_OK && ending.result.index == 1);
    CHECK(ending.result.found == TOCSIN_READABLE);
    CHECK_OK(tocsin_operation_start(&operation, NULL));
    CHECK(tocsin_driver_notify(&driver, watching.id, TOCSIN_READABLE) ==
          TOCSIN_NOTHING_DONE);  // an earlier watch
    CHECK_OK(tocsin_driver_update(&driver, note_watch, &watching));
    CHECK(watching.calls == 2 && watching.renewals == 1);
    CHECK_OK(tocsin_auto_event_set(&token));  // by a set, outside the loop
    CHECK(ending.calls == 3 && ending.result.index == 0);
    CHECK_OK(tocsin_driver_update(&driver, note_watch, &watching));
    CHECK(watching.calls == 3 && watching.asked == 0);

    CHECK_OK(tocsin_driver_init(&other, NULL, NULL));  // the default of those that have none
    CHECK_OK(tocsin_set_default_driver(&other));
    CHECK_OK(tocsin_operation_destroy(&operation));
    CHECK_OK(tocsin_operation_init(&operation, sources, 1, false, note_end, &ending));
    CHECK_OK(tocsin_operation_start(&operation, &late));
    CHECK_OK(tocsin_driver_next_deadline(&other, &next));
    CHECK(next.clock == TOCSIN_CLOCK_STEADY);
    CHECK_OK(tocsin_operation_cancel(&operation));
    CHECK_OK(tocsin_set_default_driver(NULL));
    CHECK_OK(tocsin_driver_next_deadline(&other, &next));
    CHECK(next.clock == TOCSIN_CLOCK_NEVER);

    REFUSED(tocsin_operation_set_driver(&operation, NULL));
    REFUSED(tocsin_driver_notify(&driver, watching.id, 128));
    REFUSED(tocsin_driver_notify(&driver, (uint64_t)ends[0], TOCSIN_READABLE));
    REFUSED(tocsin_driver_update(&driver, NULL, NULL));
    REFUSED(tocsin_driver_next_deadline(&driver, NULL));
    CHECK_OK(tocsin_operation_destroy(&operation));
    CHECK_OK(tocsin_driver_destroy(&driver));
    CHECK_OK(tocsin_driver_destroy(&other));
    REFUSED(tocsin_driver_run_due(&driver));
    REFUSED(tocsin_operation_set_driver(&operation, &driver));
    CHECK(tocsin_driver_poll_timeout(&driver) == -1);
    close(ends[0]);
    close(ends[1]);
}

static void a_driver_is_a_descriptor(void) {
    struct ending ending;
    tocsin_auto_event token = TOCSIN_EVENT_UNSET;
    tocsin_operation operation;
    tocsin_driver driver;
    const tocsin_source source = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    const tocsin_limits soon = until(TOCSIN_CLOCK_FROM_NOW, MS);
    struct pollfd polled = {-1, POLLIN, 0};
    memset(&ending, 0, sizeof ending);
    ending.operation = &operation;
    CHECK_OK(tocsin_driver_init(&driver, NULL, NULL));
    CHECK_OK(tocsin_operation_init(&operation, &source, 1, false, note_end, &ending));
    CHECK_OK(tocsin_operation_set_driver(&operation, &driver));
    const tocsin_status made = tocsin_driver_descriptor(&driver, &polled.fd);
    if (made != TOCSIN_ERROR_UNSUPPORTED) {  // a system without epoll
        CHECK_OK(made);
        CHECK(tocsin_driver_run_ready(&driver) == TOCSIN_NOTHING_DONE);
        CHECK(poll(&polled, 1, 0) == 0);
        CHECK_OK(tocsin_operation_start(&operation, &soon));
        while (ending.calls == 0) {
            CHECK(poll(&polled, 1, -1) == 1);
            (void)tocsin_driver_run_ready(&driver);
        }
        CHECK(ending.how == TOCSIN_TIMED_OUT);
    }
    REFUSED(tocsin_driver_descriptor(&driver, NULL));
    CHECK_OK(tocsin_operation_destroy(&operation));
    CHECK_OK(tocsin_driver_destroy(&driver));
    REFUSED(tocsin_driver_run_ready(&driver));
}

const test_case operations_cases[] = {
    CASE(a_function_is_called_when_a_wait_ends),
    CASE(a_loop_of_the_user_serves_operations),
    CASE(a_driver_is_a_descriptor),
    {NULL, NULL},
};
