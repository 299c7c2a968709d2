// SPDX-License-Identifier: Apache-2.0
// Mutexes of tocsin/win32.h: owners, waits for several, abandonment, and what becomes of mutexes without handles.
#include "support.hpp"

#include <tocsin/diagnose.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace win32_test;

// Runs the body in a thread of Windows' kind, to its end.
template <class Body>
void in_another_thread(Body body) {
    auto run = [&]() -> DWORD { return body(), 0; };
    const win32_thread other(run);
}

TEST(win32_mutex, ItsOwnerEntersItAgainInEveryKindOfWait) {
    const HANDLE mutex = CreateMutex(nullptr, TRUE, nullptr);
    const event set(true, true);
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
    const std::array both{set.get(), mutex};
    const std::array reversed{mutex, set.get()};
    EXPECT_EQ(WaitForMultipleObjects(2, reversed.data(), FALSE, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 0), WAIT_OBJECT_0) << "the first that is ready";
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), TRUE, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForMultipleObjects(1, &mutex, TRUE, INFINITE), WAIT_OBJECT_0);
    for (int depth = 0; depth < 5; ++depth) {
        in_another_thread([&] { EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_TIMEOUT); });
        EXPECT_TRUE(ReleaseMutex(mutex));
    }
    EXPECT_FALSE(ReleaseMutex(mutex));
    EXPECT_EQ(GetLastError(), ERROR_NOT_OWNER);
    CloseHandle(mutex);
}

TEST(win32_mutex, AWaitForAllThatFailsCountsNothing) {
    const HANDLE mutex = CreateMutex(nullptr, TRUE, nullptr);
    const HANDLE other = CreateMutex(nullptr, FALSE, nullptr);
    const event never(false, false);
    const std::array all{mutex, other, never.get()};
    EXPECT_EQ(WaitForMultipleObjects(3, all.data(), TRUE, 1), WAIT_TIMEOUT);
    in_another_thread([&] {
        EXPECT_EQ(WaitForSingleObject(other, 0), WAIT_OBJECT_0);
        EXPECT_TRUE(ReleaseMutex(other));
    });
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_FALSE(ReleaseMutex(mutex));
    CloseHandle(mutex);
    CloseHandle(other);
}

TEST(win32_mutex, AnAbandonedMutexIsToldOnce) {
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    const event set(true, true);
    const auto abandon = [&] {
        in_another_thread([&] {
            EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
            EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
        });
    };
    abandon();
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_ABANDONED);
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_FALSE(ReleaseMutex(mutex)) << "owned at depth one";
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
    EXPECT_TRUE(ReleaseMutex(mutex));
    abandon();
    const std::array both{set.get(), mutex};
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), TRUE, 0), WAIT_ABANDONED_0);
    EXPECT_TRUE(ReleaseMutex(mutex));
    abandon();
    const event unset(true, false);
    const std::array second{unset.get(), mutex};
    EXPECT_EQ(WaitForMultipleObjects(2, second.data(), FALSE, 0), WAIT_ABANDONED_0 + 1);
    EXPECT_TRUE(ReleaseMutex(mutex));
    CloseHandle(mutex);
}

TEST(win32_mutex, AThreadThatStdMadeAbandonsItsMutexes) {
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    thread_group threads;
    threads.start([&] { EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0); });
    threads.join();
    EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_ABANDONED);
    CloseHandle(mutex);
}

TEST(win32_mutex, AWaiterGetsItWhenOnlyTheWaitIsLeft) {
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    const event owned(true, false);
    const event end(true, false);
    thread_group threads;
    threads.start("owner", [&] {
        EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
        SetEvent(owned.get());
        WaitForSingleObject(end.get(), INFINITE);
    });
    EXPECT_EQ(WaitForSingleObject(owned.get(), INFINITE), WAIT_OBJECT_0);
    threads.start("waiter", [&] { EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_ABANDONED); });
    support::until_sound_asleep(threads.id(1));
    EXPECT_TRUE(CloseHandle(mutex));
    SetEvent(end.get());
    threads.join();
}

// thread-2: the last handle is closed while its owner ends.
TEST(win32_mutex, AnOwnedMutexMayLoseItsHandleAtAnyTime) {
    for (int i = 0; i < rounds(300); ++i) {
        HANDLE owned[3];
        const event ready(true, false);
        thread_group threads;
        threads.start("owner", [&] {
            for (HANDLE& each : owned) each = CreateMutex(nullptr, TRUE, nullptr);
            SetEvent(ready.get());
        });
        WaitForSingleObject(ready.get(), INFINITE);
        for (const HANDLE each : owned) EXPECT_TRUE(CloseHandle(each));
        threads.join();
    }
    for (int i = 0; i < 1000; ++i)
        CloseHandle(CreateMutex(nullptr, TRUE, nullptr));  // nothing is left behind
}

TEST(win32_mutex, ItsHolderIsAlone) {
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    int counted = 0;
    thread_group threads;
    threads.start_many(4, "counter", [&](int) {
        for (int i = 0; i < rounds(2000); ++i) {
            EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_OBJECT_0);
            ++counted;
            EXPECT_TRUE(ReleaseMutex(mutex));
        }
    });
    threads.join();
    EXPECT_EQ(counted, 4 * rounds(2000));
    CloseHandle(mutex);
}

