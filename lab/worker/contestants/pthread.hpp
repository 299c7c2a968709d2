// SPDX-License-Identifier: Apache-2.0
// POSIX threads: a mutex with a condition variable, and a mutex alone.
#pragma once

#include "../contestant.hpp"
#include "monitor.hpp"

#include <pthread.h>

namespace lab {

class pthread_monitor {
public:
    pthread_monitor() noexcept {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&changed_, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    ~pthread_monitor() {
        pthread_cond_destroy(&changed_);
        pthread_mutex_destroy(&mutex_);
    }
    pthread_monitor(const pthread_monitor&) = delete;
    pthread_monitor& operator=(const pthread_monitor&) = delete;

    void lock() noexcept { pthread_mutex_lock(&mutex_); }
    void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
    void sleep() noexcept { pthread_cond_wait(&changed_, &mutex_); }
    bool sleep_until(std::int64_t when) noexcept {
        const timespec until = timespec_of(when);
        return pthread_cond_timedwait(&changed_, &mutex_, &until) == 0;
    }
    void wake_one() noexcept { pthread_cond_signal(&changed_); }
    void wake_all() noexcept { pthread_cond_broadcast(&changed_); }

private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_;
};

struct pthread_cond : monitored<pthread_monitor> {
    static constexpr contestant_info info{
        .name = "pthread_cond",
        .label = "pthread mutex + cond",
        .role = role::peer,
        .about = "a flag under a pthread mutex, waited for with a condition variable",
        .limits = monitored::limits,
        .no_lock = "its mutex is the contestant pthread_mutex",
        .no_address_wait = "waits on its own condition variable only",
    };
};

struct pthread_mutex {
    static constexpr contestant_info info{
        .name = "pthread_mutex",
        .label = "pthread mutex",
        .role = role::peer,
        .about = "pthread_mutex_lock, default kind",
        .limits = "40 bytes, whatever size the case asks for",
        .no_manual_event = "is a lock",
        .no_auto_event = "is a lock: only its owner may unlock it",
        .no_address_wait = "is a lock",
    };

    class own_lock {
    public:
        void lock() noexcept { pthread_mutex_lock(&mutex_); }
        void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

    private:
        pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    };
};

}  // namespace lab
