// SPDX-License-Identifier: Apache-2.0
// Coroutines for scenarios.
#pragma once

#include <coroutine>
#include <exception>

namespace lab {

// A coroutine that runs until it waits, and destroys itself at its end.
struct on_its_own {
    struct promise_type {
        on_its_own get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
    };
};

// A coroutine that suspends whenever it is resumed. Whoever has it destroys it.
struct suspended {
    struct promise_type {
        suspended get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
    };

    static suspended again_and_again() {
        for (;;) co_await std::suspend_always{};
    }

    std::coroutine_handle<> handle;
};

}  // namespace lab
