// SPDX-License-Identifier: Apache-2.0
// How long a wait looks before it sleeps: the setting, and the bounds that hold for every setting.
#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/event.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stop_token>
#include <string>

#if TOCSIN_ON_POSIX
#include <sched.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::spin_policy;
using tocsin::wait_status;

// Restores the process's policy after a test that sets it.
class SpinPolicy : public testing::Test {
protected:
    void TearDown() override { tocsin::set_spin_policy(spin_policy()); }
};

const std::array<spin_policy, 7> policies{
    spin_policy(),           spin_policy::none(),     spin_policy::adaptive(),  spin_policy::adaptive(50us),
    spin_policy::fixed(0ns), spin_policy::fixed(1us), spin_policy::fixed(100us)};

TEST_F(SpinPolicy, SaysWhatItIs) {
    EXPECT_EQ(spin_policy().which(), spin_policy::mode::process);
    EXPECT_EQ(spin_policy::none().which(), spin_policy::mode::none);
    EXPECT_EQ(spin_policy::adaptive(7us).which(), spin_policy::mode::adaptive);
    EXPECT_EQ(spin_policy::adaptive(7us).longest(), 7us);
    EXPECT_EQ(spin_policy::fixed(9us).which(), spin_policy::mode::fixed);
    EXPECT_EQ(spin_policy::fixed(9us).longest(), 9us);
    EXPECT_EQ(spin_policy::fixed(9us), spin_policy::fixed(9us));
    EXPECT_NE(spin_policy::fixed(9us), spin_policy::adaptive(9us));
    EXPECT_NE(spin_policy::fixed(9us), spin_policy::fixed(8us));
}

TEST_F(SpinPolicy, IsBoundedInTime) {
    EXPECT_LE(spin_policy::fixed(nanoseconds::max()).longest(), 1s);
    EXPECT_LE(spin_policy::adaptive(1h).longest(), 1s);
    EXPECT_EQ(spin_policy::fixed(-1ns).longest(), 0ns);
    EXPECT_EQ(spin_policy::fixed(nanoseconds::min()).longest(), 0ns);
}

TEST_F(SpinPolicy, OfTheProcessIsAdaptiveUntilItIsSet) {
    EXPECT_EQ(tocsin::process_spin_policy(), spin_policy::adaptive());
    tocsin::set_spin_policy(spin_policy::fixed(3us));
    EXPECT_EQ(tocsin::process_spin_policy(), spin_policy::fixed(3us));
    tocsin::set_spin_policy(spin_policy::none());
    EXPECT_EQ(tocsin::process_spin_policy(), spin_policy::none());
    tocsin::set_spin_policy(spin_policy());
    EXPECT_EQ(tocsin::process_spin_policy(), spin_policy::adaptive());
}

TEST_F(SpinPolicy, ChangesHowLongAWaitLooksAndNeverItsResult) {
    for (const auto& policy : policies) {
        for (const bool for_the_process : {false, true}) {
            tocsin::set_spin_policy(for_the_process ? policy : spin_policy());
            const spin_policy own = for_the_process ? spin_policy() : policy;
            auto_reset_event event;
            EXPECT_EQ(event.wait_for(0ns, own), wait_status::timed_out);
            const auto begin = steady_clock::now();
            EXPECT_EQ(event.wait_for(2ms, own), wait_status::timed_out);
            EXPECT_GE(steady_clock::now() - begin, 2ms);
            std::atomic<int> word{0};
            EXPECT_EQ(tocsin::wait_on_address(&word, 0, 100us, own), tocsin::address_status::timed_out);
            tocsin::word_lock<> lock;
            lock.lock(own);
            EXPECT_FALSE(lock.try_lock_for(100us, own));
            lock.unlock();
            thread_group threads;
            threads.start("waiter", [&] { event.wait(own); });
            until_parked(&event, 1);
            event.set();
            threads.join();
            EXPECT_FALSE(event.is_set());
        }
    }
}

TEST_F(SpinPolicy, DoesNotDelayATimeoutOrAStop) {
    auto_reset_event event;
    const auto before = support::cpu_time_of(pthread_self());
    EXPECT_EQ(event.wait_for(1us, spin_policy::fixed(1s)), wait_status::timed_out);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(event.wait(stop.get_token(), spin_policy::fixed(1s)), wait_status::stopped);
    EXPECT_LT(support::cpu_time_of(pthread_self()) - before, 100ms);
}

