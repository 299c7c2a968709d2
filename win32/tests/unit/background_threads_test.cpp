// SPDX-License-Identifier: Apache-2.0
// The threads that serve timers and callbacks are scheduled as the program's first thread was when the library was
// loaded, whatever the thread has whose call starts them. The case runs in a child process, which has none of them yet.
#include "child.hpp"
#include "facts.hpp"
#include "sanitizer.hpp"
#include "support.hpp"

#if defined(__linux__)
#include "scheduling.hpp"

#include <csignal>
#include <cstdlib>
#include <set>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int may_not = 77;

TEST(win32_background_threads, AreScheduledAsTheProgramsFirstThreadWas) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    const auto ending = support::ending_of_child([] {
        if (!support::may_speed_up()) return may_not;
        const auto expected = support::scheduling::of(getpid());
        const std::set<pid_t> before = support::threads_of_this_process();
        std::thread([&] {
            support::slow_down();
            HANDLE timer = nullptr;
            const auto nothing = [](PVOID, BOOLEAN) {};
            // Both clocks' threads, and of two pools at least one each (a second where the first is late)
            if (CreateTimerQueueTimer(&timer, nullptr, nothing, nullptr, 3'600'000, 0,
                                      WT_EXECUTEINTIMERTHREAD) == 0)
                std::abort();
            if (QueueUserWorkItem([](PVOID) -> DWORD { return 0; }, nullptr, WT_EXECUTEDEFAULT) == 0)
                std::abort();
            support::speed_up();
            int others = 0;
            const auto self = static_cast<pid_t>(syscall(SYS_gettid));
            for (const pid_t each : support::threads_of_this_process()) {
                if (each == self || before.contains(each)) continue;
                ++others;
                support::until("a background thread is scheduled like the first thread",
                               [&] { return support::scheduling::of(each) == expected; });
            }
            _exit(others >= 4 ? 0 : 1);
        }).join();
        return 1;
    });
    if (ending == "exit code 77")
        GTEST_SKIP() << "this process may not undo what it does to a thread's scheduling";
    EXPECT_EQ(ending, "");
}

}  // namespace
#endif
