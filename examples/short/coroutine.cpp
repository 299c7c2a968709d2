// SPDX-License-Identifier: Apache-2.0
// Waits in a coroutine. The set() that ends the wait resumes it.
#include "../support/task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

#include <cstdio>

task count_signals(tocsin::auto_reset_event& signal, tocsin::manual_reset_event& shutdown, int& count) {
    for (;;) {
        const auto ended = co_await tocsin::async_wait_any(signal, shutdown);
        if (ended.index == 1) co_return;
        ++count;
    }
}

int main() {
    tocsin::auto_reset_event signal;
    tocsin::manual_reset_event shutdown;
    int count = 0;
    const task counting = count_signals(signal, shutdown, count);
    for (int i = 0; i != 3; ++i) signal.set();  // the coroutine continues inside each call
    shutdown.set();
    counting.wait();
    std::printf("%d signals\n", count);
    return count == 3 ? 0 : 1;
}
