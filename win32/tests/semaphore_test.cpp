// SPDX-License-Identifier: Apache-2.0
// CreateSemaphore*, ReleaseSemaphore.
#include "system.hpp"

#include <atomic>
#include <limits>

namespace {

using namespace win32;

// A greater maximum counts as this one.
constexpr LONG max = std::numeric_limits<LONG>::max();

TEST(Semaphore, IsNotMadeWithCountsThatMakeNoSense) {
    const auto semaphore_w = [](LONG initial, LONG maximum) {
        return CreateSemaphoreW(nullptr, initial, maximum, nullptr);
    };
    const auto semaphore_ex_w = [](LONG initial, LONG maximum) {
        return CreateSemaphoreExW(nullptr, initial, maximum, nullptr, 0, SEMAPHORE_ALL_ACCESS);
    };
    const auto expect_refused = [&](LONG initial, LONG maximum) {
        const DWORD every = SEMAPHORE_ALL_ACCESS;
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, CreateSemaphoreA, nullptr, initial, maximum, nullptr));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, semaphore_w, initial, maximum));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, CreateSemaphoreExA, nullptr, initial, maximum, nullptr, 0u,
                          every));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, semaphore_ex_w, initial, maximum));
    };
    expect_refused(-1, 1);
    expect_refused(0, 0);
    expect_refused(0, -1);
    expect_refused(1, 0);
    expect_refused(2, 1);
    expect_refused(-2, -1);
}

TEST(Semaphore, HoldsItsInitialPermits) {
    for (const LONG initial : {0, 1, 3}) {
        const handle object = semaphore(initial, 3);
        for (LONG i = 0; i < initial; ++i)
            EXPECT_TRUE(returns(WAIT_OBJECT_0, WaitForSingleObject, object, 0u));
        EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForSingleObject, object, 0u));
    }
}

TEST(Semaphore, TellsTheCountBefore) {
    const handle object = semaphore(1, 10);
    LONG previous = -7;
    EXPECT_TRUE(works(ReleaseSemaphore, object, 2, &previous));
    EXPECT_EQ(previous, 1);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 3, nullptr));
    EXPECT_TRUE(works(ReleaseSemaphore, object, 4, &previous));
    EXPECT_EQ(previous, 6);
}

TEST(Semaphore, RefusesToReleaseNothingOrLess) {
    if (under_wine()) GTEST_SKIP() << "Wine takes a count without its sign";
    const handle object = semaphore(1, 10);
    LONG previous = -7;
    for (const LONG count : {LONG{0}, LONG{-1}, -max, -max - 1}) {
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, ReleaseSemaphore, object, count, &previous));
    }
    EXPECT_EQ(previous, -7);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 9, &previous));
    EXPECT_EQ(previous, 1);
}

TEST(Semaphore, RefusesToPassItsMaximumAndChangesNothing) {
    const handle object = semaphore(2, 3);
    LONG previous = -7;
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, 2, &previous));
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, max, nullptr));
    EXPECT_EQ(previous, -7);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 1, &previous));
    EXPECT_EQ(previous, 2);
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, 1, &previous));
    EXPECT_EQ(previous, 2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(look(object), WAIT_OBJECT_0);
    EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT});
}

TEST(Semaphore, CountsToTheEndOfItsRange) {
    for (const LONG maximum : {max, max - 1}) {
        for (const LONG missing : {LONG{1}, LONG{5}}) {
            const handle object = semaphore(maximum - missing, maximum);
            LONG previous = -7;
            EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, missing + 1, &previous));
            EXPECT_EQ(previous, -7);
            EXPECT_TRUE(works(ReleaseSemaphore, object, missing, &previous));
            EXPECT_EQ(previous, maximum - missing);
            for (const LONG more : {LONG{1}, LONG{2}, maximum})
                EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, more, &previous));
            EXPECT_EQ(look(object), WAIT_OBJECT_0);
            EXPECT_EQ(look(object), WAIT_OBJECT_0);
            EXPECT_TRUE(works(ReleaseSemaphore, object, 1, &previous));
            EXPECT_EQ(previous, maximum - 2);
            EXPECT_TRUE(works(ReleaseSemaphore, object, 1, &previous));
            EXPECT_EQ(previous, maximum - 1);
            EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, 1, &previous));
        }
    }
}

