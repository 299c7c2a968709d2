// SPDX-License-Identifier: Apache-2.0
// What threads of different priorities may rely on (docs/priorities.md): nobody waits for a less urgent thread that was
// woken and gets no processor. A frozen thread stands for one that gets none.
#include "clocks.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#endif

namespace {

using namespace std::chrono_literals;
using support::freezer;
using support::thread_group;
using support::until_parked;

#if defined(__linux__)

// Makes the calling thread less urgent than ordinary threads. Every thread may do so.
void be_slow() { ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19), 0); }

constexpr std::size_t slow_ones = 8;

// Eight slow threads wait, then an ordinary one. The slow ones get no processor when `notify` has been called.
void expect_no_wait_for_the_slow(const volatile void* parked_on, const std::function<void()>& wait,
                                 const std::function<void()>& notify) {
    thread_group threads;
    std::atomic<bool> passed{false};
    for (std::size_t i = 0; i != slow_ones; ++i) {
        threads.start("slow", [&] {
            be_slow();
            wait();
        });
        until_parked(parked_on, i + 1);
        support::until_sound_asleep(threads.id(i));
    }
    threads.start("ordinary", [&] {
        wait();
        passed = true;
    });
    until_parked(parked_on, slow_ones + 1);
    support::until_sound_asleep(threads.id(slow_ones));
    freezer frost;
    for (std::size_t i = 0; i != slow_ones; ++i) frost.freeze(threads.handle(i));
    notify();
    support::until("the ordinary thread has passed", [&] { return passed.load(); });
    frost.thaw();
    threads.join();
}

#define NEEDS_FROZEN_THREADS() \
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer"

TEST(Priorities, ABroadcastOfAGateReachesUrgentThreadsFirst) {
    NEEDS_FROZEN_THREADS();
    tocsin::manual_reset_event gate;
    expect_no_wait_for_the_slow(&gate, [&] { gate.wait(); }, [&] { gate.set(); });
}

TEST(Priorities, ABroadcastToWaitsWithDeadlinesReachesUrgentThreadsFirst) {
    NEEDS_FROZEN_THREADS();
    tocsin::manual_reset_event gate;
    expect_no_wait_for_the_slow(
        &gate, [&] { EXPECT_EQ(gate.wait_for(1h), tocsin::wait_status::signaled); }, [&] { gate.set(); });
}

TEST(Priorities, AWakeListReachesUrgentThreadsFirst) {
    NEEDS_FROZEN_THREADS();
    tocsin::manual_reset_event gate;
    expect_no_wait_for_the_slow(
        &gate, [&] { gate.wait(); },
        [&] {
            tocsin::wake_list freed;
            gate.set(freed);
            tocsin::wake_list all;
            all.append(std::move(freed));
            all.wake();
        });
}

template <class Mutex>
void expect_of_conditions() {
    tocsin::condition changed;
    Mutex mutex;
    bool done = false;
    expect_no_wait_for_the_slow(
        &changed,
        [&] {
            std::unique_lock<Mutex> lock(mutex);
            changed.wait(lock, [&] { return done; });
        },
        [&] {
            {
                const std::lock_guard<Mutex> lock(mutex);
                done = true;
            }
            changed.notify_all();
        });
}

TEST(Priorities, TurnsOfAConditionBeginWithUrgentThreads) {
    NEEDS_FROZEN_THREADS();
    expect_of_conditions<std::mutex>();
}

TEST(Priorities, ARelayOfAConditionBeginsWithUrgentThreads) {
    NEEDS_FROZEN_THREADS();
    expect_of_conditions<std::recursive_mutex>();
}

TEST(Priorities, AReleaseOfManyPermitsReachesUrgentThreadsFirst) {
    NEEDS_FROZEN_THREADS();
    tocsin::counting_semaphore<> permits(0);
    expect_no_wait_for_the_slow(
        &permits, [&] { permits.acquire(); }, [&] { permits.release(slow_ones + 1); });
}

TEST(Priorities, AWakeOfAnAddressReachesUrgentThreadsFirst) {
    NEEDS_FROZEN_THREADS();
    std::atomic<int> word{0};
    expect_no_wait_for_the_slow(
        &word, [&] { EXPECT_EQ(tocsin::wait_on_address(&word, 0), tocsin::address_status::woken); },
        [&] { EXPECT_EQ(tocsin::wake_by_address_all(&word), slow_ones + 1); });
}

