// SPDX-License-Identifier: Apache-2.0
// As many tokens come out as go in, under every race of set, timeout and stop.
#include "facts.hpp"
#include "printing.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using namespace support;
using namespace tocsin;

struct tally {
    std::atomic<long> signaled{0};
    std::atomic<long> timed_out{0};
    std::atomic<long> stopped{0};

    void add(wait_status how) {
        auto& field = how == wait_status::signaled    ? signaled
                      : how == wait_status::timed_out ? timed_out
                                                      : stopped;
        field.fetch_add(1, std::memory_order_relaxed);
    }
    void print(const char* what, long in) const {
        std::printf("%s: %ld in, %ld signaled; %ld timed out, %ld stopped\n", what, in, signaled.load(),
                    timed_out.load(), stopped.load());
    }
};

// Waits on the event in a randomly chosen way.
wait_status wait_somehow(auto_reset_event& event, random_source& random) {
    const nanoseconds longest(random.below(80'000));
    const spin_policy spin = random.one_in(2) ? spin_policy::none() : spin_policy();
    switch (random.below(6)) {
        case 0: return event.try_wait() ? wait_status::signaled : wait_status::timed_out;
        case 1: return event.wait_for(longest, spin);
        case 2: return event.wait_until(std::chrono::system_clock::now() + longest / 1000 * 1000, spin);
        case 3: return event.wait_for(0ns);
        default: {  // stopped from another thread, at about the time of the deadline
            const auto stop = std::make_unique<std::stop_source>();
            if (random.one_in(4)) {
                std::jthread stopper([&] { stop->request_stop(); });
                return event.wait_for(longest, stop->get_token(), spin);
            }
            return event.wait_for(longest, stop->get_token(), spin);
        }
    }
}

// A setter gives a token only when the last token has been taken, so that none is absorbed.
TEST(Tokens, GivenOneAtATimeAreTakenOnceEach) {
    const stress_time time;
    auto_reset_event event;
    tally waits;
    std::atomic<long> given{0};
    std::atomic<bool> enough{false};
    std::mutex giving;
    thread_group threads;
    threads.start_many(4, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number));
        while (!enough.load()) waits.add(wait_somehow(event, random));
    });
    threads.start_many(2, "setter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 50);
        while (!time.is_over()) {
            const std::scoped_lock turn(giving);
            jitter(random);
            const long before = given.fetch_add(1);
            event.set();
            support::until("the token is taken", [&] { return waits.signaled.load() > before; });
            ASSERT_EQ(waits.signaled.load(), before + 1);
        }
    });
    for (std::size_t i = 4; i < 6; ++i) {
        support::until("the setters have finished", [&] { return threads.finished(i); });
    }
    enough.store(true);
    threads.join();
    waits.print("one at a time", given.load());
    EXPECT_EQ(waits.signaled.load(), given.load());
    EXPECT_FALSE(event.is_set());
}

// As many tokens are in flight as there are events. Each is acknowledged separately. Waiters roam over all events.
TEST(Tokens, OnManyEventsAreTakenOnceEach) {
    const stress_time time;
    constexpr std::size_t count = 8;
    struct channel {
        auto_reset_event event;
        std::atomic<long> taken{0};
    };
    std::array<channel, count> channels;
    tally waits;
    std::atomic<long> given{0};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(3, "setter of some", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 100);
        std::array<long, count> sent{};
        while (!time.is_over()) {
            for (auto i = static_cast<std::size_t>(number); i < count; i += 3) {
                if (channels[i].taken.load() != sent[i]) continue;
                ++sent[i];
                given.fetch_add(1);
                channels[i].event.set();
                jitter(random);
            }
        }
        for (auto i = static_cast<std::size_t>(number); i < count; i += 3) {
            support::until("the last tokens are taken", [&] { return channels[i].taken.load() == sent[i]; });
        }
    });
    threads.start_many(5, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 150);
        while (!enough.load()) {
            auto& channel = channels[random.below(count)];
            const auto how = wait_somehow(channel.event, random);
            waits.add(how);
            if (how == wait_status::signaled) channel.taken.fetch_add(1);
        }
    });
    threads.until_finished(3);
    enough.store(true);
    threads.join();
    waits.print("many events", given.load());
    EXPECT_EQ(waits.signaled.load(), given.load());
    for (auto& each : channels) EXPECT_FALSE(each.event.is_set());
}

