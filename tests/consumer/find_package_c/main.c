// SPDX-License-Identifier: Apache-2.0
/* A stranger's program in C: it uses what c/docs/c.md shows, and nothing else of this tree. */
#include <stdio.h>
#include <tocsin.h>

int main(void) {
    tocsin_auto_event job = TOCSIN_EVENT_UNSET;
    tocsin_limits how = {
        {TOCSIN_CLOCK_FROM_NOW, 1000000}, NULL, {TOCSIN_SPIN_DEFAULT, 0}, TOCSIN_ORDER_LISTED, false};
    tocsin_source sources[2] = {{TOCSIN_SOURCE_NONE, 0, {NULL}}, {TOCSIN_SOURCE_AUTO_EVENT, 0, {NULL}}};
    sources[1].of.object = &job;
    printf("timed out: %s\n", tocsin_error_text(tocsin_auto_event_wait(&job, &how)));
    if (tocsin_wait_any(sources, 2, &how, NULL) != TOCSIN_ERROR_INVALID) return 1;
    printf("refused: %s\n", tocsin_last_error());
    tocsin_auto_event_set(&job);
    return tocsin_wait_any(sources + 1, 1, NULL, NULL) == TOCSIN_OK ? 0 : 1;
}
