// SPDX-License-Identifier: Apache-2.0
// What src/platform/poller/poller.hpp promises of one poll, and of the time that polls and waits take, for every
// backend that builds on this machine.
#include "allocations.hpp"
#include "child.hpp"
#include "clocks.hpp"
#include "facts.hpp"
#include "pollers.hpp"
#include "random.hpp"
#include "refused_calls.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#endif

namespace {

using namespace std::chrono_literals;
using namespace pollers;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::thread_group;
using support::until_sound_asleep;

template <class Backend>
class EveryPoller : public testing::Test {};
TYPED_TEST_SUITE(EveryPoller, backends);

TYPED_TEST(EveryPoller, ReportsWhatIsReadyInItsOwnEntry) {
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    std::array<poll_entry, 4> all{{{idle.read, readiness::readable},
                                   {full.read, readiness::readable},
                                   {idle.write, readiness::writable},
                                   {full.read, readiness::writable}}};
    const auto result = TypeParam::poll(all, no_doorbell, deadline::never());
    EXPECT_EQ(result.ready, 2u);
    EXPECT_FALSE(result.rung || result.timed_out);
    EXPECT_EQ(all[0].found, readiness::none);
    EXPECT_EQ(all[1].found, readiness::readable);
    EXPECT_EQ(all[2].found, readiness::writable);
    EXPECT_EQ(all[3].found, readiness::none);
}

TYPED_TEST(EveryPoller, ForgetsWhatAnEarlierPollFound) {
    const both_ends pipe = make_pipe();
    poll_entry one{pipe.read, readiness::readable, readiness::error};
    EXPECT_TRUE(poll_one<TypeParam>(one, 0s).timed_out);
    EXPECT_EQ(one.found, readiness::none);
}

TYPED_TEST(EveryPoller, ADescriptorEndsTheSleep) {
    const both_ends pipe = make_pipe();
    thread_group threads;
    threads.start("sleeper", [&] {
        const taken_bell<TypeParam> bell;
        poll_entry one{pipe.read, readiness::readable};
        const auto result = poll_one<TypeParam>(one, deadline::never(), bell);
        EXPECT_EQ(result.ready, 1u);
        EXPECT_FALSE(result.rung);
    });
    until_sound_asleep(threads.id(0));
    pipe.put();
    threads.join();
}

TYPED_TEST(EveryPoller, KnowsWhenThePeerIsGone) {
    auto [here, there] = make_sockets();
    EXPECT_EQ(state_of<TypeParam>(here, readiness::hang_up | readiness::readable), readiness::none);
    shutdown(there, SHUT_WR);
    EXPECT_EQ(state_of<TypeParam>(here, readiness::readable), readiness::readable);
#if defined(POLLRDHUP)
    EXPECT_EQ(state_of<TypeParam>(here, readiness::hang_up), readiness::hang_up);
#endif
    EXPECT_EQ(state_of<TypeParam>(here, readiness::urgent), readiness::none);
    there.close();
    EXPECT_TRUE(has(state_of<TypeParam>(here, readiness::none), readiness::hang_up));

    both_ends first = make_pipe();
    first.write.close();
    EXPECT_TRUE(has(state_of<TypeParam>(first.read, readiness::readable), readiness::hang_up));
    both_ends second = make_pipe();
    second.read.close();
    EXPECT_TRUE(has(state_of<TypeParam>(second.write, readiness::none), readiness::error));
}

TYPED_TEST(EveryPoller, KnowsConnectionsAndUrgentData) {
    connection made;
    // The connection may arrive a moment after connect() has returned.
    poll_entry arrives{made.listening, readiness::readable};
    EXPECT_EQ(poll_one<TypeParam>(arrives, deadline::never()).ready, 1u);
    EXPECT_EQ(arrives.found, readiness::readable);
    EXPECT_EQ(state_of<TypeParam>(made.client, readiness::writable), readiness::writable);
    made.accept_it();
    EXPECT_EQ(state_of<TypeParam>(made.listening, readiness::readable), readiness::none);
    ASSERT_EQ(send(made.client, "!", 1, MSG_OOB), 1);
    poll_entry one{made.server, readiness::urgent};
    EXPECT_EQ(poll_one<TypeParam>(one, deadline::never()).ready, 1u);
    EXPECT_EQ(one.found, readiness::urgent);
}

#if defined(__linux__)
TYPED_TEST(EveryPoller, WaitsForEveryKindThatLinuxHas) {
    const owned event(eventfd(0, 0));
    EXPECT_EQ(state_of<TypeParam>(event, readiness::readable | readiness::writable), readiness::writable);
    ASSERT_EQ(eventfd_write(event, 1), 0);
    EXPECT_EQ(state_of<TypeParam>(event, readiness::readable), readiness::readable);

    const owned timer(timerfd_create(CLOCK_MONOTONIC, 0));
    itimerspec soon{};
    soon.it_value.tv_nsec = 1'000'000;
    ASSERT_EQ(timerfd_settime(timer, 0, &soon, nullptr), 0);
    poll_entry one{timer, readiness::readable};
    EXPECT_EQ(poll_one<TypeParam>(one, deadline::never()).ready, 1u);

    const both_ends pipe = make_pipe();
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(pipe.read, &byte, 1) == 1 ? 0 : 1);
    }
    const owned process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    if (process >= 0) {
        EXPECT_EQ(state_of<TypeParam>(process, readiness::readable), readiness::none);
        pipe.put();
        one = {process, readiness::readable};
        EXPECT_EQ(poll_one<TypeParam>(one, deadline::never()).ready, 1u);
    } else {
        pipe.put();
    }
    EXPECT_EQ(support::ending_of(child), "");
}
#endif

