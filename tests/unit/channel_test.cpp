// SPDX-License-Identifier: Apache-2.0
// Channels, as their header promises: what each call returns, in which order items come out, and where they are when a
// send or a receive does not happen.
#include "clocks.hpp"
#include "facts.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/channel.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <ostream>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace tocsin {

inline void PrintTo(channel_status status, std::ostream* out) {
    *out << "channel_status " << static_cast<int>(status);
}

}  // namespace tocsin

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using tocsin::channel;
using tocsin::channel_status;
using tocsin::received;
using tocsin::spin_policy;

using boxed = std::unique_ptr<int>;
boxed box(int number) { return std::make_unique<int>(number); }

constinit channel<int> global_rendezvous(0);
channel<std::string> global_channel(2);

static_assert(!std::is_copy_constructible_v<channel<int>> && !std::is_move_constructible_v<channel<int>>);
static_assert(std::is_move_constructible_v<received<boxed>>);
static_assert(sizeof(void*) != 8 || sizeof(channel<boxed>) == 192, "the header says so");

TEST(Channel, ItemsComeOutInTheOrderInWhichTheyWentIn) {
    channel<int> numbers(3);
    EXPECT_EQ(numbers.capacity(), 3u);
    int next_in = 0;
    int next_out = 0;
    for (int round = 0; round != 5; ++round) {  // over the end of the ring
        for (int i = 0; i != 3; ++i) EXPECT_EQ(numbers.send(next_in++), channel_status::done);
        EXPECT_EQ(numbers.size(), 3u);
        EXPECT_EQ(numbers.try_send(-1), channel_status::not_ready);
        for (int i = 0; i != 2 + round % 2; ++i) EXPECT_EQ(*numbers.receive(), next_out++);
        while (numbers.size() != 0) EXPECT_EQ(*numbers.try_receive(), next_out++);
        const auto none = numbers.try_receive();
        EXPECT_FALSE(none);
        EXPECT_EQ(none.status(), channel_status::not_ready);
    }
}

TEST(Channel, GlobalObjectsWork) {
    EXPECT_EQ(global_rendezvous.try_send(1), channel_status::not_ready);
    EXPECT_EQ(global_rendezvous.capacity(), 0u);
    EXPECT_EQ(global_channel.send("text"), channel_status::done);
    EXPECT_EQ(*global_channel.receive(), "text");
}

TEST(Channel, ItemsAreCopiedFromNamesMovedFromRvaluesAndMadeFromOtherTypes) {
    channel<std::string> texts(4);
    const std::string name = "a text that is too long for a short string";
    std::string moved = name;
    EXPECT_EQ(texts.send(name), channel_status::done);
    EXPECT_EQ(texts.send(std::move(moved)), channel_status::done);
    EXPECT_EQ(texts.send("made"), channel_status::done);
    EXPECT_EQ(texts.send({"braces", 3}), channel_status::done);
    EXPECT_EQ(*texts.receive(), name);
    EXPECT_EQ(*texts.receive(), name);
    EXPECT_EQ(texts.receive()->size(), 4u);
    EXPECT_EQ(*texts.receive(), "bra");
}

TEST(Channel, AnItemThatIsNotSentStaysWithItsSender) {
    channel<boxed> boxes(1);
    ASSERT_EQ(boxes.send(box(1)), channel_status::done);
    boxed mine = box(2);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(boxes.try_send(std::move(mine)), channel_status::not_ready);
    EXPECT_EQ(boxes.send_for(std::move(mine), 1ms), channel_status::timed_out);
    EXPECT_EQ(boxes.send(std::move(mine), stop.get_token()), channel_status::stopped);
    EXPECT_EQ(boxes.send_until(std::move(mine), std::chrono::system_clock::now(), spin_policy::none()),
              channel_status::timed_out);
    boxes.close();
    EXPECT_EQ(boxes.send(std::move(mine)), channel_status::closed);
    EXPECT_EQ(boxes.try_send(std::move(mine)), channel_status::closed);
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(*mine, 2);
    EXPECT_EQ(**boxes.receive(), 1);
}

TEST(Channel, AReadyTransferHappensAlthoughTheTimeIsOverOrAStopRequested) {
    channel<int> numbers(2);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(numbers.send_for(1, 0s), channel_status::done);
    EXPECT_EQ(numbers.send(2, stop.get_token()), channel_status::done);
    EXPECT_EQ(*numbers.receive_for(-1s), 1);
    EXPECT_EQ(*numbers.receive(stop.get_token(), spin_policy::none()), 2);
    EXPECT_EQ(numbers.receive(stop.get_token()).status(), channel_status::stopped);
    EXPECT_EQ(numbers.receive_for(0s).status(), channel_status::timed_out);
}

