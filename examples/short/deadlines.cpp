// SPDX-License-Identifier: Apache-2.0
// Gives waits a deadline on any clock, a stop token, and a spin policy.
#include <tocsin/event.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstdio>
#include <stop_token>

int main() {
    using namespace std::chrono_literals;
    tocsin::auto_reset_event never;
    std::stop_source stopping;

    const bool late = never.wait_for(1ms) == tocsin::wait_status::timed_out;
    const bool at_a_date =
        never.wait_until(std::chrono::system_clock::now() + 1ms) == tocsin::wait_status::timed_out;
    stopping.request_stop();
    const bool stopped = tocsin::wait_any({.until = 10s, .stop = stopping.get_token()}, never).status ==
                         tocsin::wait_status::stopped;
    // Sleeps at once: for a thread that would rather save CPU time than wake early.
    const bool asleep = never.wait_for(1ms, tocsin::spin_policy::none()) == tocsin::wait_status::timed_out;
    std::puts(late && at_a_date && stopped && asleep ? "each wait ended as it should" : "something is wrong");
    return late && at_a_date && stopped && asleep ? 0 : 1;
}
