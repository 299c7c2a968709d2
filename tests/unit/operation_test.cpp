// SPDX-License-Identifier: Apache-2.0
// Operations: waits that call a function when they end. Ready, ended by others, cancelled, stopped, timed out; started
// again and destroyed in every state; with executors; in memory of the caller.
#include "allocations.hpp"
#include "child.hpp"
#include "clocks.hpp"
#include "countdown.hpp"
#include "facts.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

constexpr any_result first{wait_status::signaled, 0};
constexpr any_result stopped{wait_status::stopped};

// What a function was called with, and how often.
struct record {
    void operator()(any_result how) noexcept {
        last = how;
        ++calls;
    }
    void operator()(wait_status how) noexcept {
        last = {how};
        ++calls;
    }
    any_result last{wait_status::timed_out, 99};
    int calls = 0;
};

// Calls functions when told to.
class hand_cranked {
public:
    void operator()(ended_operation one) {
        const std::lock_guard held(mutex_);
        ready_.push_back(one);
    }
    std::size_t run() {
        std::deque<ended_operation> now;
        {
            const std::lock_guard held(mutex_);
            now.swap(ready_);
        }
        for (const auto each : now) each();
        return now.size();
    }
    std::size_t forget() {
        const std::lock_guard held(mutex_);
        return std::exchange(ready_, {}).size();
    }

private:
    std::mutex mutex_;
    std::deque<ended_operation> ready_;
};

struct refusing {
    bool operator()(ended_operation) {
        ++asked;
        return false;
    }
    int asked = 0;
};

