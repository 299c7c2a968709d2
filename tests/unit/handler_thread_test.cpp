// SPDX-License-Identifier: Apache-2.0
// What <tocsin/handler_thread.hpp> promises, sentence by sentence.
#include "child.hpp"
#include "facts.hpp"
#include "next_allocation.hpp"
#include "posix.hpp"
#include "refused_calls.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

// Keeps a handler busy with one job until it is released, or until the end of this object's life.
class obstacle {
public:
    explicit obstacle(handler_thread& handler) {
        handler.post([this] {
            begun_.set();
            go_.wait();
            passed_.set();
        });
        begun_.wait();
    }
    ~obstacle() {
        let_go();
        passed_.wait();
    }
    obstacle(const obstacle&) = delete;
    obstacle& operator=(const obstacle&) = delete;

    void let_go() { go_.set(); }

private:
    tocsin::manual_reset_event begun_;
    tocsin::manual_reset_event go_;
    tocsin::manual_reset_event passed_;
};

// Counts the jobs of this kind that exist. A move does not add one.
struct counted {
    explicit counted(int& alive) : alive_(&alive) { ++*alive_; }
    counted(counted&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    counted& operator=(counted&&) = delete;
    ~counted() {
        if (alive_ != nullptr) --*alive_;
    }

private:
    int* alive_;
};

TEST(Job, RunsOnce) {
    int runs = 0;
    job work([&] { ++runs; });
    EXPECT_TRUE(static_cast<bool>(work));
    work();
    EXPECT_FALSE(static_cast<bool>(work));
    EXPECT_EQ(runs, 1);
}

TEST(Job, TakesAnyCallableAndDestroysItOnce) {
    int alive = 0;
    std::array<char, 100> large{};
    large[99] = 'x';
    struct alignas(64) aligned {
        char value = 'y';
    };
    char seen = 0;
    char seen_aligned = 0;
    job only_moved([held = std::make_unique<int>(3), &seen] { seen = static_cast<char>(*held); });
    only_moved();
    EXPECT_EQ(seen, 3);
    job is_large([large, &seen] { seen = large[99]; });
    is_large();
    EXPECT_EQ(seen, 'x');
    job is_aligned([value = aligned(), &seen_aligned] {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&value) % 64, 0u);
        seen_aligned = value.value;
    });
    is_aligned();
    EXPECT_EQ(seen_aligned, 'y');
    {
        job runs([token = counted(alive)] {});
        job moved = std::move(runs);
        EXPECT_EQ(alive, 1);
        moved();
        EXPECT_EQ(alive, 0);
        job dropped([token = counted(alive)] {});
        EXPECT_EQ(alive, 1);
        dropped = job([] {});
        EXPECT_EQ(alive, 0);
        job throws([token = counted(alive)] { throw 1; });
        EXPECT_THROW(throws(), int);
        EXPECT_EQ(alive, 0);
    }
    EXPECT_EQ(alive, 0);
}

// A job is aligned as a pointer is; jobs next to each other are not all aligned to more.
TEST(Job, AlignsASmallCallableThatAsksForMore) {
    struct alignas(16) aligned {
        std::uintptr_t* where;
        void operator()() const { *where = reinterpret_cast<std::uintptr_t>(this) % 16; }
    };
    static_assert(sizeof(aligned) <= 48 && alignof(aligned) > alignof(void*));
    std::array<std::uintptr_t, 4> beyond;
    beyond.fill(1);
    std::vector<job> jobs;
    for (auto& each : beyond) jobs.emplace_back(aligned{&each});
    for (auto& each : jobs) each();
    EXPECT_EQ(beyond, (std::array<std::uintptr_t, 4>{}));
}

TEST(HandlerThread, IsNeitherCopiedNorMoved) {
    static_assert(!std::is_copy_constructible_v<handler_thread>);
    static_assert(!std::is_move_constructible_v<handler_thread>);
}

