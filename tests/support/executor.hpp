// SPDX-License-Identifier: Apache-2.0
// Where coroutines of tests resume: in one thread, when it calls run().
#pragma once

#include <tocsin/event.hpp>

#include <coroutine>
#include <deque>
#include <mutex>

namespace support {

class executor {
public:
    // Queues a coroutine. Any thread may call it.
    void operator()(std::coroutine_handle<> frame) {
        {
            const std::lock_guard held(mutex_);
            ready_.push_back(frame);
        }
        posted_.set();
    }
    // Resumes all coroutines that are queued.
    void run() {
        for (;;) {
            std::coroutine_handle<> next;
            {
                const std::lock_guard held(mutex_);
                if (ready_.empty()) return;
                next = ready_.front();
                ready_.pop_front();
            }
            next.resume();
        }
    }
    // Takes a coroutine out of the queue. Call it after the coroutine was destroyed.
    void forget(std::coroutine_handle<> gone) {
        const std::lock_guard held(mutex_);
        std::erase(ready_, gone);
    }
    // Waits until a coroutine is queued, or until the deadline.
    void wait(tocsin::deadline until) { (void)posted_.wait_until(until); }

private:
    std::mutex mutex_;
    std::deque<std::coroutine_handle<>> ready_;
    tocsin::auto_reset_event posted_;
};

}  // namespace support
