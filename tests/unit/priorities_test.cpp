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

// Parks threads of nice 19, 10 and 0, twice, in this order. Then releases one after the other. (If the test itself runs
// at a nice above 0, it may not lower this number: then it takes its own, and one between.)
std::vector<int> order_of_release(const volatile void* parked_on, const std::function<void()>& wait,
                                  const std::function<void()>& release) {
    std::vector<int> order;
    std::atomic<std::size_t> released{0};
    const int own = std::max(getpriority(PRIO_PROCESS, 0), 0);
    const int nice_values[] = {19, (20 + own) / 2, own};
    thread_group threads;
    for (int i = 0; i != 6; ++i) {
        threads.start("waiter", [&, i] {
            EXPECT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_values[i % 3]), 0);
            wait();
            order.push_back(i);
            released.fetch_add(1);
        });
        until_parked(parked_on, static_cast<std::size_t>(i) + 1);
    }
    for (std::size_t i = 1; i != 7; ++i) {
        release();
        support::until("one more is released", [&] { return released.load() == i; });
    }
    threads.join();
    return order;
}

TEST(Priorities, ASemaphoreServesByPriorityIfAsked) {
    tocsin::counting_semaphore<8, tocsin::queue_order::priority> permits(0);
    const auto release = [&] { permits.release(); };
    const std::vector by_priority{2, 5, 1, 4, 0, 3};
    EXPECT_EQ(order_of_release(&permits, [&] { permits.acquire(); }, release), by_priority);
    EXPECT_EQ(order_of_release(
                  &permits, [&] { EXPECT_EQ(tocsin::wait_any(permits).index, 0u); }, release),
              by_priority);
    EXPECT_EQ(
        order_of_release(&permits, [&] { EXPECT_TRUE(permits.try_acquire_for(1h)); }, release), by_priority);
}

TEST(Priorities, AnEventServesByPriorityIfAsked) {
    tocsin::auto_reset_priority_event event;
    static_assert(sizeof event == 1);
    EXPECT_EQ(order_of_release(
                  &event, [&] { event.wait(); }, [&] { event.set(); }),
              (std::vector{2, 5, 1, 4, 0, 3}));
}

TEST(Priorities, OtherQueuesKeepTheOrderOfArrival) {
    tocsin::counting_semaphore<> permits(0);
    const std::vector by_arrival{0, 1, 2, 3, 4, 5};
    EXPECT_EQ(order_of_release(&permits, [&] { permits.acquire(); }, [&] { permits.release(); }), by_arrival);
    tocsin::auto_reset_event event;
    EXPECT_EQ(order_of_release(&event, [&] { event.wait(); }, [&] { event.set(); }), by_arrival);
}

// If the urgent one came first, both would hold a permit that the other needs.
TEST(Priorities, AWaitThatHasBegunToCollectKeepsItsPlace) {
    tocsin::counting_semaphore<8, tocsin::queue_order::priority> permits(1);
    std::vector<int> order;
    thread_group threads;
    threads.start("slow", [&] {
        be_slow();
        permits.acquire(2);
        order.push_back(0);
        permits.release(2);
    });
    until_parked(&permits, 1);
    threads.start("ordinary", [&] {
        permits.acquire(2);
        order.push_back(1);
        permits.release(2);
    });
    until_parked(&permits, 2);
    permits.release();
    threads.join();
    EXPECT_EQ(order, (std::vector{0, 1}));
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
