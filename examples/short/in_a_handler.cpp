// SPDX-License-Identifier: Apache-2.0
// Sets an event in a signal handler: set() may be called there.
#include <tocsin/event.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>

static tocsin::auto_reset_event interrupted;  // constant-initialized, so it is there before main

int main() {
    using namespace std::chrono_literals;
    std::signal(SIGINT, [](int) { interrupted.set(); });
    std::raise(SIGINT);
    const bool seen = interrupted.wait_for(10s) == tocsin::wait_status::signaled;
    std::puts(seen ? "interrupted" : "nothing came");
    return seen ? 0 : 1;
}
