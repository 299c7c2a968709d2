// SPDX-License-Identifier: Apache-2.0
// Windows' calls. The program is the same on Windows and elsewhere.
#include <tocsin/win32.h>

#include <cstdio>
#include <initializer_list>

DWORD WINAPI signal_job(void* job) { return SetEvent(job) ? 0 : 1; }

int main() {
    const HANDLE shutdown = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    const HANDLE job = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    const HANDLE thread = CreateThread(nullptr, 0, signal_job, job, 0, nullptr);

    const HANDLE both[] = {shutdown, job};
    const DWORD first = WaitForMultipleObjects(2, both, FALSE, 10'000);
    const DWORD ended = WaitForSingleObject(thread, INFINITE);
    for (const HANDLE each : {shutdown, job, thread}) CloseHandle(each);

    const bool right = first == WAIT_OBJECT_0 + 1 && ended == WAIT_OBJECT_0;
    std::puts(right ? "a job, and the thread has ended" : "something is wrong");
    return right ? 0 : 1;
}