// There are only as many sets as waits that must succeed. Sets don't wait for each other, but no event that may still
// be set is set again: a waiter says first that its wait is endless.
TEST(Tokens, HandedToQueuedWaitersReachEveryOne) {
    const stress_time time;
    auto_reset_event event;
    std::atomic<long> wanted{0};
    std::atomic<long> out{0};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(4, "waiter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 200);
        while (!enough.load()) {
            wanted.fetch_add(1);
            event.wait(random.one_in(2) ? spin_policy::none() : spin_policy());
            out.fetch_add(1);
            jitter(random);
        }
    });
    random_source random(250);
    long in = 0;
    long parked = 0;
    while (!time.is_over()) {
        // The threads parked now stay parked until they are handed a token: give exactly that many.
        const auto now = static_cast<long>(tocsin::waiting_on(&event));
        for (long i = 0; i < now; ++i) event.set();
        in += now;
        parked += now > 1 ? 1 : 0;
        ASSERT_FALSE(event.is_set()) << "a token found no taker among those parked";
        jitter(random);
    }
    enough.store(true);
    support::until("every waiter got its token", [&] {
        if (threads.finished() < 4 && tocsin::waiting_on(&event) > 0) {
            event.set();
            ++in;
        }
        return threads.finished() == 4;
    });
    threads.join();
    std::printf("queued: %ld tokens in, %ld out, several at once %ld times\n", in, out.load(), parked);
    EXPECT_EQ(out.load(), in);
    EXPECT_EQ(out.load(), wanted.load());
    EXPECT_FALSE(event.is_set());
}

// A ring of more threads than processors passes tokens on; none may vanish or be doubled.
TEST(Tokens, GoRoundARingOfMoreThreadsThanProcessors) {
    const stress_time time;
    constexpr std::size_t members = 12;
    std::array<auto_reset_event, members> ring;
    std::array<std::atomic<int>, members> holding{};
    std::atomic<bool> enough{false};
    std::atomic<long> steps{0};
    thread_group threads;
    threads.start_many(members, "member", [&](int number) {
        const auto own = static_cast<std::size_t>(number);
        random_source random(own + 300);
        for (;;) {
            while (ring[own].wait_for(nanoseconds(random.below(3'000'000))) != wait_status::signaled) {
                if (enough.load()) return;
            }
            holding[own].fetch_add(1);
            steps.fetch_add(1);
            jitter(random);
            holding[own].fetch_sub(1);
            if (enough.load()) {
                ring[own].set();  // puts it back, to be counted
                return;
            }
            ring[(own + 1) % members].set();
        }
    });
    ring[0].set();
    while (!time.is_over()) std::this_thread::sleep_for(10ms);
    support::until("the token has gone a step", [&] { return steps.load() > 0; });
    enough.store(true);
    threads.join();
    int left = 0;
    for (auto& each : ring) left += each.is_set() ? 1 : 0;
    std::printf("ring: %ld steps\n", steps.load());
    EXPECT_EQ(left, 1) << "one token went in";
}

