// SPDX-License-Identifier: Apache-2.0
// Many threads submit, withdraw and fail at random. In the end every submission must have had exactly one fate, and its
// submitter must have learned that fate.
#include "random.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/group_commit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

enum class fate : std::uint8_t { untouched, covered, failed };

struct submission {
    fate what = fate::untouched;
    std::uint64_t group = 0;
};

struct group_failed {
    std::uint64_t group;
};

// The results that one thread got.
struct answers {
    std::uint64_t committed = 0;
    std::uint64_t failed = 0;
    std::uint64_t withdrawn = 0;
    std::uint64_t refused = 0;  // the deadline had passed before it was submitted
    std::uint64_t wrong = 0;
};

class storm {
public:
    storm(const group_commit_options& options, std::size_t fails_one_in)
        : commit_([this](commit_group<submission> group) { flush(group); }, options),
          fails_one_in_(fails_one_in) {}

    // Does one part of the work. Each part has a number of its own.
    void run(int part, int threads, int submissions) {
        answers_.resize(static_cast<std::size_t>(threads));
        thread_group group;
        group.start_many(threads, "submitter", [this, part, submissions](int number) {
            random_source random(static_cast<std::uint64_t>(part * 1000 + number) + 1);
            for (int i = 0; i != submissions; ++i) submit(random, answers_[static_cast<std::size_t>(number)]);
        });
    }

    void check(int threads, int submissions) {
        answers all;
        for (const answers& each : answers_) {
            all.committed += each.committed;
            all.failed += each.failed;
            all.withdrawn += each.withdrawn;
            all.wrong += each.wrong;
        }
        const auto counts = commit_.statistics();
        std::printf("%llu committed, %llu failed, %llu withdrawn, in %llu groups up to %zu\n",
                    static_cast<unsigned long long>(all.committed),
                    static_cast<unsigned long long>(all.failed),
                    static_cast<unsigned long long>(all.withdrawn),
                    static_cast<unsigned long long>(counts.groups), counts.largest_group);
        EXPECT_EQ(all.wrong, 0u);
        EXPECT_EQ(overlapping_, 0u);
        EXPECT_EQ(all.committed + all.failed + all.withdrawn,
                  static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(submissions));
        EXPECT_EQ(flushed_, all.committed + all.failed);
        EXPECT_EQ(counts.submissions, flushed_);
        EXPECT_EQ(counts.groups, groups_);
        EXPECT_LE(counts.withdrawn, all.withdrawn);  // those refused at once were never submitted
        EXPECT_EQ(counts.waiting, 0u);
    }

private:
    void flush(commit_group<submission> group) {
        if (inside_.exchange(true, std::memory_order_relaxed)) ++overlapping_;
        ++groups_;
        const bool fails = fails_one_in_ != 0 && random_.one_in(fails_one_in_);
        for (submission& each : group) {
            if (each.what != fate::untouched) ++overlapping_;
            each.what = fails ? fate::failed : fate::covered;
            each.group = groups_;
            ++flushed_;
        }
        if (random_.one_in(4)) std::this_thread::yield();
        if (random_.one_in(64)) std::this_thread::sleep_for(std::chrono::microseconds(random_.below(100)));
        inside_.store(false, std::memory_order_relaxed);
        if (fails) throw group_failed{groups_};
    }

    void submit(random_source& random, answers& result) {
        submission mine;
        try {
            switch (submit_somehow(random, mine)) {
                case commit_status::committed:
                    ++result.committed;
                    if (mine.what != fate::covered) ++result.wrong;
                    break;
                case commit_status::timed_out:
                case commit_status::stopped:
                    ++result.withdrawn;
                    if (mine.what != fate::untouched) ++result.wrong;
                    break;
            }
        } catch (const group_failed& failure) {
            ++result.failed;
            if (mine.what != fate::failed || mine.group != failure.group) ++result.wrong;
        }
    }

