// SPDX-License-Identifier: Apache-2.0
// Latches that are made again and again, each destroyed by whoever waits for it, and barriers whose members take
// part in many phases, with all kinds of waits.
#include "facts.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/barrier.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using support::jitter;
using support::random_source;
using support::stress_time;
using support::thread_group;
using tocsin::wait_status;

// Waits in one of all ways, and again where the wait has timed out.
void wait_somehow(const tocsin::source& what, const auto& wait_for, random_source& random) {
    static tocsin::manual_reset_event never;
    switch (random.below(3)) {
        case 0:
            while (wait_for(std::chrono::microseconds(random.below(60))) != wait_status::signaled) {
            }
            return;
        case 1: EXPECT_EQ(tocsin::wait_any(never, what).index, 1u); return;
        default: EXPECT_EQ(tocsin::wait_all({.until = 1h}, what), wait_status::signaled); return;
    }
}

TEST(Latch, EachIsDestroyedAsSoonAsItsWaitIsOver) {
    struct work {
        tocsin::latch done{2};
        int results[2]{};
    };
    const stress_time time;
    std::array<std::atomic<work*>, 2> desks{};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(2, "worker", [&](int which) {
        random_source random(support::seed() + static_cast<std::uint64_t>(which));
        while (!enough.load()) {
            work* const next = desks[static_cast<std::size_t>(which)].exchange(nullptr);
            if (next == nullptr) {
                std::this_thread::yield();
                continue;
            }
            jitter(random);
            next->results[which] = which + 1;
            next->done.count_down();
        }
    });
    random_source random(support::seed());
    long rounds = 0;
    for (; !time.is_over(); ++rounds) {
        auto mine = std::make_unique<work>();
        for (auto& desk : desks) desk.store(mine.get());
        jitter(random);
        switch (random.below(3)) {
            case 0: mine->done.wait(); break;
            case 1:
                while (!mine->done.try_wait()) std::this_thread::yield();
                break;
            default:
                wait_somehow(mine->done, [&](auto longest) { return mine->done.wait_for(longest); }, random);
                break;
        }
        EXPECT_EQ(mine->results[0] + mine->results[1], 3);
    }
    enough.store(true);
    threads.join();
    std::printf("%ld rounds\n", rounds);
}

TEST(Barrier, NobodyIsLeftBehindOrPassesEarly) {
    constexpr int members = 4;
    const stress_time time;
    std::array<long, members> written{};
    long completed = 0;
    bool over = false;
    tocsin::barrier all(members, [&]() noexcept {
        ++completed;
        for (const long each : written) EXPECT_EQ(each, completed);
        over = time.is_over();
    });
    thread_group threads;
    threads.start_many(members, "member", [&](int which) {
        random_source random(support::seed() + static_cast<std::uint64_t>(which));
        long phase = 0;
        while (!over) {
            ++phase;
            written[static_cast<std::size_t>(which)] = phase;
            jitter(random);
            if (random.one_in(2)) {
                all.arrive_and_wait();
            } else {
                auto token = all.arrive();
                jitter(random);
                wait_somehow(token, [&](auto longest) { return all.wait_for(token, longest); }, random);
            }
            EXPECT_EQ(completed, phase);
        }
    });
    threads.join();
    std::printf("%ld phases\n", completed);
}

}  // namespace
