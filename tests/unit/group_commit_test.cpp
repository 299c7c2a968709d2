// SPDX-License-Identifier: Apache-2.0
// What <tocsin/group_commit.hpp> promises, sentence by sentence.
#include "clocks.hpp"
#include "facts.hpp"
#include "forms_of_new.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/group_commit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <ranges>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

thread_local long allocations = 0;

// A submission, with the answer that the flush gives.
struct item {
    int number = 0;
    int answer = 0;
};

struct disk_error : std::runtime_error {
    using runtime_error::runtime_error;
};

// A group_commit whose flush records its groups, and waits inside while it is held.
class journal {
public:
    explicit journal(const group_commit_options& options = {})
        : commit([this](commit_group<item> group) { flush(group); }, options) {}

    using groups_type = std::vector<std::vector<int>>;
    const groups_type& groups() const { return groups_; }

    void hold() { held_.store(true); }
    // Lets one flush continue; it throws if `failing`.
    void let_go(bool failing = false) {
        failing_.store(failing);
        go_.set();
    }
    // Lets this flush and all later ones continue.
    void let_all_go() {
        held_.store(false);
        go_.set();
    }
    void until_in_flush(int which) const {
        until("waiting for a flush to begin", [&] { return begun_.load() == which; });
    }
    void until_waiting(std::size_t count) const {
        until("waiting for submissions to gather", [&] { return commit.statistics().waiting == count; });
    }

    // Starts a thread that submits `number`, and waits until it flushes or has joined.
    void start_leader(thread_group& threads, int number) {
        threads.start("leader", [this, number] { submit(number); });
        until_in_flush(1);
    }
    void start_follower(thread_group& threads, int number) {
        const std::size_t before = commit.statistics().waiting;
        threads.start("follower " + std::to_string(number), [this, number] { submit(number); });
        until_waiting(before + 1);
    }
    void start_followers(thread_group& threads, int first, int last) {
        for (int number = first; number <= last; ++number) start_follower(threads, number);
    }
    // Starts a leader, which submits 1 and flushes it, with followers that submit 2 to `last`. Then lets the flush end,
    // and waits until the followers' is under way.
    void start_two_groups(thread_group& threads, int last) {
        hold();
        start_leader(threads, 1);
        start_followers(threads, 2, last);
        let_go();
        until_in_flush(2);
    }
    void submit(int number) {
        item mine{number};
        commit.submit(mine);
        EXPECT_EQ(mine.answer, -number);
    }

    group_commit<item> commit;

private:
    void flush(commit_group<item> group) {
        std::vector<int>& numbers = groups_.emplace_back();
        for (item& each : group) {
            numbers.push_back(each.number);
            each.answer = -each.number;
        }
        EXPECT_EQ(group.size(), numbers.size());
        begun_.fetch_add(1);
        if (held_.load()) go_.wait();
        if (failing_.exchange(false)) throw disk_error("no space left");
    }

    groups_type groups_;  // only by the leader
    std::atomic<int> begun_{0};
    std::atomic<bool> held_{false};
    std::atomic<bool> failing_{false};
    tocsin::auto_reset_event go_;
};

using groups = journal::groups_type;

TEST(GroupCommit, IsNeitherCopiedNorMoved) {
    static_assert(!std::is_copy_constructible_v<group_commit<item>>);
    static_assert(!std::is_move_constructible_v<group_commit<item>>);
    static_assert(!std::is_copy_assignable_v<group_commit<item>>);
    static_assert(!std::is_move_assignable_v<group_commit<item>>);
}

TEST(GroupCommit, GroupIsASizedForwardRangeOfTheSubmissions) {
    using group = commit_group<item>;
    static_assert(std::forward_iterator<group::iterator>);
    static_assert(std::ranges::forward_range<group>);
    static_assert(std::ranges::sized_range<group>);
    static_assert(std::is_same_v<std::ranges::range_reference_t<group>, item&>);
    static_assert(std::is_same_v<std::ranges::range_reference_t<commit_group<const item>>, const item&>);
}

