// SPDX-License-Identifier: Apache-2.0
// The library before main and after it, in destructors of thread-local objects, and in threads and processes that end.
#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"
#include "working_event.hpp"
#include "working_family.hpp"

#include <tocsin/await.hpp>
#include <tocsin/barrier.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/group_commit.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

constinit manual_reset_event global_gate;
constinit auto_reset_event global_token;
constinit tocsin::word_lock<> global_lock;
constinit tocsin::counting_semaphore<> global_permits(0);
constinit tocsin::condition global_condition;
constinit tocsin::latch global_latch(2);
constinit tocsin::latch latch_after_main(2);
constinit tocsin::barrier<> global_barrier(2);
constinit tocsin::channel<int> global_meeting(0);
bool worked_before_main = false;
bool check_after_main = false;

#if defined(__EMSCRIPTEN__)
// A thread begins to run when the main thread has reached its event loop.
constexpr bool threads_before_main = false;
#else
constexpr bool threads_before_main = true;
#endif

// Also a channel with slots, which is made at that moment.
bool the_family_works(tocsin::latch& fresh, bool with_threads = true) {
    tocsin::channel<int> slots(3);
    return support::works(global_permits, with_threads) && support::works(global_condition, with_threads) &&
           support::works(fresh, with_threads) && support::works(global_barrier, with_threads) &&
           support::works(global_meeting, with_threads) && support::works(slots, with_threads);
}

struct before_and_after_main {
    before_and_after_main() {
        const std::scoped_lock held(global_lock);
        worked_before_main = everything_works_on(global_gate, threads_before_main) &&
                             everything_works_on(global_token, threads_before_main) &&
                             the_family_works(global_latch, threads_before_main);
    }
    ~before_and_after_main() {
        if (!check_after_main) return;
        const std::scoped_lock held(global_lock);
        if (!everything_works_on(global_gate) || !everything_works_on(global_token)) _exit(3);
        if (!global_latch.try_wait() || !the_family_works(latch_after_main)) _exit(5);
        std::fputs("works after main\n", stderr);
    }
} before_and_after;

TEST(EventsAndTheirFamily, WorkBeforeMain) { EXPECT_TRUE(worked_before_main); }

#if defined(GTEST_HAS_DEATH_TEST)
TEST(EventsAndTheirFamily, WorkAfterMain) {
    testing::GTEST_FLAG(death_test_style) = "fast";
    EXPECT_EXIT(
        {
            check_after_main = true;
            std::atexit([] {
                if (!everything_works_on(global_gate)) _exit(4);
            });
            std::exit(0);
        },
        testing::ExitedWithCode(0), "works after main");
}
#endif

#if TOCSIN_ON_POSIX
struct thread_local_user {
    auto_reset_event* announce = nullptr;
    auto_reset_event* wait_for = nullptr;
    manual_reset_event own;
    bool* worked = nullptr;
    ~thread_local_user() {
        if (worked == nullptr) return;
        own.set();
        own.wait();
        announce->set();
        wait_for->wait();
        *worked = everything_works_on(own);
        own.reset();
    }
};
thread_local thread_local_user user;

TEST(Events, WorkInDestructorsOfThreadLocalObjects) {
    for (int round = 0; round < 20; ++round) {
        auto_reset_event announced;
        auto_reset_event go_on;
        bool worked = false;
        thread_group threads;
        threads.start("ending", [&] {
            user.announce = &announced;
            user.wait_for = &go_on;
            user.worked = &worked;
        });
        announced.wait();
        until_parked(&go_on, 1);
        go_on.set();
        threads.join();
        EXPECT_TRUE(worked);
    }
}
#endif

#if TOCSIN_ON_POSIX
struct thread_local_family {
    bool* worked = nullptr;
    tocsin::counting_semaphore<> permits{0};
    tocsin::condition condition;
    tocsin::latch latch{2};
    tocsin::barrier<> barrier{2};
    tocsin::channel<int> slots{2};
    ~thread_local_family() {
        if (worked == nullptr) return;
        *worked = support::works(permits) && support::works(condition) && support::works(latch) &&
                  support::works(barrier) && support::works(slots);
    }
};
thread_local thread_local_family family;

TEST(TheFamilyOfEvents, WorksInDestructorsOfThreadLocalObjects) {
    for (int round = 0; round < 20; ++round) {
        bool worked = false;
        thread_group threads;
        threads.start("ending", [&] { family.worked = &worked; });
        threads.join();
        EXPECT_TRUE(worked);
    }
}
#endif

TEST(Events, WorkInDestructorsOfPthreadKeys) {
    static pthread_key_t key;
    static auto_reset_event token;
    static std::atomic<int> worked{0};
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void*) {
                                     if (token.wait_for(50us) == wait_status::timed_out) worked.fetch_add(1);
                                     token.set();
                                     token.wait();
                                     worked.fetch_add(1);
                                 }),
              0);
    thread_group threads;
    threads.start("ending", [&] { pthread_setspecific(key, &key); });
    threads.join();
    EXPECT_EQ(worked.load(), 2);
    pthread_key_delete(key);
}

TEST(Threads, MayEndRightAfterTheyWereReleasedAndRightAfterTheySet) {
    auto_reset_event token;
    auto_reset_event done;
    for (int round = 0; round < rounds(1000, 300); ++round) {
        std::thread waiter([&] {
            token.wait();
            done.set();
        });
        std::thread setter([&] { token.set(); });
        setter.join();
        done.wait();
        waiter.join();
    }
}

