// SPDX-License-Identifier: Apache-2.0
// What a program can learn of its waits. C11 and C++ at the same time.
#include "harness.h"

static void parked_waits_are_described(void) {
    tocsin_auto_event event = TOCSIN_EVENT_UNSET;
    char text[4096], little[8];
    size_t length;
    pthread_t thread = start(wait_for_token, &event);
    until_parked(&event, 1);
    CHECK_OK(tocsin_name_address(&event, "the token"));
    length = tocsin_describe_parked_waits(text, sizeof text);
    CHECK(length == strlen(text) && strstr(text, "the token") != NULL);
    CHECK(tocsin_describe_parked_waits(little, sizeof little) > 7 && strlen(little) == 7);
    CHECK_OK(tocsin_name_address(&event, NULL));
    tocsin_auto_event_set(&event);
    join(thread);
}

struct reports {
    const volatile void* event;
    tocsin_auto_event told;
    int times;
    tocsin_parked_wait wait;
    char name[32];
};

static void note_report(void* context, const tocsin_parked_wait* wait) {
    struct reports* reports = (struct reports*)context;
    if (wait->address != reports->event) return;
    ++reports->times;
    reports->wait = *wait;
    snprintf(reports->name, sizeof reports->name, "%s", wait->name);
    tocsin_auto_event_set(&reports->told);
}

static void a_watchdog_reports_a_long_wait_once(void) {
    tocsin_auto_event event = TOCSIN_EVENT_UNSET;
    struct reports reports;
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 20 * MS);
    tocsin_watchdog watchdog;
    const int64_t before = tocsin_steady_now();
    pthread_t thread;
    memset(&reports, 0, sizeof reports);
    reports.event = &event;
    CHECK_OK(tocsin_name_address(&event, "the token"));
    CHECK_OK(tocsin_watchdog_init(&watchdog, 2 * MS, note_report, &reports));
    thread = start(wait_for_token, &event);
    CHECK_OK(tocsin_auto_event_wait(&reports.told, NULL));
    CHECK(tocsin_steady_now() - reports.wait.since >= 2 * MS && reports.wait.since >= before);
    CHECK(tocsin_auto_event_wait(&reports.told, &how) == TOCSIN_TIMED_OUT);  // no second time
    CHECK_OK(tocsin_watchdog_destroy(&watchdog));
    CHECK(reports.times == 1 && reports.wait.what == TOCSIN_PARKED_EVENT && reports.wait.thread != 0);
    CHECK(strcmp(reports.wait.type, "event") == 0 && strcmp(reports.name, "the token") == 0);
    CHECK_OK(tocsin_name_address(&event, NULL));
    tocsin_auto_event_set(&event);
    join(thread);
    REFUSED(tocsin_watchdog_destroy(&watchdog));
    REFUSED(tocsin_watchdog_init(&watchdog, 1, NULL, NULL));
    REFUSED(tocsin_watchdog_init(&watchdog, -1, note_report, NULL));
    REFUSED(tocsin_watchdog_init(NULL, 1, note_report, NULL));
}

static void waits_are_counted_if_the_library_counts(void) {
    tocsin_wait_counters before, after;
    tocsin_auto_event event = TOCSIN_EVENT_UNSET;
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 100 * MS);
    const tocsin_status counts = tocsin_read_wait_counters(&before);
    how.spin.mode = TOCSIN_SPIN_NONE;
    do {  // again if it is over before the thread sleeps
        CHECK(tocsin_auto_event_wait(&event, &how) == TOCSIN_TIMED_OUT);
        CHECK(tocsin_read_wait_counters(&after) == counts);
    } while (TOCSIN_TESTS_COUNT && after.slept == before.slept);
    if (TOCSIN_TESTS_COUNT) {
        CHECK_OK(counts);
    } else {
        CHECK(counts == TOCSIN_ERROR_UNSUPPORTED && after.slept == 0 &&
              strstr(tocsin_last_error(), "TOCSIN_COUNTERS"));
    }
    REFUSED(tocsin_read_wait_counters(NULL));
}

const test_case diagnose_cases[] = {
    CASE(parked_waits_are_described),
    CASE(a_watchdog_reports_a_long_wait_once),
    CASE(waits_are_counted_if_the_library_counts),
    {NULL, NULL},
};
