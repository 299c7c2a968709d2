// SPDX-License-Identifier: Apache-2.0
// Waits for a custom source, alongside an event: a slot that holds one item. A wait for the slot takes its
// permission to read. (A type that wait_all() accepts, too, is examples/countdown/countdown.hpp.)
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>
#include <tocsin/wait.hpp>

#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

class slot {
public:
    void put(int item) {
        tocsin::wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            item_ = item;
            freed = waiting_.notify_one();  // the wait in it has taken the permission
            is_full_ = freed.empty();
        }
        freed.wake();
    }
    int item() {
        const std::lock_guard lock(mutex_);
        return item_;
    }

    // What wait_any() needs (tocsin/source.hpp).
    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(is_full_, false);
    }
    bool enlist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        if (!is_full_) waiting_.append(entry);
        return !is_full_;
    }
    void delist(tocsin::wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(entry);
    }

private:
    std::mutex mutex_;
    tocsin::entry_list waiting_;
    int item_ = 0;
    bool is_full_ = false;
};

int main() {
    slot answer;
    tocsin::manual_reset_event shutdown;
    const std::jthread thread([&] { answer.put(42); });
    const auto ended = tocsin::wait_any(shutdown, answer);
    std::printf("%s: %d\n", ended.index == 1 ? "answer" : "shutdown", answer.item());
    return ended.index == 1 && answer.item() == 42 ? 0 : 1;
}
