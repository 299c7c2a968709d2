// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over group_commit. Every submission has one fate, and its submitter learns that
// fate. No two flushes run at once, and nothing is touched that is gone.
#include "support/library_model.hpp"

#include <tocsin/group_commit.hpp>

#include <chrono>
#include <iterator>
#include <memory>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::check;
using model::plain;
using model::run;

struct failure {};

// What the flush does to a submission. The explorer reports unordered accesses by the flush and the submitter as races.
struct submission {
    plain<int> value{0};
    plain<int> flushes{0};
    plain<int> group{0};
    plain<bool> was_left{false};
};

// A group commit whose flush records what it covers. Its data are plain, so two flushes at once are a race.
struct journal {
    explicit journal(group_commit_options options = {}, int failing = 0)
        : failing_group(failing), commit([this](commit_group<submission> group) { flush(group); }, options) {}

    void flush(commit_group<submission> group) {
        for (const auto end = std::chrono::steady_clock::now() + takes;
             std::chrono::steady_clock::now() < end;) {
        }
        groups = groups + 1;
        int size = 0;
        if (first_left != nullptr) check(&group.front() == first_left, "those that were left come first");
        first_left = nullptr;
        if (leaves && (leaving_group == 0 || leaving_group == groups) && group.size() > 1) {
            const auto second = std::next(group.begin());
            for (auto each = second; each != group.end(); ++each) each->was_left = true;
            first_left = &*second;
            group.leave_from(second);
        }
        for (submission& each : group) {
            check(each.value == 7, "what the submitter wrote is visible to the flush");
            each.flushes = each.flushes + 1;
            each.group = groups;
            ++size;
        }
        check(size == static_cast<int>(group.size()), "the group has the size it says");
        covered = covered + size;
        largest = size > largest ? size : static_cast<int>(largest);
        if (groups == failing_group) throw failure();
    }

    std::chrono::microseconds takes{0};
    bool leaves = false;    // all but the first of each group
    int leaving_group = 0;  // or of this one only
    plain<const submission*> first_left{nullptr};
    plain<int> groups{0};
    plain<int> covered{0};
    plain<int> largest{0};
    const int failing_group;
    group_commit<submission> commit;
};

// Submits and checks the result.
commit_status submit(journal& log, const deadline& until = deadline::never(),
                     const detail::stop_token& stop = {}, spin_policy spin = sleep_at_once) {
    submission mine;
    mine.value = 7;
    commit_status how = commit_status::committed;
    bool failed = false;
    try {
        how = log.commit.submit({.until = until, .stop = stop, .spin = spin}, mine);
    } catch (const failure&) {
        failed = true;
    }
    const bool taken = how == commit_status::committed;
    check(mine.flushes == (taken ? 1 : 0), "covered by one flush, or withdrawn and seen by none");
    check(taken || !mine.was_left, "a submission that a flush has left can't be withdrawn");
    if (taken) check(failed == (mine.group == log.failing_group), "told of its own group's result");
    return how;
}

