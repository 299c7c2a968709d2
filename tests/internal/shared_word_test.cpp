// SPDX-License-Identifier: Apache-2.0
// Waiters of a gate that sleep on one word together: which waits do, which thread wakes them, and in how many calls.
#include "child.hpp"
#include "core/lot/lot.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;
using tocsin::core::locked_queue;
using tocsin::core::node_list;
using tocsin::core::release_list;
using tocsin::core::shared_word;
using tocsin::core::wait_key;
using tocsin::core::wait_kind;
using tocsin::core::wait_node;
using tocsin::core::waiter;
using kind = wait_node::kind;

std::size_t sharers_of(const void* event) {
    std::size_t count = 0;
    locked_queue({event, wait_kind::event}).for_each([&](const wait_node& node) {
        if (node.what == kind::sharer) ++count;
    });
    return count;
}

template <class Event, class Wait>
void start_one_by_one(thread_group& threads, const Event& event, int count, Wait wait) {
    for (int i = 0; i < count; ++i) {
        const std::size_t before = tocsin::waiting_on(&event);
        threads.start("waiter", wait);
        until_parked(&event, before + 1);
    }
}

TEST(SharedWord, AllWaitersOfAGateButTheFirstOfEachBatchShareOne) {
    manual_reset_event gate;
    thread_group threads;
    start_one_by_one(threads, gate, 3, [&] { gate.wait(); });
    start_one_by_one(threads, gate, 3, [&] { (void)gate.wait_for(1h); });
    EXPECT_EQ(sharers_of(&gate), 5u);
    gate.set();
    threads.join();
}

TEST(SharedWord, EachBatchOfABroadcastIsReleased) {
    constexpr auto size = static_cast<int>(tocsin::core::waiters_per_batch);
    for (const bool timed : {false, true}) {
        manual_reset_event gate;
        thread_group threads;
        threads.start_many(3 * size, "waiter",
                           [&](int i) { timed&& i % 2 != 0 ? (void)gate.wait_for(1h) : gate.wait(); });
        until_parked(&gate, 3 * size);
        EXPECT_EQ(sharers_of(&gate), 3u * (size - 1));
        gate.set();
        threads.join();
    }
}

// A thread that can be stopped shares no word. But it can wake those who do.
TEST(SharedWord, AStoppableWaitInFrontBecomesTheDelegate) {
    manual_reset_event gate;
    std::stop_source stop;
    thread_group threads;
    start_one_by_one(threads, gate, 1, [&] { (void)gate.wait(stop.get_token()); });
    start_one_by_one(threads, gate, 9, [&] { gate.wait(); });
    EXPECT_EQ(sharers_of(&gate), 9u);
    gate.set();
    threads.join();
}

TEST(SharedWord, WhoeverMayBeReleasedAloneSharesNone) {
    auto_reset_event token;
    manual_reset_event gate;
    std::stop_source stop;
    thread_group threads;
    start_one_by_one(threads, token, 3, [&] { token.wait(); });
    start_one_by_one(threads, gate, 1, [&] { gate.wait(); });
    start_one_by_one(threads, gate, 2, [&] { (void)gate.wait(stop.get_token()); });
    EXPECT_EQ(sharers_of(&token), 0u);
    EXPECT_EQ(sharers_of(&gate), 0u);
    stop.request_stop();
    threads.until_finished(2);
    for (int i = 0; i < 3; ++i) token.set();
    gate.set();
    threads.join();
}

#if defined(__linux__)
TEST(SharedWord, ASetOfAGateMakesOneCallHoweverManyWait) {
    using namespace tocsin::platform;
    if (!std::is_same_v<futex, linux_futex>) GTEST_SKIP() << "its wake is no system call";
    manual_reset_event gate;
    constexpr std::size_t waiters = 2 * tocsin::core::waiters_per_batch + 10;
    const auto calls = support::system_calls_of(
        [&] {
            std::vector<std::atomic<pid_t>> ids(waiters);
            for (auto& id : ids) {
                std::thread([&] {
                    id.store(support::thread_id());
                    gate.wait();
                    support::sleep_for_ever();
                }).detach();
            }
            until_parked(&gate, waiters);
            for (auto& id : ids) support::until_asleep(id.load());
        },
        [&] { gate.set(); });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(calls.numbers.size(), 1u) << testing::PrintToString(calls);
}
#endif

