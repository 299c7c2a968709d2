// SPDX-License-Identifier: Apache-2.0
// Three workers count down. The main thread first waits for the countdown or a permission, whichever comes first. Then
// it waits for both, for a minute at most.
#include "countdown.hpp"

#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main() {
    countdown working(3);
    tocsin::manual_reset_event permitted;

    std::vector<std::jthread> workers;
    for (int i = 0; i != 3; ++i) workers.emplace_back([&] { working.count_down(); });

    const auto first = tocsin::wait_any(permitted, working);
    std::printf("first: %s\n", first.index == 1 ? "the work is done" : "it is permitted");

    workers.emplace_back([&] { permitted.set(); });
    const auto both = tocsin::wait_all({.until = 60s}, permitted, working);
    std::printf("both: %s\n", both == tocsin::wait_status::signaled ? "yes" : "no");
    return both == tocsin::wait_status::signaled && first.index == 1 ? 0 : 1;
}
