// SPDX-License-Identifier: Apache-2.0
// What <tocsin/task.hpp> promises: a type for coroutines that is started when it is awaited, and ended by a stop token.
#include "task.hpp"

#include "threads.hpp"

#include <tocsin/channel.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/task.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using namespace tocsin;

task<int> after(manual_reset_event& ready, int value) {
    co_await tocsin::async_wait(ready);
    co_return value;
}

// Waits until it is stopped.
task<std::string> until_stopped(int& stopped) {
    manual_reset_event never;
    const auto stop = co_await tocsin::this_stop_token;
    const auto how = co_await tocsin::async_wait({.stop = stop}, never);
    if (how == wait_status::stopped) ++stopped;
    co_return "stopped";
}

TEST(Task, StartsWhenItIsAwaitedAndReturnsItsResult) {
    manual_reset_event ready(true);
    bool begun = false;
    auto one = [](auto& gate, bool& started) -> task<int> {
        started = true;
        const int first = co_await after(gate, 40);
        auto named = after(gate, 2);
        const int second = co_await named;
        co_return first + second;
    }(ready, begun);
    EXPECT_FALSE(begun);
    EXPECT_EQ(sync_wait(std::move(one)), 42);
    EXPECT_TRUE(begun);
    EXPECT_EQ(
        sync_wait([]() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); }()) != nullptr,
        true);
    sync_wait([]() -> task<> { co_return; }());
}

TEST(Task, ThatIsNeverAwaitedIsDestroyed) {
    auto token = std::make_shared<int>(1);
    {
        const auto one = [](auto kept) -> task<> {
            (void)kept;
            co_return;
        }(token);
        EXPECT_EQ(token.use_count(), 2);
    }
    EXPECT_EQ(token.use_count(), 1);
}

TEST(Task, EndsInAnotherThread) {
    manual_reset_event ready;
    thread_group threads;
    threads.start("waits", [&] { EXPECT_EQ(sync_wait(after(ready, 5)), 5); });
    threads.until_asleep(0);
    ready.set();
    threads.join();
}

TEST(Task, PassesExceptionsOn) {
    const auto fails = []() -> task<int> {
        throw std::runtime_error("left the task");
        co_return 1;
    };
    EXPECT_THROW(sync_wait(fails()), std::runtime_error);
    const auto outer = [&]() -> task<int> {
        int result = 0;
        try {
            result = co_await fails();
        } catch (const std::runtime_error&) {
            result = 3;
        }
        co_return result;
    };
    EXPECT_EQ(sync_wait(outer()), 3);
}

