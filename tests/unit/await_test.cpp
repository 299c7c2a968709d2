// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait: for one, for any, for all; timed out, stopped, destroyed; resumed inline and by an executor.
#include "child.hpp"
#include "clocks.hpp"
#include "countdown.hpp"
#include "facts.hpp"
#include "forms_of_new.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "refused_calls.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/syscall.h>
#endif
#if TOCSIN_ON_POSIX
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#endif

namespace {
thread_local long allocations = 0;
}  // namespace

// Counts what the thread allocates.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* const made = std::malloc(size)) return made;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* gone) noexcept { std::free(gone); }

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

// Resumes when told to.
class hand_cranked {
public:
    void operator()(std::coroutine_handle<> frame) {
        const std::lock_guard held(mutex_);
        ready_.push_back(frame);
    }
    std::size_t run() {
        std::deque<std::coroutine_handle<>> now;
        {
            const std::lock_guard held(mutex_);
            now.swap(ready_);
        }
        for (const auto each : now) each.resume();
        return now.size();
    }
    std::size_t size() {
        const std::lock_guard held(mutex_);
        return ready_.size();
    }
    std::size_t forget() {
        const std::lock_guard held(mutex_);
        return std::exchange(ready_, {}).size();
    }

private:
    std::mutex mutex_;
    std::deque<std::coroutine_handle<>> ready_;
};

template <class Event>
task wait_once(Event& event, int& ended) {
    EXPECT_EQ(co_await async_wait(event), wait_status::signaled);
    ++ended;
}

task note_status(tocsin::source from, tocsin::deadline until, std::stop_token stop,
                 std::optional<wait_status>& status) {
    status = co_await async_wait({.until = until, .stop = stop}, from);
}

#if TOCSIN_ON_POSIX
std::size_t threads_of_this_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}
#endif

TEST(Await, ASetEventIsTakenWithoutSuspending) {
    auto_reset_event event(true);
    int ended = 0;
    const task one = wait_once(event, ended);
    EXPECT_TRUE(one.done());
    EXPECT_FALSE(event.is_set());
}

TEST(Await, ASetResumesInItsThread) {
    auto_reset_event event;
    std::thread::id resumed_in;
    const task one = [](auto_reset_event& on, std::thread::id& in) -> task {
        co_await async_wait(on);
        in = std::this_thread::get_id();
    }(event, resumed_in);
    EXPECT_FALSE(one.done());
    EXPECT_EQ(tocsin::waiting_on(&event), 1u);
    thread_group threads;
    std::thread::id setter;
    threads.start([&] {
        setter = std::this_thread::get_id();
        event.set();
    });
    threads.join();
    EXPECT_TRUE(one.done());
    EXPECT_EQ(resumed_in, setter);
    EXPECT_FALSE(event.is_set());
}

TEST(Await, OneBroadcastReleasesFiveThousandEvenIfAResetFollows) {
    manual_reset_event gate;
    int ended = 0;
    std::vector<task> tasks;
    for (int i = 0; i != 5'000; ++i) tasks.push_back(wait_once(gate, ended));
    EXPECT_EQ(tocsin::waiting_on(&gate), 5'000u);
    gate.set();
    gate.reset();
    EXPECT_EQ(ended, 5'000);
}

TEST(Await, CoroutinesAndThreadsShareOneQueue) {
    auto_reset_event event;
    int ended = 0;
    const task first = wait_once(event, ended);
    thread_group threads;
    threads.start([&] { event.wait(); });
    until_parked(&event, 2);
    const task third = wait_once(event, ended);
    event.set();
    EXPECT_TRUE(first.done());
    event.set();
    threads.join();
    EXPECT_FALSE(third.done());
    event.set();
    EXPECT_TRUE(third.done());
}

// The coroutine joins threads that the same broadcast releases: some before it, some after it.
TEST(Await, ABroadcastReleasesAllThreadsBeforeItResumesACoroutine) {
    manual_reset_event gate;
    thread_group threads;
    threads.start_many(10, "before", [&](int) { gate.wait(); });
    until_parked(&gate, 10);
    bool ended = false;
    const task one = [](manual_reset_event& on, thread_group& others, bool& done) -> task {
        co_await async_wait(on);
        others.join();
        done = true;
    }(gate, threads, ended);
    threads.start_many(10, "behind", [&](int) { gate.wait(); });
    until_parked(&gate, 21);
    const auto setter = std::this_thread::get_id();
    gate.set();
    EXPECT_TRUE(ended);
    EXPECT_EQ(setter, std::this_thread::get_id());
}

TEST(Await, ABroadcastResumesCoroutinesInTheOrderOfTheirArrival) {
    manual_reset_event gate;
    std::vector<int> order;
    std::vector<task> tasks;
    for (int i = 0; i != 20; ++i) {
        tasks.push_back([](manual_reset_event& on, std::vector<int>& seen, int number) -> task {
            co_await async_wait(on);
            seen.push_back(number);
        }(gate, order, i));
    }
    gate.set();
    ASSERT_EQ(order.size(), 20u);
    EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Await, AChainOfCoroutinesDoesNotGrowTheStack) {
    constexpr std::size_t links = 20'000;
    std::deque<auto_reset_event> events(links + 1);
    std::vector<task> tasks;
    for (std::size_t i = 0; i != links; ++i) {
        tasks.push_back([](auto_reset_event& mine, auto_reset_event& next) -> task {
            co_await async_wait(mine);
            next.set();
        }(events[i], events[i + 1]));
    }
    events[0].set();
    EXPECT_TRUE(events[links].is_set());
}

TEST(AwaitAny, TakesTheLowestThatIsReadyAndNothingElse) {
    auto_reset_event a;
    auto_reset_event b(true);
    auto_reset_event c(true);
    any_result result{wait_status::stopped};
    const task one = [](auto& x, auto& y, auto& z, any_result& out) -> task {
        out = co_await async_wait_any(x, y, z);
    }(a, b, c, result);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 1}));
    EXPECT_TRUE(c.is_set());
}

