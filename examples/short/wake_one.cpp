// SPDX-License-Identifier: Apache-2.0
// Wakes one thread, which then knows that there was at least one signal since its last wait.
#include <tocsin/event.hpp>

#include <atomic>
#include <cstdio>
#include <thread>

int main() {
    tocsin::auto_reset_event work;
    tocsin::auto_reset_event done;
    std::atomic<int> jobs{0};
    int finished = 0;

    std::thread worker([&] {
        while (finished != 3) {
            work.wait();  // one set() releases one wait(); nothing to check, nothing is lost
            finished += jobs.exchange(0);
            done.set();
        }
    });
    for (int i = 0; i != 3; ++i) {
        ++jobs;
        work.set();
        done.wait();
    }
    worker.join();
    std::printf("%d jobs done\n", finished);
    return finished == 3 ? 0 : 1;
}
