// SPDX-License-Identifier: Apache-2.0
// Waits on addresses. C11 and C++ at the same time.
#include "harness.h"

struct word {
    uint64_t memory;
    size_t size;
};

static void* wait_for_change(void* argument) {
    struct word* word = (struct word*)argument;
    uint64_t seen = 0;
    CHECK_OK(tocsin_wait_until_changed(&word->memory, word->size, 7, NULL, &seen));
    CHECK(seen == 12);
    return NULL;
}

static void words_of_all_widths_wake(void) {
    for (size_t size = 1; size <= 8; size *= 2) {
        struct word word = {0, 0};
        tocsin_limits how = until(TOCSIN_CLOCK_FROM_NOW, 1);
        uint64_t old = 1, expected = 4;
        pthread_t thread;
        word.size = size;
        CHECK_OK(tocsin_change_and_wake(&word.memory, size, TOCSIN_CHANGE_STORE, 7, TOCSIN_WAKE_ALL, &old));
        CHECK(old == 0);
        CHECK(tocsin_wait_on_address(&word.memory, size, 8, NULL) == TOCSIN_DIFFERED);
        CHECK(tocsin_wait_on_address(&word.memory, size, 7, &how) == TOCSIN_TIMED_OUT);
        CHECK(tocsin_wait_until_changed(&word.memory, size, 7, &how, &old) == TOCSIN_TIMED_OUT && old == 7);
        thread = start(wait_for_change, &word);
        until_parked(&word.memory, 1);
        CHECK_OK(tocsin_change_and_wake(&word.memory, size, TOCSIN_CHANGE_ADD, 5, 1, &old));
        join(thread);
        CHECK(old == 7);
        CHECK_OK(tocsin_change_and_wake(&word.memory, size, TOCSIN_CHANGE_SUBTRACT, 13, 0, NULL));
        CHECK(tocsin_wait_on_address(&word.memory, size, UINT64_MAX, &how) ==
              TOCSIN_TIMED_OUT);  // cut: it holds -1
        CHECK_OK(tocsin_change_and_wake(&word.memory, size, TOCSIN_CHANGE_AND, 6, 0, NULL));
        CHECK_OK(tocsin_change_and_wake(&word.memory, size, TOCSIN_CHANGE_OR, 1, 0, NULL));
        CHECK_OK(tocsin_change_and_wake(&word.memory, size, TOCSIN_CHANGE_XOR, 2, 0, &old));
        CHECK(old == 7);
        CHECK(tocsin_compare_exchange_and_wake(&word.memory, size, &expected, 9, 1) == TOCSIN_DIFFERED);
        CHECK(expected == 5);
        CHECK_OK(tocsin_compare_exchange_and_wake(&word.memory, size, &expected, 9, 1));
        CHECK(tocsin_wait_on_address(&word.memory, size, 9, &how) == TOCSIN_TIMED_OUT);
        CHECK(size == 8 || (word.memory == 9 || word.memory >> (8 * size) != 0));  // no neighbour was touched
    }
}

static void* wait_on_address(void* word) {
    CHECK_OK(tocsin_wait_on_address(word, 4, 0, NULL));
    return NULL;
}

static void wakes_are_counted(void) {
    uint32_t word = 0;
    pthread_t threads[3];
    for (int i = 0; i != 3; ++i) threads[i] = start(wait_on_address, &word);
    until_parked(&word, 3);
    CHECK(tocsin_wake_by_address_one(&word) == 1);
    CHECK(tocsin_wake_by_address_n(&word, 1) == 1);
    CHECK(tocsin_wake_by_address_all(&word) == 1);
    CHECK(tocsin_wake_by_address_all(&word) == 0);
    for (int i = 0; i != 3; ++i) join(threads[i]);
}

const test_case addresses_cases[] = {
    CASE(words_of_all_widths_wake),
    CASE(wakes_are_counted),
    {NULL, NULL},
};
