// SPDX-License-Identifier: Apache-2.0
// Waits for several sources. C11 and C++ at the same time.
#include "harness.h"

#include <errno.h>
#include <unistd.h>

static void one_source_of_each_kind_ends_a_wait(void) {
    tocsin_manual_event gate = TOCSIN_EVENT_UNSET;
    tocsin_auto_event token = TOCSIN_EVENT_UNSET;
    tocsin_semaphore semaphore = TOCSIN_SEMAPHORE_INIT(0);
    tocsin_latch latch;
    tocsin_source all[6];
    tocsin_any_result result;
    tocsin_limits now = until(TOCSIN_CLOCK_FROM_NOW, 0);
    int ends[2];
    char byte = 0;
    CHECK(pipe(ends) == 0);
    tocsin_latch_init(&latch, 1);
    all[0] = source_at(TOCSIN_SOURCE_MANUAL_EVENT, &gate);
    all[1] = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    all[2] = source_at(TOCSIN_SOURCE_SEMAPHORE, &semaphore);
    all[3] = source_at(TOCSIN_SOURCE_LATCH, &latch);
    all[4] = descriptor_source(ends[0], TOCSIN_READABLE);
    all[5] = timer_source(3600000 * (int64_t)MS);
    CHECK(tocsin_wait_any(all, 6, &now, &result) == TOCSIN_TIMED_OUT && result.index == SIZE_MAX);
    all[5] = timer_source(20 * MS);
    CHECK_OK(tocsin_wait_any(all, 6, NULL, &result));
    CHECK(result.index == 5);
    CHECK(write(ends[1], &byte, 1) == 1);
    CHECK_OK(tocsin_wait_any(all, 6, NULL, &result));
    CHECK(result.index == 4 && result.found == TOCSIN_READABLE);
    tocsin_latch_count_down(&latch, 1);
    CHECK_OK(tocsin_wait_any(all, 6, NULL, &result));
    CHECK(result.index == 3);
    tocsin_semaphore_release(&semaphore, 1);
    CHECK_OK(tocsin_wait_any(all, 6, NULL, &result));
    CHECK(result.index == 2 && tocsin_semaphore_try_acquire(&semaphore, 1) == TOCSIN_NOTHING_DONE);
    tocsin_auto_event_set(&token);
    CHECK_OK(tocsin_wait_any(all, 6, NULL, &result));
    CHECK(result.index == 1 && !tocsin_auto_event_is_set(&token));
    tocsin_manual_event_set(&gate);
    CHECK_OK(tocsin_wait_any(all, 6, NULL, &result));
    CHECK(result.index == 0);
    close(ends[0]);
    close(ends[1]);
    CHECK_OK(tocsin_manual_event_reset(&gate));
    CHECK(tocsin_wait_any(all + 4, 1, NULL, &result) == TOCSIN_ERROR_BAD_DESCRIPTOR);
    CHECK(tocsin_last_system_error() == EBADF && strstr(tocsin_last_error(), "tocsin_wait_any") != NULL);
}

struct many {
    tocsin_auto_event events[40];
    size_t index;
};

static void* wait_for_many(void* argument) {
    struct many* many = (struct many*)argument;
    tocsin_source all[40];
    tocsin_any_result result;
    for (int i = 0; i != 40; ++i) all[i] = source_at(TOCSIN_SOURCE_AUTO_EVENT, &many->events[i]);
    CHECK_OK(tocsin_wait_any(all, 40, NULL, &result));
    many->index = result.index;
    return NULL;
}

static void a_wait_has_more_sources_than_fit_on_its_stack(void) {
    struct many many;
    pthread_t thread;
    memset(&many, 0, sizeof many);
    thread = start(wait_for_many, &many);
    until_parked(&many.events[39], 1);
    tocsin_auto_event_set(&many.events[37]);
    join(thread);
    CHECK(many.index == 37);
}

static void a_wait_for_all_takes_all_or_none(void) {
    tocsin_auto_event token = TOCSIN_EVENT_SET;
    tocsin_semaphore semaphore = TOCSIN_SEMAPHORE_INIT(0);
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 1);
    tocsin_source both[3];
    both[0] = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    both[1] = source_at(TOCSIN_SOURCE_SEMAPHORE, &semaphore);
    both[2] = both[0];
    CHECK(tocsin_wait_all(both, 2, &how) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_auto_event_is_set(&token));
    REFUSED(tocsin_wait_all(both, 3, &how));
    tocsin_semaphore_release(&semaphore, 1);
    CHECK_OK(tocsin_wait_all(both, 2, NULL));
    CHECK(!tocsin_auto_event_is_set(&token));
    both[1] = descriptor_source(0, TOCSIN_READABLE);
    REFUSED(tocsin_wait_all(both, 2, NULL));
}