TEST(Operation, ASetCallsTheFunctionInsideTheSet) {
    auto_reset_event event;
    record seen;
    auto wait = any_operation(std::ref(seen), event);
    wait.start();
    EXPECT_EQ(seen.calls, 0);
    EXPECT_EQ(tocsin::waiting_on(&event), 1u);
    event.set();
    EXPECT_EQ(seen.calls, 1);
    EXPECT_EQ(seen.last, first);
    EXPECT_FALSE(event.is_set());
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

TEST(Operation, AReadySourceCallsTheFunctionInsideTheStart) {
    auto_reset_event a;
    manual_reset_event b(true);
    tocsin::counting_semaphore<> permits(2);
    support::countdown done(0);
    record seen;
    auto events = any_operation(std::ref(seen), a, b);
    events.start();
    EXPECT_EQ(seen.last, (any_result{wait_status::signaled, 1}));
    a.set();
    events.start();
    EXPECT_EQ(seen.last, first) << "the lowest index first";
    EXPECT_FALSE(a.is_set());
    auto others = any_operation(std::ref(seen), a, permits, done);
    others.start();
    others.start();
    EXPECT_EQ(seen.last, (any_result{wait_status::signaled, 1}));
    others.start();
    EXPECT_EQ(seen.last, (any_result{wait_status::signaled, 2}));
    EXPECT_EQ(seen.calls, 5);
}

TEST(Operation, TakesItsPlaceInTheQueueOfThreadsAndOperations) {
    auto_reset_event event;
    std::vector<int> order;
    auto one = any_operation([&](any_result) noexcept { order.push_back(1); }, event);
    auto two = any_operation([&](any_result) noexcept { order.push_back(2); }, {.until = 1h}, event);
    one.start();
    two.start();
    event.set();
    event.set();
    EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(Operation, WaitsForAllAtOnce) {
    auto_reset_event a;
    auto_reset_event b;
    record seen;
    auto wait = all_operation(std::ref(seen), a, b);
    wait.start();
    a.set();
    EXPECT_TRUE(a.is_set());
    EXPECT_EQ(seen.calls, 0);
    b.set();
    EXPECT_EQ(seen.calls, 1);
    EXPECT_EQ(seen.last.status, wait_status::signaled);
    EXPECT_FALSE(a.is_set());
    EXPECT_FALSE(b.is_set());
    a.set();
    b.set();
    wait.start();
    EXPECT_EQ(seen.calls, 2) << "ready at the start";
}

TEST(Operation, WaitsForACustomSource) {
    auto_reset_event event;
    support::countdown left(1);
    record seen;
    auto wait = any_operation(std::ref(seen), event, left);
    wait.start();
    left.count_down();
    EXPECT_EQ(seen.last, (any_result{wait_status::signaled, 1}));
}

TEST(OperationCancel, ThatWinsGivesStoppedAndTakesNothing) {
    auto_reset_event event;
    record seen;
    auto wait = any_operation(std::ref(seen), event);
    EXPECT_FALSE(wait.cancel()) << "not started";
    wait.start();
    EXPECT_TRUE(wait.cancel());
    EXPECT_EQ(seen.calls, 1);
    EXPECT_EQ(seen.last, stopped);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
    EXPECT_FALSE(wait.cancel()) << "idle again";
    event.set();
    EXPECT_TRUE(event.is_set());
    EXPECT_EQ(seen.calls, 1);
}

TEST(OperationCancel, ThatLosesLeavesTheResult) {
    hand_cranked loop;
    auto_reset_event event;
    record seen;
    auto wait = any_operation(std::ref(seen), event);
    wait.on(loop).start();
    event.set();
    EXPECT_FALSE(wait.cancel()) << "it has ended, though its function is still to be called";
    EXPECT_EQ(loop.run(), 1u);
    EXPECT_EQ(seen.last, first);
}

TEST(OperationCancel, EndsAWaitForAll) {
    auto_reset_event a(true);
    auto_reset_event b;
    record seen;
    auto wait = all_operation(std::ref(seen), {.until = 1h}, a, b);
    wait.start();
    EXPECT_TRUE(wait.cancel());
    EXPECT_EQ(seen.last.status, wait_status::stopped);
    EXPECT_TRUE(a.is_set());
}

// One thread sets, others cancel, and the operation is started again and again.
TEST(OperationCancel, RacesWithTheEndAndExactlyOneWins) {
    constexpr int rounds = support::rounds(4'000, 400);
    auto_reset_event event;
    auto_reset_event go;
    std::atomic<int> calls{0};
    std::atomic<int> ended_by_cancel{0};
    std::atomic<bool> over{false};
    auto wait = any_operation(
        [&](any_result how) noexcept {
            if (how.status == wait_status::stopped) ++ended_by_cancel;
            ++calls;
            go.set();
        },
        event);
    std::atomic<int> won{0};
    {
        thread_group threads;
        for (int i = 0; i != 2; ++i) {
            threads.start([&] {
                while (!over) won += wait.cancel() ? 1 : 0;
            });
        }
        threads.start([&] {
            while (!over) event.set();
        });
        for (int i = 0; i != rounds; ++i) {
            wait.start();
            go.wait();
        }
        over = true;
        threads.join();
    }
    EXPECT_EQ(calls, rounds);
    EXPECT_EQ(won, ended_by_cancel);
}

TEST(OperationLimits, AStopEndsItAndAReadySourceCountsBeforeTheStop) {
    auto_reset_event event;
    std::stop_source stop;
    record seen;
    auto wait = any_operation(std::ref(seen), {.stop = stop.get_token()}, event);
    wait.start();
    stop.request_stop();
    EXPECT_EQ(seen.last, stopped);
    event.set();
    wait.start();
    EXPECT_EQ(seen.last, first);
    wait.start();
    EXPECT_EQ(seen.last, stopped);
    EXPECT_EQ(seen.calls, 3);
}

TEST(OperationLimits, ADeadlinePassesAndNewLimitsReplaceIt) {
    auto_reset_event event;
    manual_reset_event ended;
    std::optional<any_result> seen;
    const tocsin::deadline until = 10ms;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            seen = how;
            ended.set();
        },
        {.until = until}, event);
    wait.start();
    ended.wait();
    EXPECT_EQ(seen, any_result{wait_status::timed_out});
    EXPECT_TRUE(until.has_passed());
    seen.reset();
    wait.start();
    EXPECT_EQ(seen, any_result{wait_status::timed_out}) << "the same deadline";
    seen.reset();
    wait.start({.until = 1h});
    EXPECT_FALSE(seen.has_value());
    event.set();
    EXPECT_EQ(seen, first);
}

TEST(OperationLimits, ATimerIsASource) {
    auto_reset_event event;
    manual_reset_event ended;
    record seen;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            seen(how);
            ended.set();
        },
        {.until = 1h}, event, tocsin::after(10ms));
    wait.start();
    ended.wait();
    EXPECT_EQ(seen.last, (any_result{wait_status::signaled, 1}));
}

