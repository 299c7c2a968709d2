// SPDX-License-Identifier: Apache-2.0
// Many threads and handles at once: what must balance in the end.
#include "system.hpp"

#include <algorithm>
#include <atomic>
#include <random>

namespace {

using namespace win32;

struct shared {
    std::atomic<int> waited{0};
    std::atomic<int> refused{0};
};

// Makes objects, waits for them, lets others close them. Everything that it makes is closed in the end.
DWORD WINAPI make_wait_close(void* argument) {
    auto& all = *static_cast<shared*>(argument);
    const handle event = automatic(), permits = semaphore(0, 5), own = mutex(true), gate = manual(true);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(ReleaseSemaphore, permits, 3, nullptr));
    EXPECT_EQ(wait_all({event, permits, own, gate}), WAIT_OBJECT_0);
    EXPECT_EQ(wait_any({event, permits}, 0), WAIT_OBJECT_0 + 1);
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT});
    const HANDLE gone = duplicate(event).release();
    EXPECT_TRUE(works(CloseHandle, gone));
    if (over_tocsin) {  // elsewhere the number may be another thread's by now
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, gone, 0u));
        all.refused.fetch_add(1);
    }
    all.waited.fetch_add(1);
    return 5;
}

TEST(Storm, OfThreadsThatCreateWaitAndClose) {
    const support::small_stacks small;
    const int many = few(1000, over_tocsin ? 200 : 100);
    shared all;
    std::vector<handle> threads;
    for (int i = 0; i < many; ++i) {
        threads.push_back(handle(CreateThread(nullptr, 0, make_wait_close, &all, 0, nullptr)));
        ASSERT_NE(HANDLE(threads.back()), nullptr);
    }
    for (const auto& thread : threads) {
        EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
        DWORD code = 0;
        EXPECT_TRUE(works(GetExitCodeThread, thread, &code));
        EXPECT_EQ(code, 5u);
    }
    EXPECT_EQ(all.waited.load(), many);
}

// All wait for one event at the same time, each through a handle of its own that it closes.
TEST(Storm, OfThreadsThatWaitForOneObject) {
    const support::small_stacks small;
    const int many = few(1000, over_tocsin ? 200 : 60);
    const handle event = manual(), permits = semaphore(0, many);
    std::atomic<int> ready{0}, released{0};
    thread_group threads;
    threads.start_many(many, "waiter", [&](int index) {
        const handle own = duplicate(event);
        ready.fetch_add(1);
        EXPECT_EQ(index % 2 ? wait(own) : wait_all({own, permits}), WAIT_OBJECT_0);
        released.fetch_add(1);
    });
    until("all begun", [&] { return ready.load() == many; });
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(works(ReleaseSemaphore, permits, many / 2, nullptr));
    threads.join();
    EXPECT_EQ(released.load(), many);
    EXPECT_EQ(look(permits), DWORD{WAIT_TIMEOUT});
}

// Tokens circulate among 64 events while waits for any and for all, with and without time, take and put them back.
TEST(Storm, OfSixtyFourHandles) {
    constexpr std::size_t count = MAXIMUM_WAIT_OBJECTS;
    const int each = few(400, 40);
    std::vector<handle> events;
    for (std::size_t i = 0; i < count; ++i) events.push_back(automatic(i % 2 == 0));
    thread_group threads;
    threads.start_many(4, "taker", [&](int seed) {
        std::mt19937 random(static_cast<unsigned>(seed));
        std::vector<HANDLE> mine(events.begin(), events.end());
        for (int i = 0; i < each; ++i) {
            std::shuffle(mine.begin(), mine.end(), random);
            if (random() % 4 == 0) {
                const std::vector<HANDLE> some(mine.begin(), mine.begin() + 3);
                const DWORD result = wait_all(some, static_cast<DWORD>(random() % 3));
                if (result == WAIT_TIMEOUT) continue;
                ASSERT_EQ(result, WAIT_OBJECT_0);
                for (const auto taken : some) ASSERT_TRUE(works(SetEvent, taken));
            } else {
                const DWORD result = wait_any(mine);
                ASSERT_LT(result, WAIT_OBJECT_0 + count);
                ASSERT_TRUE(works(SetEvent, mine[result - WAIT_OBJECT_0]));
            }
        }
    });
    threads.join();
    std::size_t tokens = 0;
    for (const auto& event : events) tokens += look(event) == WAIT_OBJECT_0 ? 1u : 0u;
    EXPECT_EQ(tokens, count / 2);
}

// Mutexes pass from thread to thread, and every few rounds a thread ends with one: whoever gets it next is told.
TEST(Storm, OfMutexesWithAbandonment) {
    constexpr std::size_t count = 8;
    const int many = few(300, 40);
    std::vector<handle> mutexes;
    for (std::size_t i = 0; i < count; ++i) mutexes.push_back(mutex());
    std::atomic<int> abandoned{0}, told{0};
    thread_group threads;
    threads.start_many(3, "starter", [&](int seed) {
        std::mt19937 random(static_cast<unsigned>(seed));
        for (int i = 0; i < many; ++i) {
            const unsigned draw = static_cast<unsigned>(random());
            elsewhere([&] {
                std::vector<HANDLE> mine(mutexes.begin(), mutexes.end());
                std::rotate(mine.begin(), mine.begin() + draw % count, mine.end());
                const DWORD result = wait_any(mine);
                const bool was_abandoned = result >= WAIT_ABANDONED_0;
                const DWORD index = result - (was_abandoned ? DWORD{WAIT_ABANDONED_0} : WAIT_OBJECT_0);
                ASSERT_LT(index, count);
                if (was_abandoned) told.fetch_add(1);
                if (draw % 3 == 0) {
                    abandoned.fetch_add(1);
                } else {
                    ASSERT_TRUE(works(ReleaseMutex, mine[index]));
                }
            });
        }
    });
    threads.join();
    for (const auto& each : mutexes) {
        const DWORD result = WaitForSingleObject(each, 10'000);
        if (result == WAIT_ABANDONED) told.fetch_add(1);
        EXPECT_TRUE(result == WAIT_OBJECT_0 || result == WAIT_ABANDONED) << result;
        EXPECT_TRUE(works(ReleaseMutex, each));
    }
    EXPECT_EQ(told.load(), abandoned.load());
}

}  // namespace
