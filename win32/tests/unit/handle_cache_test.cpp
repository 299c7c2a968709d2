// SPDX-License-Identifier: Apache-2.0
// Handles in the caches of threads (win32/src/handle_cache.hpp): they stay valid as long as they are open, and no
// longer, whichever thread closes them.
#include "support.hpp"

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace win32_test;

bool is_ready(HANDLE handle) { return WaitForSingleObject(handle, 0) == WAIT_OBJECT_0; }

TEST(win32_handle_cache, AHandleThatAnotherThreadClosesIsInvalidAtOnce) {
    std::set<HANDLE> given;
    for (int round = 0; round != 200; ++round) {
        const HANDLE closed = CreateEventW(nullptr, TRUE, TRUE, nullptr);
        const event other(true, true);
        EXPECT_TRUE(given.insert(closed).second) << "no number comes again";
        const std::array both{closed, other.get()};
        EXPECT_TRUE(is_ready(closed) && SetEvent(closed));
        EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 0), WAIT_OBJECT_0);
        std::thread([&] { EXPECT_TRUE(CloseHandle(closed)); }).join();
        EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 0), WAIT_FAILED);
        EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
        EXPECT_FALSE(SetEvent(closed));
        EXPECT_FALSE(is_ready(closed));
        EXPECT_FALSE(CloseHandle(closed));
    }
}

TEST(win32_handle_cache, AnyOfManyTakesTheFirstThatIsReady) {
    std::vector<HANDLE> handles;
    for (int i = 0; i != 8; ++i) handles.push_back(CreateEventW(nullptr, FALSE, FALSE, nullptr));
    handles.push_back(CreateSemaphoreW(nullptr, 0, 1, nullptr));
    const auto any = [&] {
        return WaitForMultipleObjects(static_cast<DWORD>(handles.size()), handles.data(), FALSE, 0);
    };
    for (int round = 0; round != 3; ++round) {  // the later ones by way of the cache
        EXPECT_EQ(any(), DWORD{WAIT_TIMEOUT});
        EXPECT_TRUE(ReleaseSemaphore(handles[8], 1, nullptr) && SetEvent(handles[5]) && SetEvent(handles[2]));
        EXPECT_FALSE(ReleaseSemaphore(handles[8], 1, nullptr));
        EXPECT_EQ(GetLastError(), DWORD{ERROR_TOO_MANY_POSTS});
        EXPECT_EQ(any(), WAIT_OBJECT_0 + 2);
        EXPECT_EQ(any(), WAIT_OBJECT_0 + 5);
        EXPECT_EQ(any(), WAIT_OBJECT_0 + 8);
        EXPECT_EQ(any(), DWORD{WAIT_TIMEOUT});
    }
    handles.push_back(handles[0]);  // a handle may occur twice
    EXPECT_TRUE(SetEvent(handles[0]));
    EXPECT_EQ(any(), DWORD{WAIT_OBJECT_0});
    handles.pop_back();
    for (const HANDLE each : handles) EXPECT_TRUE(CloseHandle(each));
}

TEST(win32_handle_cache, RightsHoldForHandlesInTheCache) {
    const HANDLE only_set = CreateEventExW(nullptr, nullptr, CREATE_EVENT_MANUAL_RESET, EVENT_MODIFY_STATE);
    const HANDLE only_wait = CreateEventExW(nullptr, nullptr, CREATE_EVENT_INITIAL_SET, SYNCHRONIZE);
    for (int round = 0; round != 3; ++round) {
        EXPECT_TRUE(SetEvent(only_set));
        EXPECT_EQ(WaitForSingleObject(only_set, 0), WAIT_FAILED);
        EXPECT_EQ(GetLastError(), DWORD{ERROR_ACCESS_DENIED});
        EXPECT_EQ(WaitForMultipleObjects(1, &only_set, FALSE, 0), WAIT_FAILED);
        EXPECT_EQ(GetLastError(), DWORD{ERROR_ACCESS_DENIED});
        EXPECT_FALSE(SetEvent(only_wait));
        EXPECT_EQ(GetLastError(), DWORD{ERROR_ACCESS_DENIED});
        EXPECT_FALSE(ReleaseSemaphore(only_wait, 1, nullptr));
        EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
        EXPECT_EQ(WaitForSingleObject(only_wait, 0), round == 0 ? DWORD{WAIT_OBJECT_0} : DWORD{WAIT_TIMEOUT});
    }
    EXPECT_TRUE(CloseHandle(only_set) && CloseHandle(only_wait));
}

// More handles than a cache has places, in threads that end, while another thread closes them.
TEST(win32_handle_cache, ThreadsUseWhatAnotherThreadCloses) {
    constexpr int handles = 100;
    std::atomic<HANDLE> shown[handles]{};
    std::atomic<bool> over{false};
    std::vector<std::thread> users;
    for (unsigned which = 0; which != 3; ++which) {
        users.emplace_back([&, which] {
            unsigned at = which * 7;
            while (!over.load()) {
                const HANDLE one = shown[at % handles].load();
                const HANDLE two = shown[(at + 1) % handles].load();
                at = at * 5 + 1;
                (void)SetEvent(one);
                (void)WaitForSingleObject(one, 0);
                (void)WaitForMultipleObjects(2, std::array{one, two}.data(), FALSE, 0);
            }
        });
    }
    for (int round = 0; round != 50; ++round) {
        for (auto& one : shown) {
            const HANDLE before = one.exchange(CreateEventW(nullptr, round % 2, FALSE, nullptr));
            EXPECT_TRUE(before == nullptr || CloseHandle(before));
        }
    }
    over.store(true);
    for (auto& each : users) each.join();
    for (auto& one : shown) EXPECT_TRUE(CloseHandle(one.load()));
}

}  // namespace
