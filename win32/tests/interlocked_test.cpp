// SPDX-License-Identifier: Apache-2.0
// The Interlocked functions, singly linked lists, loads and stores with an order.
#include "system.hpp"

#include <atomic>
#include <limits>

namespace {

using namespace win32;

TEST(Interlocked, ReturnsWhatWindowsReturns) {
    LONG volatile value = 5;
    EXPECT_EQ(InterlockedIncrement(&value), 6);
    EXPECT_EQ(InterlockedDecrement(&value), 5);
    EXPECT_EQ(InterlockedExchange(&value, 7), 5);
    EXPECT_EQ(InterlockedExchangeAdd(&value, 3), 7);
    EXPECT_EQ(InterlockedCompareExchange(&value, 1, 2), 10);
    EXPECT_EQ(value, 10);
    EXPECT_EQ(InterlockedCompareExchange(&value, 1, 10), 10);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(InterlockedOr(&value, 0xF0), 1);
    EXPECT_EQ(InterlockedAnd(&value, 0x3F), 0xF1);
    EXPECT_EQ(InterlockedXor(&value, 0x30), 0x31);
    EXPECT_EQ(value, 1);
    value = std::numeric_limits<LONG>::max();
    EXPECT_EQ(InterlockedIncrement(&value), std::numeric_limits<LONG>::min()) << "it wraps around";
}

TEST(Interlocked, HasAllWidths) {
    SHORT volatile small = std::numeric_limits<SHORT>::max();
    EXPECT_EQ(InterlockedIncrement16(&small), std::numeric_limits<SHORT>::min());
    EXPECT_EQ(InterlockedDecrement16(&small), std::numeric_limits<SHORT>::max());
    EXPECT_EQ(InterlockedCompareExchange16(&small, 2, std::numeric_limits<SHORT>::max()),
              std::numeric_limits<SHORT>::max());
    LONG64 volatile large = 0x7FFF'FFFF'FFFF;
    EXPECT_EQ(InterlockedIncrement64(&large), 0x8000'0000'0000);
    EXPECT_EQ(InterlockedExchangeAdd64(&large, -1), 0x8000'0000'0000);
    EXPECT_EQ(InterlockedCompareExchange64(&large, 3, 0x7FFF'FFFF'FFFF), 0x7FFF'FFFF'FFFF);
    EXPECT_EQ(InterlockedExchange64(&large, 9), 3);
    EXPECT_EQ(InterlockedAnd64(&large, 8), 9);
    EXPECT_EQ(InterlockedXor64(&large, 1), 8);
    EXPECT_EQ(large, 9);
    CHAR volatile tiny = 1;
#if !defined(_WIN32)  // MinGW lacks these
    EXPECT_EQ(InterlockedOr16(&small, 4), 2);
    EXPECT_EQ(small, 6);
    EXPECT_EQ(InterlockedExchange8(&tiny, 2), 1);
    EXPECT_EQ(InterlockedOr8(&tiny, 5), 2);
    EXPECT_EQ(tiny, 7);
    EXPECT_EQ(InterlockedAdd(reinterpret_cast<LONG volatile*>(&large), 0), 9);
    EXPECT_EQ(InterlockedAdd64(&large, 1), 10);
    EXPECT_EQ(InterlockedIncrementAcquire(reinterpret_cast<LONG volatile*>(&large)), 11);
    EXPECT_EQ(InterlockedCompareExchange64NoFence(&large, 1, 11), 11);
    EXPECT_EQ(InterlockedExchangeRelease(reinterpret_cast<LONG volatile*>(&large), 2), 1);
    unsigned volatile counter = 4;
    EXPECT_EQ(InterlockedIncrement(&counter), 5u);
    long volatile wide = 4;
    EXPECT_EQ(InterlockedDecrement(&wide), 3);
    unsigned long volatile wider = 4;
    EXPECT_EQ(InterlockedCompareExchange(&wider, 1ul, 4ul), 4ul);
#else
    (void)tiny;
#endif
}

TEST(Interlocked, ExchangesPointers) {
    int one = 0, other = 0;
    PVOID volatile at = &one;
    EXPECT_EQ(InterlockedExchangePointer(&at, &other), &one);
    EXPECT_EQ(InterlockedCompareExchangePointer(&at, &one, &one), &other);
    EXPECT_EQ(at, &other);
    EXPECT_EQ(InterlockedCompareExchangePointer(&at, nullptr, &other), &other);
    EXPECT_EQ(at, nullptr);
}

TEST(Interlocked, TestsAndChangesBits) {
    LONG volatile words[2] = {0, 0};
    EXPECT_FALSE(InterlockedBitTestAndSet(words, 31));
    EXPECT_TRUE(InterlockedBitTestAndSet(words, 31));
    EXPECT_EQ(words[0], std::numeric_limits<LONG>::min());
    EXPECT_TRUE(InterlockedBitTestAndReset(words, 31));
    EXPECT_FALSE(InterlockedBitTestAndReset(words, 31));
    EXPECT_EQ(words[0], 0);
    EXPECT_EQ(words[1], 0);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(Interlocked, ComparesAndExchanges16Bytes) {
#if !defined(_WIN32)
    alignas(16) LONG64 volatile pair[2] = {1, 2};
    LONG64 expected[2] = {1, 3};
    EXPECT_FALSE(InterlockedCompareExchange128(pair, 6, 5, expected));
    EXPECT_EQ(expected[0], 1);
    EXPECT_EQ(expected[1], 2);
    EXPECT_TRUE(InterlockedCompareExchange128(pair, 6, 5, expected));
    EXPECT_EQ(pair[0], 5);
    EXPECT_EQ(pair[1], 6);
#endif
}
#endif

TEST(Interlocked, LosesNothingBetweenThreads) {
    LONG volatile sum = 0;
    LONG64 volatile sum64 = 0;
    SHORT volatile sum16 = 0;
    const int each = few(20'000, 2'000);
    thread_group threads;
    threads.start_many(3, "adder", [&](int) {
        for (int i = 0; i < each; ++i) {
            (void)InterlockedIncrement(&sum);
            (void)InterlockedExchangeAdd64(&sum64, 3);
            (void)InterlockedIncrement16(&sum16);
        }
    });
    threads.join();
    EXPECT_EQ(sum, 3 * each);
    EXPECT_EQ(sum64, LONG64{9} * each);
    EXPECT_EQ(sum16, static_cast<SHORT>(3 * each));
}

struct alignas(MEMORY_ALLOCATION_ALIGNMENT) item {
    SLIST_ENTRY link;
    int value;
};

TEST(SList, IsLastInFirstOut) {
    alignas(16) SLIST_HEADER list;
    InitializeSListHead(&list);
    EXPECT_EQ(InterlockedPopEntrySList(&list), nullptr);
    item items[3];
    for (int i = 0; i < 3; ++i) {
        items[i].value = i;
        EXPECT_EQ(InterlockedPushEntrySList(&list, &items[i].link), i == 0 ? nullptr : &items[i - 1].link);
        EXPECT_EQ(QueryDepthSList(&list), i + 1);
    }
    EXPECT_EQ(InterlockedPopEntrySList(&list), &items[2].link);
    EXPECT_EQ(QueryDepthSList(&list), 2);
    const PSLIST_ENTRY rest = InterlockedFlushSList(&list);
    EXPECT_EQ(rest, &items[1].link);
    EXPECT_EQ(rest->Next, &items[0].link);
    EXPECT_EQ(items[0].link.Next, nullptr);
    EXPECT_EQ(QueryDepthSList(&list), 0);
    EXPECT_EQ(InterlockedFlushSList(&list), nullptr);
}

TEST(SList, LosesNothingBetweenThreads) {
    alignas(16) SLIST_HEADER list;
    InitializeSListHead(&list);
    const int each = few(5'000, 500);
    std::atomic<long> popped{0}, sum{0};
    thread_group threads;
    for (int pusher = 0; pusher < 2; ++pusher) {
        threads.start([&] {
            for (int i = 1; i <= each; ++i) {
                auto* const made = new item;
                made->value = i;
                (void)InterlockedPushEntrySList(&list, &made->link);
            }
        });
        threads.start([&] {
            while (popped.load() < 2 * each) {
                const PSLIST_ENTRY entry = InterlockedPopEntrySList(&list);
                if (entry == nullptr) {
                    std::this_thread::yield();
                    continue;
                }
                auto* const one = reinterpret_cast<item*>(entry);
                sum.fetch_add(one->value);
                popped.fetch_add(1);
                delete one;  // at once
            }
        });
    }
    threads.join();
    EXPECT_EQ(sum.load(), long{each} * (each + 1));
    EXPECT_EQ(QueryDepthSList(&list), 0);
}

}  // namespace
