// SPDX-License-Identifier: Apache-2.0
// Floors that several scenarios share.
#pragma once

#include "../measure/batch.hpp"
#include "../measure/futex.hpp"
#include "../scenario.hpp"

#include <atomic>
#include <cstdint>

namespace lab::physical {

template <class Word>
void load(const std::atomic<Word>& word) noexcept {
    if (word.load(std::memory_order_relaxed) != 0) [[unlikely]]
        stay_a_branch();
}

template <class Word>
void exchange(std::atomic<Word>& word) noexcept {
    keep(word.exchange(1, std::memory_order_relaxed));
}

template <class Word>
void two_exchanges(std::atomic<Word>& word) noexcept {
    keep(word.exchange(1, std::memory_order_relaxed));
    keep(word.exchange(0, std::memory_order_relaxed));
}

template <class Word>
void fence_and_load(const std::atomic<Word>& word) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    load(word);
}

// How long FUTEX_WAKE holds its caller when one thread really sleeps on the word; on another core, if there is one.
void wake_one_sleeper(context& run, const char* metric);

// The same with the sleeper pinned to the caller's core, where it doesn't preempt the caller: only the call itself
// remains, without the waking of a processor.
void wake_one_sleeper_here(context& run, const char* metric);

// From a FUTEX_WAKE until its sleeper reads the clock on the caller's core, which the caller leaves at once. Before it
// slept, the sleeper ran on the `came_from`-th core; 0 is the caller's.
void wakes_to_running_here(context& run, const char* metric, std::size_t came_from);

// A byte that travels to another core and back, while both threads spin.
void cache_line_round_trips(context& run, const char* metric);

// Two threads on one core, each asleep in a futex until the other wakes it. Half a round trip is one wake and one
// switch.
void hand_offs_on_one_core(context& run, const char* metric, double share = 0.5);

}  // namespace lab::physical
