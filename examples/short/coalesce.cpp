// SPDX-License-Identifier: Apache-2.0
// Redraws at most once per 5 ms, however often producers signal.
#include <tocsin/coalescer.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

int main() {
    using namespace std::chrono_literals;
    tocsin::auto_reset_event dirty;
    tocsin::manual_reset_event shutdown;
    std::atomic<int> changes{0};

    std::thread producer([&] {
        for (int i = 0; i != 1000; ++i) {
            ++changes;
            dirty.set();
        }
        shutdown.set();
    });
    tocsin::coalescer frames(5ms);
    int frames_drawn = 0;
    int seen = 0;
    while (tocsin::wait_any(dirty, shutdown).index == 0) {  // a change goes before the shutdown
        frames.start();
        seen = changes;
        ++frames_drawn;
        frames.pause();
    }
    producer.join();
    std::printf("%d changes, %d frames\n", seen, frames_drawn);
    return seen == 1000 && frames_drawn < 1000 ? 0 : 1;
}
