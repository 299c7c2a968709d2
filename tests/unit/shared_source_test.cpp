// SPDX-License-Identifier: Apache-2.0
// Shared events and semaphores in waits for several sources: among local sources, among processes, and after deaths.
#include "sanitizer.hpp"
#include "shared_objects.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/sender.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/task.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;
using gate = placed<tocsin::shared_manual_reset_event>;
using token = placed<tocsin::shared_auto_reset_event>;
using permits = placed<tocsin::shared_semaphore>;
using tocsin::wait_status;

constexpr const char* no_threads_in_children =
    "ThreadSanitizer ends the child of a fork that starts a thread";

TEST(SharedSource, AReadySharedObjectEndsAWaitAtOnce) {
    gate opened;
    token event;
    permits jobs;
    tocsin::auto_reset_event local;
    opened->set();
    EXPECT_EQ(tocsin::wait_any(local, *opened).index, 1u);
    EXPECT_TRUE(opened->is_set());
    event->set();
    EXPECT_EQ(tocsin::wait_any(local, *event).index, 1u);
    EXPECT_FALSE(event->is_set());
    jobs->release(2);
    EXPECT_EQ(tocsin::wait_any(local, *jobs).index, 1u);
    EXPECT_EQ(jobs->available(), 1);
    local.set();
    EXPECT_EQ(tocsin::wait_any(local, *jobs).index, 0u);
    EXPECT_EQ(jobs->available(), 1);
}

// So a wait may look at it before it queues.
TEST(SharedSource, EachKindCanBeGivenBack) {
    gate opened;
    token event;
    permits jobs;
    for (const tocsin::source& each :
         {tocsin::source(*opened), tocsin::source(*event), tocsin::source(*jobs)}) {
        ASSERT_NE(each.custom().give_back, nullptr);
        each.custom().give_back(each.object());
    }
    EXPECT_FALSE(opened->is_set());  // a wait takes nothing from it
    EXPECT_TRUE(event->is_set());
    EXPECT_EQ(jobs->available(), 1);
}

TEST(SharedSource, AnotherProcessEndsAWaitThatSleeps) {
    gate opened;
    token event;
    permits jobs;
    tocsin::auto_reset_event local;
    const pid_t child = in_child([&] {
        if (!comes_true([&] { return event.slots_in(1) == 1 && jobs.slots_in(1) == 1; })) ::_exit(1);
        event->set();
        // Else the permit could go to the slot of the first wait, which may still be there.
        if (!comes_true([&] { return event.flag(0) == 1 && jobs.slots_in(1) == 1; })) ::_exit(1);
        jobs->release();
        if (!comes_true([&] { return event.slots_in(1) == 1 && jobs.slots_in(1) == 0; })) ::_exit(1);
        opened->set();
    });
    EXPECT_EQ(tocsin::wait_any(local, *event, *jobs, *opened).index, 1u);
    event.flag(0) = 1;  // the first wait has left both queues
    EXPECT_EQ(tocsin::wait_any(local, *jobs, *opened).index, 1u);
    EXPECT_EQ(tocsin::wait_any(local, *event, *opened).index, 2u);
    EXPECT_EQ(end_of(child), 0);
    EXPECT_EQ(event.slots_in(1) + jobs.slots_in(1), 0u);
    EXPECT_FALSE(event->is_set());
    EXPECT_EQ(jobs->available(), 0);
}

