// SPDX-License-Identifier: Apache-2.0
// The end of a process as a source. The source never reaps, and stays ready.
#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/process.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#if TOCSIN_ON_POSIX
#include <poll.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using namespace tocsin;

int start_pausing() {
    const pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    return child;
}

int start_exiting(int code) {
    const pid_t child = fork();
    if (child == 0) _exit(code);
    return child;
}

// Whether this system can make such a source at all: a sandbox may forbid it.
bool is_possible() {
    try {
        const process_end self(getpid());
        return true;
    } catch (const std::system_error& error) {
        EXPECT_TRUE(error.code().value() == ENOSYS || error.code().value() == EPERM) << error.what();
        return false;
    }
}

#define NEEDS_PROCESS_END() \
    if (!is_possible()) GTEST_SKIP() << "the system has no descriptor for the end of a process"

TEST(ProcessEnd, EndsAWaitBesideAnEventAndStaysEnded) {
    NEEDS_PROCESS_END();
    const int child = start_pausing();
    auto_reset_event event;
    const process_end ended(child);
    EXPECT_FALSE(ended.try_wait());
    EXPECT_EQ(ended.exit_status(), std::nullopt);
    EXPECT_EQ(wait_any({.until = 1ms}, event, ended).status, wait_status::timed_out);
    support::thread_group threads;
    for (int i = 0; i != 2; ++i) {
        threads.start("waiter", [&] { EXPECT_EQ(wait_any(event, ended).index, 1u); });
    }
    support::until_parked(&event, 2);
    kill(child, SIGKILL);
    threads.join();
    for (int i = 0; i != 3; ++i) {
        EXPECT_TRUE(ended.try_wait());
        EXPECT_EQ(wait_any(ended, event).index, 0u);
        EXPECT_EQ(ended.exit_status(), (process_exit{SIGKILL, true}));
    }
    EXPECT_EQ(support::ending_of(child), "ended by signal 9");  // it was not reaped
    EXPECT_TRUE(ended.try_wait());
    EXPECT_EQ(ended.exit_status(), std::nullopt);
}

TEST(ProcessEnd, TellsTheExitCodeWithoutReaping) {
    NEEDS_PROCESS_END();
    const int child = start_exiting(42);
    const process_end ended(child);
    wait_any(ended);
    EXPECT_EQ(ended.exit_status(), (process_exit{42, false}));
    EXPECT_EQ(support::ending_of(child), "exit code 42");
}

TEST(ProcessEnd, MayBeNamedAfterItsEndWhileItIsNotReaped) {
    NEEDS_PROCESS_END();
    const int child = start_exiting(3);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    {
        const process_end ended(child);
        EXPECT_TRUE(ended.try_wait());
        EXPECT_EQ(ended.exit_status(), (process_exit{3, false}));
    }
    EXPECT_EQ(support::ending_of(child), "exit code 3");
    try {
        const process_end gone(child);
        ADD_FAILURE() << "a reaped process has no source";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code().value(), ESRCH);
    }
}

#if defined(__linux__)
TEST(ProcessEnd, TheNumberOfAThreadIsNoProcess) {
    NEEDS_PROCESS_END();
    support::thread_group threads;
    threads.start("not the first", [] {
        const auto number = static_cast<int>(syscall(SYS_gettid));
        try {
            const process_end none(number);
            ADD_FAILURE() << "not refused";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code().value(), ESRCH);
            EXPECT_NE(std::string(error.what()).find(std::to_string(number)), std::string::npos)
                << error.what();
        }
    });
}

TEST(ProcessEnd, ComesWhenTheLastThreadEnds) {
    NEEDS_PROCESS_END();
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        static int go_on = ends[0];
        pthread_t other;
        const auto body = [](void*) -> void* {
            char one;
            _exit(read(go_on, &one, 1) == 1 ? 5 : 6);
        };
        if (pthread_create(&other, nullptr, body, nullptr) != 0) _exit(7);
        syscall(SYS_exit, 0);  // not pthread_exit(), which unwinds through the framework
    }
    const process_end ended(child);
    EXPECT_EQ(wait_any({.until = 20ms}, ended).status, wait_status::timed_out);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(wait_any(ended).index, 0u);
    EXPECT_EQ(ended.exit_status(), (process_exit{5, false}));
    EXPECT_EQ(support::ending_of(child), "exit code 5");
    close(ends[0]);
    close(ends[1]);
}
#endif

TEST(ProcessEnd, OfAProcessThatIsNoChildHasNoExitStatus) {
    NEEDS_PROCESS_END();
    const process_end parent(getppid());
    EXPECT_FALSE(parent.try_wait());
    EXPECT_EQ(parent.exit_status(), std::nullopt);
}

TEST(ProcessEnd, RefusesWhatIsNoProcess) {
    EXPECT_THROW(process_end(0), std::invalid_argument);
    EXPECT_THROW(process_end(-1), std::invalid_argument);
}

TEST(ProcessEnd, IsAMemberOfASet) {
    NEEDS_PROCESS_END();
    const int child = start_pausing();
    const process_end ended(child);
    tocsin::wait_set set;
    set.add(ended, 7);
    tocsin::ready_item found[2];
    EXPECT_EQ(set.wait({.until = 1ms}, found).count, 0u);
    kill(child, SIGTERM);
    for (int i = 0; i != 2; ++i) {
        ASSERT_EQ(set.wait(found).count, 1u);
        EXPECT_EQ(found[0].tag, 7u);
    }
    EXPECT_TRUE(set.remove(ended));
    EXPECT_EQ(support::ending_of(child), "ended by signal 15");
}

TEST(ProcessEnd, ResumesACoroutine) {
    NEEDS_PROCESS_END();
    const int child = start_pausing();
    const process_end ended(child);
    manual_reset_event resumed;
    const support::task waiting = [](const process_end& end, manual_reset_event& done) -> support::task {
        co_await tocsin::async_wait(end);
        done.set();
    }(ended, resumed);
    EXPECT_FALSE(resumed.is_set());
    kill(child, SIGTERM);
    resumed.wait();
    waiting.join();
    EXPECT_EQ(support::ending_of(child), "ended by signal 15");
}

TEST(ProcessEnd, IsRefusedByAWaitForAll) {
    NEEDS_PROCESS_END();
    const process_end self(getpid());
    manual_reset_event gate(true);
    EXPECT_THROW(tocsin::wait_all(gate, tocsin::source(self)), std::invalid_argument);
}

TEST(ProcessEnd, IsAForeignLoopsDescriptor) {
    NEEDS_PROCESS_END();
    const int child = start_exiting(0);
    const process_end ended(child);
    pollfd one{ended.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, -1), 1);
    EXPECT_EQ(support::ending_of(child), "");
}

}  // namespace
#endif
