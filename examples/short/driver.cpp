// SPDX-License-Identifier: Apache-2.0
// A loop of one's own serves the deadlines of coroutines. The library starts no thread. (A loop that also serves
// descriptors is examples/loops/driven_by_epoll.cpp.)
#include "../support/task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

task tick(int& ticks, tocsin::manual_reset_event& done) {
    tocsin::auto_reset_event never;
    while (ticks != 3) {
        (void)co_await tocsin::async_wait({.until = 10ms}, never);
        ++ticks;
    }
    done.set();
}

int main() {
    tocsin::auto_reset_event bell;
    const auto ring = [&]() noexcept { bell.set(); };  // ends the loop's sleep
    tocsin::driver driver(ring);
    tocsin::set_default_driver(&driver);

    int ticks = 0;
    tocsin::manual_reset_event done;
    const task ticking = tick(ticks, done);
    while (!done.is_set()) {
        (void)bell.wait_until(driver.next_deadline());
        driver.run_due();  // the coroutine continues in this call
    }
    std::printf("%d ticks\n", ticks);
    return ticks == 3 ? 0 : 1;
}
