// SPDX-License-Identifier: Apache-2.0
// The page docs/coming_from.md, from folly on: each of its blocks, both sides of every pair, compiled and run.
// tests/documents/document_blocks.py compares them with the page. support/other_libraries.hpp replaces folly,
// Abseil and pevents.
#include "coming_from.hpp"
#include "other_libraries.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>

namespace {

using namespace std::chrono_literals;
using namespace support;

// Two consumers take what one producer pushes.
template <class Pop, class Push>
void everything_arrives(Pop pop, Push push) {
    std::atomic<int> sum{0};
    thread_group threads;
    for (int i = 0; i != 2; ++i) {
        threads.start("consumer", [&] {
            for (int item = 0; item != 50; ++item) sum += pop();
        });
    }
    for (int item = 0; item != 100; ++item) push(item);
    threads.join();
    EXPECT_EQ(sum, 4950);
}

// Three threads wait for one signal, and so does a wait that comes later.
template <class Wait, class Signal>
void releases_all(Wait wait, Signal signal) {
    thread_group threads;
    for (int i = 0; i != 3; ++i) threads.start("waiter", wait);
    signal();
    threads.join();
    wait();
}

template <class Finish, class Wait>
void waits_for_three(Finish finish_one, Wait wait) {
    std::atomic<int> finished{0};
    thread_group threads;
    for (int i = 0; i != 3; ++i) {
        threads.start("worker", [&] {
            ++finished;
            finish_one();
        });
    }
    wait();
    EXPECT_EQ(finished, 3);
    threads.join();
}

TEST(FollyBefore, AHandOff) {
    folly::Baton<> done;

    const auto wait = [&] { return done.try_wait_for(10s); };
    const auto signal = [&] { done.post(); };

    signal();
    EXPECT_TRUE(wait());
}

TEST(FollyAfter, AHandOff) {
    tocsin::auto_reset_event done;

    const auto wait = [&] { return done.wait_for(10s) == tocsin::wait_status::signaled; };
    const auto signal = [&] { done.set(); };

    signal();
    EXPECT_TRUE(wait());
}

TEST(FollyBefore, AQueue) {
    shared_queue queue;
    folly::EventCount pushed;

    const auto pop = [&] {
        int item = 0;
        pushed.await([&] { return queue.try_pop(item); });
        return item;
    };
    const auto push = [&](int item) {
        queue.push(item);
        pushed.notify();
    };

    everything_arrives(pop, push);
}

TEST(FollyAfter, AQueue) {
    shared_queue queue;
    tocsin::auto_reset_event pushed;

    const auto pop = [&] {
        int item = 0;
        while (!queue.try_pop(item)) pushed.wait();
        if (!queue.is_empty()) pushed.set();  // for another consumer
        return item;
    };
    const auto push = [&](int item) {
        queue.push(item);
        pushed.set();
    };

    everything_arrives(pop, push);
}

TEST(AbseilBefore, AnEventThatHappensOnce) {
    absl::Notification ready;

    const auto wait = [&] { return ready.WaitForNotificationWithTimeout(absl::Seconds(10)); };
    const auto signal = [&] { ready.Notify(); };

    releases_all([&] { EXPECT_TRUE(wait()); }, signal);
}

TEST(AbseilAfter, AnEventThatHappensOnce) {
    tocsin::manual_reset_event ready;

    const auto wait = [&] { return ready.wait_for(10s) == tocsin::wait_status::signaled; };
    const auto signal = [&] { ready.set(); };

    releases_all([&] { EXPECT_TRUE(wait()); }, signal);
}

TEST(AbseilBefore, AConditionUnderAMutex) {
    absl::Mutex mutex;
    int inside = 0;

    const auto enter = [&] {
        const auto has_room = [&] { return inside < 2; };
        const absl::MutexLock lock(&mutex);
        mutex.Await(absl::Condition(&has_room));
        ++inside;
    };
    const auto leave = [&] {
        const absl::MutexLock lock(&mutex);
        --inside;
    };

    lets_two_in(enter, leave);
}

TEST(AbseilAfter, AConditionUnderAMutex) {
    std::mutex mutex;
    tocsin::condition has_room;
    int inside = 0;

    const auto enter = [&] {
        std::unique_lock lock(mutex);
        has_room.wait(lock, [&] { return inside < 2; });
        ++inside;
    };
    const auto leave = [&] {
        {
            const std::lock_guard lock(mutex);
            --inside;
        }
        has_room.notify_one();
    };

    lets_two_in(enter, leave);
}

TEST(AbseilBefore, ACount) {
    absl::BlockingCounter left(3);

    const auto finish_one = [&] { left.DecrementCount(); };
    const auto wait = [&] { left.Wait(); };

    waits_for_three(finish_one, wait);
}

TEST(AbseilAfter, ACount) {
    tocsin::latch left(3);

    const auto finish_one = [&] { left.count_down(); };
    const auto wait = [&] { left.wait(); };

    waits_for_three(finish_one, wait);
}

TEST(PeventsBefore, TwoEvents) {
    const neosmart::neosmart_event_t shutdown = neosmart::CreateEvent(true);
    const neosmart::neosmart_event_t job = neosmart::CreateEvent();

    const auto wait = [&]() -> std::string {
        neosmart::neosmart_event_t both[] = {shutdown, job};
        int index = -1;
        if (neosmart::WaitForMultipleEvents(both, 2, false, 10'000, index) != 0) return "late";
        return index == 0 ? "shutdown" : "job";
    };
    const auto signal = [&] { neosmart::SetEvent(job); };

    signals_and_waits([&] { EXPECT_EQ(wait(), "job"); }, signal);
    neosmart::DestroyEvent(shutdown);
    neosmart::DestroyEvent(job);
}

TEST(PeventsAfter, TwoEvents) {
    tocsin::manual_reset_event shutdown;
    tocsin::auto_reset_event job;

    const auto wait = [&]() -> std::string {
        const auto [status, index, found] = tocsin::wait_any({.until = 10s}, shutdown, job);
        if (status == tocsin::wait_status::timed_out) return "late";
        return index == 0 ? "shutdown" : "job";
    };
    const auto signal = [&] { job.set(); };

    signals_and_waits([&] { EXPECT_EQ(wait(), "job"); }, signal);
}

}  // namespace
