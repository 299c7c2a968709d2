// SPDX-License-Identifier: Apache-2.0
// An event as a descriptor for someone else's loop: what the header promises.
#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::pollable;

bool is_readable(const pollable& watched, int milliseconds = 0) {
    pollfd polled{watched.descriptor(), POLLIN, 0};
    return poll(&polled, 1, milliseconds) == 1;
}

TEST(Pollable, IsReadableWhenTheEventIsSet) {
    auto_reset_event event;
    pollable watched(event);
    EXPECT_FALSE(is_readable(watched));
    EXPECT_FALSE(watched.try_wait());
    for (int round = 0; round != 3; ++round) {
        event.set();
        EXPECT_TRUE(is_readable(watched));
        EXPECT_TRUE(watched.try_wait());
        EXPECT_FALSE(watched.try_wait());
        EXPECT_FALSE(is_readable(watched));
    }
}

TEST(Pollable, IsReadableAtOnceIfItWasSetBefore) {
    auto_reset_event event(true);
    pollable watched(event);
    EXPECT_TRUE(is_readable(watched));
    EXPECT_TRUE(watched.try_wait());
}

TEST(Pollable, AManualEventStaysReadableUntilItIsReset) {
    manual_reset_event gate;
    pollable watched(gate);
    gate.set();
    EXPECT_TRUE(watched.try_wait());
    EXPECT_TRUE(watched.try_wait());
    EXPECT_TRUE(is_readable(watched));
    gate.reset();
    EXPECT_FALSE(watched.try_wait());
    EXPECT_FALSE(is_readable(watched));
    gate.set();
    EXPECT_TRUE(is_readable(watched));
}

TEST(Pollable, ManySetsAreOne) {
    auto_reset_event event;
    pollable watched(event);
    for (int i = 0; i != 1000; ++i) event.set();
    EXPECT_TRUE(watched.try_wait());
    EXPECT_FALSE(watched.try_wait());
    EXPECT_FALSE(is_readable(watched));
}

TEST(Pollable, KeepsNobodyFromWaiting) {
    auto_reset_event event;
    pollable watched(event);
    thread_group other;
    other.start([&] { event.wait(tocsin::spin_policy::none()); });
    until_parked(&event, 1);
    event.set();
    other.join();
    EXPECT_FALSE(watched.try_wait()) << "another thread took it";
    EXPECT_FALSE(is_readable(watched));
    event.set();
    EXPECT_TRUE(is_readable(watched));
    EXPECT_EQ(tocsin::wait_any(event).index, 0u);
}

TEST(Pollable, IsReadableAfterASetIntoAList) {
    auto_reset_event event;
    auto watched = std::make_unique<pollable>(event);
    tocsin::wake_list freed;
    event.set(freed);
    EXPECT_TRUE(freed.empty()) << "a pollable is no wait";
    EXPECT_TRUE(is_readable(*watched));
    watched.reset();
}

TEST(Pollable, SeveralViewsAndASetOfOneEvent) {
    auto_reset_event event;
    pollable first(event);
    pollable second(event);
    tocsin::wait_set set;
    set.add(event, 1);
    event.set();
    EXPECT_TRUE(is_readable(first) && is_readable(second));
    EXPECT_TRUE(second.try_wait());
    EXPECT_FALSE(first.try_wait());
    tocsin::ready_item item;
    EXPECT_EQ(set.wait({.until = 0ns}, {&item, 1}).count, 0u);
    event.set();
    EXPECT_TRUE(is_readable(first));
    EXPECT_EQ(set.wait({.until = 0ns}, {&item, 1}).count, 1u);
}

TEST(Pollable, ItsEventMayBeDestroyedAfterIt) {
    auto event = std::make_unique<auto_reset_event>();
    auto watched = std::make_unique<pollable>(*event);
    event->set();
    watched.reset();
    EXPECT_TRUE(event->try_wait());
    event.reset();
}

TEST(Pollable, WakesAThreadThatPolls) {
    auto_reset_event event;
    pollable watched(event);
    thread_group threads;
    threads.start([&] {
        EXPECT_TRUE(is_readable(watched, -1));
        EXPECT_TRUE(watched.try_wait());
    });
    threads.until_asleep(0);
    event.set();
}

TEST(Pollable, ALatchIsReadableFromItsLastCountOn) {
    tocsin::latch done(2);
    pollable watched(done);
    done.count_down();
    EXPECT_FALSE(is_readable(watched));
    EXPECT_FALSE(watched.try_wait());
    done.count_down();
    EXPECT_TRUE(is_readable(watched));
    EXPECT_TRUE(watched.try_wait());
    EXPECT_TRUE(watched.try_wait());
}

TEST(Pollable, OnlyEventsCanBeLookedAt) { EXPECT_THROW(pollable(tocsin::after(1s)), std::invalid_argument); }

#if TOCSIN_ON_POSIX
TEST(Pollable, SaysWhenThereIsNoDescriptorLeft) {
    EXPECT_EQ(support::ending_of_child([] {
                  rlimit usual;
                  getrlimit(RLIMIT_NOFILE, &usual);
                  const rlimit none{0, usual.rlim_max};
                  setrlimit(RLIMIT_NOFILE, &none);
                  auto_reset_event event;
                  try {
                      const pollable watched(event);
                  } catch (const std::system_error& error) {
                      setrlimit(RLIMIT_NOFILE, &usual);
                      event.set();
                      return error.code().value() == EMFILE && event.try_wait() ? 0 : 1;
                  }
                  return 2;
              }),
              "");
}

TEST(Pollable, ClosesAllThatItOpened) {
    const auto open_descriptors = [] {
        int count = 0;
        for (int each = 0; each != 1024; ++each) count += fcntl(each, F_GETFD) >= 0 ? 1 : 0;
        return count;
    };
    auto_reset_event event;
    const int before = open_descriptors();
    {
        const pollable watched(event);
        const pollable another(event);
        EXPECT_GE(open_descriptors(), before + 2);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Pollable, AForkedChildMayDestroyIt) {
    auto_reset_event event;
    auto watched = std::make_unique<pollable>(event);
    EXPECT_EQ(support::ending_of_child([&] {
                  watched.reset();
                  event.set();
                  return event.try_wait() ? 0 : 1;
              }),
              "");
    event.set();
    EXPECT_TRUE(is_readable(*watched));
}

TEST(Pollable, OnlyTheFirstSetMakesASystemCall) {
    const auto calls = support::system_calls_of([] {
        auto_reset_event event;
        const pollable watched(event);
        event.set();
        event.set();
        (void)event.try_wait();
        event.set();
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.count(SYS_write), 1u);
}
#endif

}  // namespace