TEST(OperationAgain, FromInsideTheFunction) {
    auto_reset_event event;
    int calls = 0;
    struct again {
        void operator()(any_result) noexcept {
            ++*count;
            start(self);
        }
        int* count;
        void* self;
        void (*start)(void* self) noexcept;
    };
    again function{&calls, nullptr, nullptr};
    auto wait = any_operation(std::ref(function), event);
    function.self = &wait;
    function.start = [](void* self) noexcept { static_cast<decltype(wait)*>(self)->start(); };
    wait.start();
    for (int i = 1; i != 100; ++i) {
        event.set();
        EXPECT_EQ(calls, i);
    }
}

// A trap: each call of the function that is made directly in start() takes room on the stack.
template <class Operation>
void ends_at_once_and_often(Operation& wait, int& left) {
    const int all = left;
    wait.start();
    EXPECT_EQ(left, 0) << "of " << all;
}

// Where the stack is. Not the address of a variable, which AddressSanitizer may keep elsewhere.
#if defined(__GNUC__)
[[gnu::noinline]] const void* here() { return __builtin_frame_address(0); }
#else
const void* here() {
    const void* volatile variable = nullptr;
    return const_cast<const void**>(&variable);
}
#endif

TEST(OperationAgain, ManyTimesWhileReadyWithoutGrowingTheStack) {
    constexpr int times = 1'000'000;
    manual_reset_event gate(true);
    tocsin::counting_semaphore<> permits(times);
    void (*again)(void*) noexcept = nullptr;
    void* self = nullptr;
    int left = times;
    const void* lowest = here();
    const void* highest = lowest;
    const auto function = [&](any_result) noexcept {
        const void* const at = here();
        if (std::less<>()(at, lowest)) lowest = at;
        if (std::less<>()(highest, at)) highest = at;
        if (--left != 0) again(self);
    };
    auto of_event = any_operation(function, gate);
    again = [](void* of) noexcept { static_cast<decltype(of_event)*>(of)->start(); };
    self = &of_event;
    ends_at_once_and_often(of_event, left);
    auto of_permits = any_operation(function, permits);
    again = [](void* of) noexcept { static_cast<decltype(of_permits)*>(of)->start(); };
    self = &of_permits;
    left = times;
    ends_at_once_and_often(of_permits, left);
    EXPECT_LT(static_cast<const char*>(highest) - static_cast<const char*>(lowest), 512 * 1024);
}

TEST(OperationDestroyed, LeavesNothingBehind) {
    auto_reset_event a;
    auto_reset_event b;
    std::stop_source stop;
    record seen;
    {
        auto idle = any_operation(std::ref(seen), a);
        auto one = any_operation(std::ref(seen), a);
        auto any =
            any_operation(std::ref(seen), {.until = 2h, .stop = stop.get_token()}, a, b, tocsin::after(1h));
        auto all = all_operation(std::ref(seen), a, b, tocsin::after(1h));
        one.start();
        any.start();
        all.start();
        EXPECT_EQ(tocsin::waiting_on(&a), 3u);
    }
    EXPECT_EQ(tocsin::waiting_on(&a), 0u);
    EXPECT_EQ(tocsin::waiting_on(&b), 0u);
    a.set();
    b.set();
    stop.request_stop();
    EXPECT_TRUE(a.is_set() && b.is_set());
    EXPECT_EQ(seen.calls, 0);
}

TEST(OperationDestroyed, SetsAgainWhatItHadBeenGiven) {
    hand_cranked loop;
    auto_reset_event a;
    auto_reset_event b;
    auto_reset_event ready(true);
    tocsin::counting_semaphore<> permits(1);
    record seen;
    {
        auto one = any_operation(std::ref(seen), a);
        auto all = all_operation(std::ref(seen), a, b);
        auto at_start = any_operation(std::ref(seen), ready);
        auto permit = any_operation(std::ref(seen), permits);
        one.on(loop).start();
        all.on(loop).start();
        at_start.on(loop).start();
        permit.on(loop).start();
        a.set();
        a.set();
        b.set();
        EXPECT_FALSE(a.is_set() || b.is_set() || ready.is_set() || permits.try_acquire());
        EXPECT_EQ(loop.forget(), 4u);
    }
    EXPECT_TRUE(a.is_set() && b.is_set() && ready.is_set() && permits.try_acquire());
    EXPECT_EQ(seen.calls, 0);
}