TEST(HandlerThread, RunsJobsInOrderInOneThreadOfItsOwn) {
    std::vector<int> order;
    std::vector<std::thread::id> threads;
    {
        handler_thread handler;
        for (int i = 0; i != 100; ++i) {
            handler.post([&, i] {
                order.push_back(i);
                threads.push_back(std::this_thread::get_id());
            });
        }
    }
    ASSERT_EQ(order.size(), 100u);
    for (int i = 0; i != 100; ++i) {
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
        EXPECT_EQ(threads[static_cast<std::size_t>(i)], threads[0]);
    }
    EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(HandlerThread, PostDoesNotWait) {
    handler_thread handler;
    const obstacle busy(handler);
    handler.post([] {});
    handler.post([] {});
    EXPECT_EQ(handler.queued(), 2u);
}

TEST(HandlerThread, SendReturnsTheResult) {
    handler_thread handler;
    EXPECT_EQ(handler.send([] { return 42; }), 42);
    EXPECT_EQ(handler.send([] { return std::string(1000, 'a'); }).size(), 1000u);
    auto moved = handler.send([] { return std::make_unique<int>(5); });
    EXPECT_EQ(*moved, 5);
    int referred = 1;
    int& result = handler.send([&]() -> int& { return referred; });
    EXPECT_EQ(&result, &referred);
    bool ran = false;
    handler.send([&] { ran = true; });
    EXPECT_TRUE(ran);
}

TEST(HandlerThread, SendRunsTheCallableOfTheCaller) {
    struct counter {
        int calls = 0;
        int operator()() { return ++calls; }
    };
    handler_thread handler;
    counter mine;
    EXPECT_EQ(handler.send(mine), 1);
    EXPECT_EQ(handler.send(mine), 2);
    EXPECT_EQ(mine.calls, 2);
}

TEST(HandlerThread, SendThrowsWhatTheJobThrowsAndTheHandlerContinues) {
    handler_thread handler;
    EXPECT_THROW(handler.send([]() -> int { throw std::out_of_range("far"); }), std::out_of_range);
    EXPECT_EQ(handler.send([] { return 1; }), 1);
}

TEST(HandlerThread, SendComesAfterWhatWasQueuedBefore) {
    handler_thread handler;
    int value = 0;
    for (int i = 0; i != 1000; ++i) handler.post([&] { ++value; });
    EXPECT_EQ(handler.send([&] { return value; }), 1000);
}

TEST(HandlerThread, SendFromAJobRunsAtOnceAheadOfTheQueue) {
    handler_thread handler;
    std::vector<int> order;
    handler.send([&] {
        handler.post([&] { order.push_back(3); });
        order.push_back(1);
        EXPECT_EQ(handler.send([&] {
            order.push_back(2);
            return std::this_thread::get_id();
        }),
                  std::this_thread::get_id());
        EXPECT_THROW(handler.send([] { throw 1; }), int);
    });
    handler.join();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(HandlerThread, JobsMayPostJobs) {
    int runs = 0;
    handler_thread handler;
    struct again {
        handler_thread& handler;
        int& runs;
        int left;
        void operator()() const {
            ++runs;
            if (left > 0) handler.post(again{handler, runs, left - 1});
        }
    };
    handler.post(again{handler, runs, 500});
    until("waiting for the last job", [&] { return handler.send([&] { return runs; }) == 501; });
}

TEST(HandlerThread, KnowsItsOwnThread) {
    handler_thread handler;
    handler_thread other;
    EXPECT_FALSE(handler.is_this_thread());
    EXPECT_TRUE(handler.send([&] { return handler.is_this_thread(); }));
    EXPECT_FALSE(other.send([&] { return handler.is_this_thread(); }));
}

TEST(HandlerThread, TheEndRunsEverythingQueued) {
    int runs = 0;
    {
        handler_thread handler;
        const obstacle busy(handler);
        for (int i = 0; i != 100; ++i) handler.post([&] { ++runs; });
    }
    EXPECT_EQ(runs, 100);
}

TEST(HandlerThread, ItsEndIsASourceOfEveryWait) {
    handler_thread handler;
    manual_reset_event gate(true);
    EXPECT_EQ(tocsin::wait_any({.until = 1ms}, handler.ended()).status, tocsin::wait_status::timed_out);
    int ran = 0;
    for (int i = 0; i != 100; ++i) handler.post([&] { ++ran; });
    tocsin::wait_set set;
    set.add(handler.ended(), 7);
    const tocsin::pollable watched(handler.ended());
    manual_reset_event resumed;
    const task waiting = [](handler_thread& of, manual_reset_event& done) -> task {
        co_await tocsin::async_wait(of.ended());
        done.set();
    }(handler, resumed);
    thread_group threads;
    for (int i = 0; i != 2; ++i) {
        threads.start("any", [&] { EXPECT_EQ(tocsin::wait_any(handler.ended()).index, 0u); });
        threads.start("all", [&] {
            EXPECT_EQ(tocsin::wait_all(gate, handler.ended()), tocsin::wait_status::signaled);
            EXPECT_EQ(ran, 100);
        });
    }
    EXPECT_FALSE(resumed.is_set());
    handler.close();
    threads.join();
    resumed.wait();
    waiting.join();
    tocsin::ready_item found[1];
    ASSERT_EQ(set.wait(found).count, 1u);
    EXPECT_EQ(found[0].tag, 7u);
    EXPECT_EQ(ran, 100);
    EXPECT_EQ(tocsin::wait_any(handler.ended()).index, 0u);  // for ever
    EXPECT_TRUE(set.remove(handler.ended()));
}

TEST(HandlerThread, IsAtItsEndAfterACancelToo) {
    handler_thread handler;
    std::vector<job> left;
    thread_group threads;
    {
        const obstacle busy(handler);
        handler.post([] {});
        threads.start("canceller", [&] { left = handler.cancel(); });
        while (!handler.is_closed()) std::this_thread::yield();
        EXPECT_EQ(tocsin::wait_any({.until = 1ms}, handler.ended()).status, tocsin::wait_status::timed_out);
    }
    EXPECT_EQ(tocsin::wait_any(handler.ended()).index, 0u);
    threads.join();
    EXPECT_EQ(left.size(), 1u);
}

TEST(HandlerThread, JoinWaitsUntilEverythingHasRun) {
    handler_thread handler;
    int runs = 0;
    for (int i = 0; i != 100; ++i) handler.post([&] { ++runs; });
    handler.join();
    EXPECT_EQ(runs, 100);
    handler.join();
}

TEST(HandlerThread, TakesNothingAfterTheClose) {
    handler_thread handler;
    bool ran = false;
    EXPECT_FALSE(handler.is_closed());
    handler.close();
    handler.close();
    EXPECT_TRUE(handler.is_closed());
    job late([&] { ran = true; });
    EXPECT_FALSE(handler.post(std::move(late)));
    EXPECT_TRUE(static_cast<bool>(late));
    EXPECT_EQ(handler.try_post(std::move(late)), post_status::closed);
    EXPECT_EQ(handler.post_for(std::move(late), 1h), post_status::closed);
    EXPECT_THROW(handler.send([&] { ran = true; }), handler_closed);
    handler.join();
    EXPECT_FALSE(ran);
    EXPECT_TRUE(static_cast<bool>(late));
}

TEST(HandlerThread, AJobMayCloseItsHandler) {
    handler_thread handler;
    int runs = 0;
    {
        const obstacle busy(handler);
        handler.post([&] {
            handler.join();  // from here only close()
            EXPECT_FALSE(handler.post([] {}));
            ++runs;
        });
        handler.post([&] { ++runs; });
    }
    handler.join();
    EXPECT_EQ(runs, 2);
}

TEST(HandlerThread, AJobThatPostsItselfAgainEndsWithItsHandler) {
    struct again {
        handler_thread& handler;
        std::atomic<long>& runs;
        tocsin::manual_reset_event& several;
        void operator()() {
            if (runs.fetch_add(1) == 100) several.set();
            handler.post(again(*this));
        }
    };
    std::atomic<long> runs{0};
    tocsin::manual_reset_event several;
    {
        handler_thread handler;
        handler.post(again{handler, runs, several});
        several.wait();
    }
    EXPECT_GE(runs.load(), 100);
}

task resume_in(handler_thread& handler, auto_reset_event& event, std::thread::id& in,
               manual_reset_event& ended) {
    co_await tocsin::async_wait(event).on(handler);
    in = std::this_thread::get_id();
    ended.set();
}

TEST(HandlerThread, ResumesCoroutines) {
    handler_thread handler;
    auto_reset_event event;
    manual_reset_event ended;
    std::thread::id in;
    const task one = resume_in(handler, event, in, ended);
    event.set();
    ended.wait();
    one.join();
    EXPECT_EQ(in, handler.send([] { return std::this_thread::get_id(); }));
}

TEST(HandlerThread, ResumesCoroutinesBeyondItsCapacity) {
    tocsin::handler_options bounded;
    bounded.capacity = 1;
    handler_thread handler(bounded);
    manual_reset_event gate;
    std::atomic<int> ended{0};
    std::vector<task> tasks;
    {
        obstacle busy(handler);
        for (int i = 0; i != 100; ++i) {
            tasks.push_back([](auto& where, auto& on, auto& count) -> task {
                co_await tocsin::async_wait_any(on).on(where);
                ++count;
            }(handler, gate, ended));
        }
        gate.set();
        EXPECT_EQ(handler.queued(), 100u);
        EXPECT_EQ(ended, 0);
    }
    handler.join();
    EXPECT_EQ(ended, 100);
}

TEST(HandlerThread, OnceClosedItLeavesACoroutineToTheThreadThatEndsItsWait) {
    handler_thread handler;
    auto_reset_event event;
    manual_reset_event ended;
    std::thread::id in;
    const task one = resume_in(handler, event, in, ended);
    std::stop_source stop;
    tocsin::wait_status how = tocsin::wait_status::signaled;
    const task two = [](auto& where, auto token, auto& status) -> task {
        auto_reset_event never;
        status = co_await tocsin::async_wait({.stop = token}, never).on(where);
    }(handler, stop.get_token(), how);
    handler.close();
    event.set();
    EXPECT_TRUE(one.done());
    EXPECT_EQ(in, std::this_thread::get_id());
    EXPECT_FALSE(event.is_set());
    stop.request_stop();
    EXPECT_TRUE(two.done());
    EXPECT_EQ(how, tocsin::wait_status::stopped);
}

TEST(HandlerThread, ACancelledCoroutineResumesWhenItsJobIsRunOrDropped) {
    for (const bool run : {false, true}) {
        handler_thread handler;
        auto_reset_event event;
        manual_reset_event ended;
        std::thread::id in;
        std::vector<job> left;
        obstacle busy(handler);
        const task one = resume_in(handler, event, in, ended);
        event.set();
        thread_group threads;
        threads.start("cancelling", [&] { left = handler.cancel(); });
        until("closed", [&] { return handler.is_closed(); });
        busy.let_go();
        threads.join();
        ASSERT_EQ(left.size(), 1u);
        EXPECT_FALSE(one.done());
        if (run) left.front()();
        left.clear();
        EXPECT_TRUE(one.done());
        EXPECT_EQ(in, std::this_thread::get_id());
    }
}

TEST(HandlerThread, CancelReturnsWhatHasNotBegunOldestFirst) {
    handler_thread handler;
    std::vector<int> order;
    std::vector<job> left;
    {
        obstacle busy(handler);
        for (int i = 0; i != 10; ++i) handler.post([&, i] { order.push_back(i); });
        thread_group threads;
        threads.start("cancelling", [&] { left = handler.cancel(); });
        until("waiting for the close", [&] { return handler.is_closed(); });
        busy.let_go();
    }
    EXPECT_EQ(left.size() + order.size(), 10u);
    EXPECT_EQ(left.size(), 10u);  // the handler was running a job at the time
    for (job& each : left) each();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_TRUE(handler.cancel().empty());
}

TEST(HandlerThread, AJobMayCancelAllThatAreQueued) {
    handler_thread handler;
    std::vector<int> order;
    std::vector<job> left;
    tocsin::manual_reset_event cancelled;
    {
        const obstacle busy(handler);
        handler.post([&] {
            order.push_back(0);
            handler.post([&] { order.push_back(3); });
            left = handler.cancel();
            cancelled.set();
        });
        handler.post([&] { order.push_back(1); });
        handler.post([&] { order.push_back(2); });
    }
    cancelled.wait();
    handler.join();
    EXPECT_EQ(order, (std::vector<int>{0}));
    EXPECT_EQ(left.size(), 3u);
    for (job& each : left) each();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(HandlerThread, ACancelledSendThrowsWhenItsJobIsDroppedAndReturnsWhenItIsRun) {
    for (const bool run : {false, true}) {
        handler_thread handler;
        std::optional<int> result;
        bool closed = false;
        obstacle busy(handler);
        thread_group threads;
        threads.start("sender", [&] {
            try {
                result = handler.send([] { return 7; });
            } catch (const handler_closed&) {
                closed = true;
            }
        });
        until("waiting for the send", [&] { return handler.queued() == 1; });
        threads.start("cancelling", [&] {
            std::vector<job> left = handler.cancel();
            ASSERT_EQ(left.size(), 1u);
            if (run) left[0]();
        });
        until("waiting for the close", [&] { return handler.is_closed(); });
        busy.let_go();
        threads.join();
        EXPECT_EQ(closed, !run);
        EXPECT_EQ(result.has_value(), run);
    }
}

TEST(HandlerThread, RefusesACapacityOfNothing) {
    EXPECT_THROW(handler_thread({.capacity = 0, .on_exception = {}}), std::invalid_argument);
}

// A busy handler with a full queue of three.
struct full_handler {
    full_handler() {
        for (int i = 0; i != 3; ++i) EXPECT_EQ(handler.try_post([this] { ++runs; }), post_status::posted);
    }

    int runs = 0;
    handler_thread handler{{.capacity = 3, .on_exception = {}}};
    obstacle busy{handler};
};

TEST(BoundedHandlerThread, SaysWhenItIsFull) {
    full_handler full;
    job work([&] { ++full.runs; });
    EXPECT_EQ(full.handler.try_post(std::move(work)), post_status::full);
    EXPECT_TRUE(static_cast<bool>(work));
    EXPECT_EQ(full.handler.queued(), 3u);
    full.busy.let_go();
    full.handler.post(std::move(work));
    EXPECT_FALSE(static_cast<bool>(work));
    full.handler.join();
    EXPECT_EQ(full.runs, 4);
}

TEST(BoundedHandlerThread, PostAndSendWaitForSpace) {
    full_handler full;
    thread_group threads;
    for (int i = 0; i != 5; ++i) {
        threads.start("posting", [&] { full.handler.post([&] { ++full.runs; }); });
        threads.start("sending", [&] { full.handler.send([&] { ++full.runs; }); });
        threads.start("until", [&] {
            EXPECT_EQ(full.handler.post_for([&] { ++full.runs; }, 1h), post_status::posted);
        });
    }
    for (std::size_t i = 0; i != threads.size(); ++i) threads.until_asleep(i);
    EXPECT_EQ(threads.finished(), 0u);
    EXPECT_EQ(full.handler.queued(), 3u);
    full.busy.let_go();
    threads.join();
    full.handler.join();
    EXPECT_EQ(full.runs, 18);
}

TEST(BoundedHandlerThread, GivesUpAtTheDeadline) {
    full_handler full;
    job work([&] { ++full.runs; });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(full.handler.post_for(std::move(work), 20ms), post_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_EQ(full.handler.post_until(std::move(work), std::chrono::system_clock::now()),
              post_status::timed_out);
    EXPECT_EQ(full.handler.post_for(std::move(work), 0s), post_status::timed_out);
    EXPECT_TRUE(static_cast<bool>(work));
    EXPECT_EQ(full.handler.queued(), 3u);
}

TEST(BoundedHandlerThread, GivesUpWhenStopped) {
    full_handler full;
    std::stop_source stop;
    thread_group threads;
    threads.start("posting", [&] {
        EXPECT_EQ(full.handler.post_for([&] { ++full.runs; }, 1h, stop.get_token()), post_status::stopped);
    });
    threads.until_asleep(0);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(full.handler.post_for([] {}, 1h, stop.get_token()), post_status::stopped);
}

TEST(BoundedHandlerThread, ACallThatGivesUpTakesNoSpace) {
    full_handler full;
    std::stop_source stop;
    thread_group threads;
    threads.start("giving up", [&] {
        EXPECT_EQ(full.handler.post_for([] {}, 1h, stop.get_token()), post_status::stopped);
    });
    threads.until_asleep(0);
    threads.start("staying", [&] { full.handler.post([&] { ++full.runs; }); });
    threads.until_asleep(1);
    stop.request_stop();
    threads.until_finished(1);
    full.busy.let_go();
    threads.join();
    full.handler.join();
    EXPECT_EQ(full.runs, 4);
}

TEST(BoundedHandlerThread, TheCloseReleasesCallsThatWaitForSpace) {
    full_handler full;
    std::atomic<int> told{0};
    thread_group threads;
    threads.start_many(4, "posting", [&](int) {
        if (!full.handler.post([&] { ++full.runs; })) told.fetch_add(1);
    });
    threads.start_many(4, "until", [&](int) {
        if (full.handler.post_for([&] { ++full.runs; }, 1h) == post_status::closed) told.fetch_add(1);
    });
    for (std::size_t i = 0; i != threads.size(); ++i) threads.until_asleep(i);
    full.handler.close();
    threads.join();
    EXPECT_EQ(told.load(), 8);
    full.busy.let_go();
    full.handler.join();
    EXPECT_EQ(full.runs, 3);
}

TEST(BoundedHandlerThread, AJobPostsBeyondTheCapacity) {
    full_handler full;
    full.busy.let_go();
    full.handler.send([&] {
        for (int i = 0; i != 10; ++i) full.handler.post([&] { ++full.runs; });
        EXPECT_EQ(full.handler.try_post([] {}), post_status::full);
        EXPECT_GE(full.handler.queued(), 10u);
    });
    full.handler.join();
    EXPECT_EQ(full.runs, 13);
}

TEST(HandlerThread, GivesWhatAPostedJobThrowsToOnException) {
    std::vector<std::string> errors;
    int runs = 0;
    {
        handler_thread handler({.on_exception = [&](std::exception_ptr error) {
            try {
                std::rethrow_exception(std::move(error));
            } catch (const std::exception& known) {
                errors.emplace_back(known.what());
            }
        }});
        handler.post([] { throw std::runtime_error("one"); });
        handler.post([&] { ++runs; });
        handler.post([] { throw std::runtime_error("two"); });
    }
    EXPECT_EQ(errors, (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(runs, 1);
}

void throw_in_a_posted_job() {
    handler_thread handler;
    handler.post([] { throw std::runtime_error("nobody listens"); });
}

TEST(HandlerThreadDeathTest, WhatAPostedJobThrowsEndsTheProgramOtherwise) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH_IF_SUPPORTED(throw_in_a_posted_job(), "nobody listens");
}

void destroy_in_its_own_job() {
    auto* const handler = new handler_thread;
    handler->post([handler] { delete handler; });
    manual_reset_event().wait();
}

TEST(HandlerThreadDeathTest, MayNotBeDestroyedInItsOwnJob) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH_IF_SUPPORTED(destroy_in_its_own_job(), "handler_thread destroyed inside its own job");
}

TEST(HandlerThread, DestroysAJobBeforeTheNextBegins) {
    handler_thread handler;
    int alive = 0;
    const obstacle busy(handler);
    handler.post([token = counted(alive)] {});
    handler.post([&] { EXPECT_EQ(alive, 0); });
}

#if TOCSIN_ON_POSIX
// At the fork, a thread is inside post(): it makes room in the queue, under the lock. A thread that the child starts
// may get the handle that the handler's thread had.
TEST(HandlerThread, TheChildOfAForkOnlyDestroysIt) {
    static std::atomic<bool> posting;
    static manual_reset_event forked;
    posting = false;
    forked.reset();
    int alive = 0;
    std::optional<handler_thread> handler(std::in_place);
    const obstacle busy(*handler);
    handler->post([token = counted(alive)] {});
    thread_group threads;
    threads.start("poster", [&] {
        support::at_next_allocation = [] {
            posting = true;
            forked.wait();
        };
        handler->post([] {});
    });
    until("the poster to hold the lock", [] { return posting.load(); });
    EXPECT_EQ(support::ending_of_child([&] {
                  manual_reset_event destroyed;
                  thread_group of_child;
                  // ThreadSanitizer can't follow a child that starts threads when its parent had several.
                  if (!support::thread_sanitizer)
                      of_child.start_many(3, "of the child", [&](int) { destroyed.wait(); });
                  handler.reset();
                  destroyed.set();
                  of_child.join();
                  return alive == 1 ? 0 : 1;
              }),
              "");
    forked.set();
    threads.join();
}

TEST(HandlerThread, APostToABusyHandlerMakesNoSystemCall) {
    std::optional<handler_thread> handler;
    tocsin::manual_reset_event begun;
    tocsin::manual_reset_event go;
    const auto calls = support::system_calls_of(
        [&] {
            handler.emplace();
            for (int i = 0; i != 200; ++i) handler->post([] {});  // the queue's memory is there already
            handler->send([] {});
            handler->post([&] {
                begun.set();
                go.wait();
            });
            begun.wait();
            for (int i = 0; i != 200; ++i) handler->post([] {});
        },
        [&] {
            for (int i = 0; i != 100; ++i) handler->post([] {});
        });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.count(SYS_futex), 0u);
}
#endif

TEST(HandlerThread, SleepsWhileNothingIsThere) {
    handler_thread handler;
    const pid_t thread = handler.send([] { return support::thread_id(); });
    const pthread_t handle = handler.send([] { return pthread_self(); });
    support::until_asleep(thread);
    const auto before = support::switches_of(thread);
    const auto used = support::cpu_time_of(handle);
    std::this_thread::yield();
    const auto begin = std::chrono::steady_clock::now();
    until("letting time pass", [&] { return std::chrono::steady_clock::now() > begin + 50ms; });
    EXPECT_EQ(support::switches_of(thread).voluntary, before.voluntary);
    EXPECT_EQ(support::cpu_time_of(handle), used);
}

#if TOCSIN_ON_POSIX && defined(SYS_clone3)
TEST(HandlerThread, SaysWhyTheSystemStartsNoThread) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    constexpr int no_filter = 77;
    for (const int error : {EPERM, EAGAIN}) {
        const auto ending = support::ending_of_child([error] {
            if (!support::refuse_call(SYS_clone3, error) || !support::refuse_call(SYS_clone, error))
                return no_filter;
            try {
                const handler_thread none;
                return 1;
            } catch (const std::system_error& thrown) {
                return thrown.code().value() == error ? 0 : 2;
            }
        });
        if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
        EXPECT_EQ(ending, "") << error;
    }
}
#endif

}  // namespace
