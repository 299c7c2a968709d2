// SPDX-License-Identifier: Apache-2.0
// Runs the tests of tocsin.h: the cases of the other files in this folder.
#include "harness.h"

int failures = 0;

void check(bool holds, const char* what, const char* file, int line) {
    if (holds) return;
    ++failures;
    printf("%s:%d: does not hold: %s (last error: %s)\n", file, line, what, tocsin_last_error());
}

void* wait_for_token(void* event) {
    CHECK_OK(tocsin_auto_event_wait((tocsin_auto_event*)event, NULL));
    return NULL;
}

int main(void) {
    const test_case* const subjects[] = {
        events_cases, semaphores_cases,   addresses_cases, waits_cases,    operations_cases, conditions_cases,
        sets_cases,   group_commit_cases, errors_cases,    diagnose_cases, shared_cases,
    };
    for (size_t i = 0; i != sizeof subjects / sizeof subjects[0]; ++i) {
        for (const test_case* each = subjects[i]; each->name != NULL; ++each) {
            const int before = failures;
            each->run();
            fflush(stdout);
            if (failures != before) printf("FAILED: %s\n", each->name);
        }
    }
    printf(failures == 0 ? "all well\n" : "%d checks failed\n", failures);
    return failures == 0 ? 0 : 1;
}
