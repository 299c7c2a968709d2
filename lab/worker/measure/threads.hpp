// SPDX-License-Identifier: Apache-2.0
// Threads for the scenarios: with small stacks, as many as the system allows, all starting together.
#pragma once

#include "futex.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pthread.h>

namespace lab {

// Closed until opened. Only a futex, so that it costs the same alongside every contestant.
class gate {
public:
    void open() noexcept {
        word_.store(1);
        futex_wake(word_);
    }
    void close() noexcept { word_.store(0); }
    void pass() const noexcept {
        while (word_.load(std::memory_order_acquire) == 0) futex_wait(word_, 0);
    }

private:
    futex_word word_{0};
};

// Runs body(index) in `wanted` threads, or in as many as the system lets it create. All wait at the start until go();
// join() returns when the last has finished.
class thread_group {
public:
    thread_group(std::size_t wanted, std::function<void(std::size_t)> body);
    ~thread_group();
    thread_group(const thread_group&) = delete;
    thread_group& operator=(const thread_group&) = delete;

    std::size_t size() const noexcept { return ids_.size(); }
    std::span<const pid_t> ids() const noexcept { return ids_; }
    // Why there are fewer than wanted; empty if there are not.
    const std::string& shortage() const noexcept { return shortage_; }

    void go() noexcept { start_.open(); }
    void join() noexcept;

private:
    struct member;
    static void* enter(void* raw) noexcept;

    std::function<void(std::size_t)> body_;
    gate start_;
    futex_word ready_{0};
    std::vector<member> members_;
    std::vector<pthread_t> threads_;
    std::vector<pid_t> ids_;
    std::string shortage_;
};

}  // namespace lab