MODEL_TEST(group_commit_model, TwoSubmittersAreEachCoveredOnce, holds_always) {
    journal log;
    r.spawn("one", [&] { submit(log); });
    r.spawn("two", [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 2, "both were covered");
}

MODEL_TEST(group_commit_model, ThreeSubmittersAreEachCoveredOnce, holds_within, 2) {
    journal log;
    for (const char* name : {"one", "two", "three"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 3, "all were covered");
}

// A group of two or more relays its wake-ups. Here one leads and three gather.
MODEL_TEST(group_commit_model, FourSubmittersAreEachCoveredOnce, holds_within, 1) {
    journal log;
    for (const char* name : {"one", "two", "three", "four"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 4, "all were covered");
}

// A thread that submits again during the flush of three leads the next group, and is released behind them.
MODEL_TEST(group_commit_model, ALeaderOfFewIsReleasedBehindTheGroupBeforeIt, holds_within, 1) {
    journal log;
    r.spawn("twice", [&] {
        submit(log);
        submit(log);
    });
    for (const char* name : {"two", "three", "four"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 5, "all were covered");
}

// Flushes are long enough for the threads that join to yield before they sleep.
MODEL_TEST(group_commit_model, AThreadThatYieldsIsCoveredOnce, holds_always) {
    journal log;
    log.takes = std::chrono::microseconds(25);
    submit(log);
    for (const char* name : {"one", "two"})
        r.spawn(name, [&] { submit(log, deadline::never(), {}, spin_policy::adaptive()); });
    r.join_all();
    r.check(log.covered == 3, "all were covered");
}

MODEL_TEST(group_commit_model, AThreadThatSubmitsAgainIsCoveredAgain, holds_within, 2) {
    journal log;
    r.spawn("twice", [&] {
        submit(log);
        submit(log);
    });
    r.spawn("other", [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 3, "three submissions");
}

TEST(group_commit_model, AFailureReachesExactlyItsGroup) {
    for (const int failing : {1, 2}) {
        holds_within(2, [failing](run& r) {
            journal log({}, failing);
            for (const char* name : {"one", "two", "three"}) r.spawn(name, [&] { submit(log); });
            r.join_all();
            r.check(log.covered == 3, "all were covered");
        });
    }
}

MODEL_TEST(group_commit_model, ADeadlineWithdrawsOrWaitsForTheResult, holds_always) {
    journal log;
    int taken = 0;
    r.spawn("timed", [&] { taken += submit(log, some_time()) == commit_status::committed ? 1 : 0; });
    r.spawn("patient", [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

MODEL_TEST(group_commit_model, ATryAfterItsDeadlineIsCoveredIfItLeads, holds_always) {
    journal log;
    int taken = 0;
    const deadline passed = std::chrono::nanoseconds(0);
    r.spawn("tries", [&] { taken += submit(log, passed) == commit_status::committed ? 1 : 0; });
    r.spawn("patient", [&] {
        model::check(submit(log) == commit_status::committed, "the patient one is covered");
        ++taken;
    });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
    r.check(submit(log, passed) == commit_status::committed, "nobody leads any more");
}

MODEL_TEST(group_commit_model, WithdrawalsInTheMiddleLoseNobody, holds_within, 2) {
    journal log;
    int taken = 0;
    for (const char* name : {"timed one", "timed two"}) {
        r.spawn(name, [&] { taken += submit(log, some_time()) == commit_status::committed ? 1 : 0; });
    }
    r.spawn("patient", [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

MODEL_TEST(group_commit_model, AStopWithdrawsOrWaitsForTheResult, holds_within, 2) {
    journal log;
    model::stop_source source;
    int taken = 0;
    r.spawn("stopper", [&] { source.request_stop(); });
    r.spawn("stopped", [&] {
        const auto how = submit(log, deadline::never(), source.get_token());
        taken += how == commit_status::committed ? 1 : 0;
    });
    r.spawn("patient", [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

MODEL_TEST(group_commit_model, ALargestGroupLeavesTheOthersToTheNext, holds_within, 2) {
    journal log({.largest_group = 1});
    for (const char* name : {"one", "two", "three"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 3 && log.groups == 3 && log.largest == 1, "one by one");
}

MODEL_TEST(group_commit_model, AFlushThatLeavesMembersKeepsTheirOrder, holds_within, 2) {
    journal log;
    log.leaves = true;
    r.spawn("twice", [&] {
        submit(log);
        submit(log);
    });
    for (const char* name : {"two", "three"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 4 && log.groups == 4 && log.largest == 1, "one by one");
}

MODEL_TEST(group_commit_model, AFlushThatLeavesMembersKeepsThoseThatMayWithdraw, holds_within, 2) {
    journal log;
    log.leaves = true;
    int taken = 0;
    r.spawn("patient", [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    for (const char* name : {"timed one", "timed two"}) {
        r.spawn(name, [&] { taken += submit(log, some_time()) == commit_status::committed ? 1 : 0; });
    }
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

MODEL_TEST(group_commit_model, AFlushThatLeavesMembersAndFailsFailsNoneOfThem, holds_within, 1) {
    journal log({}, 2);
    log.leaves = true;
    log.leaving_group = 2;  // two that are left by a failing flush form one group, so one of them follows
    for (const char* name : {"one", "two", "three", "four"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 4, "all were covered");
}

MODEL_TEST(group_commit_model, AFlushThatLeavesMembersMakesThemLeadAtOnce, holds_within, 2) {
    journal log({.longest_gathering = std::chrono::hours(1)});
    log.leaves = true;
    int taken = 0;
    for (const char* name : {"timed one", "timed two"}) {
        r.spawn(name,
                [&] { taken += submit(log, std::chrono::minutes(1)) == commit_status::committed ? 1 : 0; });
    }
    r.spawn("patient", [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

MODEL_TEST(group_commit_model, GatheringEndsWhenTheGroupIsFullOrTheTimeIsOver, holds_within, 2) {
    journal log({.largest_group = 2, .longest_gathering = std::chrono::hours(1)});
    for (const char* name : {"one", "two", "three"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 3 && log.largest <= 2, "all were covered, by groups that are not too large");
}

// Only the second submitter ends the first one's gathering: a leader that overlooks a full group waits for ever.
MODEL_TEST(group_commit_model, GatheringWithoutEndEndsWhenTheGroupIsFull, holds_always) {
    journal log({.largest_group = 2, .longest_gathering = std::chrono::nanoseconds::max()});
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { submit(log); });
    r.join_all();
    r.check(log.covered == 2 && log.groups == 1, "in one group");
}

MODEL_TEST(group_commit_model, ALeaderThatWithdrawsLeavesTheLeadToTheNext, holds_within, 2) {
    journal log({.largest_group = 2, .longest_gathering = std::chrono::hours(1)});
    model::stop_source source;
    int taken = 0;
    r.spawn("stopper", [&] { source.request_stop(); });
    for (const char* name : {"stopped", "timed"}) {
        r.spawn(name, [&, timed = name[0] == 't'] {
            const auto how = timed ? submit(log, std::chrono::minutes(1))
                                   : submit(log, deadline::never(), source.get_token());
            taken += how == commit_status::committed ? 1 : 0;
        });
    }
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

// The third member of a group shares a word with later members, unless a stop may release it alone.
MODEL_TEST(group_commit_model, AMemberWithAStopTokenSleepsOnAWordOfItsOwn, holds_within, 2) {
    journal log;
    model::stop_source source;
    int taken = 0;
    r.spawn("stopper", [&] { source.request_stop(); });
    for (const char* name : {"one", "two"})
        r.spawn(name, [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    r.spawn("stopped", [&] {
        const auto how = submit(log, deadline::never(), source.get_token());
        taken += how == commit_status::committed ? 1 : 0;
    });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

MODEL_TEST(group_commit_model, AMemberWithADeadlineMayShareAWord, holds_within, 1) {
    journal log;
    int taken = 0;
    for (const char* name : {"one", "two"})
        r.spawn(name, [&] { taken += submit(log) == commit_status::committed ? 1 : 0; });
    r.spawn("timed", [&] { taken += submit(log, some_time()) == commit_status::committed ? 1 : 0; });
    r.join_all();
    r.check(log.covered == taken, "covered and told so");
}

// The word that two of them share is in the object.
MODEL_TEST(group_commit_model, NoSharedWordIsTouchedAfterTheLastSubmitHasReturned, holds_within, 1) {
    auto log = std::make_unique<journal>();
    model::atomic<int> left{4};
    for (const char* name : {"one", "two", "three", "four"}) {
        r.spawn(name, [&] {
            submit(*log);
            if (left.fetch_sub(1) == 1) log.reset();
        });
    }
    r.join_all();
}

// The last to return destroys the group commit: no other thread may still have a step to make in it.
MODEL_TEST(group_commit_model, NothingIsTouchedAfterTheLastSubmitHasReturned, holds_within, 2) {
    auto log = std::make_unique<journal>();
    model::atomic<int> left{2};
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            submit(*log);
            if (left.fetch_sub(1) == 1) log.reset();
        });
    }
    r.join_all();
}

}  // namespace
