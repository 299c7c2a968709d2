// SPDX-License-Identifier: Apache-2.0
// Waits under a lock until something has changed, or until the program shuts down.
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>

#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

int main() {
    std::mutex mutex;
    std::deque<int> jobs;
    tocsin::condition changed;
    tocsin::manual_reset_event shutdown;
    int sum = 0;

    std::thread consumer([&] {
        std::unique_lock lock(mutex);
        for (;;) {
            for (; !jobs.empty(); jobs.pop_front()) sum += jobs.front();
            if (shutdown.try_wait()) return;
            (void)changed.wait_any(lock, shutdown);  // the lock is free while the thread waits
        }
    });
    for (int i = 1; i <= 10; ++i) {
        {
            const std::scoped_lock lock(mutex);
            jobs.push_back(i);
        }
        changed.notify_one();
    }
    shutdown.set();
    consumer.join();
    std::printf("the jobs' sum is %d\n", sum);
    return sum == 55 ? 0 : 1;
}