TEST(Semaphore, GrowsFromNothingToTheEndOfItsRange) {
    const handle object = semaphore(0, max);
    LONG previous = -7;
    EXPECT_TRUE(works(ReleaseSemaphore, object, max - 3, &previous));
    EXPECT_EQ(previous, 0);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 3, &previous));
    EXPECT_EQ(previous, max - 3);
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, 1, &previous));
    EXPECT_EQ(wait_any({object, object}, 0), WAIT_OBJECT_0);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 1, &previous));
    EXPECT_EQ(previous, max - 1);
}

TEST(Semaphore, ReleasesAsManyAsThereArePermitsAndKeepsTheOthers) {
    const handle object = semaphore(0, 10);
    thread_group threads;
    std::atomic<int> released{0};
    threads.start_many(4, "waiter", [&](int) {
        EXPECT_EQ(wait(object), WAIT_OBJECT_0);
        released.fetch_add(1);
    });
    until_all_wait(threads);
    LONG previous = -7;
    EXPECT_TRUE(works(ReleaseSemaphore, object, 3, &previous));
    EXPECT_EQ(previous, 0);
    EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT}) << "the call has given all permits to those who waited";
    until("three released", [&] { return released.load() == 3; });
    nap(5ms);
    EXPECT_EQ(released.load(), 3);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 3, &previous));
    EXPECT_EQ(previous, 0);
    threads.join();
    EXPECT_EQ(look(object), WAIT_OBJECT_0);
    EXPECT_EQ(look(object), WAIT_OBJECT_0);
    EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT});
}

TEST(Semaphore, IsGivenBackWhatItsMaximumAllowsWhileOthersWait) {
    const handle object = semaphore(0, 1);
    thread_group threads;
    threads.start_many(2, "waiter", [&](int) { EXPECT_EQ(wait(object), WAIT_OBJECT_0); });
    until_all_wait(threads);
    // Two waiters don't raise the limit: the count itself would pass it.
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, object, 2, nullptr));
    EXPECT_EQ(threads.finished(), 0u);
    EXPECT_TRUE(works(ReleaseSemaphore, object, 1, nullptr));
    EXPECT_TRUE(works(ReleaseSemaphore, object, 1, nullptr));
}

TEST(Semaphore, GivesEachPermitToExactlyOneOfManyWhoRace) {
    const int each = few(300, 50);
    const handle object = semaphore(0, max);
    std::atomic<int> taken{0};
    thread_group threads;
    threads.start_many(2, "taker", [&](int index) {
        const handle never = automatic();
        for (int i = 0; i < each; ++i) {
            const DWORD result = index ? wait(object) : wait_any({never, object}) - 1;
            EXPECT_EQ(result, WAIT_OBJECT_0);
            taken.fetch_add(1);
        }
    });
    threads.start_many(2, "giver", [&](int) {
        for (int i = 0; i < each; ++i) EXPECT_TRUE(works(ReleaseSemaphore, object, 1, nullptr));
    });
    threads.join();
    EXPECT_EQ(taken.load(), 2 * each);
    EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT});
}

TEST(Semaphore, IsTakenOnceByAWaitForAll) {
    const handle object = semaphore(2, 2), event = automatic(true);
    EXPECT_EQ(wait_all({object, event}), WAIT_OBJECT_0);
    LONG previous = -7;
    EXPECT_TRUE(works(ReleaseSemaphore, object, 1, &previous));
    EXPECT_EQ(previous, 1);
}

}  // namespace
