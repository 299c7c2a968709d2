// SPDX-License-Identifier: Apache-2.0
// Sending and receiving as sources: in wait_any and co_await exactly one transfer happens. wait_all and wait_set
// refuse them.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

using boxed = std::unique_ptr<int>;
boxed box(int number) { return std::make_unique<int>(number); }

TEST(ChannelInWaitAny, TheFirstReadyTransferHappensAndNoOther) {
    channel<int> empty(1);
    channel<int> first(1);
    channel<int> second(2);
    (void)first.send(1);
    (void)second.send(2);
    auto from_empty = empty.receiving();
    auto from_first = first.receiving();
    int item = 3;
    auto to_second = second.sending(item);
    EXPECT_EQ(wait_any(from_empty, from_first, to_second).index, 1u);
    EXPECT_EQ(from_first.status(), channel_status::done);
    EXPECT_EQ(*from_first, 1);
    EXPECT_EQ(second.size(), 1u);
    const source list[]{from_empty, from_first, to_second};
    EXPECT_EQ(wait_any(std::span<const source>(list)).index, 2u);
    EXPECT_EQ(to_second.status(), channel_status::done);
    EXPECT_EQ(wait_any({.until = 1ms}, from_empty, from_first, to_second).status, wait_status::timed_out);
    EXPECT_FALSE(from_first) << "the item of the earlier wait is gone";
    EXPECT_EQ(*second.receive(), 2);
    EXPECT_EQ(*second.receive(), 3);
}

TEST(ChannelInWaitAny, AWaitingTransferIsServedOrAnother) {
    for (const std::size_t capacity : {0u, 1u}) {
        for (const bool by_event : {false, true}) {
            channel<boxed> in(capacity);
            channel<boxed> out(capacity);
            if (capacity != 0) (void)out.send(box(0));
            auto_reset_event event;
            boxed item = box(2);
            thread_group threads;
            threads.start([&] {
                auto receiving = in.receiving();
                auto sending = out.sending(item);
                const auto how = wait_any({.spin = spin_policy::none()}, event, sending, receiving);
                EXPECT_EQ(how.index, by_event ? 0u : 2u);
                EXPECT_EQ(static_cast<bool>(receiving), !by_event);
                if (!by_event) {
                    EXPECT_EQ(**receiving, 1);
                }
            });
            threads.until_asleep(0);
            if (by_event) {
                event.set();
            } else {
                EXPECT_EQ(in.try_send(box(1)), channel_status::done);
            }
            threads.join();
            EXPECT_NE(item, nullptr);
            EXPECT_EQ(in.try_receive().status(), channel_status::not_ready);
            EXPECT_EQ(out.size(), capacity);
        }
    }
}

TEST(ChannelInWaitAny, AReceiveServesAWaitingSend) {
    for (const std::size_t capacity : {0u, 1u}) {
        channel<boxed> out(capacity);
        if (capacity != 0) (void)out.send(box(1));
        boxed item = box(2);
        thread_group threads;
        threads.start([&] {
            auto sending = out.sending(item);
            auto_reset_event never;
            EXPECT_EQ(wait_any({.spin = spin_policy::none()}, never, sending).index, 1u);
            EXPECT_EQ(sending.status(), channel_status::done);
        });
        threads.until_asleep(0);
        if (capacity != 0) {
            EXPECT_EQ(**out.receive(), 1);
        }
        EXPECT_EQ(**out.receive(), 2);
        threads.join();
        EXPECT_EQ(item, nullptr);
    }
}

// Never ready. Calls a function when a wait enlists it: after the wait's first look, before it enlists what comes next.
template <class Function>
struct between_look_and_enlist {
    Function call;
    bool try_wait() noexcept { return false; }
    bool enlist(tocsin::wait_entry&) noexcept {
        call();
        return true;
    }
    void delist(tocsin::wait_entry&) noexcept {}
};
template <class Function>
between_look_and_enlist(Function) -> between_look_and_enlist<Function>;

