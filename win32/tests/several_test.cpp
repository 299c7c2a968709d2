// SPDX-License-Identifier: Apache-2.0
// WaitForMultipleObjects: what its arguments may be, which object ends it, and that a wait for all takes all or none.
#include "system.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>

namespace {

using namespace win32;

constexpr int max = MAXIMUM_WAIT_OBJECTS;

std::vector<HANDLE> raw(const std::vector<handle>& owned) { return {owned.begin(), owned.end()}; }

std::vector<handle> many(int count, bool set = false) {
    std::vector<handle> made;
    for (int i = 0; i < count; ++i) made.push_back(automatic(set));
    return made;
}

TEST(Several, AreOneToSixtyFour) {
    const auto set = many(max + 1, true);
    const auto objects = raw(set);
    for (const BOOL all : {FALSE, TRUE}) {
        for (const DWORD time : {DWORD{0}, DWORD{INFINITE}}) {
            for (const DWORD count : {DWORD{0}, DWORD{max + 1}, DWORD{0x1000'0000}, DWORD{0xFFFF'FFFF}}) {
                EXPECT_TRUE(
                    fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, count, objects.data(), all, time));
                EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjectsEx, count, objects.data(),
                                  all, time, FALSE));
            }
        }
    }
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, 0u, nullptr, FALSE, 0u));
    for (const auto each : objects) EXPECT_EQ(look(each), WAIT_OBJECT_0) << "nothing is taken";
}

TEST(Several, CountIsLookedAtBeforeTheHandles) {
    std::array<HANDLE, max + 1> none{};
    EXPECT_TRUE(
        fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, DWORD{max + 1}, none.data(), TRUE, 0u));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, DWORD{max}, none.data(), TRUE, 0u));
}

// Likely: a handle that is none comes before one that is there twice.
TEST(Several, HandlesAreLookedAtBeforeTheirObjects) {
    const handle set = automatic(true);
    const std::array<HANDLE, 3> objects{set, set, nullptr};
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, 3u, objects.data(), TRUE, 0u));
    EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForMultipleObjects, 3u, objects.data(), FALSE, 0u));
    EXPECT_EQ(look(set), WAIT_OBJECT_0);
}

TEST(Several, TwiceTheSameIsRefusedByAWaitForAllWhateverItsState) {
    if (under_wine()) GTEST_SKIP() << "Wine waits, and takes the object once";
    const handle set = automatic(true), other = automatic(true), own = mutex(true);
    const handle copy = duplicate(set);
    for (const auto& objects :
         {std::array<HANDLE, 3>{set, other, set}, std::array<HANDLE, 3>{other, set, copy},
          std::array<HANDLE, 3>{own, set, own}}) {
        EXPECT_TRUE(
            fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, 3u, objects.data(), TRUE, INFINITE));
    }
    EXPECT_EQ(look(set), WAIT_OBJECT_0);
    EXPECT_EQ(look(other), WAIT_OBJECT_0);
    EXPECT_TRUE(works(ReleaseMutex, own));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, own));
}

TEST(Several, TwiceTheSameIsOneWaitInAWaitForAny) {
    const handle event = automatic(), never = automatic();
    thread_group threads;
    threads.start([&] {
        const DWORD result = wait_any({never, event, event});
        EXPECT_TRUE(result == WAIT_OBJECT_0 + 1 || result == WAIT_OBJECT_0 + 2) << result;
    });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, event));
    threads.join();
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(wait_any({never, event, event}), WAIT_OBJECT_0 + 1);
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
}

TEST(Any, TakesTheLowestIndexThatIsSetAndNoOther) {
    const auto events = many(4);
    EXPECT_TRUE(works(SetEvent, events[1]));
    EXPECT_TRUE(works(SetEvent, events[3]));
    EXPECT_EQ(wait_any(raw(events)), WAIT_OBJECT_0 + 1);
    EXPECT_EQ(wait_any(raw(events), 0), WAIT_OBJECT_0 + 3);
    EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForMultipleObjects, 4u, raw(events).data(), FALSE, 0u));
}

TEST(Any, TakesTheLowestIndexOfSixtyFourInRandomOrder) {
    auto events = many(max, true);
    std::shuffle(events.begin(), events.end(), std::mt19937(1));
    for (DWORD i = 0; i < max; ++i) ASSERT_EQ(wait_any(raw(events)), WAIT_OBJECT_0 + i);
    EXPECT_EQ(wait_any(raw(events), 1), DWORD{WAIT_TIMEOUT});
}

TEST(Any, IsEndedByTheOneThatIsSignaledOfSixtyFour) {
    const auto events = many(max);
    for (const int index : {0, 1, 31, 62, 63}) {
        thread_group threads;
        threads.start([&] { EXPECT_EQ(wait_any(raw(events)), WAIT_OBJECT_0 + static_cast<DWORD>(index)); });
        until_waits(threads, 0);
        EXPECT_TRUE(works(SetEvent, events[static_cast<std::size_t>(index)]));
        threads.join();
        EXPECT_EQ(wait_any(raw(events), 0), DWORD{WAIT_TIMEOUT});
    }
}

