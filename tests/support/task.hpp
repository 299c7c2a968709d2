// SPDX-License-Identifier: Apache-2.0
// The coroutine that tests await in: it starts at once, and its frame lives as long as the task.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <thread>
#include <utility>

namespace support {

class task {
public:
    struct promise_type {
        task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct tell {
                bool await_ready() const noexcept { return false; }
                void await_suspend(std::coroutine_handle<promise_type> frame) const noexcept {
                    frame.promise().ended.store(true, std::memory_order_release);
                }
                void await_resume() const noexcept {}
            };
            return tell{};
        }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { thrown = std::current_exception(); }

        std::exception_ptr thrown;
        std::atomic<bool> ended{false};
    };

    task() noexcept = default;
    task(task&& from) noexcept : frame_(std::exchange(from.frame_, nullptr)) {}
    task& operator=(task&& from) noexcept {
        std::swap(frame_, from.frame_);
        return *this;
    }
    ~task() { destroy(); }

    bool done() const { return frame_.promise().ended.load(std::memory_order_acquire); }
    // Waits until the coroutine has ended in another thread.
    void join() const {
        while (!done()) std::this_thread::yield();
    }
    // Call it only while no other thread runs the coroutine.
    void destroy() {
        if (const auto frame = std::exchange(frame_, nullptr)) frame.destroy();
    }
    void rethrow() const {
        if (frame_.promise().thrown) std::rethrow_exception(frame_.promise().thrown);
    }
    std::coroutine_handle<> handle() const { return frame_; }

private:
    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<promise_type> frame_;
};

}  // namespace support
