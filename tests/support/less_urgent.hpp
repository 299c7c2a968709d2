// SPDX-License-Identifier: Apache-2.0
// Threads that are less urgent than others, and get no processor when it matters: what docs/priorities.md promises to
// the others. Linux only.
#pragma once

#include "facts.hpp"
#include "patience.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace support {

// Makes the calling thread less urgent than ordinary threads. Every thread may do so.
inline void be_slow() { ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(thread_id()), 19), 0); }

// The less urgent threads have a nice value of 19, and are frozen. The urgent thread is an ordinary one.
class frozen_threads {
public:
    static std::string why_not() { return freezer::works ? "" : "no frozen threads under this sanitizer"; }

    void become_less_urgent() { be_slow(); }
    void become_urgent() {}
    // From now on, the first `count` threads of the group get no processor.
    void stop(thread_group& threads, std::size_t count) {
        for (std::size_t i = 0; i != count; ++i) frost_.freeze(threads.handle(i));
    }
    void go_on() { frost_.thaw(); }

private:
    freezer frost_;
};

// All have real-time priorities, and share one processor. A thread between the less urgent ones and the urgent one hogs
// this processor, until go_on() is called.
class hogged_threads {
public:
    static std::string why_not() {
        if (thread_sanitizer || address_sanitizer)
            return "sanitizers make threads of their own, which a hog would stop";
        cpu_set_t all;
        if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
            return "the hog needs a processor besides that of the test";
        bool permitted = false;
        std::thread([&permitted] {
            sched_param how{};
            how.sched_priority = 1;
            permitted = sched_setscheduler(0, SCHED_FIFO, &how) == 0;
        }).join();
        return permitted ? "" : "the system permits no real-time priority here (run as root)";
    }

    // The calling thread, and the threads that it starts, leave the processor that will be hogged.
    hogged_threads() {
        EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
        for (int i = 0; i != CPU_SETSIZE; ++i) {
            if (CPU_ISSET(i, &before_)) hogged_ = i;
        }
        cpu_set_t others = before_;
        CPU_CLR(hogged_, &others);
        EXPECT_EQ(sched_setaffinity(0, sizeof others, &others), 0);
    }
    hogged_threads(const hogged_threads&) = delete;
    hogged_threads& operator=(const hogged_threads&) = delete;
    ~hogged_threads() {
        go_on();
        EXPECT_EQ(sched_setaffinity(0, sizeof before_, &before_), 0);
    }

    void become_less_urgent() const { be(5); }
    void become_urgent() const { be(40); }
    void stop(thread_group&, std::size_t) {
        over_ = false;
        std::atomic<bool> runs{false};
        hog_ = std::thread([this, &runs] {
            be(20);
            runs = true;
            while (!over_.load()) {
            }
        });
        until("the hog runs", [&] { return runs.load(); });
    }
    void go_on() {
        over_ = true;
        if (hog_.joinable()) hog_.join();
    }

private:
    // Makes the calling thread a real-time thread on the hogged processor.
    void be(int priority) const {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(hogged_, &one);
        sched_param how{};
        how.sched_priority = priority;
        // In this order: an ordinary thread would not come back from a processor that is hogged.
        EXPECT_EQ(sched_setscheduler(0, SCHED_FIFO, &how), 0);
        EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    }

    cpu_set_t before_{};
    int hogged_ = 0;
    std::thread hog_;
    std::atomic<bool> over_{false};
};

// Eight less urgent threads wait, then an urgent one. The less urgent ones get no processor when `notify` is called.
template <class LessUrgent>
void expect_no_wait_for_the_less_urgent(const volatile void* parked_on, const std::function<void()>& wait,
                                        const std::function<void()>& notify) {
    constexpr std::size_t count = 8;
    LessUrgent others;
    thread_group threads;
    std::atomic<bool> passed{false};
    for (std::size_t i = 0; i != count; ++i) {
        threads.start("less urgent", [&] {
            others.become_less_urgent();
            wait();
        });
        until_parked(parked_on, i + 1);
        until_sound_asleep(threads.id(i));
    }
    threads.start("urgent", [&] {
        others.become_urgent();
        wait();
        passed = true;
    });
    until_parked(parked_on, count + 1);
    until_sound_asleep(threads.id(count));
    others.stop(threads, count);
    notify();
    until("the urgent thread has passed", [&] { return passed.load(); });
    others.go_on();
    threads.join();
}

// What a kind of lock can do: the test's thread takes and frees it, other threads pass it (take it and free it).
struct lock_calls {
    std::function<void()> take;
    std::function<void()> free;
    std::function<void()> pass;
};

// A less urgent thread waits for a lock, then an urgent one. The lock becomes free, and the less urgent thread gets no
// processor. (In the second round, that thread has been woken before the urgent one arrives.)
template <class LessUrgent>
void expect_that_a_free_lock_does_not_wait(const lock_calls& lock) {
    for (const bool was_woken : {false, true}) {
        LessUrgent others;
        thread_group threads;
        std::atomic<bool> passed{false};
        lock.take();
        threads.start("less urgent", [&] {
            others.become_less_urgent();
            lock.pass();
        });
        until_sound_asleep(threads.id(0));
        others.stop(threads, 1);
        if (was_woken) {
            lock.free();
            lock.take();
        }
        threads.start("urgent", [&] {
            others.become_urgent();
            lock.pass();
            passed = true;
        });
        threads.until_asleep(1);
        lock.free();
        until("the urgent thread has had the lock", [&] { return passed.load(); });
        others.go_on();
        threads.join();
    }
}

}  // namespace support
