// SPDX-License-Identifier: Apache-2.0
// GLib 2.74 (Debian's).
#pragma once

#include "monitor.hpp"
#include "wakers.hpp"

#include <glib.h>

namespace lab {

class glib_lock {
public:
    glib_lock() noexcept { g_mutex_init(&mutex_); }
    ~glib_lock() { g_mutex_clear(&mutex_); }
    glib_lock(const glib_lock&) = delete;
    glib_lock& operator=(const glib_lock&) = delete;

    void lock() noexcept { g_mutex_lock(&mutex_); }
    void unlock() noexcept { g_mutex_unlock(&mutex_); }

protected:
    GMutex mutex_;
};

class glib_monitor : public glib_lock {
public:
    glib_monitor() noexcept { g_cond_init(&changed_); }
    ~glib_monitor() { g_cond_clear(&changed_); }
    glib_monitor(const glib_monitor&) = delete;
    glib_monitor& operator=(const glib_monitor&) = delete;

    void sleep() noexcept { g_cond_wait(&changed_, &mutex_); }
    // It takes the steady clock in microseconds: rounded up, so as not to return early.
    bool sleep_until(std::int64_t when) noexcept {
        return g_cond_wait_until(&changed_, &mutex_, (when + 999) / 1'000) != FALSE;
    }
    void wake_one() noexcept { g_cond_signal(&changed_); }
    void wake_all() noexcept { g_cond_broadcast(&changed_); }

private:
    GCond changed_;
};

struct glib_cond : monitored<glib_monitor> {
    static constexpr contestant_info info{
        .name = "glib_cond",
        .label = "GMutex + GCond",
        .role = role::peer,
        .about = "a flag, GMutex and GCond (GLib 2.74)",
        .limits = monitored::limits,
        .no_address_wait = "waits on its own condition variable only",
        .included_from = tier::full,
    };
    using own_lock = glib_lock;
};

// A main context with the sockets in it.
class glib_context_waker {
public:
    explicit glib_context_waker(std::span<const int> idle) : context_(g_main_context_new()) {
        for (const int each : idle) polls_.push_back({each, G_IO_IN, 0});
        for (GPollFD& each : polls_) g_main_context_add_poll(context_, &each, G_PRIORITY_DEFAULT);
    }
    ~glib_context_waker() {
        for (GPollFD& each : polls_) g_main_context_remove_poll(context_, &each);
        g_main_context_unref(context_);
    }
    glib_context_waker(const glib_context_waker&) = delete;
    glib_context_waker& operator=(const glib_context_waker&) = delete;

    void wake() noexcept {
        rung_.store(true);
        g_main_context_wakeup(context_);
    }
    void wait() noexcept {
        while (!rung_.exchange(false)) g_main_context_iteration(context_, TRUE);
    }

private:
    GMainContext* context_;
    std::vector<GPollFD> polls_;
    std::atomic<bool> rung_{false};
};

struct glib_context {
    static constexpr waker_only info{
        "glib_context",
        "GLib main context",
        "g_main_context_wakeup() and a flag, to a main context that polls the sockets (GLib 2.74)",
        "a context a waiter",
        role::peer,
        tier::full};
    using loop_waker = glib_context_waker;
};

}  // namespace lab