TEST(SharedSource, WhatElseEndsAWaitTakesNothingAndLeavesNoSlot) {
    token event;
    permits jobs;
    gate opened;
    tocsin::auto_reset_event local;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto nothing_is_left = [&] {
        EXPECT_EQ(event.slots_in(1) + event.slots_in(2) + jobs.slots_in(1) + jobs.slots_in(2), 0u);
        event->set();
        EXPECT_TRUE(event->is_set());
        EXPECT_TRUE(event->try_wait());
        jobs->release();
        EXPECT_EQ(jobs->available(), 1);
        EXPECT_TRUE(jobs->try_acquire());
    };
    const auto once_queued = [&](auto act) {
        return std::jthread([&, act] {
            ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 1 && jobs.slots_in(1) == 1; }));
            act();
        });
    };
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(tocsin::wait_any({.until = 20ms}, *event, *jobs, *opened).status, wait_status::timed_out);
    EXPECT_EQ(
        tocsin::wait_any({.until = std::chrono::system_clock::now() + 10ms}, *event, *jobs, *opened).status,
        wait_status::timed_out);
    EXPECT_EQ(tocsin::wait_any(*event, *jobs, *opened, tocsin::after(10ms)).index, 3u);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 40ms);
    nothing_is_left();
    {
        const auto setter = once_queued([&] { local.set(); });
        EXPECT_EQ(tocsin::wait_any(*event, local, *jobs).index, 1u);
    }
    nothing_is_left();
    {
        const auto writer = once_queued([&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); });
        EXPECT_EQ(tocsin::wait_any(*event, *jobs, tocsin::readable(ends[0])).index, 2u);
    }
    nothing_is_left();
    {
        std::stop_source stop;
        const auto stopper = once_queued([&] { stop.request_stop(); });
        EXPECT_EQ(tocsin::wait_any({.stop = stop.get_token()}, *event, *jobs, *opened).status,
                  wait_status::stopped);
    }
    nothing_is_left();
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(SharedSource, EachSetReleasesOneOperation) {
    token event;
    tocsin::auto_reset_event local;
    constexpr int count = 5;
    std::atomic<int> ended{0};
    const auto note = [&](tocsin::any_result how) noexcept {
        EXPECT_EQ(how.index, 1u);
        ended.fetch_add(1);
    };
    using made = decltype(tocsin::any_operation(note, local, *event));
    std::vector<std::unique_ptr<made>> all;
    for (int i = 0; i != count; ++i) {
        all.push_back(std::unique_ptr<made>(new made(tocsin::any_operation(note, local, *event))));
        all.back()->start();
    }
    EXPECT_EQ(event.slots_in(1), static_cast<unsigned>(count));
    for (int i = 0; i != count; ++i) event->set();
    EXPECT_FALSE(event->is_set());
    ASSERT_TRUE(comes_true([&] { return ended.load() == count; }));
    EXPECT_FALSE(event->is_set());
}

TEST(SharedSource, SetThenResetEndsAllWaitsThatWereQueued) {
    gate opened;
    tocsin::auto_reset_event local;
    std::atomic<int> ended{0};
    auto first =
        tocsin::any_operation([&](tocsin::any_result) noexcept { ended.fetch_add(1); }, local, *opened);
    auto second =
        tocsin::any_operation([&](tocsin::any_result) noexcept { ended.fetch_add(1); }, local, *opened);
    auto late =
        tocsin::any_operation([&](tocsin::any_result) noexcept { ended.fetch_add(100); }, local, *opened);
    first.start();
    second.start();
    opened->set();
    opened->reset();
    late.start();
    ASSERT_TRUE(comes_true([&] { return ended.load() == 2; }));
    EXPECT_TRUE(late.cancel());
    EXPECT_EQ(ended.load(), 102);
}

TEST(SharedSource, ACoroutineWaitsForThem) {
    token event;
    permits jobs;
    tocsin::auto_reset_event local;
    const auto both = [&]() -> tocsin::task<int> {
        const auto first = co_await tocsin::async_wait_any(local, *event);
        const auto second = co_await tocsin::async_wait_any({.until = 10min}, *jobs, local);
        co_return static_cast<int>(first.index * 10 + second.index);
    };
    const pid_t child = in_child([&] {
        if (!comes_true([&] { return event.slots_in(1) == 1; })) ::_exit(1);
        event->set();
        if (!comes_true([&] { return jobs.slots_in(1) == 1; })) ::_exit(1);
        jobs->release();
    });
    EXPECT_EQ(tocsin::sync_wait(both()), 10);
    EXPECT_EQ(end_of(child), 0);
}

// A function of an operation may start waits itself, and so may a thread that holds a lock of it.
TEST(SharedSource, AnOperationsFunctionMayStartTheNext) {
    permits jobs;
    tocsin::auto_reset_event local;
    std::atomic<int> taken{0};
    struct starter {
        void operator()(tocsin::any_result) const noexcept {
            if (taken.fetch_add(1) + 1 < 20) again();
        }
        std::atomic<int>& taken;
        const std::function<void()>& again;
    };
    std::function<void()> again;
    auto operation = tocsin::any_operation(starter{taken, again}, local, *jobs);
    again = [&] { operation.start(); };
    operation.start();
    for (int i = 0; i != 20; ++i) jobs->release();
    ASSERT_TRUE(comes_true([&] { return taken.load() == 20; }));
}

