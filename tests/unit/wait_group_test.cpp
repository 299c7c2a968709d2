// SPDX-License-Identifier: Apache-2.0
// What <tocsin/wait_group.hpp> promises: a count that goes up and down, and a gate that is open while it is zero.
#include "facts.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_group.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using tocsin::wait_any;
using tocsin::wait_group;
using tocsin::wait_status;

constinit wait_group in_a_global;
static_assert(sizeof(wait_group) == 8);

TEST(WaitGroup, IsOpenWhileTheCountIsZero) {
    EXPECT_TRUE(in_a_global.try_wait());
    wait_group group(2);
    EXPECT_FALSE(group.try_wait());
    group.done();
    EXPECT_FALSE(group.try_wait());
    group.done();
    EXPECT_TRUE(group.try_wait());
    group.wait();
    group.add(3);
    EXPECT_FALSE(group.try_wait());
    group.done(2);
    group.add();
    group.done(0);
    group.add(0);
    EXPECT_FALSE(group.try_wait());
    group.done(2);
    EXPECT_TRUE(group.try_wait());
    group.add(0);
    EXPECT_TRUE(group.try_wait());
    group.done(0);
    EXPECT_TRUE(group.try_wait());
}

TEST(WaitGroup, WaitsForJobsThatAddJobs) {
    wait_group jobs;
    std::atomic<int> worked{0};
    thread_group threads;
    jobs.add(4);
    for (int i = 0; i != 4; ++i) {
        threads.start("works", [&] {
            for (int round = 0; round != 500; ++round) {
                jobs.add(2);
                jobs.done();
                ++worked;
                jobs.done();
            }
            jobs.done();
        });
    }
    jobs.wait();
    EXPECT_EQ(worked, 2000);
    threads.join();
}

TEST(WaitGroup, TheLastDoneReleasesAllEvenIfAnAddFollows) {
    wait_group jobs(1);
    thread_group threads;
    for (int i = 0; i != 3; ++i) threads.start("waits", [&] { jobs.wait(); });
    support::until_parked(&jobs, 3);
    jobs.done();
    jobs.add();
    threads.join();
    EXPECT_FALSE(jobs.try_wait());
    jobs.done();
}

TEST(WaitGroup, WaitsEndByTimeOrStop) {
    wait_group jobs(1);
    std::stop_source stop;
    EXPECT_EQ(jobs.wait_for(1ms), wait_status::timed_out);
    EXPECT_EQ(jobs.wait_until(std::chrono::steady_clock::now()), wait_status::timed_out);
    stop.request_stop();
    EXPECT_EQ(jobs.wait(stop.get_token()), wait_status::stopped);
    jobs.done();
    EXPECT_EQ(jobs.wait(stop.get_token()), wait_status::signaled);
}

TEST(WaitGroup, IsASource) {
    wait_group jobs(1);
    tocsin::auto_reset_event event;
    EXPECT_EQ(wait_any({.until = 0s}, event, jobs).status, wait_status::timed_out);
    tocsin::wait_set set;
    set.add(jobs, 7);
    tocsin::ready_item item;
    EXPECT_EQ(set.wait({.until = 0s}, {&item, 1}).status, wait_status::timed_out);
    bool ended = false;
    const support::task one = [](auto& group, bool& done) -> support::task {
        (void)co_await tocsin::async_wait_any(group);
        done = true;
    }(jobs, ended);
    EXPECT_FALSE(ended);
    jobs.done();
    EXPECT_TRUE(ended);
    EXPECT_EQ(wait_any(event, jobs).index, 1u);
    EXPECT_EQ(wait_all(jobs), wait_status::signaled);
    EXPECT_EQ(set.wait({&item, 1}).count, 1u);
    EXPECT_TRUE(set.remove(jobs));
}

TEST(WaitGroup, MayBeDestroyedByWhoeverPasses) {
    for (int round = 0; round != 300; ++round) {
        auto jobs = std::make_unique<wait_group>(2);
        thread_group threads;
        for (int i = 0; i != 2; ++i) threads.start("works", [group = jobs.get()] { group->done(); });
        jobs->wait();
        jobs.reset();
        threads.join();
    }
}

// Every thread's jobs are done when its wait after its own add() and done() has passed; the group is used again and
// again, while others leave and reach zero.
TEST(WaitGroup, NobodyPassesAfterAnAddBeforeItsDone) {
    wait_group jobs;
    thread_group threads;
    for (int i = 0; i != 3; ++i) {
        threads.start("adds and does", [&] {
            for (int round = 0; round != 2000; ++round) {
                jobs.add();
                EXPECT_FALSE(jobs.try_wait());
                jobs.done();
            }
        });
    }
    threads.join();
    EXPECT_TRUE(jobs.try_wait());
}

TEST(WaitGroupDeathTest, RefusesNumbersOutOfRange) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(wait_group(1).done(2), "wait_group at .*: counted below zero");
    EXPECT_DEATH_IF_SUPPORTED(wait_group().add(-1), "wait_group at .*: the number is too small");
    EXPECT_DEATH_IF_SUPPORTED(
        {
            wait_group full(wait_group::max());
            full.add();
        },
        "wait_group at .*: counted above the greatest number");
}

}  // namespace