// The processor time of a wait that nobody ends for 300 ms.
nanoseconds burnt_in_vain(spin_policy policy) {
    auto_reset_event event;
    nanoseconds burnt{};
    thread_group threads;
    threads.start("waiter", [&] {
        const auto before = support::cpu_time_of(pthread_self());
        EXPECT_EQ(event.wait_for(300ms, policy), wait_status::timed_out);
        burnt = support::cpu_time_of(pthread_self()) - before;
    });
    threads.join();
    return burnt;
}

TEST_F(SpinPolicy, AFutileWaitBurnsNoMoreThanItsBound) {
    EXPECT_LT(burnt_in_vain(spin_policy::none()), 20ms);
    EXPECT_LT(burnt_in_vain(spin_policy::adaptive()), 20ms);
    EXPECT_LT(burnt_in_vain(spin_policy::fixed(20ms)), 60ms);
}

TEST_F(SpinPolicy, AStopEndsASpinBeforeItsBound) {
    auto_reset_event event;
    nanoseconds least = 1h;
    for (int attempt = 0; attempt != 5 && least >= 500ms; ++attempt) {  // a machine may be busy
        std::stop_source stop;
        thread_group threads;
        threads.start("waiter", [&] {
            const auto begin = steady_clock::now();
            EXPECT_EQ(event.wait(stop.get_token(), spin_policy::fixed(1s)), wait_status::stopped);
            least = std::min<nanoseconds>(least, steady_clock::now() - begin);
        });
        until_parked(&event, 1);
        stop.request_stop();
        threads.join();
    }
    EXPECT_LT(least, 500ms);
}

TEST_F(SpinPolicy, ManyFutileWaitsTeachTheAdaptiveOneToSleepAtOnce) {
    auto_reset_event event;
    const auto before = support::cpu_time_of(pthread_self());
    constexpr int waits = 200;
    for (int i = 0; i < waits; ++i) {
        EXPECT_EQ(event.wait_for(200us, spin_policy::adaptive(100us)), wait_status::timed_out);
    }
    // If the waits spun each time, they would use 20 ms and more.
    EXPECT_LT(support::cpu_time_of(pthread_self()) - before, support::rounds(1, 4) * 16ms);
}

#if TOCSIN_ON_POSIX
// Runs this program again on only one processor, because the library counts processors only once.
TEST_F(SpinPolicy, NobodySpinsOnOneProcessor) {
    if (std::getenv("TOCSIN_TEST_ONE_PROCESSOR") != nullptr) {
        ASSERT_LT(burnt_in_vain(spin_policy::fixed(200ms)), 60ms);
        ASSERT_LT(burnt_in_vain(spin_policy::adaptive(200ms)), 60ms);
        return;
    }
    const pid_t child = fork();
    if (child == 0) {
        cpu_set_t before;
        sched_getaffinity(0, sizeof before, &before);
        for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
            if (!CPU_ISSET(processor, &before)) continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(processor, &one);
            sched_setaffinity(0, sizeof one, &one);
            break;
        }
        setenv("TOCSIN_TEST_ONE_PROCESSOR", "1", 1);
        execl("/proc/self/exe", "spin_test", "--gtest_filter=SpinPolicy.NobodySpinsOnOneProcessor",
              "--gtest_brief=1", nullptr);
        _exit(98);
    }
    EXPECT_EQ(support::ending_of(child), "");
}
#endif

#if TOCSIN_COUNTERS
TEST_F(SpinPolicy, CountersSayWhatWaitsDid) {
    const auto before = tocsin::read_wait_counters();
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(spin_policy::none()); });
    until_parked(&event, 1);
    threads.until_asleep(0);
    event.set();
    threads.join();
    const auto slept = tocsin::read_wait_counters();
    EXPECT_EQ(slept.slept, before.slept + 1);
    EXPECT_EQ(slept.woken, before.woken + 1);
    EXPECT_EQ(slept.spun, before.spun);
    event.set();
    event.wait();
    EXPECT_EQ(tocsin::read_wait_counters().slept, slept.slept) << "a set event is no wait";
}
#endif

}  // namespace