// One set() has ended both; the function that is called first destroys the other operation.
TEST(OperationDestroyed, ByAFunctionThatIsCalledBeforeItsOwn) {
    manual_reset_event gate;
    int calls = 0;
    const auto make = [&](auto& of_other) {
        return [&](any_result) noexcept {
            ++calls;
            of_other.reset();
        };
    };
    struct any_held {
        virtual ~any_held() = default;
    };
    std::array<std::unique_ptr<any_held>, 2> both;
    const auto hold = [&](std::size_t i) {
        struct held final : any_held {
            held(decltype(make(both[0])) function, manual_reset_event& on)
                : wait(any_operation(function, on)) {
                wait.start();
            }
            decltype(any_operation(std::declval<decltype(make(both[0]))>(), gate)) wait;
        };
        both[i] = std::make_unique<held>(make(both[1 - i]), gate);
    };
    hold(0);
    hold(1);
    gate.set();
    EXPECT_EQ(calls, 1);
}

TEST(OperationDestroyed, InItsOwnFunctionAndByAThreadThatTheFunctionTells) {
    auto_reset_event event;
    manual_reset_event gone;
    {
        using function = void (*)(any_result) noexcept;
        static void (*destroy)() noexcept;
        using held = decltype(any_operation(std::declval<function>(), event));
        static std::optional<held> wait;
        destroy = []() noexcept { wait.reset(); };
        wait.emplace([](any_result) noexcept { destroy(); }, tocsin::limits(), event);
        wait->start();
        event.set();
        EXPECT_FALSE(wait.has_value());
    }
    thread_group threads;
    for (int i = 0; i != 200; ++i) {
        auto_reset_event called;
        auto* const made = new auto(any_operation([&](any_result) noexcept { called.set(); }, event));
        std::unique_ptr<std::remove_pointer_t<decltype(made)>> wait(made);
        wait->start();
        threads.start([&] { event.set(); });
        called.wait();
        wait.reset();
        threads.join();
    }
}

TEST(OperationExecutor, CallsTheFunctionHoweverTheWaitEnds) {
    hand_cranked loop;
    auto_reset_event event(true);
    record seen;
    auto wait = any_operation(std::ref(seen), {.until = 1h}, event);
    wait.on(loop).start();
    EXPECT_EQ(seen.calls, 0) << "not inside start()";
    EXPECT_EQ(loop.run(), 1u);
    EXPECT_EQ(seen.last, first);
    wait.start();
    event.set();
    EXPECT_EQ(loop.run(), 1u);
    wait.start();
    EXPECT_TRUE(wait.cancel());
    EXPECT_EQ(seen.calls, 2);
    EXPECT_EQ(loop.run(), 1u);
    EXPECT_EQ(seen.last, stopped);
    wait.start({.until = 0s});
    EXPECT_EQ(loop.run(), 1u);
    EXPECT_EQ(seen.last.status, wait_status::timed_out);
}

TEST(OperationExecutor, OneThatRefusesLeavesTheFunctionToTheThreadThatEndsTheWait) {
    refusing closed;
    auto_reset_event event(true);
    record seen;
    auto wait = any_operation(std::ref(seen), event);
    wait.on(closed).start();
    EXPECT_EQ(seen.calls, 1);
    wait.start();
    event.set();
    EXPECT_EQ(seen.calls, 2);
    wait.start();
    EXPECT_TRUE(wait.cancel());
    EXPECT_EQ(seen.calls, 3);
    EXPECT_EQ(closed.asked, 3);
}

TEST(OperationExecutor, MayCallTheFunctionInAnotherThreadAtOnce) {
    thread_group threads;
    std::mutex mutex;
    auto_reset_event event;
    auto_reset_event called;
    std::thread::id in;
    auto executor = [&](ended_operation one) {
        const std::lock_guard held(mutex);
        threads.start([one] { one(); });
    };
    auto wait = any_operation(
        [&](any_result) noexcept {
            in = std::this_thread::get_id();
            called.set();
        },
        event);
    wait.on(executor).start();
    event.set();
    called.wait();
    EXPECT_NE(in, std::this_thread::get_id());
    event.set();
    wait.start();
    called.wait();
    threads.join();
}