TEST(PingPong, BetweenManyPairsLosesNothing) {
    const stress_time time;
    constexpr int pairs = 6;
    std::array<auto_reset_event, pairs> there;
    std::array<manual_reset_event, pairs> back;
    std::array<long, pairs> sums{};
    std::atomic<long> rounds{0};
    thread_group threads;
    threads.start_many(pairs, "answers", [&](int i) {
        const auto own = static_cast<std::size_t>(i);
        for (;;) {
            there[own].wait();
            if (sums[own] < 0) return;
            ++sums[own];
            back[own].set();
        }
    });
    threads.start_many(pairs, "asks", [&](int i) {
        const auto own = static_cast<std::size_t>(i);
        random_source random(own + 350);
        long asked = 0;
        while (!time.is_over()) {
            there[own].set();
            jitter(random);
            back[own].wait();
            back[own].reset();
            ASSERT_EQ(sums[own], ++asked);
        }
        rounds.fetch_add(asked);
        sums[own] = -1;
        there[own].set();
    });
    threads.join();
    std::printf("ping-pong: %ld rounds\n", rounds.load());
}

// Each generation parks, is released by set() with reset() at once, and parks at the other gate. When all are parked
// there, all have been released here.
TEST(Gate, SetAndResetReleaseAllThatWaitedEveryTime) {
    const stress_time time;
    std::array<manual_reset_event, 2> gates;
    constexpr std::size_t waiters = 8;
    std::atomic<bool> enough{false};
    std::atomic<long> passed{0};
    thread_group threads;
    threads.start_many(waiters, "waiter", [&](int) {
        for (std::size_t turn = 0; !enough.load(); ++turn) {
            gates[turn % 2].wait();
            passed.fetch_add(1);
        }
    });
    long generations = 0;
    for (std::size_t turn = 0; !time.is_over(); ++turn) {
        support::until_parked(&gates[turn % 2], waiters);
        ASSERT_EQ(passed.load(), generations * static_cast<long>(waiters));
        ++generations;
        gates[turn % 2].set();
        gates[turn % 2].reset();
    }
    enough.store(true);
    for (auto& gate : gates) gate.set();
    threads.join();
    std::printf("gate: %ld generations of %zu\n", generations, waiters);
}

// The same alongside threads that may give up at any moment.
TEST(Gate, ReleasesThreadsThatStayWhileOthersGiveUp) {
    const stress_time time;
    std::array<manual_reset_event, 2> gates;
    constexpr std::size_t stay = 3;
    tally impatient;
    std::array<std::atomic<long>, stay> passed{};
    std::atomic<std::size_t> now{0};  // the gate in use
    std::atomic<bool> season{false};  // whether threads that may give up may begin a wait
    std::atomic<int> inside{0};       // how many of them may be waiting
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(stay, "stays", [&](int number) {
        for (std::size_t turn = 0; !enough.load(); ++turn) {
            gates[turn % 2].wait();
            passed[static_cast<std::size_t>(number)].fetch_add(1);
        }
    });
    threads.start_many(3, "may give up", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 400);
        while (!enough.load()) {
            inside.fetch_add(1);
            if (season.load()) {
                auto& gate = gates[now.load()];
                std::stop_source stop;
                const nanoseconds longest(random.below(100'000));
                if (random.one_in(8)) {
                    std::jthread stopper([&] { stop.request_stop(); });
                    impatient.add(gate.wait_for(longest, stop.get_token()));
                } else {
                    impatient.add(gate.wait_for(longest));
                }
            }
            inside.fetch_sub(1);
            if (!season.load()) std::this_thread::sleep_for(10us);
        }
    });
    random_source random(450);
    long generations = 0;
    for (std::size_t turn = 0; !time.is_over(); ++turn) {
        auto& gate = gates[turn % 2];
        season.store(false);
        support::until("threads that may give up have ended their waits", [&] { return inside.load() == 0; });
        support::until_parked(&gate, stay);
        now.store(turn % 2);
        season.store(true);
        std::this_thread::sleep_for(nanoseconds(random.below(150'000)));
        gate.set();
        gate.reset();
        ++generations;
        for (auto& each : passed) {
            support::until("all threads that stay have passed", [&] { return each.load() == generations; });
        }
    }
    enough.store(true);
    for (auto& gate : gates) gate.set();
    threads.join();
    impatient.print("gate, threads that may give up", generations);
    for (auto& gate : gates) EXPECT_EQ(tocsin::waiting_on(&gate), 0u);
}

}  // namespace
