// SPDX-License-Identifier: Apache-2.0
// Memory and objects that processes share. C11 and C++ at the same time.
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE  // for syscall()
#endif
#include "harness.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void bad_arguments_for_shared_memory_are_refused(void) {
    tocsin_shared_memory memory = {&memory};
    tocsin_shared_manual_event* event = NULL;
    static tocsin_shared_auto_event mine;
    uint8_t* const at = (uint8_t*)&mine;
    REFUSED(tocsin_shared_memory_open(NULL, "/tocsin-c"));
    REFUSED(tocsin_shared_memory_open(&memory, NULL));
    REFUSED(tocsin_shared_memory_destroy(NULL));
    REFUSED(tocsin_shared_memory_unlink(NULL));
    REFUSED(tocsin_shared_manual_event_at(at, sizeof mine, NULL));
    REFUSED(tocsin_shared_manual_event_at(at + 1, 64, &event));
    REFUSED(tocsin_shared_manual_event_at(at, 63, &event));
    CHECK(event == NULL && strstr(tocsin_last_error(), "tocsin_shared_manual_event_at") != NULL);
    REFUSED(tocsin_shared_manual_event_set(NULL));
    REFUSED(tocsin_shared_auto_event_wait(NULL, NULL));
    REFUSED(tocsin_shared_semaphore_release(NULL, 1));
    REFUSED(tocsin_shared_lock_acquire(NULL, NULL));
    CHECK(!tocsin_shared_manual_event_is_set(NULL) && tocsin_shared_semaphore_available(NULL) == 0);
    CHECK(tocsin_shared_memory_data(NULL) == NULL && tocsin_shared_memory_size(NULL) == 0);
    CHECK(tocsin_shared_memory_descriptor(NULL) == -1);
}

#if defined(__linux__)
#include <sys/syscall.h>

typedef struct board {
    tocsin_shared_manual_event gate;
    tocsin_shared_auto_event job, done;
    tocsin_shared_semaphore permits;
    tocsin_shared_lock lock;
} board;

static board* board_in(tocsin_shared_memory* memory) {
    board* made;
    CHECK_OK(tocsin_shared_memory_anonymous(memory, sizeof(board)));
    made = (board*)tocsin_shared_memory_data(memory);
    CHECK(tocsin_shared_memory_size(memory) == sizeof(board) && tocsin_shared_memory_descriptor(memory) >= 0);
    return made;
}

// Runs the function in a process of its own, whose checks count.
static pid_t in_child(void (*run)(board*), board* with) {
    const pid_t child = fork();
    if (child != 0) return child;
    run(with);
    _exit(failures == 0 ? 0 : 1);
}
static void end_of(pid_t child) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void answer(board* on) {
    CHECK_OK(tocsin_shared_manual_event_wait(&on->gate, NULL));
    for (int i = 0; i != 100; ++i) {
        CHECK_OK(tocsin_shared_auto_event_wait(&on->job, NULL));
        CHECK_OK(tocsin_shared_auto_event_set(&on->done));
        CHECK_OK(tocsin_shared_semaphore_release(&on->permits, 2));
    }
}

static void processes_wait_for_each_other(void) {
    tocsin_shared_memory memory;
    board* const on = board_in(&memory);
    const pid_t child = in_child(answer, on);
    CHECK_OK(tocsin_shared_manual_event_set(&on->gate));
    for (int i = 0; i != 100; ++i) {
        CHECK_OK(tocsin_shared_auto_event_set(&on->job));
        CHECK_OK(tocsin_shared_auto_event_wait(&on->done, NULL));
        CHECK_OK(tocsin_shared_semaphore_acquire(&on->permits, NULL));
        CHECK_OK(tocsin_shared_semaphore_acquire(&on->permits, NULL));
    }
    end_of(child);
    CHECK(tocsin_shared_semaphore_try_acquire(&on->permits) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_shared_auto_event_try_wait(&on->done) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_shared_manual_event_is_set(&on->gate));
    CHECK_OK(tocsin_shared_manual_event_reset(&on->gate));
    CHECK(!tocsin_shared_manual_event_is_set(&on->gate));
    CHECK_OK(tocsin_shared_memory_destroy(&memory));
    REFUSED(tocsin_shared_memory_destroy(&memory));
}

