// SPDX-License-Identifier: Apache-2.0
// The watchdog reports each wait that takes too long, once, and no other.
#include "facts.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/group_commit.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>
#include <tocsin/watchdog.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::parked_wait;

struct report {
    const void* address;
    parked_wait wait;
    std::chrono::nanoseconds age;
};

// What a watchdog has reported.
class reports {
public:
    tocsin::wait_watchdog watch(std::chrono::nanoseconds longest) {
        return tocsin::report_waits_longer_than(longest, [this](const parked_wait& wait) {
            {
                const std::lock_guard held(lock_);
                reports_.push_back({wait.address, wait, std::chrono::steady_clock::now() - wait.since});
            }
            one_more_.set();
        });
    }
    void until_one_more() { one_more_.wait(); }
    // The report about this address, once there is one. How often it was reported: reports_of().
    report until_reported(const void* address) {
        return until_reported([address](const parked_wait& wait) { return wait.address == address; });
    }
    // The first report about such a wait.
    template <std::predicate<const parked_wait&> Such>
    report until_reported(Such such) {
        for (;;) {
            {
                const std::lock_guard held(lock_);
                const auto found = std::ranges::find_if(reports_, such, &report::wait);
                if (found != reports_.end()) return *found;
            }
            until_one_more();  // a wait that is reported, too, if it takes too long
        }
    }
    std::size_t reports_of(const void* address) {
        const std::lock_guard held(lock_);
        return static_cast<std::size_t>(std::ranges::count(reports_, address, &report::address));
    }
    std::size_t count() {
        const std::lock_guard held(lock_);
        return reports_.size();
    }

private:
    std::mutex lock_;
    std::vector<report> reports_;
    auto_reset_event one_more_;
};

// "Once for each wait", however soon one wait follows the other. Waits of coroutines and operations read a coarse
// clock, and some of them begin within one tick of it.
constexpr int waits_in_a_row = 40;

// Ends each wait for the event that it reports.
tocsin::wait_watchdog end_what_is_reported(auto_reset_event& event) {
    return tocsin::report_waits_longer_than(1ms, [&event](const parked_wait& wait) {
        if (wait.address == &event) event.set();
    });
}
void until_each_is_reported(const std::atomic<int>& turns) {
    support::until("each wait is reported, and so ends", [&] { return turns == waits_in_a_row; });
}

TEST(Watchdog, ReportsEachOfTheWaitsOfACoroutineThatWaitsAgainAtOnce) {
    auto_reset_event event;
    std::atomic<int> turns{0};
    const support::task coroutine = [](auto_reset_event& on, std::atomic<int>& count) -> support::task {
        for (; count != waits_in_a_row; ++count) co_await tocsin::async_wait(on);
    }(event, turns);
    const auto watchdog = end_what_is_reported(event);
    until_each_is_reported(turns);
    coroutine.join();
}

TEST(Watchdog, ReportsEachOfTheWaitsOfAnOperationThatIsStartedAgainAtOnce) {
    auto_reset_event event;
    std::atomic<int> turns{0};
    std::function<void()> again;
    auto wait = tocsin::any_operation(
        [&](tocsin::any_result) noexcept {
            if (++turns != waits_in_a_row) again();
        },
        event);
    again = [&] { wait.start(); };
    wait.start();
    const auto watchdog = end_what_is_reported(event);
    until_each_is_reported(turns);
}

TEST(Watchdog, ReportsEachOfTheWaitsOfThreadsThatWaitAgainAtOnce) {
    auto_reset_event event;
    auto_reset_event member;
    tocsin::wait_set set;
    set.add(member, 1);
    std::atomic<int> turns{0};
    std::atomic<int> turns_in_set{0};
    thread_group threads;
    threads.start("waits", [&] {
        for (; turns != waits_in_a_row; ++turns) event.wait();
    });
    threads.start("waits in a set", [&] {
        tocsin::ready_item item;
        for (; turns_in_set != waits_in_a_row; ++turns_in_set) (void)set.wait({&item, 1});
    });
    const auto of_event = end_what_is_reported(event);
    const auto of_set = end_what_is_reported(member);
    until_each_is_reported(turns);
    until_each_is_reported(turns_in_set);
    threads.join();
}

