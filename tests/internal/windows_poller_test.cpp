// SPDX-License-Identifier: Apache-2.0
// What a poll on Windows reports that the result of a wait does not contain.
#include "platform/poller/poller.hpp"
#include "threads.hpp"
#include "windows_sources.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

namespace {

using namespace std::chrono_literals;
using support::socket_pair;
using tocsin::deadline;
using tocsin::readiness;
namespace platform = tocsin::platform;
using platform::poll_entry;

const auto* const started = testing::AddGlobalTestEnvironment(new support::winsock);

poll_entry readable(SOCKET socket) { return {static_cast<int>(socket), readiness::readable}; }

TEST(WindowsPoll, NamesTheSocketOnWhichAnotherSleeps) {
    const socket_pair busy;
    const socket_pair others[2];
    support::thread_group threads;
    threads.start("sleeper", [&] {
        poll_entry one = readable(busy[1]);
        EXPECT_EQ(platform::poller::poll({&one, 1}, platform::no_doorbell, deadline::never()).ready, 1u);
    });
    support::until_sound_asleep(threads.id(0));
    poll_entry all[] = {readable(others[0][1]), readable(others[1][1]), readable(busy[1])};
    const auto refused = platform::poller::poll(all, platform::no_doorbell, 1s);
    EXPECT_EQ(refused.error, EBUSY);
    EXPECT_EQ(refused.culprit, 2u);
    const auto slept = platform::poller::poll({all, 2}, platform::no_doorbell, 1ms);
    EXPECT_TRUE(slept.timed_out);
    EXPECT_EQ(slept.culprit, platform::no_culprit);
    busy.fill();
    threads.join();
}

}  // namespace
