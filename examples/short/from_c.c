// SPDX-License-Identifier: Apache-2.0
// The library in C: a thread waits for a job or the shutdown, whichever comes first.
#include <pthread.h>
#include <stdio.h>
#include <tocsin.h>

static tocsin_auto_event job = TOCSIN_EVENT_UNSET;
static tocsin_auto_event answer = TOCSIN_EVENT_UNSET;
static tocsin_manual_event shutdown = TOCSIN_EVENT_UNSET;

static void* work(void* jobs) {
    const tocsin_source sources[] = {
        {.kind = TOCSIN_SOURCE_MANUAL_EVENT, .of.object = &shutdown},
        {.kind = TOCSIN_SOURCE_AUTO_EVENT, .of.object = &job},
    };
    tocsin_any_result first;
    while (tocsin_wait_any(sources, 2, NULL, &first) == TOCSIN_OK && first.index == 1) {
        ++*(int*)jobs;
        tocsin_auto_event_set(&answer);
    }
    return NULL;
}

int main(void) {
    int jobs = 0;
    pthread_t worker;
    if (pthread_create(&worker, NULL, work, &jobs) != 0) return 2;
    for (int i = 0; i != 3; ++i) {
        tocsin_auto_event_set(&job);
        tocsin_auto_event_wait(&answer, NULL);
    }
    tocsin_manual_event_set(&shutdown);
    pthread_join(worker, NULL);
    printf("%d jobs\n", jobs);
    return jobs == 3 ? 0 : 1;
}