TEST(OperationExecutor, AHandlerThreadIsOne) {
    tocsin::handler_thread handler;
    auto_reset_event event;
    auto_reset_event called;
    bool there = false;
    auto wait = any_operation(
        [&](any_result) noexcept {
            there = handler.is_this_thread();
            called.set();
        },
        event);
    wait.on(handler).start();
    event.set();
    called.wait();
    EXPECT_TRUE(there);
    handler.close();
    wait.start();
    event.set();
    called.wait();
    EXPECT_FALSE(there) << "closed: it refuses";
}

TEST(OperationErrors, StartThrowsAndTheOperationIsIdle) {
    auto_reset_event event;
    record seen;
    auto twice = all_operation(std::ref(seen), event, event);
    EXPECT_THROW(twice.start(), std::invalid_argument);
    EXPECT_FALSE(twice.cancel());
    EXPECT_THROW(twice.start(), std::invalid_argument);
    tocsin::source nothing;
    auto empty = any_operation(std::ref(seen), nothing);
    EXPECT_THROW(empty.start(), std::invalid_argument);
    EXPECT_EQ(seen.calls, 0);
    static_assert(!noexcept(empty.start()));
    auto certain = any_operation(std::ref(seen), event);
    static_assert(noexcept(certain.start()));
}

#if TOCSIN_ON_POSIX

TEST(OperationDescriptor, IsASourceLikeOthers) {
    pipe_ends pipe;
    auto_reset_event event;
    auto_reset_event ended;
    record seen;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            seen(how);
            ended.set();
        },
        event, tocsin::readable(pipe.out()));
    wait.start();
    event.set();
    ended.wait();
    EXPECT_EQ(seen.last, first);
    wait.start();
    pipe.put();
    ended.wait();
    EXPECT_EQ(seen.last, (any_result{wait_status::signaled, 1, tocsin::readiness::readable}));
    EXPECT_EQ(wait.error(), 0);
    wait.start();
    EXPECT_EQ(seen.calls, 3) << "ready at the start";
}

