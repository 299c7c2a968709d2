// SPDX-License-Identifier: Apache-2.0
// The program at the top of the README.
#include <tocsin/tocsin.hpp>

#include <cstdio>
#include <thread>

int main() {
    tocsin::auto_reset_event job;
    tocsin::manual_reset_event stop;
    std::jthread worker([&] {
        while (wait_any(job, stop).index == 0)  // the first ready
            std::puts("working");
    });
    job.set();   // releases one wait
    stop.set();  // releases all until reset()
}
