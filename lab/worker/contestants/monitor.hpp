// SPDX-License-Identifier: Apache-2.0
// Events made of a flag, a mutex and a condition variable: what most programs use where they want an event, and what
// most libraries have.
#pragma once

#include "../contestant.hpp"
#include "../measure/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace lab {

// A Monitor:
//     lock() unlock()
//     sleep()              called under the lock, which it releases while it sleeps; may return for no reason
//     sleep_until(when)    the same; `when` in nanoseconds of the steady clock; false if that time has passed
//     wake_one() wake_all()
template <class Monitor>
struct monitored {
    static constexpr std::string_view limits =
        "re-checks after waking: set then reset may release nobody; woken threads queue for the mutex";

    class flag {
    public:
        flag() = default;
        flag(const flag&) = delete;
        flag& operator=(const flag&) = delete;

    protected:
        mutable Monitor monitor_;
        bool set_ = false;
    };

    class manual_event : flag {
    public:
        void set() {
            const std::scoped_lock held(monitor_);
            set_ = true;
            monitor_.wake_all();
        }
        void reset() {
            const std::scoped_lock held(monitor_);
            set_ = false;
        }
        bool is_set() const {
            const std::scoped_lock held(monitor_);
            return set_;
        }
        void wait() {
            const std::scoped_lock held(monitor_);
            while (!set_) monitor_.sleep();
        }

    private:
        using flag::monitor_, flag::set_;
    };

    class auto_event : flag {
    public:
        void set() {
            const std::scoped_lock held(monitor_);
            set_ = true;
            monitor_.wake_one();
        }
        bool try_wait() {
            const std::scoped_lock held(monitor_);
            return take();
        }
        void wait() {
            const std::scoped_lock held(monitor_);
            while (!take()) monitor_.sleep();
        }
        bool wait_for(std::chrono::nanoseconds longest) {
            const std::int64_t until = now() + longest.count();
            const std::scoped_lock held(monitor_);
            while (!take()) {
                if (!monitor_.sleep_until(until)) return take();
            }
            return true;
        }

    private:
        using flag::monitor_, flag::set_;

        bool take() noexcept {
            const bool was_set = set_;
            set_ = false;
            return was_set;
        }
    };
};

}  // namespace lab
