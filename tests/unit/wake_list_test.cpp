// SPDX-License-Identifier: Apache-2.0
// Waits that have ended and are released later, together: those of custom sources, and those of events.
#include "clocks.hpp"
#include "countdown.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

TEST(WakeList, IsMovedNotCopied) {
    static_assert(!std::is_copy_constructible_v<wake_list> && !std::is_copy_assignable_v<wake_list>);
    static_assert(std::is_nothrow_move_constructible_v<wake_list> &&
                  std::is_nothrow_move_assignable_v<wake_list>);
    wake_list nobody;
    EXPECT_TRUE(nobody.empty());
    nobody.wake();
    nobody.append(wake_list());
    nobody = wake_list();
    EXPECT_TRUE(nobody.empty());
}

// A loop that assigned each wake_list over the one before it released the last waiter only.
TEST(WakeListOfACustomSource, EveryTokenOfSeveralReachesAWaiter) {
    support::semaphore tokens;
    std::atomic<int> taken{0};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) { taken.fetch_add(wait_any(tokens).index == 0 ? 1 : 0); });
    support::until("all are listed", [&] { return tokens.enlisted() == 3; });
    tokens.give(5);
    threads.join();
    EXPECT_EQ(taken.load(), 3);
    EXPECT_TRUE(tokens.try_wait());
    EXPECT_TRUE(tokens.try_wait());
    EXPECT_FALSE(tokens.try_wait()) << "five given, three taken by waiters and two afterwards";
}

TEST(WakeListOfACustomSource, NotifiesNoMoreThanAsked) {
    support::semaphore tokens;
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) { (void)wait_any(tokens); });
    support::until("all are listed", [&] { return tokens.enlisted() == 3; });
    tokens.give(2);
    threads.until_finished(2);
    EXPECT_TRUE(tokens.is_waited_for());
    tokens.give(1);
    threads.join();
}

TEST(WakeListOfACustomSource, ListsOfSeveralSourcesAreReleasedTogether) {
    std::array<support::semaphore, 3> tokens;
    std::atomic<int> ended{0};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int i) {
        (void)wait_any(tokens[static_cast<std::size_t>(i)]);
        ended.fetch_add(1);
    });
    wake_list all;
    for (auto& each : tokens) {
        support::until("it is listed", [&] { return each.enlisted() == 1; });
        wake_list one = each.notify();
        all.append(std::move(one));
        EXPECT_TRUE(one.empty());  // NOLINT(bugprone-use-after-move): it is empty then
    }
    EXPECT_EQ(ended.load(), 0);
    wake_list moved(std::move(all));
    EXPECT_TRUE(all.empty());  // NOLINT(bugprone-use-after-move)
    wake_list assigned;
    assigned = std::move(moved);
    assigned.wake();
    EXPECT_TRUE(assigned.empty());
    threads.join();
}

template <class Event>
class SetIntoAList : public testing::Test {};
using both_events = testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(SetIntoAList, both_events);

TYPED_TEST(SetIntoAList, SetsAnEventForWhichNobodyWaits) {
    TypeParam event;
    wake_list freed;
    event.set(freed);
    EXPECT_TRUE(freed.empty());
    EXPECT_TRUE(event.try_wait());
}

TYPED_TEST(SetIntoAList, ReleasesNobodyBeforeTheWake) {
    TypeParam event;
    std::atomic<bool> passed{false};
    thread_group threads;
    threads.start("waiter", [&] {
        event.wait();
        passed.store(true);
    });
    until_parked(&event, 1);
    support::until_sound_asleep(threads.id(0));
    wake_list freed;
    event.set(freed);
    EXPECT_FALSE(freed.empty());
    EXPECT_EQ(tocsin::waiting_on(&event), 0u) << "the wait has ended, though its thread sleeps";
    EXPECT_EQ(event.is_set(), (std::is_same_v<TypeParam, manual_reset_event>));
    event.reset();  // takes nothing back
    support::until_sound_asleep(threads.id(0));
    EXPECT_FALSE(passed.load());
    freed.wake();
    EXPECT_TRUE(freed.empty());
    threads.join();
}

TYPED_TEST(SetIntoAList, ReleasesTheWaitersOfManyEventsInTheOrderOfTheSets) {
    constexpr std::size_t count = 20;
    std::array<TypeParam, count> events;
    thread_group threads;
    for (std::size_t i = 0; i != count; ++i) threads.start("waiter", [&, i] { events[i].wait(); });
    for (auto& each : events) until_parked(&each, 1);
    wake_list freed;
    for (auto& each : events) each.set(freed);
    freed.wake();
    threads.join();
}

TYPED_TEST(SetIntoAList, TheWaiterMayDestroyTheEvent) {
    for (int round = 0; round != support::rounds(200, 50); ++round) {
        auto event = std::make_unique<TypeParam>();
        thread_group threads;
        threads.start("waiter", [&] {
            event->wait();
            event.reset();
        });
        until_parked(event.get(), 1);
        wake_list freed;
        event->set(freed);
        freed.wake();
        threads.join();
    }
}

