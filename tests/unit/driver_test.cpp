// SPDX-License-Identifier: Apache-2.0
// A driver without a loop: what it tells, what ends inside it, and how it is refused. Loops: driver_loops_test.cpp.
#include "allocations.hpp"
#include "child.hpp"
#include "clocks.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#if TOCSIN_ON_POSIX
#include <fcntl.h>
#include <sys/socket.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

static_assert(!std::is_copy_constructible_v<driver> && !std::is_move_constructible_v<driver>);

class chosen_driver : public driver {
public:
    chosen_driver() { tocsin::set_default_driver(this); }
    template <class Function>
    explicit chosen_driver(Function& changed) : driver(changed) {
        tocsin::set_default_driver(this);
    }
    // Calls run_due() until the coroutine has ended.
    void run(const task& until) {
        while (!until.done()) run_due();
    }

    // Like update(), but remembers the watches.
    template <class Function>
    void note(Function each) {
        update([&](watch one) {
            if (one.asked != readiness::none) {
                ids_[one.descriptor] = one.id;
            } else {
                EXPECT_EQ(one.id, ids_[one.descriptor]) << "a watch ends by the name that it was given";
            }
            each(one);
        });
    }
    // What a loop does that finds this for the descriptor.
    std::size_t find(int descriptor, readiness found) {
        note([](watch) {});
        return notify(ids_[descriptor], found);
    }

private:
    std::map<int, watch_id> ids_;
};

// Under Wine a thread may wake too early.
void sleep_past(steady_clock::time_point when) {
    while (steady_clock::now() < when)
        std::this_thread::sleep_until(when);  // no fact to wait for: its callers say why
}

task sleep(tocsin::deadline until, std::optional<wait_status>& status) {
    auto_reset_event never;
    status = co_await async_wait({.until = until}, never);
}

TEST(Driver, NothingIsDueInANewOne) {
    driver one;
    EXPECT_TRUE(one.next_deadline().is_never());
    EXPECT_EQ(one.poll_timeout(), -1);
    EXPECT_EQ(one.run_due(), 0u);
    EXPECT_EQ(one.notify(driver::watch_id{}, readiness::readable), 0u);
    EXPECT_EQ(one.notify(driver::watch_id{~std::uint64_t{0}}, readiness::readable), 0u);
    one.update([](driver::watch) { FAIL(); });
}

TEST(Driver, NextDeadlineIsTheEarliestOfBothClocks) {
    chosen_driver one;
    std::optional<wait_status> status;
    const auto soon = steady_clock::now() + 1h;
    std::vector<task> all;
    all.push_back(sleep(steady_clock::now() + 3h, status));
    EXPECT_EQ(one.next_deadline().which(), tocsin::deadline::clock::steady);
    all.push_back(sleep(std::chrono::system_clock::now() + 2h, status));
    EXPECT_EQ(one.next_deadline().which(), tocsin::deadline::clock::system);
    all.push_back(sleep(soon, status));
    EXPECT_EQ(one.next_deadline().nanoseconds(), tocsin::deadline(soon).nanoseconds());
    EXPECT_GT(one.poll_timeout(), 3'500'000);
    EXPECT_LE(one.poll_timeout(), 3'600'000);
    EXPECT_EQ(one.run_due(), 0u);
    all.clear();
    EXPECT_TRUE(one.next_deadline().is_never());
}

TEST(Driver, ATimeoutForPollIsRoundedUp) {
    chosen_driver one;
    std::optional<wait_status> status;
    const task sleeper = sleep(1us, status);
    while (!status) {
        const int timeout = one.poll_timeout();
        EXPECT_TRUE(timeout == 0 || timeout == 1);
        // 0 means that the deadline has passed.
        EXPECT_TRUE(timeout != 0 || one.run_due() == 1);
    }
    EXPECT_EQ(status, wait_status::timed_out);
}

TEST(Driver, RunDueLeavesWhatIsLaterThanItsArgument) {
    chosen_driver one;
    std::optional<wait_status> first;
    std::optional<wait_status> second;
    std::optional<wait_status> far;
    const auto now = steady_clock::now();
    const task in_an_hour = sleep(now + 1h, far);
    EXPECT_EQ(one.run_due(now + 24h), 0u) << "a time in the future counts as the present";
    hand_clock::set(0);
    const hand_clock::time_point earlier(1ms);
    const hand_clock::time_point later(10ms);
    const task a = sleep(earlier, first);
    // The driver estimates when the deadline comes: the argument of run_due() is compared with that time.
    const steady_clock::time_point estimated(std::chrono::nanoseconds(one.next_deadline().nanoseconds()));
    const task b = sleep(later, second);
    hand_clock::set(10);
    sleep_past(steady_clock::now() + 10ms);  // no fact to wait for: both estimated times are to pass
    EXPECT_EQ(one.run_due(now), 0u);
    EXPECT_EQ(one.run_due(estimated - 1ns), 0u);
    EXPECT_FALSE(first);
    EXPECT_EQ(one.run_due(estimated), 1u);
    EXPECT_TRUE(first && !second);
    EXPECT_EQ(one.run_due(), 1u);
    EXPECT_TRUE(second);
}

