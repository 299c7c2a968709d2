// SPDX-License-Identifier: Apache-2.0
// A coalescer releases at most once per interval, loses nothing, and signals a pausing consumer without a system call.
#include "facts.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/coalescer.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::thread_group;
using namespace tocsin;

TEST(Coalescer, WithoutAStartThereIsNoPause) {
    const coalescer often(1h);
    EXPECT_EQ(often.pause(), wait_status::signaled);
}

TEST(Coalescer, ReleasesAreAnIntervalApart) {
    auto_reset_event event(true);
    coalescer often(30ms);
    event.wait();
    const auto first = steady_clock::now();
    often.start();
    event.set();
    EXPECT_EQ(often.pause(), wait_status::signaled);
    event.wait();
    EXPECT_GE(steady_clock::now() - first, 30ms);
}

TEST(Coalescer, AnIntervalThatIsOverDoesNotPause) {
    coalescer often(1ns);
    often.start();
    const auto begin = steady_clock::now();
    support::until("it is over", [&] { return steady_clock::now() != begin; });
    EXPECT_EQ(often.pause({.until = 0s}), wait_status::signaled);
}

TEST(Coalescer, ManySignalsOfOneIntervalAreOneRelease) {
    auto_reset_event event;
    manual_reset_event done;
    std::atomic<int> releases{0};
    const auto begin = steady_clock::now();
    thread_group threads;
    threads.start("consumer", [&] {
        coalescer often(20ms);
        while (wait_any(event, done).index == 0) {
            often.start();
            releases.fetch_add(1);
            often.pause();
        }
    });
    for (int i = 0; i != 100'000; ++i) event.set();
    done.set();
    threads.join();
    const auto intervals = (steady_clock::now() - begin) / 20ms;
    EXPECT_LE(releases.load(), intervals + 2);
}

TEST(Coalescer, NothingIsLostInThePause) {
    auto_reset_event a(true);
    auto_reset_event b;
    coalescer often(20ms);
    EXPECT_EQ(wait_any(a, b).index, 0u);
    often.start();
    b.set();
    a.set();
    EXPECT_EQ(often.pause(), wait_status::signaled);
    EXPECT_EQ(wait_any(a, b).index, 0u);
    EXPECT_EQ(wait_any(a, b).index, 1u);
}

TEST(Coalescer, ADeadlineEndsThePause) {
    coalescer often(1h);
    often.start();
    EXPECT_EQ(often.pause({.until = 5ms}), wait_status::timed_out);
    EXPECT_EQ(often.pause({.until = 0s}), wait_status::timed_out);
}

TEST(Coalescer, AStopEndsThePause) {
    coalescer often(1h);
    often.start();
    std::stop_source source;
    thread_group threads;
    threads.start("consumer",
                  [&] { EXPECT_EQ(often.pause({.stop = source.get_token()}), wait_status::stopped); });
    threads.until_asleep(0);
    source.request_stop();
    threads.join();
    EXPECT_EQ(often.pause({.stop = source.get_token()}), wait_status::stopped);
}

TEST(Coalescer, ASignalInThePauseMakesNoSystemCall) {
    auto_reset_event event(true);
    const auto calls = support::system_calls_of(
        [&] {
            static thread_group consumers;
            consumers.start("consumer", [&] {
                coalescer often(1h);
                event.wait();
                often.start();
                (void)often.pause();
            });
            support::until("the first wait took it", [&] { return !event.is_set(); });
            consumers.until_asleep(0);
        },
        [&] { event.set(); });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.numbers.size(), 0u) << testing::PrintToString(calls);
}

TEST(Coalescer, WithoutAnIntervalThereIsNoPause) {
    for (const auto none : {0ms, -1ms}) {
        coalescer never(none);
        never.start();
        EXPECT_EQ(never.pause(), wait_status::signaled);
    }
}

// A mistake to avoid: an interval that overflows nanoseconds becomes negative, and then there is no pause at all.
TEST(Coalescer, TheLongestIntervalsDoNotEnd) {
    coalescer often(std::chrono::hours::max());
    often.start();
    EXPECT_EQ(often.pause({.until = 1ms}), wait_status::timed_out);
}

}  // namespace
