// A type of one's own that can be waited for: ready when it has been counted down to zero, and from then on.
#pragma once

#include <tocsin/source.hpp>

#include <mutex>

class countdown {
public:
    explicit countdown(int left) : left_(left) {}

    // One less. At zero everybody who waits is released.
    void count_down() {
        tocsin::wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            if (--left_ == 0) freed = waiting_.notify_all();
        }
        freed.wake();  // not under the lock, for which those who wake would queue
    }

    // What wait_any() and wait_all() need (tocsin/source.hpp).

    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return left_ <= 0;
    }

    bool enlist(tocsin::wait_entry& who) noexcept {
        const std::lock_guard lock(mutex_);
        if (left_ <= 0) return false;
        waiting_.append(who);
        return true;
    }

    void delist(tocsin::wait_entry& who) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(who);
    }

    static constexpr bool stays_ready = true;

private:
    std::mutex mutex_;
    int left_;
    tocsin::waiting_list waiting_;
};
