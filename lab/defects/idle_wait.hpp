// SPDX-License-Identifier: Apache-2.0
// 16 threads wait on 16 words, and nobody changes a word. Every context switch of a thread is a wake-up for nothing.
#pragma once

#include "reproduction.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace reproduction {

constexpr std::size_t idle_threads = 16;

struct alignas(64) idle_word {
    std::atomic<std::int32_t> value{0};
    std::atomic<pid_t> thread{0};
};

// The threads stay, so the process must end at once (run() in reproduction.hpp).
template <class Wait>
outcome wait_idly(double seconds, const std::string& version, Wait wait) {
    static std::array<idle_word, idle_threads> words;
    for (idle_word& each : words) {
        std::thread([&each, wait] {
            each.thread = this_thread();
            while (each.value == 0) wait(each.value);
        }).detach();
    }
    outcome found{.version = version};
    const auto all_sleep = [] {
        for (const idle_word& each : words)
            if (each.thread == 0 || !sleeps(stat_of_thread(each.thread))) return false;
        return true;
    };
    const auto switches = [] {
        std::uint64_t sum = 0;
        for (const idle_word& each : words) sum += switches_of(each.thread);
        return sum;
    };
    const budget time(seconds);
    const auto step = std::chrono::milliseconds(10);
    // A wait spins first, and may yield.
    while (!all_sleep() && !time.spent()) std::this_thread::sleep_for(step);
    if (!all_sleep()) {
        found.note = "the waiting threads did not come to rest";
        return found;
    }
    found.tries = words.size();
    const std::uint64_t before = switches();
    while (!time.spent()) std::this_thread::sleep_for(step);
    found.seen = switches() - before;
    return found;
}

}  // namespace reproduction