TEST(Driver, ADeadlineThatIsSetInsideRunDueWaitsForTheNext) {
    chosen_driver one;
    const task loop = []() -> task {
        auto_reset_event never;
        for (int i = 0; i != 10; ++i) (void)co_await async_wait({.until = 50us}, never);
    }();
    while (!loop.done()) EXPECT_LE(one.run_due(), 1u);
}

// Both deadlines are due in one call. The first coroutine destroys the second, which nobody has resumed yet.
TEST(Driver, ACoroutineMayDestroyAnotherThatIsDue) {
    chosen_driver one;
    std::optional<wait_status> status;
    hand_clock::set(0);
    const hand_clock::time_point when(1ms);
    std::unique_ptr<task> victim;
    task killer = [](auto until, auto& what) -> task {
        auto_reset_event never;
        (void)co_await async_wait({.until = until}, never);
        what = nullptr;
    }(when, victim);
    victim = std::make_unique<task>(sleep(when, status));
    hand_clock::set(1);
    sleep_past(steady_clock::now() + 1ms);  // no fact to wait for: the estimated times of both are to pass
    EXPECT_EQ(one.run_due(), 2u);
    EXPECT_TRUE(killer.done());
    EXPECT_FALSE(status);
}

TEST(Driver, ACoroutineMayEndEverythingInsideRunDue) {
    chosen_driver one;
    std::optional<wait_status> late;
    auto_reset_event event;
    task other = sleep(1h, late);
    any_result result{wait_status::stopped};
    const task waiter = [](auto& on, auto& found) -> task {
        found = co_await async_wait_any({.until = 1h}, on);
    }(event, result);
    const task first = [](auto& on, task& gone, driver& by) -> task {
        auto_reset_event never;
        (void)co_await async_wait({.until = 1us}, never);
        on.set();
        gone.destroy();
        (void)by.run_due();
        (void)by.next_deadline();
    }(event, other, one);
    one.run(first);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 0}));
    EXPECT_TRUE(one.next_deadline().is_never());
}

TEST(Driver, ChangedIsCalledOnceUntilTheLoopAsksAgain) {
    int calls = 0;
    const auto changed = [&]() noexcept { ++calls; };
    chosen_driver one(changed);
    std::optional<wait_status> status;
    std::vector<task> all;
    all.push_back(sleep(5h, status));
    EXPECT_EQ(calls, 0) << "the loop has not asked yet";
    (void)one.next_deadline();
    all.push_back(sleep(6h, status));
    EXPECT_EQ(calls, 0) << "a later deadline changes nothing";
    all.push_back(sleep(4h, status));
    EXPECT_EQ(calls, 1);
    all.push_back(sleep(3h, status));
    EXPECT_EQ(calls, 1) << "the loop has been told to ask";
    (void)one.next_deadline();
    all.push_back(sleep(2h, status));
    EXPECT_EQ(calls, 2);
    one.update([](driver::watch) {});
    (void)one.run_due();
    all.push_back(sleep(1h, status));
    EXPECT_EQ(calls, 2) << "after run_due(), the loop asks before it sleeps";
}

// The commonest use: one request at a time, each with a time-out that never comes. The loop sleeps until the time-out
// of a request that has ended, and need not be told of later ones.
TEST(Driver, ChangedIsNotCalledForATimeOutThatIsLaterThanTheLoopsSleep) {
    int calls = 0;
    const auto changed = [&]() noexcept { ++calls; };
    chosen_driver one(changed);
    (void)one.next_deadline();
    constexpr int requests = 1'000;
    int ended = 0;
    const auto request = [](auto_reset_event& answered, int& count) -> task {
        EXPECT_EQ(co_await async_wait({.until = 5h}, answered), wait_status::signaled);
        ++count;
    };
    for (int i = 0; i != requests; ++i) {
        auto_reset_event answered;
        const task each = request(answered, ended);
        if (i == 0) (void)one.next_deadline();
        answered.set();
    }
    EXPECT_EQ(ended, requests);
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(one.next_deadline().is_never());
}