TEST(Task, AChainOfTasksGrowsNoStack) {
    const auto one = [](int value) -> task<int> { co_return value; };
    const auto sum = [&]() -> task<int> {
        int total = 0;
        for (int i = 0; i != 10'000; ++i) total += co_await one(1);
        co_return total;
    };
#if defined(__OPTIMIZE__) || defined(__clang__)  // GCC makes the calls tail calls only when it optimises
    EXPECT_EQ(sync_wait(sum()), 10'000);
#else
    (void)sum;
#endif
}

TEST(Task, HasTheStopTokenOfWhoeverAwaitsIt) {
    int stopped = 0;
    std::stop_source stop;
    stop.request_stop();
    const auto outer = [&]() -> task<std::string> {
        auto inner = co_await until_stopped(stopped);
        co_return inner;
    };
    EXPECT_EQ(sync_wait(outer(), stop.get_token()), "stopped");
    EXPECT_EQ(stopped, 1);
    const auto has_one = []() -> task<bool> {
        const auto token = co_await tocsin::this_stop_token;
        co_return token.stop_possible();
    };
    EXPECT_FALSE(sync_wait(has_one()));
    bool other = true;
    const support::task foreign = [](auto function, bool& result) -> support::task {
        result = co_await function();
    }(has_one, other);
    EXPECT_TRUE(foreign.done());
    EXPECT_FALSE(other) << "a coroutine of another type has no token";
}

TEST(TaskDeathTest, NamesWhatIsWrong) {
    manual_reset_event ready(true);
    task<int> one = after(ready, 1);
    EXPECT_DEATH_IF_SUPPORTED((void)one.result(),
                              "tocsin: task at .*result\\(\\) was called before it has ended");
    const auto await_twice = [](task<int>& of) -> task<> {
        co_await of;
        co_await of;
    };
    EXPECT_DEATH_IF_SUPPORTED(sync_wait(await_twice(one)), "tocsin: task at .*awaited, but has begun before");
    const auto await_and = [&](auto then) {
        task<int> other = after(ready, 2);
        const auto await = [](task<int>& of) -> task<> { (void)co_await of; };
        sync_wait(await(other));
        then(other);
    };
    EXPECT_DEATH_IF_SUPPORTED(await_and([](task<int>& of) { (void)of.result(); }),
                              "tocsin: task at .*its result went to the coroutine");
    EXPECT_DEATH_IF_SUPPORTED(await_and([](task<int>& of) { sync_wait(std::move(of)); }),
                              "tocsin: task at .*a coroutine has awaited it before");
    EXPECT_EQ(sync_wait(std::move(one)), 1);
    EXPECT_DEATH_IF_SUPPORTED((void)one.has_ended(), "tocsin: task at .*moved from");
    EXPECT_DEATH_IF_SUPPORTED(sync_wait(std::move(one)), "tocsin: task at .*moved from");
    EXPECT_DEATH_IF_SUPPORTED(sync_wait(await_twice(one)), "tocsin: task at .*moved from");
}

TEST(WhenAny, StopsTheOthersAndWaitsForThem) {
    manual_reset_event ready;
    int stopped = 0;
    const auto both = [&]() -> task<int> {
        auto one = after(ready, 7);
        auto other = until_stopped(stopped);
        auto third = until_stopped(stopped);
        ready.set();
        const auto first = co_await tocsin::when_any(other, one, third);
        EXPECT_EQ(first, (any_result{wait_status::signaled, 1}));
        EXPECT_TRUE(other.has_ended() && third.has_ended());
        EXPECT_EQ(other.result(), "stopped");
        co_return one.result();
    };
    EXPECT_EQ(sync_wait(both()), 7);
    EXPECT_EQ(stopped, 2);
}

TEST(WhenAny, TakesSourcesBesideTasks) {
    auto_reset_event event(true);
    int stopped = 0;
    const auto both = [&]() -> task<> {
        auto one = until_stopped(stopped);
        const auto first = co_await tocsin::when_any(one, event);
        EXPECT_EQ(first.index, 1u);
    };
    sync_wait(both());
    EXPECT_EQ(stopped, 1);
    EXPECT_FALSE(event.is_set()) << "taken";
}

TEST(WhenAny, IsStoppedFromOutside) {
    std::stop_source stop;
    stop.request_stop();
    int stopped = 0;
    auto_reset_event never;
    const auto both = [&]() -> task<any_result> {
        auto one = until_stopped(stopped);
        const auto first = co_await tocsin::when_any(one, never);
        co_return first;
    };
    EXPECT_EQ(sync_wait(both(), stop.get_token()).status, wait_status::stopped);
    EXPECT_EQ(stopped, 1);
}

TEST(WhenAny, KeepsTheExceptionOfATaskInItsResult) {
    auto_reset_event never;
    const auto both = [&]() -> task<> {
        auto one = []() -> task<> {
            throw std::runtime_error("left the task");
            co_return;
        }();
        const auto first = co_await tocsin::when_any(never, one);
        EXPECT_EQ(first.index, 1u);
        EXPECT_THROW(one.result(), std::runtime_error);
    };
    sync_wait(both());
}

TEST(WhenAny, StopsItsTasksBeforeItFails) {
    int stopped = 0;
    const auto both = [&]() -> task<> {
        auto one = until_stopped(stopped);
        auto closed = tocsin::readable(-1);
        (void)co_await tocsin::when_any(one, closed);
    };
    EXPECT_THROW(sync_wait(both()), std::system_error);
    EXPECT_EQ(stopped, 1);
}

TEST(WhenAny, TasksMayEndInOtherThreads) {
    for (int round = 0; round != 200; ++round) {
        manual_reset_event ready;
        thread_group threads;
        threads.start("sets", [&] { ready.set(); });
        int stopped = 0;
        const auto both = [&]() -> task<int> {
            auto one = after(ready, 1);
            auto other = until_stopped(stopped);
            const auto first = co_await tocsin::when_any(one, other);
            EXPECT_EQ(first.index, 0u);
            co_return one.result();
        };
        EXPECT_EQ(sync_wait(both()), 1);
        EXPECT_EQ(stopped, 1);
        threads.join();
    }
}

}  // namespace