    commit_status submit_somehow(random_source& random, submission& mine) {
        const auto soon = std::chrono::nanoseconds(random.below(200'000));
        switch (random.below(8)) {
            case 0: return commit_.submit({.until = soon}, mine);
            case 1: return commit_.submit({.until = std::chrono::system_clock::now() + soon}, mine);
            case 2: return commit_.submit({.until = 1h}, mine);
            case 3: {
                std::stop_source stop;
                // Another thread requests the stop somewhere in the middle of the submission.
                const std::jthread stopper([&, soon] {
                    if (soon > 50us) std::this_thread::yield();
                    stop.request_stop();
                });
                return commit_.submit({.until = soon * 4, .stop = stop.get_token()}, mine);
            }
            default: commit_.submit(mine); return commit_status::committed;
        }
    }

    group_commit<submission> commit_;
    const std::size_t fails_one_in_;
    std::vector<answers> answers_;
    // Only flushes touch these, one at a time; ThreadSanitizer checks that.
    std::atomic<bool> inside_{false};
    random_source random_{0};
    std::uint64_t groups_ = 0;
    std::uint64_t flushed_ = 0;
    std::uint64_t overlapping_ = 0;
};

// The work is done in parts, each with the whole patience, because alongside other busy programs a thread that yields
// loses time.
void run_storms(const group_commit_options& options, std::size_t fails_one_in) {
    constexpr int parts = rounds(10, 2);
    for (const int threads : {2, 8, 64}) {
        const int submissions = rounds(40'000, 6'000) / parts / threads + 1;  // of a thread in a part
        storm all(options, fails_one_in);
        for (int part = 0; part != parts; ++part) all.run(part, threads, submissions);
        all.check(threads, submissions * parts);
    }
}

TEST(GroupCommitStress, EverySubmissionHasOneFateAndItsSubmitterIsToldThatOne) { run_storms({}, 0); }

TEST(GroupCommitStress, FailuresReachExactlyTheirGroup) { run_storms({}, 10); }

TEST(GroupCommitStress, SmallGroupsLoseNobody) { run_storms({.largest_group = 3}, 20); }

TEST(GroupCommitStress, GatheringLosesNobody) {
    run_storms({.largest_group = 6, .longest_gathering = 50us}, 20);
}

// The last thread to return may destroy everything at once. So the memory of a leader that has returned, of a follower
// and of the group commit is freed while other threads have only just got their result.
TEST(GroupCommitStress, NothingIsTouchedAfterTheLastSubmitHasReturned) {
    struct shared {
        group_commit<submission> commit{[](commit_group<submission> group) {
            for (submission& each : group) each.what = fate::covered;
        }};
        std::atomic<int> left;
    };
    constexpr int threads = 4;
    support::starting_line line(threads);
    std::atomic<shared*> current{nullptr};
    const auto submit_all = [&](int number, int submissions) {
        for (int i = 0; i != submissions; ++i) {
            if (number == 0) {
                auto next = std::make_unique<shared>();
                next->left.store(threads);
                current.store(next.release());
            }
            line.arrive();
            shared* const mine = current.load();
            {
                // On the heap, so that AddressSanitizer reports a late access.
                const auto each = std::make_unique<submission>();
                mine->commit.submit(*each);
                EXPECT_EQ(each->what, fate::covered);
            }
            if (mine->left.fetch_sub(1) == 1) delete mine;
            line.arrive();
        }
    };
    // In parts, as above: a thread also yields at the line.
    constexpr int parts = 20;
    for (int part = 0; part != parts; ++part) {
        thread_group group;
        group.start_many(threads, "submitter",
                         [&](int number) { submit_all(number, rounds(20'000, 3'000) / parts); });
    }
}

// Every flush waits until every thread is in its group or in the next group. So one of two groups is large, and each
// wake-up passes down a long chain.
TEST(GroupCommitStress, LargeGroupsWakeUpWhole) {
    const int threads = rounds(500, 50);
    const int each = rounds(50, 20);
    std::atomic<int> active{threads};
    std::atomic<bool> first_flush{false};
    std::uint64_t covered = 0;
    group_commit<submission>* self = nullptr;
    group_commit<submission> commit([&](commit_group<submission> group) {
        covered += group.size();
        first_flush.store(true);
        support::until("waiting for everybody to gather", [&] {
            return self->statistics().waiting + group.size() == static_cast<std::size_t>(active.load());
        });
    });
    self = &commit;
    {
        thread_group group;
        const auto submit_all = [&](int) {
            submission mine;
            for (int i = 0; i != each; ++i) commit.submit(mine);
            active.fetch_sub(1);
        };
        // The first group has one member, so all others gather in the second.
        group.start_many(1, "first submitter", submit_all);
        support::until("the first leader flushes alone", [&] { return first_flush.load(); });
        group.start_many(threads - 1, "submitter", submit_all);
    }
    EXPECT_EQ(covered, static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(each));
    EXPECT_GE(commit.statistics().largest_group, static_cast<std::size_t>(threads) - 1);
}

}  // namespace