TEST(Driver, OneWaitMayNameItsDriver) {
    chosen_driver by_default;
    driver one;
    wait_status status{};
    hand_clock::set(0);
    const task sleeper = [](driver& by, auto& result) -> task {
        auto_reset_event never;
        const hand_clock::time_point when(1ms);
        result = co_await async_wait({.until = when}, never).by(by);
    }(one, status);
    EXPECT_TRUE(by_default.next_deadline().is_never());
    EXPECT_FALSE(one.next_deadline().is_never());
    hand_clock::set(1);
    while (!sleeper.done()) (void)one.run_due();
    EXPECT_EQ(status, wait_status::timed_out);
}

TEST(Driver, ServesOperations) {
    driver one;
    auto_reset_event never;
    int ended = 0;
    auto limited = tocsin::any_operation(
        [&](any_result how) noexcept { ended += how.status == wait_status::timed_out ? 1 : 10; },
        {.until = 1ms}, never);
    auto cancelled = tocsin::any_operation(
        [&](any_result how) noexcept { ended += how.status == wait_status::stopped ? 100 : 1000; },
        {.until = 1h}, never);
    limited.by(one).start();
    cancelled.by(one).start();
    while (ended == 0) (void)one.run_due();
    EXPECT_TRUE(cancelled.cancel());
    EXPECT_EQ(ended, 101);
    EXPECT_TRUE(one.next_deadline().is_never());
}

// An operation that its function starts again uses the driver that the function runs in.
TEST(Driver, AnOperationMayStartAgainInsideRunDue) {
    driver one;
    auto_reset_event never;
    int ended = 0;
    std::function<void()> again;
    auto ticker = tocsin::any_operation(
        [&](any_result) noexcept {
            if (++ended != 3) again();
        },
        {.until = 1ms}, never);
    again = [&] { ticker.start({.until = 1ms}); };
    ticker.by(one).start();
    while (ended != 3) EXPECT_LE(one.run_due(), 1u);
    EXPECT_TRUE(one.next_deadline().is_never());
}

TEST(Driver, ADestroyedDriverIsNoLongerTheDefault) {
    std::optional<wait_status> status;
    {
        const chosen_driver gone;
    }
    const task sleeper = sleep(1ms, status);
    sleeper.join();
    EXPECT_EQ(status, wait_status::timed_out);
}

TEST(Driver, AWaitKeepsTheDriverWithWhichItBegan) {
    std::optional<wait_status> status;
    chosen_driver first;
    const task sleeper = sleep(1us, status);
    {
        chosen_driver second;
        EXPECT_TRUE(second.next_deadline().is_never());
    }
    first.run(sleeper);
    EXPECT_EQ(status, wait_status::timed_out);
}

#if TOCSIN_CHECKED
TEST(DriverDeathTest, IsRefusedWhileAWaitUsesIt) {
    const auto destroy_too_early = [] {
        auto gone = std::make_unique<chosen_driver>();
        std::optional<wait_status> status;
        const task sleeper = sleep(1h, status);
        gone = nullptr;
    };
    EXPECT_DEATH_IF_SUPPORTED(destroy_too_early(), "driver destroyed while asynchronous waits use it: 1 ");
}
#endif

#if TOCSIN_ON_POSIX

TEST(Driver, TheChildOfAForkHasNoDefaultDriver) {
    if (support::thread_sanitizer) GTEST_SKIP() << "a child of a process with threads may start no thread";
    chosen_driver one;
    std::optional<wait_status> status;
    const task before = sleep(1h, status);
    EXPECT_EQ(support::ending_of_child([&] {
                  {
                      const task sleeper = sleep(1ms, status);
                      sleeper.join();
                  }
                  chosen_driver own;
                  const task other = sleep(1ms, status);
                  own.run(other);
                  return status == wait_status::timed_out ? 0 : 1;
              }),
              "");
}

class sockets {
public:
    sockets() {
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    }
    ~sockets() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    sockets(const sockets&) = delete;
    sockets& operator=(const sockets&) = delete;

    int ends[2];
};

// What update() tells, in words: "3:1" for descriptor 3 and readiness 1; with "!" if it is to be registered again.
std::string told_by(chosen_driver& one) {
    std::string all;
    one.note([&](driver::watch each) {
        if (!all.empty()) all += ' ';
        all += std::to_string(each.descriptor) + ':' + std::to_string(static_cast<int>(each.asked));
        if (each.renewed) all += '!';
    });
    return all;
}
std::string told(int descriptor, int asked, const char* renewed = "") {
    return std::to_string(descriptor) + ':' + std::to_string(asked) + renewed;
}