static void shared_waits_keep_to_their_limits(void) {
    tocsin_shared_memory memory;
    board* const on = board_in(&memory);
    const tocsin_limits soon = until(TOCSIN_CLOCK_FROM_NOW, MS);
    tocsin_limits stopped = until(TOCSIN_CLOCK_NEVER, 0);
    tocsin_limits nonsense = until((tocsin_clock)17, 0);
    tocsin_stop stop;
    CHECK_OK(tocsin_stop_init(&stop));
    CHECK_OK(tocsin_stop_request(&stop));
    stopped.stop = &stop;
    CHECK(tocsin_shared_manual_event_wait(&on->gate, &soon) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_shared_auto_event_wait(&on->job, &soon) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_shared_semaphore_acquire(&on->permits, &soon) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_shared_manual_event_wait(&on->gate, &stopped) == TOCSIN_STOPPED);
    CHECK(tocsin_shared_auto_event_wait(&on->job, &stopped) == TOCSIN_STOPPED);
    CHECK(tocsin_shared_semaphore_acquire(&on->permits, &stopped) == TOCSIN_STOPPED);
    REFUSED(tocsin_shared_manual_event_wait(&on->gate, &nonsense));
    REFUSED(tocsin_shared_auto_event_wait(&on->job, &nonsense));
    REFUSED(tocsin_shared_semaphore_acquire(&on->permits, &nonsense));
    REFUSED(tocsin_shared_lock_acquire(&on->lock, &nonsense));

    CHECK_OK(tocsin_shared_auto_event_set(&on->job));
    CHECK(tocsin_shared_auto_event_is_set(&on->job));
    CHECK_OK(tocsin_shared_auto_event_reset(&on->job));
    CHECK(!tocsin_shared_auto_event_is_set(&on->job));
    CHECK_OK(tocsin_shared_semaphore_release(&on->permits, TOCSIN_SHARED_SEMAPHORE_MAX));
    CHECK(tocsin_shared_semaphore_release(&on->permits, 1) == TOCSIN_ERROR_TOO_GREAT);
    CHECK(tocsin_shared_semaphore_release(&on->permits, UINT32_MAX) == TOCSIN_ERROR_TOO_GREAT);
    CHECK(tocsin_shared_semaphore_available(&on->permits) == TOCSIN_SHARED_SEMAPHORE_MAX);
    CHECK_OK(tocsin_stop_destroy(&stop));
    CHECK_OK(tocsin_shared_memory_destroy(&memory));
}

static void set_job(board* on) { CHECK_OK(tocsin_shared_auto_event_set(&on->job)); }

static void shared_objects_are_sources(void) {
    tocsin_shared_memory memory;
    board* const on = board_in(&memory);
    tocsin_auto_event local = TOCSIN_EVENT_UNSET;
    tocsin_wait_set set;
    tocsin_pollable watched;
    tocsin_any_result result;
    const tocsin_source sources[] = {source_at(TOCSIN_SOURCE_AUTO_EVENT, &local),
                                     source_at(TOCSIN_SOURCE_SHARED_MANUAL_EVENT, &on->gate),
                                     source_at(TOCSIN_SOURCE_SHARED_SEMAPHORE, &on->permits),
                                     source_at(TOCSIN_SOURCE_SHARED_AUTO_EVENT, &on->job)};
    const tocsin_source misaligned = source_at(TOCSIN_SOURCE_SHARED_AUTO_EVENT, (char*)&on->job + 8);
    const tocsin_source other_kind = source_at(TOCSIN_SOURCE_SHARED_AUTO_EVENT, &on->permits);
    const pid_t child = in_child(set_job, on);
    CHECK_OK(tocsin_wait_any(sources, 4, NULL, &result));
    CHECK(result.index == 3);
    end_of(child);
    CHECK_OK(tocsin_shared_semaphore_release(&on->permits, 1));
    CHECK_OK(tocsin_wait_any(sources, 4, NULL, &result));
    CHECK(result.index == 2);
    CHECK_OK(tocsin_auto_event_set(&local));
    CHECK_OK(tocsin_wait_any(sources, 4, NULL, &result));
    CHECK(result.index == 0);
    CHECK_OK(tocsin_shared_manual_event_set(&on->gate));
    CHECK_OK(tocsin_wait_any(sources, 4, NULL, &result));
    CHECK(result.index == 1);

    REFUSED(tocsin_wait_any(&misaligned, 1, NULL, NULL));
    REFUSED(tocsin_wait_any(&other_kind, 1, NULL, NULL));
    REFUSED(tocsin_wait_all(sources, 4, NULL));
    REFUSED(tocsin_pollable_init(&watched, &sources[1]));
    CHECK_OK(tocsin_wait_set_init(&set));
    REFUSED(tocsin_wait_set_add(&set, &sources[1], 1));
    REFUSED(tocsin_wait_set_add(&set, &other_kind, 1));
    CHECK_OK(tocsin_wait_set_destroy(&set));
    CHECK_OK(tocsin_shared_memory_destroy(&memory));
}

static void end_with_the_lock(board* on) { CHECK_OK(tocsin_shared_lock_acquire(&on->lock, NULL)); }
static void find_the_lock_held(board* on) {
    const tocsin_limits soon = until(TOCSIN_CLOCK_FROM_NOW, MS);
    CHECK(tocsin_shared_lock_try_acquire(&on->lock) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_shared_lock_acquire(&on->lock, &soon) == TOCSIN_TIMED_OUT);
    CHECK(tocsin_shared_lock_release(&on->lock) == TOCSIN_ERROR_NOT_PERMITTED);
}

