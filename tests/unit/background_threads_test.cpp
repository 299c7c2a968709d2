// SPDX-License-Identifier: Apache-2.0
// How the library's background threads are scheduled (await.hpp): as the program's first thread was when the library
// was loaded, whatever the thread has whose wait starts them. Each case runs in a child process, which has no
// background threads yet.
#include "child.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "task.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/watchdog.hpp>

#include <gtest/gtest.h>

#include <chrono>
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
using support::task;
using tocsin::auto_reset_event;

std::set<pid_t> threads_of_this_process() {
    std::set<pid_t> all;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
        all.insert(std::stoi(each.path().filename()));
    return all;
}

struct scheduling {
    static scheduling of(pid_t thread) {
        scheduling result;
        result.policy = sched_getscheduler(thread);
        result.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
        cpu_set_t allowed;
        if (sched_getaffinity(thread, sizeof allowed, &allowed) == 0) result.processors = CPU_COUNT(&allowed);
        std::ifstream("/proc/" + std::to_string(thread) + "/timerslack_ns") >> result.slack;
        return result;
    }
    friend bool operator==(const scheduling&, const scheduling&) = default;

    int policy = -1;
    int nice = 0;
    int processors = 0;
    long slack = 0;  // in nanoseconds; 0 if the system does not tell it of another thread
};

void slow_down() {
    prctl(PR_SET_TIMERSLACK, 2'000'000'000ul, 0, 0, 0);
    setpriority(PRIO_PROCESS, 0, 19);
    const sched_param lowest{};
    sched_setscheduler(0, SCHED_IDLE, &lowest);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int each = 0; CPU_COUNT(&allowed) > 1; ++each) CPU_CLR(each, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

// Whether a thread may undo slow_down().
bool may_speed_up() {
    bool may = false;
    std::thread([&] {
        slow_down();
        const sched_param none{};
        may = sched_setscheduler(0, SCHED_OTHER, &none) == 0 && setpriority(PRIO_PROCESS, 0, 0) == 0;
    }).join();
    return may;
}

constexpr int may_not = 77;

TEST(BackgroundThreads, AreScheduledAsTheProgramsFirstThreadWas) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    const auto ending = support::ending_of_child([] {
        if (!may_speed_up()) return may_not;
        const scheduling expected = scheduling::of(getpid());
        const std::set<pid_t> before = threads_of_this_process();
        int result = 0;
        std::thread([&] {
            slow_down();
            auto_reset_event event;
            int ends[2];
            if (pipe(ends) != 0) std::abort();
            const auto until = [&](auto when) -> task {
                co_await tocsin::async_wait({.until = when}, event);
            };
            const task steady = until(std::chrono::steady_clock::now() + 1h);
            const task system = until(std::chrono::system_clock::now() + 1h);
            const task polls = [](int descriptor) -> task {
                co_await tocsin::async_wait(tocsin::readable(descriptor));
            }(ends[0]);
            const auto dog = tocsin::report_waits_longer_than(1h, [](const tocsin::parked_wait&) {});
            int others = 0;
            const auto self = static_cast<pid_t>(syscall(SYS_gettid));
            for (const pid_t each : threads_of_this_process()) {
                if (each == self || before.contains(each)) continue;
                ++others;
                support::until("a background thread is scheduled like the first thread",
                               [&] { return scheduling::of(each) == expected; });
            }
            if (others != 4) result = 1;
            _exit(result);
        }).join();
        return result;
    });
    if (ending == "exit code 77")
        GTEST_SKIP() << "this process may not undo what it does to a thread's scheduling";
    EXPECT_EQ(ending, "");
}

// The slack needs no rights. With the slack of the thread whose wait starts it, the background thread would sleep for
// two seconds.
TEST(BackgroundThreads, HaveATimerSlackOfTheirOwn) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    EXPECT_EQ(support::ending_of_child([] {
                  prctl(PR_SET_TIMERSLACK, 2'000'000'000ul, 0, 0, 0);
                  auto_reset_event event;
                  const auto begin = std::chrono::steady_clock::now();
                  const task waiting = [](auto_reset_event& on) -> task {
                      co_await tocsin::async_wait({.until = 5ms}, on);
                  }(event);
                  waiting.join();
                  return std::chrono::steady_clock::now() - begin < 1s ? 0 : 1;
              }),
              "");
}

TEST(BackgroundThreads, DoNotIncludeAHandlerThreadWhichInherits) {
    std::thread([] {
        setpriority(PRIO_PROCESS, 0, 7);
        tocsin::handler_thread handler;
        EXPECT_EQ(handler.send([] { return getpriority(PRIO_PROCESS, 0); }), 7);
    }).join();
}

}  // namespace
#endif
