// SPDX-License-Identifier: Apache-2.0
// A thread that works while an event loop which is not tocsin's runs in another thread. The working thread puts its
// results into a queue and sets an event.
#pragma once

#include <tocsin/event.hpp>

#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

class work {
public:
    static constexpr int results = 10'000;

    tocsin::auto_reset_event ready;

    // Takes the results since the last call. Returns true when all the work has been done.
    bool collect() {
        std::vector<int> some;
        {
            const std::lock_guard lock(mutex_);
            some = std::exchange(done_, {});
        }
        if (!some.empty()) ++rounds_;
        for (const int each : some) sum_ += each;
        count_ += static_cast<int>(some.size());
        return count_ == results;
    }

    // Prints the result; returns the program's exit code.
    int verdict(const char* loop) const {
        const bool right = sum_ == long{results} * (results + 1) / 2;
        std::printf("%s: %d results in %d rounds, %s\n", loop, count_, rounds_,
                    right ? "all there" : "some missing");
        return right ? 0 : 1;
    }

private:
    void run() {
        for (int i = 1; i <= results; ++i) {
            {
                const std::lock_guard lock(mutex_);
                done_.push_back(i);
            }
            ready.set();
            if (i % 100 == 0) std::this_thread::yield();
        }
    }

    std::mutex mutex_;
    std::vector<int> done_;
    long sum_ = 0;
    int count_ = 0;
    int rounds_ = 0;
    std::jthread thread_{[this] { run(); }};
};
