// SPDX-License-Identifier: Apache-2.0
// Abseil 20220623 (Debian's).
#pragma once

#include "monitor.hpp"

#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>

namespace lab {

class absl_lock {
public:
    void lock() { mutex_.Lock(); }
    void unlock() { mutex_.Unlock(); }

protected:
    absl::Mutex mutex_;
};

class absl_monitor : public absl_lock {
public:
    void sleep() { changed_.Wait(&mutex_); }
    bool sleep_until(std::int64_t when) {
        // Its deadlines are on the wall clock, so it can return early by the steady clock.
        return !changed_.WaitWithTimeout(&mutex_, absl::Nanoseconds(when - now())) || now() < when;
    }
    void wake_one() { changed_.Signal(); }
    void wake_all() { changed_.SignalAll(); }

private:
    absl::CondVar changed_;
};

struct absl_cond : monitored<absl_monitor> {
    static constexpr contestant_info info{
        .name = "absl_cond",
        .label = "absl::Mutex + CondVar",
        .role = role::peer,
        .about = "a flag, absl::Mutex and absl::CondVar (Abseil 20220623)",
        .limits = "re-checks after waking: set then reset may release nobody; deadlines on the wall clock",
        .no_address_wait = "waits on its own objects only",
        .included_from = tier::full,
    };
    using own_lock = absl_lock;
};

struct absl_notification {
    static constexpr contestant_info info{
        .name = "absl_notification",
        .label = "absl::Notification",
        .role = role::peer,
        .about = "an absl::Notification, made again where an event would be reset (Abseil 20220623)",
        .limits = "works once",
        .no_auto_event = "works once",
        .no_lock = "works once",
        .no_address_wait = "waits on its own objects only",
        .included_from = tier::full,
    };

    class manual_event {
    public:
        void set() { notification_.Notify(); }
        bool is_set() const { return notification_.HasBeenNotified(); }
        void wait() const { notification_.WaitForNotification(); }

    private:
        absl::Notification notification_;
    };
};

}  // namespace lab
