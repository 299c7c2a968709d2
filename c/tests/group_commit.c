// SPDX-License-Identifier: Apache-2.0
// Group commit. C11 and C++ at the same time.
#include "harness.h"

enum { submitters = 4, rounds = 200 };

struct log {
    tocsin_group_commit commit;
    int flushed, groups, leave_after;
};

static int flush_some(void* context, tocsin_commit_group* group) {
    struct log* log = (struct log*)context;
    void* submission;
    int failure = 0, covered = 0;
    ++log->groups;
    CHECK(tocsin_group_commit_submit(&log->commit, &failure, NULL, NULL) == TOCSIN_ERROR_INVALID);
    while (tocsin_commit_group_next(group, &submission)) {
        if (log->leave_after != 0 && covered == log->leave_after) {
            CHECK_OK(tocsin_commit_group_leave(group));
            break;
        }
        ++covered;
    }
    CHECK(tocsin_commit_group_size(group) == (size_t)covered);
    CHECK_OK(tocsin_commit_group_rewind(group));
    REFUSED(tocsin_commit_group_leave(group));
    while (tocsin_commit_group_next(group, &submission)) {
        if (*(int*)submission < 0) failure = *(int*)submission;
        ++log->flushed;
    }
    return failure;
}

static void* submit_often(void* log) {
    for (int i = 0; i != rounds; ++i) {
        int number = i;
        CHECK_OK(tocsin_group_commit_submit(&((struct log*)log)->commit, &number, NULL, NULL));
    }
    return NULL;
}

static void a_flush_of_c_covers_submissions_once(void) {
    for (int leave = 0; leave != 2; ++leave) {
        struct log log;
        tocsin_group_commit_statistics statistics;
        tocsin_limits past = until(TOCSIN_CLOCK_FROM_NOW, 0);
        pthread_t threads[submitters];
        int failure = 1, number = -3;
        memset(&log, 0, sizeof log);
        log.leave_after = leave;
        CHECK_OK(tocsin_group_commit_init(&log.commit, flush_some, &log, NULL));
        for (int i = 0; i != submitters; ++i) threads[i] = start(submit_often, &log);
        for (int i = 0; i != submitters; ++i) join(threads[i]);
        CHECK(log.flushed == submitters * rounds);
        /* Nobody leads, so a deadline that has passed lets the call flush. */
        CHECK(tocsin_group_commit_submit(&log.commit, &number, &past, &failure) == TOCSIN_ERROR_FLUSH);
        CHECK(failure == -3);
        failure = 1;
        CHECK(tocsin_group_commit_submit(&log.commit, &number, NULL, &failure) == TOCSIN_ERROR_FLUSH);
        CHECK(failure == -3);
        CHECK_OK(tocsin_group_commit_read_statistics(&log.commit, &statistics));
        CHECK(statistics.failed == 2 && statistics.groups == (uint64_t)log.groups);
        CHECK(statistics.submissions == submitters * rounds + 2 && statistics.waiting == 0);
        CHECK(leave == 0 || statistics.largest_group == 1);
        CHECK_OK(tocsin_group_commit_destroy(&log.commit));
        REFUSED(tocsin_group_commit_submit(&log.commit, &number, NULL, NULL));
    }
}

const test_case group_commit_cases[] = {
    CASE(a_flush_of_c_covers_submissions_once),
    {NULL, NULL},
};