TEST(OperationDescriptor, ThatIsNotOpenThrowsAtTheStart) {
    record seen;
    auto wait = any_operation(std::ref(seen), tocsin::readable(987'654));
    EXPECT_THROW(wait.start(), std::system_error);
    EXPECT_EQ(seen.calls, 0);
}

// Limits the process to so few descriptors that the system refuses to poll more at once.
class few_descriptors {
public:
    few_descriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit few = before_;
        few.rlim_cur = 12;
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

#if defined(__linux__)
TEST(OperationDescriptor, ThatTheSystemRefusesToPollIsToldToTheFunction) {
    std::array<pipe_ends, 20> pipes;
    std::vector<tocsin::source> sources;
    for (const pipe_ends& each : pipes) sources.push_back(tocsin::readable(each.out()));
    struct one {
        const tocsin::operation_base* self = nullptr;
        any_result how{wait_status::stopped};
        int error = 0;
        manual_reset_event ended;
    };
    one seen;
    const auto call = [](void* context, const any_result& how) noexcept {
        auto& of = *static_cast<one*>(context);
        of.how = how;
        of.error = of.self->error();
        of.ended.set();
    };
    const auto memory = std::make_unique<char[]>(tocsin::operation_size(sources.size()));
    auto& many = tocsin::span_operation::make(memory.get(), false, sources, tocsin::limits(), call, &seen);
    seen.self = &many;
    many.start();
    const few_descriptors few;
    // If the background thread polls already, another request makes it poll a new table. That ends both operations, or
    // `many` only.
    manual_reset_event other_ended;
    auto another = any_operation([&](any_result) noexcept { other_ended.set(); },
                                 tocsin::readable(sources[0].descriptor()));
    another.start();
    seen.ended.wait();
    EXPECT_EQ(seen.error, EINVAL);
    EXPECT_EQ(seen.how, (any_result{wait_status::signaled, 0, tocsin::readiness::invalid}));
    (void)another.cancel();
    other_ended.wait();
    std::destroy_at(&many);
}
#endif

TEST(Operation, AForkedChildMayDestroyWhatWaitedInItsParent) {
    auto_reset_event event;
    record seen;
    std::optional<decltype(any_operation(std::ref(seen), tocsin::limits(), event))> wait;
    wait.emplace(std::ref(seen), tocsin::limits{.until = 1h}, event);
    wait->start();
    EXPECT_EQ(support::ending_of_child([&] {
                  if (wait->cancel()) return 1;
                  wait.reset();
                  return 0;
              }),
              "");
    EXPECT_TRUE(wait->cancel());
    EXPECT_EQ(seen.last, stopped);
}
#endif

TEST(OperationMemory, AnOperationAllocatesNothing) {
    auto_reset_event a;
    auto_reset_event b;
    std::stop_source stop;
    record seen;
    {
        auto first_timer = any_operation(std::ref(seen), {.until = 1h}, a);
        first_timer.start();  // starts the background thread
    }
    const long before = support::allocations();
    auto any =
        any_operation(std::ref(seen), {.until = 1h, .stop = stop.get_token()}, a, b, tocsin::after(1h));
    auto all = all_operation(std::ref(seen), a, b);
    for (int i = 0; i != 10; ++i) {
        any.start();
        EXPECT_TRUE(any.cancel());
        any.start();
        b.set();
        all.start();
        a.set();
        b.set();
    }
    EXPECT_EQ(support::allocations(), before);
    EXPECT_EQ(seen.calls, 30);
}

TEST(OperationMemory, ASpanOperationIsInMemoryOfTheCaller) {
    for (const std::size_t count : {1u, 2u, 17u}) {
        std::vector<auto_reset_event> events(count);
        std::vector<tocsin::source> sources(events.begin(), events.end());
        const auto memory = std::make_unique<char[]>(tocsin::operation_size(count));
        record seen;
        const auto call = [](void* context, const any_result& how) noexcept {
            (*static_cast<record*>(context))(how);
        };
        auto& any = tocsin::span_operation::make(memory.get(), false, sources, tocsin::limits(), call, &seen);
        sources.clear();
        const long before = support::allocations();
        any.start();
        events.back().set();
        EXPECT_EQ(seen.last, (any_result{wait_status::signaled, count - 1}));
        any.start({.until = 0s});
        EXPECT_EQ(seen.last.status, wait_status::timed_out);
        any.start({.until = 1h});
        EXPECT_TRUE(any.cancel());
        EXPECT_EQ(seen.last, stopped);
        any.start({});
        EXPECT_EQ(support::allocations(), before);
        std::destroy_at(&any);
        EXPECT_EQ(tocsin::waiting_on(&events[0]), 0u);
        sources.assign(events.begin(), events.end());
        auto& all = tocsin::span_operation::make(memory.get(), true, sources, tocsin::limits(), call, &seen);
        all.start();
        for (auto& each : events) each.set();
        EXPECT_EQ(seen.last, any_result{wait_status::signaled});
        EXPECT_EQ(seen.calls, 4);
        std::destroy_at(&all);
    }
}

TEST(Operation, IsServedByADriver) {
    tocsin::driver loop;
    auto_reset_event event;
    record seen;
    const auto due = support::hand_clock::now() + 5ms;
    auto wait = any_operation(std::ref(seen), {.until = due}, event);
    wait.by(loop).start();
    ASSERT_FALSE(loop.next_deadline().is_never());
    EXPECT_EQ(loop.run_due(), 0u);
    support::hand_clock::set(due);
    support::until("the driver ends the wait", [&] { return loop.run_due() != 0; });
    EXPECT_EQ(seen.last.status, wait_status::timed_out);
}

#if TOCSIN_ON_POSIX
template <class Make>
auto on_the_heap(Make make) {
    using made = decltype(make());
    return std::unique_ptr<made>(new made(make()));
}

TEST(OperationInAChild, IsNotCancelledButMayBeDestroyed) {
    auto_reset_event event;
    record seen;
    auto wait = on_the_heap([&] { return any_operation(std::ref(seen), event); });
    wait->start();
    EXPECT_EQ(support::ending_of_child([&] {
                  if (wait->cancel()) return 1;
                  wait.reset();
                  return seen.calls == 0 ? 0 : 2;
              }),
              "");
    event.set();
    EXPECT_EQ(seen.last, first);
}

// What the parent's wait had taken is the parent's to give back. An executor keeps the ended operation. In one round
// the wait was queued, in the other its source was ready at the start.
TEST(OperationInAChild, ItsDestructionGivesNothingBack) {
    for (const bool ready_at_the_start : {false, true}) {
        auto keeper = [](ended_operation) {};
        auto_reset_event event(ready_at_the_start);
        record seen;
        auto wait = on_the_heap([&] { return any_operation(std::ref(seen), event); });
        wait->on(keeper).start();
        if (!ready_at_the_start) event.set();
        EXPECT_EQ(support::ending_of_child([&] {
                      wait.reset();
                      return event.is_set() ? 1 : 0;
                  }),
                  "");
        EXPECT_FALSE(event.is_set());
        wait.reset();
        EXPECT_TRUE(event.is_set());
    }
}
#endif

#if TOCSIN_CHECKED
using OperationDeathTest = testing::Test;

#define EXPECT_ENDS(statement, message)                   \
    testing::FLAGS_gtest_death_test_style = "threadsafe"; \
    EXPECT_DEATH_IF_SUPPORTED(statement, message)

TEST(OperationDeathTest, MayNotBeStartedTwice) {
    EXPECT_ENDS(
        {
            auto_reset_event event;
            record seen;
            auto wait = any_operation(std::ref(seen), event);
            wait.start();
            wait.start();
        },
        "has not ended");
}

TEST(OperationDeathTest, MayNotBeDestroyedWhileItIsInAWakeList) {
    EXPECT_ENDS(
        {
            auto_reset_event event;
            record seen;
            tocsin::wake_list freed;
            {
                auto wait = any_operation(std::ref(seen), event);
                wait.start();
                event.set(freed);
            }
        },
        "destroyed while");
}

TEST(OperationDeathTest, AnExecutorIsSetOnlyWhileItIsIdle) {
    EXPECT_ENDS(
        {
            auto executor = [](ended_operation) {};
            auto_reset_event event;
            record seen;
            auto wait = any_operation(std::ref(seen), event);
            wait.start();
            wait.on(executor);
        },
        "on\\(\\) was called for an operation that has not ended");
}

TEST(OperationDeathTest, ADriverIsSetOnlyWhileItIsIdle) {
    EXPECT_ENDS(
        {
            tocsin::driver loop;
            auto_reset_event event;
            record seen;
            auto wait = any_operation(std::ref(seen), event);
            wait.start();
            wait.by(loop);
        },
        "by\\(\\) was called for an operation that has not ended");
}

// Destroys operations whose ends an executor keeps, while a thread that calls cancel() all the time stands still. In
// some of the rounds it stands inside cancel(). Between two rounds it calls cancel() at least once: otherwise it may
// stand at the same instruction in all of them. In all rounds the operations are in the same memory.
void destroy_while_a_thread_cancels() {
    auto keeper = [](ended_operation) {};
    auto_reset_event event;
    const tocsin::source sources[] = {event};
    const auto memory = std::make_unique<char[]>(tocsin::operation_size(1));
    const auto make = [&] {
        constexpr auto nothing = [](void*, const any_result&) noexcept {};
        auto& made = tocsin::span_operation::make(memory.get(), false, sources, {}, nothing, nullptr);
        made.on(keeper).start();
        event.set();
        return &made;
    };
    auto* wait = make();
    std::atomic<bool> over{false};
    std::atomic<unsigned> calls{0};
    std::thread canceler([&, first = wait] {
        for (; !over; ++calls) (void)first->cancel();
    });
    support::freezer frost;
    for (int i = 0; i != 5000; ++i) {
        const unsigned before = calls;
        support::until("waiting for a call of cancel()", [&] { return calls != before; });
        frost.freeze(canceler.native_handle());
        std::destroy_at(wait);
        event.reset();
        wait = make();
        frost.thaw();
    }
    over = true;
    canceler.join();
    std::destroy_at(wait);
}

TEST(OperationDeathTest, MayNotBeDestroyedWhileAThreadIsInsideCancel) {
    if (!support::freezer::works) GTEST_SKIP() << "nothing stops a thread here";
    EXPECT_ENDS(destroy_while_a_thread_cancels(), "while another thread was inside cancel");
}

TEST(OperationDeathTest, AnEndIsCalledOnce) {
    EXPECT_ENDS(
        {
            std::optional<ended_operation> end;
            auto executor = [&](ended_operation one) { end = one; };
            auto_reset_event event(true);
            record seen;
            auto wait = any_operation(std::ref(seen), event);
            wait.on(executor).start();
            (*end)();
            (*end)();
        },
        "that is over");
}
#endif

// A dispatching executor: it calls the function inside the call.
struct dispatching {
    void operator()(ended_operation one) {
        ++calls;
        one();
    }
    int calls = 0;
};

TEST(OperationExecutor, MayCallTheFunctionInsideTheCall) {
    dispatching at_once;
    auto_reset_event event;
    auto_reset_event other;
    record seen;
    auto single = any_operation(std::ref(seen), event);
    single.on(at_once).start();
    event.set();
    EXPECT_EQ(seen.calls, 1);
    other.set();
    auto several = any_operation(std::ref(seen), tocsin::limits{.until = 1h}, event, other);
    several.on(at_once).start();
    EXPECT_EQ(seen.calls, 2) << "inside start()";
    several.start();
    event.set();
    EXPECT_EQ(seen.calls, 3);
    several.start();
    EXPECT_TRUE(several.cancel());
    EXPECT_EQ(seen.calls, 4);
    EXPECT_EQ(at_once.calls, 4);
}

TEST(OperationExecutor, TheFunctionInsideTheCallMayDestroyTheOperation) {
    dispatching at_once;
    auto_reset_event event;
    int calls = 0;
    const auto run = [&]<class... Limits>(bool ready, const Limits&... how) {
        const auto function = [&](auto& where) {
            return [&](any_result) noexcept {
                ++calls;
                where.reset();
            };
        };
        struct holder {
            void reset() noexcept { destroy(); }
            std::function<void()> destroy;
        } held;
        using made = decltype(any_operation(function(held), how..., event));
        alignas(made) std::byte memory[sizeof(made)];
        auto* const wait = ::new (memory) made(any_operation(function(held), how..., event));
        held.destroy = [wait, &memory] {
            std::destroy_at(wait);
            std::ranges::fill(memory, std::byte{0xee});
        };
        if (ready) event.set();
        wait->on(at_once).start();
        if (!ready) event.set();
    };
    for (const bool ready : {false, true}) {
        run(ready);
        run(ready, tocsin::limits{.until = 1h});
    }
    EXPECT_EQ(calls, 4);
}

// Each call starts the operation again, which ends at once.
TEST(OperationExecutor, ThatCallsTheFunctionInsideTheCallGrowsNoStack) {
    constexpr int rounds = 200'000;
    dispatching at_once;
    manual_reset_event open(true);
    int calls = 0;
    std::function<void()> again;
    auto wait = any_operation(
        [&](any_result) noexcept {
            if (++calls != rounds) again();
        },
        open);
    again = [&] { wait.start(); };
    wait.on(at_once).start();
    EXPECT_EQ(calls, rounds);
}

// A thread that is inside a function calls another operation's function only afterwards, unless that one has this
// executor. The same is true of a coroutine.
TEST(OperationExecutor, TheInlineOneCallsAtOnceEvenInsideAFunction) {
    auto_reset_event outer, later_event, now_event, coroutine_event;
    bool is_inside = false;
    int later = 0;
    int now = 0;
    bool has_resumed = false;
    auto is_later = any_operation([&](any_result) noexcept { later += is_inside ? 2 : 1; }, later_event);
    auto is_now = any_operation([&](any_result) noexcept { now += is_inside ? 2 : 1; }, now_event);
    is_now.on(tocsin::inline_executor);
    const support::task waits = [](auto_reset_event& event, bool& resumed) -> support::task {
        co_await tocsin::async_wait(event).on(tocsin::inline_executor);
        resumed = true;
    }(coroutine_event, has_resumed);
    auto all = any_operation(
        [&](any_result) noexcept {
            is_inside = true;
            later_event.set();
            now_event.set();
            coroutine_event.set();
            EXPECT_EQ(later, 0);
            EXPECT_EQ(now, 2);
            EXPECT_TRUE(has_resumed);
            is_inside = false;
        },
        outer);
    is_later.start();
    is_now.start();
    all.start();
    outer.set();
    EXPECT_EQ(later, 1);
    EXPECT_EQ(now, 2);
}

TEST(OperationFunctionDeathTest, AnExceptionThatLeavesItEndsTheProgram) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(
        {
            auto_reset_event event(true);
            auto wait =
                any_operation([](any_result) { throw std::runtime_error("left its function"); }, event);
            try {
                wait.start();
            } catch (const std::runtime_error&) {
                std::_Exit(0);
            }
        },
        "left its function");
}

}  // namespace
