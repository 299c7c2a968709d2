// SPDX-License-Identifier: Apache-2.0
// nsync 1.25 (Debian's).
#pragma once

#include "monitor.hpp"

#include <vector>

#include <nsync.h>

namespace lab {

// A time of the steady clock as a deadline on nsync's own clock.
inline nsync::nsync_time nsync_deadline(std::int64_t when) noexcept {
    const std::int64_t left = std::max<std::int64_t>(when - now(), 0);
    return nsync::nsync_time_add(
        nsync::nsync_time_now(),
        nsync::nsync_time_s_ns(left / 1'000'000'000, static_cast<unsigned>(left % 1'000'000'000)));
}

class nsync_lock {
public:
    nsync_lock() noexcept { nsync::nsync_mu_init(&mutex_); }
    void lock() noexcept { nsync::nsync_mu_lock(&mutex_); }
    void unlock() noexcept { nsync::nsync_mu_unlock(&mutex_); }

protected:
    nsync::nsync_mu mutex_;
};

class nsync_monitor : public nsync_lock {
public:
    nsync_monitor() noexcept { nsync::nsync_cv_init(&changed_); }
    void sleep() noexcept { nsync::nsync_cv_wait(&changed_, &mutex_); }
    bool sleep_until(std::int64_t when) noexcept {
        return nsync::nsync_cv_wait_with_deadline(&changed_, &mutex_, nsync_deadline(when), nullptr) == 0 ||
               now() < when;
    }
    void wake_one() noexcept { nsync::nsync_cv_signal(&changed_); }
    void wake_all() noexcept { nsync::nsync_cv_broadcast(&changed_); }

private:
    nsync::nsync_cv changed_;
};

struct nsync_cond : monitored<nsync_monitor> {
    static constexpr contestant_info info{
        .name = "nsync_cond",
        .label = "nsync mu + cv",
        .role = role::peer,
        .about = "a flag, nsync_mu and nsync_cv (nsync 1.25)",
        .limits = "re-checks after waking: set then reset may release nobody; deadlines on the wall clock",
        .no_address_wait = "waits on its own objects only",
        .included_from = tier::full,
    };
    using own_lock = nsync_lock;
};

struct nsync_note_contestant {
    static constexpr contestant_info info{
        .name = "nsync_note",
        .label = "nsync note",
        .role = role::peer,
        .about = "an nsync_note, made again where an event would be reset (nsync 1.25)",
        .limits = "works once; on the heap",
        .no_auto_event = "works once",
        .no_lock = "works once",
        .no_address_wait = "waits on its own objects only",
        .included_from = tier::full,
    };

    class manual_event {
    public:
        manual_event() noexcept : note_(nsync::nsync_note_new(nullptr, nsync::nsync_time_no_deadline)) {}
        ~manual_event() { nsync::nsync_note_free(note_); }
        manual_event(const manual_event&) = delete;
        manual_event& operator=(const manual_event&) = delete;

        void set() noexcept { nsync::nsync_note_notify(note_); }
        bool is_set() const noexcept { return nsync::nsync_note_is_notified(note_) != 0; }
        void wait() const noexcept { nsync::nsync_note_wait(note_, nsync::nsync_time_no_deadline); }

    private:
        nsync::nsync_note note_;
    };
};

// A flag and a condition variable for each event, nsync_wait_n() over the condition variables.
class nsync_group {
public:
    explicit nsync_group(std::size_t count)
        : flags_(count, false), changed_(count), waitables_(count), all_(count) {
        nsync::nsync_mu_init(&mutex_);
        for (std::size_t i = 0; i != count; ++i) {
            nsync::nsync_cv_init(&changed_[i]);
            waitables_[i] = {&changed_[i], &nsync::nsync_cv_waitable_funcs};
            all_[i] = &waitables_[i];
        }
    }

    void set(std::size_t which) {
        nsync::nsync_mu_lock(&mutex_);
        flags_[which] = true;
        nsync::nsync_cv_signal(&changed_[which]);
        nsync::nsync_mu_unlock(&mutex_);
    }
    std::size_t wait_any() {
        nsync::nsync_mu_lock(&mutex_);
        for (;;) {
            for (std::size_t i = 0; i != flags_.size(); ++i) {
                if (!flags_[i]) continue;
                flags_[i] = false;
                nsync::nsync_mu_unlock(&mutex_);
                return i;
            }
            nsync::nsync_wait_n(
                &mutex_, [](void* mutex) { nsync::nsync_mu_lock(static_cast<nsync::nsync_mu*>(mutex)); },
                [](void* mutex) { nsync::nsync_mu_unlock(static_cast<nsync::nsync_mu*>(mutex)); },
                nsync::nsync_time_no_deadline, static_cast<int>(all_.size()), all_.data());
        }
    }

private:
    nsync::nsync_mu mutex_;
    std::vector<bool> flags_;
    std::vector<nsync::nsync_cv> changed_;
    std::vector<nsync::nsync_waitable_s> waitables_;
    std::vector<nsync::nsync_waitable_s*> all_;
};

struct nsync_wait_n {
    static constexpr contestant_info info{
        .name = "nsync_wait_n",
        .label = "nsync wait_n",
        .role = role::peer,
        .about = "flags under an nsync_mu, nsync_wait_n() over a condition variable each (nsync 1.25)",
        .limits = "all events share a lock; no way to wait for all",
        .no_manual_event = "is a way to wait for several",
        .no_auto_event = "is a way to wait for several",
        .no_lock = "is a way to wait for several",
        .no_address_wait = "is a way to wait for several",
        .included_from = tier::full,
    };
    using event_group = nsync_group;
};

}  // namespace lab
