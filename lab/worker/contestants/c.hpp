// SPDX-License-Identifier: Apache-2.0
// tocsin by its C interface: what the checks and the statuses of each call cost compared with the C++ call.
#pragma once

#include "../contestant.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

#include <tocsin.h>

namespace lab {

class c_manual_event {
public:
    void set() noexcept { (void)::tocsin_manual_event_set(&event_); }
    void reset() noexcept { (void)::tocsin_manual_event_reset(&event_); }
    bool is_set() noexcept { return ::tocsin_manual_event_try_wait(&event_) == TOCSIN_OK; }  // takes nothing
    void wait() noexcept { (void)::tocsin_manual_event_wait(&event_, nullptr); }

private:
    ::tocsin_manual_event event_ = TOCSIN_EVENT_UNSET;
};

class c_auto_event {
public:
    void set() noexcept { (void)::tocsin_auto_event_set(&event_); }
    bool try_wait() noexcept { return ::tocsin_auto_event_try_wait(&event_) == TOCSIN_OK; }
    void wait() noexcept { (void)::tocsin_auto_event_wait(&event_, nullptr); }
    bool wait_for(std::chrono::nanoseconds longest) noexcept {
        ::tocsin_limits how{};
        how.until.clock = TOCSIN_CLOCK_FROM_NOW;
        how.until.nanoseconds = longest.count();
        return ::tocsin_auto_event_wait(&event_, &how) == TOCSIN_OK;
    }

private:
    ::tocsin_auto_event event_ = TOCSIN_EVENT_UNSET;
};

class c_lock {
public:
    void lock() noexcept { (void)::tocsin_lock_acquire(&lock_, nullptr); }
    void unlock() noexcept { (void)::tocsin_lock_release(&lock_); }

private:
    ::tocsin_lock lock_ = TOCSIN_LOCK_INIT;
};

// Several auto-reset events, waited for at once.
class c_group {
public:
    explicit c_group(std::size_t count) : events_(count), sources_(count) {
        for (std::size_t i = 0; i != count; ++i) {
            sources_[i].kind = TOCSIN_SOURCE_AUTO_EVENT;
            sources_[i].of.object = &events_[i];
        }
    }
    void set(std::size_t which) noexcept { (void)::tocsin_auto_event_set(&events_[which]); }
    std::size_t wait_any() noexcept {
        ::tocsin_any_result result{};
        (void)::tocsin_wait_any(sources_.data(), sources_.size(), nullptr, &result);
        return result.index;
    }
    void wait_all() noexcept { (void)::tocsin_wait_all(sources_.data(), sources_.size(), nullptr); }

private:
    std::vector<::tocsin_auto_event> events_;
    std::vector<::tocsin_source> sources_;
};

struct tocsin_c {
    static constexpr contestant_info info{
        .name = "tocsin_c",
        .label = "tocsin (C)",
        .role = role::variant,
        .about = "tocsin.h: the same objects; each call checks its arguments and returns a status",
        .no_address_wait = "is measured by its events and its lock",
    };
    using manual_event = c_manual_event;
    using auto_event = c_auto_event;
    using own_lock = c_lock;
    using event_group = c_group;
};

}  // namespace lab
