// SPDX-License-Identifier: Apache-2.0
// What src/platform/poller/poller.hpp promises of poll sets, for every backend that builds on this machine.
#include "child.hpp"
#include "facts.hpp"
#include "platform/poller/readable_flag.hpp"
#include "pollers.hpp"
#include "random.hpp"
#include "refused_calls.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/syscall.h>
#endif

namespace {

using namespace std::chrono_literals;
using namespace pollers;
using std::chrono::steady_clock;
using support::rounds;
using support::thread_group;
using support::until_sound_asleep;

template <class Backend>
class EveryPoller : public testing::Test {};
TYPED_TEST_SUITE(EveryPoller, backends);

TYPED_TEST(EveryPoller, ASetReportsWhatIsReadyAsLongAsItIs) {
    const auto set = open_set<TypeParam>();
    const both_ends first = make_pipe();
    const both_ends second = make_pipe();
    EXPECT_EQ(tags_in(*set), tags{});
    ASSERT_EQ(set->add(first.read, readiness::readable, 10), 0);
    ASSERT_EQ(set->add(second.read, readiness::readable, 20), 0);
    ASSERT_EQ(set->add(second.write, readiness::urgent, 30), 0);
    EXPECT_EQ(tags_in(*set), tags{});
    first.put();
    EXPECT_EQ(tags_in(*set, deadline::never()), tags{10});
    second.put();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tags_in(*set, deadline::never()), (tags{10, 20}));
    first.get();
    EXPECT_EQ(tags_in(*set), tags{20});
    ASSERT_EQ(set->change(second.write, readiness::writable, 31), 0);
    ASSERT_EQ(set->change(second.read, readiness::none, 20), 0);
    EXPECT_EQ(tags_in(*set), tags{31});
    ASSERT_EQ(set->remove(second.write), 0);
    EXPECT_EQ(tags_in(*set), tags{});
    ASSERT_EQ(set->add(second.write, readiness::writable, 32), 0);
    EXPECT_EQ(tags_in(*set), tags{32});
}

TYPED_TEST(EveryPoller, ASetSaysWhatWasFound) {
    const auto set = open_set<TypeParam>();
    auto [here, there] = make_sockets();
    ASSERT_EQ(set->add(here, readiness::readable | readiness::writable | readiness::hang_up, 1), 0);
    poll_set::item found{};
    EXPECT_EQ(set->wait({&found, 1}, deadline::never()).ready, 1u);
    EXPECT_EQ(found.found, readiness::writable);
    there.close();
    EXPECT_EQ(set->wait({&found, 1}, deadline::never()).ready, 1u);
    EXPECT_TRUE(has(found.found, readiness::hang_up));
    EXPECT_TRUE(has(found.found, readiness::readable));
}

TYPED_TEST(EveryPoller, ASetSaysWhatItCannotTake) {
    const auto set = open_set<TypeParam>();
    const both_ends pipe = make_pipe();
    both_ends closed = make_pipe();
    const int number = closed.read;
    closed.read.close();
    EXPECT_EQ(set->add(-1, readiness::readable, 1), EBADF);
    EXPECT_EQ(set->add(number, readiness::readable, 1), EBADF);
    EXPECT_EQ(set->change(number, readiness::readable, 1), EBADF);
    EXPECT_EQ(set->remove(number), EBADF);
    EXPECT_EQ(set->change(pipe.read, readiness::readable, 1), ENOENT);
    EXPECT_EQ(set->remove(pipe.read), ENOENT);
    EXPECT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
    EXPECT_EQ(set->add(pipe.read, readiness::readable, 2), EEXIST);
    const owned file(open("/proc/self/exe", O_RDONLY));
    const owned folder(open("/", O_RDONLY));
    EXPECT_EQ(set->add(file, readiness::readable, 3), EPERM);
    EXPECT_EQ(set->add(folder, readiness::readable, 3), EPERM);
    pipe.put();
    EXPECT_EQ(tags_in(*set), tags{1});
}