TYPED_TEST(EveryPoller, ABadDescriptorIsFoundAtOnce) {
    const both_ends idle = make_pipe();
    both_ends closed = make_pipe();
    const int number = closed.read;
    closed.read.close();
    for (const int bad : {number, -1, -7, 1 << 30}) {
        std::array<poll_entry, 2> all{{{idle.read, readiness::readable}, {bad, readiness::readable}}};
        const auto result = TypeParam::poll(all, no_doorbell, deadline::never());
        EXPECT_EQ(result.ready, 1u);
        EXPECT_EQ(result.error, 0);
        EXPECT_EQ(all[0].found, readiness::none);
        EXPECT_EQ(all[1].found, readiness::invalid) << bad;
    }
}

TYPED_TEST(EveryPoller, TakesAnyNumberOfDescriptors) {
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    const std::size_t max = std::min<std::size_t>(raise_descriptor_limit(), 10'000) - 2;
    for (const std::size_t count :
         {platform::polled_without_allocation, platform::polled_without_allocation + 1,
          std::min<std::size_t>(2'000, max), max}) {
        std::vector<poll_entry> all(count, poll_entry{idle.read, readiness::readable});
        EXPECT_TRUE(TypeParam::poll(all, no_doorbell, 0s).timed_out);
        all.back().descriptor = full.read;
        const taken_bell<TypeParam> bell;
        TypeParam::ring_doorbell(bell);
        const auto result = TypeParam::poll(all, bell, system_clock::now() + 1h);
        EXPECT_EQ(result.error, 0);
        EXPECT_EQ(result.ready, 1u);
        EXPECT_TRUE(result.rung);
        EXPECT_EQ(all.front().found, readiness::none);
        EXPECT_EQ(all.back().found, readiness::readable);
    }
}

TYPED_TEST(EveryPoller, APollOfFewAllocatesNothing) {
    const both_ends idle = make_pipe();
    std::vector<poll_entry> few(platform::polled_without_allocation,
                                poll_entry{idle.read, readiness::readable});
    const taken_bell<TypeParam> bell;
    const long before = support::allocations();
    (void)TypeParam::poll(few, bell, 1ms);
    (void)TypeParam::poll(few, bell, system_clock::now() + 1ms);
    EXPECT_EQ(support::allocations(), before);
}

// Time, signals, cost

// For both ways of waiting: `wait(until)` waits for nothing and times out.
template <class Wait>
void times_out_on_every_clock(Wait wait) {
    support::random_source random(1);
    for (int i = 0; i < 12; ++i) {
        const auto after = std::chrono::nanoseconds(1 + random.below(1'500'000));
        const auto steady = steady_clock::now() + after;
        EXPECT_TRUE(wait(steady).timed_out);
        EXPECT_GE(steady_clock::now(), steady);
        const auto system = system_clock::now() + std::chrono::ceil<system_clock::duration>(after);
        EXPECT_TRUE(wait(system).timed_out);
        EXPECT_GE(system_clock::now(), system);
        const auto slow = support::slow_clock::now() + after / 3.0;
        EXPECT_TRUE(wait(slow).timed_out);
        EXPECT_GE(support::slow_clock::now(), slow);
    }
    EXPECT_TRUE(wait(0s).timed_out);
    EXPECT_TRUE(wait(-1h).timed_out);
    EXPECT_TRUE(wait(steady_clock::time_point::min()).timed_out);
    EXPECT_TRUE(wait(system_clock::time_point::min()).timed_out);
    EXPECT_TRUE(wait(system_clock::time_point{}).timed_out);
    EXPECT_TRUE(wait(support::slow_clock::now() - 1s).timed_out);
}

TYPED_TEST(EveryPoller, ATimeoutIsNeverEarlyOnItsOwnClock) {
    const both_ends idle = make_pipe();
    const taken_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);
    times_out_on_every_clock([&](const deadline& until) {
        poll_entry one{idle.read, readiness::readable};
        return poll_one<TypeParam>(one, until, bell);
    });
    const auto set = open_set<TypeParam>();
    ASSERT_EQ(set->add(idle.read, readiness::readable, 1), 0);
    times_out_on_every_clock([&](const deadline& until) {
        std::array<poll_set::item, 4> items;
        return set->wait(items, until);
    });
}

TYPED_TEST(EveryPoller, APollWhoseDeadlineHasPassedStillLooksOnce) {
    const both_ends full = make_pipe();
    full.put();
    const auto set = open_set<TypeParam>();
    ASSERT_EQ(set->add(full.read, readiness::readable, 1), 0);
    for (const auto& until : {deadline(0s), deadline(steady_clock::time_point::min()),
                              deadline(system_clock::time_point::min())}) {
        poll_entry one{full.read, readiness::readable};
        EXPECT_EQ(poll_one<TypeParam>(one, until).ready, 1u);
        EXPECT_EQ(tags_in(*set, until), tags{1});
    }
}

TYPED_TEST(EveryPoller, WaitsOnTheSystemClockLeaveNothingBehind) {
    const auto set = open_set<TypeParam>();
    const auto wait = [&] {
        std::array<poll_set::item, 4> items;
        EXPECT_TRUE(TypeParam::poll({}, no_doorbell, system_clock::now() + 1ms).timed_out);
        EXPECT_TRUE(set->wait(items, system_clock::now() + 1ms).timed_out);
    };
    // The doorbell of this set stays open and idle. A wait that sleeps takes one, but a wait whose millisecond passes
    // before it sleeps takes none. So a first wait would not always open it.
    (void)open_set<TypeParam>();
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 10; ++i) wait();
    EXPECT_EQ(open_descriptors(), before);
}

#if defined(__GLIBC__)
TEST(LinuxPoller, APollIsNoCancellationPoint) {
    bool timed_out = false;
    std::thread cancelled([&] {
        EXPECT_EQ(pthread_cancel(pthread_self()), 0);
        timed_out = linux_poller::poll({}, no_doorbell, system_clock::now() + 1ms).timed_out &&
                    linux_poller::poll({}, no_doorbell, steady_clock::now() + 1ms).timed_out;
    });
    cancelled.join();
    EXPECT_TRUE(timed_out);
}
#endif

TYPED_TEST(EveryPoller, AFarDeadlineIsSleptFor) {
    for (const auto& until :
         {deadline(steady_clock::now() + 24h * 365 * 200), deadline(system_clock::now() + 1h),
          deadline(system_clock::time_point::max() - 1s), deadline(std::chrono::nanoseconds::max() / 2)}) {
        const auto set = open_set<TypeParam>();
        std::atomic<doorbell_id> id{no_doorbell};
        thread_group threads;
        threads.start("polls", [&] {
            const taken_bell<TypeParam> bell;
            (void)is_rung<TypeParam>(bell, 0s);
            id.store(bell);
            EXPECT_TRUE(is_rung<TypeParam>(bell, until));
        });
        threads.start("waits", [&] {
            std::array<poll_set::item, 4> items;
            EXPECT_TRUE(set->wait(items, until).rung);
        });
        for (std::size_t i = 0; i < 2; ++i) until_sound_asleep(threads.id(i));
        TypeParam::ring_doorbell(id.load());
        TypeParam::ring_doorbell(set->bell());
        threads.join();
    }
}

TYPED_TEST(EveryPoller, SignalsNeitherEndNorProlongAWait) {
    const support::signal_counter signals(SIGUSR1);
    const auto set = open_set<TypeParam>();
    const auto begin = steady_clock::now();
    thread_group threads;
    const auto until_signals_come = [&] {
        support::until("the signals have begun", [&] { return signals.count() > 0; });
    };
    threads.start("polls", [&] {
        until_signals_come();
        const taken_bell<TypeParam> bell;
        (void)is_rung<TypeParam>(bell, 0s);
        errno = 77;
        EXPECT_FALSE(is_rung<TypeParam>(bell, 60ms));
        EXPECT_FALSE(is_rung<TypeParam>(bell, system_clock::now() + 20ms));
        EXPECT_EQ(errno, 77);
    });
    threads.start("waits", [&] {
        until_signals_come();
        std::array<poll_set::item, 4> items;
        errno = 78;
        EXPECT_TRUE(set->wait(items, 60ms).timed_out);
        EXPECT_TRUE(set->wait(items, system_clock::now() + 20ms).timed_out);
        EXPECT_EQ(errno, 78);
    });
    for (std::size_t i = 0; i < 2; ++i) (void)threads.id(i);
    while (threads.finished() < 2) {
        for (std::size_t i = 0; i < 2; ++i) {
            if (!threads.finished(i)) pthread_kill(threads.handle(i), SIGUSR1);
        }
        std::this_thread::sleep_for(500us);  // no fact to wait for: signals at intervals
        if (steady_clock::now() - begin > support::patience()) support::give_up("prolonged by signals");
    }
    threads.join();
    EXPECT_GT(signals.count(), 0);
}

TYPED_TEST(EveryPoller, ErrnoIsPreserved) {
    const both_ends pipe = make_pipe();
    errno = 4242;
    {
        const taken_bell<TypeParam> first;
        const taken_bell<TypeParam> second;
        TypeParam::ring_doorbell(first);
        EXPECT_TRUE(is_rung<TypeParam>(first, 100us));
        (void)is_rung<TypeParam>(first, 100us);
        poll_entry bad{-1};
        (void)poll_one<TypeParam>(bad, 1s);
    }
    {
        const auto set = open_set<TypeParam>();
        EXPECT_EQ(set->add(-1, readiness::readable, 1), EBADF);
        EXPECT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
        EXPECT_EQ(set->add(pipe.read, readiness::readable, 1), EEXIST);
        EXPECT_EQ(set->change(pipe.write, readiness::readable, 1), ENOENT);
        EXPECT_EQ(set->remove(pipe.write), ENOENT);
        (void)tags_in(*set, 100us);
    }
    EXPECT_EQ(errno, 4242);
}

TYPED_TEST(EveryPoller, ASleeperBurnsNoTime) {
    const auto set = open_set<TypeParam>();
    const both_ends idle = make_pipe();
    ASSERT_EQ(set->add(idle.read, readiness::readable, 1), 0);
    std::atomic<doorbell_id> id{no_doorbell};
    thread_group threads;
    threads.start("polls", [&] {
        const taken_bell<TypeParam> bell;
        (void)is_rung<TypeParam>(bell, 0s);
        id.store(bell);
        (void)is_rung<TypeParam>(bell, system_clock::now() + 1h);
    });
    threads.start("waits", [&] { (void)tags_in(*set, deadline::never()); });
    std::array<long, 2> switched{};
    for (std::size_t i = 0; i < 2; ++i) {
        until_sound_asleep(threads.id(i));
        switched[i] = support::switches_of(threads.id(i)).voluntary;
    }
    std::this_thread::sleep_for(200ms);  // no fact to wait for: nothing must happen
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(support::switches_of(threads.id(i)).voluntary, switched[i]);
    }
    TypeParam::ring_doorbell(id.load());
    TypeParam::ring_doorbell(set->bell());
}