TEST(GroupCommit, ALoneSubmitterFlushesAtOnceInItsOwnThread) {
    const auto self = std::this_thread::get_id();
    std::thread::id flusher;
    group_commit<item> commit([&](commit_group<item> group) {
        flusher = std::this_thread::get_id();
        EXPECT_EQ(group.size(), 1u);
        EXPECT_EQ(group.front().number, 7);
        group.front().answer = 8;
    });
    item mine{7};
    commit.submit(mine);
    EXPECT_EQ(flusher, self);
    EXPECT_EQ(mine.answer, 8);
}

TEST(GroupCommit, FlushGetsTheObjectsThatWereSubmitted) {
    const item* seen = nullptr;
    group_commit<item> commit([&](commit_group<item> group) { seen = &group.front(); });
    item mine;
    commit.submit(mine);
    EXPECT_EQ(seen, &mine);
}

TEST(GroupCommit, TakesTemporariesAndConstantSubmissions) {
    int sum = 0;
    group_commit<const item> commit([&](commit_group<const item> group) {
        for (const item& each : group) sum += each.number;
    });
    const item constant{3};
    commit.submit(constant);
    commit.submit(item{4});
    EXPECT_EQ(sum, 7);
}

TEST(GroupCommit, TakesAFlushThatCanOnlyBeMoved) {
    auto counter = std::make_unique<int>(0);
    int* const count = counter.get();
    group_commit<item> commit([owned = std::move(counter)](commit_group<item>) { ++*owned; });
    commit.submit(item{});
    commit.submit(item{});
    EXPECT_EQ(*count, 2);
}

TEST(GroupCommit, RefusesALargestGroupOfNothing) {
    EXPECT_THROW(journal({.largest_group = 0}), std::invalid_argument);
}

TEST(GroupCommit, SubmittersThatComeDuringAFlushAreFlushedTogetherInJoiningOrder) {
    journal log;
    log.hold();
    {
        thread_group threads;
        log.start_leader(threads, 1);
        log.start_followers(threads, 2, 6);
        EXPECT_EQ(threads.finished(), 0u);
        log.let_all_go();
    }
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3, 4, 5, 6}}));
}

TEST(GroupCommit, NobodyWaitsForAGroupItDoesNotBelongTo) {
    journal log;
    thread_group threads;
    log.start_two_groups(threads, 4);
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(0));  // although the second flush is under way
    log.start_followers(threads, 5, 7);
    EXPECT_EQ(threads.finished(), 1u);
    log.let_go();
    log.until_in_flush(3);
    threads.until_finished(4);
    for (std::size_t i = 0; i != 4; ++i) EXPECT_TRUE(threads.finished(i));
    EXPECT_EQ(threads.finished(), 4u);
    log.let_all_go();
    threads.join();
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3, 4}, {5, 6, 7}}));
}

// The reset that is dropped (trap 24): a group commit on an event that drops one acknowledges submissions that no flush
// has covered.
TEST(GroupCommit, NobodyIsToldBeforeTheFlushThatCoversItHasEnded) {
    journal log;
    thread_group threads;
    log.start_two_groups(threads, 5);
    threads.until_finished(1);
    for (std::size_t i = 1; i != threads.size(); ++i) threads.until_asleep(i);
    EXPECT_EQ(threads.finished(), 1u);
    log.let_all_go();
}

TEST(GroupCommit, LeaderReturnsThoughNoFollowerCanRun) {
    if (!freezer::works) GTEST_SKIP() << "signal handlers are deferred here";
    journal log;
    thread_group threads;
    log.start_two_groups(threads, 5);  // of thread 1, with 2, 3 and 4
    for (std::size_t i = 1; i != 5; ++i) threads.until_asleep(i);
    freezer ice;
    for (std::size_t i = 2; i != 5; ++i) ice.freeze(threads.handle(i));
    log.let_all_go();
    until("waiting for the leader", [&] { return threads.finished(1); });
    threads.until_finished(2);
    EXPECT_EQ(threads.finished(), 2u);
    ice.thaw();
    threads.join();
}