// The first meeting resumes a coroutine, which comes to a meeting at another channel in the same thread.
TEST(ChannelInWaitAny, AMeetingMayLeadToAnother) {
    channel<int> first(0), second(0);
    int one = 1, two = 2, received = 0;
    std::optional<task> inner, outer;
    const auto receive_inner = [](auto& from, int& sum) -> task {
        auto next = from.receiving();
        co_await tocsin::async_wait(next);
        sum += *next;
    };
    const auto receive_outer = [&](auto& from) -> task {
        auto next = from.receiving();
        co_await tocsin::async_wait(next);
        received += *next;
        between_look_and_enlist hook{[&] { inner.emplace(receive_inner(second, received)); }};
        auto sending = second.sending(two);
        EXPECT_EQ(wait_any(hook, sending).index, 1u);
    };
    between_look_and_enlist hook{[&] { outer.emplace(receive_outer(first)); }};
    auto sending = first.sending(one);
    EXPECT_EQ(wait_any(hook, sending).index, 1u);
    EXPECT_TRUE(inner->done() && outer->done());
    EXPECT_EQ(received, 3);
}

TEST(ChannelInWaitAny, CloseMakesBothReadyAtOnce) {
    channel<int> through(1);
    (void)through.send(1);
    int item = 2;
    thread_group threads;
    threads.start([&] {
        auto sending = through.sending(item);
        EXPECT_EQ(wait_any({.spin = spin_policy::none()}, sending).index, 0u);
        EXPECT_EQ(sending.status(), channel_status::closed);
    });
    threads.until_asleep(0);
    through.close();
    threads.join();
    auto receiving = through.receiving();
    EXPECT_EQ(wait_any(receiving).index, 0u);
    EXPECT_EQ(*receiving, 1);
    EXPECT_EQ(wait_any(receiving).index, 0u);
    EXPECT_FALSE(receiving);
    EXPECT_EQ(receiving.status(), channel_status::closed);
}

// Both sides of a rendezvous wait for several things. Nobody meets himself.
TEST(ChannelInWaitAny, TwoWaitsMeet) {
    constexpr int rounds = 2'000;
    channel<int> a(0);
    channel<int> b(0);
    long sent[2]{};
    long got[2]{};
    thread_group threads;
    threads.start_many(2, "peer", [&](int i) {
        channel<int>& mine = i == 0 ? a : b;
        channel<int>& other = i == 0 ? b : a;
        for (int n = 0; n != rounds; ++n) {
            int item = n + 1;
            auto sending = mine.sending(item);
            auto own = mine.receiving();
            auto receiving = other.receiving();
            const auto how = n % 2 == 0 ? wait_any({.spin = spin_policy::none()}, sending, own, receiving)
                                        : wait_any(sending, receiving, own);
            if (how.index == 0) {
                sent[i] += item;
            } else {
                ASSERT_TRUE(receiving);
                got[i] += *receiving;
            }
        }
    });
    threads.join();
    EXPECT_EQ(sent[0], got[1]);
    EXPECT_EQ(sent[1], got[0]);
    EXPECT_GT(sent[0] + sent[1], 0);
}

TEST(ChannelInWaitAny, MayBeNamedTwice) {
    channel<int> numbers(0);
    thread_group threads;
    threads.start([&] {
        auto receiving = numbers.receiving();
        for (int i = 1; i != 3; ++i) {
            EXPECT_LT(wait_any({.spin = spin_policy::none()}, receiving, receiving).index, 2u);
            EXPECT_EQ(*receiving, i);
        }
        EXPECT_EQ(wait_any({.until = 1ms}, receiving, receiving).status, wait_status::timed_out);
    });
    EXPECT_EQ(numbers.send(1), channel_status::done);
    EXPECT_EQ(numbers.send(2), channel_status::done);
    threads.join();
    EXPECT_EQ(numbers.try_send(3), channel_status::not_ready);
}

#if TOCSIN_ON_POSIX
TEST(ChannelInWaitAny, BesideATimerAndADescriptor) {
    channel<int> numbers(1);
    auto receiving = numbers.receiving();
    auto_reset_event event;
    const tocsin::pollable watched(event);
    const auto readable = tocsin::readable(watched.descriptor());
    EXPECT_EQ(wait_any(tocsin::after(2ms), readable, receiving).index, 0u);
    thread_group threads;
    threads.start([&] {
        auto own = numbers.receiving();
        EXPECT_EQ(wait_any(tocsin::after(1h), readable, own).index, 2u);
        EXPECT_EQ(*own, 4);
    });
    EXPECT_EQ(numbers.send(4), channel_status::done);
    threads.join();
    (void)numbers.send(5);
    EXPECT_EQ(wait_any(readable, receiving).index, 1u);
    EXPECT_EQ(*receiving, 5);
}