task wait_for(int descriptor, readiness asked, std::optional<any_result>& result) {
    result = co_await async_wait_any(tocsin::ready(descriptor, asked));
}

TEST(DriverDescriptor, UpdateTellsEachChangeOnce) {
    chosen_driver one;
    const sockets pair;
    const int end = pair.ends[0];
    std::optional<any_result> reads;
    std::optional<any_result> urgent;
    task reader = wait_for(end, readiness::readable, reads);
    EXPECT_EQ(told_by(one), told(end, 1));
    EXPECT_EQ(told_by(one), "");
    task second = wait_for(end, readiness::urgent, urgent);
    EXPECT_EQ(told_by(one), told(end, 5));
    second.destroy();
    second = wait_for(end, readiness::urgent, urgent);
    EXPECT_EQ(told_by(one), "") << "what the loop watches is right again";
    second.destroy();
    EXPECT_EQ(told_by(one), told(end, 1));
    reader.destroy();
    reader = wait_for(end, readiness::readable, reads);
    EXPECT_EQ(told_by(one), told(end, 1, "!")) << "the descriptor may have been closed in between";
    reader.destroy();
    EXPECT_EQ(told_by(one), told(end, 0, "!"));
    reader = wait_for(end, readiness::readable, reads);
    reader.destroy();
    EXPECT_EQ(told_by(one), "") << "the loop does not watch it, and need not";
}

TEST(DriverDescriptor, AWaitForErrorsAloneIsWatched) {
    chosen_driver one;
    const sockets pair;
    std::optional<any_result> result;
    const task waiter = wait_for(pair.ends[0], readiness::none, result);
    EXPECT_EQ(told_by(one), told(pair.ends[0], 16));
    EXPECT_EQ(one.find(pair.ends[0], readiness::error), 1u);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 0, readiness::error}));
}

TEST(DriverDescriptor, NotifyEndsTheWaitsThatHaveAskedForWhatWasFound) {
    chosen_driver one;
    const sockets pair;
    const int end = pair.ends[0];
    std::optional<any_result> results[4];
    const task urgent = wait_for(end, readiness::urgent, results[0]);
    const task reader = wait_for(end, readiness::readable, results[1]);
    const task other = wait_for(pair.ends[1], readiness::readable, results[2]);
    const task twice = [](int which, auto& result) -> task {
        result = co_await async_wait_any(tocsin::readable(which), tocsin::ready(which, readiness::urgent));
    }(end, results[3]);
    EXPECT_EQ(one.find(end, readiness::none), 0u);
    EXPECT_EQ(one.find(end, readiness::readable | readiness::writable), 2u);
    EXPECT_EQ(results[1], (any_result{wait_status::signaled, 0, readiness::readable}));
    EXPECT_EQ(results[3], (any_result{wait_status::signaled, 0, readiness::readable}));
    EXPECT_TRUE(!results[0] && !results[2]);
    EXPECT_EQ(one.find(end, readiness::readable), 0u);
    EXPECT_EQ(one.find(end, readiness::error), 1u);
    EXPECT_EQ(one.find(pair.ends[1], readiness::readable), 1u);
}

// The peer has closed its direction only. A loop that watches for that finds it, but a wait for room does not want it.
TEST(DriverDescriptor, AHangUpEndsOnlyTheWaitsThatWantIt) {
    chosen_driver one;
    const sockets pair;
    const int end = pair.ends[0];
    const int size = 4096;
    ASSERT_EQ(::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    while (::send(end, "filling up", 10, MSG_DONTWAIT) > 0) {
    }
    std::optional<any_result> hang_up;
    std::optional<any_result> room;
    const task a = wait_for(end, readiness::hang_up, hang_up);
    const task b = wait_for(end, readiness::writable, room);
    ASSERT_EQ(::shutdown(pair.ends[1], SHUT_WR), 0);
    EXPECT_EQ(one.find(end, readiness::hang_up | readiness::readable), 1u);
    EXPECT_TRUE(hang_up && !room);
    // Now both directions are closed.
    ASSERT_EQ(::shutdown(pair.ends[1], SHUT_RD), 0);
    EXPECT_EQ(one.find(end, readiness::hang_up), 1u);
    EXPECT_TRUE(room);
}

TEST(DriverDescriptor, AClosedOneThatTheLoopCannotWatchEndsTheWait) {
    chosen_driver one;
    int closed = -1;
    std::optional<any_result> result;
    task waiter;
    {
        const sockets pair;
        closed = pair.ends[0];
        waiter = wait_for(closed, readiness::readable, result);
    }
    EXPECT_EQ(one.find(closed, readiness::invalid), 1u);
    EXPECT_TRUE(waiter.done());
    EXPECT_THROW(waiter.rethrow(), std::system_error);
}

// Between the loop's look at a descriptor and its report, other threads may end the wait, close the descriptor, open
// another one with its number, and wait for that.
TEST(DriverDescriptor, AReportOfAnEarlierWatchEndsNoWait) {
    chosen_driver one;
    const sockets pair;
    const int end = pair.ends[0];
    driver::watch first;
    driver::watch second;
    std::optional<any_result> result;
    task waiter = wait_for(end, readiness::readable, result);
    one.update([&](driver::watch each) { first = each; });
    waiter.destroy();
    waiter = wait_for(end, readiness::readable, result);
    EXPECT_EQ(one.notify(first.id, readiness::invalid), 0u);
    EXPECT_EQ(one.notify(first.id, readiness::readable), 0u);
    EXPECT_FALSE(waiter.done());
    one.update([&](driver::watch each) { second = each; });
    EXPECT_TRUE(second.renewed);
    EXPECT_NE(second.id, first.id);
    EXPECT_EQ(one.notify(first.id, readiness::invalid), 0u);
    EXPECT_EQ(one.notify(second.id, readiness::readable), 1u);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 0, readiness::readable}));
}