static void a_ticker_is_taken_again_and_again(void) {
    const int64_t begin = tocsin_steady_now() - 25 * MS;
    tocsin_ticker ticker;
    tocsin_auto_event never = TOCSIN_EVENT_UNSET;
    tocsin_limits now = until(TOCSIN_CLOCK_FROM_NOW, 0);
    tocsin_any_result result;
    tocsin_source sources[2];
    sources[0] = source_at(TOCSIN_SOURCE_AUTO_EVENT, &never);
    sources[1] = source_at(TOCSIN_SOURCE_TICKER, &ticker);
    CHECK_OK(tocsin_ticker_init(&ticker, until(TOCSIN_CLOCK_STEADY, begin).until, 10 * MS));
    CHECK(tocsin_ticker_ticks(&ticker) == 0);
    CHECK_OK(tocsin_wait_any(sources, 2, NULL, &result));
    CHECK(result.index == 1 && tocsin_ticker_ticks(&ticker) >= 3);
    CHECK_OK(tocsin_ticker_init(&ticker, now.until, (int64_t)3600000 * MS));
    CHECK_OK(tocsin_wait_any(sources, 2, NULL, &result));
    CHECK(tocsin_ticker_ticks(&ticker) == 1);
    CHECK(tocsin_wait_any(sources, 2, &now, &result) == TOCSIN_TIMED_OUT);
    CHECK_OK(tocsin_ticker_destroy(&ticker));
    REFUSED(tocsin_ticker_init(&ticker, now.until, 0));
    REFUSED(tocsin_ticker_init(NULL, now.until, 1));
    sources[1] = source_at(TOCSIN_SOURCE_TICKER, NULL);
    REFUSED(tocsin_wait_any(sources, 2, NULL, NULL));
}

static void the_order_may_be_fair_and_a_stop_first(void) {
    tocsin_manual_event gates[2] = {TOCSIN_EVENT_SET, TOCSIN_EVENT_SET};
    tocsin_source both[2];
    tocsin_any_result result;
    tocsin_stop stop;
    tocsin_limits how = until(TOCSIN_CLOCK_NEVER, 0);
    int taken[2] = {0, 0};
    int i;
    for (i = 0; i != 2; ++i) both[i] = source_at(TOCSIN_SOURCE_MANUAL_EVENT, &gates[i]);
    for (i = 0; i != 64; ++i) {
        CHECK_OK(tocsin_wait_any(both, 2, &how, &result));
        CHECK(result.index == 0);
    }
    how.order = TOCSIN_ORDER_FAIR;
    for (i = 0; i != 64 || taken[0] == 0 || taken[1] == 0; i += i != 64) {
        CHECK_OK(tocsin_wait_any(both, 2, &how, &result));
        ++taken[result.index];
    }
    CHECK_OK(tocsin_stop_init(&stop));
    CHECK_OK(tocsin_stop_request(&stop));
    how.stop = &stop;
    CHECK_OK(tocsin_wait_any(both, 2, &how, &result));
    CHECK_OK(tocsin_wait_all(both, 2, &how));
    how.stop_first = true;
    CHECK(tocsin_wait_any(both, 2, &how, &result) == TOCSIN_STOPPED);
    CHECK(tocsin_wait_all(both, 2, &how) == TOCSIN_STOPPED);
    how.stop_first = false;
    memset(&how.order, 0x7F, sizeof how.order);
    REFUSED(tocsin_wait_any(both, 2, &how, &result));
    CHECK_OK(tocsin_stop_destroy(&stop));
}

static void a_deadline_may_be_on_the_boot_clock(void) {
    tocsin_auto_event never = TOCSIN_EVENT_UNSET;
    const int64_t until_then = tocsin_boot_now() + 5 * MS;
    tocsin_limits how = until(TOCSIN_CLOCK_BOOT, until_then);
    CHECK(tocsin_auto_event_wait(&never, &how) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_boot_now() >= until_then);
    how.until.nanoseconds = 0;
    CHECK(tocsin_auto_event_wait(&never, &how) == TOCSIN_TIMED_OUT);
}

const test_case waits_cases[] = {
    CASE(one_source_of_each_kind_ends_a_wait),
    CASE(a_wait_has_more_sources_than_fit_on_its_stack),
    CASE(a_wait_for_all_takes_all_or_none),
    CASE(a_ticker_is_taken_again_and_again),
    CASE(the_order_may_be_fair_and_a_stop_first),
    CASE(a_deadline_may_be_on_the_boot_clock),
    {NULL, NULL},
};
