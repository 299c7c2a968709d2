// SPDX-License-Identifier: Apache-2.0
// The program at the top of the README.
#include <tocsin/tocsin.hpp>

#include <cstdio>
#include <thread>

int main() {
    tocsin::auto_reset_event job;         // one set() releases one wait
    tocsin::manual_reset_event shutdown;  // a gate: open until reset()

    std::jthread worker([&] {
        while (tocsin::wait_any(job, shutdown).index == 0) std::puts("working");
    });
    job.set();
    shutdown.set();
}
