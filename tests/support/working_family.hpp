// SPDX-License-Identifier: Apache-2.0
// Checks whether a semaphore, a condition, a latch, a barrier and a channel work in every way. Tests use it before main
// and after it, in destructors, and in the child of a fork.
#pragma once

#include "facts.hpp"

#include <tocsin/barrier.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/word_lock.hpp>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace support {

inline constexpr std::chrono::microseconds a_moment{100};

// Each returns false if anything is not as it should be. They start threads only if they may.

// The semaphore has no permit before and after.
inline bool works(tocsin::counting_semaphore<>& permits, bool with_threads = true) {
    if (permits.try_acquire()) return false;
    permits.release(3);
    if (!permits.try_acquire(2) || permits.try_acquire(2)) return false;
    permits.acquire();
    if (permits.try_acquire_for(a_moment)) return false;
    if (!with_threads) return true;
    std::thread waiter([&] { permits.acquire(2); });
    until_parked(&permits, 1);
    permits.release();
    permits.release();
    waiter.join();
    return !permits.try_acquire();
}

inline bool works(tocsin::condition& changed, bool with_threads = true) {
    tocsin::word_lock<> lock;
    bool told = false;
    changed.notify_one();
    {
        const std::scoped_lock held(lock);
        if (changed.wait_for(lock, a_moment) != tocsin::cv_status::timeout) return false;
    }
    if (!with_threads) return true;
    std::thread waiter([&] {
        const std::scoped_lock held(lock);
        changed.wait(lock, [&] { return told; });
    });
    until_parked(&changed, 1);
    {
        const std::scoped_lock held(lock);
        told = true;
    }
    changed.notify_all();
    waiter.join();
    return tocsin::waiting_on(&changed) == 0;
}

// The latch expects two, and is open afterwards.
inline bool works(tocsin::latch& done, bool with_threads = true) {
    if (done.try_wait()) return false;
    done.count_down();
    if (done.wait_for(a_moment) != tocsin::wait_status::timed_out) return false;
    if (with_threads) {
        std::thread waiter([&] { done.wait(); });
        until_parked(&done, 1);
        done.count_down();
        waiter.join();
    } else {
        done.count_down();
    }
    return done.try_wait() && tocsin::wait_any(done).index == 0;
}

// The barrier expects two.
inline bool works(tocsin::barrier<>& phases, bool with_threads = true) {
    for (int phase = 0; phase != 3; ++phase) {
        auto arrived = phases.arrive();
        if (phases.try_wait(arrived)) return false;
        if (phases.wait_for(arrived, a_moment) != tocsin::wait_status::timed_out) return false;
        if (with_threads) {
            std::thread other([&] { phases.arrive_and_wait(); });
            phases.wait(std::move(arrived));
            other.join();
        } else {
            (void)phases.arrive();
            if (!phases.try_wait(arrived)) return false;
        }
    }
    return true;
}

// The channel is empty before and after.
inline bool works(tocsin::channel<int>& numbers, bool with_threads = true) {
    if (numbers.receive_for(a_moment).status() != tocsin::channel_status::timed_out) return false;
    for (int i = 0; i != static_cast<int>(numbers.capacity()); ++i) {
        if (numbers.send(i) != tocsin::channel_status::done) return false;
    }
    if (numbers.send_for(7, a_moment) != tocsin::channel_status::timed_out) return false;
    for (int i = 0; i != static_cast<int>(numbers.capacity()); ++i) {
        if (const auto next = numbers.receive(); !next || *next != i) return false;
    }
    if (!with_threads) return true;
    constexpr int count = 100;
    std::thread sender([&] {
        for (int i = 0; i != count; ++i) (void)numbers.send(i);
    });
    bool in_order = true;
    for (int i = 0; i != count; ++i) {
        auto receiving = numbers.receiving();
        in_order = tocsin::wait_any(receiving).index == 0 && receiving && *receiving == i && in_order;
    }
    sender.join();
    return in_order && numbers.size() == 0;
}

}  // namespace support