// 64 handles in random order: threads take all of some mutexes, and end without releasing them. Each is taken by one
// thread at a time, and no set of them is ever seen half taken.
TEST(win32_mutex, SixtyFourInRandomOrderWithAbandonment) {
    std::vector<HANDLE> mutexes;
    for (int i = 0; i < 64; ++i) mutexes.push_back(CreateMutex(nullptr, FALSE, nullptr));
    std::array<int, 64> holders{};
    std::atomic<int> abandoned{0};
    std::atomic<int> left{0};
    thread_group threads;
    for (int round = 0; round < rounds(20); ++round) {
        for (unsigned number = 0; number < 6; ++number) {
            threads.start("holder", [&, seed = static_cast<unsigned>(round) * 8 + number] {
                std::minstd_rand random(seed + 1);
                std::vector<std::size_t> order(64);
                for (std::size_t i = 0; i < 64; ++i) order[i] = i;
                std::shuffle(order.begin(), order.end(), random);
                order.resize(1 + random() % 64);
                std::vector<HANDLE> mine;
                for (const auto i : order) mine.push_back(mutexes[i]);
                const DWORD how =
                    WaitForMultipleObjects(static_cast<DWORD>(mine.size()), mine.data(), TRUE, INFINITE);
                EXPECT_TRUE(how == WAIT_OBJECT_0 || how == WAIT_ABANDONED_0) << how;
                if (how == WAIT_ABANDONED_0) ++abandoned;
                for (const auto i : order) EXPECT_EQ(holders[i]++, 0);
                for (const auto i : order) --holders[i];
                if (random() % 4 == 0) return ++left, void();
                for (const HANDLE each : mine) EXPECT_TRUE(ReleaseMutex(each));
            });
        }
        threads.join();
    }
    if (WaitForMultipleObjects(64, mutexes.data(), TRUE, 0) == WAIT_ABANDONED_0) ++abandoned;
    EXPECT_EQ(left > 0, abandoned > 0);
    for (const HANDLE each : mutexes) CloseHandle(each);
}

#if TOCSIN_CHECKED
// The library remembers at most 1,024 owners. So those of mutexes that were closed or abandoned must be forgotten.
TEST(win32_mutex, ItsOwnerIsInTheListOfWaits) {
    constexpr int many = 1100;
    std::vector<HANDLE> abandoned(many);
    for (HANDLE& each : abandoned) each = CreateMutex(nullptr, FALSE, nullptr);
    in_another_thread([&] {
        for (int i = 0; i != many; ++i) CloseHandle(CreateMutex(nullptr, TRUE, nullptr));
        for (const HANDLE each : abandoned) EXPECT_EQ(WaitForSingleObject(each, 0), WAIT_OBJECT_0);
    });
    for (const HANDLE each : abandoned) CloseHandle(each);

    const event never(false, false);
    EXPECT_EQ(WaitForSingleObject(never.get(), 1), WAIT_TIMEOUT);  // so that this thread knows its number
    const HANDLE mutex = CreateMutex(nullptr, TRUE, nullptr);
    auto take = [&]() -> DWORD {
        EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_OBJECT_0);
        EXPECT_TRUE(ReleaseMutex(mutex));
        return 0;
    };
    {
        const win32_thread other(take);
        const auto self = support::thread_number();
        support::until("its waiter is parked", [self] {
            return std::ranges::count(tocsin::parked_waits(), self, &tocsin::parked_wait::owner) == 1;
        });
        EXPECT_NE(tocsin::describe_parked_waits().find(", held by thread " + std::to_string(self)),
                  std::string::npos);
        EXPECT_TRUE(ReleaseMutex(mutex));
    }
    CloseHandle(mutex);
}

// Each of two threads waits for the other's mutex. The waits have a deadline and are repeated, so that they end.
TEST(win32_mutex, ADeadlockOfTwoIsShownUnlessSomethingElseMayEndTheWait) {
    for (const bool alone : {true, false}) {
        const event never(false, false);
        const std::array mutexes{CreateMutex(nullptr, FALSE, nullptr), CreateMutex(nullptr, FALSE, nullptr)};
        std::atomic<int> owners{0};
        std::atomic<bool> done{false};
        const auto body = [&](int own) -> DWORD {
            EXPECT_EQ(WaitForSingleObject(mutexes[own], INFINITE), WAIT_OBJECT_0);
            ++owners;
            while (owners.load() != 2) std::this_thread::yield();
            const std::array others{mutexes[1 - own], never.get()};
            while (!done.load()) {
                if (WaitForMultipleObjects(alone ? 1 : 2, others.data(), FALSE, 50) == WAIT_OBJECT_0) {
                    EXPECT_TRUE(ReleaseMutex(others[0]));
                }
            }
            EXPECT_TRUE(ReleaseMutex(mutexes[own]));
            return 0;
        };
        auto first = [&] { return body(0); };
        auto second = [&] { return body(1); };
        {
            const win32_thread one(first);
            const win32_thread two(second);
            std::vector<tocsin::parked_wait> waits;
            // A look may come while a thread is queueing its wait.
            const auto all_are_parked = [&] {
                waits = tocsin::parked_waits();
                std::set<std::uint64_t> holders;
                for (const auto& each : waits) holders.insert(each.owner);
                holders.erase(0);
                const auto of_holders = std::ranges::count_if(
                    waits, [&](const auto& each) { return holders.contains(each.thread); });
                return holders.size() == 2 && of_holders == (alone ? 2 : 4);
            };
            support::until("both wait", all_are_parked);
            EXPECT_EQ(tocsin::deadlocks(waits).size(), alone ? 1u : 0u);
            done = true;
        }
        for (const HANDLE each : mutexes) CloseHandle(each);
    }
}
#endif

}  // namespace
