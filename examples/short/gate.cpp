// SPDX-License-Identifier: Apache-2.0
// Opens a gate for all threads at once.
#include <tocsin/event.hpp>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

int main() {
    tocsin::manual_reset_event gate;
    std::atomic<int> through{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i != 10; ++i) {
            threads.emplace_back([&] {
                gate.wait();  // returns at once when the gate is open already
                ++through;
            });
        }
        gate.set();  // it stays open until reset()
    }
    std::printf("%d threads are through\n", through.load());
    return through == 10 ? 0 : 1;
}
