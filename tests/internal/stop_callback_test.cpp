// SPDX-License-Identifier: Apache-2.0
// The stop callback for standard libraries whose own stop callback may hang (include/tocsin/detail/stop_callback.hpp):
// a stop meets the destructor at every distance. With MinGW-w64, one in some 100,000 of these destructors hung in the
// standard library.
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/detail/stop_callback.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <stop_token>
#include <thread>

namespace {

using namespace std::chrono_literals;
using support::rounds;
using support::thread_group;
using tocsin::detail::self_removing_stop_callback;

// About a nanosecond or two for each of `steps`.
void spend(int steps) {
    for (std::atomic<int> left = steps; left > 0;) left.store(left - 1, std::memory_order_relaxed);
}

// Looks without a break, so that both threads leave at the same moment. On a busy machine the other thread may need the
// processor.
void until_at_least(const std::atomic<int>& count, int wanted) {
    for (int looks = 1; count.load() < wanted; ++looks) {
        if (looks % 10'000 == 0) std::this_thread::yield();
    }
}

// Threads that spin get in each other's way on a busy machine. So the test ends after two seconds at the latest.
TEST(StopCallback, ItsDestructorReturnsHoweverAStopMeetsIt) {
    constexpr int over = std::numeric_limits<int>::max();
    std::atomic<std::stop_source*> source{nullptr};
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    thread_group threads;
    threads.start("stopper", [&] {
        for (int i = 1;; ++i) {
            until_at_least(begun, i);
            if (begun.load() == over) return;
            spend(i % 200);
            source.load()->request_stop();
            ended.store(i);
        }
    });
    threads.start("owner", [&] {
        int calls = 0;
        const auto count = [&]() noexcept { ++calls; };
        const auto end = std::chrono::steady_clock::now() + 2s;
        for (int i = 1; i <= rounds(400'000, 200'000) && std::chrono::steady_clock::now() < end; ++i) {
            std::stop_source stop;
            source.store(&stop);
            {
                const self_removing_stop_callback<decltype(count)> registered(stop.get_token(), count);
                begun.store(i);
                spend(i * 7 % 300);
            }
            const int calls_before_the_destructor_returned = calls;
            until_at_least(ended, i);
            ASSERT_EQ(calls, calls_before_the_destructor_returned);
        }
        begun.store(over);
    });
    threads.join();
}

}  // namespace