TYPED_TEST(EveryPoller, AllMembersOfASetGetTheirTurn) {
    const auto set = open_set<TypeParam>();
    std::vector<both_ends> pipes;
    for (std::uint64_t i = 0; i < 10; ++i) {
        pipes.push_back(make_pipe());
        pipes.back().put();
        ASSERT_EQ(set->add(pipes.back().read, readiness::readable, i), 0);
    }
    for (const std::size_t size : {std::size_t{1}, std::size_t{3}}) {
        tags seen;
        for (int waits = 0; waits < 20; ++waits) {
            std::array<poll_set::item, 3> items;
            const auto result = set->wait(std::span(items).first(size), deadline::never());
            ASSERT_EQ(result.ready, size);
            for (std::size_t i = 0; i < size; ++i) seen.insert(items[i].tag);
        }
        EXPECT_EQ(seen.size(), pipes.size());
    }
}

TYPED_TEST(EveryPoller, ARingEndsOneWaitInASet) {
    const auto set = open_set<TypeParam>();
    std::array<poll_set::item, 4> items;
    for (int turn = 0; turn < 5; ++turn) {
        EXPECT_TRUE(set->wait(items, 0s).timed_out);
        TypeParam::ring_doorbell(set->bell());
        TypeParam::ring_doorbell(set->bell());
        const auto result = set->wait(items, deadline::never());
        EXPECT_TRUE(result.rung);
        EXPECT_EQ(result.ready, 0u);
    }
    const both_ends full = make_pipe();
    full.put();
    ASSERT_EQ(set->add(full.read, readiness::readable, 1), 0);
    TypeParam::ring_doorbell(set->bell());
    bool rung = false;
    for (int waits = 0; waits < 2; ++waits) {
        const auto result = set->wait(std::span(items).first(1), deadline::never());
        rung = rung || result.rung;
    }
    EXPECT_TRUE(rung) << "the ring is hidden by descriptors that are always ready";
}

TYPED_TEST(EveryPoller, AReadyDescriptorAddedDuringAWaitEndsIt) {
    const auto set = open_set<TypeParam>();
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    ASSERT_EQ(set->add(idle.read, readiness::readable, 1), 0);
    ASSERT_EQ(set->add(idle.write, readiness::urgent, 2), 0);
    const auto waits_for = [&](std::uint64_t tag) {
        return [&set, tag] {
            for (tags found; !found.contains(tag);) found = tags_in(*set, deadline::never());
        };
    };
    thread_group threads;
    threads.start("waits for what is added", waits_for(3));
    until_sound_asleep(threads.id(0));
    ASSERT_EQ(set->add(full.read, readiness::readable, 3), 0);
    threads.until_finished(1);
    ASSERT_EQ(set->remove(full.read), 0);
    threads.start("waits for what is changed", waits_for(2));
    until_sound_asleep(threads.id(1));
    ASSERT_EQ(set->change(idle.write, readiness::writable, 2), 0);
}

TYPED_TEST(EveryPoller, ADescriptorRemovedDuringAWaitDoesNotEndIt) {
    const auto set = open_set<TypeParam>();
    const both_ends pipe = make_pipe();
    ASSERT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
    std::atomic<bool> go_on{true};
    thread_group threads;
    threads.start("waits", [&] {
        while (go_on.load()) EXPECT_EQ(tags_in(*set, deadline::never()), tags{});
    });
    until_sound_asleep(threads.id(0));
    ASSERT_EQ(set->remove(pipe.read), 0);
    pipe.put();
    until_sound_asleep(threads.id(0));
    go_on.store(false);
    TypeParam::ring_doorbell(set->bell());
}

