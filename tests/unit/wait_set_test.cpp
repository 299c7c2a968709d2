// SPDX-License-Identifier: Apache-2.0
// What the header of wait_set promises. Its members are registered once, and threads wait on it often.
#include "allocations.hpp"
#include "child.hpp"
#include "facts.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

// The tags that are ready now, sorted.
std::vector<std::uint64_t> ready_in(wait_set& set, std::size_t max = 64) {
    std::vector<ready_item> items(max);
    const auto found = set.wait({.until = 0ns}, items);
    std::vector<std::uint64_t> tags;
    for (std::size_t i = 0; i != found.count; ++i) tags.push_back(items[i].tag);
    std::ranges::sort(tags);
    EXPECT_EQ(found.status, tags.empty() ? wait_status::timed_out : wait_status::signaled);
    return tags;
}

using tags = std::vector<std::uint64_t>;

// Waits in a thread of its own until something is ready, and keeps the first item.
struct waiting_thread {
    explicit waiting_thread(wait_set& set) {
        threads.start("waits in the set", [&] {
            ready_item items[8];
            result = set.wait(items);
            first = items[0];
        });
        threads.until_asleep(0);
    }

    tocsin::set_result result{wait_status::timed_out};
    ready_item first;
    thread_group threads;
};

TEST(WaitSet, ReportsAllThatIsReady) {
    auto_reset_event events[3];
    wait_set set;
    for (std::size_t i = 0; i != 3; ++i) set.add(events[i], i);
    EXPECT_EQ(ready_in(set), tags{});
    events[0].set();
    events[2].set();
    EXPECT_EQ(ready_in(set), (tags{0, 2}));
    EXPECT_EQ(ready_in(set), tags{}) << "auto-reset events are consumed";
    EXPECT_FALSE(events[0].is_set());
}

TEST(WaitSet, ReportsAManualEventAsLongAsItIsSet) {
    manual_reset_event gate;
    wait_set set;
    set.add(gate, 7);
    gate.set();
    EXPECT_EQ(ready_in(set), tags{7});
    EXPECT_EQ(ready_in(set), tags{7});
    gate.reset();
    EXPECT_EQ(ready_in(set), tags{});
    gate.set();
    EXPECT_EQ(ready_in(set), tags{7});
}

TEST(WaitSet, NextWaitsReportWhatDidNotFitAndAllGetTheirTurn) {
    manual_reset_event gates[5];
    wait_set set;
    for (std::size_t i = 0; i != 5; ++i) {
        gates[i].set();
        set.add(gates[i], i);
    }
    EXPECT_EQ(ready_in(set, 2), (tags{0, 1}));
    EXPECT_EQ(ready_in(set, 2), (tags{2, 3}));
    EXPECT_EQ(ready_in(set, 2), (tags{0, 4}));
}

TEST(WaitSet, ASetWakesTheWait) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 5);
    waiting_thread waits(set);
    event.set();
    waits.threads.join();
    EXPECT_EQ(waits.result, (tocsin::set_result{wait_status::signaled, 1}));
    EXPECT_EQ(waits.first.tag, 5u);
    EXPECT_FALSE(event.is_set()) << "consumed";
}

TEST(WaitSet, SetThenResetReleasesTheThreadThatWaits) {
    manual_reset_event gate;
    wait_set set;
    set.add(gate, 1);
    waiting_thread waits(set);
    gate.set();
    gate.reset();
    waits.threads.join();
    EXPECT_EQ(waits.first.tag, 1u);
    EXPECT_EQ(ready_in(set), tags{});
}

TEST(WaitSet, ReportsAManualEventOnceInAWaitThatItWakes) {
    manual_reset_event gate;
    wait_set set;
    set.add(gate, 1);
    waiting_thread waits(set);
    gate.set();
    waits.threads.join();
    EXPECT_EQ(waits.result.count, 1u);
    EXPECT_EQ(ready_in(set), tags{1});
}

TEST(WaitSet, TheSetAndAnotherWaiterTakeTurns) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    waiting_thread in_set(set);
    thread_group other;
    other.start("waits for the event", [&] { event.wait(tocsin::spin_policy::none()); });
    until_parked(&event, 1);
    event.set();
    in_set.threads.join();
    EXPECT_FALSE(other.finished(0)) << "the set was queued first";
    // The set waits again, but is now behind.
    waiting_thread again(set);
    event.set();
    other.join();
    EXPECT_FALSE(again.threads.finished(0));
    event.set();
}

