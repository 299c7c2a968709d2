// SPDX-License-Identifier: Apache-2.0
// The numbers of threads, and the nicknames that threads on Linux have until they know their numbers.
#include "platform/system/system.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

namespace platform = tocsin::platform;

template <class Work>
void in_a_new_thread(Work work) {
    std::thread(work).join();
}

TEST(ThreadNumber, IsAnotherOneInEachThread) {
    in_a_new_thread([mine = platform::thread_number()] {
        EXPECT_NE(platform::thread_number(), mine);
        EXPECT_EQ(platform::thread_number(), platform::thread_number());
        EXPECT_LT(platform::thread_number(), platform::nicknames_from);
    });
}

TEST(ThreadNumber, NeedsNoNicknameOnceItIsKnown) {
    in_a_new_thread([] {
        const std::uint64_t number = platform::thread_number();
        EXPECT_EQ(platform::thread_number_or_nickname(), number);
        EXPECT_EQ(platform::learn_thread_number().number, number);
        EXPECT_EQ(platform::learn_thread_number().nickname, 0u);
    });
}

#if defined(__linux__)

std::uint64_t number_of_the_kernel() { return static_cast<std::uint64_t>(::syscall(SYS_gettid)); }

// A call that asks only for the number leaves the nickname as it is. Otherwise the thread's entries would never get the
// number.
TEST(ThreadNumber, AThreadKeepsItsNicknameUntilItLearnsItsNumber) {
    in_a_new_thread([] {
        const std::uint64_t nickname = platform::thread_number_or_nickname();
        EXPECT_GE(nickname, platform::nicknames_from);
        EXPECT_EQ(platform::thread_number(), number_of_the_kernel());
        EXPECT_EQ(platform::thread_number_or_nickname(), nickname);

        const platform::learnt_number self = platform::learn_thread_number();
        EXPECT_EQ(self.number, number_of_the_kernel());
        EXPECT_EQ(self.nickname, nickname);
        EXPECT_EQ(platform::thread_number_or_nickname(), self.number);
        EXPECT_EQ(platform::learn_thread_number().nickname, 0u);
    });
}

TEST(ThreadNumber, NoTwoThreadsHaveTheSameNickname) {
    std::uint64_t first = 0;
    in_a_new_thread([&] { first = platform::thread_number_or_nickname(); });
    in_a_new_thread([&] {
        EXPECT_NE(platform::thread_number_or_nickname(), first);
        platform::forget_thread_number();  // as in the child of a fork
        const std::uint64_t another = platform::thread_number_or_nickname();
        EXPECT_GE(another, platform::nicknames_from);
        EXPECT_EQ(platform::learn_thread_number().nickname, another);
    });
}

#endif

}  // namespace