// The thread is stopped in its sleep. What it finds afterwards is what a member that has been removed had asked for.
TYPED_TEST(EveryPoller, WhatIsAddedAnewDuringAWaitIsNotFoundReadyForWhatItWasBefore) {
    if (!support::freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    const auto set = open_set<TypeParam>();
    const both_ends pipe = make_pipe();
    ASSERT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
    std::atomic<bool> go_on{true};
    thread_group threads;
    support::freezer frost;
    threads.start("waits", [&] {
        while (go_on.load()) EXPECT_EQ(tags_in(*set, deadline::never()), tags{});
    });
    until_sound_asleep(threads.id(0));
    frost.freeze(threads.handle(0));
    ASSERT_EQ(set->remove(pipe.read), 0);
    ASSERT_EQ(set->add(pipe.read, readiness::urgent, 2), 0);
    pipe.put();
    frost.thaw();
    until_sound_asleep(threads.id(0));
    go_on.store(false);
    TypeParam::ring_doorbell(set->bell());
}

// One thread adds and removes descriptors while another waits: a wait does not report what was removed before it began.
TYPED_TEST(EveryPoller, NoWaitReportsWhatWasRemovedBeforeItBegan) {
    constexpr std::size_t members = 8;
    const auto set = open_set<TypeParam>();
    const both_ends full = make_pipe();
    full.put();
    std::array<owned, members> all;
    for (auto& each : all) each = owned(dup(full.read));
    // The latest tag of each removed member; tags only grow.
    std::array<std::atomic<std::uint64_t>, members> out{};
    std::atomic<bool> done{false};
    thread_group threads;
    threads.start("changes", [&] {
        support::random_source random(3);
        std::uint64_t tag = 1;
        for (int i = 0; i < rounds(1'500, 800); ++i) {
            const std::size_t which = random.below(members);
            const std::uint64_t own = tag++ * members + which;
            ASSERT_EQ(set->add(all[which], readiness::readable, own), 0);
            if (i % 3 == 0) std::this_thread::yield();
            ASSERT_EQ(set->remove(all[which]), 0);
            out[which].store(own);
        }
        done.store(true);
        TypeParam::ring_doorbell(set->bell());
    });
    while (!done.load()) {
        std::array<std::uint64_t, members> out_before;
        for (std::size_t i = 0; i < members; ++i) out_before[i] = out[i].load();
        for (const std::uint64_t tag : tags_in(*set, deadline::never())) {
            ASSERT_GT(tag, out_before[tag % members]);
        }
    }
}

TYPED_TEST(EveryPoller, ASetHoldsThousands) {
    const std::size_t count = std::min<std::size_t>(raise_descriptor_limit() - 100, 10'000);
    const auto set = open_set<TypeParam>();
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    std::vector<owned> members;
    for (std::size_t i = 0; i < count; ++i) {
        members.emplace_back(dup(i % 1'000 == 999 ? full.read : idle.read));
        ASSERT_EQ(set->add(members.back(), readiness::readable, i), 0);
    }
    const auto found = tags_in(*set, deadline::never());
    EXPECT_EQ(found.size(), count / 1'000);
    for (const std::uint64_t tag : found) EXPECT_EQ(tag % 1'000, 999u);
    for (const auto& each : members) ASSERT_EQ(set->remove(each), 0);
    EXPECT_EQ(tags_in(*set), tags{});
}

TYPED_TEST(EveryPoller, ASetLeavesNothingBehind) {
    doorbell_id last{};
    {
        const auto set = open_set<TypeParam>();
        last = set->bell();
        TypeParam::ring_doorbell(last);
    }
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 10; ++i) {
        TypeParam::ring_doorbell(last);
        const auto set = open_set<TypeParam>();
        EXPECT_EQ(set->bell(), last);
        EXPECT_LE(open_descriptors(), before + 1);
        std::array<poll_set::item, 1> items;
        (void)set->wait(items, 0s);  // somebody may have rung the bell for its last owner
        EXPECT_TRUE(set->wait(items, 0s).timed_out);
        TypeParam::ring_doorbell(last);
        EXPECT_TRUE(set->wait(items, deadline::never()).rung);
    }
    EXPECT_EQ(open_descriptors(), before);
}

#if defined(__linux__)
// Kernels before 5.11 have no call with a timeout in nanoseconds, and older filters forbid it. The timeout of the other
// call is an int. Of a timeout of 2^32 milliseconds and a few more, that int would keep only the few.
TEST(LinuxPoller, ASetWaitsWhereTheCallWithNanosecondsIsRefused) {
    if (support::thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
    constexpr int no_filter = 77;
    for (const int error : support::refusals) {
        const auto ending = support::ending_of_child([error] {
            linux_poller::after_fork();
            if (!support::refuse_call(SYS_epoll_pwait2, error)) return no_filter;
            const auto set = open_set<linux_poller>();
            std::array<poll_set::item, 4> items;
            const auto end = steady_clock::now() + 20ms;
            if (!set->wait(items, end).timed_out) return 1;
            if (steady_clock::now() < end) return 2;
            thread_group threads;
            bool rung = false;
            const auto far = steady_clock::now() + 1ms * (std::int64_t{1} << 32) + 300ms;
            threads.start("far deadline", [&] { rung = set->wait(items, far).rung; });
            until_sound_asleep(threads.id(0));
            const auto before = support::switches_of(threads.id(0)).voluntary;
            std::this_thread::sleep_for(400ms);  // no fact to wait for: nothing must happen
            if (support::switches_of(threads.id(0)).voluntary != before) return 3;
            linux_poller::ring_doorbell(set->bell());
            threads.join();
            return rung ? 0 : 4;
        });
        if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
        EXPECT_EQ(ending, "") << error;
    }
}

// epoll keeps the entry of a descriptor that is closed while a duplicate of it is open, and no call can name that
// entry.
TEST(LinuxPoller, AClosedMemberWhoseDuplicateIsReadyIsReportedUntilItIsRemoved) {
    const auto set = open_set<linux_poller>();
    both_ends first = make_pipe();
    const owned duplicate(::dup(first.read));
    const int number = first.read;
    ASSERT_EQ(set->add(number, readiness::readable, 1), 0);
    first.read.close();
    first.put();
    EXPECT_EQ(tags_in(*set, 1h), tags{1});
    EXPECT_EQ(set->remove(number), 0);
    EXPECT_EQ(set->remove(number), EBADF);
    EXPECT_EQ(tags_in(*set, 0s), tags{});
    EXPECT_EQ(tags_in(*set, 10ms), tags{});
}

TEST(LinuxPoller, AMemberWithTheNumberOfAClosedOneIsReportedAlone) {
    const auto set = open_set<linux_poller>();
    both_ends first = make_pipe();
    both_ends idle = make_pipe();
    const owned duplicate(::dup(first.read));
    const int number = first.read;
    ASSERT_EQ(set->add(number, readiness::readable, 1), 0);
    ASSERT_EQ(set->add(idle.read, readiness::readable, 3), 0);
    first.put();
    const both_ends second = make_pipe();
    ASSERT_EQ(::dup2(second.read, number), number);
    EXPECT_EQ(set->add(number, readiness::readable, 2), 0);
    EXPECT_EQ(tags_in(*set, 0s), tags{});
    thread_group threads;
    threads.start("waits", [&] { EXPECT_EQ(tags_in(*set, 1h), tags{2}); });
    until_sound_asleep(threads.id(0));
    second.put();
    threads.join();
    idle.put();
    EXPECT_EQ(tags_in(*set, 0s), (tags{2, 3}));
}

// With room for one entry, epoll reports such entries in turn, so no two reports name the same one.
TEST(LinuxPoller, SeveralRemovedMembersWhoseDuplicatesAreReadyEndNoWait) {
    const auto set = open_set<linux_poller>();
    both_ends pipes[] = {make_pipe(), make_pipe(), make_pipe()};
    std::vector<owned> duplicates;
    for (both_ends& each : pipes) {
        duplicates.emplace_back(::dup(each.read));
        const int number = each.read;
        ASSERT_EQ(set->add(number, readiness::readable, 1), 0);
        each.put();
        each.read.close();
        EXPECT_EQ(set->remove(number), 0);
    }
    poll_set::item found{};
    EXPECT_EQ(set->wait({&found, 1}, 0s).ready, 0u);
    EXPECT_EQ(set->wait({&found, 1}, 10ms).ready, 0u);
}

// If the other call is refused, too, the wait reports that.
TEST(LinuxPoller, AWaitInASetFailsWhereBothCallsAreRefused) {
    constexpr int no_filter = 77;
    const auto ending = support::ending_of_child([] {
        linux_poller::after_fork();
        const auto set = open_set<linux_poller>();
        if (!support::refuse_call(SYS_epoll_pwait2, EACCES) || !support::refuse_call(SYS_epoll_pwait, EACCES))
            return no_filter;
#if defined(SYS_epoll_wait)
        if (!support::refuse_call(SYS_epoll_wait, EACCES)) return no_filter;
#endif
        std::array<poll_set::item, 4> items;
        return set->wait(items, 20ms).error == EACCES ? 0 : 1;
    });
    if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
    EXPECT_EQ(ending, "");
}

// If somebody sets the system clock back after a deadline has passed, and before the loop looks, the same deadline is
// set once more. A loop that reports only changes must hear of it again. (Here nobody sets the clock back. So the
// deadline has passed when it is set again, and the loop hears of it at once.)
TEST(LinuxPoller, ADeadlineOnTheSystemClockThatIsSetAgainIsAChangeAgain) {
    const auto set = open_set<linux_poller>();
    platform::readable_flag flag;
    ASSERT_EQ(flag.open(), 0);
    int error = -1;
    const auto view = set->open_view(flag.descriptor(), error);
    ASSERT_EQ(error, 0);
    const owned loop(epoll_create1(EPOLL_CLOEXEC));
    epoll_event asked{.events = EPOLLIN | EPOLLET, .data = {.u64 = 0}};
    ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, view->descriptor(), &asked), 0);
    const auto changes_within = [&](int milliseconds) {
        epoll_event found;
        return epoll_wait(loop, &found, 1, milliseconds);
    };
    const deadline soon = std::chrono::system_clock::now() + 5ms;
    for (int round = 0; round != 3; ++round) {
        EXPECT_EQ(view->set_deadlines(deadline::never(), soon), 0);
        EXPECT_EQ(changes_within(10'000), 1) << round;
        EXPECT_EQ(changes_within(0), 0) << round;
    }
    const deadline late = std::chrono::system_clock::now() + 1h;
    for (int round = 0; round != 3; ++round) {
        EXPECT_EQ(view->set_deadlines(deadline::never(), late), 0);
        EXPECT_EQ(changes_within(0), 0) << round;
    }
}

TEST(LinuxPoller, AWaitInASetIsOneSystemCall) {
    std::unique_ptr<poll_set> set;
    const auto open = [&] {
        linux_poller::after_fork();
        set = open_set<linux_poller>();
    };
    const auto calls = support::system_calls_of(open, [&] {
        std::array<poll_set::item, 4> items;
        for (int i = 0; i < 3; ++i) {
            linux_poller::ring_doorbell(set->bell());
            (void)set->wait(items, deadline::never());
        }
        (void)set->wait(items, 1ms);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    // In a checked build, there is a look at the doorbell before each strike and each sleep.
    const std::size_t looks = calls.looks_at_descriptors();
    EXPECT_LE(looks, TOCSIN_CHECKED != 0 ? 3u * 2 + 1 : 0u);
    EXPECT_EQ(calls.numbers.size() - looks, 3u * 2 + 1) << testing::PrintToString(calls);
}
#endif

}  // namespace
