// SPDX-License-Identifier: Apache-2.0
// The page docs/coming_from.md: each of its blocks, both sides of every pair, compiled and run.
// tests/documents/document_blocks.py compares them with the page.
#include "coming_from.hpp"

#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <string>
#include <utility>

namespace {

using namespace std::chrono_literals;
using namespace support;

// An event count of the plainest kind.
class event_count {
public:
    std::uint64_t prepare_wait() {
        const std::lock_guard lock(mutex_);
        return epoch_;
    }
    void cancel_wait() {}
    void commit_wait(std::uint64_t key) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return epoch_ != key; });
    }
    void notify() {
        {
            const std::lock_guard lock(mutex_);
            ++epoch_;
        }
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t epoch_ = 0;
};

TEST(ConditionVariableBefore, AFlagThatOpensOnce) {
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;

    const auto wait = [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ready; });
    };
    const auto signal = [&] {
        {
            const std::lock_guard lock(mutex);
            ready = true;
        }
        changed.notify_all();
    };

    signals_and_waits(wait, signal);
    wait();  // open from now on
}

TEST(ConditionVariableAfter, AFlagThatOpensOnce) {
    tocsin::manual_reset_event ready;

    const auto wait = [&] { ready.wait(); };
    const auto signal = [&] { ready.set(); };

    signals_and_waits(wait, signal);
    wait();  // open from now on
}

TEST(ConditionVariableBefore, AQueue) {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<int> queue;

    const auto push = [&](int item) {
        {
            const std::lock_guard lock(mutex);
            queue.push_back(item);
        }
        changed.notify_one();
    };
    const auto take_all = [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        return std::exchange(queue, {});
    };

    std::deque<int> taken;
    thread_group threads;
    threads.start("consumer", [&] {
        while (taken.size() != 100) {
            for (const int item : take_all()) taken.push_back(item);
        }
    });
    for (int item = 0; item != 100; ++item) push(item);
    threads.join();
    EXPECT_TRUE(std::ranges::is_sorted(taken));
}

TEST(ConditionVariableAfter, AQueue) {
    std::mutex mutex;
    tocsin::auto_reset_event filled;
    std::deque<int> queue;

    const auto push = [&](int item) {
        {
            const std::lock_guard lock(mutex);
            queue.push_back(item);
        }
        filled.set();
    };
    const auto take_all = [&] {
        filled.wait();
        const std::lock_guard lock(mutex);
        return std::exchange(queue, {});
    };

    std::deque<int> taken;
    thread_group threads;
    threads.start("consumer", [&] {
        while (taken.size() != 100) {
            for (const int item : take_all()) taken.push_back(item);
        }
    });
    for (int item = 0; item != 100; ++item) push(item);
    threads.join();
    EXPECT_TRUE(std::ranges::is_sorted(taken));
}

#if !defined(_LIBCPP_VERSION)  // whose condition_variable_any takes stop tokens in some versions only
TEST(ConditionVariableBefore, SeveralConditionsADeadlineAndAStop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    bool job = false;
    bool shutdown = false;

    const auto next = [&](std::stop_token stop) -> std::string {
        std::unique_lock lock(mutex);
        if (!changed.wait_for(lock, stop, 50ms, [&] { return job || shutdown; })) {
            return stop.stop_requested() ? "stopped" : "late";
        }
        if (shutdown) return "shutdown";
        job = false;
        return "job";
    };

    std::stop_source stop;
    EXPECT_EQ(next(stop.get_token()), "late");
    job = true;
    EXPECT_EQ(next(stop.get_token()), "job");
    stop.request_stop();
    EXPECT_EQ(next(stop.get_token()), "stopped");
    shutdown = true;
    EXPECT_EQ(next(stop.get_token()), "shutdown");
}
#endif

TEST(ConditionVariableAfter, SeveralConditionsADeadlineAndAStop) {
    tocsin::auto_reset_event job;
    tocsin::manual_reset_event shutdown;

    const auto next = [&](std::stop_token stop) -> std::string {
        const auto [status, index, found] = tocsin::wait_any({.until = 50ms, .stop = stop}, shutdown, job);
        if (status == tocsin::wait_status::stopped) return "stopped";
        if (status == tocsin::wait_status::timed_out) return "late";
        return index == 0 ? "shutdown" : "job";
    };

    std::stop_source stop;
    EXPECT_EQ(next(stop.get_token()), "late");
    job.set();
    EXPECT_EQ(next(stop.get_token()), "job");
    stop.request_stop();
    EXPECT_EQ(next(stop.get_token()), "stopped");
    shutdown.set();
    EXPECT_EQ(next(stop.get_token()), "shutdown");
}