TEST(GroupCommit, NextGroupFlushesThoughNoMemberOfTheLastCanRun) {
    if (!freezer::works) GTEST_SKIP() << "signal handlers are deferred here";
    journal log;
    thread_group threads;
    log.start_two_groups(threads, 4);  // of 2, with 3 and 4
    log.start_follower(threads, 5);
    threads.until_asleep(2);
    threads.until_asleep(3);
    freezer ice;
    ice.freeze(threads.handle(2));
    ice.freeze(threads.handle(3));
    log.let_all_go();
    until("waiting for the third group", [&] { return threads.finished(4); });
    EXPECT_FALSE(threads.finished(2));
    EXPECT_FALSE(threads.finished(3));
    ice.thaw();
    threads.join();
}

TEST(GroupCommit, AFlushThatThrowsFailsExactlyItsGroup) {
    journal log;
    log.hold();
    std::atomic<int> failed{0};
    std::atomic<const char*> what{nullptr};
    std::atomic<bool> same{true};
    const auto failing = [&](int number) {
        try {
            log.submit(number);
        } catch (const disk_error& error) {
            const char* before = nullptr;
            if (!what.compare_exchange_strong(before, error.what()) && before != error.what())
                same.store(false);
            failed.fetch_add(1);
        }
    };
    thread_group threads;
    log.start_leader(threads, 1);
    for (int number = 2; number <= 4; ++number) {
        threads.start("failing " + std::to_string(number), [&, number] { failing(number); });
        log.until_waiting(static_cast<std::size_t>(number) - 1);
    }
    log.let_go();  // the first group ends well
    log.until_in_flush(2);
    log.start_followers(threads, 5, 6);
    log.let_go(true);  // the second fails
    log.until_in_flush(3);
    log.let_all_go();  // the third ends well
    threads.join();
    EXPECT_EQ(failed.load(), 3);
    EXPECT_TRUE(same.load());
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3, 4}, {5, 6}}));
    const auto counts = log.commit.statistics();
    EXPECT_EQ(counts.groups, 3u);
    EXPECT_EQ(counts.failed, 1u);
}

TEST(GroupCommit, ALoneSubmitterGetsItsOwnExceptionAndTheNextOneSucceeds) {
    bool fails = true;
    group_commit<item> commit([&](commit_group<item>) {
        if (fails) throw 42;
    });
    EXPECT_THROW(commit.submit(item{}), int);
    fails = false;
    EXPECT_NO_THROW(commit.submit(item{}));
}

TEST(GroupCommit, WithdrawsWhenTheDeadlinePassesBeforeAFlushTakesIt) {
    journal log;
    log.hold();
    thread_group threads;
    log.start_leader(threads, 1);
    hand_clock::set(0);
    threads.start("sets the clock", [&] {
        log.until_waiting(1);
        hand_clock::set(20);
    });
    item late{2};
    EXPECT_EQ(log.commit.submit({.until = hand_clock::time_point(20ms)}, late), commit_status::timed_out);
    EXPECT_EQ(hand_clock::now(), hand_clock::time_point(20ms));
    EXPECT_EQ(log.commit.statistics().waiting, 0u);
    log.start_follower(threads, 3);
    log.let_all_go();
    threads.join();
    EXPECT_EQ(late.answer, 0);
    EXPECT_EQ(log.groups(), (groups{{1}, {3}}));
    EXPECT_EQ(log.commit.statistics().withdrawn, 1u);
    EXPECT_EQ(log.commit.statistics().submissions, 2u);
}

