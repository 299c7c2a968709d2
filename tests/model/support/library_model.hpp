// SPDX-License-Identifier: Apache-2.0
// What the models of the library share. Its sources are compiled over the explorer. The lot has one bucket, so that
// everything meets everything, or two, for calls that lock several.
#pragma once

#include "core/lot/lot.hpp"
#include "explorer/explore.hpp"
#include "explorer/futex.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/thread_slots.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace tocsin::library_model {

// How many processors the library is told of. With up to two it relays one by one, with more in wider steps. Callers
// forbid spinning (`sleep_at_once`): one look more or less proves nothing.
inline unsigned processors = 1;

inline constexpr spin_policy sleep_at_once = spin_policy::none();

// The one readable_flag (platform/poller/readable_flag.hpp) of a model. It is down, up, up and reported to a loop that
// reports only changes, or closed. It orders nothing, whereas those of real systems do.
inline constexpr std::uint32_t flag_down = 0;
inline constexpr std::uint32_t flag_up = 1;
inline constexpr std::uint32_t flag_up_and_reported = 2;
inline constexpr std::uint32_t flag_closed = 3;
inline constinit model::atomic<std::uint32_t> the_flag{flag_closed};

// How a loop polls: as poll() does, or as epoll does with EPOLLET.
enum class reports { levels, changes };
// A loop's sleep. With `changes`, each raise ends one sleep at most.
void sleep_until_raised(reports which);

// Of each thread of a run (platform/shared_table/thread_slots.hpp).
inline void* slots[64][platform::thread_slots] = {};
inline bool looks_due[64] = {};      // platform::exchange_look_due()
inline unsigned urgencies[64] = {};  // how much more urgent than an ordinary thread: be_urgent()

// The time of a run (platform::recent_time()), which tests move forward.
inline std::int64_t now = 0;

// Makes the calling thread of a run more urgent than ordinary threads.
inline void be_urgent(unsigned more) noexcept {
    urgencies[static_cast<std::size_t>(model::this_thread())] = more;
}

// A deadline that may pass at any point of a run.
inline deadline some_time() { return std::chrono::hours(1); }

// What the system knows in a run: which descriptors are ready (by their numbers modulo 16), and the state of the
// doorbell of the only thread that polls. It does what platform/poller/poller.hpp promises. P9 and internal tests show
// that the real pollers do.
class poller {
public:
    poller() noexcept { the_one = this; }
    poller(const poller&) = delete;
    poller& operator=(const poller&) = delete;
    ~poller() { the_one = nullptr; }

    void ring() noexcept { change(rung); }
    void make_ready() noexcept { change(all_ready); }
    void make_ready(int descriptor) noexcept { change(ready(descriptor)); }

    platform::poll_result poll(std::span<platform::poll_entry> what, bool with_bell,
                               const deadline& until) noexcept {
        under_way_ = what;
        const platform::poll_result result = poll_until(what, with_bell, until);
        under_way_ = {};
        return result;
    }

    // Whether the poll under way names this descriptor, which is not a step.
    bool polls(int descriptor) const noexcept {
        return std::ranges::any_of(under_way_,
                                   [=](const auto& each) { return each.descriptor == descriptor; });
    }

    static inline poller* the_one = nullptr;

private:
    static constexpr std::uint32_t rung = 1;
    static constexpr std::uint32_t all_ready = ~rung;
    static constexpr std::uint32_t ready(int descriptor) noexcept { return 2u << (descriptor & 15); }

    platform::poll_result poll_until(std::span<platform::poll_entry> what, bool with_bell,
                                     const deadline& until) noexcept {
        for (;;) {
            const std::uint32_t seen = state_.load(std::memory_order_acquire);
            std::size_t found = 0;
            for (platform::poll_entry& each : what) {
                const bool is_ready = (seen & ready(each.descriptor)) != 0;
                each.found = is_ready ? readiness::readable : readiness::none;
                found += is_ready ? 1 : 0;
            }
            if (found != 0) return {.ready = found};
            if (with_bell && (seen & rung) != 0) {
                state_.fetch_and(~rung, std::memory_order_acquire);
                return {.rung = true};
            }
            if (until.which() == deadline::clock::passed) return {.timed_out = true};
            if (model::futex_wait(&state_, seen, !until.is_never()) == model::futex_result::timed_out) {
                return {.timed_out = true};
            }
            if (with_bell) return {.rung = true};  // perhaps for no reason, as a real poller may
        }
    }

    void change(std::uint32_t what) noexcept {
        state_.fetch_or(what, std::memory_order_release);
        model::futex_wake(&state_, 1);
    }

    model::atomic<std::uint32_t> state_{0};
    std::span<const platform::poll_entry> under_way_;
};

