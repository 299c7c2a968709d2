// SPDX-License-Identifier: Apache-2.0
// Custom sources: one that stays ready, and one that hands out tokens.
#pragma once

#include <tocsin/source.hpp>

#include <cstddef>
#include <mutex>

namespace support {

class countdown {
public:
    explicit countdown(int from) : left_(from) {}

    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return left_ == 0;
    }
    bool enlist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        if (left_ == 0) return false;
        waiting_.append(entry);
        return true;
    }
    void delist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(entry);
    }
    static constexpr bool stays_ready = true;

    void count_down() {
        tocsin::wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            if (--left_ == 0) freed = waiting_.notify_all();
        }
        freed.wake();
    }

    bool is_waited_for() {
        const std::lock_guard lock(mutex_);
        return !waiting_.empty();
    }

private:
    std::mutex mutex_;
    int left_;
    tocsin::entry_list waiting_;
};

class semaphore {
public:
    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return take();
    }
    bool enlist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        if (tokens_ != 0) return false;
        ++enlisted_;
        waiting_.append(entry);
        return true;
    }
    void delist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(entry);
    }

    // Gives a token to the wait that has waited longest or, if none waits, keeps it.
    void give() {
        tocsin::wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            freed = waiting_.notify_one();
            if (freed.empty()) ++tokens_;
        }
        freed.wake();
    }

    // Gives `count` tokens to waits, and keeps those that are left.
    void give(std::size_t count) {
        tocsin::wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            tokens_ += static_cast<int>(count - waiting_.notify_n(count, freed));
        }
        freed.wake();
    }
    // Gives a token to the wait that has waited longest, which the caller releases.
    tocsin::wake_list notify() {
        const std::lock_guard lock(mutex_);
        return waiting_.notify_one();
    }

    // How many waits have ever been queued.
    std::size_t enlisted() {
        const std::lock_guard lock(mutex_);
        return enlisted_;
    }
    bool is_waited_for() {
        const std::lock_guard lock(mutex_);
        return !waiting_.empty();
    }

private:
    bool take() noexcept {
        if (tokens_ == 0) return false;
        --tokens_;
        return true;
    }

    std::mutex mutex_;
    int tokens_ = 0;
    std::size_t enlisted_ = 0;
    tocsin::entry_list waiting_;
};

}  // namespace support