TEST(WaitSet, WhileNoThreadWaitsInItTheEventGoesToAnotherWaiter) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    thread_group other;
    other.start([&] { event.wait(tocsin::spin_policy::none()); });
    until_parked(&event, 1);
    event.set();
    other.join();
    EXPECT_EQ(ready_in(set), tags{});
}

TEST(WaitSet, WorksBesideOtherWaitsForTheSameEvents) {
    auto_reset_event a;
    auto_reset_event b;
    wait_set set;
    set.add(a, 1);
    set.add(b, 2);
    thread_group other;
    other.start([&] { tocsin::wait_all(a, b); });
    until_parked(&b, 1);
    a.set();
    b.set();
    other.join();
    EXPECT_EQ(ready_in(set), tags{}) << "the wait for all took both";
    a.set();
    EXPECT_EQ(tocsin::wait_any(b, a).index, 1u);
    EXPECT_EQ(ready_in(set), tags{});
}

TEST(WaitSet, AnEventInTwoSetsGoesToOneOfThem) {
    auto_reset_event event;
    manual_reset_event gate;
    wait_set sets[2];
    for (auto& each : sets) each.add(event, 1);
    event.set();
    EXPECT_EQ(ready_in(sets[0]).size() + ready_in(sets[1]).size(), 1u);
    for (auto& each : sets) each.add(gate, 2);
    gate.set();
    EXPECT_EQ(ready_in(sets[0]), tags{2});
    EXPECT_EQ(ready_in(sets[1]), tags{2});
}

TEST(WaitSet, WhatIsReadyWhenItIsAddedWakesTheWait) {
    auto_reset_event idle;
    auto_reset_event set_before(true);
    wait_set set;
    set.add(idle, 1);
    waiting_thread waits(set);
    set.add(set_before, 2);
    waits.threads.join();
    EXPECT_EQ(waits.first.tag, 2u);
}

TEST(WaitSet, ARemovedEventIsFree) {
    wait_set set;
    auto event = std::make_unique<auto_reset_event>();
    set.add(*event, 1);
    event->set();
    EXPECT_TRUE(set.remove(*event));
    EXPECT_FALSE(set.remove(*event));
    EXPECT_TRUE(event->is_set()) << "no thread has taken it";
    event->reset();
    event.reset();
    EXPECT_EQ(ready_in(set), tags{});
}

TEST(WaitSet, RemovesWhileAThreadWaits) {
    auto_reset_event stays;
    wait_set set;
    set.add(stays, 1);
    std::deque<auto_reset_event> others(100);
    for (auto& each : others) set.add(each, 2);
    waiting_thread waits(set);
    for (auto& each : others) EXPECT_TRUE(set.remove(each));
    others.clear();
    stays.set();
    waits.threads.join();
    EXPECT_EQ(waits.first.tag, 1u);
}

TEST(WaitSet, IsDestroyedWithItsMembers) {
    auto_reset_event event;
    {
        wait_set set;
        set.add(event, 1);
    }
    event.set();
    EXPECT_TRUE(event.try_wait());
}

TEST(WaitSet, ChangesATag) {
    auto_reset_event event(true);
    wait_set set;
    set.add(event, 1);
    set.change(event, 2);
    EXPECT_EQ(ready_in(set), tags{2});
}

TEST(WaitSet, TimesOutAndIsStopped) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    ready_item items[2];
    EXPECT_EQ(set.wait({.until = 5ms}, items).status, wait_status::timed_out);
    std::stop_source stop;
    thread_group threads;
    threads.start("waits", [&] {
        ready_item found[2];
        EXPECT_EQ(set.wait({.stop = stop.get_token()}, found).status, wait_status::stopped);
    });
    threads.until_asleep(0);
    stop.request_stop();
    threads.join();
    event.set();
    EXPECT_EQ(set.wait({.stop = stop.get_token()}, items).count, 1u) << "a set event counts before a stop";
    EXPECT_EQ(set.wait({.stop = stop.get_token()}, items).status, wait_status::stopped);
}