TEST(SharedSource, NoTimeoutEatsAPermit) {
    permits jobs;
    token never;
    std::atomic<bool> ends{false};
    std::atomic<long> taken{0};
    std::vector<std::jthread> takers;
    for (int i = 0; i != 3; ++i) {
        takers.emplace_back([&, i] {
            while (!ends.load()) {
                const auto until = std::chrono::microseconds(20 + 30 * i);
                if (tocsin::wait_any({.until = until}, *never, *jobs).status == wait_status::signaled)
                    taken.fetch_add(1);
            }
        });
    }
    constexpr long given = 300;
    for (long i = 0; i != given; ++i) {
        jobs->release();
        if (i % 3 == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(
        comes_true([&] { return taken.load() + jobs->available() == given && jobs->available() == 0; }));
    ends.store(true);
    takers.clear();
    EXPECT_EQ(taken.load() + jobs->available(), given);
    EXPECT_EQ(jobs.slots_in(1) + jobs.slots_in(2), 0u);
}

// A process that waits for both, and has been stopped in its wait.
pid_t stopped_waiter(token& event, tocsin::auto_reset_event& local) {
    const pid_t child = in_child([&] { (void)tocsin::wait_any(local, *event); });
    EXPECT_TRUE(comes_true([&] { return event.slots_in(1) == 1; }));
    EXPECT_EQ(::kill(child, SIGSTOP), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, WUNTRACED), child);
    return child;
}

TEST(SharedSource, ATokenHandedToAProcessThatDiesGoesToTheNextWait) {
    if (support::thread_sanitizer) GTEST_SKIP() << no_threads_in_children;
    token event;
    tocsin::auto_reset_event local;
    const pid_t child = stopped_waiter(event, local);
    std::jthread killer([&] {
        ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 2; }));
        event->set();  // to the child, which has waited longest
        ASSERT_EQ(event.slots_in(2), 1u);
        kill_now(child);
    });
    EXPECT_EQ(tocsin::wait_any(local, *event).index, 1u);
    EXPECT_FALSE(event->is_set());
}

TEST(SharedSource, AStoppedProcessHoldsNobodyUp) {
    if (support::thread_sanitizer) GTEST_SKIP() << no_threads_in_children;
    token event;
    tocsin::auto_reset_event local;
    const pid_t child = stopped_waiter(event, local);
    std::jthread setter([&] {
        ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 2; }));
        event->set();
        event->set();
    });
    EXPECT_EQ(tocsin::wait_any(local, *event).index, 1u);
    ASSERT_EQ(::kill(child, SIGCONT), 0);
    EXPECT_EQ(end_of(child), 0);
    EXPECT_FALSE(event->is_set());
}

TEST(SharedSource, KillsAtAnyMomentLeaveNothing) {
    if (support::thread_sanitizer) GTEST_SKIP() << no_threads_in_children;
    token event;
    permits jobs;
    for (int i = 0; i != 100; ++i) {
        const pid_t child = in_child([&] {
            tocsin::auto_reset_event local;
            for (;;) (void)tocsin::wait_any({.until = 100us}, *event, local, *jobs);
        });
        // no fact to wait for: the kill is to come at any moment
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100 + i * 97 % 5000);
        while (std::chrono::steady_clock::now() < end) event->set();
        kill_now(child);
    }
    (void)event->wait_for(0ms);
    event->reset();
    // Every slot can be used again: as many waits as there are slots are released.
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i != tocsin::shared_semaphore::slots; ++i)
        threads.emplace_back([&] { jobs->acquire(); });
    ASSERT_TRUE(comes_true([&] { return jobs.slots_in(1) == tocsin::shared_semaphore::slots; }));
    jobs->release(tocsin::shared_semaphore::slots);
    threads.clear();
    EXPECT_EQ(jobs->available(), 0);
    tocsin::auto_reset_event local;
    std::jthread setter([&] {
        ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 1; }));
        event->set();
    });
    EXPECT_EQ(tocsin::wait_any(local, *event).index, 1u);
}

