// SPDX-License-Identifier: Apache-2.0
// Shows an event to somebody else's loop, here poll(), as a descriptor.
#include <tocsin/event.hpp>
#include <tocsin/pollable.hpp>

#include <cstdio>
#include <thread>

#include <poll.h>

int main() {
    tocsin::auto_reset_event job;
    tocsin::pollable watched(job);
    std::thread producer([&] { job.set(); });

    bool taken = false;
    while (!taken) {
        pollfd one{static_cast<int>(watched.descriptor()), POLLIN, 0};
        poll(&one, 1, -1);
        taken = watched.try_wait();  // another thread might have taken it first
    }
    producer.join();
    std::puts("the loop took the event");
    return 0;
}
