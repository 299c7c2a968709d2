// SPDX-License-Identifier: Apache-2.0
// Handles of tocsin/win32.h: what a handle that is not valid can't do, names, rights, and storms.
#include "support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace win32_test;

template <class Call>
void expect_error(DWORD error, Call call) {
    SetLastError(12345);
    call();
    EXPECT_EQ(GetLastError(), error);
}

void expect_every_call_refuses(HANDLE handle) {
    const auto refuses = [](auto call) { expect_error(ERROR_INVALID_HANDLE, [&] { EXPECT_FALSE(call()); }); };
    refuses([&] { return SetEvent(handle); });
    refuses([&] { return ResetEvent(handle); });
    refuses([&] { return PulseEvent(handle); });
    refuses([&] { return ReleaseSemaphore(handle, 1, nullptr); });
    refuses([&] { return ReleaseMutex(handle); });
    refuses([&] { return CancelWaitableTimer(handle); });
    refuses([&] { return UnregisterWait(handle); });
    HANDLE copy = nullptr;
    const HANDLE self = GetCurrentProcess();
    if (handle == self || handle == GetCurrentThread()) return;
    refuses([&] { return CloseHandle(handle); });
    refuses([&] { return DuplicateHandle(self, handle, self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS); });
    const event good(true, true);
    const auto fails = [](auto call) {
        expect_error(ERROR_INVALID_HANDLE, [&] { EXPECT_EQ(call(), WAIT_FAILED); });
    };
    fails([&] { return WaitForSingleObject(handle, 0); });
    fails([&] { return WaitForMultipleObjects(2, std::array{good.get(), handle}.data(), FALSE, 0); });
    fails([&] { return SignalObjectAndWait(good.get(), handle, 0, FALSE); });
    fails([&] { return SignalObjectAndWait(handle, good.get(), 0, FALSE); });
}

TEST(win32_handles, NothingButAHandleIsAHandle) {
    int on_the_stack = 0;
    expect_every_call_refuses(nullptr);
    expect_every_call_refuses(INVALID_HANDLE_VALUE);
    expect_every_call_refuses(GetCurrentThread());
    expect_every_call_refuses(&on_the_stack);
    for (std::uintptr_t number = 4; number < 4'000'000'000u; number = number * 3 + 4)
        expect_every_call_refuses(reinterpret_cast<HANDLE>(number));
    const HANDLE closed = CreateEvent(nullptr, TRUE, TRUE, nullptr);
    EXPECT_TRUE(CloseHandle(closed));
    expect_every_call_refuses(closed);
}

TEST(win32_handles, AStaleHandleNeverNamesALaterObject) {
    std::vector<HANDLE> stale;
    for (int i = 0; i < 5000; ++i) {
        const HANDLE one = CreateEvent(nullptr, TRUE, FALSE, nullptr);
        ASSERT_TRUE(std::find(stale.begin(), stale.end(), one) == stale.end() || i > 4000) << "reused soon";
        CloseHandle(one);
        stale.push_back(one);
    }
    const event now(true, false);
    for (const HANDLE each : stale) EXPECT_FALSE(SetEvent(each));
    EXPECT_EQ(WaitForSingleObject(now.get(), 0), WAIT_TIMEOUT);
}

TEST(win32_handles, TheTwoLowestBitsAreIgnored) {
    const event one(false, true);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.get()) % 4, 0u);
    const HANDLE tagged = reinterpret_cast<HANDLE>(reinterpret_cast<std::uintptr_t>(one.get()) | 3);
    EXPECT_EQ(WaitForSingleObject(tagged, 0), WAIT_OBJECT_0);
}

TEST(win32_handles, AnObjectOfAnotherKindIsAnInvalidHandle) {
    const HANDLE mutex = CreateMutex(nullptr, FALSE, nullptr);
    expect_error(ERROR_INVALID_HANDLE, [&] { EXPECT_FALSE(SetEvent(mutex)); });
    expect_error(ERROR_INVALID_HANDLE, [&] { EXPECT_FALSE(ReleaseSemaphore(mutex, 1, nullptr)); });
    const event one(true, true);
    expect_error(ERROR_INVALID_HANDLE, [&] { EXPECT_FALSE(ReleaseMutex(one.get())); });
    DWORD code = 0;
    expect_error(ERROR_INVALID_HANDLE, [&] { EXPECT_FALSE(GetExitCodeThread(one.get(), &code)); });
    CloseHandle(mutex);
}

TEST(win32_handles, TheWaitOutlivesTheHandle) {
    const HANDLE one = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    HANDLE copy = nullptr;
    ASSERT_TRUE(DuplicateHandle(GetCurrentProcess(), one, GetCurrentProcess(), &copy, 0, FALSE,
                                DUPLICATE_SAME_ACCESS));
    thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(WaitForSingleObject(one, INFINITE), WAIT_OBJECT_0); });
    threads.until_asleep(0);
    EXPECT_TRUE(CloseHandle(one));
    EXPECT_FALSE(SetEvent(one));
    EXPECT_TRUE(SetEvent(copy));
    threads.join();
    CloseHandle(copy);
}

