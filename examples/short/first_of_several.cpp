// SPDX-License-Identifier: Apache-2.0
// Waits for the first of several things, then for all of several at once.
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstdio>

int main() {
    using namespace std::chrono_literals;
    tocsin::auto_reset_event left_fork;
    tocsin::auto_reset_event right_fork;

    right_fork.set();
    const auto first = tocsin::wait_any({.until = 1s}, left_fork, right_fork);
    std::printf("number %u was set\n", static_cast<unsigned>(first.index));

    right_fork.set();
    // Takes both forks at one instant, or none: without the left one, the right one stays.
    const auto without_left = tocsin::wait_all({.until = 10ms}, left_fork, right_fork);
    left_fork.set();
    const auto with_both = tocsin::wait_all(left_fork, right_fork);
    const bool right = first.index == 1 && without_left == tocsin::wait_status::timed_out &&
                       with_both == tocsin::wait_status::signaled;
    std::puts(right ? "took both forks at once" : "something is wrong");
    return right ? 0 : 1;
}