TEST(Watchdog, ReportsAWaitThatTakesTooLongByItsName) {
    reports seen;
    const auto watchdog = seen.watch(20ms);
    auto_reset_event event;
    tocsin::name_address(&event, "answer");
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    const report about = seen.until_reported(&event);
    EXPECT_EQ(about.wait.name, "answer");
    EXPECT_EQ(about.wait.thread, threads.number(0));
    EXPECT_STREQ(about.wait.type, "event");
    EXPECT_GT(about.age, 20ms);
    event.set();
    threads.join();
    tocsin::name_address(&event, "");
}

TEST(Watchdog, ReportsEachWaitOnce) {
    reports seen;
    auto_reset_event first;
    auto_reset_event second;
    thread_group threads;
    const auto watchdog = seen.watch(1ms);
    threads.start("first", [&] { first.wait(); });
    (void)seen.until_reported(&first);
    threads.start("second", [&] { second.wait(); });
    (void)seen.until_reported(&second);  // by a later look, which has seen the first wait again
    EXPECT_EQ(seen.reports_of(&first), 1u);
    EXPECT_EQ(seen.reports_of(&second), 1u);
    first.set();
    until_parked(&first, 0);
    threads.start("again", [&] { first.wait(); });
    while (seen.reports_of(&first) != 2) seen.until_one_more();  // a new wait
    first.set();
    second.set();
    threads.join();
}

// Where servers hang: not only in waits for one object.
TEST(Watchdog, ReportsWaitsInSetsInGroupCommitsAndInChannels) {
    reports seen;
    auto_reset_event member;
    auto_reset_event may_end;
    tocsin::wait_set set;
    set.add(member, 1);
    tocsin::group_commit<int> log([&](const auto&) { may_end.wait(); });
    tocsin::channel<int> items(1);
    thread_group threads;
    const auto watchdog = seen.watch(1ms);
    threads.start("waits in a set", [&] {
        tocsin::ready_item item;
        (void)set.wait({&item, 1});
    });
    threads.start("leads", [&] { (void)log.submit(1); });
    until_parked(&may_end, 1);  // it has taken its group, which the next thread cannot join any more
    threads.start("submits", [&] { (void)log.submit(1); });
    threads.start("receives", [&] { (void)items.receive(); });
    EXPECT_STREQ(seen.until_reported(&set).wait.type, "wait_set");
    EXPECT_EQ(seen.until_reported(&member).wait.thread, threads.number(0));
    EXPECT_STREQ(seen.until_reported(&log).wait.type, "group_commit");
    (void)seen.until_reported(&may_end);  // in the flush
    EXPECT_STREQ(seen.until_reported(&items).wait.type, "channel receive");
    member.set();
    until_parked(&may_end, 1);
    may_end.set();
    until_parked(&log, 0);
    until_parked(&may_end, 1);  // the second one leads
    may_end.set();
    items.close();
    threads.join();
}

#if TOCSIN_ON_POSIX
// A thread in a poll, an operation, and a coroutine whose descriptor a driver watches.
TEST(Watchdog, ReportsWaitsForDescriptorsOfThreadsOperationsAndCoroutines) {
    reports seen;
    const support::pipe_ends of_thread;
    const support::pipe_ends of_operation;
    const support::pipe_ends of_coroutine;
    const auto watchdog = seen.watch(1ms);
    thread_group threads;
    threads.start("polls", [&] { (void)tocsin::wait_any(tocsin::readable(of_thread.out())); });
    auto operation =
        tocsin::any_operation([](tocsin::any_result) noexcept {}, tocsin::readable(of_operation.out()));
    operation.start();
    auto_reset_event ended;
    const auto waits = [&]() -> support::task {
        (void)co_await tocsin::async_wait_any(ended, tocsin::readable(of_coroutine.out()));
    };
    const support::task coroutine = waits();
    for (const support::pipe_ends* each : {&of_thread, &of_operation, &of_coroutine}) {
        const auto descriptor = static_cast<unsigned>(each->out());
        const report about = seen.until_reported([descriptor](const parked_wait& wait) {
            return wait.what == parked_wait::kind::descriptor && wait.bit == descriptor;
        });
        EXPECT_STREQ(about.wait.type, "descriptor");
    }
    ended.set();
    coroutine.join();
    of_thread.put();
    threads.join();
}
#endif