TEST(WaitSet, DescriptorsWorkBesideEvents) {
    pipe_ends pipes[2];
    auto_reset_event event;
    wait_set set;
    set.add(readable(pipes[0].out()), 10);
    set.add(readable(pipes[1].out()), 11);
    set.add(event, 12);
    EXPECT_EQ(ready_in(set), tags{});
    pipes[1].put();
    EXPECT_EQ(ready_in(set), tags{11});
    event.set();
    EXPECT_EQ(ready_in(set), (tags{11, 12})) << "a descriptor stays ready";
    pipes[1].get();
    set.add(tocsin::writable(pipes[0].in()), 13);
    EXPECT_EQ(ready_in(set), tags{13});
    EXPECT_TRUE(set.remove(readable(pipes[0].in())));
    EXPECT_FALSE(set.remove(readable(pipes[0].in())));
    EXPECT_EQ(ready_in(set), tags{});
}

TEST(WaitSet, ADescriptorThatIsReadyIsReportedBeforeAStopOrADeadlineCounts) {
    pipe_ends pipe;
    pipe.put();
    wait_set set;
    set.add(readable(pipe.out()), 1);
    std::stop_source stop;
    stop.request_stop();
    ready_item item;
    EXPECT_EQ(set.wait({.stop = stop.get_token()}, {&item, 1}).count, 1u);
    EXPECT_EQ(set.wait({.until = 0s}, {&item, 1}).count, 1u);
    pipe.get();
    EXPECT_EQ(set.wait({.stop = stop.get_token()}, {&item, 1}).status, wait_status::stopped);
}

TEST(WaitSet, EventsAndDescriptorsTakeTurnsIfOnlyOneFits) {
    pipe_ends pipe;
    pipe.put();
    manual_reset_event gate(true);
    wait_set set;
    set.add(readable(pipe.out()), 1);
    set.add(gate, 2);
    bool seen[3] = {};
    for (int i = 0; i != 4; ++i) seen[ready_in(set, 1).at(0)] = true;
    EXPECT_TRUE(seen[1] && seen[2]);
}

// After events have filled the result, the next wait begins with the descriptors. It does not look at the descriptors
// again after the events.
TEST(WaitSet, ReportsADescriptorOnceInAWaitThatBeginsWithIt) {
    pipe_ends pipe;
    pipe.put();
    auto_reset_event event;
    wait_set set;
    set.add(event, 0);
    set.add(readable(pipe.out()), 1);
    event.set();
    EXPECT_EQ(ready_in(set, 1), tags{0});
    event.set();
    EXPECT_EQ(ready_in(set), (tags{0, 1}));
}

// wait_set.hpp: of eight waits in a row that find events, one looks at the descriptors.
TEST(WaitSet, OneOfEightWaitsReportsADescriptorHoweverBusyTheEventsAre) {
    pipe_ends pipe;
    pipe.put();
    manual_reset_event gates[3];
    wait_set set;
    set.add(readable(pipe.out()), 0);
    for (std::size_t i = 0; i != 3; ++i) {
        gates[i].set();
        set.add(gates[i], 1 + i);
    }
    for (const std::size_t room : {1u, 2u, 3u, 4u, 64u}) {
        int since_descriptor = 0;
        int since_gate = 0;
        for (int i = 0; i != 200; ++i) {
            std::vector<ready_item> items(room);
            const auto found = set.wait(items);
            ASSERT_EQ(found.status, wait_status::signaled);
            ++since_descriptor;
            ++since_gate;
            for (std::size_t k = 0; k != found.count; ++k)
                (items[k].tag == 0 ? since_descriptor : since_gate) = 0;
            ASSERT_LT(since_descriptor, 8) << "room for " << room;
            ASSERT_LT(since_gate, 2) << "room for " << room;
        }
    }
}

// A wait that asks what is ready now is told of everything.
TEST(WaitSet, AWaitThatIsOverAlreadyReportsDescriptorsBesideEvents) {
    pipe_ends pipe;
    pipe.put();
    manual_reset_event gate(true);
    wait_set set;
    set.add(readable(pipe.out()), 1);
    set.add(gate, 2);
    for (int i = 0; i != 20; ++i) EXPECT_EQ(ready_in(set), (tags{1, 2}));
}

TEST(WaitSet, EitherKindWakesAThreadThatSleepsInThePoller) {
    for (const bool by_event : {true, false}) {
        pipe_ends pipe;
        auto_reset_event event;
        wait_set set;
        set.add(readable(pipe.out()), 1);
        set.add(event, 2);
        waiting_thread waits(set);
        by_event ? event.set() : pipe.put();
        waits.threads.join();
        EXPECT_EQ(waits.first.tag, by_event ? 2u : 1u);
        EXPECT_EQ(waits.first.found, by_event ? tocsin::readiness::none : tocsin::readiness::readable);
    }
}

