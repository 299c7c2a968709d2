// SPDX-License-Identifier: Apache-2.0
// Waiting for several events at once, written by hand.
#pragma once

#include "../contestant.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace lab {

// One mutex and one condition variable for all flags.
class flags_under_a_lock {
public:
    explicit flags_under_a_lock(std::size_t count) : flags_(count, false) {}

    void set(std::size_t which) {
        {
            const std::lock_guard lock(mutex_);
            flags_[which] = true;
        }
        changed_.notify_one();
    }
    std::size_t wait_any() {
        std::unique_lock lock(mutex_);
        for (;; changed_.wait(lock)) {
            for (std::size_t i = 0; i != flags_.size(); ++i) {
                if (!flags_[i]) continue;
                flags_[i] = false;
                return i;
            }
        }
    }
    void wait_all() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] {
            for (const bool each : flags_) {
                if (!each) return false;
            }
            return true;
        });
        flags_.assign(flags_.size(), false);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bool> flags_;
};

struct std_cond_flags {
    static constexpr contestant_info info{
        .name = "std_cond_flags",
        .label = "flags + std cond",
        .role = role::peer,
        .about = "flags for all events under one std::mutex, with one std::condition_variable",
        .limits = "all events share a lock and serve one waiter; each set wakes it",
        .no_manual_event = "is a way to wait for several",
        .no_auto_event = "is a way to wait for several",
        .no_lock = "is a way to wait for several",
        .no_address_wait = "is a way to wait for several",
    };
    using event_group = flags_under_a_lock;
};

}  // namespace lab
