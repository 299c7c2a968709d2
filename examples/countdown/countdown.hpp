// SPDX-License-Identifier: Apache-2.0
// How to write a custom source: a type that threads can wait for, alongside events, descriptors and timers. This one
// becomes ready when threads have counted it down to zero, and stays ready. It shows what such a type needs: a lock, a
// entry_list under that lock, and three operations. If a countdown is all you want, use tocsin::latch: it is smaller
// and faster, and does the same without a lock.
#pragma once

#include <tocsin/source.hpp>

#include <mutex>

class countdown {
public:
    explicit countdown(int left) : left_(left) {}

    // Counts down by one. At zero, releases everybody who waits.
    void count_down() {
        tocsin::wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            if (--left_ == 0) freed = waiting_.notify_all();
        }
        freed.wake();  // not under the lock, for which the woken threads would queue
    }

    // What wait_any() and wait_all() need (tocsin/source.hpp).

    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return left_ <= 0;
    }

    bool enlist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        if (left_ <= 0) return false;
        waiting_.append(entry);
        return true;
    }

    void delist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(entry);
    }

    static constexpr bool stays_ready = true;

private:
    std::mutex mutex_;
    int left_;
    tocsin::entry_list waiting_;
};
