// SPDX-License-Identifier: Apache-2.0
// How long a stress test runs: for TOCSIN_STRESS_SECONDS, or for 0.6 seconds if that is not set. Cases
// that are one test over several types can share this time.
#pragma once

#include "facts.hpp"
#include "random.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace support {

class stress_time {
public:
    explicit stress_time(int sharers = 1) : end_(std::chrono::steady_clock::now() + wanted() / sharers) {
        (void)seed();
    }
    bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

private:
    static std::chrono::nanoseconds wanted() {
        const char* seconds = std::getenv("TOCSIN_STRESS_SECONDS");
        if (seconds == nullptr) return std::chrono::milliseconds(600);
        return std::chrono::ceil<std::chrono::nanoseconds>(
            std::chrono::duration<double>(std::strtod(seconds, nullptr)));
    }
    std::chrono::steady_clock::time_point end_;
};

// Shifts this thread in time, so that other threads meet it at ever different points. Mostly it does nothing; sometimes
// it spins for a few nanoseconds, yields, or sleeps for some microseconds.
inline void jitter(random_source& random) {
    switch (random.below(32)) {
        case 0: std::this_thread::yield(); return;
        case 1: std::this_thread::sleep_for(std::chrono::microseconds(random.below(40))); return;
        case 2:
        case 3:
        case 4:
        case 5:
            for (auto i = random.below(500); i > 0; --i) asm volatile("" ::: "memory");
            return;
        default: return;
    }
}

}  // namespace support
