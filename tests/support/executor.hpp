// Where coroutines of tests go on: in one thread, which resumes them when it comes to it.
#pragma once

#include <tocsin/event.hpp>

#include <coroutine>
#include <deque>
#include <mutex>

namespace support {

class executor {
public:
    // From any thread.
    void operator()(std::coroutine_handle<> who) {
        {
            const std::lock_guard held(mutex_);
            ready_.push_back(who);
        }
        posted_.set();
    }
    // Resumes all that are there.
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
    // After its destruction.
    void forget(std::coroutine_handle<> gone) {
        const std::lock_guard held(mutex_);
        std::erase(ready_, gone);
    }
    // Until there is one, or so long.
    void wait(tocsin::deadline until) { (void)posted_.wait_until(until); }

private:
    std::mutex mutex_;
    std::deque<std::coroutine_handle<>> ready_;
    tocsin::auto_reset_event posted_;
};

}  // namespace support
