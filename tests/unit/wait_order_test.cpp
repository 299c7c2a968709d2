// SPDX-License-Identifier: Apache-2.0
// In which order a wait looks at its sources, and when it looks at its stop token: `order` and `stop_first` of the
// limits (limits.hpp).
#define TOCSIN_EXECUTION_OWN  // also where stdexec is installed

#include "posix.hpp"
#include "task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/sender.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <exception>
#include <mutex>
#include <stop_token>

#if TOCSIN_ON_POSIX
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;
using namespace tocsin;

// The chance that one of n ready sources is taken by none of `rounds` waits is at most (1 - 1/n)^rounds: for 5 and
// 1,000, 10^-97.
constexpr int rounds = 1000;

TEST(ListedOrder, HidesWhatIsBehindASourceThatIsAlwaysReady) {
    manual_reset_event first(true);
    manual_reset_event second(true);
    for (int i = 0; i != rounds; ++i) EXPECT_EQ(wait_any(first, second, tocsin::after(0s)).index, 0u);
}

TEST(FairOrder, TakesEachSourceThatStaysReady) {
    manual_reset_event a(true);
    manual_reset_event never;
    manual_reset_event b(true);
    tocsin::counting_semaphore<> permits(10 * rounds);
    std::array<int, 5> taken{};
    for (int i = 0; i != rounds; ++i) {
        const any_result how =
            wait_any({.until = 0s, .order = wait_order::fair}, a, never, b, permits, tocsin::after(0s));
        ASSERT_EQ(how.status, wait_status::signaled);
        ++taken[how.index];
    }
    EXPECT_EQ(taken[1], 0);
    for (const std::size_t i : {0u, 2u, 3u, 4u}) EXPECT_GT(taken[i], 0) << i;
}

TEST(FairOrder, TakesOneThingOnly) {
    auto_reset_event a(true);
    auto_reset_event b(true);
    const any_result first = wait_any({.order = wait_order::fair}, a, b);
    const any_result second = wait_any({.order = wait_order::fair}, a, b);
    EXPECT_EQ(first.index + second.index, 1u);
    EXPECT_EQ(wait_any({.until = 0s, .order = wait_order::fair}, a, b).status, wait_status::timed_out);
}

TEST(FairOrder, OfAListHoldsToo) {
    manual_reset_event a(true);
    manual_reset_event b(true);
    const tocsin::source list[]{a, b};
    std::array<int, 2> taken{};
    for (int i = 0; i != rounds; ++i) ++taken[wait_any({.order = wait_order::fair}, list).index];
    EXPECT_GT(taken[0], 0);
    EXPECT_GT(taken[1], 0);
}

#if TOCSIN_ON_POSIX
TEST(FairOrder, TakesADescriptorBehindAReadyEvent) {
    int ends[2];
    int other[2];
    ASSERT_EQ(::pipe(ends) + ::pipe(other), 0);
    ASSERT_EQ(::write(ends[1], "x", 1), 1);
    manual_reset_event open(true);
    std::array<int, 4> taken{};
    for (int i = 0; i != rounds; ++i) {
        const any_result how = wait_any({.order = wait_order::fair}, open, tocsin::readable(other[0]),
                                        tocsin::readable(ends[0]), tocsin::writable(ends[1]));
        EXPECT_EQ(how.found, how.index == 2   ? tocsin::readiness::readable
                             : how.index == 3 ? tocsin::readiness::writable
                                              : tocsin::readiness::none);
        ++taken[how.index];
    }
    EXPECT_EQ(taken[1], 0);
    for (const std::size_t i : {0u, 2u, 3u}) EXPECT_GT(taken[i], 0) << i;
    for (const int each : {ends[0], ends[1], other[0], other[1]}) (void)::close(each);
    EXPECT_THROW((void)wait_any({.until = 0s, .order = wait_order::fair}, tocsin::readable(ends[0])),
                 std::system_error);
}
#endif

TEST(FairOrder, HoldsForCoroutinesAndOperations) {
    manual_reset_event a(true);
    manual_reset_event b(true);
    std::array<int, 2> taken{};
    const support::task one = [](auto& x, auto& y, auto& count) -> support::task {
        for (int i = 0; i != rounds; ++i) {
            const any_result how = co_await tocsin::async_wait_any({.order = wait_order::fair}, x, y);
            ++count[how.index];
        }
    }(a, b, taken);
    EXPECT_TRUE(one.done());
    EXPECT_GT(taken[0], 0);
    EXPECT_GT(taken[1], 0);
    taken = {};
    auto wait = tocsin::any_operation([&](any_result how) noexcept { ++taken[how.index]; },
                                      tocsin::limits{.order = wait_order::fair}, a, b);
    for (int i = 0; i != rounds; ++i) wait.start();
    EXPECT_GT(taken[0], 0);
    EXPECT_GT(taken[1], 0);
    taken = {};
    wait.start({});
    wait.start({});
    EXPECT_EQ(taken[0], 2) << "new limits: as listed";
}

