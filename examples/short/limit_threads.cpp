// SPDX-License-Identifier: Apache-2.0
// Lets at most two threads in at a time.
#include <tocsin/semaphore.hpp>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

int main() {
    tocsin::counting_semaphore<2> places(2);
    std::atomic<int> inside{0};
    std::atomic<bool> crowded{false};

    const auto visit = [&] {
        places.acquire();
        if (++inside > 2) crowded = true;
        std::this_thread::yield();
        --inside;
        places.release();
    };
    std::vector<std::jthread> visitors;
    for (int i = 0; i != 8; ++i) visitors.emplace_back(visit);
    visitors.clear();
    std::puts(crowded ? "three were in" : "never more than two");
    return crowded ? 1 : 0;
}