#if defined(__cpp_exceptions)
TEST(ChannelInAWaitSet, IsRefused) {
    channel<int> numbers(1);
    auto receiving = numbers.receiving();
    tocsin::wait_set set;
    EXPECT_THROW(set.add(receiving, 1), std::invalid_argument);
}
#endif
#endif

#if defined(__cpp_exceptions)
TEST(ChannelInWaitAll, IsRefused) {
    channel<int> numbers(1);
    (void)numbers.send(1);
    auto receiving = numbers.receiving();
    EXPECT_THROW((void)tocsin::wait_all(tocsin::source(receiving)), std::invalid_argument);
    EXPECT_EQ(numbers.size(), 1u);
}
#endif

// ---- coroutines ---------------------------------------------------------------------------------

task receive_two(channel<int>& from, int& sum) {
    auto next = from.receiving();
    for (int i = 0; i != 2; ++i) {
        co_await tocsin::async_wait(next);
        sum += *next;
    }
}

TEST(ChannelInACoroutine, ASendResumesTheReceiver) {
    for (const std::size_t capacity : {0u, 1u}) {
        channel<int> numbers(capacity);
        int sum = 0;
        const task receiving = receive_two(numbers, sum);
        EXPECT_EQ(numbers.send(1), channel_status::done);
        EXPECT_EQ(sum, 1);
        EXPECT_EQ(numbers.send(2), channel_status::done);
        EXPECT_EQ(sum, 3);
        EXPECT_TRUE(receiving.done());
        EXPECT_EQ(numbers.try_send(3), capacity == 0 ? channel_status::not_ready : channel_status::done);
    }
}

task send_or_stop(channel<boxed>& to, boxed item, auto_reset_event& stop, std::optional<std::size_t>& index) {
    auto sending = to.sending(item);
    index = (co_await tocsin::async_wait_any(sending, stop)).index;
    if (*index == 0) {
        EXPECT_EQ(item, nullptr);
    }
}

TEST(ChannelInACoroutine, AReceiveResumesTheSender) {
    channel<boxed> boxes(0);
    auto_reset_event stop;
    std::optional<std::size_t> first;
    std::optional<std::size_t> second;
    const task one = send_or_stop(boxes, box(1), stop, first);
    const task other = send_or_stop(boxes, box(2), stop, second);
    EXPECT_EQ(**boxes.receive(), 1);
    EXPECT_EQ(first, 0u);
    EXPECT_FALSE(second);
    stop.set();
    EXPECT_EQ(second, 1u);
    EXPECT_EQ(boxes.try_receive().status(), channel_status::not_ready);
}

TEST(ChannelInACoroutine, TwoCoroutinesMeet) {
    channel<boxed> boxes(0);
    auto_reset_event stop;
    std::optional<std::size_t> sent;
    const task sender = send_or_stop(boxes, box(5), stop, sent);
    int got = 0;
    const task receiver = [](channel<boxed>& from, auto_reset_event& other, int& into) -> task {
        auto receiving = from.receiving();
        if ((co_await tocsin::async_wait_any(other, receiving)).index == 1) into = **receiving;
    }(boxes, stop, got);
    EXPECT_EQ(got, 5);
    EXPECT_EQ(sent, 0u);
}

TEST(ChannelInACoroutine, ADestroyedWaitTakesNothing) {
    channel<int> numbers(0);
    int sum = 0;
    {
        const task gone = receive_two(numbers, sum);
    }
    EXPECT_EQ(numbers.try_send(1), channel_status::not_ready);
}

// A list leaves out a channel that is closed and empty: its receive would be ready again and again.
TEST(ChannelSource, ASourceThatIsNeverReadyStandsForAClosedChannel) {
    tocsin::channel<int> a(1);
    tocsin::channel<int> b(1);
    a.close();
    ASSERT_EQ(b.try_send(5), channel_status::done);
    auto next_a = a.receiving();
    auto next_b = b.receiving();
    const auto wait = [&](bool a_open) {
        return tocsin::wait_any({.until = std::chrono::seconds(0)},
                                a_open ? tocsin::source(next_a) : tocsin::never_ready(),
                                tocsin::source(next_b));
    };
    EXPECT_EQ(wait(true).index, 0u) << "closed, so ready";
    EXPECT_EQ(wait(false).index, 1u);
    EXPECT_EQ(wait(false).status, tocsin::wait_status::timed_out);
}

}  // namespace
