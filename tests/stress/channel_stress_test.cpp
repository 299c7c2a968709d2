// SPDX-License-Identifier: Apache-2.0
// Every item that goes into a channel comes out once, and an item that was not sent is still with its sender, under
// every race of sends, receives, timeouts, stops, waits for several sources, and close().
#include "facts.hpp"
#include "printing.hpp"
#include "stress.hpp"
#include "threads.hpp"

#include <tocsin/channel.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using namespace support;
using namespace tocsin;

using item = std::unique_ptr<long>;

spin_policy some_spin(random_source& random) {
    return random.one_in(2) ? spin_policy::none() : spin_policy();
}

nanoseconds some_time(random_source& random) { return nanoseconds(random.below(60'000)); }

// Sends to one of two channels in a randomly chosen way, and returns whether it did.
bool send_somehow(channel<item>& to, channel<item>& other, item& mine, random_source& random) {
    switch (random.below(5)) {
        case 0: return to.try_send(std::move(mine)) == channel_status::done;
        case 1:
            return to.send_for(std::move(mine), some_time(random), some_spin(random)) == channel_status::done;
        case 2: {
            std::stop_source stop;
            const std::jthread stopper([&] { stop.request_stop(); });
            return to.send(std::move(mine), stop.get_token(), some_spin(random)) == channel_status::done;
        }
        default: {
            auto first = to.sending(mine);
            auto second = other.sending(mine);
            const auto how =
                tocsin::wait_any({.until = some_time(random), .spin = some_spin(random)}, first, second);
            if (how.index > 1) return false;
            return (how.index == 0 ? first : second).status() == channel_status::done;
        }
    }
}

item receive_somehow(channel<item>& from, channel<item>& other, random_source& random) {
    const auto content = [](auto received) { return received ? *std::move(received) : item(); };
    switch (random.below(5)) {
        case 0: return content(from.try_receive());
        case 1: return content(from.receive_for(some_time(random), some_spin(random)));
        case 2: {
            std::stop_source stop;
            const std::jthread stopper([&] { stop.request_stop(); });
            return content(from.receive(stop.get_token(), some_spin(random)));
        }
        default: {
            auto first = from.receiving();
            auto second = other.receiving();
            const auto how =
                tocsin::wait_any({.until = some_time(random), .spin = some_spin(random)}, first, second);
            if (how.index == 0 && first) return std::move(*first);
            if (how.index == 1 && second) return std::move(*second);
            return {};
        }
    }
}

void every_item_comes_out_once(std::size_t capacity) {
    const stress_time time;
    channel<item> a(capacity);
    channel<item> b(0);
    std::atomic<long> sent{0};
    std::atomic<long> received{0};
    std::atomic<int> sending{3};
    thread_group threads;
    threads.start_many(3, "sender", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 100);
        for (long next = 1; !time.is_over(); ++next) {
            auto mine = std::make_unique<long>(next);
            channel<item>& to = random.one_in(2) ? a : b;
            if (send_somehow(to, &to == &a ? b : a, mine, random)) {
                ASSERT_EQ(mine, nullptr);
                sent += next;
            } else {
                ASSERT_NE(mine, nullptr);
                ASSERT_EQ(*mine, next);
            }
            jitter(random);
        }
        if (--sending == 0) {
            a.close();
            b.close();
        }
    });
    threads.start_many(3, "receiver", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 200);
        while (!a.is_closed() || a.size() != 0 || !b.is_closed()) {
            channel<item>& from = random.one_in(2) ? a : b;
            if (const item got = receive_somehow(from, &from == &a ? b : a, random)) received += *got;
            jitter(random);
        }
    });
    threads.join();
    std::printf("the items sent add up to %ld\n", sent.load());
    EXPECT_EQ(sent.load(), received.load());
    EXPECT_EQ(a.try_receive().status(), channel_status::closed);
}

TEST(Channels, EveryItemComesOutOnce) { every_item_comes_out_once(2); }
TEST(Channels, EveryItemComesOutOnceOfARendezvous) { every_item_comes_out_once(0); }

// Each thread both sends and receives, in one wait, at two rendezvous channels that it names in changing orders.
TEST(Channels, PeersMeetPairwise) {
    const stress_time time;
    channel<long> a(0);
    channel<long> b(0);
    std::atomic<long> sum{0};
    std::atomic<long> meetings{0};
    thread_group threads;
    threads.start_many(4, "peer", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number) + 300);
        while (!time.is_over() || meetings.load() == 0) {  // a busy machine may start the threads late
            const bool turn = random.one_in(2);
            long mine = 1 + static_cast<long>(random.below(100));
            auto sending = (turn ? a : b).sending(mine);
            auto receiving = (turn ? b : a).receiving();
            const tocsin::limits how_long{.until = some_time(random), .spin = some_spin(random)};
            const auto how = random.one_in(2) ? tocsin::wait_any(how_long, sending, receiving)
                                              : tocsin::wait_any(how_long, receiving, sending);
            if (how.status != tocsin::wait_status::signaled) continue;
            if (receiving) {
                sum -= *receiving;
            } else {
                sum += mine;
                ++meetings;
            }
        }
    });
    threads.join();
    std::printf("%ld meetings\n", meetings.load());
    EXPECT_GT(meetings.load(), 0);
    EXPECT_EQ(sum.load(), 0);
}

// The channel is on the heap of the receiver, which destroys it as soon as it has the item.
TEST(Channels, LiveNoLongerThanTheirLastItem) {
    const stress_time time;
    std::atomic<channel<long>*> next{nullptr};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start("owner", [&] {
        random_source random(400);
        while (!time.is_over()) {
            const auto one = std::make_unique<channel<long>>(random.below(2));
            next.store(one.get());
            if (random.one_in(2)) jitter(random);
            ASSERT_EQ(*one->receive(some_spin(random)), 5);
        }
        enough.store(true);
    });
    threads.start("sender", [&] {
        random_source random(401);
        while (!enough.load()) {
            if (auto* const one = next.exchange(nullptr)) {
                jitter(random);
                (void)one->send(5, some_spin(random));
            }
        }
    });
    threads.join();
}

}  // namespace
