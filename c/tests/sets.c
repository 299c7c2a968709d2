// SPDX-License-Identifier: Apache-2.0
// Sets, pollables, processes and signals. C11 and C++ at the same time.
#include "harness.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct busy_set {
    tocsin_wait_set set;
};

static void* wait_in_set(void* argument) {
    struct busy_set* shared = (struct busy_set*)argument;
    tocsin_ready_item item;
    size_t count;
    tocsin_status ended = TOCSIN_ERROR_BUSY;
    while (ended == TOCSIN_ERROR_BUSY) ended = tocsin_wait_set_wait(&shared->set, NULL, &item, 1, &count);
    CHECK_OK(ended);
    CHECK(count == 1 && item.tag == 5);
    return NULL;
}

static void a_set_reports_tags(void) {
    struct busy_set shared;
    tocsin_auto_event token = TOCSIN_EVENT_UNSET, second = TOCSIN_EVENT_UNSET;
    tocsin_source source = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    tocsin_source other = source_at(TOCSIN_SOURCE_AUTO_EVENT, &second);
    tocsin_source end;
    tocsin_wait_timer timer;
    tocsin_ready_item items[4];
    tocsin_limits now = until(TOCSIN_CLOCK_FROM_NOW, 0);
    size_t count;
    int ends[2];
    char byte = 0;
    CHECK(pipe(ends) == 0);
    end = descriptor_source(ends[0], TOCSIN_READABLE);
    CHECK_OK(tocsin_wait_set_init(&shared.set));
    CHECK_OK(tocsin_wait_timer_init(&timer));
    CHECK_OK(tocsin_wait_set_add(&shared.set, &source, 1));
    CHECK(tocsin_wait_set_add(&shared.set, &source, 2) == TOCSIN_ERROR_EXISTS);
    CHECK_OK(tocsin_wait_set_add(&shared.set, &other, 2));
    CHECK_OK(tocsin_wait_set_add(&shared.set, &end, 3));
    CHECK_OK(tocsin_wait_set_add_timer(&shared.set, &timer, 4));
    CHECK(tocsin_wait_set_wait(&shared.set, &now, items, 4, &count) == TOCSIN_TIMED_OUT && count == 0);
    tocsin_auto_event_set(&token);
    tocsin_auto_event_set(&second);
    CHECK_OK(tocsin_wait_set_wait(&shared.set, NULL, items, 4, &count));
    CHECK(count == 2 && items[0].tag + items[1].tag == 3);
    CHECK(write(ends[1], &byte, 1) == 1);
    CHECK_OK(tocsin_wait_set_wait(&shared.set, NULL, items, 4, &count));
    CHECK(count == 1 && items[0].tag == 3 && items[0].found == TOCSIN_READABLE);
    CHECK_OK(tocsin_wait_set_remove(&shared.set, &end));
    CHECK(tocsin_wait_set_remove(&shared.set, &end) == TOCSIN_NOTHING_DONE);
    CHECK_OK(tocsin_wait_timer_reset(&timer, until(TOCSIN_CLOCK_FROM_NOW, MS).until));
    CHECK(tocsin_wait_timer_is_armed(&timer));
    CHECK_OK(tocsin_wait_set_change_timer(&shared.set, &timer, 44));
    CHECK_OK(tocsin_wait_set_wait(&shared.set, NULL, items, 4, &count));
    CHECK(count == 1 && items[0].tag == 44 && !tocsin_wait_timer_is_armed(&timer));
    CHECK_OK(tocsin_wait_timer_cancel(&timer));
    CHECK_OK(tocsin_wait_set_remove_timer(&shared.set, &timer));
    CHECK(tocsin_wait_set_change_timer(&shared.set, &timer, 4) == TOCSIN_ERROR_NOT_FOUND);
    CHECK_OK(tocsin_wait_set_change(&shared.set, &source, 5));
    {
        pthread_t thread = start(wait_in_set, &shared);
        tocsin_status busy = TOCSIN_TIMED_OUT;
        while (busy == TOCSIN_TIMED_OUT) busy = tocsin_wait_set_wait(&shared.set, &now, items, 4, &count);
        CHECK(busy == TOCSIN_ERROR_BUSY);
        tocsin_auto_event_set(&token);
        join(thread);
    }
    CHECK_OK(tocsin_wait_timer_destroy(&timer));
    CHECK_OK(tocsin_wait_set_destroy(&shared.set));
    REFUSED(tocsin_wait_set_add(&shared.set, &source, 1));
    close(ends[0]);
    close(ends[1]);
}

static void a_timer_of_a_set_repeats(void) {
    const int64_t begin = tocsin_steady_now() - 25 * MS;
    tocsin_wait_set set;
    tocsin_wait_timer timer;
    tocsin_ready_item item;
    tocsin_limits now = until(TOCSIN_CLOCK_FROM_NOW, 0);
    size_t count;
    CHECK_OK(tocsin_wait_set_init(&set));
    CHECK_OK(tocsin_wait_timer_init(&timer));
    CHECK_OK(tocsin_wait_set_add_timer(&set, &timer, 4));
    CHECK(tocsin_wait_timer_ticks(&timer) == 0);
    CHECK_OK(tocsin_wait_timer_reset_every(&timer, until(TOCSIN_CLOCK_STEADY, begin).until,
                                           (int64_t)3600000 * MS));
    CHECK_OK(tocsin_wait_set_wait(&set, NULL, &item, 1, &count));
    CHECK(count == 1 && item.tag == 4 && tocsin_wait_timer_ticks(&timer) == 1);
    CHECK(tocsin_wait_set_wait(&set, &now, &item, 1, &count) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_wait_timer_is_armed(&timer));
    CHECK_OK(tocsin_wait_timer_reset_every(&timer, until(TOCSIN_CLOCK_STEADY, begin).until, 10 * MS));
    CHECK_OK(tocsin_wait_set_wait(&set, NULL, &item, 1, &count));
    CHECK(tocsin_wait_timer_ticks(&timer) >= 3);
    REFUSED(tocsin_wait_timer_reset_every(&timer, until(TOCSIN_CLOCK_STEADY, begin).until, 0));
    CHECK_OK(tocsin_wait_timer_destroy(&timer));
    CHECK_OK(tocsin_wait_set_destroy(&set));
}

