// SPDX-License-Identifier: Apache-2.0
// From the standard library: std::atomic's wait and notify, std::latch, std::mutex and std::condition_variable (on
// Linux the last two are those of POSIX threads).
#pragma once

#include "../contestant.hpp"
#include "atomics.hpp"
#include "latch_gate.hpp"
#include "monitor.hpp"

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>

namespace lab {

struct std_kind {
    template <class T>
    using atomic = std::atomic<T>;
    static constexpr auto relaxed = std::memory_order_relaxed;
    static constexpr auto acquire = std::memory_order_acquire;
};

struct std_atomic : atomics<std_kind> {
    static constexpr contestant_info info{
        .name = "std_atomic",
        .label = "std::atomic wait",
        .role = role::peer,
        .about = "std::atomic's wait, notify_one and notify_all on an int (events) or the word asked for",
        .limits = "no timed waits; re-checks after waking: set then reset may release nobody",
    };
};

struct std_latch {
    static constexpr contestant_info info{
        .name = "std_latch",
        .label = "std::latch",
        .role = role::peer,
        .about = "a latch of one, made again where an event would be reset",
        .limits = "works once",
        .no_auto_event = "works once",
        .no_lock = "works once",
        .no_address_wait = "waits on itself only",
    };

    using manual_event = latch_gate<std::latch>;
};

class std_monitor {
public:
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void sleep() {
        std::unique_lock held(mutex_, std::adopt_lock);
        changed_.wait(held);
        held.release();  // the caller unlocks
    }
    bool sleep_until(std::int64_t when) {
        std::unique_lock held(mutex_, std::adopt_lock);
        const auto status = changed_.wait_for(held, std::chrono::nanoseconds(when - now()));
        held.release();
        return status == std::cv_status::no_timeout;
    }
    void wake_one() { changed_.notify_one(); }
    void wake_all() { changed_.notify_all(); }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
};

struct std_cond : monitored<std_monitor> {
    static constexpr contestant_info info{
        .name = "std_cond",
        .label = "std mutex + cond",
        .role = role::peer,
        .about = "a flag under a std::mutex, waited for with a std::condition_variable",
        .limits = monitored::limits,
        .no_lock = "its mutex is the contestant std_mutex",
        .no_address_wait = "waits on its own condition variable only",
    };
};

struct std_mutex {
    static constexpr contestant_info info{
        .name = "std_mutex",
        .label = "std::mutex",
        .role = role::peer,
        .about = "std::mutex",
        .limits = "40 bytes, whatever size the case asks for",
        .no_manual_event = "is a lock",
        .no_auto_event = "is a lock: only its owner may unlock it",
        .no_address_wait = "is a lock",
    };
    using own_lock = std::mutex;
};

}  // namespace lab
