// SPDX-License-Identifier: Apache-2.0
// TlsAlloc, FlsAlloc and their relatives.
#include "system.hpp"

#include <atomic>

namespace {

using namespace win32;

void* number(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

TEST(Tls, IsNullAtFirstAndBelongsToEachThread) {
    const DWORD index = TlsAlloc();
    ASSERT_NE(index, DWORD{TLS_OUT_OF_INDEXES});
    SetLastError(untouched);
    EXPECT_EQ(TlsGetValue(index), nullptr);
    EXPECT_EQ(GetLastError(), 0u) << "null is a value";
    EXPECT_TRUE(works(TlsSetValue, index, number(5)));
    elsewhere([&] {
        EXPECT_EQ(TlsGetValue(index), nullptr);
        EXPECT_TRUE(works(TlsSetValue, index, number(6)));
        EXPECT_EQ(TlsGetValue(index), number(6));
    });
    EXPECT_EQ(TlsGetValue(index), number(5));
    EXPECT_TRUE(works(TlsFree, index));
}

TEST(Tls, IsNullEverywhereOnceItIsAllocatedAgain) {
    const DWORD index = TlsAlloc();
    EXPECT_TRUE(works(TlsSetValue, index, number(5)));
    EXPECT_TRUE(works(TlsFree, index));
    std::vector<DWORD> others;
    DWORD again = 0;
    do {
        again = TlsAlloc();
        ASSERT_NE(again, DWORD{TLS_OUT_OF_INDEXES});
        others.push_back(again);
    } while (again != index);
    EXPECT_EQ(TlsGetValue(index), nullptr);
    for (const DWORD each : others) EXPECT_TRUE(works(TlsFree, each));
}

TEST(Tls, RefusesIndexesThatDoNotExist) {
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, TlsFree, 5000u));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, TlsSetValue, 5000u, nullptr));
    SetLastError(untouched);
    EXPECT_EQ(TlsGetValue(5000), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
}

TEST(Tls, HasManyIndexes) {
    std::vector<DWORD> all;
    for (DWORD one = TlsAlloc(); one != TLS_OUT_OF_INDEXES; one = TlsAlloc()) all.push_back(one);
    EXPECT_GE(all.size(), 1000u);
    EXPECT_LE(all.size(), 1088u);
    for (const DWORD each : all) {
        EXPECT_TRUE(works(TlsSetValue, each, number(each + 1)));
        EXPECT_EQ(TlsGetValue(each), number(each + 1));
    }
    for (const DWORD each : all) EXPECT_TRUE(works(TlsFree, each));
}

std::atomic<int> ended{0};
std::atomic<std::uintptr_t> last{0};
void WINAPI end(void* value) {
    ended.fetch_add(1);
    last.store(reinterpret_cast<std::uintptr_t>(value));
}

TEST(Fls, CallsBackAtTheEndOfAThreadForWhatIsNotNull) {
    ended.store(0);
    const DWORD index = FlsAlloc(end);
    ASSERT_NE(index, DWORD{FLS_OUT_OF_INDEXES});
    elsewhere([&] { EXPECT_EQ(FlsGetValue(index), nullptr); });
    EXPECT_EQ(ended.load(), 0);
    elsewhere([&] { EXPECT_TRUE(works(FlsSetValue, index, number(9))); });
    EXPECT_EQ(ended.load(), 1);
    EXPECT_EQ(last.load(), 9u);
    elsewhere([&] {
        EXPECT_TRUE(works(FlsSetValue, index, number(9)));
        EXPECT_TRUE(works(FlsSetValue, index, nullptr));
    });
    EXPECT_EQ(ended.load(), 1);
    EXPECT_TRUE(works(FlsFree, index));
}

TEST(Fls, HasCalledBackWhenTheThreadsHandleIsSignaled) {
    ended.store(0);
    static DWORD index;
    index = FlsAlloc(end);
    for (int i = 1; i <= few(30, 5); ++i) {
        const handle thread(CreateThread(
            nullptr, 0, [](void*) -> DWORD { return FlsSetValue(index, number(3)) ? 0 : 1; }, nullptr, 0,
            nullptr));
        EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
        EXPECT_EQ(ended.load(), i);
    }
    EXPECT_TRUE(works(FlsFree, index));
}

TEST(Fls, CallsBackForTheValuesOfAllThreadsWhenItIsFreed) {
    ended.store(0);
    const DWORD index = FlsAlloc(end);
    const handle go = manual();
    std::atomic<int> ready{0};
    thread_group threads;
    threads.start_many(3, "owner", [&](int) {
        EXPECT_TRUE(works(FlsSetValue, index, number(4)));
        ready.fetch_add(1);
        EXPECT_EQ(wait(go), WAIT_OBJECT_0);
    });
    until("all have a value", [&] { return ready.load() == 3; });
    EXPECT_TRUE(works(FlsSetValue, index, number(4)));
    EXPECT_TRUE(works(FlsFree, index));
    EXPECT_EQ(ended.load(), 4);
    EXPECT_TRUE(works(SetEvent, go));
    threads.join();
    EXPECT_EQ(ended.load(), 4);
}

TEST(Fls, RefusesIndexesThatDoNotExist) {
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, FlsFree, 9000u));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, FlsSetValue, 9000u, nullptr));
    const DWORD index = FlsAlloc(nullptr);
    EXPECT_TRUE(works(FlsFree, index));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, FlsFree, index));
}

}  // namespace
