// SPDX-License-Identifier: Apache-2.0
// How the tests of docs/coming_from.md try both sides of a pair.
#pragma once

#include "threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>

namespace support {

// Signalled first, then waited for first.
template <class Wait, class Signal>
void signals_and_waits(Wait wait, Signal signal) {
    signal();
    wait();
    thread_group threads;
    threads.start("waiter", wait);
    signal();
    threads.join();
}

// At most two of four threads are inside at the same time.
template <class Enter, class Leave>
void lets_two_in(Enter enter, Leave leave) {
    std::atomic<int> inside{0};
    thread_group threads;
    for (int i = 0; i != 4; ++i) {
        threads.start("visitor", [&] {
            for (int turn = 0; turn != 100; ++turn) {
                enter();
                EXPECT_LE(inside.fetch_add(1), 1);
                inside.fetch_sub(1);
                leave();
            }
        });
    }
    threads.join();
}

// What the pairs about event counts share.
class shared_queue {
public:
    void push(int item) {
        const std::lock_guard lock(mutex_);
        items_.push_back(item);
    }
    bool try_pop(int& item) {
        const std::lock_guard lock(mutex_);
        if (items_.empty()) return false;
        item = items_.front();
        items_.pop_front();
        return true;
    }
    bool is_empty() {
        const std::lock_guard lock(mutex_);
        return items_.empty();
    }

private:
    std::mutex mutex_;
    std::deque<int> items_;
};

}  // namespace support