TEST(Priorities, AFreeLockIsGivenToTheMostUrgentThread) {
    NEEDS_FROZEN_THREADS();
    for (const bool slow_one_was_woken_before : {false, true}) {
        tocsin::word_lock<> lock;
        std::atomic<bool> taken{false};
        thread_group threads;
        lock.lock();
        threads.start("slow", [&] {
            be_slow();
            const std::lock_guard held(lock);
        });
        until_parked(&lock, 1);
        support::until_sound_asleep(threads.id(0));
        freezer frost;
        frost.freeze(threads.handle(0));
        if (slow_one_was_woken_before) {
            lock.unlock();
            lock.lock();
        }
        threads.start("ordinary", [&] {
            const std::lock_guard held(lock);
            taken = true;
        });
        until_parked(&lock, 2);
        support::until_sound_asleep(threads.id(1));
        lock.unlock();
        support::until("the ordinary thread has had the lock", [&] { return taken.load(); });
        frost.thaw();
        threads.join();
    }
}

// The system gives a slow thread a share of the processors, so the lock gives it a turn, too.
TEST(Priorities, ASlowThreadIsPassedOverSixteenTimesAtMost) {
    constexpr std::size_t others = 20;
    tocsin::word_lock<> lock;
    std::vector<int> order;
    thread_group threads;
    lock.lock();
    for (std::size_t i = 0; i != others + 1; ++i) {
        threads.start("waiter", [&, i] {
            if (i == 0) be_slow();
            const std::lock_guard held(lock);
            order.push_back(static_cast<int>(i));
        });
        until_parked(&lock, i + 1);
        support::until_sound_asleep(threads.id(i));
    }
    lock.unlock();
    threads.join();
    EXPECT_EQ(std::find(order.begin(), order.end(), 0) - order.begin(), 16);
}

// A real-time thread between two others hogs the only processor that all three may use.
class RealTime : public testing::Test {
protected:
    void SetUp() override {
        if (support::thread_sanitizer || support::address_sanitizer)
            GTEST_SKIP() << "sanitizers make threads of their own, which a hog would stop";
        cpu_set_t all;
        ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
        if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "the hog needs a processor beside that of the test";
        for (int i = 0; i != CPU_SETSIZE; ++i) {
            if (CPU_ISSET(i, &all)) hogged_ = i;
        }
        std::thread([this] { permitted_ = be(1); }).join();
        if (!permitted_) GTEST_SKIP() << "the system permits no real-time priority here (run as root)";
    }

    // Makes the calling thread a real-time thread on the hogged processor.
    bool be(int priority) const {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(hogged_, &one);
        sched_param how{};
        how.sched_priority = priority;
        // In this order: an ordinary thread would not come back from a processor that is hogged.
        return sched_setscheduler(0, SCHED_FIFO, &how) == 0 && sched_setaffinity(0, sizeof one, &one) == 0;
    }

    int hogged_ = 0;
    bool permitted_ = false;
};

TEST_F(RealTime, AnUrgentThreadGetsAFreeLockAlthoughALessUrgentOneIsOnItsWay) {
    tocsin::word_lock<> lock;
    std::atomic<bool> taken{false};
    std::atomic<bool> over{false};
    thread_group threads;
    lock.lock();
    threads.start("low", [&] {
        EXPECT_TRUE(be(5));
        const std::lock_guard held(lock);
        EXPECT_TRUE(taken.load()) << "the urgent thread was first";
    });
    until_parked(&lock, 1);
    support::until_sound_asleep(threads.id(0));
    std::atomic<bool> hogs{false};
    threads.start("hog", [&] {
        EXPECT_TRUE(be(20));
        hogs = true;
        // The system takes the processor from all real-time threads after most of a second.
        const auto longest = std::chrono::steady_clock::now() + 700ms;
        while (!over.load() && std::chrono::steady_clock::now() < longest) {
        }
    });
    support::until("the hog runs", [&] { return hogs.load(); });
    lock.unlock();  // wakes the thread of low priority
    lock.lock();
    threads.start("high", [&] {
        EXPECT_TRUE(be(40));
        const std::lock_guard held(lock);
        taken = true;
        over = true;
    });
    until_parked(&lock, 2);
    lock.unlock();
    threads.join();
}

#else

TEST(Priorities, DISABLED_AreThoseOfLinux) {}

#endif

}  // namespace
