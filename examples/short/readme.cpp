// SPDX-License-Identifier: Apache-2.0
// The program at the top of the README.
#include <tocsin/tocsin.hpp>

#include <cstdio>
#include <thread>

int main() {
    tocsin::auto_reset_event work;    // one set() releases one wait()
    tocsin::manual_reset_event done;  // a gate: open until reset()

    std::jthread worker([&](std::stop_token stop) {
        using namespace std::chrono_literals;
        while (work.wait_for(10s, stop) == tocsin::wait_status::signaled) {
            std::puts("working");
            done.set();
        }
    });
    work.set();
    done.wait();
    worker.request_stop();
}
