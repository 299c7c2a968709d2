// SPDX-License-Identifier: Apache-2.0
// Standalone Asio: a timer that never expires, used as a condition variable.
#pragma once

#include "../contestant.hpp"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>

namespace lab {

// A set cancels the first wait of the timer and runs its handler, in the calling thread. If there is none, a flag keeps
// the set for the next wait.
class asio_timer_event {
public:
    class wait {
    public:
        explicit wait(asio_timer_event& on) : event_(on) {}
        void start() {
            const std::scoped_lock held(event_.mutex_);
            if (std::exchange(event_.is_set_, false)) {
                ++ended_;
            } else {
                event_.timer_.async_wait([this](const asio::error_code&) { ++ended_; });
            }
        }
        std::uint64_t ended() const noexcept { return ended_; }
        // Asio cancels the wait that was started first, so the caller cancels in that order.
        bool cancel() {
            const std::scoped_lock held(event_.mutex_);
            const std::uint64_t before = ended_;
            event_.release();
            return ended_ != before;
        }

    private:
        asio_timer_event& event_;
        std::uint64_t ended_ = 0;
    };

    // A wait with a deadline that is far away: a second timer, which the end of the wait cancels.
    class timed_wait {
    public:
        explicit timed_wait(asio_timer_event& on) : event_(on) {}
        void start() {
            const std::scoped_lock held(event_.mutex_);
            if (std::exchange(event_.is_set_, false)) {
                ++ended_;
                return;
            }
            limit_.expires_after(std::chrono::hours(1));
            limit_.async_wait([this](const asio::error_code& error) {
                if (!error) event_.release();
            });
            event_.timer_.async_wait([this](const asio::error_code&) {
                ++ended_;
                limit_.cancel();
            });
        }
        std::uint64_t ended() const noexcept { return ended_; }
        bool cancel() {
            const std::scoped_lock held(event_.mutex_);
            const std::uint64_t before = ended_;
            event_.release();
            return ended_ != before;
        }

    private:
        asio_timer_event& event_;
        asio::steady_timer limit_{context()};
        std::uint64_t ended_ = 0;
    };

    void set() {
        const std::scoped_lock held(mutex_);
        if (!release()) is_set_ = true;
    }

private:
    // Call it with the mutex held.
    bool release() {
        if (timer_.cancel_one() == 0) return false;
        context().restart();
        context().poll();
        return true;
    }
    // One for all events, because each has three descriptors.
    static asio::io_context& context() {
        static asio::io_context one;
        return one;
    }

    asio::steady_timer timer_{context(), asio::steady_timer::time_point::max()};
    std::mutex mutex_;
    bool is_set_ = false;
};

struct asio_timer {
    static constexpr contestant_info info{
        .name = "asio_timer",
        .label = "Asio timer",
        .role = role::peer,
        .about = "standalone Asio: async_wait on a steady_timer that never expires; a set cancels one wait",
        .limits = "runs the function under its mutex; cancels only the wait that was started first",
        .no_manual_event = "is only an asynchronous wait",
        .no_auto_event = "is only an asynchronous wait",
        .no_lock = "is only an asynchronous wait",
        .no_address_wait = "is only an asynchronous wait",
        .no_committer = "is only an asynchronous wait",
        .included_from = tier::full,
    };
    using async_event = asio_timer_event;
};

}  // namespace lab