// What a timed wait has been given is not taken back because its thread is released late.
TYPED_TEST(SetIntoAList, ATimeoutBeforeTheWakeDoesNotEatTheSignal) {
    using support::hand_clock;
    hand_clock::set(0);
    TypeParam event;
    tocsin::wait_status ended{};
    thread_group threads;
    threads.start("waiter", [&] { ended = event.wait_until(hand_clock::time_point(1ms)); });
    until_parked(&event, 1);
    wake_list freed;
    event.set(freed);
    EXPECT_FALSE(freed.empty());
    hand_clock::set(1);
    support::until("the waiter has read the clock again", [] { return hand_clock::last_shown.load() == 1; });
    support::until_sound_asleep(threads.id(0));
    freed.wake();
    threads.join();
    EXPECT_EQ(ended, tocsin::wait_status::signaled);
}

TEST(SetOfAGateIntoAList, ReleasesAllWhoWaitedThoughItIsClosedAtOnce) {
    manual_reset_event gate;
    auto_reset_event token;
    thread_group threads;
    threads.start_many(12, "at the gate", [&](int) { gate.wait(); });
    threads.start_many(2, "for a token", [&](int) { token.wait(); });
    until_parked(&gate, 12);
    until_parked(&token, 2);
    wake_list freed;
    token.set(freed);
    gate.set(freed);
    gate.reset();
    token.set(freed);
    freed.wake();
    threads.join();
}

TEST(SetIntoAListOf, SeveralEventsOfOneWaitTakesOneOfThem) {
    auto_reset_event first;
    auto_reset_event second;
    std::size_t taken = 9;
    thread_group threads;
    threads.start("waiter", [&] { taken = wait_any(first, second).index; });
    until_parked(&first, 1);
    until_parked(&second, 1);
    wake_list freed;
    second.set(freed);
    first.set(freed);
    freed.wake();
    threads.join();
    EXPECT_EQ(taken, 1u);
    EXPECT_TRUE(first.try_wait());
    EXPECT_FALSE(second.try_wait());
}

TEST(SetIntoAListOf, EventsOfAWaitForAllReleasesIt) {
    auto_reset_event first;
    manual_reset_event second;
    thread_group threads;
    threads.start("waiter", [&] { wait_all(first, second); });
    until_parked(&first, 1);
    until_parked(&second, 1);
    wake_list freed;
    first.set(freed);
    second.set(freed);
    freed.wake();
    threads.join();
    EXPECT_FALSE(first.is_set());
}

support::task counts(auto_reset_event& event, std::vector<int>& order, int number) {
    co_await tocsin::async_wait(event);
    order.push_back(number);
}

TEST(SetIntoAListOf, EventsOfCoroutinesResumesThemInTheWake) {
    std::array<auto_reset_event, 6> events;
    std::vector<int> order;
    thread_group threads;
    threads.start("a thread among them", [&] { events[1].wait(); });
    until_parked(&events[1], 1);
    std::deque<support::task> tasks;
    for (const int number : {0, 2, 3, 4, 5}) {
        tasks.push_back(counts(events[static_cast<std::size_t>(number)], order, number));
    }
    wake_list freed;
    wake_list more;
    for (const std::size_t i : {0u, 1u, 2u}) events[i].set(freed);
    for (const std::size_t i : {3u, 4u, 5u}) events[i].set(more);
    freed.append(std::move(more));
    EXPECT_TRUE(order.empty());
    freed.wake();
    EXPECT_EQ(order, (std::vector{0, 2, 3, 4, 5}));
    threads.join();
}

TEST(SetIntoAListOf, ManyEventsMakesAFewSystemCalls) {
    constexpr std::size_t count = 24;
    static std::array<auto_reset_event, count> events;
    const auto calls = support::system_calls_of(
        [] {
            for (auto& each : events)
                std::thread([&each] { each.wait(tocsin::spin_policy::none()); }).detach();
            for (auto& each : events) until_parked(&each, 1);
            support::until("all sleep", [] { return !support::another_is_about_to_run(); });
        },
        [] {
            wake_list freed;
            for (auto& each : events) each.set(freed);
            freed.wake();
        });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_LE(calls.numbers.size(), 10u) << testing::PrintToString(calls);
}

#if TOCSIN_CHECKED
TEST(WakeListMisuse, DroppingOneIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto with_a_waiter = [](auto drop) {
        static auto_reset_event event;
        support::start_unjoined([] { event.wait(); });
        until_parked(&event, 1);
        wake_list freed;
        event.set(freed);
        drop(freed);
    };
    EXPECT_DEATH_IF_SUPPORTED(with_a_waiter([](wake_list& freed) { const wake_list gone(std::move(freed)); }),
                              "wake_list dropped");
    EXPECT_DEATH_IF_SUPPORTED(with_a_waiter([](wake_list& freed) { freed = wake_list(); }),
                              "wake_list dropped");
}
#else
TEST(WakeListMisuse, DroppingOneReleasesItsWaits) {
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    {
        wake_list freed;
        event.set(freed);
    }
    threads.join();
}
#endif

}  // namespace
