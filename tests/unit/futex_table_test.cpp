// SPDX-License-Identifier: Apache-2.0
// The kernel's table of sleeping threads (Linux 6.16 and later), and what the library does to it. Each case runs in a
// child process of its own, which begins with the kernel's usual table.
#include "child.hpp"
#include "facts.hpp"
#include "refused_calls.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/futex_table.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#if defined(__linux__)
#include <linux/filter.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

using support::thread_group;

constexpr int threads = 320;  // more than 16 for each of the 16 slots of a small machine
constexpr int max_usual = 16;

long slots() { return prctl(78, 2UL, 0UL, 0UL, 0UL); }

// In a child with that many threads, each of which sleeps once: "" if `prepare` and then `check` return true.
template <class Prepare, class Check>
std::string in_a_child_with_many_threads(Prepare prepare, Check check) {
    return support::ending_of_child([&] {
        if (!prepare()) return 2;
        constexpr int more = 64;  // sleeps, at one of which the library looks while all other threads sleep
        static tocsin::auto_reset_event own[threads + more];
        thread_group sleepers;
        const support::small_stacks small;
        sleepers.start_many(threads, "sleeper", [](int i) { own[i].wait(); });
        for (int i = 0; i != threads; ++i) support::until_parked(&own[i], 1);
        support::until_others_sleep();
        sleepers.start_many(more, "another sleeper", [](int i) { own[threads + i].wait(); });
        for (auto& each : own) support::until_parked(&each, 1);
        for (auto& each : own) each.set();
        sleepers.join();
        return check() ? 0 : 1;
    });
}

class FutexTable : public testing::Test {
protected:
    void SetUp() override {
        if (support::thread_sanitizer)
            GTEST_SKIP() << "ThreadSanitizer can't follow a child that starts threads";
        const std::string small = support::ending_of_child([] {
            thread_group one;
            one.start("a thread", [] {});
            one.join();
            return slots() > 0 && slots() <= max_usual ? 0 : 1;
        });
        if (!small.empty()) GTEST_SKIP() << "the kernel has no small table for each process";
    }
};

TEST_F(FutexTable, GrowsWithTheThreads) {
    EXPECT_EQ(in_a_child_with_many_threads([] { return true; }, [] { return slots() >= 1'024; }), "");
}

TEST_F(FutexTable, StaysWhereTheProgramForbidsGrowth) {
    EXPECT_EQ(in_a_child_with_many_threads(
                  [] {
                      tocsin::set_futex_table_growth(false);
                      return !tocsin::futex_table_growth();
                  },
                  [] { return slots() <= max_usual; }),
              "");
}

TEST_F(FutexTable, StaysAsTheProgramHasSetIt) {
    EXPECT_EQ(in_a_child_with_many_threads([] { return prctl(78, 1UL, 64UL, 0UL, 0UL) == 0; },
                                           [] { return slots() == 64; }),
              "");
}

TEST_F(FutexTable, AFilterThatRefusesTheCallChangesNoWait) {
    EXPECT_EQ(in_a_child_with_many_threads([] { return support::refuse_call(SYS_prctl, EPERM); },
                                           [] { return slots() == -1 && errno == EPERM; }),
              "");
}

}  // namespace
#endif