// The first signal ends the wait. If several objects are signaled at once, the documentation names the lowest index,
// and Windows returns that of the object whose signal ended the wait. Either is right.
TEST(Any, TakesOneOfSeveralThatAreSignaledWhileItSleeps) {
    const handle low = automatic(), high = automatic();
    DWORD result = 0;
    thread_group threads;
    threads.start([&] { result = wait_any({low, high}); });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, high));
    EXPECT_TRUE(works(SetEvent, low));
    threads.join();
    ASSERT_LE(result, WAIT_OBJECT_0 + 1);
    EXPECT_EQ(look(result == WAIT_OBJECT_0 ? low : high), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(look(result == WAIT_OBJECT_0 ? high : low), WAIT_OBJECT_0);
}

TEST(Any, SeesSetThenReset) {
    const handle event = manual(), never = automatic();
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait_any({never, event}), WAIT_OBJECT_0 + 1); });
    until_waits(threads, 0);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(ResetEvent, event));
}

TEST(All, ReturnsZeroAndTakesEverything) {
    const handle event = automatic(true), gate = manual(true), permits = semaphore(2, 2), own = mutex();
    EXPECT_TRUE(returns(WAIT_OBJECT_0, WaitForMultipleObjects, 4u,
                        std::array<HANDLE, 4>{event, gate, permits, own}.data(), TRUE, INFINITE));
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(look(gate), WAIT_OBJECT_0);
    LONG previous = -7;
    EXPECT_TRUE(works(ReleaseSemaphore, permits, 1, &previous));
    EXPECT_EQ(previous, 1);
    EXPECT_TRUE(works(ReleaseMutex, own));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, own));
}

// The trap of pevents and WinPR: members are taken one by one, and kept when the wait times out.
TEST(All, TakesNothingWhenItTimesOut) {
    for (const DWORD time : {0u, 1u, 20u}) {
        const handle event = automatic(true), permits = semaphore(2, 2), own = mutex(), missing = automatic();
        EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForMultipleObjects, 4u,
                            std::array<HANDLE, 4>{event, permits, own, missing}.data(), TRUE, time));
        EXPECT_EQ(look(event), WAIT_OBJECT_0);
        EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, permits, 1, nullptr));
        EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, own));
    }
}

// While it sleeps, others may take a member, and it then waits for that one again.
TEST(All, HoldsNothingWhileItSleeps) {
    const handle event = automatic(true), permits = semaphore(1, 1), own = mutex(), missing = automatic();
    thread_group threads;
    threads.start([&] {
        EXPECT_EQ(wait_all({event, permits, own, missing}), WAIT_OBJECT_0);
        EXPECT_TRUE(works(ReleaseMutex, own));
    });
    until_waits(threads, 0);
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_EQ(look(permits), WAIT_OBJECT_0);
    EXPECT_EQ(look(own), WAIT_OBJECT_0);
    EXPECT_TRUE(works(SetEvent, missing));
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(ReleaseMutex, own));
    nap(2ms);
    EXPECT_FALSE(threads.finished(0));
    EXPECT_TRUE(works(ReleaseSemaphore, permits, 1, nullptr));
    threads.join();
    EXPECT_EQ(wait_any({event, permits, missing}, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(look(own), WAIT_OBJECT_0);
    EXPECT_TRUE(works(ReleaseMutex, own));
}

// The trap of pevents: satisfied by members that were never set together.
TEST(All, IsNotEndedByMembersThatWereSetOneAfterTheOther) {
    const handle a = manual(), b = manual();
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait_all({a, b}), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(works(SetEvent, a));
        EXPECT_TRUE(works(ResetEvent, a));
        EXPECT_TRUE(works(SetEvent, b));
        EXPECT_TRUE(works(ResetEvent, b));
    }
    nap(5ms);
    EXPECT_FALSE(threads.finished(0));
    EXPECT_TRUE(works(SetEvent, a));
    EXPECT_TRUE(works(SetEvent, b));
}

TEST(All, OfSixtyFourEndsWithTheLastInRandomOrder) {
    const auto events = many(max);
    std::vector<std::size_t> order(max);
    std::iota(order.begin(), order.end(), 0);
    for (unsigned seed = 0; seed < 3; ++seed) {
        std::shuffle(order.begin(), order.end(), std::mt19937(seed));
        thread_group threads;
        threads.start([&] { EXPECT_EQ(wait_all(raw(events)), WAIT_OBJECT_0); });
        until_waits(threads, 0);
        for (std::size_t i = 0; i + 1 < order.size(); ++i) EXPECT_TRUE(works(SetEvent, events[order[i]]));
        nap(2ms);
        EXPECT_FALSE(threads.finished(0));
        EXPECT_TRUE(works(SetEvent, events[order.back()]));
        threads.join();
        EXPECT_EQ(wait_any(raw(events), 0), DWORD{WAIT_TIMEOUT});
    }
}

