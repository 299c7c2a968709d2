// SPDX-License-Identifier: Apache-2.0
// Signals do not end a wait, and no call changes errno, with or without signals.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/await.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

#if TOCSIN_ON_POSIX
TEST(Signals, DoNotEndAWaitNorChangeErrno) {
    const support::signal_counter signals(SIGUSR1);
    auto_reset_event event;
    manual_reset_event gate;
    std::atomic<std::uint32_t> word{0};
    tocsin::word_lock<> lock;
    std::stop_source stop;
    lock.lock();
    thread_group threads;
    const auto keeps_errno = [](auto wait) {
        errno = 4242;
        wait();
        EXPECT_EQ(errno, 4242);
    };
    threads.start("event", [&] { keeps_errno([&] { event.wait(); }); });
    threads.start("gate, timed",
                  [&] { keeps_errno([&] { EXPECT_EQ(gate.wait_for(1h), wait_status::signaled); }); });
    threads.start("gate, stoppable", [&] {
        keeps_errno([&] { EXPECT_EQ(gate.wait(stop.get_token()), wait_status::signaled); });
    });
    threads.start("address", [&] {
        keeps_errno([&] { EXPECT_EQ(tocsin::wait_on_address(&word, 0u), tocsin::address_status::woken); });
    });
    threads.start("lock", [&] { keeps_errno([&] { lock.lock(), lock.unlock(); }); });
    until_parked(&event, 1);
    until_parked(&gate, 2);
    until_parked(&word, 1);
    until_parked(&lock, 1);
    for (int i = 0; i < 40; ++i) {
        const long before = signals.count();
        for (std::size_t t = 0; t < threads.size(); ++t) pthread_kill(threads.handle(t), SIGUSR1);
        if (support::freezer::works) {
            support::until("the signals are handled", [&] { return signals.count() >= before + 5; });
        }
    }
    for (std::size_t t = 0; t < threads.size(); ++t) threads.until_asleep(t);
    EXPECT_EQ(threads.finished(), 0u);
    EXPECT_EQ(tocsin::waiting_on(&event), 1u);
    EXPECT_EQ(tocsin::waiting_on(&gate), 2u);
    EXPECT_EQ(tocsin::waiting_on(&word), 1u);
    EXPECT_EQ(tocsin::waiting_on(&lock), 1u);
    event.set();
    gate.set();
    EXPECT_EQ(tocsin::wake_by_address_all(&word), 1u);
    lock.unlock();
    threads.join();
}
#endif

TEST(Errno, IsLeftAloneByEveryCall) {
    manual_reset_event gate;
    auto_reset_event token;
    std::atomic<std::uint32_t> word{0};
    tocsin::word_lock<> lock;
    tocsin::bit_lock bit(word, 4);
    std::stop_source stop;
    stop.request_stop();
    const auto keeps_errno = [](const char* name, auto call) {
        for (const int value : {0, EINTR, ETIMEDOUT, 4242}) {
            errno = value;
            call();
            EXPECT_EQ(errno, value) << name;
        }
    };
    keeps_errno("set", [&] { gate.set(), token.set(), token.set(); });
    keeps_errno("is_set", [&] { (void)gate.is_set(); });
    keeps_errno("try_wait", [&] { (void)token.try_wait(); });
    keeps_errno("reset", [&] { gate.reset(), token.reset(); });
    keeps_errno("wait_for", [&] { (void)token.wait_for(100us); });
    keeps_errno("wait_for 0", [&] { (void)token.wait_for(0s); });
    keeps_errno("wait_until", [&] { (void)gate.wait_until(std::chrono::system_clock::now() + 100us); });
    keeps_errno("stopped wait", [&] { (void)gate.wait(stop.get_token()); });
    keeps_errno("wait_on_address", [&] { (void)tocsin::wait_on_address(&word, 0u, 100us); });
    keeps_errno("wake", [&] { tocsin::wake_by_address_all(&word); });
    keeps_errno("change that wakes", [&] { tocsin::store(&word, 0u, tocsin::wake_all); });
    keeps_errno("lock", [&] { lock.lock(), (void)lock.try_lock_for(100us), lock.unlock(); });
    keeps_errno("bit", [&] { bit.lock(), (void)bit.try_lock_for(100us), bit.unlock(); });
    keeps_errno("waiting_on", [&] { (void)tocsin::waiting_on(&word); });
    thread_group threads;
    for (int i = 0; i < 4; ++i) {
        threads.start("waiter", [&] { keeps_errno("wait", [&] { token.wait(); }); });
    }
    for (int i = 0; i < 4; ++i) {
        until_parked(&token, 4);
        keeps_errno("waking set", [&] { token.set(); });
    }
    threads.join();
}

#if TOCSIN_ON_POSIX
// What a coroutine starts inherits its thread's mask. A program that was started with SIGTERM blocked can't be ended.
TEST(Signals, ADeadlineResumesACoroutineWithTheSignalsBlockedThatItsMakerBlocked) {
    static auto_reset_event never;
    const auto mask_of = [] {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        std::vector<int> blocked;
        for (const int each : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM}) {
            if (sigismember(&mask, each) == 1) blocked.push_back(each);
        }
        return blocked;
    };
    std::vector<int> while_it_runs;
    manual_reset_event done;
    const support::task one = [](auto look, auto& found, auto& end) -> support::task {
        (void)co_await tocsin::async_wait({.until = 1ms}, never);
        found = look();
        end.set();
    }(mask_of, while_it_runs, done);
    done.wait();
    one.join();
    EXPECT_EQ(while_it_runs, mask_of());
}

// In the thread itself no signal handler of the program runs while the library waits there.
TEST(Signals, AreHandledInTheProgramsThreadsWhileCoroutinesWait) {
    static std::atomic<bool> in_another{false};
    static pthread_t own;
    own = pthread_self();
    const support::handled_signal handled(
        SIGUSR1, [](int) { in_another.store(pthread_equal(own, pthread_self()) == 0); });
    static auto_reset_event never;
    const support::task waits = []() -> support::task {
        (void)co_await tocsin::async_wait({.until = 1h}, never);
    }();
    for (int i = 0; i < 100; ++i) kill(getpid(), SIGUSR1);
    EXPECT_FALSE(in_another.load());
}
#endif

}  // namespace
