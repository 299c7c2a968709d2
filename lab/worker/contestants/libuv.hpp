// SPDX-License-Identifier: Apache-2.0
// libuv 1.44 (Debian's): its mutex and condition variable, and its loop.
#pragma once

#include "monitor.hpp"
#include "wakers.hpp"

#include <uv.h>

namespace lab {

class uv_monitor {
public:
    uv_monitor() noexcept {
        uv_mutex_init(&mutex_);
        uv_cond_init(&changed_);
    }
    ~uv_monitor() {
        uv_cond_destroy(&changed_);
        uv_mutex_destroy(&mutex_);
    }
    uv_monitor(const uv_monitor&) = delete;
    uv_monitor& operator=(const uv_monitor&) = delete;

    void lock() noexcept { uv_mutex_lock(&mutex_); }
    void unlock() noexcept { uv_mutex_unlock(&mutex_); }
    void sleep() noexcept { uv_cond_wait(&changed_, &mutex_); }
    bool sleep_until(std::int64_t when) noexcept {
        const std::int64_t left = std::max<std::int64_t>(when - now(), 0);
        return uv_cond_timedwait(&changed_, &mutex_, static_cast<std::uint64_t>(left)) == 0;
    }
    void wake_one() noexcept { uv_cond_signal(&changed_); }
    void wake_all() noexcept { uv_cond_broadcast(&changed_); }

private:
    uv_mutex_t mutex_;
    uv_cond_t changed_;
};

struct libuv_cond : monitored<uv_monitor> {
    static constexpr contestant_info info{
        .name = "libuv_cond",
        .label = "libuv mutex + cond",
        .role = role::peer,
        .about = "a flag, uv_mutex_t and uv_cond_t (libuv 1.44)",
        .limits = monitored::limits,
        .no_lock = "its mutex is the contestant pthread_mutex",
        .no_address_wait = "waits on its own condition variable only",
        .included_from = tier::full,
    };
};

// A loop with the sockets in it, woken by a uv_async_t, which saves writes with a flag of its own.
class uv_async_waker {
public:
    explicit uv_async_waker(std::span<const int> idle) : polls_(idle.size()) {
        uv_loop_init(&loop_);
        uv_async_init(&loop_, &bell_, [](uv_async_t* bell) { *static_cast<bool*>(bell->data) = true; });
        bell_.data = &rung_;
        for (std::size_t i = 0; i != idle.size(); ++i) {
            uv_poll_init(&loop_, &polls_[i], idle[i]);
            uv_poll_start(&polls_[i], UV_READABLE, [](uv_poll_t*, int, int) {});
        }
    }
    ~uv_async_waker() {
        uv_close(reinterpret_cast<uv_handle_t*>(&bell_), nullptr);
        for (uv_poll_t& each : polls_) uv_close(reinterpret_cast<uv_handle_t*>(&each), nullptr);
        uv_run(&loop_, UV_RUN_DEFAULT);
        uv_loop_close(&loop_);
    }
    uv_async_waker(const uv_async_waker&) = delete;
    uv_async_waker& operator=(const uv_async_waker&) = delete;

    void wake() noexcept { uv_async_send(&bell_); }
    void wait() noexcept {
        while (!rung_) uv_run(&loop_, UV_RUN_ONCE);
        rung_ = false;
    }

private:
    uv_loop_t loop_;
    uv_async_t bell_;
    bool rung_ = false;  // only the loop's thread uses it
    std::vector<uv_poll_t> polls_;
};

struct libuv_async {
    static constexpr waker_only info{
        "libuv_async",     "libuv async", "uv_async_send() to a loop that polls the sockets (libuv 1.44)",
        "a loop a waiter", role::peer,    tier::full};
    using loop_waker = uv_async_waker;
};

}  // namespace lab
