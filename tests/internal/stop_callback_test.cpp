// SPDX-License-Identifier: Apache-2.0
// The stop callback for standard libraries whose own stop callback may hang (include/tocsin/detail/stop_callback.hpp):
// a stop meets the destructor at every distance. With MinGW-w64, five of six runs of 500,000 such destructors hung in
// the standard library.
#include "platform/futex/repeated_wakes.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/detail/stop_callback.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <semaphore>
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
            EXPECT_EQ(calls, calls_before_the_destructor_returned);
        }
        begun.store(over);
    });
    threads.join();
}

#if defined(__GLIBCXX__) && defined(__cpp_lib_atomic_wait) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX) && \
    _GLIBCXX_RELEASE < 16
// How often libstdc++ has woken the sleepers of each place where threads wait for semaphores.
using wakes = std::array<std::uint64_t, 8>;
wakes wakes_so_far() {
    struct semaphore {
        std::binary_semaphore it{0};
    };
    static semaphore at_each_place[8];
    wakes all{};
    for (std::size_t i = 0; i != all.size(); ++i) {
        all[i] = __atomic_load_n(&std::__detail::__waiter_pool_base::_S_for(&at_each_place[i])._M_ver,
                                 __ATOMIC_RELAXED);
    }
    return all;
}

TEST(StopCallback, RepeatedWakesReachEveryPlaceUntilTheyEnd) {
    for (int round = 0; round != 2; ++round) {
        const wakes before = wakes_so_far();
        tocsin::platform::begin_repeated_wakes();
        support::until("waiting for two wake-ups at each place", [&] {
            const wakes now = wakes_so_far();
            bool reached = true;
            for (std::size_t i = 0; i != now.size(); ++i) reached = reached && now[i] >= before[i] + 4;
            return reached;
        });
        tocsin::platform::end_repeated_wakes();
        support::until("waiting for the wake-ups to end", [] {
            const wakes seen = wakes_so_far();
            std::this_thread::sleep_for(100ms);  // no fact to wait for: nothing must happen
            return wakes_so_far() == seen;
        });
    }
}
#endif

}  // namespace
