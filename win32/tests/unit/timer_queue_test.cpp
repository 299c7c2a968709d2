// SPDX-License-Identifier: Apache-2.0
// One thread deletes a queue of timers, while others delete its timers. (Windows promises nothing then.)
#include "support.hpp"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace {

using namespace win32_test;

struct counts {
    std::atomic<int> calls{0};
    std::atomic<bool> over{false};
    std::atomic<int> late{0};
};

void CALLBACK count(PVOID context, BOOLEAN) {
    auto& its = *static_cast<counts*>(context);
    if (its.over.load()) ++its.late;
    ++its.calls;
}

TEST(win32_timer_queues, AQueueAndItsTimersAreDeletedAtTheSameTime) {
    for (int round = 0; round != 200; ++round) {
        counts seen;
        const HANDLE queue = CreateTimerQueue();
        ASSERT_NE(queue, nullptr);
        std::array<HANDLE, 8> timers{};
        for (auto& each : timers)
            ASSERT_TRUE(CreateTimerQueueTimer(&each, queue, count, &seen, 0, 1, WT_EXECUTEDEFAULT));
        std::atomic<int> deleted{0};
        std::atomic<int> begun{0};
        const auto delete_timers = [&](std::size_t first) {
            ++begun;
            while (begun.load() != 3) std::this_thread::yield();
            for (std::size_t i = 0; i != timers.size(); ++i) {
                // Both threads try each timer. The call blocks until the timer's callbacks have ended.
                const HANDLE timer = timers.at((first + i) % timers.size());
                if (DeleteTimerQueueTimer(queue, timer, INVALID_HANDLE_VALUE) != 0)
                    ++deleted;
                else
                    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
            }
        };
        std::vector<std::thread> others;
        for (const std::size_t first : {0u, 4u}) others.emplace_back(delete_timers, first);
        ++begun;
        while (begun.load() != 3) std::this_thread::yield();
        EXPECT_TRUE(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
        for (auto& each : others) each.join();
        seen.over = true;
        EXPECT_LE(deleted.load(), 8) << "each timer is deleted once";
        for (const HANDLE each : timers) EXPECT_FALSE(DeleteTimerQueueTimer(nullptr, each, nullptr));
        EXPECT_FALSE(DeleteTimerQueueEx(queue, nullptr));
        EXPECT_EQ(seen.late.load(), 0) << "no callback begins once the queue is deleted";
    }
}

}  // namespace
