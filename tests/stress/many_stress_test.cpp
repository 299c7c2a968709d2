// SPDX-License-Identifier: Apache-2.0
// Waits for any and for all of several events race with each other and with time. As many tokens come out as go in, and
// no thread sees only a part taken.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "sanitizer.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#if TOCSIN_ON_POSIX
#include <sys/socket.h>
#endif

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

// An event and the number of its sets. None is absorbed, because a giver sets the event only when it has been taken.
struct token {
    auto_reset_event event;
    std::atomic<long> given{0};
    std::atomic<long> taken{0};

    void give() {
        long seen = given.load();
        if (seen != taken.load() || !given.compare_exchange_strong(seen, seen + 1)) return;
        event.set();
    }
    void took() { taken.fetch_add(1); }
    long left() { return event.try_wait() ? 1 : 0; }
};

void expect_balance(token& each) { EXPECT_EQ(each.given.load(), each.taken.load() + each.left()); }

// Each waiter wants a different two or three of five; some give up.
TEST(ManyStress, TokensInAreTokensOutOfOverlappingWaitsForAll) {
    const stress_time time;
    std::array<token, 5> tokens;
    std::atomic<bool> enough{false};
    std::atomic<long> served{0};
    thread_group threads;
    threads.start_many(4, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        while (!enough.load()) {
            std::vector<token*> wanted;
            const auto first = random.below(5);
            const auto count = 2 + random.below(2);
            for (std::size_t i = 0; i != count; ++i) wanted.push_back(&tokens[(first + i) % 5]);
            if (random.one_in(2)) std::swap(wanted.front(), wanted.back());
            std::vector<source> sources;
            for (token* each : wanted) sources.push_back(each->event);
            const auto longest = std::chrono::microseconds(random.one_in(2) ? 20 + random.below(200) : 5'000);
            if (tocsin::wait_all({.until = longest}, std::span<const source>(sources)) ==
                wait_status::signaled) {
                for (token* each : wanted) each->took();
                served.fetch_add(1);
            }
            jitter(random);
        }
    });
    threads.start_many(2, "giver", [&](int number) {
        random_source random(static_cast<std::uint64_t>(100 + number));
        while (!enough.load()) {
            tokens[random.below(5)].give();
            jitter(random);
        }
    });
    threads.start("takes one", [&] {
        random_source random(200);
        while (!enough.load()) {
            token& one = tokens[random.below(5)];
            if (one.event.wait_for(std::chrono::microseconds(random.below(50))) == wait_status::signaled)
                one.took();
            std::this_thread::sleep_for(100us);  // no fact to wait for: it should take seldom
        }
    });
    while (!time.is_over()) std::this_thread::sleep_for(1ms);  // no fact to wait for
    support::until("a wait is served", [&] { return served.load() > 0; });
    enough.store(true);
    threads.join();
    for (token& each : tokens) expect_balance(each);
    std::printf("%ld served\n", served.load());
}

// In odd phases all three events are set, and only the one wait takes them. In whatever order and with whatever call a
// thread looks, once it finds one event gone, all are gone.
TEST(ManyStress, NobodyEverSeesAPartTaken) {
    const stress_time time;
    auto_reset_event events[3];
    std::atomic<long> phase{0};
    std::atomic<bool> enough{false};
    std::atomic<long> looks{0};
    thread_group threads;
    threads.start_many(2, "looker", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        while (!enough.load()) {
            auto_reset_event& one = events[random.below(3)];
            auto_reset_event& other = events[random.below(3)];
            const long before = phase.load();
            const bool one_there = one.is_set();
            const bool other_there = other.is_set();
            if (before % 2 == 0 || phase.load() != before) continue;
            EXPECT_TRUE(one_there || !other_there);
            looks.fetch_add(1, std::memory_order_relaxed);
        }
    });
    auto_reset_event go;
    auto_reset_event done;
    threads.start("waiter", [&] {
        for (;;) {
            tocsin::wait_all(events[0], go, events[1], events[2]);
            const bool last = enough.load();  // of this round: after `done` another may begin
            done.set();
            if (last) return;
        }
    });
    random_source random(7);
    for (bool last = false; !last;) {
        last = time.is_over();
        for (auto& each : events) each.set();
        phase.fetch_add(1);
        jitter(random);
        if (last) enough.store(true);
        go.set();
        done.wait();
        phase.fetch_add(1);
    }
    threads.join();
    std::printf("%ld looks\n", looks.load());
}