TEST(WaitSet, TheFirstDescriptorReachesAThreadThatSleepsWithoutAny) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    pipe_ends pipe;
    waiting_thread waits(set);
    set.add(readable(pipe.out()), 2);
    pipe.put();
    waits.threads.join();
    EXPECT_EQ(waits.first.tag, 2u);
}

TEST(WaitSet, TimesOutWithDescriptors) {
    pipe_ends pipe;
    wait_set set;
    set.add(readable(pipe.out()), 2);
    ready_item items[2];
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(set.wait({.until = 5ms}, items).status, wait_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
}

template <class Throwing>
int error_of(Throwing call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

#if TOCSIN_ON_POSIX
auto_reset_event set_by_handler;

TEST(WaitSet, ASignalHandlerThatSetsEndsAWaitWithDescriptors) {
    const support::handled_signal handled(SIGUSR1, [](int) { set_by_handler.set(); });
    constexpr int rounds = 200;
    pipe_ends idle;
    wait_set set;
    set.add(set_by_handler, 1);
    set.add(readable(idle.out()), 2);
    std::atomic<int> released{0};
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] {
        for (int i = 0; i != rounds; ++i) {
            std::array<ready_item, 4> items;
            const auto found = set.wait(items);
            EXPECT_TRUE(found.count == 1 && items[0].tag == 1);
            released.fetch_add(1);
        }
    });
    (void)threads.id(waiter);
    for (int i = 0; i != rounds; ++i) {
        pthread_kill(threads.handle(waiter), SIGUSR1);
        support::until("released", [&] { return released.load() > i; });
    }
    threads.join();
}
#endif

TEST(WaitSet, RefusesWhatCannotBeAMember) {
    auto_reset_event event;
    pipe_ends pipe;
    wait_set set;
    ready_item item;
    EXPECT_THROW(set.add(tocsin::after(1s), 1), std::invalid_argument);
    EXPECT_THROW(set.add(event, ~std::uint64_t{0}), std::invalid_argument);
    EXPECT_THROW(set.wait(std::span<ready_item>{}), std::invalid_argument);
    set.add(event, 1);
    EXPECT_EQ(error_of([&] { set.add(event, 2); }), EEXIST);
    set.add(readable(pipe.out()), 3);
    const int closed = dup(pipe.out());
    close(closed);
    EXPECT_EQ(error_of([&] { set.add(readable(closed), 2); }), EBADF);
    EXPECT_EQ(error_of([&] { set.add(readable(pipe.out()), 3); }), EEXIST);
    EXPECT_EQ(error_of([&] { set.change(readable(pipe.in()), 3); }), ENOENT);
    event.set();
    EXPECT_EQ(set.wait({&item, 1}).count, 1u) << "the refused calls changed nothing";
}

#if TOCSIN_ON_POSIX
TEST(WaitSet, SaysWhenThereIsNoDescriptorLeftAndIsUnchanged) {
    EXPECT_EQ(support::ending_of_child([] {
                  pipe_ends pipe;
                  auto_reset_event event;
                  wait_set set;
                  set.add(event, 1);
                  rlimit usual;
                  getrlimit(RLIMIT_NOFILE, &usual);
                  const rlimit none{0, usual.rlim_max};
                  setrlimit(RLIMIT_NOFILE, &none);
                  int error = 0;
                  try {
                      set.add(readable(pipe.out()), 2);
                  } catch (const std::system_error& thrown) {
                      setrlimit(RLIMIT_NOFILE, &usual);
                      error = thrown.code().value();
                  }
                  event.set();
                  const bool as_it_was = ready_in(set) == tags{1};
                  set.add(readable(pipe.out()), 2);
                  return error == EMFILE && as_it_was ? 0 : 1;
              }),
              "");
}
#endif

TEST(WaitSet, OneThreadWaitsAtATime) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    waiting_thread waits(set);
    ready_item item;
    EXPECT_THROW((void)set.wait({.until = 0ns}, {&item, 1}), std::logic_error);
    event.set();
}

#if TOCSIN_ON_POSIX
TEST(WaitSet, AForkedChildMayDestroyIt) {
    auto event = std::make_unique<auto_reset_event>();
    pipe_ends pipe;
    auto set = std::make_unique<wait_set>();
    set->add(*event, 1);
    set->add(readable(pipe.out()), 2);
    EXPECT_EQ(support::ending_of_child([&] {
                  set.reset();
                  event->set();
                  return event->try_wait() ? 0 : 1;
              }),
              "");
    event->set();
    EXPECT_EQ(ready_in(*set), tags{1}) << "the parent's set still works";
}
#endif