#if defined(__linux__) && defined(SYS_poll)
TEST(LinuxPoller, PollsWhereTheCallWithMillisecondsIsRefused) {
    if (support::thread_sanitizer)
        GTEST_SKIP() << "under ThreadSanitizer the library makes the C library's calls";
    constexpr int no_filter = 77;
    for (const int error : support::refusals) {
        const auto ending = support::ending_of_child([error] {
            linux_poller::after_fork();
            if (!support::refuse_call(SYS_poll, error)) return no_filter;
            const auto bell = linux_poller::take_doorbell().id;
            const auto end = steady_clock::now() + 20ms;
            if (!linux_poller::poll({}, bell, end).timed_out) return 1;
            if (steady_clock::now() < end) return 2;
            linux_poller::ring_doorbell(bell);
            return linux_poller::poll({}, bell, steady_clock::now() + 1h).rung ? 0 : 3;
        });
        if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
        EXPECT_EQ(ending, "") << error;
    }
}
#endif

#if defined(__linux__) && defined(SYS_poll)
// Linux continues ppoll with the time that was left before the stop. That would be a second and more after the end.
TEST(LinuxPoller, CountsTheTimeForWhichItIsStoppedWhereTheCallWithMillisecondsIsRefused) {
    if (support::thread_sanitizer)
        GTEST_SKIP() << "under ThreadSanitizer the library makes the C library's calls";
    constexpr int no_filter = 77;
    int begun[2];
    ASSERT_EQ(pipe(begun), 0);
    const auto end = steady_clock::now() + 2s;
    const pid_t child = fork();
    if (child == 0) {
        linux_poller::after_fork();
        if (!support::refuse_call(SYS_poll, EPERM)) _exit(no_filter);
        const auto bell = linux_poller::take_doorbell().id;
        if (write(begun[1], "", 1) != 1) _exit(1);
        if (!linux_poller::poll({}, bell, end).timed_out) _exit(2);
        const auto ended = steady_clock::now();
        _exit(ended < end ? 3 : ended > end + 1900ms ? 4 : 0);
    }
    close(begun[1]);
    char byte = 0;
    const bool begins = read(begun[0], &byte, 1) == 1;
    close(begun[0]);
    if (begins) {
        // A child that was late to begin is over at once, and nothing stops it.
        support::until("the child sleeps or is over",
                       [child] { return support::is_asleep(child) || support::is_over(child); });
        kill(child, SIGSTOP);
        std::this_thread::sleep_until(end + 50ms);  // no fact to wait for: time passes
        kill(child, SIGCONT);
    }
    const auto ending = support::ending_of(child);
    if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
    EXPECT_EQ(ending, "");
}
#endif

#if defined(__linux__) && defined(SYS_ppoll_time64)
// As with the futex, kernels before 5.1 and older filters refuse that call.
TEST(LinuxPoller, PollsWhereTheCallWith64BitTimeIsRefused) {
    constexpr int no_filter = 77;
    for (const int error : support::refusals) {
        const auto ending = support::ending_of_child([error] {
            linux_poller::after_fork();
            if (!support::refuse_call(SYS_ppoll_time64, error)) return no_filter;
            const auto bell = linux_poller::take_doorbell().id;
            const auto end = steady_clock::now() + 20ms;
            if (!linux_poller::poll({}, bell, end).timed_out) return 1;
            if (steady_clock::now() < end) return 2;
            linux_poller::ring_doorbell(bell);
            return linux_poller::poll({}, bell, steady_clock::time_point::max() - 1s).rung ? 0 : 3;
        });
        if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
        EXPECT_EQ(ending, "") << error;
    }
}
#endif

}  // namespace