TEST(FairOrder, HoldsForConditions) {
    manual_reset_event a(true);
    manual_reset_event b(true);
    tocsin::condition changed;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::array<int, 3> taken{};
    for (int i = 0; i != rounds; ++i)
        ++taken[changed.wait_any(lock, {.order = wait_order::fair}, a, b).index];
    EXPECT_EQ(taken[0], 0) << "nobody was notified";
    EXPECT_GT(taken[1], 0);
    EXPECT_GT(taken[2], 0);
}

// Keeps the result. The waits below end inside start().
struct result_receiver {
    using receiver_concept = tocsin::execution::receiver_tag;

    void set_value(any_result how) && noexcept { *to = how; }
    void set_value(wait_status how) && noexcept { *to = {how}; }
    void set_error(const std::exception_ptr&) && noexcept { ADD_FAILURE(); }
    void set_stopped() && noexcept { ADD_FAILURE() << "by a receiver that has no stop token"; }

    any_result* to;
};
template <class Sender>
any_result result_of(const Sender& sender) {
    any_result result{wait_status::timed_out};
    auto state = tocsin::execution::connect(sender, result_receiver{&result});
    tocsin::execution::start(state);
    return result;
}

TEST(FairOrder, HoldsForSenders) {
    manual_reset_event a(true);
    manual_reset_event b(true);
    const auto either = tocsin::as_sender({.order = wait_order::fair}, a, b);
    std::array<int, 2> taken{};
    for (int i = 0; i != rounds; ++i) ++taken[result_of(either).index];
    EXPECT_GT(taken[0], 0);
    EXPECT_GT(taken[1], 0);
}

TEST(StopFirst, EndsThoseOfSenders) {
    std::stop_source stop;
    auto_reset_event ready(true);
    const auto any = tocsin::as_sender({.stop = stop.get_token(), .stop_first = true}, ready);
    const auto all = tocsin::as_sender_all({.stop = stop.get_token(), .stop_first = true}, ready);
    EXPECT_EQ(result_of(any).index, 0u) << "not requested yet";
    ready.set();
    stop.request_stop();
    EXPECT_EQ(result_of(any).status, wait_status::stopped);
    EXPECT_EQ(result_of(all).status, wait_status::stopped);
    EXPECT_TRUE(ready.is_set()) << "nothing was taken";
}

TEST(StopFirst, EndsWaitsWhoseSourcesAreReady) {
    std::stop_source stop;
    const auto token = stop.get_token();
    auto_reset_event ready(true);
    manual_reset_event open(true);
    EXPECT_EQ(wait_any({.stop = token, .stop_first = true}, open).index, 0u) << "not requested yet";
    stop.request_stop();
    EXPECT_EQ(wait_any({.stop = token}, open).index, 0u) << "the source is looked at first";
    const any_result stopped{wait_status::stopped};
    EXPECT_EQ(wait_any({.stop = token, .stop_first = true}, ready), stopped);
    const tocsin::source list[]{ready};
    EXPECT_EQ(wait_any({.stop = token, .stop_first = true}, list), stopped);
    EXPECT_EQ(wait_all({.stop = token, .stop_first = true}, ready, open), wait_status::stopped);
    tocsin::wait_set set;
    set.add(ready, 1);
    tocsin::ready_item item;
    EXPECT_EQ(set.wait({.stop = token, .stop_first = true}, {&item, 1}).status, wait_status::stopped);
    tocsin::condition changed;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    EXPECT_EQ(changed.wait_any(lock, {.stop = token, .stop_first = true}, ready).status,
              wait_status::stopped);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_TRUE(ready.is_set()) << "nothing was taken";
}

TEST(StopFirst, EndsThoseOfCoroutinesAndOperations) {
    std::stop_source stop;
    stop.request_stop();
    auto_reset_event ready(true);
    int ended = 0;
    const support::task one = [](auto& event, auto token, int& count) -> support::task {
        const auto any = co_await tocsin::async_wait_any({.stop = token, .stop_first = true}, event);
        EXPECT_EQ(any.status, wait_status::stopped);
        const auto all = co_await tocsin::async_wait_all({.stop = token, .stop_first = true}, event);
        EXPECT_EQ(all, wait_status::stopped);
        ++count;
    }(ready, stop.get_token(), ended);
    EXPECT_TRUE(one.done());
    auto any = tocsin::any_operation(
        [&](any_result how) noexcept { ended += how.status == wait_status::stopped ? 1 : 0; },
        tocsin::limits{.stop = stop.get_token(), .stop_first = true}, ready);
    any.start();
    auto all =
        tocsin::all_operation([&](wait_status how) noexcept { ended += how == wait_status::stopped ? 1 : 0; },
                              tocsin::limits{.stop = stop.get_token(), .stop_first = true}, ready);
    all.start();
    EXPECT_EQ(ended, 3);
    EXPECT_TRUE(ready.is_set());
}

// A channel's own receive() has no such limits, but its source has.
TEST(StopFirst, LeavesTheItemsOfAChannel) {
    tocsin::channel<int> items(2);
    items.send(7);
    std::stop_source stop;
    stop.request_stop();
    auto next = items.receiving();
    EXPECT_EQ(wait_any({.stop = stop.get_token(), .stop_first = true}, next).status, wait_status::stopped);
    EXPECT_TRUE(items.try_receive());
}

}  // namespace
