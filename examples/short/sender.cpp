// SPDX-License-Identifier: Apache-2.0
// A wait as a sender. This program takes the words of [exec] that tocsin has of its own, and connects a receiver of its
// own. With stdexec or a standard library that has senders, leave out the macro, and use their algorithms.
#define TOCSIN_EXECUTION_OWN
#include <tocsin/event.hpp>
#include <tocsin/sender.hpp>

#include <chrono>
#include <cstdio>
#include <exception>

namespace execution = tocsin::execution;

struct print_index {
    using receiver_concept = execution::receiver_tag;

    void set_value(tocsin::any_result how) && noexcept {
        std::printf("number %u was set\n", static_cast<unsigned>(how.index));
        *index = static_cast<int>(how.index);
    }
    void set_error(const std::exception_ptr&) && noexcept { std::puts("the wait has failed"); }

    int* index;
};

int main() {
    using namespace std::chrono_literals;
    tocsin::manual_reset_event shutdown;
    tocsin::auto_reset_event job;
    int index = -1;

    auto wait = execution::connect(tocsin::as_sender({.until = 10s}, shutdown, job), print_index{&index});
    execution::start(wait);
    job.set();  // completes the wait, so it calls set_value()
    return index == 1 ? 0 : 1;
}
