// SPDX-License-Identifier: Apache-2.0
// A set that is still under way, and the threads that begin to wait after a later reset.
#include "facts.hpp"
#include "printing.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stop_token>
#include <thread>

namespace {

using namespace std::chrono_literals;
using support::stress_time;
using support::thread_group;
using tocsin::manual_reset_event;
using tocsin::wait_status;

// One thread waits, so that the set has a thread to release. Another sees the set, resets, and waits: the set that it
// has reset must not end its wait.
TEST(Gate, ASetStillUnderWayDoesNotReleaseAWaitBegunAfterTheReset) {
    const stress_time time;
    manual_reset_event gate;
    std::atomic<bool> enough{false};
    std::atomic<long> rounds{0};
    std::atomic<bool> polls{false};
    thread_group threads;
    threads.start("waits", [&] {
        while (!enough.load()) {
            gate.wait();
            while (gate.is_set() && !enough.load()) std::this_thread::yield();
        }
    });
    threads.start("resets and comes back", [&] {
        while (!enough.load()) {
            polls.store(true);
            for (int looks = 0; !gate.is_set() && !enough.load(); ++looks) {
                if (looks > 1000) std::this_thread::yield();
            }
            polls.store(false);
            gate.reset();
            const auto how = gate.wait_for(30us, tocsin::spin_policy::none());
            EXPECT_TRUE(how == wait_status::timed_out || enough.load());
            rounds.fetch_add(1);
        }
    });
    while (!time.is_over()) {
        support::until("one is parked, the other polls",
                       [&] { return polls.load() && tocsin::waiting_on(&gate) == 1; });
        const long before = rounds.load();
        gate.set();
        support::until("the round is over", [&] { return rounds.load() > before; });
    }
    enough.store(true);
    support::until("both have seen the end", [&] {
        gate.set();
        return threads.finished() == 2;
    });
    std::printf("%ld rounds\n", rounds.load());
}

// Most of the waiters share a word (src/core/lot/shared_word.cpp). Beside them come and go waits with deadlines, among
// them the delegate, and waits that can't share.
TEST(Gate, EveryOpeningReleasesAllWhoWaitWhateverElseWaits) {
    const stress_time time;
    constexpr int patient = 6;
    constexpr int others = 4;
    manual_reset_event gate;
    std::stop_source stop;
    std::atomic<bool> enough{false};
    std::atomic<long> passed{0};
    thread_group threads;
    threads.start_many(patient, "patient", [&](int) {
        while (!enough.load()) {
            gate.wait();
            passed.fetch_add(1);
            while (gate.is_set() && !enough.load()) std::this_thread::yield();
        }
    });
    threads.start_many(others, "other", [&](int number) {
        for (auto longest = 200us; !enough.load(); longest = longest > 5ms ? 200us : longest * 2) {
            switch (number) {
                case 0: (void)gate.wait(stop.get_token()); break;
                case 1: (void)tocsin::wait_any(gate); break;
                default: (void)gate.wait_for(longest); break;
            }
            while (gate.is_set() && !enough.load()) std::this_thread::yield();
        }
    });
    long rounds = 0;
    for (; !time.is_over(); ++rounds) {
        support::until("all wait", [&] { return tocsin::waiting_on(&gate) == patient + others; });
        const long before = passed.load();
        gate.set();
        support::until("all have passed", [&] { return passed.load() == before + patient; });
        gate.reset();
    }
    enough.store(true);
    gate.set();
    threads.join();
    std::printf("%ld rounds\n", rounds);
}

}  // namespace
