// SPDX-License-Identifier: Apache-2.0
// How the library's background threads are scheduled ("Background threads" in docs/guide.md): as the program's first
// thread was when the library was loaded, whatever the thread has whose wait starts them. Each case runs in a child
// process, which has no background threads yet.
#include "child.hpp"
#include "facts.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "scheduling.hpp"
#include "task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/watchdog.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using tocsin::auto_reset_event;

constexpr int may_not = 77;

// Waits for each of which the library starts a thread: one for each clock, one that polls, and the watchdog's.
struct waits_with_threads {
    static task until(auto_reset_event& on, tocsin::deadline when) {
        co_await tocsin::async_wait({.until = when}, on);
    }
    static task polling(int descriptor) { co_await tocsin::async_wait(tocsin::readable(descriptor)); }

    static constexpr int threads = 4;
    auto_reset_event event;
    support::pipe_ends idle;
    task steady = until(event, std::chrono::steady_clock::now() + 1h);
    task system = until(event, std::chrono::system_clock::now() + 1h);
    task polls = polling(idle.out());
    tocsin::wait_watchdog dog = tocsin::report_waits_longer_than(1h, [](const tocsin::parked_wait&) {});
};

TEST(BackgroundThreads, AreScheduledAsTheProgramsFirstThreadWas) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    const auto ending = support::ending_of_child([] {
        if (!may_speed_up()) return may_not;
        const scheduling expected = scheduling::of(getpid());
        const std::set<pid_t> before = threads_of_this_process();
        int result = 0;
        std::thread([&] {
            slow_down();
            const waits_with_threads waits;
            support::speed_up();
            int others = 0;
            const auto self = static_cast<pid_t>(syscall(SYS_gettid));
            for (const pid_t each : threads_of_this_process()) {
                if (each == self || before.contains(each)) continue;
                ++others;
                support::until("a background thread is scheduled like the first thread",
                               [&] { return scheduling::of(each) == expected; });
            }
            if (others != waits.threads) result = 1;
            _exit(result);
        }).join();
        return result;
    });
    if (ending == "exit code 77")
        GTEST_SKIP() << "this process may not undo what it does to a thread's scheduling";
    EXPECT_EQ(ending, "");
}

// The slack needs no rights. With the slack of the thread whose wait starts it, the background thread would sleep for
// four seconds.
TEST(BackgroundThreads, HaveATimerSlackOfTheirOwn) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    EXPECT_EQ(support::ending_of_child([] {
                  prctl(PR_SET_TIMERSLACK, 4'000'000'000ul, 0, 0, 0);
                  auto_reset_event event;
                  const auto begin = std::chrono::steady_clock::now();
                  const task waiting = [](auto_reset_event& on) -> task {
                      co_await tocsin::async_wait({.until = 5ms}, on);
                  }(event);
                  waiting.join();
                  return std::chrono::steady_clock::now() - begin < 4s ? 0 : 1;
              }),
              "");
}

// So the handlers of the program's signals run in its own threads. (With which mask a background thread resumes
// coroutines: tests/unit/signals_and_errno_test.cpp.)
TEST(BackgroundThreads, BlockAllSignalsWhileTheyWait) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    const auto ending = support::ending_of_child([] {
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, nullptr);
        const std::set<pid_t> before = threads_of_this_process();
        const waits_with_threads waits;
        int others = 0;
        for (const pid_t each : threads_of_this_process()) {
            if (before.contains(each)) continue;
            ++others;
            support::until_asleep(each);
            if (!support::blocks(each, {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGIO}))
                return 2;
        }
        _exit(others == waits.threads ? 0 : 3);
    });
    EXPECT_EQ(ending, "");
}

TEST(BackgroundThreads, DoNotIncludeAHandlerThreadWhichInherits) {
    std::thread([] {
        // A thread without rights can only become less urgent.
        const int less_urgent = std::min(getpriority(PRIO_PROCESS, 0) + 1, 19);
        ASSERT_EQ(setpriority(PRIO_PROCESS, 0, less_urgent), 0);
        tocsin::handler_thread handler;
        EXPECT_EQ(handler.send([] { return getpriority(PRIO_PROCESS, 0); }), less_urgent);
    }).join();
}

}  // namespace
#endif