// Opens the poll_set of a wait_set, and rings its bell, where a model has any.
inline std::unique_ptr<platform::poll_set> (*make_poll_set)() = nullptr;
inline void (*ring_poll_set)() = nullptr;

// While one exists, the library can start its background threads, which have state of their own. For the whole run.
class background_threads {
public:
    background_threads() noexcept;  // their state begins again
    ~background_threads();
};

// After every run nobody is parked, no lock is held, and no filter bit is on.
inline std::string lot_is_empty() {
    for (const core::bucket& each : core::the_lot->at) {
        if (!each.is_pristine()) return "the lot is not empty at the end";
    }
    return {};
}

// How many are parked on it. Takes the bucket's lock, as everything does that looks into the lot.
template <class Event>
std::size_t parked_on(const Event& event) {
    std::size_t count = 0;
    core::locked_queue({&event, core::wait_kind::event}).for_each([&](const core::wait_node&) { ++count; });
    return count;
}

// event-2 (src/event.cpp): its byte says that somebody is parked if and only if somebody is.
template <class Event>
bool tells_who_is_parked(Event& event) {
    const source itself = event;
    const auto& byte = *static_cast<const detail::event_byte*>(itself.object());
    const core::locked_queue queue({&event, core::wait_kind::event});
    return ((byte.load(std::memory_order_relaxed) & detail::event_state::parked_bit) != 0) == !queue.empty();
}

// Explores the program under C++'s memory model, and under x86's with the library's x86 code.
inline void explore_both(const char* search, model::options how, const model::test_body& program) {
    how.on_execution_end = lot_is_empty;
    const model::test_body whole = [&program](model::run& r) {
        for (auto& of_thread : slots)
            std::ranges::fill(of_thread, nullptr);  // what a run that was cut short left
        std::ranges::fill(looks_due, false);
        std::ranges::fill(urgencies, 0u);
        now = 0;
        program(r);
    };
    for (const bool x86 : {false, true}) {
        if (x86) {
            const auto like = model::options::x86();
            how.rmw_is_full_fence = like.rmw_is_full_fence;
            how.total_store_order = like.total_store_order;
            how.store_insertion = like.store_insertion;
        }
        const auto result = model::explore(how, whole);
        std::printf("  %s %s: %s\n", x86 ? "x86" : "C++", search, result.summary().c_str());
        ASSERT_TRUE(result.passed()) << result.text();
        const bool all = how.how == model::search::exhaustive;
        ASSERT_TRUE(!all || result.complete) << "not exhausted: " << result.summary();
    }
}

// What the environment asks for: TOCSIN_PROVE, a search for hours; TOCSIN_QUICK, the answer for a change under way.
inline bool is_proof() { return std::getenv("TOCSIN_PROVE") != nullptr; }
inline bool is_quick() { return std::getenv("TOCSIN_QUICK") != nullptr; }

// How many executions are drawn where a model usually draws so many.
inline std::uint64_t drawn_executions(std::uint64_t usual) {
    return is_proof() ? 1'000'000 : is_quick() ? usual / 10 : usual;
}

// For two or three threads: every execution, with partial-order reduction.
inline void holds_always(const model::test_body& program) { explore_both("all", {}, program); }

// For more threads: every execution with up to so many preemptions and without spurious returns of the futex. Then many
// that are drawn at random, with any number of preemptions and with spurious returns. For a proof, one more preemption.
inline void holds_within(int preemptions, const model::test_body& program) {
    auto bounded = model::options::bounded(preemptions + (is_proof() ? 1 : 0));
    bounded.spurious_returns = 0;
    bounded.stale_repeats = 1;
    bounded.max_executions = 500'000'000;
    explore_both("bounded", bounded, program);
    const std::uint64_t executions = drawn_executions(20'000);
    explore_both("random", model::options::drawn(executions), program);
    explore_both("pct", model::options::priorities(executions), program);
}

// A case of one program, `r` being its run: MODEL_TEST(suite, AName, holds_within, 2) { ... }
#define MODEL_TEST(...) TOCSIN_MODEL_TEST(TEST, __VA_ARGS__)
#define MODEL_TEST_F(...) TOCSIN_MODEL_TEST(TEST_F, __VA_ARGS__)
#define TOCSIN_MODEL_TEST(kind, suite, name, holds, ...)                                 \
    static void program_of_##suite##_##name(tocsin::model::run& r);                      \
    kind(suite, name) { holds(__VA_ARGS__ __VA_OPT__(, ) program_of_##suite##_##name); } \
    void program_of_##suite##_##name(tocsin::model::run& r)

}  // namespace tocsin::library_model
