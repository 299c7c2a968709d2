// SPDX-License-Identifier: Apache-2.0
// set() in a signal handler that interrupts set() or a wait in the same thread. Without precautions such a handler
// locks itself out (trap 22 in docs/traps.md).
#include "core/sync/signal_deferral.hpp"
#include "facts.hpp"
#include "platform/futex/futex.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>

#include <pthread.h>
#include <signal.h>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

auto_reset_event from_the_handler;
auto_reset_event also_in_the_thread;
manual_reset_event gate;

constexpr bool sleeps_on_the_portable_futex =
    std::is_same_v<tocsin::platform::futex, tocsin::platform::portable_futex>;

TEST(Trap22, SetInASignalHandlerDoesNotDeadlockWithWhatItInterrupts) {
    if (sleeps_on_the_portable_futex)
        GTEST_SKIP() << "a handler must not wake a sleeper of the portable futex, which takes a mutex";
    const support::handled_signal handled(SIGUSR1, [](int) {
        from_the_handler.set();
        also_in_the_thread.set();
        gate.set();
    });
    std::atomic<bool> enough{false};
    std::atomic<long> received{0};
    thread_group threads;
    threads.start("interrupted", [&] {
        while (!enough.load()) {
            also_in_the_thread.set();
            (void)also_in_the_thread.wait_for(20us);
            gate.set();
            gate.reset();
            (void)gate.wait_for(10us);
        }
    });
    threads.start("receiver", [&] {
        while (!enough.load()) {
            if (from_the_handler.wait_for(1ms) == wait_status::signaled) received.fetch_add(1);
            also_in_the_thread.set();
        }
    });
    threads.start("other receiver", [&] {
        while (!enough.load()) (void)also_in_the_thread.wait_for(30us);
    });
    (void)threads.id(0);
    const auto end = steady_clock::now() + 400ms;
    while (steady_clock::now() < end) {
        pthread_kill(threads.handle(0), SIGUSR1);
        std::this_thread::sleep_for(30us);  // no fact to wait for: anywhere in a round
    }
    from_the_handler.reset();
    const long so_far = received.load();
    pthread_kill(threads.handle(0), SIGUSR1);
    support::until("the last signal arrives", [&] { return received.load() > so_far; });
    enough.store(true);
    threads.join();
}

// The handler interrupts a thread that releases, takes and waits; every permit that it gives must come out.
TEST(Trap22, ReleaseInASignalHandlerLosesNoPermit) {
    if (sleeps_on_the_portable_futex)
        GTEST_SKIP() << "a handler must not wake a sleeper of the portable futex, which takes a mutex";
    static tocsin::counting_semaphore<> permits(0);
    static std::atomic<long> given{0};
    const support::handled_signal handled(SIGUSR1, [](int) {
        permits.release(2);
        given.fetch_add(2);
    });
    std::atomic<bool> enough{false};
    std::atomic<long> taken{0};
    thread_group threads;
    threads.start("interrupted", [&] {
        while (!enough.load()) {
            permits.release();
            given.fetch_add(1);
            if (permits.try_acquire_for(2, 10us)) taken.fetch_add(2);
        }
    });
    threads.start("receiver", [&] {
        while (!threads.finished(0) || taken.load() != given.load()) {
            if (permits.try_acquire_for(20us)) taken.fetch_add(1);
        }
    });
    (void)threads.id(0);
    const auto end = steady_clock::now() + 300ms;
    while (steady_clock::now() < end) {
        pthread_kill(threads.handle(0), SIGUSR1);
        std::this_thread::sleep_for(30us);  // no fact to wait for: anywhere in a round
    }
    enough.store(true);
    threads.join();
    EXPECT_EQ(taken.load(), given.load());
    EXPECT_FALSE(permits.try_acquire());
}

// A handler resets an event that is unset, and sets it when its waiter has left. If the reset were deferred, it would
// undo the set.
TEST(Trap22, AResetInASignalHandlerNeverUndoesALaterSet) {
    manual_reset_event event;
    {
        thread_group threads;
        std::stop_source stop;
        threads.start("waiter", [&] { EXPECT_EQ(event.wait(stop.get_token()), wait_status::stopped); });
        support::until_parked(&event, 1);
        const tocsin::core::signal_deferral
            inside;  // what follows is a handler's, for all that the library can tell
        event.reset();
        stop.request_stop();
        threads.join();
        event.set();
    }
    EXPECT_TRUE(event.is_set());
}

