// SPDX-License-Identifier: Apache-2.0
// CreateEvent*, SetEvent, ResetEvent, PulseEvent.
#include "system.hpp"

#include <atomic>

namespace {

using namespace win32;

TEST(Event, IsMadeByEveryFormWithItsModeAndState) {
    struct form {
        handle object;
        bool is_manual;
        bool is_set;
    };
    std::vector<form> forms;
    const auto add = [&](HANDLE made, bool is_manual, bool is_set) {
        ASSERT_NE(made, nullptr);
        forms.push_back({handle(made), is_manual, is_set});
    };
    // Whatever is not zero is true.
    for (const BOOL manual_reset : {0, 1, 2, -1}) {
        for (const BOOL initially_set : {0, 1, 2, -1}) {
            add(CreateEventA(nullptr, manual_reset, initially_set, nullptr), manual_reset, initially_set);
            add(CreateEventW(nullptr, manual_reset, initially_set, nullptr), manual_reset, initially_set);
        }
    }
    const DWORD every = EVENT_MODIFY_STATE | SYNCHRONIZE;
    for (const DWORD flags : {0, 1, 2, 3}) {
        add(CreateEventExA(nullptr, nullptr, flags, every), flags & CREATE_EVENT_MANUAL_RESET,
            flags & CREATE_EVENT_INITIAL_SET);
        add(CreateEventExW(nullptr, nullptr, flags, every), flags & 1, flags & 2);
    }
    for (const auto& each : forms) {
        EXPECT_EQ(look(each.object), each.is_set ? WAIT_OBJECT_0 : DWORD{WAIT_TIMEOUT});
        EXPECT_TRUE(works(SetEvent, each.object));
        EXPECT_EQ(look(each.object), WAIT_OBJECT_0);
        EXPECT_EQ(look(each.object), each.is_manual ? WAIT_OBJECT_0 : DWORD{WAIT_TIMEOUT});
    }
}

TEST(Event, HoldsOneTokenHoweverOftenItIsSet) {
    const handle event = automatic();
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
}

TEST(Event, IsResetWhetherItIsSetOrNot) {
    for (const handle& event : {automatic(true), manual(true)}) {
        EXPECT_TRUE(works(ResetEvent, event));
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
        EXPECT_TRUE(works(ResetEvent, event));
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    }
}

// The traps of pevents: the signalling call decides who is released, and a thread that wakes looks no more.
TEST(Event, SetThenResetReleasesEveryoneWhoWaited) {
    for (int i = 0; i < few(50, 5); ++i) {
        const handle event = manual();
        thread_group threads;
        threads.start_many(3, "waiter", [&](int) { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
        until_all_wait(threads);
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_TRUE(works(ResetEvent, event));
        threads.join();
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    }
}

TEST(Event, TwoSetsReleaseTwo) {
    for (int i = 0; i < few(50, 5); ++i) {
        const handle event = automatic();
        thread_group threads;
        threads.start_many(2, "waiter", [&](int) { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
        until_all_wait(threads);
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_TRUE(works(SetEvent, event));
        threads.join();
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    }
}

TEST(Event, ASetterCannotTakeItsTokenBackFromAThreadThatWaited) {
    for (int i = 0; i < few(50, 5); ++i) {
        const handle event = automatic();
        thread_group threads;
        threads.start([&] { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
        until_waits(threads, 0);
        EXPECT_TRUE(works(SetEvent, event));
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    }
}

TEST(Event, SetThenResetReleasesTheOneWhoWaitedForAToken) {
    const handle event = automatic();
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(ResetEvent, event));
    threads.join();
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
}

TEST(Event, OneSetReleasesOne) {
    const handle event = automatic();
    thread_group threads;
    std::atomic<int> released{0};
    threads.start_many(4, "waiter", [&](int) {
        EXPECT_EQ(wait(event), WAIT_OBJECT_0);
        released.fetch_add(1);
    });
    until_all_wait(threads);
    for (int wanted = 1; wanted <= 4; ++wanted) {
        EXPECT_TRUE(works(SetEvent, event));
        until("one more released", [&] { return released.load() == wanted; });
        nap(2ms);
        EXPECT_EQ(released.load(), wanted);
    }
}

// Documented as usual, not as a promise.
TEST(Event, ReleasesWhoWaitsLongest) {
    const handle event = automatic();
    thread_group threads;
    for (std::size_t i = 0; i < 4; ++i) {
        threads.start([&] { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
        until_waits(threads, i);
    }
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(works(SetEvent, event));
        threads.until_finished(i + 1);
        EXPECT_TRUE(threads.finished(i));
    }
}

// A thread that is stopped while it waits. Windows takes it out of the queue meanwhile, and the token goes to the next
// (observed; Wine does so, too). Over tocsin nothing tells of the stop: the thread keeps its place, and is given the
// token.
TEST(Event, AThreadThatIsStoppedTakesItsTurnOrIsSkipped) {
    if (!support::freezer::works) GTEST_SKIP() << "nothing stops a thread here";
    constexpr bool skips = !over_tocsin;
    const handle event = automatic();
    support::freezer freezer;
    thread_group threads;
    for (std::size_t i = 0; i < 2; ++i) {
        threads.start([&] { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
        until_waits(threads, i);
    }
    freezer.freeze(threads.handle(0));
    EXPECT_TRUE(works(SetEvent, event));
    if (skips) threads.until_finished(1);
    nap(2ms);  // no fact to wait for: nothing must happen
    EXPECT_EQ(threads.finished(1), skips);
    EXPECT_FALSE(threads.finished(0));
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT}) << "a thread that waits has the token";
    freezer.thaw();
    if (!skips) threads.until_finished(1);
    EXPECT_EQ(threads.finished(0), !skips) << "it keeps what it was given";
    EXPECT_TRUE(works(SetEvent, event));
    threads.join();
}

TEST(Pulse, ReleasesAllWhoWaitForAManualEventAndLeavesItUnset) {
    for (const bool initially_set : {false, true}) {
        const handle event = manual();
        thread_group threads;
        threads.start_many(3, "waiter", [&](int) { EXPECT_EQ(wait(event), WAIT_OBJECT_0); });
        until_all_wait(threads);
        EXPECT_TRUE(works(PulseEvent, event));
        threads.join();
        EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
        const handle nobody_waits = manual(initially_set);
        EXPECT_TRUE(works(PulseEvent, nobody_waits));
        EXPECT_EQ(look(nobody_waits), DWORD{WAIT_TIMEOUT});
    }
}

TEST(Pulse, ReleasesOneWhoWaitsForAnAutoEventAndLeavesItUnset) {
    const handle event = automatic();
    thread_group threads;
    std::atomic<int> released{0};
    threads.start_many(3, "waiter", [&](int) {
        EXPECT_EQ(wait(event), WAIT_OBJECT_0);
        released.fetch_add(1);
    });
    until_all_wait(threads);
    EXPECT_TRUE(works(PulseEvent, event));
    until("one released", [&] { return released.load() == 1; });
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    nap(5ms);
    EXPECT_EQ(released.load(), 1);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(SetEvent, event));
    threads.join();
    for (const bool initially_set : {false, true}) {
        const handle nobody_waits = automatic(initially_set);
        EXPECT_TRUE(works(PulseEvent, nobody_waits));
        EXPECT_EQ(look(nobody_waits), DWORD{WAIT_TIMEOUT});
    }
}

TEST(Pulse, EndsAWaitForAnyWithTheEventsIndex) {
    for (const bool is_manual : {false, true}) {
        const handle event = is_manual ? manual() : automatic(), never = automatic();
        thread_group threads;
        threads.start([&] { EXPECT_EQ(wait_any({never, event}), WAIT_OBJECT_0 + 1); });
        until_waits(threads, 0);
        EXPECT_TRUE(works(PulseEvent, event));
    }
}

// If the event is the last that was missing, a pulse may end the wait, but need not.
TEST(Pulse, LeavesTheOthersOfAWaitForAllThatIsNotComplete) {
    const handle event = automatic(), other = automatic(), missing = automatic();
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait_all({event, other, missing}), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, other));
    EXPECT_TRUE(works(PulseEvent, event));
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(look(other), WAIT_OBJECT_0);
    for (const HANDLE each : {HANDLE(missing), HANDLE(other), HANDLE(event)})
        EXPECT_TRUE(works(SetEvent, each));
}

// Those who come later are not released.
TEST(Pulse, IsNotRemembered) {
    const handle event = manual();
    EXPECT_TRUE(works(PulseEvent, event));
    EXPECT_EQ(WaitForSingleObject(event, 10), DWORD{WAIT_TIMEOUT});
}

// The trap of pevents: a token that meets a timeout is lost. One thread sets whenever the token has been taken,
// the other waits so briefly that most of its waits time out.
TEST(Timeout, EatsNoToken) {
    for (const DWORD time : {0u, 1u}) {
        const handle event = automatic(), taken = automatic(true);
        // In parts, each with the whole patience, because alongside other busy programs each yield may take long.
        constexpr int parts = 10;
        const int tokens = few(time == 0 ? 3000 : 500, 100) / parts;
        for (int part = 0; part != parts; ++part) {
            thread_group threads;
            threads.start("setter", [&] {
                for (int i = 0; i < tokens; ++i) {
                    ASSERT_EQ(WaitForSingleObject(taken, 30'000), WAIT_OBJECT_0)
                        << "token " << i << " is lost";
                    if (time != 0 && i % 4 == 0) nap(1ms);  // near the end of a wait
                    ASSERT_TRUE(works(SetEvent, event));
                }
            });
            threads.start("waiter", [&] {
                for (int i = 0; i < tokens;) {
                    const DWORD result = WaitForSingleObject(event, time);
                    if (result == WAIT_OBJECT_0) {
                        ++i;
                        ASSERT_TRUE(works(SetEvent, taken));
                    } else {
                        ASSERT_EQ(result, DWORD{WAIT_TIMEOUT});
                        std::this_thread::yield();
                    }
                }
            });
            threads.join();
            EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
        }
    }
}

// The same for waits for several: a token that a wait for any or all was given counts, whatever the time says.
TEST(Timeout, EatsNoTokenOfSeveral) {
    const int tokens = few(400, 60);
    const handle a = automatic(), b = automatic(), taken = automatic(true);
    thread_group threads;
    threads.start("setter", [&] {
        for (int i = 0; i < tokens; ++i) {
            ASSERT_EQ(WaitForSingleObject(taken, 30'000), WAIT_OBJECT_0) << "token " << i << " is lost";
            ASSERT_TRUE(works(SetEvent, i % 2 ? a : b));
            if (i % 4 < 2) {
                ASSERT_TRUE(works(SetEvent, i % 2 ? b : a));
            }
        }
    });
    threads.start("waiter", [&] {
        for (int i = 0; i < tokens; ++i) {
            const bool both = i % 4 < 2;
            DWORD result = WAIT_TIMEOUT;
            while (result == WAIT_TIMEOUT) {
                result = both ? wait_all({a, b}, static_cast<DWORD>(i % 2))
                              : wait_any({a, b}, static_cast<DWORD>(i % 2));
                if (result == WAIT_TIMEOUT) std::this_thread::yield();
            }
            ASSERT_EQ(result, WAIT_OBJECT_0 + (both || i % 2 ? 0u : 1u));
            ASSERT_TRUE(works(SetEvent, taken));
        }
    });
    threads.join();
    EXPECT_EQ(wait_any({a, b}, 0), DWORD{WAIT_TIMEOUT});
}

}  // namespace