TEST(AwaitAny, IsReleasedByTheFirstThatBecomesReady) {
    auto_reset_event a;
    manual_reset_event b;
    any_result result{wait_status::stopped};
    const task one = [](auto& x, auto& y, any_result& out) -> task { out = co_await async_wait_any(x, y); }(
                                                               a, b, result);
    EXPECT_FALSE(one.done());
    b.set();
    EXPECT_EQ(result, (any_result{wait_status::signaled, 1}));
    EXPECT_EQ(tocsin::waiting_on(&a), 0u);
    a.set();
    EXPECT_TRUE(a.is_set());
}

TEST(AwaitAll, TakesNothingBeforeAllAreReady) {
    auto_reset_event a;
    auto_reset_event b;
    std::optional<wait_status> status;
    const task one = [](auto& x, auto& y, auto& out) -> task { out = co_await async_wait_all(x, y); }(a, b,
                                                                                                      status);
    a.set();
    EXPECT_TRUE(a.is_set());
    EXPECT_FALSE(one.done());
    b.set();
    EXPECT_EQ(status, wait_status::signaled);
    EXPECT_FALSE(a.is_set());
    EXPECT_FALSE(b.is_set());
}

TEST(AwaitAll, TakesWhatIsReadyAtOnceAndRefusesTheSameTwice) {
    auto_reset_event a(true);
    manual_reset_event b(true);
    const task one = [](auto& x, auto& y) -> task { co_await async_wait_all(x, y); }(a, b);
    EXPECT_TRUE(one.done());
    EXPECT_FALSE(a.is_set());
    const task bad = [](auto& x) -> task { co_await async_wait_all(x, x); }(a);
    EXPECT_TRUE(bad.done());
    EXPECT_THROW(bad.rethrow(), std::invalid_argument);
}

TEST(AwaitAll, TakesCustomSourcesAndTimers) {
    support::countdown left(2);
    auto_reset_event event(true);
    manual_reset_event ended;
    const auto begin = std::chrono::steady_clock::now();
    const task one = [](auto& custom, auto& token, auto& out) -> task {
        co_await async_wait_all(custom, token, tocsin::after(20ms));
        out.set();
    }(left, event, ended);
    left.count_down();
    left.count_down();
    ended.wait();
    one.join();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_FALSE(event.is_set());
}