// A reset that follows a deferred set is deferred, too.
TEST(Trap22, AResetInASignalHandlerUndoesTheSetBeforeIt) {
    manual_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    support::until_parked(&event, 1);
    {
        const tocsin::core::signal_deferral inside;
        event.set();
        event.reset();
    }
    threads.join();
    EXPECT_FALSE(event.is_set());
}

// A set of an event that is set already is not deferred, unless the event is held or another thread changes it.
TEST(Trap22, AResetInASignalHandlerUndoesASetOfASetEvent) {
    manual_reset_event event(true);
    {
        const tocsin::core::signal_deferral inside;
        event.set();
        event.reset();
    }
    EXPECT_FALSE(event.is_set());
}

// A handler that has interrupted a wait for all can take no permit, but no permits are always there.
TEST(Trap22, ATryOfNoPermitsInASignalHandlerSucceeds) {
    using namespace tocsin::detail;
    semaphore_word word{semaphore_state::one};
    ASSERT_TRUE(semaphore_source().hold(&word));
    {
        const tocsin::core::signal_deferral inside;
        EXPECT_FALSE(semaphore_try_acquire(word, 1));
        EXPECT_TRUE(semaphore_try_acquire(word, 0));
    }
    semaphore_source().unhold(&word);
    EXPECT_TRUE(semaphore_try_acquire(word, 1));
}

// The deferred calls of handlers. Here the thread itself makes them. signal_deferral cannot tell the difference.
class DeferredCalls : public testing::Test {
protected:
    struct thing {
        char name;
        std::string& done;
        int more = 0;  // calls that a handler makes while one runs
    };

    static void set(void* what) noexcept {
        thing& self = *static_cast<thing*>(what);
        self.done += self.name;
        if (self.more != 0) {
            --self.more;
            signal_deferral::defer(set, what);
        }
    }
    static void reset(void* what) noexcept {
        static_cast<thing*>(what)->done += static_cast<char>(static_cast<thing*>(what)->name - 'a' + 'A');
    }

    using signal_deferral = tocsin::core::signal_deferral;
    std::string done;
    thing a{'a', done};
    thing b{'b', done};
};

TEST_F(DeferredCalls, RunInOrder) {
    {
        const signal_deferral inside;
        for (int i = 0; i < 4; ++i) {
            EXPECT_TRUE(signal_deferral::defer(set, &a));
            EXPECT_TRUE(signal_deferral::defer(set, &b));
            EXPECT_TRUE(signal_deferral::defer(reset, &a));
            EXPECT_TRUE(signal_deferral::defer(reset, &b));
        }
        EXPECT_EQ(done, "");
    }
    EXPECT_EQ(done, "abABabABabABabAB");
    EXPECT_FALSE(signal_deferral::defer(set, &a)) << "nothing is deferred outside";
}

TEST_F(DeferredCalls, ThatRepeatTheLastOfTheirEventAreCountedWhenTheSlotsAreFull) {
    {
        const signal_deferral inside;
        for (int i = 0; i < 14; ++i) signal_deferral::defer(set, &a);
        signal_deferral::defer(reset, &a);
        signal_deferral::defer(set, &b);
        for (int i = 0; i < 3; ++i) {
            signal_deferral::defer(reset, &a);
            signal_deferral::defer(set, &b);
        }
    }
    EXPECT_EQ(done, "aaaaaaaaaaaaaaAAAAbbbb");
}

TEST_F(DeferredCalls, MadeWhileOthersRunUseTheirSlots) {
    a.more = 1'000;
    b.more = 1'000;
    {
        const signal_deferral inside;
        for (int i = 0; i < 8; ++i) {
            signal_deferral::defer(set, &a);
            signal_deferral::defer(set, &b);
        }
    }
    EXPECT_EQ(std::count(done.begin(), done.end(), 'a'), 1'008);
    EXPECT_EQ(std::count(done.begin(), done.end(), 'b'), 1'008);
}

using DeferredCallsDeathTest = DeferredCalls;

TEST_F(DeferredCallsDeathTest, ThatAlternateEndTheProgramWhenTheSlotsAreFull) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto too_many = [&] {
        const signal_deferral inside;
        for (int i = 0; i < 9; ++i) {
            signal_deferral::defer(set, &a);
            signal_deferral::defer(reset, &a);
        }
    };
    EXPECT_DEATH(too_many(),
                 "tocsin: signal handlers interrupted one call into the library and made more than 16");
}

}  // namespace
