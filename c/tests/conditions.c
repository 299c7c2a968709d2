// SPDX-License-Identifier: Apache-2.0
// Locks and conditions. C11 and C++ at the same time.
#include "harness.h"

struct queue {
    tocsin_lock lock;
    pthread_mutex_t mutex;
    tocsin_condition changed;
    int items, taken;
};

static void lock_mutex(void* mutex) { pthread_mutex_lock((pthread_mutex_t*)mutex); }
static void unlock_mutex(void* mutex) { pthread_mutex_unlock((pthread_mutex_t*)mutex); }

static void* take_under_lock(void* argument) {
    struct queue* queue = (struct queue*)argument;
    CHECK_OK(tocsin_lock_acquire(&queue->lock, NULL));
    while (queue->items == 0) CHECK_OK(tocsin_condition_wait(&queue->changed, &queue->lock, NULL));
    --queue->items;
    ++queue->taken;
    CHECK_OK(tocsin_lock_release(&queue->lock));
    return NULL;
}

static void* take_under_mutex(void* argument) {
    struct queue* queue = (struct queue*)argument;
    const tocsin_lockable lock = {&queue->mutex, unlock_mutex, lock_mutex};
    lock_mutex(&queue->mutex);
    while (queue->items == 0) CHECK_OK(tocsin_condition_wait_with(&queue->changed, &lock, NULL));
    --queue->items;
    ++queue->taken;
    unlock_mutex(&queue->mutex);
    return NULL;
}

static void a_condition_wakes_with_any_lock(void) {
    struct queue queue;
    tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 1);
    memset(&queue, 0, sizeof queue);
    pthread_mutex_init(&queue.mutex, NULL);
    for (int kind = 0; kind != 2; ++kind) {
        void* (*const take)(void*) = kind == 0 ? take_under_lock : take_under_mutex;
        pthread_t threads[3];
        for (int i = 0; i != 3; ++i) threads[i] = start(take, &queue);
        until_parked(&queue.changed, 3);
        CHECK_OK(tocsin_lock_acquire(&queue.lock, NULL));
        lock_mutex(&queue.mutex);
        queue.items = 3;
        unlock_mutex(&queue.mutex);
        CHECK_OK(tocsin_lock_release(&queue.lock));
        CHECK_OK(tocsin_condition_notify_one(&queue.changed));
        CHECK_OK(tocsin_condition_notify_all(&queue.changed));
        for (int i = 0; i != 3; ++i) join(threads[i]);
        CHECK(queue.items == 0);
    }
    CHECK(queue.taken == 6);

    CHECK_OK(tocsin_lock_try_acquire(&queue.lock));
    CHECK(tocsin_lock_try_acquire(&queue.lock) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_lock_acquire(&queue.lock, &how) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_condition_wait(&queue.changed, &queue.lock, &how) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_lock_try_acquire(&queue.lock) == TOCSIN_NOTHING_DONE);  // it has the lock again
    {
        const tocsin_lockable lock = {&queue.lock, NULL, NULL};
        tocsin_auto_event event = TOCSIN_EVENT_SET;
        tocsin_source other = source_at(TOCSIN_SOURCE_AUTO_EVENT, &event);
        tocsin_any_result result;
        CHECK_OK(tocsin_condition_wait_any(&queue.changed, &lock, &other, 1, NULL, &result));
        CHECK(result.index == 1);
        CHECK(tocsin_condition_wait_any(&queue.changed, &lock, &other, 1, &how, &result) == TOCSIN_TIMED_OUT);
    }
    CHECK_OK(tocsin_lock_release(&queue.lock));
    CHECK_OK(tocsin_condition_destroy(&queue.changed));
    pthread_mutex_destroy(&queue.mutex);
}

const test_case conditions_cases[] = {
    CASE(a_condition_wakes_with_any_lock),
    {NULL, NULL},
};