TEST(ConditionVariableBefore, AnyOtherCondition) {
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0;

    const auto enter = [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return inside < 2; });
        ++inside;
    };
    const auto leave = [&] {
        {
            const std::lock_guard lock(mutex);
            --inside;
        }
        changed.notify_one();
    };

    lets_two_in(enter, leave);
}

TEST(ConditionVariableAfter, AnyOtherCondition) {
    std::mutex mutex;
    tocsin::condition changed;
    int inside = 0;

    const auto enter = [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return inside < 2; });
        ++inside;
    };
    const auto leave = [&] {
        {
            const std::lock_guard lock(mutex);
            --inside;
        }
        changed.notify_one();
    };

    lets_two_in(enter, leave);
}

TEST(AtomicWaitBefore, AChange) {
    std::atomic<std::uint8_t> phase{0};

    const auto wait = [&] {
        phase.wait(0);
        return phase.load();
    };
    const auto signal = [&] {
        phase.store(1);
        phase.notify_all();
    };

    signal();
    EXPECT_EQ(wait(), 1);
    phase.store(0);
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait(), 1); });
    signal();
    threads.join();
}

TEST(AtomicWaitAfter, AChange) {
    std::atomic<std::uint8_t> phase{0};

    const auto wait = [&] { return tocsin::wait_until_changed(&phase, 0); };
    const auto signal = [&] { tocsin::store(&phase, 1, tocsin::wake_all); };

    signal();
    EXPECT_EQ(wait(), 1);
    phase.store(0);
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait(), 1); });
    signal();
    threads.join();
}

TEST(BinarySemaphoreBefore, IsAnAutoResetEvent) {
    std::binary_semaphore done{0};

    const auto wait = [&] { return done.try_acquire_for(10s); };
    const auto signal = [&] { done.release(); };

    signals_and_waits([&] { EXPECT_TRUE(wait()); }, signal);
}

TEST(BinarySemaphoreAfter, IsAnAutoResetEvent) {
    tocsin::auto_reset_event done;

    const auto wait = [&] { return done.wait_for(10s) == tocsin::wait_status::signaled; };
    const auto signal = [&] { done.set(); };

    signals_and_waits([&] { EXPECT_TRUE(wait()); }, signal);
}

#if defined(_WIN32)
TEST(Win32Before, TwoEvents) {
    const HANDLE shutdown = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    const HANDLE job = CreateEventW(nullptr, FALSE, FALSE, nullptr);

    const auto wait = [&]() -> std::string {
        const HANDLE both[] = {shutdown, job};
        switch (WaitForMultipleObjects(2, both, FALSE, 10'000)) {
            case WAIT_OBJECT_0: return "shutdown";
            case WAIT_OBJECT_0 + 1: return "job";
            default: return "late";
        }
    };
    const auto signal = [&] { SetEvent(job); };

    signals_and_waits([&] { EXPECT_EQ(wait(), "job"); }, signal);
    CloseHandle(shutdown);
    CloseHandle(job);
}
#endif

TEST(Win32After, TwoEvents) {
    tocsin::manual_reset_event shutdown;
    tocsin::auto_reset_event job;

    const auto wait = [&]() -> std::string {
        switch (tocsin::wait_any({.until = 10s}, shutdown, job).index) {
            case 0: return "shutdown";
            case 1: return "job";
            default: return "late";
        }
    };
    const auto signal = [&] { job.set(); };

    signals_and_waits([&] { EXPECT_EQ(wait(), "job"); }, signal);
}

TEST(EventCountBefore, AQueue) {
    shared_queue queue;
    event_count pushed;
    const auto pop = [&] {
        for (int item = 0;;) {
            if (queue.try_pop(item)) return item;
            const auto key = pushed.prepare_wait();
            if (queue.try_pop(item)) {
                pushed.cancel_wait();
                return item;
            }
            pushed.commit_wait(key);
        }
    };
    const auto push = [&](int item) {
        queue.push(item);
        pushed.notify();
    };

    int sum = 0;
    thread_group threads;
    threads.start("consumer", [&] {
        for (int i = 0; i != 100; ++i) sum += pop();
    });
    for (int item = 0; item != 100; ++item) push(item);
    threads.join();
    EXPECT_EQ(sum, 4950);
}

TEST(EventCountAfter, AQueue) {
    shared_queue queue;
    tocsin::auto_reset_event pushed;
    const auto pop = [&] {
        int item = 0;
        while (!queue.try_pop(item)) pushed.wait();
        return item;
    };
    const auto push = [&](int item) {
        queue.push(item);
        pushed.set();
    };

    int sum = 0;
    thread_group threads;
    threads.start("consumer", [&] {
        for (int i = 0; i != 100; ++i) sum += pop();
    });
    for (int item = 0; item != 100; ++item) push(item);
    threads.join();
    EXPECT_EQ(sum, 4950);
}

}  // namespace