// A wait for any ends by a token, its deadline, a timer or a stop, and never by two of them.
TEST(ManyStress, TokensInAreTokensOutOfWaitsForAnyThatRaceTimeAndStop) {
    const stress_time time;
    std::array<token, 3> tokens;
    std::atomic<bool> enough{false};
    std::array<std::atomic<long>, 3> endings{};
    std::mutex guard;
    std::stop_source current;
    thread_group threads;
    threads.start_many(3, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        while (!enough.load()) {
            std::stop_token stop;
            {
                const std::lock_guard lock(guard);
                stop = current.get_token();
            }
            const auto longest = std::chrono::microseconds(random.below(60));
            const auto timer = std::chrono::microseconds(random.below(120));
            const auto how = tocsin::wait_any({.until = longest, .stop = stop}, tokens[0].event, after(timer),
                                              tokens[1].event, tokens[2].event, tokens[1].event);
            if (how.status == wait_status::signaled && how.index != 1) {
                tokens[how.index == 0 ? 0 : how.index == 3 ? 2 : 1].took();
            }
            endings[static_cast<std::size_t>(how.status)].fetch_add(1);
        }
    });
    threads.start("giver", [&] {
        random_source random(100);
        while (!enough.load()) {
            tokens[random.below(3)].give();
            jitter(random);
        }
    });
    threads.start("stopper", [&] {
        while (!enough.load()) {
            std::stop_source old;
            {
                const std::lock_guard lock(guard);
                std::swap(old, current);
            }
            old.request_stop();
            std::this_thread::sleep_for(30us);  // no fact to wait for: now and then
        }
    });
    while (!time.is_over()) std::this_thread::sleep_for(1ms);  // no fact to wait for
    enough.store(true);
    threads.join();
    for (token& each : tokens) expect_balance(each);
    std::printf("%ld signaled or timer, %ld timed out, %ld stopped\n", endings[0].load(), endings[1].load(),
                endings[2].load());
}

#if TOCSIN_ON_POSIX
// A set and a byte race to end one wait. Whichever does not end this wait ends the next. There is no deadline, so the
// test hangs if a set or a byte is lost.
TEST(ManyStress, NoSetAndNoByteIsLostByAWaitForBoth) {
    const stress_time time;
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    auto_reset_event event;
    support::starting_line line(3);
    std::atomic<bool> enough{false};
    long rounds = 0;
    thread_group threads;
    threads.start("setter", [&] {
        random_source random(1);
        for (line.arrive(); !enough.load(); line.arrive()) {
            jitter(random);
            event.set();
            line.arrive();
        }
    });
    threads.start("writer", [&] {
        random_source random(2);
        for (line.arrive(); !enough.load(); line.arrive()) {
            jitter(random);
            EXPECT_EQ(write(pair[1], "x", 1), 1);
            line.arrive();
        }
    });
    random_source random(3);
    for (;; ++rounds) {
        if (time.is_over()) enough.store(true);
        line.arrive();
        if (enough.load()) break;
        jitter(random);
        for (int sets = 0, bytes = 0; sets + bytes != 2;) {
            const auto found = random.one_in(2) ? tocsin::wait_any(event, readable(pair[0]))
                                                : tocsin::wait_any(readable(pair[0]), event);
            char byte;
            const bool is_byte = found.found != tocsin::readiness::none;
            if (is_byte && read(pair[0], &byte, 1) != 1) ADD_FAILURE() << "was reported as readable";
            ++(is_byte ? bytes : sets);
            EXPECT_TRUE(sets < 2 && bytes < 2);
        }
        EXPECT_FALSE(event.is_set());
        line.arrive();
    }
    threads.join();
    close(pair[0]);
    close(pair[1]);
    std::printf("%ld rounds\n", rounds);
}

// A descriptor that is ready all the time is in front of an event that others set all the time. The event may be handed
// to a wait that has not polled yet, but not to two in a row.
TEST(ManyStress, TwoWaitsInARowDoNotPassOverADescriptorThatIsReady) {
    const stress_time time;
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    ASSERT_EQ(write(pair[1], "x", 1), 1);
    auto_reset_event event;
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(2, "setter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        for (; !enough.load(); jitter(random)) event.set();
    });
    long waits = 0;
    long passed_over = 0;
    for (bool in_a_row = false; !time.is_over(); ++waits) {
        const bool passed = tocsin::wait_any(readable(pair[0]), event).index != 0;
        EXPECT_FALSE(in_a_row && passed);
        in_a_row = passed;
        passed_over += passed ? 1 : 0;
    }
    enough.store(true);
    threads.join();
    close(pair[0]);
    close(pair[1]);
    std::printf("%ld waits, %ld passed over the descriptor\n", waits, passed_over);
}
#endif

// The event becomes ready while the wait is between its first look and its sleep. The waiter owns the event and
// destroys it at once.
TEST(ManyStress, WhatBecomesReadyBetweenRegistrationAndSleepEndsTheWait) {
    const stress_time time;
    support::starting_line line(3);
    std::atomic<bool> enough{false};
    std::unique_ptr<auto_reset_event[]> events;
    long rounds = 0;
    thread_group threads;
    threads.start_many(2, "setter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        for (line.arrive(); !enough.load(); line.arrive()) {
            jitter(random);
            events[static_cast<std::size_t>(number)].set();
            line.arrive();
        }
    });
    random_source random(3);
    for (;; ++rounds) {
        if (time.is_over()) enough.store(true);
        events = std::make_unique<auto_reset_event[]>(2);
        line.arrive();
        if (enough.load()) break;
        jitter(random);
        if (random.one_in(2)) {
            tocsin::wait_all(events[1], events[0]);
            events.reset();
        } else {
            const auto first = tocsin::wait_any(events[0], events[1]).index;
            events[1 - first].wait();
            events.reset();
        }
        line.arrive();
    }
    threads.join();
    std::printf("%ld rounds\n", rounds);
}

}  // namespace