TEST(GroupCommit, ADeadlineIsNeverEarly) {
    journal log;
    log.hold();
    thread_group threads;
    log.start_leader(threads, 1);
    item late{2};
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(log.commit.submit({.until = 20ms}, late), commit_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    log.let_all_go();
}

TEST(GroupCommit, WithdrawsFromAnyPositionInTheQueue) {
    for (std::size_t leaving = 0; leaving != 4; ++leaving) {
        journal log;
        log.hold();
        std::stop_source stop;
        thread_group threads;
        log.start_leader(threads, 1);
        groups expected{{1}, {}};
        for (int number = 10; number != 14; ++number) {
            if (static_cast<std::size_t>(number - 10) != leaving) {
                expected[1].push_back(number);
                log.start_follower(threads, number);
                continue;
            }
            threads.start("leaving", [&, number] {
                item mine{number};
                EXPECT_EQ(log.commit.submit({.stop = stop.get_token()}, mine), commit_status::stopped);
            });
            log.until_waiting(leaving + 1);
        }
        stop.request_stop();
        log.until_waiting(3);
        log.let_all_go();
        threads.join();
        EXPECT_EQ(log.groups(), expected);
    }
}

TEST(GroupCommit, AGroupInWhichEverybodyMayWithdrawIsFlushedInJoiningOrder) {
    journal log;
    log.hold();
    {
        thread_group threads;
        log.start_leader(threads, 1);
        for (int number = 2; number <= 6; ++number) {
            threads.start([&, number] {
                item mine{number};
                EXPECT_EQ(log.commit.submit({.until = 1h}, mine), commit_status::committed);
                EXPECT_EQ(mine.answer, -number);
            });
            log.until_waiting(static_cast<std::size_t>(number) - 1);
        }
        log.let_all_go();
    }
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3, 4, 5, 6}}));
}

TEST(GroupCommit, WaitsForTheResultOfAFlushThatHasTakenItPastTheDeadline) {
    journal log;
    log.hold();
    thread_group threads;
    log.start_leader(threads, 1);
    log.start_follower(threads, 2);
    const auto end = hand_clock::now() + 1ms;
    threads.start("with a deadline", [&] {
        item mine{3};
        EXPECT_EQ(log.commit.submit({.until = end}, mine), commit_status::committed);
        EXPECT_EQ(mine.answer, -3);
    });
    log.until_waiting(2);
    log.let_go();
    log.until_in_flush(2);
    EXPECT_FALSE(threads.finished(2));
    hand_clock::set(end);
    until("waiting for the submitter to find that its deadline has passed",
          [&] { return hand_clock::last_shown.load() == end.time_since_epoch().count(); });
    until("waiting for it to sleep again, or to end too early",
          [&] { return threads.finished(2) || support::state_of(threads.id(2)) == 'S'; });
    EXPECT_FALSE(threads.finished(2));
    log.let_all_go();
    threads.join();
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3}}));
}

TEST(GroupCommit, WaitsForTheResultOfAFlushThatHasTakenItAfterAStop) {
    journal log;
    log.hold();
    std::stop_source stop;
    thread_group threads;
    log.start_leader(threads, 1);
    log.start_follower(threads, 2);
    threads.start("stopped too late", [&] {
        item mine{3};
        EXPECT_EQ(log.commit.submit({.stop = stop.get_token()}, mine), commit_status::committed);
        EXPECT_EQ(mine.answer, -3);
    });
    log.until_waiting(2);
    log.let_go();
    log.until_in_flush(2);
    stop.request_stop();
    threads.until_asleep(2);
    EXPECT_FALSE(threads.finished(2));
    log.let_all_go();
    threads.join();
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3}}));
}

TEST(GroupCommit, WithADeadlineThatHasPassedTriesOnce) {
    journal log({.longest_gathering = 1h});  // which such a call does not wait for
    std::stop_source stop;
    item mine{1};
    item other{2};
    EXPECT_EQ(log.commit.submit({.until = 0s}, mine), commit_status::committed);
    EXPECT_EQ(log.commit.submit({.until = -1s}, mine), commit_status::committed);
    EXPECT_EQ(
        log.commit.submit({.until = std::chrono::system_clock::now() - 1s, .stop = stop.get_token()}, mine),
        commit_status::committed);
    stop.request_stop();
    EXPECT_NE(log.commit.submit({.until = 0s, .stop = stop.get_token()}, mine), commit_status::committed);
    EXPECT_EQ(log.groups(), (groups{{1}, {1}, {1}}));
    // While another thread leads:
    log.hold();
    thread_group threads;
    threads.start("leads", [&] { (void)log.commit.submit({.until = 0s}, other); });
    log.until_in_flush(4);
    EXPECT_EQ(log.commit.submit({.until = 0s}, mine), commit_status::timed_out);
    log.let_all_go();
    threads.join();
    EXPECT_EQ(log.groups(), (groups{{1}, {1}, {1}, {2}}));
    EXPECT_EQ(log.commit.statistics().submissions, 4u);
}