TEST(SharedSource, MoreWaitsThanSlotsAllGetTheirPermits) {
    permits jobs;
    tocsin::auto_reset_event local;
    constexpr int count = 40;
    std::atomic<int> ended{0};
    const auto note = [&](tocsin::any_result) noexcept { ended.fetch_add(1); };
    using made = decltype(tocsin::any_operation(note, local, *jobs));
    std::vector<std::unique_ptr<made>> all;
    for (int i = 0; i != count; ++i) {
        all.push_back(std::unique_ptr<made>(new made(tocsin::any_operation(note, local, *jobs))));
        all.back()->start();
    }
    EXPECT_EQ(jobs.slots_in(1), 31u);
    jobs->release(count);
    EXPECT_TRUE(comes_true([&] { return ended.load() == count; }));
    EXPECT_EQ(jobs->available(), 0);
}

TEST(SharedSource, AnOperationThatIsDestroyedGivesItsTokenBack) {
    token event;
    tocsin::auto_reset_event local;
    std::atomic<int> handed{0};
    auto later = [&](tocsin::ended_operation) { handed.store(1); };
    {
        auto operation = tocsin::any_operation([](tocsin::any_result) noexcept { FAIL(); }, local, *event);
        operation.on(later).start();
        event->set();
        ASSERT_TRUE(comes_true([&] { return handed.load() == 1; }));
        EXPECT_FALSE(event->is_set());
    }
    EXPECT_TRUE(event->is_set());
}

TEST(SharedSource, TheChildOfAForkWaitsForItself) {
    if (support::thread_sanitizer) GTEST_SKIP() << no_threads_in_children;
    token event;
    tocsin::auto_reset_event local;
    EXPECT_EQ(tocsin::wait_any({.until = 1ms}, local, *event).status, wait_status::timed_out);
    const pid_t child = in_child([&] {
        if (tocsin::wait_any(local, *event).index != 1) ::_exit(1);
    });
    ASSERT_TRUE(comes_true([&] { return event.slots_in(1) == 1; }));
    event->set();
    EXPECT_EQ(end_of(child), 0);
}

TEST(SharedSource, MemoryMayGoOnceTheWaitHasEnded) {
    tocsin::auto_reset_event local;
    for (int i = 0; i != 50; ++i) {
        const auto event = std::make_unique<token>();
        const auto opened = std::make_unique<gate>();
        EXPECT_EQ(tocsin::wait_any({.until = 50us}, local, **event, **opened).status, wait_status::timed_out);
    }
}

void expect_refusal(std::string_view words, auto call) {
    try {
        call();
        ADD_FAILURE() << "no error";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string_view(error.what()).find(words), std::string_view::npos) << error.what();
    }
}

TEST(SharedSource, WhatCanNotBeHadIsRefused) {
    token event;
    gate opened;
    permits counted;
    tocsin::auto_reset_event local;
    local.set();
    event->set();
    opened->set();
    counted->release();
    EXPECT_THROW((void)tocsin::wait_all(local, tocsin::source(*event)), std::invalid_argument);
    EXPECT_THROW((void)tocsin::wait_all(local, tocsin::source(*opened)), std::invalid_argument);
    EXPECT_THROW((void)tocsin::wait_all(local, tocsin::source(*counted)), std::invalid_argument);
    tocsin::wait_set set;
    for (const tocsin::source& each :
         {tocsin::source(*event), tocsin::source(*opened), tocsin::source(*counted)}) {
        expect_refusal("no object that processes share", [&] { set.add(each, 1); });
        expect_refusal("no object that processes share", [&] { const tocsin::pollable watched(each); });
    }
    std::array<tocsin::ready_item, 1> ready;
    EXPECT_EQ(set.wait({.until = 0s}, ready).count, 0u);
    EXPECT_TRUE(local.try_wait() && event->try_wait() && counted->try_acquire());  // a refusal takes nothing
    auto& wrong = *reinterpret_cast<tocsin::shared_semaphore*>(event.bytes());
    try {
        (void)tocsin::wait_any(local, wrong);
        FAIL();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string_view(error.what()).find("shared_auto_reset_event"), std::string_view::npos);
    }
    EXPECT_THROW((void)tocsin::async_wait_any(local, wrong), std::system_error);
    EXPECT_THROW((void)tocsin::as_sender(local, wrong), std::system_error);
    EXPECT_THROW((void)tocsin::any_operation([](tocsin::any_result) noexcept {}, local, wrong),
                 std::system_error);
}

}  // namespace