// The delegate's deadline passes. Whoever joins next is the delegate, at the end of the queue.
TEST(SharedWord, ADelegateThatTimesOutIsReplaced) {
    for (const bool replaced : {false, true}) {
        manual_reset_event gate;
        thread_group threads;
        std::atomic<bool> over{false};
        start_one_by_one(threads, gate, 1, [&] {
            while (!over.load()) (void)gate.wait_for(1ms);
        });
        until_parked(&gate, 1);
        threads.start_many(6, "sharer", [&](int) { gate.wait(); });
        support::until("all wait", [&] { return tocsin::waiting_on(&gate) >= 6; });
        if (!replaced) {
            over.store(true);
            threads.until_finished(1);
        }
        gate.set();
        over.store(true);
        threads.join();
    }
}

// The words on which waiters of the event sleep together.
std::set<const shared_word*> words_of(const void* event) {
    std::set<const shared_word*> words;
    locked_queue({event, wait_kind::event}).for_each([&](const wait_node& node) {
        if (node.what == kind::sharer) words.insert(&node.owner->shared());
    });
    return words;
}

// The word that the first two waiters of this event share while nobody else waits.
const shared_word* first_word_of(const void* event) {
    const wait_key key{event, wait_kind::event};
    waiter waiters[2];
    wait_node delegate(key, waiters[0], false);
    wait_node sharer(key, waiters[1], false);
    release_list freed;
    {
        locked_queue queue(key);
        queue.append_to_share(delegate, {});
        queue.append_to_share(sharer, {});
        freed = queue.take_all();
    }
    const shared_word* const word = &waiters[1].shared();
    freed.wake();
    return word;
}

// Two gates whose first batches would both take the same word.
TEST(SharedWord, AWakeLeavesStrangersAsleep) {
    std::deque<manual_reset_event> gates;
    std::map<const shared_word*, manual_reset_event*> by_word;
    const shared_word* word = nullptr;
    do {
        word = first_word_of(&gates.emplace_back());
    } while (by_word.emplace(word, &gates.back()).second);
    manual_reset_event& gate = *by_word[word];
    manual_reset_event& other = gates.back();
    thread_group strangers;
    start_one_by_one(strangers, other, 4, [&] { other.wait(); });
    ASSERT_EQ(sharers_of(&other), 3u);
    EXPECT_EQ(words_of(&other), std::set{word});
    std::vector<long> switches;
    for (std::size_t i = 0; i != strangers.size(); ++i) {
        strangers.until_asleep(i);
        switches.push_back(support::switches_of(strangers.id(i)).voluntary);
    }
    for (int round = 0; round < 20; ++round) {
        thread_group threads;
        start_one_by_one(threads, gate, 4, [&] { gate.wait(); });
        EXPECT_EQ(sharers_of(&gate), 3u);
        EXPECT_EQ(words_of(&gate).count(word), 0u);
        gate.set();
        threads.join();
        gate.reset();
    }
    EXPECT_EQ(strangers.finished(), 0u);
    EXPECT_EQ(tocsin::waiting_on(&other), 4u);
    for (std::size_t i = 0; i != strangers.size(); ++i) {
        EXPECT_EQ(support::switches_of(strangers.id(i)).voluntary, switches[i]) << "stranger " << i;
    }
    other.set();
    strangers.join();
}

TEST(SharedWord, TheThreadsOfABatchHaveOneWord) {
    constexpr auto size = static_cast<int>(tocsin::core::waiters_per_batch);
    manual_reset_event gate;
    thread_group threads;
    start_one_by_one(threads, gate, 2 * size, [&] { gate.wait(); });
    EXPECT_EQ(words_of(&gate).size(), 2u);
    gate.set();
    threads.join();
}