TEST(GroupCommit, SubmitsNothingIfAStopWasRequestedAlready) {
    journal log;
    std::stop_source stop;
    item mine{1};
    EXPECT_EQ(log.commit.submit({.stop = stop.get_token()}, mine), commit_status::committed);
    stop.request_stop();
    EXPECT_EQ(log.commit.submit({.stop = stop.get_token()}, mine), commit_status::stopped);
    EXPECT_EQ(log.commit.submit({.until = 1h, .stop = stop.get_token()}, mine), commit_status::stopped);
    EXPECT_EQ(log.groups(), (groups{{1}}));
    EXPECT_EQ(log.commit.statistics().submissions, 1u);
}

TEST(GroupCommit, MaximalDeadlinesAreNone) {
    journal log;
    item mine{1};
    EXPECT_EQ(log.commit.submit({.until = std::chrono::hours::max()}, mine), commit_status::committed);
    EXPECT_EQ(log.commit.submit({.until = std::chrono::steady_clock::time_point::max()}, mine),
              commit_status::committed);
}

TEST(GroupCommit, AFlushTakesNoMoreThanTheLargestGroup) {
    journal log({.largest_group = 4});
    log.hold();
    {
        thread_group threads;
        log.start_leader(threads, 1);
        log.start_followers(threads, 2, 11);
        log.let_all_go();
    }
    EXPECT_EQ(log.groups(), (groups{{1}, {2, 3, 4, 5}, {6, 7, 8, 9}, {10, 11}}));
    EXPECT_EQ(log.commit.statistics().largest_group, 4u);
}

// Cuts its groups after three, as an engine cuts them by bytes or by kind.
struct cutting_journal {
    explicit cutting_journal(const group_commit_options& options = {})
        : commit(
              [this](commit_group<item> group) {
                  if (group.size() > 3) group.leave_from(std::next(group.begin(), 3));
                  std::vector<int>& numbers = groups.emplace_back();
                  for (item& each : group) {
                      numbers.push_back(each.number);
                      each.answer = -each.number;
                  }
                  EXPECT_EQ(numbers.size(), group.size());
                  begun.fetch_add(1);
                  if (begun.load() == 1) go.wait();
                  if (begun.load() == failing) throw disk_error("no space left");
              },
              options) {}

    // Submits 0 and, while that is flushed, 1 to `last`, in this order, each by a thread of its own.
    template <class Submit>
    void run(int last, Submit submit) {
        thread_group threads;
        threads.start("leader", [&] { submit(0); });
        until("the first flush", [&] { return begun.load() == 1; });
        for (int number = 1; number <= last; ++number) {
            threads.start("follower", [&, number] { submit(number); });
            until("it has joined", [&] { return commit.statistics().waiting == std::size_t(number); });
        }
        go.set();
        threads.join();
    }

    std::vector<std::vector<int>> groups;
    std::atomic<int> begun{0};
    int failing = -1;
    tocsin::auto_reset_event go;
    group_commit<item> commit;
};

TEST(GroupCommit, AFlushMayLeaveMembersToTheNextGroup) {
    cutting_journal log;
    log.run(8, [&](int number) {
        item mine{number};
        log.commit.submit(mine);
        EXPECT_EQ(mine.answer, -number);
    });
    EXPECT_EQ(log.groups, (groups{{0}, {1, 2, 3}, {4, 5, 6}, {7, 8}}));
    const auto counts = log.commit.statistics();
    EXPECT_EQ(counts.groups, 4u);
    EXPECT_EQ(counts.submissions, 9u);
    EXPECT_EQ(counts.largest_group, 3u);
    EXPECT_EQ(counts.waiting, 0u);
}