TEST(AwaitAll, WaitsForTimersOfEveryClockHoweverItRuns) {
    support::hand_clock::set(0);
    const auto wait = [](auto until, auto time, auto& out, auto& done) -> task {
        const tocsin::source system = tocsin::at(std::chrono::system_clock::now() + 1ms);
        out = co_await async_wait_all({.until = until}, tocsin::after(20ms), tocsin::at(time), system);
        done.set();
    };
    const auto time = support::hand_clock::now() + 5ms;
    for (const wait_status expected : {wait_status::timed_out, wait_status::signaled}) {
        wait_status result = wait_status::stopped;
        manual_reset_event ended;
        const bool comes = expected == wait_status::signaled;
        const task one = wait(tocsin::deadline(comes ? 10'000ms : 60ms), time, result, ended);
        if (comes) support::hand_clock::set(5);
        ended.wait();
        one.join();
        EXPECT_EQ(result, expected);
    }
}

TEST(AwaitDeadline, PassesAndIsNeverEarlyOnEveryClock) {
    const auto wait_for = [](tocsin::deadline until) {
        auto_reset_event event;
        manual_reset_event ended;
        std::optional<wait_status> status;
        const task one = [](auto& on, tocsin::deadline when, auto& out, auto& done) -> task {
            out = co_await async_wait({.until = when}, on);
            done.set();
        }(event, until, status, ended);
        ended.wait();
        one.join();
        EXPECT_EQ(status, wait_status::timed_out);
        EXPECT_TRUE(until.has_passed());
        EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    };
    wait_for(0s);
    wait_for(15ms);
    wait_for(std::chrono::system_clock::now() + 15ms);
    wait_for(std::chrono::steady_clock::now() - 1h);
    const auto own = support::slow_clock::now() + 5ms;
    wait_for(own);
}

// The order in which 2,000 deadlines pass, the first of them after `lead`. Empty if `lead` was so short that not all
// coroutines were waiting by then.
std::vector<int> order_of_many(std::chrono::milliseconds lead) {
    constexpr int count = 2'000;
    auto_reset_event never;
    std::mutex mutex;
    std::vector<int> order;
    manual_reset_event ended;
    std::vector<task> tasks;
    const auto begin = std::chrono::steady_clock::now() + lead;
    for (int i = 0; i != count; ++i) {
        const int index = (i * 769) % count;  // all of them, in mixed order
        tasks.push_back([](auto& on, auto when, int mine, auto& lock, auto& list, auto& done) -> task {
            const auto how = co_await async_wait({.until = when}, on);
            EXPECT_EQ(how, wait_status::timed_out);
            const std::lock_guard held(lock);
            list.push_back(mine);
            if (list.size() == count) done.set();
        }(never, begin + index * 100us, index, mutex, order, ended));
    }
    const bool in_time = std::chrono::steady_clock::now() < begin;
    ended.wait();
    for (const task& each : tasks) each.join();
    return in_time ? order : std::vector<int>();
}

TEST(AwaitDeadline, ManyPassInOrder) {
    std::vector<int> order;
    for (auto lead = 100ms; order.empty(); lead *= 2) order = order_of_many(lead);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(AwaitDeadline, AnEarlierOneIsNotDelayedByALaterOneAndBothAreWithdrawn) {
    auto_reset_event event;
    manual_reset_event ended;
    std::optional<wait_status> late;
    std::optional<wait_status> later;
    const task one = note_status(event, 1h, {}, late);
    {
        const task gone = note_status(event, 2h, {}, later);
    }
    const task two = [](auto& on, auto& done) -> task {
        EXPECT_EQ(co_await async_wait({.until = 10ms}, on), wait_status::timed_out);
        done.set();
    }(event, ended);
    ended.wait();
    two.join();
    EXPECT_FALSE(later.has_value());
    event.set();
    EXPECT_EQ(late, wait_status::signaled);
}

#if defined(__linux__)
// The commonest use: one request at a time, each with a time-out that never comes. The thread that serves deadlines
// already sleeps until an earlier moment.
TEST(AwaitDeadline, AStartAndAnEndBeforeItMakeNoSystemCall) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer can't follow a child that starts threads";
    const auto wait_and_set = [] {
        auto_reset_event answered;
        std::optional<wait_status> status;
        const task request = note_status(answered, 5h, {}, status);
        answered.set();
        return status == wait_status::signaled;
    };
    const auto prepare = [&] {
        auto_reset_event answered;
        std::optional<wait_status> status;
        const task request = note_status(answered, 5h, {}, status);
        // Until the thread that serves deadlines sleeps, it has not seen this one, and may hold a lock.
        support::until_others_sleep();
        answered.set();
    };
    auto calls = support::system_calls_of(prepare, [&] {
        for (int i = 0; i != 100; ++i)
            if (!wait_and_set()) _exit(1);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
#if defined(SYS_mmap)  // AddressSanitizer takes fresh memory for the frame of each coroutine
    if (support::address_sanitizer) std::erase(calls.numbers, SYS_mmap);
#endif
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}
#endif

TEST(AwaitAny, ATimerIsASource) {
    auto_reset_event event;
    manual_reset_event ended;
    any_result result{wait_status::stopped};
    const task one = [](auto& on, auto& out, auto& done) -> task {
        out = co_await async_wait_any({.until = 1h}, on, tocsin::after(10ms), tocsin::after(1h));
        done.set();
    }(event, result, ended);
    ended.wait();
    one.join();
    EXPECT_EQ(result, (any_result{wait_status::signaled, 1}));
}

TEST(AwaitStop, EndsTheWaitAndTakesNothing) {
    auto_reset_event event;
    std::stop_source stop;
    std::optional<wait_status> status;
    const task one = note_status(event, tocsin::deadline::never(), stop.get_token(), status);
    EXPECT_FALSE(status.has_value());
    stop.request_stop();
    EXPECT_EQ(status, wait_status::stopped);
    event.set();
    EXPECT_TRUE(event.is_set());
    const task two = note_status(event, tocsin::deadline::never(), stop.get_token(), status);
    EXPECT_EQ(status, wait_status::signaled) << "a set event counts before a stop";
    const task three = note_status(event, tocsin::deadline::never(), stop.get_token(), status);
    EXPECT_EQ(status, wait_status::stopped);
}

TEST(AwaitStop, ARequestFromACoroutineEndsManyWaits) {
    auto_reset_event event;
    auto_reset_event start;
    std::stop_source stop;
    std::array<std::optional<wait_status>, 100> status;
    std::vector<task> tasks;
    for (auto& each : status) {
        tasks.push_back(note_status(event, tocsin::deadline::never(), stop.get_token(), each));
    }
    const task stopper = [](auto& on, auto& source) -> task {
        co_await async_wait(on);
        source.request_stop();
    }(start, stop);
    start.set();
    for (const auto& each : status) EXPECT_EQ(each, wait_status::stopped);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

TEST(AwaitExecutor, ResumesWhereItIsToldTo) {
    hand_cranked loop;
    auto_reset_event event;
    bool ended = false;
    const task one = [](auto& on, auto& where, bool& done) -> task {
        co_await async_wait(on).on(where);
        done = true;
    }(event, loop, ended);
    event.set();
    EXPECT_FALSE(ended);
    EXPECT_EQ(loop.run(), 1u);
    EXPECT_TRUE(ended);
}

TEST(AwaitExecutor, MayBeATemporaryAndItsThreadMayResumeAtOnce) {
    thread_group threads;
    std::mutex mutex;
    auto_reset_event event;
    manual_reset_event ended;
    std::thread::id resumed_in;
    const task one = [](auto& on, auto& group, auto& lock, auto& in, auto& done) -> task {
        co_await async_wait(on).on([&group, &lock](std::coroutine_handle<> frame) {
            const std::lock_guard held(lock);
            group.start([frame] { frame.resume(); });
        });
        in = std::this_thread::get_id();
        done.set();
    }(event, threads, mutex, resumed_in, ended);
    event.set();
    ended.wait();
    EXPECT_NE(resumed_in, std::this_thread::get_id());
    threads.join();
}

// Its exceptions leave it.
struct throwing_task {
    struct promise_type {
        throwing_task get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { throw; }
    };
};

// A dispatching executor, such as a strand's: it resumes the coroutine inside the call.
struct dispatching {
    void operator()(std::coroutine_handle<> frame) {
        ++calls;
        frame.resume();
    }
    int calls = 0;
};

TEST(AwaitExecutor, MayResumeInsideTheCall) {
    dispatching executor;
    auto_reset_event event;
    auto_reset_event other;
    std::vector<int> order;
    const task one = [](auto& on, auto& more, auto& where, auto& list) -> task {
        co_await async_wait(on).on(where);
        list.push_back(1);
        const auto how = co_await async_wait_any({.until = 1h}, on, more).on(where);
        EXPECT_EQ(how.index, 1u);
        list.push_back(2);
    }(event, other, executor, order);
    event.set();
    EXPECT_EQ(order, (std::vector{1}));
    other.set();
    EXPECT_EQ(order, (std::vector{1, 2}));
    EXPECT_EQ(executor.calls, 2);
    EXPECT_TRUE(one.done());
}

// The executor is in the coroutine's frame, which is gone when the resumption returns.
TEST(AwaitExecutor, MayFinishTheCoroutineInsideTheCall) {
    auto_reset_event event;
    int ended = 0;
    const auto run = [](auto& on, int& count) -> throwing_task {
        co_await async_wait(on).on([](std::coroutine_handle<> frame) { frame.resume(); });
        co_await async_wait_any({.until = 1h}, on).on([](std::coroutine_handle<> frame) { frame.resume(); });
        ++count;
    };
    run(event, ended);
    event.set();
    EXPECT_EQ(ended, 0);
    event.set();
    EXPECT_EQ(ended, 1);
}

TEST(AwaitExecutor, MayDestroyTheCoroutineInsideTheCall) {
    auto_reset_event event;
    for (const bool limited : {false, true}) {
        const auto destroys = [](std::coroutine_handle<> frame) { frame.destroy(); };
        [](auto& on, bool limits, auto executor) -> throwing_task {
            if (limits) {
                co_await async_wait_any({.until = 1h}, on).on(executor);
            } else {
                co_await async_wait(on).on(executor);
            }
            ADD_FAILURE() << "resumed";
        }(event, limited, destroys);
        event.set();
        EXPECT_TRUE(event.try_wait()) << "given back";
    }
}

TEST(AwaitExecutor, IsCalledWhenEverybodyElseHasBeenReleased) {
    dispatching executor;
    hand_cranked loop;
    manual_reset_event gate;
    std::vector<int> order;
    std::optional<task> second;
    std::optional<task> third;
    const task first = [](auto& on, auto& where, auto& two, auto& three, auto& list) -> task {
        co_await async_wait(on).on(where);
        list.push_back(1);
        two.reset();  // whose wait the same set() has ended
        three.reset();
    }(gate, executor, second, third, order);
    second = [](auto& on, auto& where, auto& list) -> task {
        co_await async_wait(on).on(where);
        list.push_back(2);
    }(gate, loop, order);
    third = [](auto& on, auto& list) -> task {
        co_await async_wait_any({.until = 1h}, on);
        list.push_back(3);
    }(gate, order);
    const task fourth = [](auto& on, auto& where, auto& list) -> task {
        co_await async_wait_any({.until = 1h}, on).on(where);
        list.push_back(4);
    }(gate, executor, order);
    gate.set();
    EXPECT_EQ(order, (std::vector{1, 4}));
    EXPECT_EQ(loop.run(), 0u);
    EXPECT_TRUE(first.done() && fourth.done());
}

TEST(AwaitExecutor, IsCalledAtOnceThoughItsThreadRunsACoroutine) {
    for (const bool dispatched : {false, true}) {
        dispatching executor;
        hand_cranked loop;
        auto_reset_event event;
        auto_reset_event inner;
        const task waits = [](auto& on, auto& where) -> task { co_await async_wait(on).on(where); }(inner,
                                                                                                    loop);
        const task sets = [](auto& on, auto& where, bool there, auto& next, auto& queue) -> task {
            if (there) {
                co_await async_wait(on).on(where);
            } else {
                co_await async_wait(on);
            }
            next.set();
            EXPECT_EQ(queue.run(), 1u) << "handed over inside set()";
        }(event, executor, dispatched, inner, loop);
        event.set();
        EXPECT_TRUE(sets.done() && waits.done());
    }
}

// Each coroutine sets the event of the next.
TEST(AwaitExecutor, ThatResumesInsideTheCallGrowsNoStack) {
    constexpr std::size_t count = 20'000;
    dispatching executor;
    std::vector<auto_reset_event> events(count + 1);
    std::vector<task> all;
    all.reserve(count);
    for (std::size_t i = 0; i != count; ++i) {
        all.push_back([](auto& own, auto& next, auto& where) -> task {
            co_await async_wait(own).on(where);
            next.set();
        }(events[i], events[i + 1], executor));
    }
    events[0].set();
    EXPECT_TRUE(events[count].is_set());
    EXPECT_EQ(executor.calls, static_cast<int>(count));
}

// Each coroutine sets the event of the next while it runs. Sixteen calls nest. From there on, the thread resumes the
// next coroutine when the innermost one suspends or ends, and no set() is lost.
TEST(AwaitExecutor, SixteenCallsNestAndTheNextIsMadeWhenTheInnermostCoroutineEnds) {
    struct nesting {
        int now = 0;
        int deepest = 0;
        std::vector<std::size_t> begun;
        std::vector<std::size_t> ended;
    };
    constexpr std::size_t count = 40;
    constexpr std::size_t max = 16;
    nesting seen;
    dispatching executor;
    std::vector<auto_reset_event> events(count + 1);
    std::vector<task> all;
    for (std::size_t i = 0; i != count; ++i) {
        all.push_back([](auto& own, auto& next, auto& where, nesting& noted, std::size_t number) -> task {
            co_await async_wait(own).on(where);
            noted.begun.push_back(number);
            noted.deepest = std::max(noted.deepest, ++noted.now);
            next.set();
            --noted.now;
            noted.ended.push_back(number);
        }(events[i], events[i + 1], executor, seen, i));
    }
    events[0].set();
    EXPECT_TRUE(events[count].is_set());
    EXPECT_EQ(seen.deepest, static_cast<int>(max));
    ASSERT_EQ(seen.begun.size(), count);
    ASSERT_EQ(seen.ended.size(), count);
    for (std::size_t i = 0; i != count; ++i) EXPECT_EQ(seen.begun[i], i);
    // The sixteenth, and each one after it, runs where the one before it has ended. Then the outer fifteen end.
    for (std::size_t i = 0; i != count - max + 1; ++i) EXPECT_EQ(seen.ended[i], i + max - 1);
    for (std::size_t i = 0; i != max - 1; ++i) EXPECT_EQ(seen.ended[count - 1 - i], i);
}

// What waits at the limit for its executor may still be destroyed, by the coroutine that has released it.
TEST(AwaitExecutor, WhatWaitsBehindSixteenNestedCallsMayBeDestroyed) {
    constexpr std::size_t count = 16;
    dispatching executor;
    std::vector<auto_reset_event> events(count + 1);
    std::optional<task> last;
    std::vector<task> all;
    bool resumed = false;
    for (std::size_t i = 0; i != count; ++i) {
        all.push_back([](auto& own, auto& next, auto& where, std::optional<task>* destroyed) -> task {
            co_await async_wait(own).on(where);
            next.set();
            if (destroyed != nullptr) destroyed->reset();
        }(events[i], events[i + 1], executor, i + 1 == count ? &last : nullptr));
    }
    last = [](auto& own, auto& where, bool& done) -> task {
        co_await async_wait(own).on(where);
        done = true;
    }(events[count], executor, resumed);
    events[0].set();
    EXPECT_FALSE(resumed);
    EXPECT_TRUE(events[count].is_set()) << "given back";
    EXPECT_EQ(executor.calls, static_cast<int>(count));
}

// Refuses what it is given.
struct refusing {
    bool operator()(std::coroutine_handle<>) {
        ++asked;
        return false;
    }
    int asked = 0;
};

TEST(AwaitExecutor, OneThatRefusesLeavesTheCoroutineToTheThreadThatEndsTheWait) {
    refusing closed;
    manual_reset_event gate;
    auto_reset_event other;
    std::vector<std::thread::id> in;
    const task one = [](auto& on, auto& where, auto& list) -> task {
        co_await async_wait(on).on(where);
        list.push_back(std::this_thread::get_id());
    }(gate, closed, in);
    const task two = [](auto& on, auto& more, auto& where, auto& list) -> task {
        const any_result how = co_await async_wait_any(on, more).on(where);
        EXPECT_EQ(how.index, 0u);
        list.push_back(std::this_thread::get_id());
    }(gate, other, closed, in);
    gate.set();
    EXPECT_EQ(closed.asked, 2);
    EXPECT_EQ(in, std::vector(2, std::this_thread::get_id()));
    EXPECT_TRUE(one.done() && two.done());
}

TEST(AwaitDeathTest, AnExceptionThatLeavesAResumedCoroutineEndsTheProgram) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(
        {
            auto_reset_event event;
            [](auto& on) -> throwing_task {
                co_await async_wait(on);
                throw std::runtime_error("left its coroutine");
            }(event);
            try {
                event.set();
            } catch (const std::runtime_error&) {
                std::_Exit(0);
            }
        },
        "left its coroutine");
}

TEST(AwaitDestroyed, LeavesNothingBehind) {
    auto_reset_event a;
    auto_reset_event b;
    std::stop_source stop;
    int ended = 0;
    {
        const task one = wait_once(a, ended);
        const task any = [](auto& x, auto& y, auto token) -> task {
            co_await async_wait_any({.until = 2h, .stop = token}, x, y, tocsin::after(1h));
        }(a, b, stop.get_token());
        const task all = [](auto& x, auto& y) -> task { co_await async_wait_all(x, y, tocsin::after(1h)); }(
                                                  a, b);
        EXPECT_EQ(tocsin::waiting_on(&a), 3u);
    }
    EXPECT_EQ(tocsin::waiting_on(&a), 0u);
    EXPECT_EQ(tocsin::waiting_on(&b), 0u);
    a.set();
    b.set();
    stop.request_stop();
    EXPECT_TRUE(a.is_set());
    EXPECT_TRUE(b.is_set());
    EXPECT_EQ(ended, 0);
}

// One set() has released both; the first that resumes destroys the other.
TEST(AwaitDestroyed, ByACoroutineThatResumesBeforeIt) {
    manual_reset_event gate;
    std::array<task, 2> tasks;
    int ended = 0;
    for (std::size_t i = 0; i != 2; ++i) {
        tasks[i] = [](auto& on, task& other, int& count) -> task {
            co_await async_wait(on);
            ++count;
            other.destroy();
        }(gate, tasks[1 - i], ended);
    }
    gate.set();
    EXPECT_EQ(ended, 1);
}

TEST(AwaitDestroyed, SetsAgainWhatItHadBeenGiven) {
    hand_cranked loop;
    auto_reset_event a;
    auto_reset_event b;
    {
        const task one = [](auto& on, auto& where) -> task { co_await async_wait(on).on(where); }(a, loop);
        const task all = [](auto& x, auto& y, auto& where) -> task {
            co_await async_wait_all(x, y).on(where);
        }(a, b, loop);
        a.set();
        a.set();
        b.set();
        EXPECT_FALSE(a.is_set());
        EXPECT_EQ(loop.forget(), 2u);
    }
    EXPECT_TRUE(a.is_set());
    EXPECT_TRUE(b.is_set());
}

#if TOCSIN_ON_POSIX

TEST(AwaitDescriptor, IsASourceLikeOthers) {
    pipe_ends pipe;
    auto_reset_event event;
    manual_reset_event ended;
    any_result result{wait_status::stopped};
    const task one = [](auto& on, int end, auto& out, auto& done) -> task {
        out = co_await async_wait_any(on, tocsin::readable(end));
        done.set();
    }(event, pipe.out(), result, ended);
    EXPECT_FALSE(one.done());
    pipe.put();
    ended.wait();
    one.join();
    EXPECT_EQ(result, (any_result{wait_status::signaled, 1, tocsin::readiness::readable}));
    const task two = [](int end, auto& out) -> task { out = co_await async_wait_any(tocsin::readable(end)); }(
                                                pipe.out(), result);
    EXPECT_TRUE(two.done());
    EXPECT_EQ(result.index, 0u);
}

// A user's type that converts to the source of a descriptor.
struct listener {
    int end;
    operator tocsin::source() const& { return tocsin::readable(end); }
};

TEST(AwaitDescriptor, MayBeATypeOfYourOwn) {
    pipe_ends pipe;
    const listener input{pipe.out()};
    manual_reset_event ended;
    const task one = [](const listener& from, auto& done) -> task {
        co_await async_wait(from);
        done.set();
    }(input, ended);
    EXPECT_FALSE(one.done());
    pipe.put();
    ended.wait();
    one.join();
}

TEST(AwaitDescriptor, TheSameOneForManyAndManyDestroyed) {
    pipe_ends pipe;
    std::atomic<int> ended{0};
    {
        std::vector<task> tasks;
        std::vector<task> gone;
        for (int i = 0; i != 200; ++i) {
            const auto wait = [](int end, auto& count) -> task {
                co_await async_wait(tocsin::readable(end));
                ++count;
            };
            tasks.push_back(wait(pipe.out(), ended));
            gone.push_back(wait(pipe.out(), ended));
        }
        gone.clear();
        pipe.put();
        for (const task& each : tasks) each.join();
    }
    EXPECT_EQ(ended, 200);
}

// Limits the process to so few descriptors that the system refuses to poll more at once.
class few_descriptors {
public:
    explicit few_descriptors(rlim_t max) {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        rlimit few = before_;
        few.rlim_cur = max;
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    }
    few_descriptors(const few_descriptors&) = delete;
    few_descriptors& operator=(const few_descriptors&) = delete;
    ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

TEST(AwaitDescriptor, ManyMayWaitForFew) {
    pipe_ends pipe;
    std::atomic<int> ended{0};
    const few_descriptors limit(64);
    const auto wait = [](tocsin::source what, auto& count) -> task {
        const any_result found = co_await async_wait_any(what);
        EXPECT_EQ(found.found, tocsin::readiness::readable);
        ++count;
    };
    std::vector<task> tasks;
    using tocsin::readiness;
    for (const readiness asked : {readiness::readable, readiness::readable | readiness::urgent}) {
        for (int i = 0; i != 100; ++i) tasks.push_back(wait(tocsin::ready(pipe.out(), asked), ended));
    }
    EXPECT_EQ(ended, 0);
    pipe.put();
    for (const task& each : tasks) each.join();
    EXPECT_EQ(ended, 200);
}

#if defined(POLLRDHUP)
TEST(AwaitDescriptor, AHangUpThatAnotherAskedForEndsNoWait) {
    using tocsin::readiness;
    for (const bool asks_first : {false, true}) {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        auto_reset_event event;
        any_result result{wait_status::stopped};
        any_result others{wait_status::stopped};
        const auto wait = [](auto& on, tocsin::source what, auto& out) -> task {
            out = co_await async_wait_any(on, what);
        };
        auto_reset_event unused;
        task asks;
        if (asks_first) asks = wait(unused, tocsin::ready(ends[0], readiness::hang_up), others);
        const task one = wait(event, tocsin::ready(ends[0], readiness::urgent), result);
        if (!asks_first) asks = wait(unused, tocsin::ready(ends[0], readiness::hang_up), others);
        ::shutdown(ends[1], SHUT_WR);  // of the two directions, the peer closes its own
        asks.join();
        event.set();
        one.join();
        EXPECT_EQ(others, (any_result{wait_status::signaled, 1, readiness::hang_up}));
        EXPECT_EQ(result, (any_result{wait_status::signaled, 0}));
        ::close(ends[0]);
        ::close(ends[1]);
    }
}
#endif

TEST(AwaitDescriptor, AFailedPollLosesNoToken) {
    pipe_ends pipe;
    hand_cranked executor;
    auto_reset_event event;
    any_result result{wait_status::stopped};
    const task one = [](auto& on, int end, auto& crank, auto& out) -> task {
        out = co_await async_wait_any(on, tocsin::readable(end)).on(crank);
    }(event, pipe.out(), executor, result);
    event.set();
    {
        const few_descriptors limit(1);  // the doorbell needs a second
        const task other = [](int end) -> task { co_await async_wait(tocsin::readable(end)); }(pipe.out());
        other.join();
        EXPECT_THROW(other.rethrow(), std::system_error);
    }
    EXPECT_EQ(executor.run(), 1u);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 0}));
    EXPECT_FALSE(event.is_set());
}

// Waits until all other threads of this process sleep. One of them polls for all coroutines.
void until_others_sleep() {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
        const pid_t thread = std::stoi(each.path().filename().string());
        if (thread != ::gettid()) support::until_sound_asleep(thread);
    }
}

TEST(AwaitDescriptor, NothingHoldsItOnceTheWaitHasEnded) {
    for (const bool destroyed : {false, true}) {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        auto_reset_event event;
        task one = [](auto& on, int end) -> task { co_await async_wait_any(on, tocsin::readable(end)); }(
                                             event, ends[0]);
        until_others_sleep();
        destroyed ? one.destroy() : event.set();
        ::close(ends[0]);  // if a thread still polled it, the peer would not notice
        char nothing;
        EXPECT_EQ(::recv(ends[1], &nothing, 1, MSG_DONTWAIT), 0);
        ::close(ends[1]);
    }
}

TEST(AwaitDescriptor, ABadOneIsRefusedByName) {
    const task one = [](int end) -> task { co_await async_wait(tocsin::readable(end)); }(4'000'000);
    ASSERT_TRUE(one.done());
    EXPECT_THROW(one.rethrow(), std::system_error);
}
#endif

// An event of a user's own, awaited as such.
class named_event {
public:
    void set() { event_.set(); }
    auto operator co_await() noexcept { return tocsin::event_awaiter(event_); }

private:
    auto_reset_event event_;
};

// A program can derive from an awaiter, or keep it as a member.
class counted_wait : public tocsin::event_awaiter<auto_reset_event> {
public:
    using event_awaiter::event_awaiter;

    int await_resume() noexcept {
        EXPECT_EQ(event_awaiter::await_resume(), wait_status::signaled);
        return ++count;
    }
    inline static int count = 0;
};
class timed_wait {
public:
    timed_wait(auto_reset_event& event, std::chrono::milliseconds longest)
        : wait_(async_wait({.until = longest}, event)) {}

    bool await_ready() { return wait_.await_ready(); }
    bool await_suspend(std::coroutine_handle<> frame) { return wait_.await_suspend(frame); }
    bool await_resume() { return wait_.await_resume() == wait_status::signaled; }

private:
    decltype(async_wait({.until = 1ms}, std::declval<auto_reset_event&>())) wait_;
};

TEST(Await, AnAwaiterMayBeABaseOrAMember) {
    counted_wait::count = 0;  // the test may be repeated
    named_event named;
    auto_reset_event event;
    std::vector<int> seen;
    const task one = [](auto& own, auto& on, auto& list) -> task {
        const wait_status how = co_await own;
        EXPECT_EQ(how, wait_status::signaled);
        list.push_back(co_await counted_wait(on));
        list.push_back(co_await timed_wait(on, 1h) ? 10 : 0);
        auto stored = async_wait_any(on);
        const any_result result = co_await stored;
        list.push_back(result.index == 0 ? 20 : 0);
    }(named, event, seen);
    named.set();
    for (int i = 0; i != 3; ++i) {
        EXPECT_FALSE(one.done());
        event.set();
    }
    EXPECT_TRUE(one.done());
    EXPECT_EQ(seen, (std::vector<int>{1, 10, 20}));
}

// Of 64-bit systems: decision 16.
TEST(Await, AWaitForEventsAloneIsSmall) {
    using event_wait = decltype(async_wait(std::declval<auto_reset_event&>()));
    static_assert(sizeof(void*) != 8 || sizeof(tocsin::event_awaiter<auto_reset_event>) <= 160);
    static_assert(sizeof(event_wait) == sizeof(void*));
    static_assert(sizeof(void*) != 8 || sizeof(tocsin::event_awaiter<manual_reset_event, true>) <= 184);
    using any_of_two =
        decltype(async_wait_any(std::declval<auto_reset_event&>(), std::declval<manual_reset_event&>()));
    using limited = decltype(async_wait({.until = 1ms}, std::declval<auto_reset_event&>()));
    using mixed = decltype(async_wait(tocsin::after(1ms)));
    std::printf("one event: %zu bytes; any of two events: %zu; one event with limits: %zu; one timer: %zu\n",
                sizeof(tocsin::event_awaiter<auto_reset_event>), sizeof(any_of_two), sizeof(limited),
                sizeof(mixed));
    EXPECT_LT(sizeof(any_of_two), sizeof(mixed));
    EXPECT_LT(sizeof(limited), sizeof(mixed));
}

TEST(Await, AllocatesNothing) {
    auto_reset_event a;
    auto_reset_event b;
    std::stop_source stop;
    manual_reset_event ended;
    const auto waits = [](auto& x, auto& y, auto token, auto& done) -> task {
        (void)co_await async_wait({.until = 1h, .stop = token}, x);
        (void)co_await async_wait_any({.until = 2h, .stop = token}, x, y, tocsin::after(1h));
        (void)co_await async_wait_all({.until = 2h, .stop = token}, x, y, tocsin::after(0s));
        done.set();
    };
    const task warm = waits(a, b, std::stop_token(), ended);  // starts the timer thread
    const task one = waits(a, b, stop.get_token(), ended);
    const long before = allocations;
    for (int i = 0; i != 4; ++i) {
        a.set();
        b.set();
    }
    stop.request_stop();
    EXPECT_EQ(allocations, before);
    EXPECT_TRUE(ended.is_set());
    EXPECT_TRUE(warm.done() || one.done());
}

#if TOCSIN_ON_POSIX
TEST(Await, EventsAndStopTokensStartNoThread) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    EXPECT_EQ(support::ending_of_child([]() -> int {
                  const auto before = threads_of_this_process();
                  auto_reset_event event;
                  std::stop_source stop;
                  std::optional<wait_status> status;
                  task one = note_status(event, tocsin::deadline::never(), stop.get_token(), status);
                  event.set();
                  if (threads_of_this_process() != before) return 1;
                  task two = note_status(event, 1h, {}, status);
                  if (threads_of_this_process() != before + 1) ::_exit(2);
                  task three = note_status(event, 2h, {}, status);
                  ::_exit(threads_of_this_process() != before + 1 ? 3 : 0);  // two waits are pending
              }),
              "");
}