TEST(Channel, AWaitLastsUntilItsDeadlineOnAnyClock) {
    channel<int> numbers(0);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(numbers.receive_for(5ms, spin_policy::none()).status(), channel_status::timed_out);
    EXPECT_EQ(numbers.send_until(1, begin + 10ms), channel_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 10ms);
    support::hand_clock::milliseconds = 5;
    using time = support::hand_clock::time_point;
    EXPECT_EQ(numbers.receive_until(time(5ms)).status(), channel_status::timed_out);
}

TEST(Channel, AReceiverSleepsUntilAnItemComes) {
    for (const std::size_t capacity : {0u, 2u}) {
        channel<boxed> boxes(capacity);
        thread_group threads;
        threads.start([&] { EXPECT_EQ(**boxes.receive(spin_policy::none()), 7); });
        threads.until_asleep(0);
        EXPECT_EQ(boxes.send(box(7)), channel_status::done);
        EXPECT_EQ(boxes.size(), 0u) << "it belongs to the receiver already";
        EXPECT_EQ(boxes.try_receive().status(), channel_status::not_ready);
        threads.join();
    }
}

TEST(Channel, ASenderSleepsUntilThereIsRoomAndIsNotOvertaken) {
    channel<int> numbers(1);
    (void)numbers.send(1);
    thread_group threads;
    threads.start([&] { EXPECT_EQ(numbers.send(2, spin_policy::none()), channel_status::done); });
    threads.until_asleep(0);
    threads.start([&] { EXPECT_EQ(numbers.send(3, spin_policy::none()), channel_status::done); });
    threads.until_asleep(1);
    EXPECT_EQ(*numbers.receive(), 1);
    EXPECT_EQ(numbers.try_send(9), channel_status::not_ready) << "the slot is the first sender's";
    for (const int number : {2, 3}) EXPECT_EQ(*numbers.receive(), number);
    EXPECT_EQ(numbers.try_receive().status(), channel_status::not_ready);
    threads.join();
}

TEST(Channel, WaitingReceiversAreServedInTheirOrder) {
    channel<int> numbers(4);
    thread_group threads;
    for (int i = 0; i != 3; ++i) {
        threads.start([&, i] { EXPECT_EQ(*numbers.receive(spin_policy::none()), i); });
        threads.until_asleep(static_cast<std::size_t>(i));
    }
    for (int i = 0; i != 3; ++i) EXPECT_EQ(numbers.send(i), channel_status::done);
    threads.join();
}

TEST(Channel, ARendezvousMeetsInBothDirections) {
    channel<int> meeting(0);
    EXPECT_EQ(meeting.try_receive().status(), channel_status::not_ready);
    thread_group threads;
    threads.start([&] { EXPECT_EQ(meeting.send(1, spin_policy::none()), channel_status::done); });
    threads.until_asleep(0);
    EXPECT_EQ(*meeting.try_receive(), 1);
    threads.start([&] { EXPECT_EQ(*meeting.receive(spin_policy::none()), 2); });
    threads.until_asleep(1);
    EXPECT_EQ(meeting.try_send(2), channel_status::done);
    threads.join();
    EXPECT_EQ(meeting.size(), 0u);
}

TEST(Channel, AStopEndsAWait) {
    channel<int> numbers(0);
    std::stop_source stop;
    thread_group threads;
    threads.start([&] { EXPECT_EQ(numbers.receive(stop.get_token()).status(), channel_status::stopped); });
    threads.start(
        [&] { EXPECT_EQ(numbers.receive_for(1h, stop.get_token()).status(), channel_status::stopped); });
    threads.until_asleep(0);
    threads.until_asleep(1);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(numbers.try_send(1), channel_status::not_ready) << "nobody waits any more";
}

// ---- closing ------------------------------------------------------------------------------------

TEST(ClosedChannel, GivesWhatIsLeftAndThenSaysClosed) {
    channel<int> numbers(3);
    (void)numbers.send(1);
    (void)numbers.send(2);
    EXPECT_FALSE(numbers.is_closed());
    EXPECT_TRUE(numbers.close());
    EXPECT_FALSE(numbers.close());
    EXPECT_TRUE(numbers.is_closed());
    EXPECT_EQ(numbers.send(3), channel_status::closed);
    EXPECT_EQ(*numbers.receive(), 1);
    EXPECT_EQ(*numbers.try_receive(), 2);
    EXPECT_EQ(numbers.receive().status(), channel_status::closed);
    EXPECT_EQ(numbers.try_receive().status(), channel_status::closed);
    EXPECT_EQ(numbers.receive_for(1h).status(), channel_status::closed);
}