// The same for an entry of the table that another descriptor has got.
TEST(DriverDescriptor, AReportOfAnEarlierWatchEndsNoWaitForAnotherDescriptor) {
    chosen_driver one;
    const sockets pair;
    driver::watch first;
    std::optional<any_result> result;
    task waiter = wait_for(pair.ends[0], readiness::readable, result);
    one.update([&](driver::watch each) { first = each; });
    waiter.destroy();
    one.update([&](driver::watch each) { EXPECT_EQ(each.id, first.id); });
    waiter = wait_for(pair.ends[1], readiness::readable, result);
    EXPECT_EQ(one.notify(first.id, readiness::readable), 0u);
    EXPECT_EQ(one.find(pair.ends[1], readiness::readable), 1u);
}

// A watch that several waits share keeps its name, as long as one of them follows another without a gap.
TEST(DriverDescriptor, AWatchKeepsItsNameWhileSomebodyWaits) {
    chosen_driver one;
    const sockets pair;
    const int end = pair.ends[0];
    driver::watch first;
    std::optional<any_result> reads;
    std::optional<any_result> urgent;
    task reader = wait_for(end, readiness::readable, reads);
    one.update([&](driver::watch each) { first = each; });
    const task other = wait_for(end, readiness::urgent, urgent);
    reader.destroy();
    one.update([&](driver::watch each) { EXPECT_EQ(each.id, first.id); });
    EXPECT_EQ(one.notify(first.id, readiness::urgent), 1u);
    EXPECT_TRUE(other.done());
}

TEST(DriverDescriptor, OnceTheTableIsLargeEnoughWaitsAllocateNothing) {
    chosen_driver one;
    const sockets pair;
    int rounds = 0;
    const task waiter = [](int end, int& count) -> task {
        auto_reset_event never;
        for (;; ++count) (void)co_await async_wait_any({.until = 1h}, never, tocsin::readable(end));
    }(pair.ends[0], rounds);
    EXPECT_EQ(one.find(pair.ends[0], readiness::readable), 1u);
    const long before = support::allocations();
    while (rounds != 100) {
        (void)one.next_deadline();
        (void)one.find(pair.ends[0], readiness::readable);
        (void)one.run_due();
    }
    EXPECT_EQ(support::allocations(), before);
}

TEST(DriverDescriptor, ManyAreFoundByTheirNumbers) {
    chosen_driver one;
    std::vector<std::unique_ptr<sockets>> pairs;
    std::vector<std::optional<any_result>> results(100);
    std::vector<task> all;
    for (auto& each : results) {
        pairs.push_back(std::make_unique<sockets>());
        all.push_back(wait_for(pairs.back()->ends[0], readiness::readable, each));
    }
    int changes = 0;
    one.note([&](driver::watch) { ++changes; });
    EXPECT_EQ(changes, 100);
    for (std::size_t i = 0; i != pairs.size(); i += 2)
        EXPECT_EQ(one.find(pairs[i]->ends[0], readiness::readable), 1u);
    for (std::size_t i = 0; i != pairs.size(); ++i) EXPECT_EQ(results[i].has_value(), i % 2 == 0);
    for (std::size_t i = 1; i < pairs.size(); i += 2)
        EXPECT_EQ(one.find(pairs[i]->ends[0], readiness::readable), 1u);
    for (const task& each : all) EXPECT_TRUE(each.done());
}

#endif

}  // namespace