TEST(SharedWord, WithoutAFreeWordEachThreadSleepsOnItsOwn) {
    manual_reset_event gate;
    thread_group threads;
    std::vector<shared_word*> taken;
    for (auto& each : tocsin::core::the_lot->at) {
        for (shared_word& word : each.shared) {
            if (word.try_begin_batch()) taken.push_back(&word);
        }
    }
    start_one_by_one(threads, gate, 10, [&] { gate.wait(); });
    EXPECT_EQ(sharers_of(&gate), 0u);
    for (shared_word* each : taken) each->leave_batch(1);
    gate.set();
    threads.join();
}

TEST(SharedWord, SetsIntoAListReleaseTheWaitersOfAllGates) {
    std::vector<manual_reset_event> gates(5);
    thread_group threads;
    for (auto& gate : gates) start_one_by_one(threads, gate, 4, [&gate] { gate.wait(); });
    tocsin::wake_list freed;
    for (auto& gate : gates) gate.set(freed);
    EXPECT_EQ(threads.finished(), 0u);
    freed.wake();
    threads.join();
}

// A walk over the queue puts a delegate in front of the sharers, and the batches in front of all other threads.
TEST(SharedWord, AListBeginsWithADelegateAndItsSharers) {
    static const char place = 0;
    const wait_key key{&place, wait_kind::event};
    const std::map<char, kind> kinds{{'s', kind::sharer}, {'d', kind::delegate}, {'w', kind::waiter}};
    std::vector<waiter> waiters(7);
    std::vector<std::unique_ptr<wait_node>> nodes;
    release_list list;
    for (const char letter : std::string("swdswds")) {
        nodes.push_back(std::make_unique<wait_node>(key, waiters[nodes.size()], true));
        nodes.back()->what = kinds.at(letter);
        list.append(*nodes.back());
    }
    std::string order;
    const node_list all = list.take_nodes();
    for (const wait_node* each = all.first(); each != nullptr; each = node_list::next(*each)) {
        for (const auto& [letter, what] : kinds)
            if (each->what == what) order += letter;
    }
    EXPECT_EQ(order, "dssdsww");
}

#if TOCSIN_ON_POSIX
// What a debugger does to the thread that was to wake the others.
TEST(SharedWord, ADelegateThatIsHeldUpHoldsTheOthersUpButLosesNone) {
    static std::atomic<bool> held{false};
    static std::atomic<bool> go_on{false};
    held.store(false);
    go_on.store(false);
    const support::handled_signal handler(SIGUSR1, [](int) {
        held.store(true);
        while (!go_on.load()) std::this_thread::yield();
    });
    manual_reset_event gate;
    thread_group threads;
    start_one_by_one(threads, gate, 10, [&] { gate.wait(); });
    threads.until_asleep(0);  // a delegate that is still awake is given nobody to wake
    pthread_kill(threads.handle(0), SIGUSR1);
    support::until("the delegate is held up", [] { return held.load(); });
    gate.set();
    gate.reset();
    EXPECT_EQ(threads.finished(), 0u);
    EXPECT_EQ(tocsin::waiting_on(&gate), 0u);
    go_on.store(true);
    threads.join();
}

TEST(SharedWord, ASetInASignalHandlerReleasesAll) {
    static manual_reset_event gate;
    const support::handled_signal handler(SIGUSR1, [](int) { gate.set(); });
    thread_group threads;
    start_one_by_one(threads, gate, 10, [] { gate.wait(); });
    raise(SIGUSR1);
    threads.join();
}

TEST(SharedWord, TheChildOfAForkStartsAnew) {
    if (support::thread_sanitizer) GTEST_SKIP() << "it can't follow threads in the child";
    manual_reset_event gate;
    thread_group threads;
    start_one_by_one(threads, gate, 5, [&] { gate.wait(); });
    EXPECT_EQ(support::ending_of_child([&] {
                  thread_group own;
                  start_one_by_one(own, gate, 5, [&] { gate.wait(); });
                  if (sharers_of(&gate) != 4) return 1;
                  gate.set();
                  own.join();
                  return 0;
              }),
              "");
    EXPECT_EQ(tocsin::waiting_on(&gate), 5u);
    gate.set();
    threads.join();
}
#endif

}  // namespace