TEST(ClosedChannel, EveryWaitEndsAndItsItemStays) {
    for (const std::size_t capacity : {0u, 1u}) {
        channel<boxed> full(capacity);
        if (capacity != 0) (void)full.send(box(0));
        channel<boxed> empty(capacity);
        thread_group threads;
        threads.start_many(3, "sender", [&](int i) {
            boxed mine = box(i);
            EXPECT_EQ(full.send(std::move(mine), spin_policy::none()), channel_status::closed);
            ASSERT_NE(mine, nullptr);
            EXPECT_EQ(*mine, i);
        });
        threads.start_many(3, "receiver", [&](int) {
            const auto none = empty.receive(spin_policy::none());
            EXPECT_FALSE(none);
            EXPECT_EQ(none.status(), channel_status::closed);
        });
        for (std::size_t i = 0; i != 6; ++i) threads.until_asleep(i);
        EXPECT_TRUE(full.close());
        EXPECT_TRUE(empty.close());
        threads.join();
        EXPECT_EQ(full.size(), capacity);
    }
}

TEST(ClosedChannel, ALoopOverReceiveEnds) {
    channel<int> numbers(2);
    int sum = 0;
    thread_group threads;
    threads.start([&] {
        while (auto next = numbers.receive()) sum += *next;
    });
    for (int i = 1; i != 101; ++i) (void)numbers.send(i);
    numbers.close();
    threads.join();
    EXPECT_EQ(sum, 5050);
}

// ---- items --------------------------------------------------------------------------------------

struct counted {
    explicit counted(std::atomic<int>& in) : alive(&in) { ++*alive; }
    counted(counted&& from) noexcept : alive(from.alive) { ++*alive; }
    counted& operator=(counted&&) = delete;
    ~counted() { --*alive; }

    std::atomic<int>* alive;
};

TEST(ChannelItems, WhatIsLeftIsDestroyedWithTheChannel) {
    std::atomic<int> alive{0};
    {
        channel<counted> items(4);
        for (int i = 0; i != 3; ++i) (void)items.send(counted(alive));
        EXPECT_EQ(alive, 3);
        EXPECT_TRUE(items.receive());
        EXPECT_EQ(alive, 2);
        items.close();
    }
    EXPECT_EQ(alive, 0);
}

struct alignas(128) wide {
    int number;
};

TEST(ChannelItems, MayBeOveraligned) {
    channel<wide> items(2);
    (void)items.send(wide{5});
    const auto got = items.receive();
    EXPECT_TRUE(got);
    received<wide> moved = items.try_receive();
    EXPECT_FALSE(moved);
}

#if defined(__cpp_exceptions)
struct throwing_copy {
    explicit throwing_copy(int of) : number(of) {}
    throwing_copy(const throwing_copy& from) : number(from.number) {
        if (number < 0) throw std::bad_alloc();
    }
    throwing_copy(throwing_copy&& from) noexcept : number(from.number) {}

    int number;
};

TEST(ChannelItems, ACopyThatThrowsSendsNothing) {
    channel<throwing_copy> items(1);
    const throwing_copy bad(-1);
    EXPECT_THROW((void)items.send(bad), std::bad_alloc);
    EXPECT_EQ(items.size(), 0u);
    const throwing_copy good(1);
    EXPECT_EQ(items.send(good), channel_status::done);
    EXPECT_EQ(items.receive()->number, 1);
}

TEST(ChannelItems, ACapacityThatDoesNotFitIsRefused) {
    EXPECT_THROW(channel<wide>(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
}

#endif

TEST(ChannelItems, EachIsReceivedOnceByManyThreads) {
    for (const std::size_t capacity : {0u, 1u, 7u}) {
        constexpr int each = 400;
        channel<int> numbers(capacity);
        std::vector<std::atomic<int>> seen(3 * each);
        std::atomic<int> senders{3};
        thread_group threads;
        threads.start_many(3, "sender", [&](int i) {
            for (int n = 0; n != each; ++n) EXPECT_EQ(numbers.send(i * each + n), channel_status::done);
            if (--senders == 0) numbers.close();
        });
        threads.start_many(3, "receiver", [&](int) {
            std::vector<int> last(3, -1);
            while (const auto next = numbers.receive()) {
                ++seen[static_cast<std::size_t>(*next)];
                int& before = last[static_cast<std::size_t>(*next / each)];
                EXPECT_GT(*next, before) << "one sender's items keep their order";
                before = *next;
            }
        });
        threads.join();
        for (const auto& count : seen) EXPECT_EQ(count, 1);
    }
}

// ---- misuse -------------------------------------------------------------------------------------

#if TOCSIN_CHECKED
void destroy_with_a_waiter() {
    auto* const numbers = new channel<int>(1);
    thread_group threads;
    threads.start([numbers] { (void)numbers->receive(spin_policy::none()); });
    threads.until_asleep(0);
    delete numbers;
}

TEST(ChannelMisuse, DestroyingOneWithAWaiterIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter(), "channel at .*destroyed while threads wait");
}
#endif

}  // namespace