TEST(Threads, ManyGenerationsWaitOnTheSameStacks) {
    manual_reset_event event;
    auto_reset_event never_set;
    for (int generation = 0; generation < rounds(60, 20); ++generation) {
        thread_group threads;
        threads.start_many(8, "one of a generation", [&](int i) {
            if (i % 3 == 0) {
                EXPECT_EQ(never_set.wait_for(10us * i), wait_status::timed_out);
            }
            event.wait();
        });
        until_parked(&event, 8);
        event.set();
        event.reset();
        threads.join();
    }
}

#if TOCSIN_ON_POSIX
TEST(AProcess, MayEndInTheThreadThatWasReleased) {
    for (int round = 0; round < rounds(30, 6); ++round) {
        const auto ending = support::ending_of_child([&] {
            static auto_reset_event event;
            std::thread([&] {
                event.wait();
                if (round % 2 == 0) _exit(0);
                std::exit(0);  // runs all destructors, while set() may still be under way
            }).detach();
            if (round % 3 != 0) until_parked(&event, 1);
            event.set();
            for (;;) pause();
            return 1;
        });
        ASSERT_EQ(ending, "");
    }
}
#endif

// Static objects on which detached threads wait when the process exits: nobody can stop such threads before exit()
// destroys the objects. Also objects that static objects own.
struct in_memory {
    auto_reset_event event;
    tocsin::channel<int> slots{1};
};
struct waited_for_at_exit {
    manual_reset_event gate;
    auto_reset_event token;
    auto_reset_event one;
    auto_reset_event other;
    auto_reset_event awaited;
    tocsin::counting_semaphore<> permits{0};
    std::mutex mutex;
    tocsin::condition condition;
    tocsin::latch latch{2};
    tocsin::barrier<> barrier{2};
    tocsin::channel<int> slots{1};
    tocsin::channel<int> meeting{0};
    tocsin::driver driver;
    auto_reset_event driven;
    manual_reset_event flushing;
    manual_reset_event flush_end;
    tocsin::group_commit<int> commit{[this](tocsin::commit_group<int>) {
        flushing.set();
        flush_end.wait();
    }};
    std::unique_ptr<in_memory> owned = std::make_unique<in_memory>();
#if TOCSIN_ON_POSIX
    auto_reset_event member;
    tocsin::wait_set set;
#endif
};

#if TOCSIN_ON_POSIX
support::task waits_at_exit(waited_for_at_exit& all) {
    co_await tocsin::async_wait({.until = 1h}, all.awaited);
}
support::task waits_by_driver(waited_for_at_exit& all) {
    co_await tocsin::async_wait({.until = 1h}, all.driven).by(all.driver);
}

TEST(AProcess, MayExitWhileDetachedThreadsAndCoroutinesWaitForStaticObjects) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    const auto ending = support::ending_of_child([] {
        static waited_for_at_exit all;
        static const support::task coroutine = waits_at_exit(all);
        static const support::task driven = waits_by_driver(all);
        const auto detached = [](auto wait) { std::thread(wait).detach(); };
        all.set.add(all.member, 1);
        detached([] { all.gate.wait(); });
        detached([] { all.token.wait(); });
        detached([] { (void)tocsin::wait_any(all.one, all.other); });
        detached([] { tocsin::wait_all(all.one, all.other); });
        detached([] { all.permits.acquire(); });
        detached([] {
            std::unique_lock lock(all.mutex);
            all.condition.wait(lock);
        });
        detached([] { all.latch.wait(); });
        detached([] { all.barrier.arrive_and_wait(); });
        detached([] { (void)all.slots.receive(); });
        detached([] { all.meeting.send(1); });
        detached([] { all.owned->event.wait(); });
        detached([] { (void)all.owned->slots.receive(); });
        detached([] {
            std::array<tocsin::ready_item, 1> items;
            all.set.wait(items);
        });
        detached([] {
            int mine = 0;
            all.commit.submit(mine);
        });
        all.flushing.wait();
        detached([] {
            int mine = 1;
            all.commit.submit(mine);
        });
        const void* const waited_for_once[] = {
            &all.gate,    &all.token,     &all.permits, &all.condition,    &all.latch,
            &all.barrier, &all.slots,     &all.meeting, &all.owned->event, &all.owned->slots,
            &all.set,     &all.flush_end, &all.commit};
        for (const void* const each : waited_for_once) until_parked(each, 1);
        until_parked(&all.one, 2);  // wait_any and wait_all
        until_parked(&all.other, 2);
        std::exit(0);
        return 1;
    });
    EXPECT_EQ(ending, "");
}

// Outside of exit() it is a mistake, which checked builds find, even while the process has other static objects.
#if TOCSIN_CHECKED
TEST(AProcess, ThatDestroysAnObjectOnWhichAThreadWaitsIsStopped) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    const auto ending = support::ending_of_child([] {
        auto* const event = new auto_reset_event;
        std::thread([event] { event->wait(); }).detach();
        until_parked(event, 1);
        if (std::freopen("/dev/null", "w", stderr) == nullptr) return 1;
        delete event;
        return 0;
    });
    EXPECT_EQ(ending, "ended by signal 6");
}
#endif
#endif

}  // namespace
