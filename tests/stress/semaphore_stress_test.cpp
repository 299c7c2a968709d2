// SPDX-License-Identifier: Apache-2.0
// As many permits come out of a semaphore as go in, and no more threads are inside than there are permits, under every
// race of release, acquire, several permits, timeouts, stops and waits for several sources.
#include "facts.hpp"
#include "printing.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <thread>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using namespace support;
using namespace tocsin;

constexpr int permits = 5;
using semaphore = counting_semaphore<permits>;

spin_policy some_spin(random_source& random) {
    return random.one_in(2) ? spin_policy::none() : spin_policy();
}

// Takes permits in a randomly chosen way, and returns how many it took.
int take_somehow(semaphore& from, auto_reset_event& never, random_source& random) {
    const nanoseconds longest(random.below(80'000));
    const int wanted = 1 + static_cast<int>(random.below(permits));
    const auto taken = [](bool success, int number) { return success ? number : 0; };
    switch (random.below(10)) {
        case 0: return taken(from.try_acquire(), 1);
        case 1: return taken(from.try_acquire(wanted), wanted);
        case 2: return taken(from.try_acquire_for(longest, some_spin(random)), 1);
        case 3: return taken(from.try_acquire_for(wanted, longest, some_spin(random)), wanted);
        case 4: {
            const auto at = std::chrono::system_clock::now() + std::chrono::microseconds(random.below(80));
            return taken(from.try_acquire_until(wanted, at, some_spin(random)), wanted);
        }
        case 5: {
            std::stop_source stop;
            const bool pulled = random.one_in(4);
            std::jthread stopper;
            if (pulled) stopper = std::jthread([&] { stop.request_stop(); });
            const auto how = pulled
                                 ? from.acquire(wanted, stop.get_token(), some_spin(random))
                                 : from.try_acquire_for(wanted, longest, stop.get_token(), some_spin(random));
            return taken(how == wait_status::signaled, wanted);
        }
        case 6: return taken(tocsin::wait_any({.until = longest}, never, from).index == 1, 1);
        case 7: return tocsin::wait_any(never, from).index == 1 ? 1 : 0;
        case 8: from.acquire(wanted, some_spin(random)); return wanted;
        default: from.acquire(some_spin(random)); return 1;
    }
}

TEST(Semaphores, NoMoreAreInsideThanThereArePermits) {
    const stress_time time;
    semaphore free(permits);
    auto_reset_event never;
    std::atomic<int> inside{0};
    std::atomic<long> taken{0};
    thread_group threads;
    threads.start_many(5, "taker", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        while (!time.is_over()) {
            const int mine = take_somehow(free, never, random);
            if (mine == 0) continue;
            ASSERT_LE(inside.fetch_add(mine) + mine, permits);
            taken.fetch_add(mine);
            jitter(random);
            inside.fetch_sub(mine);
            if (random.one_in(2)) {
                free.release(mine);
            } else {
                for (int i = 0; i != mine; ++i) free.release();
            }
            jitter(random);
        }
    });
    threads.join();
    std::printf("%ld permits taken\n", taken.load());
    EXPECT_TRUE(free.try_acquire(permits));
    EXPECT_FALSE(free.try_acquire());
}

// Producers give permits one by one and in bunches; what comes out is what went in.
TEST(Semaphores, EveryPermitComesOutOnce) {
    const stress_time time;
    counting_semaphore<> free(0);
    std::atomic<long> given{0};
    std::atomic<long> taken{0};
    std::atomic<int> producing{2};
    thread_group threads;
    threads.start_many(2, "producer", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 20);
        while (!time.is_over()) {
            const auto some = static_cast<long>(random.below(4));
            given.fetch_add(some);
            free.release(some);
            jitter(random);
        }
        producing.fetch_sub(1);
    });
    threads.start_many(3, "consumer", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 30);
        while (producing.load() != 0 || taken.load() != given.load()) {
            const auto wanted = static_cast<long>(1 + random.below(2));
            if (free.try_acquire_for(wanted, nanoseconds(random.below(60'000)), some_spin(random)))
                taken.fetch_add(wanted);
        }
    });
    threads.join();
    std::printf("%ld given, %ld taken\n", given.load(), taken.load());
    EXPECT_EQ(given.load(), taken.load());
    EXPECT_FALSE(free.try_acquire());
}

// Each philosopher takes two forks at one instant, in a wait for all; others take one fork.
TEST(Semaphores, WaitsForAllTakeOneOfEach) {
    const stress_time time;
    binary_semaphore forks[3]{binary_semaphore(1), binary_semaphore(1), binary_semaphore(1)};
    int meals[3]{};  // under the fork of the same number
    long eaten[4]{};
    thread_group threads;
    threads.start_many(4, "philosopher", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 40);
        while (!time.is_over()) {
            const auto first = random.below(3);
            const auto second = (first + 1 + random.below(2)) % 3;
            if (random.one_in(3)) {
                if (!forks[first].try_acquire_for(nanoseconds(random.below(50'000)))) continue;
                ++meals[first];
                ++eaten[number];
            } else {
                const auto how = tocsin::wait_all({.until = nanoseconds(random.below(200'000))}, forks[first],
                                                  forks[second]);
                if (how != wait_status::signaled) continue;
                ++meals[first];
                ++meals[second];
                eaten[number] += 2;
                forks[second].release();
            }
            forks[first].release();
            jitter(random);
        }
    });
    threads.join();
    EXPECT_EQ(long{meals[0]} + meals[1] + meals[2], eaten[0] + eaten[1] + eaten[2] + eaten[3]);
    for (auto& each : forks) EXPECT_TRUE(each.try_acquire());
}

// The semaphore is on the stack of the waiter, which returns as soon as it has its permits.
TEST(Semaphores, LiveNoLongerThanTheirLastPermit) {
    const stress_time time;
    std::atomic<counting_semaphore<>*> next{nullptr};
    std::atomic<bool> enough{false};
    std::atomic<long> rounds{0};
    thread_group threads;
    threads.start("owner", [&] {
        random_source random(60);
        while (!time.is_over() || rounds.load() == 0) {  // a busy machine may start the threads late
            const auto one = std::make_unique<counting_semaphore<>>(0);
            next.store(one.get());
            if (random.one_in(2)) {
                one->acquire(2, some_spin(random));
            } else {
                while (!one->try_acquire_for(2, nanoseconds(random.below(3'000)))) {
                }
            }
            rounds.fetch_add(1);
        }
        enough.store(true);
    });
    threads.start("releaser", [&] {
        random_source random(61);
        while (!enough.load()) {
            if (auto* const one = next.exchange(nullptr)) {
                jitter(random);
                one->release(2);
            }
        }
    });
    threads.join();
    EXPECT_GT(rounds.load(), 0);
}

}  // namespace