TEST(GroupCommit, AFailureLeavesThoseAloneThatTheFlushHasLeft) {
    cutting_journal log;
    log.failing = 2;
    std::atomic<int> failed{0};
    log.run(5, [&](int number) {
        item mine{number};
        try {
            log.commit.submit(mine);
            EXPECT_TRUE(number == 0 || number > 3);
        } catch (const disk_error&) {
            failed.fetch_add(1);
            EXPECT_TRUE(number >= 1 && number <= 3);
        }
    });
    EXPECT_EQ(failed.load(), 3);
    EXPECT_EQ(log.groups, (groups{{0}, {1, 2, 3}, {4, 5}}));
}

// Those that a flush has left are covered by a later one, whatever their deadlines.
TEST(GroupCommit, WhatAFlushHasLeftIsNoLongerWithdrawn) {
    cutting_journal log({.longest_gathering = 50ms});
    std::stop_source stop;
    log.run(6, [&](int number) {
        item mine{number};
        const auto status = log.commit.submit({.until = 1h, .stop = stop.get_token()}, mine);
        if (number == 1) stop.request_stop();  // its flush has left 4, 5 and 6
        EXPECT_EQ(status, commit_status::committed);
        EXPECT_EQ(mine.answer, -number);
    });
    EXPECT_EQ(log.groups, (groups{{0}, {1, 2, 3}, {4, 5, 6}}));
    EXPECT_EQ(log.commit.statistics().withdrawn, 0u);
}

TEST(GroupCommit, AFlushMustCoverAtLeastOne) {
    bool begun = false;
    group_commit<item> commit([&](commit_group<item> group) {
        begun = true;
        group.leave_from(group.end());  // nobody
        EXPECT_EQ(group.size(), 1u);
        group.leave_from(group.begin());
    });
    item mine;
    EXPECT_THROW(commit.submit(mine), std::invalid_argument);
    EXPECT_TRUE(begun);
}

TEST(GroupCommit, WithALargestGroupOfOneEverySubmissionIsFlushedAlone) {
    journal log({.largest_group = 1, .longest_gathering = 1h});
    log.hold();
    {
        thread_group threads;
        log.start_leader(threads, 1);
        log.start_followers(threads, 2, 4);
        log.let_all_go();
    }
    EXPECT_EQ(log.groups(), (groups{{1}, {2}, {3}, {4}}));
}

TEST(GroupCommit, GathersForTheLongestTimeAllowed) {
    journal log({.longest_gathering = 20ms});
    const auto begin = std::chrono::steady_clock::now();
    log.submit(1);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_GE(log.commit.statistics().gathering, 20ms);
}

TEST(GroupCommit, StopsGatheringWhenTheGroupIsFull) {
    for (const auto longest : {std::chrono::nanoseconds(1h), std::chrono::nanoseconds::max()}) {
        journal log({.largest_group = 3, .longest_gathering = longest});
        {
            thread_group threads;
            threads.start("leader", [&] { log.submit(1); });
            threads.until_asleep(0);
            log.start_follower(threads, 2);
            threads.until_asleep(1);
            EXPECT_EQ(threads.finished(), 0u);
            threads.start("last", [&] { log.submit(3); });
        }
        EXPECT_EQ(log.groups(), (groups{{1, 2, 3}}));
    }
}

TEST(GroupCommit, ALeaderThatGathersCanWithdraw) {
    journal log({.longest_gathering = 1h});
    hand_clock::set(0);
    const long reads = hand_clock::reads.load();
    thread_group threads;
    threads.start("leader", [&] {
        item mine{1};
        EXPECT_EQ(log.commit.submit({.until = hand_clock::time_point(10ms)}, mine), commit_status::timed_out);
        EXPECT_EQ(hand_clock::now(), hand_clock::time_point(10ms));
    });
    until("the leader has found its deadline in the future",
          [&] { return hand_clock::reads.load() >= reads + 2; });
    threads.until_asleep(0);
    hand_clock::set(10);
    threads.join();
    EXPECT_TRUE(log.groups().empty());
    EXPECT_EQ(log.commit.statistics().withdrawn, 1u);
}

