// SPDX-License-Identifier: Apache-2.0
// Windows' named events between processes, in the scenario of the lab; worker.py says how it is called. Built by MinGW
// and run by Wine.
#define WIN32_LEAN_AND_MEAN
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define MANY 8

static long long now(void) {
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    return (long long)((double)count.QuadPart * 1e9 / (double)frequency.QuadPart);
}

static void meet(const char* word) {
    puts(word);
    fflush(stdout);
    (void)getchar();
}

static HANDLE named(unsigned long owner, const char* what, int number) {
    char name[80];
    snprintf(name, sizeof name, "Local\\lab-%lu-%s-%d", owner, what, number);
    return CreateEventA(NULL, FALSE, FALSE, name);
}

// Answers each of the events `there`, until the event `over` is set.
static int answer(unsigned long owner, int events, int core) {
    HANDLE there[MANY + 1];
    for (int i = 0; i != events; ++i) there[i] = named(owner, "there", i);
    there[events] = named(owner, "over", 0);
    const HANDLE back = named(owner, "back", 0);
    SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << core);
    SetEvent(back);
    if (events == 1) {  // as others do: it waits for one thing, and then looks whether that was the end
        for (;;) {
            WaitForSingleObject(there[0], INFINITE);
            if (WaitForSingleObject(there[1], 0) == WAIT_OBJECT_0) return 0;
            SetEvent(back);
        }
    }
    while (WaitForMultipleObjects((DWORD)events + 1, there, FALSE, INFINITE) != WAIT_OBJECT_0 + (DWORD)events)
        SetEvent(back);
    return 0;
}

static PROCESS_INFORMATION start_partner(unsigned long owner, int events, int core) {
    char self[MAX_PATH], line[MAX_PATH + 80];
    GetModuleFileNameA(NULL, self, sizeof self);
    snprintf(line, sizeof line, "\"%s\" answer %lu %d %d", self, owner, events, core);
    STARTUPINFOA how;
    memset(&how, 0, sizeof how);
    how.cb = sizeof how;
    PROCESS_INFORMATION made;
    memset(&made, 0, sizeof made);
    if (!CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &how, &made)) exit(1);
    return made;
}

static void measure(const char* work, long long budget) {
    static long long times[1 << 20];
    const unsigned long owner = GetCurrentProcessId();
    const int trips = strncmp(work, "ping_pong", 9) == 0, any = strcmp(work, "any_of_8") == 0;
    const int events = any ? MANY : 1, size = trips || any ? 8 : 200;
    const int core = strcmp(work, "ping_pong_1_core") == 0 ? 0 : 1;
    HANDLE there[MANY];
    for (int i = 0; i != events; ++i) there[i] = named(owner, "there", i);
    const HANDLE over = named(owner, "over", 0), back = named(owner, "back", 0);
    PROCESS_INFORMATION other;
    if (trips || any) {
        other = start_partner(owner, events, core);
        WaitForSingleObject(back, INFINITE);
    }
    SetThreadAffinityMask(GetCurrentThread(), 1);
    meet("ready");
    int count = 0, next = 0;
    const long long end = now() + budget;
    do {
        const long long start = now();
        for (int i = 0; i != size; ++i) {
            if (trips || any) {
                SetEvent(there[next++ % events]);
                WaitForSingleObject(back, INFINITE);
            } else if (strcmp(work, "look") == 0) {
                WaitForSingleObject(there[0], 0);
            } else {
                SetEvent(there[0]);
                WaitForSingleObject(there[0], INFINITE);
            }
        }
        times[count++] = now() - start;
    } while (now() < end && count != 1 << 20);
    meet("done");
    if (trips || any) {
        SetEvent(over);
        if (!any) SetEvent(there[0]);
        WaitForSingleObject(other.hProcess, INFINITE);
    }
    printf("batch time %d", size);
    for (int i = 0; i != count; ++i) printf(" %lld", times[i]);
    printf("\noperations %d\n", count * size);
    if (WaitForSingleObject(there[0], 0) == WAIT_OBJECT_0)
        puts("wrong as many takes as sets leave the event unset");
}

int main(int count, char** words) {
    if (count == 5 && strcmp(words[1], "answer") == 0)
        return answer(strtoul(words[2], NULL, 10), atoi(words[3]), atoi(words[4]));
    if (count != 4) return 2;
    measure(words[3] + strlen("work="), (long long)(atof(words[2]) * 1e6));
    return 0;
}