static void a_shared_lock_tells_of_a_death(void) {
    tocsin_shared_memory memory;
    board* const on = board_in(&memory);
    void* list;
    size_t length;
    CHECK_OK(tocsin_shared_lock_acquire(&on->lock, NULL));
    CHECK(tocsin_shared_lock_acquire(&on->lock, NULL) == TOCSIN_ERROR_SYSTEM);
    CHECK(tocsin_last_system_error() == EDEADLK);
    end_of(in_child(find_the_lock_held, on));
    CHECK_OK(tocsin_shared_lock_release(&on->lock));
    // Emulators know no deaths.
    if (syscall(SYS_get_robust_list, 0, &list, &length) == 0) {
        end_of(in_child(end_with_the_lock, on));
        CHECK(tocsin_shared_lock_acquire(&on->lock, NULL) == TOCSIN_OWNER_DIED);
        CHECK_OK(tocsin_shared_lock_mark_repaired(&on->lock));
        CHECK_OK(tocsin_shared_lock_release(&on->lock));
        end_of(in_child(end_with_the_lock, on));
        CHECK(tocsin_shared_lock_try_acquire(&on->lock) == TOCSIN_OWNER_DIED);
        CHECK_OK(tocsin_shared_lock_release(&on->lock));
        CHECK(tocsin_shared_lock_acquire(&on->lock, NULL) == TOCSIN_LOCK_LOST);
    }
    CHECK_OK(tocsin_shared_memory_destroy(&memory));
}

static void shared_memory_has_names_and_travels(void) {
    tocsin_shared_memory memory, again;
    tocsin_shared_auto_event* event = NULL;
    tocsin_shared_semaphore* other = NULL;
    char name[64];
    int ends[2];
    snprintf(name, sizeof name, "/tocsin-c-%ld", (long)getpid());
    CHECK(tocsin_shared_memory_unlink(name) == TOCSIN_NOTHING_DONE);
    CHECK(tocsin_shared_memory_open(&memory, name) == TOCSIN_ERROR_NOT_FOUND);
    REFUSED(tocsin_shared_memory_destroy(&memory));
    CHECK_OK(tocsin_shared_memory_create(&memory, name, 4096, 0600));
    CHECK(tocsin_shared_memory_create(&again, name, 4096, 0600) == TOCSIN_ERROR_EXISTS);
    REFUSED(tocsin_shared_memory_open_or_create(&again, name, 8192, 0600));
    CHECK_OK(tocsin_shared_auto_event_at(tocsin_shared_memory_data(&memory), 4096, &event));
    CHECK_OK(tocsin_shared_auto_event_set(event));
    CHECK_OK(tocsin_shared_auto_event_wait(event, NULL));
    CHECK_OK(tocsin_shared_memory_open(&again, name));
    CHECK_OK(tocsin_shared_auto_event_at(tocsin_shared_memory_data(&again), 4096, &event));
    CHECK(!tocsin_shared_auto_event_is_set(event));
    CHECK_OK(tocsin_shared_memory_destroy(&again));
    CHECK_OK(tocsin_shared_memory_unlink(name));

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    CHECK_OK(tocsin_shared_memory_send(&memory, ends[0]));
    CHECK_OK(tocsin_shared_memory_receive(&again, ends[1]));
    CHECK(tocsin_shared_memory_size(&again) == 4096);
    CHECK_OK(tocsin_shared_auto_event_at(tocsin_shared_memory_data(&again), 4096, &event));
    CHECK(tocsin_shared_semaphore_at(tocsin_shared_memory_data(&again), 100, &other) == TOCSIN_ERROR_INVALID);
    CHECK_OK(tocsin_shared_memory_destroy(&again));
    CHECK_OK(tocsin_shared_memory_map(&again, tocsin_shared_memory_descriptor(&memory)));
    CHECK_OK(tocsin_shared_memory_destroy(&again));
    CHECK(tocsin_shared_memory_map(&again, -1) == TOCSIN_ERROR_BAD_DESCRIPTOR);
    CHECK_OK(tocsin_shared_memory_destroy(&memory));
    close(ends[0]);
    close(ends[1]);
}
#endif

const test_case shared_cases[] = {CASE(bad_arguments_for_shared_memory_are_refused),
#if defined(__linux__)
                                  CASE(processes_wait_for_each_other),
                                  CASE(shared_waits_keep_to_their_limits),
                                  CASE(shared_objects_are_sources),
                                  CASE(a_shared_lock_tells_of_a_death),
                                  CASE(shared_memory_has_names_and_travels),
#endif
                                  {NULL, NULL}};