TEST(GroupCommit, ALeaderThatWithdrawsLeavesTheLeadToTheNext) {
    journal log({.largest_group = 3, .longest_gathering = 1h});
    std::stop_source stop;
    thread_group threads;
    threads.start("leader", [&] {
        item mine{1};
        EXPECT_EQ(log.commit.submit({.stop = stop.get_token()}, mine), commit_status::stopped);
        EXPECT_EQ(mine.answer, 0);
    });
    threads.until_asleep(0);
    log.start_follower(threads, 2);
    threads.until_asleep(1);
    stop.request_stop();
    threads.until_finished(1);
    log.until_waiting(0);  // the follower leads
    threads.start("3", [&] { log.submit(3); });
    log.until_waiting(1);
    threads.start("4", [&] { log.submit(4); });
    threads.join();
    EXPECT_EQ(log.groups(), (groups{{2, 3, 4}}));
}

TEST(GroupCommit, GatheringIsTimedFromTheArrivalOfTheFirstMember) {
    journal log({.longest_gathering = 30ms});
    log.hold();
    thread_group threads;
    log.start_leader(threads, 1);
    log.start_follower(threads, 2);
    const auto joined = std::chrono::steady_clock::now();
    until("waiting for the time to gather to pass",
          [&] { return std::chrono::steady_clock::now() > joined + 40ms; });
    log.let_go();
    log.until_in_flush(2);  // does not gather again, as it has waited already
    EXPECT_LT(log.commit.statistics().gathering, 10s);
    log.let_all_go();
}

TEST(GroupCommit, CountsWhatHappened) {
    journal log;
    log.hold();
    thread_group threads;
    log.start_leader(threads, 1);
    log.start_followers(threads, 2, 6);
    auto counts = log.commit.statistics();
    EXPECT_EQ(counts.groups, 0u);
    EXPECT_EQ(counts.waiting, 5u);
    log.let_all_go();
    threads.join();
    log.submit(7);
    counts = log.commit.statistics();
    EXPECT_EQ(counts.groups, 3u);
    EXPECT_EQ(counts.failed, 0u);
    EXPECT_EQ(counts.submissions, 7u);
    EXPECT_EQ(counts.withdrawn, 0u);
    EXPECT_EQ(counts.largest_group, 5u);
    EXPECT_EQ(counts.waiting, 0u);
    EXPECT_GT(counts.flushing, 0ns);
    EXPECT_GT(counts.gathering, 0ns);
    EXPECT_EQ(counts.sizes[0], 2u);  // two groups of one
    EXPECT_EQ(counts.sizes[1], 0u);
    EXPECT_EQ(counts.sizes[2], 1u);  // one group of four to seven
}

TEST(GroupCommit, PublishesInBothDirections) {
    struct message {
        int sent = 0;
        int* received = nullptr;
    };
    int total = 0;  // only flushes touch it: each sees what the previous one did
    group_commit<message> commit([&](commit_group<message> group) {
        for (message& each : group) *each.received = total += each.sent;
    });
    constexpr int threads = 4;
    const int each = support::rounds(5000, 500);
    {
        thread_group group;
        group.start_many(threads, "submitter", [&](int) {
            int last = 0;
            for (int i = 0; i != each; ++i) {
                int received = 0;
                message mine{1, &received};
                commit.submit(mine);
                EXPECT_GT(received, last);
                last = received;
            }
        });
    }
    EXPECT_EQ(total, threads * each);
}

// More than two batches that share words, with members between them that withdraw by a deadline or a stop.
TEST(GroupCommit, EachMemberOfALargeMixedGroupIsToldItsResult) {
    journal log;
    log.hold();
    constexpr int members = 150;
    std::stop_source stop;
    const std::stop_token token = stop.get_token();
    std::atomic<int> committed{0}, timed_out{0}, stopped{0};
    thread_group threads;
    log.start_leader(threads, 1);
    for (int i = 0; i < members; ++i) {
        threads.start("member " + std::to_string(i), [&, i] {
            item mine{i + 2};
            tocsin::limits how;
            if (i % 5 == 2) how.stop = token;
            if (i % 7 == 3) how.until = 20ms;
            switch (log.commit.submit(how, mine)) {
                case commit_status::committed:
                    EXPECT_EQ(mine.answer, -(i + 2));
                    ++committed;
                    break;
                case commit_status::timed_out: ++timed_out; break;
                case commit_status::stopped: ++stopped; break;
            }
        });
    }
    until("waiting for all members without a deadline to join",
          [&] { return log.commit.statistics().waiting >= members - 21; });
    stop.request_stop();
    until("waiting for the withdrawals", [&] { return timed_out + stopped == 47; });
    log.until_waiting(members - 47);
    log.let_all_go();
    threads.join();
    EXPECT_EQ(committed, members - 47);  // 30 have a stop token, 21 a deadline, and 4 both
    EXPECT_EQ(log.commit.statistics().submissions, members - 47 + 1u);
}

