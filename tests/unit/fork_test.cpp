// SPDX-License-Identifier: Apache-2.0
// What a child process may use after fork, whatever the other threads of its parent were doing at that moment.
#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"
#include "working_event.hpp"
#include "working_family.hpp"

#include <tocsin/address.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using namespace support;
using namespace tocsin;

// ThreadSanitizer can't follow a child that starts threads when its parent had several.
constexpr bool threads_in_child = !support::thread_sanitizer;

constinit auto_reset_event made_before_the_fork;

TEST(Fork, TheChildUsesFreshEvents) {
    thread_group threads;
    auto_reset_event waited;
    threads.start_many(3, "waiter of the parent", [&](int) { waited.wait(); });
    until_parked(&waited, 3);
    EXPECT_EQ(support::ending_of_child([] {
                  manual_reset_event gate;
                  auto_reset_event token;
                  if (!everything_works_on(gate, threads_in_child)) return 1;
                  if (!everything_works_on(token, threads_in_child)) return 2;
                  if (!everything_works_on(made_before_the_fork, threads_in_child)) return 3;
                  return 0;
              }),
              "");
    for (int i = 0; i < 3; ++i) waited.set();
    threads.join();
}

// The child has the event, but none of the threads that waited for it.
template <class Event>
int use_an_event_that_had_waiters(Event& event) {
    event.set();
    if (!event.is_set()) return 1;
    if (!event.try_wait()) return 2;
    event.reset();
    if (event.is_set()) return 3;
    if (tocsin::waiting_on(&event) != 0) return 4;
    if (event.wait_for(1ms) != wait_status::timed_out) return 5;
    if (!everything_works_on(event, threads_in_child)) return 6;
    return 0;
}

TEST(Fork, TheChildUsesEventsThatHadWaitersInTheParent) {
    manual_reset_event gate;
    auto_reset_event token;
    thread_group threads;
    threads.start_many(3, "at the gate", [&](int) { gate.wait(); });
    threads.start_many(3, "for the token", [&](int) { token.wait(); });
    until_parked(&gate, 3);
    until_parked(&token, 3);
    EXPECT_EQ(support::ending_of_child([&] { return use_an_event_that_had_waiters(gate); }), "");
    EXPECT_EQ(support::ending_of_child([&] { return use_an_event_that_had_waiters(token); }), "");
    EXPECT_EQ(tocsin::waiting_on(&gate), 3u) << "the parent's waiters still wait";
    EXPECT_EQ(tocsin::waiting_on(&token), 3u);
    gate.set();
    for (int i = 0; i < 3; ++i) token.set();
    threads.join();
}

TEST(Fork, TheChildUsesAddressesAndLocksThatHadWaitersInTheParent) {
    std::atomic<std::uint32_t> word{0};
    tocsin::word_lock<> lock;
    lock.lock();
    thread_group threads;
    threads.start("on the address", [&] { (void)tocsin::wait_on_address(&word, 0u); });
    threads.start("on the lock", [&] { lock.lock(), lock.unlock(); });
    until_parked(&word, 1);
    until_parked(&lock, 1);
    EXPECT_EQ(support::ending_of_child([&] {
                  if (tocsin::wake_by_address_all(&word) != 0) return 1;
                  lock.unlock();  // the child's only thread is a copy of the one that holds it
                  if (!lock.try_lock()) return 2;
                  if (lock.try_lock_for(1ms)) return 3;
                  lock.unlock();
                  return 0;
              }),
              "");
    EXPECT_EQ(tocsin::wake_by_address_all(&word), 1u);
    lock.unlock();
    threads.join();
}

constinit tocsin::counting_semaphore<> permits_made_before(0);
constinit tocsin::condition condition_made_before;
constinit tocsin::latch latch_made_before(2);
constinit tocsin::barrier<> barrier_made_before(2);
constinit tocsin::channel<int> meeting_made_before(0);

TEST(Fork, TheChildUsesTheFamilyOfEvents) {
    tocsin::channel<int> slots_made_before(2);
    EXPECT_EQ(support::ending_of_child([&] {
                  if (!support::works(permits_made_before, threads_in_child)) return 1;
                  if (!support::works(condition_made_before, threads_in_child)) return 2;
                  if (!support::works(latch_made_before, threads_in_child)) return 3;
                  if (!support::works(barrier_made_before, threads_in_child)) return 4;
                  if (!support::works(meeting_made_before, threads_in_child)) return 5;
                  if (!support::works(slots_made_before, threads_in_child)) return 6;
                  tocsin::channel<int> fresh(1);
                  if (!support::works(fresh, threads_in_child)) return 7;
                  return 0;
              }),
              "");
    EXPECT_FALSE(latch_made_before.try_wait()) << "the parent's latch is another one";
}

