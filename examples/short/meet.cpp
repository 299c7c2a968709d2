// SPDX-License-Identifier: Apache-2.0
// Waits until so many threads have arrived: once (latch), or again and again (barrier).
#include <tocsin/barrier.hpp>
#include <tocsin/latch.hpp>

#include <cstdio>
#include <thread>
#include <vector>

int main() {
    int phases = 0;
    tocsin::latch started(3);
    tocsin::barrier phase(3, [&]() noexcept { ++phases; });  // runs once a phase, while all wait

    std::vector<std::jthread> threads;
    for (int i = 0; i != 3; ++i) {
        threads.emplace_back([&] {
            started.count_down();
            for (int each = 0; each != 5; ++each) phase.arrive_and_wait();
        });
    }
    started.wait();
    std::puts("all have started");
    threads.clear();
    std::printf("%d phases\n", phases);
    return phases == 5 ? 0 : 1;
}
