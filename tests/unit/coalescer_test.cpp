// At most one release an interval, nothing lost, and no system call for a signal to a consumer that pauses.
#include "facts.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/coalescer.hpp>
#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::coalescer;
using tocsin::manual_reset_event;
using tocsin::wait_status;

TEST(Coalescer, TheFirstWaitDoesNotPause) {
    auto_reset_event event(true);
    coalescer often(1h);
    EXPECT_EQ(often.wait_any(event).status, wait_status::signaled);
}

TEST(Coalescer, ReleasesAreAnIntervalApart) {
    auto_reset_event event(true);
    coalescer often(30ms);
    (void)often.wait_any(event);
    const auto first = steady_clock::now();
    event.set();
    EXPECT_EQ(often.wait_any(event).status, wait_status::signaled);
    EXPECT_GE(steady_clock::now() - first, 29ms);  // the first release was some steps before `first`
}

TEST(Coalescer, ManySignalsOfOneIntervalAreOneRelease) {
    auto_reset_event event;
    manual_reset_event done;
    std::atomic<int> releases{0};
    const auto begin = steady_clock::now();
    thread_group threads;
    threads.start("consumer", [&] {
        coalescer often(20ms);
        while (often.wait_any(event, done).index == 0) releases.fetch_add(1);
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
    EXPECT_EQ(often.wait_any(a, b).index, 0u);
    b.set();
    a.set();
    EXPECT_EQ(often.wait_any(a, b).index, 0u);
    EXPECT_EQ(often.wait_any(a, b).index, 1u);
}

TEST(Coalescer, ADeadlineInThePauseTakesNothing) {
    auto_reset_event event(true);
    coalescer often(1h);
    (void)often.wait_any(event);
    event.set();
    EXPECT_EQ(often.wait_any_until(5ms, event).status, wait_status::timed_out);
    EXPECT_TRUE(event.is_set());
}

TEST(Coalescer, AStopEndsThePause) {
    auto_reset_event event(true);
    coalescer often(1h);
    (void)often.wait_any(event);
    event.set();
    std::stop_source source;
    thread_group threads;
    threads.start("consumer",
                  [&] { EXPECT_EQ(often.wait_any(source.get_token(), event).status, wait_status::stopped); });
    threads.until_asleep(0);
    source.request_stop();
    threads.join();
    EXPECT_TRUE(event.is_set());
}

TEST(Coalescer, ASignalInThePauseMakesNoSystemCall) {
    auto_reset_event event(true);
    const auto calls = support::system_calls_of(
        [&] {
            static thread_group consumers;
            consumers.start("consumer", [&] {
                coalescer often(1h);
                (void)often.wait_any(event);
                (void)often.wait_any(event);
            });
            support::until("the first wait took it", [&] { return !event.is_set(); });
            consumers.until_asleep(0);
        },
        [&] { event.set(); });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.numbers.size(), 0u) << testing::PrintToString(calls);
}

TEST(Coalescer, WithoutAnIntervalItIsAPlainWait) {
    auto_reset_event event(true);
    coalescer never(0ms);
    (void)never.wait_any(event);
    event.set();
    EXPECT_EQ(never.wait_any_until(0ms, event).status, wait_status::signaled);
}

}  // namespace