struct owner_of_one {
    HANDLE object;
    HANDLE end;
    HANDLE ready;
    bool gives_back;
};
DWORD WINAPI own_until_told(void* argument) {
    const auto& self = *static_cast<owner_of_one*>(argument);
    EXPECT_EQ(wait(self.object), WAIT_OBJECT_0);
    EXPECT_TRUE(works(SetEvent, self.ready));
    EXPECT_EQ(wait(self.end), WAIT_OBJECT_0);
    if (self.gives_back) {
        EXPECT_TRUE(works(ReleaseMutex, self.object));
    }
    return 0;
}

// 64 mutexes owned by 64 threads that end in random order, every third without giving its mutex back.
TEST(All, OfSixtyFourMutexesInRandomOrderWithAbandonment) {
    const support::small_stacks small;
    for (const bool with_abandonment : {true, false}) {
        std::vector<handle> mutexes, ends, threads, ready;
        std::vector<owner_of_one> owners;
        for (int i = 0; i < max; ++i) {
            mutexes.push_back(mutex());
            ends.push_back(automatic());
            ready.push_back(automatic());
            owners.push_back({mutexes.back(), ends.back(), ready.back(), !with_abandonment || i % 3 != 0});
        }
        for (auto& owner : owners) {
            threads.push_back(handle(CreateThread(nullptr, 0, own_until_told, &owner, 0, nullptr)));
        }
        EXPECT_EQ(wait_all(raw(ready)), WAIT_OBJECT_0);
        thread_group waiter;
        waiter.start([&] {
            EXPECT_EQ(wait_all(raw(mutexes)), with_abandonment ? DWORD{WAIT_ABANDONED_0} : WAIT_OBJECT_0);
            for (const auto& each : mutexes) {
                EXPECT_TRUE(works(ReleaseMutex, each));
                EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, each));
            }
        });
        until_waits(waiter, 0);
        std::shuffle(ends.begin(), ends.end(), std::mt19937(7));
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) EXPECT_TRUE(works(SetEvent, ends[i]));
        nap(2ms);
        EXPECT_FALSE(waiter.finished(0));
        EXPECT_TRUE(works(SetEvent, ends.back()));
        waiter.join();
        EXPECT_EQ(wait_all(raw(threads)), WAIT_OBJECT_0);
        for (const auto& each : mutexes) {
            EXPECT_EQ(look(each), WAIT_OBJECT_0) << "the mark is gone";
            EXPECT_TRUE(works(ReleaseMutex, each));
        }
    }
}

TEST(Any, OfSixtyFourMutexesTellsWhichWasAbandoned) {
    std::vector<handle> mutexes;
    for (int i = 0; i < max; ++i) mutexes.push_back(mutex());
    std::vector<std::size_t> order(max);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    thread_group keeper;
    const handle owned = automatic(), end = automatic();
    keeper.start([&] {
        EXPECT_EQ(wait_all(raw(mutexes)), WAIT_OBJECT_0);
        EXPECT_TRUE(works(SetEvent, owned));
        EXPECT_EQ(wait(end), WAIT_OBJECT_0);
        for (std::size_t i = 0; i < order.size(); i += 2) EXPECT_TRUE(works(ReleaseMutex, mutexes[order[i]]));
    });
    EXPECT_EQ(wait(owned), WAIT_OBJECT_0);
    EXPECT_EQ(wait_any(raw(mutexes), 1), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, end));
    keeper.join();
    std::vector<bool> is_abandoned(max);
    for (std::size_t i = 1; i < order.size(); i += 2) is_abandoned[order[i]] = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const DWORD base = is_abandoned[i] ? DWORD{WAIT_ABANDONED_0} : WAIT_OBJECT_0;
        const std::vector<HANDLE> from_here = [&] {
            auto all = raw(mutexes);
            all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i));
            return all;
        }();
        EXPECT_EQ(wait_any(from_here, 1000), base);
        EXPECT_TRUE(works(ReleaseMutex, mutexes[i]));
    }
}

// Two waits for all that overlap, in opposite orders, can't block each other, and no token goes astray.
TEST(All, ThatOverlapTakeTurns) {
    const handle a = automatic(true), b = automatic(true), c = automatic(true);
    const int each = few(300, 50);
    thread_group threads;
    const auto take = [&](const std::vector<HANDLE>& objects) {
        for (int i = 0; i < each; ++i) {
            DWORD result = WAIT_TIMEOUT;
            while (result == WAIT_TIMEOUT) result = wait_all(objects, i % 3 ? INFINITE : 1);
            ASSERT_EQ(result, WAIT_OBJECT_0);
            for (const auto object : objects) ASSERT_TRUE(works(SetEvent, object));
        }
    };
    threads.start([&] { take({a, b}); });
    threads.start([&] { take({b, a}); });
    threads.start([&] { take({b, c, a}); });
    threads.join();
    EXPECT_EQ(wait_all({a, b, c}, 0), WAIT_OBJECT_0);
}

TEST(Several, TimesOutNotEarly) {
    const auto events = many(3);
    for (const BOOL all : {FALSE, TRUE}) {
        EXPECT_GE(time_of([&] { (void)WaitForMultipleObjects(3, raw(events).data(), all, 20); }),
                  at_least(20ms));
    }
}

}  // namespace
