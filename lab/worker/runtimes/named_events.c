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

// The events and the memory that the two processes share; in C++ it would be one object in shared memory.
struct board {
    HANDLE there[MANY], back;
    volatile LONG* over;
};

static void need(int holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "%s: error %lu\n", what, GetLastError());
    exit(1);
}

static const char* name_of(unsigned long owner, const char* what, int number) {
    static char name[80];
    snprintf(name, sizeof name, "Local\\lab-%lu-%s-%d", owner, what, number);
    return name;
}

static struct board open_board(unsigned long owner, int events) {
    struct board all;
    for (int i = 0; i != events; ++i)
        need((all.there[i] = CreateEventA(NULL, FALSE, FALSE, name_of(owner, "there", i))) != NULL, "CreateEvent");
    need((all.back = CreateEventA(NULL, FALSE, FALSE, name_of(owner, "back", 0))) != NULL, "CreateEvent");
    const HANDLE memory = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, sizeof *all.over,
                                             name_of(owner, "over", 0));
    need(memory != NULL, "CreateFileMapping");
    all.over = (volatile LONG*)MapViewOfFile(memory, FILE_MAP_WRITE, 0, 0, sizeof *all.over);
    need(all.over != NULL, "MapViewOfFile");
    return all;
}

// Pins this thread to one of the cores that the process may use, counted as by pin_to_nth() of measure/machine.hpp.
static int pin_to_nth(int index) {
    DWORD_PTR ours = 0, system = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &system) || ours == 0) return 0;
    DWORD_PTR left = ours;
    while (index-- != 0) left = (left & (left - 1)) != 0 ? left & (left - 1) : ours;
    return SetThreadAffinityMask(GetCurrentThread(), left & -left) != 0;
}

// Answers each of the events `there`, until it is over. Exit code 3: it could not be pinned.
static int answer(unsigned long owner, int events, int core) {
    const struct board all = open_board(owner, events);
    const int pinned = pin_to_nth(core);
    SetEvent(all.back);
    for (;;) {
        if (events == 1)
            WaitForSingleObject(all.there[0], INFINITE);
        else
            WaitForMultipleObjects((DWORD)events, all.there, FALSE, INFINITE);
        if (*all.over) return pinned ? 0 : 3;
        SetEvent(all.back);
    }
}

// The partner ends with this process, however this one ends: the system closes the handle of the job then.
static HANDLE start_partner(unsigned long owner, int events, int core) {
    char self[MAX_PATH], line[MAX_PATH + 80];
    GetModuleFileNameA(NULL, self, sizeof self);
    snprintf(line, sizeof line, "\"%s\" answer %lu %d %d", self, owner, events, core);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
    memset(&limits, 0, sizeof limits);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    const HANDLE job = CreateJobObjectA(NULL, NULL);
    need(SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits), "a job");
    STARTUPINFOA how;
    memset(&how, 0, sizeof how);
    how.cb = sizeof how;
    PROCESS_INFORMATION made;
    memset(&made, 0, sizeof made);
    need(CreateProcessA(NULL, line, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &how, &made), "CreateProcess");
    if (!AssignProcessToJobObject(job, made.hProcess)) {
        TerminateProcess(made.hProcess, 1);
        need(0, "AssignProcessToJobObject");
    }
    ResumeThread(made.hThread);
    return made.hProcess;
}

static void measure(const char* work, long long budget) {
    static long long times[1 << 20];
    const unsigned long owner = GetCurrentProcessId();
    const int trips = strncmp(work, "ping_pong", 9) == 0, any = strcmp(work, "any_of_8") == 0;
    const int events = any ? MANY : 1, size = trips || any ? 8 : 200;
    const int core = strcmp(work, "ping_pong_1_core") == 0 ? 0 : 1;
    const struct board all = open_board(owner, events);
    HANDLE other = NULL;
    if (trips || any) {
        other = start_partner(owner, events, core);
        const HANDLE either[2] = {all.back, other};
        need(WaitForMultipleObjects(2, either, FALSE, INFINITE) == WAIT_OBJECT_0, "the partner did not start");
    }
    int pinned = pin_to_nth(0);
    meet("ready");
    int count = 0, next = 0;
    const long long end = now() + budget;
    do {
        const long long start = now();
        for (int i = 0; i != size; ++i) {
            if (trips || any) {
                SetEvent(all.there[next++ % events]);
                WaitForSingleObject(all.back, INFINITE);
            } else if (strcmp(work, "look") == 0) {
                WaitForSingleObject(all.there[0], 0);
            } else {
                SetEvent(all.there[0]);
                WaitForSingleObject(all.there[0], INFINITE);
            }
        }
        times[count++] = now() - start;
    } while (now() < end && count != 1 << 20);
    meet("done");
    if (trips || any) {
        *all.over = 1;
        SetEvent(all.there[0]);
        WaitForSingleObject(other, INFINITE);
        DWORD code = 1;
        GetExitCodeProcess(other, &code);
        if (code == 3) pinned = 0;
        if (code != 0 && code != 3) puts("wrong the partner ends as it should");
        if (WaitForSingleObject(all.back, 0) == WAIT_OBJECT_0) puts("wrong each trip is answered once");
    }
    if (!pinned) puts("note not permitted to pin threads to cores");
    printf("batch time %d", size);
    for (int i = 0; i != count; ++i) printf(" %lld", times[i]);
    printf("\noperations %d\n", count * size);
    if (WaitForSingleObject(all.there[0], 0) == WAIT_OBJECT_0)
        puts("wrong as many takes as sets leave the event unset");
}

int main(int count, char** words) {
    if (count == 5 && strcmp(words[1], "answer") == 0)
        return answer(strtoul(words[2], NULL, 10), atoi(words[3]), atoi(words[4]));
    if (count != 4) return 2;
    measure(words[3] + strlen("work="), (long long)(atof(words[2]) * 1e6));
    return 0;
}
