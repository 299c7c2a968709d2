// SPDX-License-Identifier: Apache-2.0
// Waits in a coroutine, for at most five seconds. The set() that ends the wait resumes the coroutine.
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/task.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace std::chrono_literals;

tocsin::task<bool> is_answered(tocsin::manual_reset_event& shutdown, tocsin::manual_reset_event& answered) {
    const auto ended = co_await tocsin::async_wait_any({.until = 5s}, shutdown, answered);
    co_return ended.index == 1;  // else it was shut down, or the time was over
}

int main() {
    tocsin::manual_reset_event shutdown;
    tocsin::manual_reset_event answered;
    std::jthread other([&] { answered.set(); });
    const bool yes = tocsin::sync_wait(is_answered(shutdown, answered));
    std::puts(yes ? "answered" : "shut down, or too late");
    return yes ? 0 : 1;
}
