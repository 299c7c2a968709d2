// SPDX-License-Identifier: Apache-2.0
// A system thread that calls a function when a kernel object is signaled.
#include "facts.hpp"
#include "platform/system/object_watch_windows.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace {

using support::rounds;
using support::thread_group;
using tocsin::platform::object_watch;

struct kernel_event {
    explicit kernel_event(bool is_set) : handle(CreateEventW(nullptr, FALSE, is_set, nullptr)) {}
    ~kernel_event() { CloseHandle(handle); }
    kernel_event(const kernel_event&) = delete;
    kernel_event& operator=(const kernel_event&) = delete;

    HANDLE const handle;
};

TEST(ObjectWatch, CallsOnceForEachSignal) {
    kernel_event event(false);
    std::atomic<int> calls{0};
    object_watch watch;
    ASSERT_TRUE(watch.start(
        event.handle, WT_EXECUTEDEFAULT,
        [](void* count) noexcept { static_cast<std::atomic<int>*>(count)->fetch_add(1); }, &calls));
    for (int i = 1; i <= 3; ++i) {
        SetEvent(event.handle);
        support::until("waiting for the call", [&] { return calls.load() == i; });
    }
}

TEST(ObjectWatch, CallsOnlyForItsOwnObject) {
    kernel_event first(false);
    kernel_event second(false);
    std::atomic<int> calls[2] = {0, 0};
    const auto count = [](void* it) noexcept { static_cast<std::atomic<int>*>(it)->fetch_add(1); };
    object_watch watches[2];
    ASSERT_TRUE(watches[0].start(first.handle, WT_EXECUTEDEFAULT, count, &calls[0]));
    ASSERT_TRUE(watches[1].start(second.handle, WT_EXECUTEDEFAULT, count, &calls[1]));
    SetEvent(second.handle);
    support::until("waiting for the call", [&] { return calls[1].load() == 1; });
    EXPECT_EQ(calls[0].load(), 0);
}

TEST(ObjectWatch, EndsIfItNeverStarted) { const object_watch watch; }

// The thread in which the system waits sees the object signaled. Then the watch ends, and only then does that thread
// make the call. Wine 8.0 does that. By then the wait that had the watch on its stack has returned.
TEST(ObjectWatch, DoesNotCallAfterItHasEnded) {
    struct owner {
        std::atomic<bool> ended{false};
        std::atomic<int> late{0};
    };
    owner all[8];
    thread_group threads;
    threads.start_many(8, "watcher", [&](int number) {
        owner& self = all[number];
        for (int i = 0; i != rounds(2'000, 300); ++i) {
            kernel_event event(false);
            self.ended.store(false);
            {
                object_watch watch;
                ASSERT_TRUE(watch.start(
                    event.handle, WT_EXECUTEDEFAULT,
                    [](void* it) noexcept {
                        owner& its_owner = *static_cast<owner*>(it);
                        if (its_owner.ended.load()) its_owner.late.fetch_add(1);
                    },
                    &self));
                SetEvent(event.handle);
                for (int looks = i % 50; looks != 0; --looks) SwitchToThread();
            }
            self.ended.store(true);
        }
    });
    threads.join();
    for (const owner& each : all) EXPECT_EQ(each.late.load(), 0);
}

}  // namespace