// The child has a semaphore, a latch, a barrier and a condition, but none of the threads that waited for them. (It must
// not use a channel that threads of the parent were using: channel.hpp.)
TEST(Fork, TheChildUsesTheFamilyThatHadWaitersInTheParent) {
    tocsin::counting_semaphore<> permits(1);
    tocsin::condition condition;
    tocsin::word_lock<> lock;
    tocsin::latch latch(2);
    tocsin::barrier<> barrier(2);
    auto arrived = barrier.arrive();
    thread_group threads;
    threads.start("collects permits", [&] { permits.acquire(3); });
    threads.start("at the latch", [&] { latch.wait(); });
    threads.start("for the phase", [&] { EXPECT_EQ(tocsin::wait_any(arrived).index, 0u); });
    threads.start("at the condition", [&] {
        lock.lock();
        condition.wait(lock);
        lock.unlock();
    });
    until_parked(&permits, 1);
    until_parked(&latch, 1);
    until_parked(&barrier, 1);
    until_parked(&condition, 1);
    EXPECT_EQ(support::ending_of_child([&] {
                  for (const void* each :
                       {static_cast<const void*>(&permits), static_cast<const void*>(&latch),
                        static_cast<const void*>(&barrier), static_cast<const void*>(&condition)}) {
                      if (tocsin::waiting_on(each) != 0) return 1;
                  }
                  if (!support::works(permits, threads_in_child)) return 2;
                  if (!support::works(latch, threads_in_child)) return 3;
                  (void)barrier.arrive();
                  if (!barrier.try_wait(arrived)) return 4;
                  if (!support::works(barrier, threads_in_child)) return 5;
                  if (!support::works(condition, threads_in_child)) return 6;
                  return 0;
              }),
              "");
    EXPECT_EQ(tocsin::waiting_on(&permits), 1u) << "the parent's waiters still wait";
    permits.release(2);
    latch.count_down(2);
    (void)barrier.arrive();
    {
        const std::scoped_lock held(lock);
        condition.notify_one();
    }
    threads.join();
    EXPECT_FALSE(permits.try_acquire());
}

// Forks at any moment of a storm: whatever another thread held inside the library at that moment must
// not stop the child. The storm's threads have started and waited once before the first fork: a thread allocates until
// then, and a child of a program under AddressSanitizer may find that allocator's locks taken for ever.
TEST(Fork, InTheMiddleOfEverythingLeavesTheChildUsable) {
    std::array<auto_reset_event, 64> events;
    std::atomic<bool> enough{false};
    std::latch started{4};
    thread_group threads;
    threads.start_many(3, "storm", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 600);
        (void)events[random.below(events.size())].wait_for(1us);
        started.arrive_and_wait();
        while (!enough.load()) {
            auto& event = events[random.below(events.size())];
            if (random.one_in(2)) event.set();
            (void)event.wait_for(nanoseconds(random.below(20'000)));
        }
    });
    started.arrive_and_wait();
    for (int i = 0; i < rounds(150, 30); ++i) {
        const auto ending = support::ending_of_child_of_busy_parent([&] {
            alarm(60);
            for (auto& each : events) {
                each.set();
                if (!each.try_wait()) return 1;
                if (each.wait_for(1us) != wait_status::timed_out) return 2;
            }
            if (i % 10 == 0 && !everything_works_on(made_before_the_fork, threads_in_child)) return 3;
            return 0;
        });
        ASSERT_EQ(ending, "");
    }
    enough.store(true);
    threads.join();
}

// A thread may be in the middle of name_address() at the moment of the fork. Under AddressSanitizer this thread removes
// names that no address has: that takes the lock of the names, too, but allocates nothing (see above).
TEST(Fork, TheChildNamesAddressesAndListsItsWaits) {
    static std::array<char, 4096> places;
    std::atomic<bool> enough{false};
    std::latch begun{1};
    thread_group threads;
    threads.start("names", [&] {
        for (std::size_t i = 0; !enough.load(); ++i) {
            const bool again = (i / places.size()) % 2 != 0;
            tocsin::name_address(
                &places[i % places.size()],
                again || support::address_sanitizer ? "" : "a name that is too long for a small string");
            if (i == 0) begun.count_down();
        }
    });
    begun.wait();
    for (int i = 0; i < rounds(200, 50); ++i) {
        ASSERT_EQ(support::ending_of_child_of_busy_parent([] {
                      if (!tocsin::describe_parked_waits().empty()) return 1;
                      tocsin::name_address(places.data(), "another name");
                      return 0;
                  }),
                  "");
    }
    enough.store(true);
    threads.join();
    for (char& each : places) tocsin::name_address(&each, "");
}

#if defined(__linux__)
TEST(Fork, TheChildsThreadHasANumberOfItsOwn) {
    auto_reset_event never;
    EXPECT_EQ(never.wait_for(1us), wait_status::timed_out);  // its number is known from now on
    const auto number_of_a_waiter = [] {
        auto_reset_event event;
        std::uint64_t number = 0;
        thread_group threads;
        threads.start("looks", [&] {
            until_parked(&event, 1);
            for (const auto& each : tocsin::parked_waits()) {
                if (each.address == &event) number = each.thread;
            }
            event.set();
        });
        event.wait();
        threads.join();
        return number;
    };
    EXPECT_EQ(number_of_a_waiter(), static_cast<std::uint64_t>(getpid()));
    if (!threads_in_child) return;
    EXPECT_EQ(support::ending_of_child(
                  [&] { return number_of_a_waiter() == static_cast<std::uint64_t>(getpid()) ? 0 : 1; }),
              "");
}
#endif

TEST(Fork, AChildOfAChildIsNoDifferent) {
    EXPECT_EQ(support::ending_of_child([] {
                  thread_group threads;
                  static manual_reset_event gate;
                  threads.start("waiter", [] { gate.wait(); });
                  until_parked(&gate, 1);
                  const auto ending =
                      support::ending_of_child([] { return use_an_event_that_had_waiters(gate); });
                  gate.set();
                  threads.join();
                  return ending.empty() ? 0 : 1;
              }),
              "");
}

}  // namespace
