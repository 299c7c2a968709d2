// SPDX-License-Identifier: Apache-2.0
// Errors and bad input. C11 and C++ at the same time.
#include "harness.h"

#include <signal.h>

static void every_status_has_a_text(void) {
    for (int status = TOCSIN_ERROR_UNKNOWN; status <= TOCSIN_NOTHING_DONE; ++status)
        CHECK(strcmp(tocsin_error_text((tocsin_status)status), "not a status") != 0);
    CHECK(strcmp(tocsin_error_text((tocsin_status)1000), "not a status") == 0);
    CHECK(tocsin_api_version() == TOCSIN_API_VERSION && tocsin_version()[0] != 0);
    REFUSED(tocsin_auto_event_set(NULL));
    CHECK(strstr(tocsin_last_error(), "tocsin_auto_event_set") != NULL && tocsin_last_system_error() == 0);
}

static int flush_nothing(void* context, tocsin_commit_group* group) {
    (void)context;
    (void)group;
    return 0;
}

static void null_is_refused(void) {
    tocsin_source source = timer_source(1);
    tocsin_ready_item item;
    tocsin_lock lock = TOCSIN_LOCK_INIT;
    tocsin_condition condition = TOCSIN_CONDITION_INIT;
    uint32_t word = 0;
    uint64_t expected = 0;
    size_t count;
    REFUSED(tocsin_manual_event_init(NULL, true));
    REFUSED(tocsin_manual_event_wait(NULL, NULL));
    CHECK(!tocsin_manual_event_is_set(NULL));
    REFUSED(tocsin_semaphore_release(NULL, 1));
    REFUSED(tocsin_latch_count_down(NULL, 1));
    REFUSED(tocsin_barrier_arrive_and_wait(NULL));
    REFUSED(tocsin_lock_release(NULL));
    REFUSED(tocsin_condition_wait(NULL, &lock, NULL));
    REFUSED(tocsin_condition_wait(&condition, NULL, NULL));
    REFUSED(tocsin_condition_wait_with(&condition, NULL, NULL));
    REFUSED(tocsin_stop_init(NULL));
    REFUSED(tocsin_stop_request(NULL));
    REFUSED(tocsin_wait_any(NULL, 1, NULL, NULL));
    REFUSED(tocsin_wait_any(&source, 0, NULL, NULL));
    REFUSED(tocsin_wait_all(&source, 0, NULL));
    REFUSED(tocsin_wait_set_init(NULL));
    REFUSED(tocsin_wait_set_wait(NULL, NULL, &item, 1, &count));
    REFUSED(tocsin_wait_timer_cancel(NULL));
    REFUSED(tocsin_pollable_init(NULL, &source));
    REFUSED(tocsin_process_end_init(NULL, 1));
    REFUSED(tocsin_signal_init(NULL, SIGUSR1));
    REFUSED(tocsin_group_commit_init(NULL, flush_nothing, NULL, NULL));
    REFUSED(tocsin_commit_group_rewind(NULL));
    REFUSED(tocsin_wait_on_address(NULL, 4, 0, NULL));
    REFUSED(tocsin_compare_exchange_and_wake(&word, 4, NULL, 0, 1));
    REFUSED(tocsin_compare_exchange_and_wake(NULL, 4, &expected, 0, 1));
    CHECK(tocsin_wake_by_address_all(NULL) == 0);
}

static void nonsense_is_refused_before_anything_is_taken(void) {
    union {
        uint64_t aligned[4];
        unsigned char bytes[32];
    } memory;
    tocsin_auto_event token = TOCSIN_EVENT_SET;
    tocsin_source source = source_at(TOCSIN_SOURCE_AUTO_EVENT, &token);
    tocsin_source sources[2];
    tocsin_limits how = until((tocsin_clock)77, 1);
    tocsin_stop gone = {NULL};
    tocsin_wait_set set;
    memset(&memory, 0, sizeof memory);
    REFUSED(tocsin_auto_event_wait(&token, &how));
    how = until(TOCSIN_CLOCK_NEVER, 0);
    how.stop = &gone;
    REFUSED(tocsin_wait_any(&source, 1, &how, NULL));
    how.stop = NULL;
    how.spin.mode = (tocsin_spin_mode)9;
    REFUSED(tocsin_auto_event_wait(&token, &how));
    REFUSED(tocsin_set_spin_policy(how.spin));
    tocsin_set_futex_table_growth(false);
    CHECK(!tocsin_futex_table_growth());
    tocsin_set_futex_table_growth(true);
    sources[0] = source;
    sources[1] = source_at((tocsin_source_kind)99, &token);
    REFUSED(tocsin_wait_any(sources, 2, NULL, NULL));
    CHECK(strstr(tocsin_last_error(), "source 1") != NULL);
    sources[1] = source_at(TOCSIN_SOURCE_AUTO_EVENT, NULL);
    REFUSED(tocsin_wait_any(sources, 2, NULL, NULL));
    sources[1] = descriptor_source(0, 0);
    REFUSED(tocsin_wait_any(sources, 2, NULL, NULL));
    sources[1] = source_at(TOCSIN_SOURCE_SEMAPHORE, memory.bytes + 1);
    REFUSED(tocsin_wait_any(sources, 2, NULL, NULL));
    CHECK(tocsin_auto_event_is_set(&token));

    REFUSED(tocsin_semaphore_release((tocsin_semaphore*)(void*)(memory.bytes + 2), 1));
    REFUSED(tocsin_wait_on_address(memory.bytes + 1, 2, 0, NULL));
    REFUSED(tocsin_wait_on_address(memory.bytes, 3, 0, NULL));
    REFUSED(tocsin_change_and_wake(memory.bytes + 4, 8, TOCSIN_CHANGE_ADD, 1, 1, NULL));
    REFUSED(tocsin_change_and_wake(memory.bytes, 4, (tocsin_change_kind)6, 1, 1, NULL));
    CHECK(memory.aligned[0] == 0 && memory.aligned[1] == 0);

    CHECK_OK(tocsin_wait_set_init(&set));
    REFUSED(tocsin_wait_set_add(&set, &source, UINT64_MAX));
    sources[0] = timer_source(1);
    REFUSED(tocsin_wait_set_add(&set, sources, 1));
    CHECK_OK(tocsin_wait_set_destroy(&set));
}

const test_case errors_cases[] = {
    CASE(every_status_has_a_text),
    CASE(null_is_refused),
    CASE(nonsense_is_refused_before_anything_is_taken),
    {NULL, NULL},
};