TEST(Watchdog, IsSilentAboutShortWaits) {
    reports seen;
    const auto watchdog = seen.watch(1h);
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    reports of_another;  // whose look comes after the wait was parked
    {
        const auto second = of_another.watch(0ns);
        of_another.until_one_more();
    }
    EXPECT_EQ(seen.count(), 0u);
    event.set();
    threads.join();
}

TEST(Watchdog, IsSilentOnceItIsDestroyed) {
    for (int i = 0; i != 50; ++i) {
        auto_reset_event event;
        thread_group threads;
        threads.start("waiter", [&] { event.wait(); });
        until_parked(&event, 1);
        {
            reports seen;
            std::optional watchdog(seen.watch(0ns));
            if (i % 2 == 0) seen.until_one_more();
            watchdog.reset();
        }  // a report that came later would touch what is gone
        event.set();
        threads.join();
    }
}

TEST(Watchdog, MayWaitAndWakeInItsReport) {
    auto_reset_event event;
    tocsin::word_lock<> lock;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    const auto watchdog = tocsin::report_waits_longer_than(5ms, [&](const parked_wait& wait) {
        const std::lock_guard held(lock);
        if (wait.address == &event) event.set();
    });
    threads.join();
}

TEST(Watchdog, RefusesAnEmptyFunction) {
    EXPECT_THROW((void)tocsin::report_waits_longer_than(1s, {}), std::invalid_argument);
}

#if defined(__linux__) && GTEST_HAS_DEATH_TEST
std::ptrdiff_t threads_of_this_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
}

// Returns 0, or the number of the step after which the threads were not as many as they should be.
int count_threads() {
    const std::ptrdiff_t at_start = threads_of_this_process();
    if (at_start != 1) return 1;
    auto_reset_event event;
    (void)event.wait_for(1ms);
    if (!tocsin::parked_waits().empty() || threads_of_this_process() != at_start) return 2;
    const auto one = tocsin::report_waits_longer_than(1h, [](const parked_wait&) {});
    const std::ptrdiff_t with_one = threads_of_this_process();
    // ThreadSanitizer starts a thread of its own, too.
    if (with_one != at_start + 1 && !support::thread_sanitizer) return 3;
    const auto other = tocsin::report_waits_longer_than(1h, [](const parked_wait&) {});
    return threads_of_this_process() == with_one ? 0 : 4;
}

// In a process of its own, in which nothing else has started a thread.
TEST(WatchdogDeathTest, HasNoThreadUntilItIsUsedAndThenOneForAll) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(std::_Exit(count_threads()), testing::ExitedWithCode(0), "");
}
#endif

#if TOCSIN_CHECKED && GTEST_HAS_DEATH_TEST
TEST(WatchdogDeathTest, IsNotDestroyedInItsOwnReport) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto_reset_event event;
            std::optional<tocsin::wait_watchdog> watchdog;
            std::mutex made;
            made.lock();
            watchdog.emplace(tocsin::report_waits_longer_than(0ns, [&](const parked_wait&) {
                const std::lock_guard held(made);
                watchdog.reset();
            }));
            made.unlock();
            event.wait();
        },
        "wait_watchdog destroyed inside its own report");
}
#endif

}  // namespace
