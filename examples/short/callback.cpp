// SPDX-License-Identifier: Apache-2.0
// Has a function called when a wait ends. No thread is blocked until then.
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>

#include <chrono>
#include <cstdio>

int main() {
    using namespace std::chrono_literals;
    tocsin::auto_reset_event job;
    tocsin::manual_reset_event shutdown;
    int jobs = 0;
    bool stopped = false;

    auto wait = tocsin::any_operation(
        [&](tocsin::any_result how) noexcept {
            if (how.status == tocsin::wait_status::stopped) stopped = true;
            if (how.index == 0) ++jobs;
        },
        job, shutdown);
    for (int i = 0; i != 3; ++i) {
        wait.start();
        job.set();  // calls the function
    }
    wait.start();
    const bool cancelled = wait.cancel();  // so does this
    std::printf("%d jobs, then %s\n", jobs, cancelled && stopped ? "cancelled" : "something is wrong");
    return jobs == 3 && cancelled && stopped ? 0 : 1;
}