#if TOCSIN_ON_POSIX
TEST(WaitSet, WithoutDescriptorsItMakesNoSystemCallButToSleepAndWake) {
    const auto calls = support::system_calls_of([] {
        std::deque<auto_reset_event> events(100);
        auto_reset_event event;
        wait_set set;
        for (auto& each : events) set.add(each, 1);
        set.add(event, 2);
        ready_item items[4];
        for (int i = 0; i != 10; ++i) {
            event.set();
            if (set.wait(items).count != 1) _exit(1);
        }
        for (auto& each : events) set.remove(each);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(calls.count(SYS_futex), 0u);
    EXPECT_EQ(calls.count(SYS_epoll_pwait), 0u);
    EXPECT_EQ(calls.count(SYS_read) + calls.count(SYS_write), 0u);
}
#endif

#if TOCSIN_ON_POSIX
// Linux: calls that look at descriptors.
std::size_t polls_among(const support::system_calls& calls) {
    std::size_t found = calls.count(SYS_epoll_pwait);
#if defined(SYS_poll)
    found += calls.count(SYS_poll);
#endif
#if defined(SYS_epoll_wait)
    found += calls.count(SYS_epoll_wait);
#endif
#if defined(SYS_epoll_pwait2)
    found += calls.count(SYS_epoll_pwait2);
#endif
    return found;
}

// What a child process needs that is traced: a fork leaves a set to the parent.
struct set_with_a_descriptor {
    set_with_a_descriptor() {
        set.add(event, 1);
        set.add(readable(idle.out()), 2);
    }
    pipe_ends idle;
    auto_reset_event event;
    wait_set set;
};

TEST(WaitSet, OneOfEightWaitsThatFindAnEventLooksAtDescriptors) {
    for (const bool removed : {false, true}) {
        std::unique_ptr<set_with_a_descriptor> it;
        const auto calls = support::system_calls_of(
            [&] {
                it = std::make_unique<set_with_a_descriptor>();
                if (removed) it->set.remove(readable(it->idle.out()));
            },
            [&] {
                ready_item items[4];
                for (int i = 0; i != 80; ++i) {
                    it->event.set();
                    if (it->set.wait(items).count != 1) _exit(1);
                }
            });
        REQUIRE_KNOWN_CALLS(calls);
        EXPECT_EQ(calls.exit_code, 0);
        EXPECT_EQ(polls_among(calls), removed ? 0u : 10u) << testing::PrintToString(calls);
        EXPECT_EQ(calls.numbers.size() - calls.looks_at_descriptors(), polls_among(calls))
            << testing::PrintToString(calls);
    }
}

TEST(WaitSet, AWaitThatSleepsLooksAtDescriptorsOnce) {
    std::unique_ptr<set_with_a_descriptor> it;
    const auto calls = support::system_calls_of(
        [&] { it = std::make_unique<set_with_a_descriptor>(); },
        [&] {
            ready_item items[4];
            for (int i = 0; i != 20; ++i) {
                const auto found = it->set.wait({.until = 1ms, .spin = tocsin::spin_policy::none()}, items);
                if (found.count != 0) _exit(1);
            }
        });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(polls_among(calls), 20u) << testing::PrintToString(calls);
}
#endif

// How much processor time a wait of 100 ms that times out uses.
std::chrono::nanoseconds burnt_by_a_timeout(wait_set& set, tocsin::spin_policy policy) {
    std::chrono::nanoseconds burnt{};
    thread_group threads;
    threads.start("waiter", [&] {
        const auto before = support::cpu_time_of(pthread_self());
        ready_item item;
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(set.wait({.until = 100ms, .spin = policy}, {&item, 1}).status, wait_status::timed_out);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
        burnt = support::cpu_time_of(pthread_self()) - before;
    });
    threads.join();
    return burnt;
}

TEST(WaitSet, SpinsNoLongerThanThePolicySays) {
    pipe_ends idle;
    for (const bool with_descriptor : {false, true}) {
        auto_reset_event event;
        wait_set set;
        set.add(event, 1);
        if (with_descriptor) set.add(readable(idle.out()), 2);
        EXPECT_LT(burnt_by_a_timeout(set, tocsin::spin_policy::none()), 20ms);
        EXPECT_LT(burnt_by_a_timeout(set, tocsin::spin_policy()), 20ms);
        EXPECT_LT(burnt_by_a_timeout(set, tocsin::spin_policy::fixed(10ms)), 40ms);
    }
}

TEST(WaitSet, ReportsTheSameWhateverThePolicySays) {
    using tocsin::spin_policy;
    for (const auto& policy : {spin_policy(), spin_policy::none(), spin_policy::adaptive(50us),
                               spin_policy::fixed(1us), spin_policy::fixed(20ms)}) {
        pipe_ends idle;
        for (const bool with_descriptor : {false, true}) {
            auto_reset_event ping;
            auto_reset_event pong;
            wait_set set;
            set.add(ping, 1);
            if (with_descriptor) set.add(readable(idle.out()), 2);
            thread_group threads;
            threads.start("answers", [&] {
                for (int i = 0; i != 200; ++i) {
                    ready_item items[2];
                    const auto found = set.wait({.spin = policy}, items);
                    EXPECT_TRUE(found.count == 1 && items[0].tag == 1);
                    pong.set();
                }
            });
            for (int i = 0; i != 200; ++i) {
                ping.set();
                pong.wait();
            }
            threads.join();
            EXPECT_FALSE(ping.is_set());
        }
    }
}

// The machine is noisy, so this compares the least of many measurements, with a wide margin. A wait that looked at
// every idle member would cost hundreds of times as much.
TEST(WaitSet, AWaitCostsTheSameHoweverManyAreIdle) {
    const auto least = [](std::size_t idle) {
        std::deque<auto_reset_event> events(idle);
        auto_reset_event event;
        wait_set set;
        for (auto& each : events) set.add(each, 1);
        set.add(event, 2);
        ready_item items[4];
        auto best = std::chrono::nanoseconds::max();
        for (int i = 0; i != 2000; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            event.set();
            (void)set.wait(items);
            best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begin);
        }
        return best;
    };
    const auto few = least(1);
    const auto many = least(10'000);
    std::printf("1 idle member: %lld ns, 10,000: %lld ns\n", static_cast<long long>(few.count()),
                static_cast<long long>(many.count()));
    EXPECT_LT(many, few * 20);
}

// A tag may be a pointer.
TEST(WaitSetTags, MayBePointers) {
    struct connection {
        int number;
    };
    connection one{1};
    const connection other{2};
    auto_reset_event a(true);
    auto_reset_event b;
    tocsin::wait_timer timer;
    wait_set set;
    set.add(a, &one);
    set.add(b, 0);  // a number, not a null pointer
    set.add(timer, &one);
    set.change(timer, &other);
    timer.reset(std::chrono::nanoseconds(1));
    ready_item items[3];
    ASSERT_EQ(set.wait({.until = std::chrono::seconds(0)}, items).count, 2u);
    EXPECT_EQ(items[0].pointer<connection>(), &one);
    EXPECT_EQ(items[1].pointer<const connection>(), &other);
    set.change(b, &one);
    b.set();
    ASSERT_EQ(set.wait(items).count, 1u);
    EXPECT_EQ(items[0].pointer<connection>()->number, 1);
}

TEST(WaitSet, AnAddOfAnEventAllocatesOnce) {
    std::array<auto_reset_event, 8> events;
    wait_set set;
    set.add(events[0], 0);  // makes room for eight
    const long before = support::allocations();
    for (std::size_t i = 1; i != events.size(); ++i) set.add(events[i], i);
    EXPECT_EQ(support::allocations() - before, static_cast<long>(events.size()) - 1);
}

TEST(WaitSet, FindsEachOfManyMembers) {
    std::deque<auto_reset_event> events(1'000);
    wait_set set;
    for (std::size_t i = 0; i != events.size(); ++i) set.add(events[i], i);
    for (std::size_t i = 0; i != events.size(); ++i) EXPECT_THROW(set.add(events[i], i), std::system_error);
    for (std::size_t i = 0; i < events.size(); i += 2) EXPECT_TRUE(set.remove(events[i]));
    for (std::size_t i = 0; i != events.size(); ++i) EXPECT_EQ(set.remove(events[i]), i % 2 == 1);
    for (auto& each : events) set.add(each, 1);
    ready_item items[2];
    events[500].set();
    EXPECT_EQ(set.wait(items).count, 1u);
}

}  // namespace
