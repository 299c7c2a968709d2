// SPDX-License-Identifier: Apache-2.0
// What the models of objects that processes share have in common. Each model thread is a thread of a process of its
// own. shared_futex_model.cpp does what the kernel promises (dies-1 to dies-4 in platform/shared/shared_futex.hpp).
#pragma once

#include "core/shared/slots.hpp"
#include "explorer/view.hpp"
#include "support/library_model.hpp"

#include <cstdint>
#include <string>

namespace tocsin::library_model {

// What the kernel knows of each thread of a run: its covered word and its held words. The lowest bit says that the word
// has eight bytes.
struct robust_words {
    static constexpr int max_held = 2;
    model::atomic<std::uintptr_t> covered{0};
    model::atomic<std::uintptr_t> held[max_held];
    const void* holds[max_held] = {};  // what the thread itself knows of `held`
};
inline robust_words robust[model::max_threads];

// Ends a thread where it stands, and then does what the kernel does. `killed` says from the end on, so also to those
// whom the kernel wakes, whether the thread still ran.
inline void kill_thread(int number, bool& killed) {
    killed = model::end_thread(number);
    if (!killed) return;
    const auto clean = [number](std::uintptr_t tagged) {
        const std::uint32_t mark = static_cast<std::uint32_t>(number + 1) | platform::sleepers_bit;
        if (tagged == 0) return;
        const auto exchange = [mark]<class Word>(Word& word) {
            auto seen = word.load(std::memory_order_relaxed);
            do {
                if ((static_cast<std::uint32_t>(seen) & platform::owner_mask) !=
                    (mark & platform::owner_mask))
                    return;
            } while (!word.compare_exchange_strong(
                seen, (seen & ~decltype(seen){platform::owner_mask}) | platform::died,
                std::memory_order_acq_rel, std::memory_order_relaxed));
            if ((seen & platform::sleepers_bit) != 0) model::futex_wake_any_and_show(&word, sizeof word);
        };
        if ((tagged & 1) != 0)
            exchange(*reinterpret_cast<platform::wide_word*>(tagged - 1));
        else
            exchange(*reinterpret_cast<platform::narrow_word*>(tagged));
    };
    const robust_words& known = robust[number];
    for (const auto& each : known.held) clean(each.load(std::memory_order_relaxed));
    clean(known.covered.load(std::memory_order_relaxed));
}

// Starts the killer of a thread: it ends the thread at any point of its life, or after it.
inline void may_be_killed(model::run& r, model::run::thread victim, bool& killed) {
    r.spawn("killer", [number = victim.number(), &killed] { kill_thread(number, killed); });
}

inline model::test_body with_a_kernel(const model::test_body& program) {
    return [&program](model::run& r) {
        for (robust_words& each : robust) std::ranges::fill(each.holds, nullptr);
        program(r);
    };
}

inline void holds_always_shared(const model::test_body& program) { holds_always(with_a_kernel(program)); }
inline void holds_within_shared(int preemptions, const model::test_body& program) {
    holds_within(preemptions, with_a_kernel(program));
}

// For programs that wait until all threads but one are blocked: a spurious return takes that back, and no program may
// rely on one.
inline void holds_always_and_settles(const model::test_body& program) {
    model::options how;
    how.spurious_returns = 0;
    explore_both("all", how, with_a_kernel(program));
}
// For more threads: executions that are drawn at random.
inline void holds_when_drawn_shared(const model::test_body& program, unsigned spurious_returns = 1) {
    const std::uint64_t executions = drawn_executions(40'000);
    auto random = model::options::drawn(executions);
    auto pct = model::options::priorities(executions);
    random.spurious_returns = pct.spurious_returns = spurious_returns;
    explore_both("random", random, with_a_kernel(program));
    explore_both("pct", pct, with_a_kernel(program));
}
inline void holds_when_drawn_and_settles(const model::test_body& program) {
    holds_when_drawn_shared(program, 0);
}

}  // namespace tocsin::library_model