TEST(win32_handles, RightsAreChecked) {
    const HANDLE wait_only = CreateEventEx(nullptr, nullptr, 0, SYNCHRONIZE);
    expect_error(ERROR_ACCESS_DENIED, [&] { EXPECT_FALSE(SetEvent(wait_only)); });
    EXPECT_EQ(WaitForSingleObject(wait_only, 0), WAIT_TIMEOUT);
    const HANDLE set_only = CreateEventEx(nullptr, nullptr, 0, EVENT_MODIFY_STATE);
    EXPECT_TRUE(SetEvent(set_only));
    expect_error(ERROR_ACCESS_DENIED, [&] { EXPECT_EQ(WaitForSingleObject(set_only, 0), WAIT_FAILED); });
    CloseHandle(wait_only);
    CloseHandle(set_only);
}

TEST(win32_handles, ANameIsFreeAgainAfterTheLastHandle) {
    const HANDLE first = CreateEventA(nullptr, TRUE, TRUE, "tocsin name");
    EXPECT_EQ(GetLastError(), 0u);
    const HANDLE second = CreateEventW(nullptr, FALSE, FALSE, L"Local\\tocsin name");
    EXPECT_EQ(GetLastError(), ERROR_ALREADY_EXISTS);
    EXPECT_EQ(WaitForSingleObject(second, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(second, 0), WAIT_OBJECT_0) << "still manual-reset";
    EXPECT_EQ(CreateMutexA(nullptr, FALSE, "tocsin name"), nullptr);
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    CloseHandle(first);
    const HANDLE third = OpenEventW(SYNCHRONIZE, FALSE, u"tocsin name");
    EXPECT_NE(third, nullptr);
    CloseHandle(second);
    CloseHandle(third);
    expect_error(ERROR_FILE_NOT_FOUND,
                 [] { EXPECT_EQ(OpenEventA(SYNCHRONIZE, FALSE, "tocsin name"), nullptr); });
}

TEST(win32_handles, ADuplicateMadeWhileTheLastHandleIsClosedTakesNobodysName) {
    thread_group threads;
    std::atomic<HANDLE> shared{nullptr};
    threads.start("copies", [&] {
        for (int i = 0; i < rounds(2000); ++i) {
            HANDLE copy = nullptr;
            const HANDLE self = GetCurrentProcess();
            if (DuplicateHandle(self, shared.load(), self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS))
                CloseHandle(copy);
        }
    });
    for (int i = 0; i < rounds(2000); ++i) {
        shared = CreateEventA(nullptr, TRUE, FALSE, "raced name");
        ASSERT_NE(shared.load(), nullptr);
        EXPECT_TRUE(CloseHandle(shared));
    }
    threads.join();
    expect_error(ERROR_FILE_NOT_FOUND,
                 [] { EXPECT_EQ(OpenEventA(SYNCHRONIZE, FALSE, "raced name"), nullptr); });
}

// Each thread creates, shares, waits and closes; the threads close each other's handles, too.
TEST(win32_handles, AStormOfAThousandThreads) {
    const support::small_stacks small;
    constexpr int count = support::thread_sanitizer ? 200 : 1000;
    std::vector<std::atomic<HANDLE>> shared(64);
    std::atomic<int> closed{0};
    std::atomic<int> created{0};
    thread_group threads;
    threads.start_many(count, "storm", [&](int number) {
        const auto close = [&](HANDLE handle) {
            if (handle != nullptr && CloseHandle(handle)) ++closed;
        };
        for (int i = 0; i < 20; ++i) {
            const HANDLE mine = i % 2 == 0 ? CreateEvent(nullptr, FALSE, TRUE, nullptr)
                                           : CreateSemaphore(nullptr, 1, 2, nullptr);
            ASSERT_NE(mine, nullptr);
            ++created;
            auto& place = shared[static_cast<std::size_t>(number + i) % shared.size()];
            EXPECT_EQ(WaitForSingleObject(mine, 0), WAIT_OBJECT_0);
            const HANDLE other = place.exchange(mine);
            const std::array both{other, mine};
            (void)SetEvent(other);
            (void)WaitForMultipleObjects(2, both.data(), i % 3 == 0, 0);
            close(other);
            const HANDLE seen = place.load();
            (void)SetEvent(seen);
            (void)WaitForSingleObject(seen, 0);
            if (i % 5 == 0) close(place.exchange(nullptr));
        }
    });
    threads.join();
    for (auto& each : shared) {
        if (each != nullptr && CloseHandle(each)) ++closed;
    }
    EXPECT_EQ(closed, created);
}

TEST(win32_handles, ManyHandlesAtOnce) {
    std::vector<HANDLE> all;
    for (int i = 0; i < 20'000; ++i) all.push_back(CreateEvent(nullptr, TRUE, i == 19'999, nullptr));
    std::size_t index = 0;
    EXPECT_EQ(TocsinWaitForManyObjects(all.size(), all.data(), FALSE, 0, FALSE, &index), WAIT_OBJECT_0);
    EXPECT_EQ(index, 19'999u);
    for (const HANDLE each : all) EXPECT_TRUE(SetEvent(each));
    EXPECT_EQ(TocsinWaitForManyObjects(all.size(), all.data(), TRUE, 0, FALSE, nullptr), WAIT_OBJECT_0);
    all.push_back(all[all.size() / 2]);  // a wait for all refuses a handle that occurs twice
    EXPECT_EQ(TocsinWaitForManyObjects(all.size(), all.data(), TRUE, 0, FALSE, nullptr), WAIT_FAILED);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    all.pop_back();
    std::ranges::sort(all);
    EXPECT_TRUE(std::ranges::adjacent_find(all) == all.end());
    for (const HANDLE each : all) EXPECT_TRUE(CloseHandle(each));
}

}  // namespace