static void a_view_is_readable_when_its_event_is_set(void) {
    tocsin_auto_event token = TOCSIN_EVENT_UNSET;
    tocsin_source source = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    tocsin_pollable watched;
    struct pollfd polled = {-1, POLLIN, 0};
    CHECK_OK(tocsin_pollable_init(&watched, &source));
    polled.fd = tocsin_pollable_descriptor(&watched);
    CHECK(tocsin_pollable_try_wait(&watched) == TOCSIN_NOTHING_DONE);
    CHECK(poll(&polled, 1, 0) == 0);
    tocsin_auto_event_set(&token);
    CHECK(poll(&polled, 1, -1) == 1);
    CHECK_OK(tocsin_pollable_try_wait(&watched));
    CHECK_OK(tocsin_pollable_destroy(&watched));
    CHECK(tocsin_pollable_descriptor(&watched) == -1);
    source = timer_source(1);
    REFUSED(tocsin_pollable_init(&watched, &source));
}

static void a_set_is_a_descriptor(void) {
    tocsin_auto_event token = TOCSIN_EVENT_UNSET;
    const tocsin_source source = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    const tocsin_limits at_once = until(TOCSIN_CLOCK_FROM_NOW, 0);
    tocsin_wait_set set;
    tocsin_ready_item item;
    size_t count;
    struct pollfd polled = {-1, POLLIN, 0};
    CHECK_OK(tocsin_wait_set_init(&set));
    CHECK_OK(tocsin_wait_set_add(&set, &source, 5));
    const tocsin_status made = tocsin_wait_set_descriptor(&set, &polled.fd);
    if (made != TOCSIN_ERROR_UNSUPPORTED) {  // a system without epoll
        CHECK_OK(made);
        CHECK(poll(&polled, 1, 0) == 1);
        CHECK(tocsin_wait_set_wait(&set, &at_once, &item, 1, &count) == TOCSIN_TIMED_OUT);
        CHECK(poll(&polled, 1, 0) == 0);
        tocsin_auto_event_set(&token);
        CHECK(poll(&polled, 1, 0) == 1);
        CHECK_OK(tocsin_wait_set_wait(&set, &at_once, &item, 1, &count));
        CHECK(count == 1 && item.tag == 5);
        CHECK(poll(&polled, 1, 0) == 0);
    }
    REFUSED(tocsin_wait_set_descriptor(&set, NULL));
    CHECK_OK(tocsin_wait_set_destroy(&set));
    REFUSED(tocsin_wait_set_descriptor(&set, &polled.fd));
    CHECK(polled.fd == -1);
}

static void the_end_of_a_process_is_a_source(void) {
    tocsin_process_end end;
    tocsin_process_exit how = {0, 0};
    tocsin_source source;
    const pid_t child = fork();
    if (child == 0) _exit(7);
    const tocsin_status made = tocsin_process_end_init(&end, child);
    if (made == TOCSIN_ERROR_UNSUPPORTED || made == TOCSIN_ERROR_NOT_PERMITTED) {  // a kernel or a sandbox
        waitpid(child, NULL, 0);
        return;
    }
    CHECK_OK(made);
    source = source_at(TOCSIN_SOURCE_PROCESS_END, &end);
    CHECK_OK(tocsin_wait_any(&source, 1, NULL, NULL));
    CHECK_OK(tocsin_process_end_try_wait(&end));
    CHECK(tocsin_process_end_descriptor(&end) >= 0);
    if (tocsin_process_end_exit_status(&end, &how) == TOCSIN_OK) CHECK(how.code == 7 && how.by_signal == 0);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK_OK(tocsin_process_end_destroy(&end));
    REFUSED(tocsin_process_end_init(&end, 0));
    REFUSED(tocsin_process_end_try_wait(&end));
    CHECK(tocsin_process_end_init(&end, 0x7FFFFFFF) == TOCSIN_ERROR_NOT_FOUND);
}

static void a_signal_is_a_source(void) {
    tocsin_signal usr1;
    tocsin_source source;
    tocsin_any_result result;
    CHECK_OK(tocsin_signal_init(&usr1, SIGUSR1));
    source = source_at(TOCSIN_SOURCE_SIGNAL, &usr1);
    CHECK(tocsin_signal_try_wait(&usr1) == TOCSIN_NOTHING_DONE);
    raise(SIGUSR1);
    CHECK_OK(tocsin_wait_any(&source, 1, NULL, &result));
    CHECK(result.found == TOCSIN_READABLE && tocsin_signal_descriptor(&usr1) >= 0);
    CHECK_OK(tocsin_signal_try_wait(&usr1));
    CHECK_OK(tocsin_signal_destroy(&usr1));
    REFUSED(tocsin_wait_any(&source, 1, NULL, &result));
    REFUSED(tocsin_signal_init(&usr1, SIGKILL));
}

const test_case sets_cases[] = {
    CASE(a_set_reports_tags),
    CASE(a_timer_of_a_set_repeats),
    CASE(a_view_is_readable_when_its_event_is_set),
    CASE(a_set_is_a_descriptor),
    CASE(the_end_of_a_process_is_a_source),
    CASE(a_signal_is_a_source),
    {NULL, NULL},
};
