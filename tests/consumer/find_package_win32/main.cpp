// SPDX-License-Identifier: Apache-2.0
// A stranger's program that came from Windows. It uses what win32/docs/porting_from_windows.md shows, and nothing else
// of this tree.
#include <tocsin/win32.h>

#include <cstdio>

int main() {
    const HANDLE job = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    const HANDLE end = CreateEvent(nullptr, TRUE, FALSE, nullptr);
    const HANDLE both[] = {end, job};
    if (WaitForMultipleObjects(2, both, FALSE, 1) != WAIT_TIMEOUT) return 1;
    SetEvent(job);
    if (WaitForMultipleObjects(2, both, FALSE, INFINITE) != WAIT_OBJECT_0 + 1) return 2;
    if (!CloseHandle(job) || !CloseHandle(end)) return 3;
    if (SetEvent(job) || GetLastError() != ERROR_INVALID_HANDLE) return 4;
    std::puts("refused: a closed handle");
    return 0;
}