#if defined(SYS_clone3)
TEST(Await, EachWaitWithoutAThreadForItSaysSoAndLeavesTheSignalsOfItsThreadAlone) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    constexpr int no_filter = 77;
    const auto ending = support::ending_of_child([] {
        if (!support::refuse_call(SYS_clone3, EAGAIN) || !support::refuse_call(SYS_clone, EAGAIN))
            return no_filter;
        const auto says_so = [](auto wait) {
            auto_reset_event event;
            const task one = [](auto& on, auto how) -> task { co_await how(on); }(event, wait);
            if (!one.done() || tocsin::waiting_on(&event) != 0) return false;
            try {
                one.rethrow();
            } catch (const std::system_error& thrown) {
                return thrown.code().value() == EAGAIN;
            }
            return false;
        };
        const pipe_ends pipe;
        sigset_t before, after;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
        for (int i = 0; i != 2; ++i) {
            if (!says_so([](auto& on) { return async_wait({.until = 1h}, on); })) return 1;
            const auto tomorrow = std::chrono::system_clock::now() + 24h;
            if (!says_so([=](auto& on) { return async_wait({.until = tomorrow}, on); })) return 2;
            if (!says_so([&](auto& on) { return async_wait_any(on, tocsin::readable(pipe.out())); }))
                return 3;
        }
        ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
        for (int each = 1; each != NSIG; ++each) {
            if (sigismember(&before, each) != sigismember(&after, each)) return 4;
        }
        return 0;
    });
    if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
    EXPECT_EQ(ending, "");
}
#endif

TEST(Await, AForkedChildWaitsAnewAndMayDestroyWhatWaitedInItsParent) {
    auto_reset_event event;
    std::optional<wait_status> status;
    task parents = note_status(event, 1h, {}, status);
    pipe_ends pipe;
    task reader = [](int end) -> task {
        co_await async_wait({.until = 2h}, tocsin::readable(end));
    }(pipe.out());
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    EXPECT_EQ(support::ending_of_child([&] {
                  parents.destroy();
                  reader.destroy();
                  auto_reset_event fresh;
                  manual_reset_event ended;
                  task own = [](auto& on, auto& done) -> task {
                      if (co_await async_wait({.until = 5ms}, on) == wait_status::timed_out) done.set();
                  }(fresh, ended);
                  ended.wait();
                  return 0;
              }),
              "");
    event.set();
    EXPECT_EQ(status, wait_status::signaled);
}
#endif

}  // namespace
