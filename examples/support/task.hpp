// SPDX-License-Identifier: Apache-2.0
// A coroutine that starts at once. A caller that keeps the task can wait for the coroutine's end, as a thread or in
// another coroutine. If the caller does not keep the task, the coroutine runs on. Its frame is destroyed when both the
// task and the coroutine have ended.
//
//     task work(...) { co_await tocsin::async_wait(job); ... }
//
//     work(...);                       // runs on its own
//     const task one = work(...);
//     one.wait();                      // as a thread
//     co_await one;                    // in a coroutine
#pragma once

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

#include <atomic>
#include <coroutine>
#include <exception>
#include <utility>

class task {
public:
    struct promise_type {
        task get_return_object() noexcept {
            return task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct end {
                bool await_ready() const noexcept { return false; }
                void await_suspend(std::coroutine_handle<promise_type> frame) const noexcept {
                    frame.promise().ended.set();
                    release(frame);
                }
                void await_resume() const noexcept {}
            };
            return end{};
        }
        void return_void() noexcept {}
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }

        tocsin::manual_reset_event ended;
        std::atomic<int> owners{2};  // of the frame: the task, and the coroutine itself
    };

    task(task&& from) noexcept : frame_(std::exchange(from.frame_, nullptr)) {}
    task& operator=(task&& from) noexcept {
        std::swap(frame_, from.frame_);
        return *this;
    }
    ~task() {
        if (frame_) release(frame_);
    }

    void wait() const noexcept { frame_.promise().ended.wait(); }
    auto operator co_await() const noexcept { return tocsin::event_awaiter(frame_.promise().ended); }

private:
    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    static void release(std::coroutine_handle<promise_type> frame) noexcept {
        if (frame.promise().owners.fetch_sub(1, std::memory_order_acq_rel) == 1) frame.destroy();
    }

    std::coroutine_handle<promise_type> frame_;
};