TEST(GroupCommit, SubmittingAllocatesNothing) {
    journal log;
    log.hold();
    thread_group threads;
    std::atomic<bool> ready{false};
    threads.start("leader", [&] { log.submit(1); });
    log.until_in_flush(1);
    threads.start("follower", [&] {
        item mine{2};
        const long before = allocations;
        ready.store(true);
        log.commit.submit(mine);
        EXPECT_EQ(allocations, before + 2);  // made by the test, which records a group of one number
    });
    log.until_waiting(1);
    EXPECT_TRUE(ready.load());
    log.let_all_go();
    threads.join();

    group_commit<item> quiet([](commit_group<item>) {});
    const long before = allocations;
    quiet.submit(item{});
    EXPECT_EQ(allocations, before);
}

TEST(GroupCommit, ALoneSubmitterMakesNoSystemCall) {
    group_commit<item> commit([](commit_group<item>) {});
    const auto calls = support::system_calls_of([&] { commit.submit(item{}); },
                                                [&] {
                                                    for (int i = 0; i != 10; ++i) commit.submit(item{});
                                                });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.numbers.size(), 0u);
}

#if defined(__GLIBC__)
// Cancelling a thread unwinds its stack with something that is not a C++ exception. (musl does not unwind: no
// destructor runs.)
TEST(GroupCommit, AFlushThatIsCancelledCountsAsFailed) {
    if (support::thread_sanitizer || support::address_sanitizer)
        GTEST_SKIP() << "the sanitizers don't support cancellation";
    std::atomic<int> flushes{0};
    group_commit<item> commit([&](commit_group<item>) {
        if (flushes.fetch_add(1) != 1) return;
        for (;;) pause();
    });
    commit.submit(item{});
    pthread_t leader;
    ASSERT_EQ(pthread_create(
                  &leader, nullptr,
                  [](void* it) -> void* {
                      static_cast<group_commit<item>*>(it)->submit(item{});
                      return nullptr;
                  },
                  &commit),
              0);
    until("waiting for the flush", [&] { return flushes.load() == 2; });
    pthread_cancel(leader);
    void* result = nullptr;
    pthread_join(leader, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_EQ(commit.statistics().failed, 1u);
    EXPECT_NO_THROW(commit.submit(item{}));  // and the cancelled thread no longer leads
}
#endif

#if TOCSIN_CHECKED

void submit_inside_a_flush() {
    group_commit<item>* self = nullptr;
    group_commit<item> commit([&](commit_group<item>) { self->submit(item{}); });
    self = &commit;
    commit.submit(item{});
}

TEST(GroupCommitDeathTest, AFlushThatSubmitsToItselfIsNamed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH_IF_SUPPORTED(submit_inside_a_flush(), "group_commit.*flush submits to its own");
}

void destroy_during_a_flush() {
    tocsin::manual_reset_event begun;
    tocsin::manual_reset_event go;
    thread_group threads;
    group_commit<item> commit([&](commit_group<item>) {
        begun.set();
        go.wait();
    });
    threads.start("leader", [&] { commit.submit(item{}); });
    begun.wait();
}

TEST(GroupCommitDeathTest, DestructionDuringAFlushIsNamed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH_IF_SUPPORTED(destroy_during_a_flush(), "group_commit destroyed");
}

#endif

}  // namespace

// Counts what a thread allocates; all forms of new end here.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
