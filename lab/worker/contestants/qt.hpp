// SPDX-License-Identifier: Apache-2.0
// Qt 6.4 (Debian's).
#pragma once

#include "monitor.hpp"

#include <QDeadlineTimer>
#include <QMutex>
#include <QSemaphore>
#include <QWaitCondition>

namespace lab {

class qt_monitor {
public:
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void sleep() { changed_.wait(&mutex_); }
    // It rounds in its own way, so it can return early.
    bool sleep_until(std::int64_t when) {
        const std::chrono::nanoseconds left(std::max<std::int64_t>(when - now(), 0));
        return changed_.wait(&mutex_, QDeadlineTimer(left, Qt::PreciseTimer)) || now() < when;
    }
    void wake_one() { changed_.wakeOne(); }
    void wake_all() { changed_.wakeAll(); }

private:
    QMutex mutex_;
    QWaitCondition changed_;
};

struct qt_cond : monitored<qt_monitor> {
    static constexpr contestant_info info{
        .name = "qt_cond",
        .label = "QMutex + QWaitCondition",
        .role = role::peer,
        .about = "a flag, QMutex and QWaitCondition (Qt 6.4)",
        .limits = monitored::limits,
        .no_address_wait = "waits on its own condition variable only",
        .included_from = tier::full,
    };
    using own_lock = QMutex;
};

struct qt_semaphore {
    static constexpr contestant_info info{
        .name = "qt_semaphore",
        .label = "QSemaphore",
        .role = role::peer,
        .about = "release and acquire of a QSemaphore (Qt 6.4)",
        .limits = "counts: sets don't absorb each other; timed waits in milliseconds",
        .no_manual_event = "lets one through for each release",
        .no_lock = "is measured as an event",
        .no_address_wait = "waits on itself only",
        .included_from = tier::full,
    };

    class auto_event {
    public:
        static constexpr bool counts = true;
        void set() { count_.release(); }
        void wait() { count_.acquire(); }
        bool try_wait() { return count_.tryAcquire(); }
        bool wait_for(std::chrono::nanoseconds longest) {
            return count_.tryAcquire(
                1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(longest).count()));
        }

    private:
        QSemaphore count_;
    };
};

}  // namespace lab
