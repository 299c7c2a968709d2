// SPDX-License-Identifier: Apache-2.0
// Sockets and kernel handles of Windows as sources of waits and sets, and an event as a handle for a foreign loop.
#include "facts.hpp"
#include "task.hpp"
#include "threads.hpp"
#include "windows_sources.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::kernel_event;
using support::socket_pair;
using support::thread_group;
using support::until_parked;
using tocsin::any_result;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::readable;
using tocsin::readiness;
using tocsin::signaled;
using tocsin::source;
using tocsin::wait_any;
using tocsin::wait_status;
using tocsin::writable;

const auto* const started = testing::AddGlobalTestEnvironment(new support::winsock);

// Runs `act` once a thread sleeps in `wait`, and returns the result of the wait.
template <class Wait, class Act>
any_result woken_by(const void* event, Wait wait, Act act) {
    any_result result{wait_status::stopped};
    thread_group threads;
    threads.start("waiter", [&] { result = wait(); });
    until_parked(event, 1);
    support::until_sound_asleep(threads.id(0));
    act();
    threads.join();
    return result;
}

TEST(WindowsSources, WhatIsReadyIsFoundAtOnce) {
    const socket_pair pair;
    const kernel_event kernel;
    auto_reset_event event;
    EXPECT_EQ(wait_any(event, writable(pair[0])),
              (any_result{wait_status::signaled, 1, readiness::writable}));
    pair.fill();
    EXPECT_EQ(wait_any(event, readable(pair[1])),
              (any_result{wait_status::signaled, 1, readiness::readable}));
    kernel.set();
    EXPECT_EQ(wait_any(signaled(kernel.get()), event),
              (any_result{wait_status::signaled, 0, readiness::signaled}));
    event.set();
    EXPECT_EQ(wait_any(event, readable(pair[1])).index, 0u);
}

TEST(WindowsSources, ASleeperIsWokenByWhicheverIsReady) {
    const socket_pair pair;
    const kernel_event kernel;
    auto_reset_event event;
    const auto wait = [&] { return wait_any(event, readable(pair[1]), signaled(kernel.get())); };
    EXPECT_EQ(woken_by(&event, wait, [&] { event.set(); }).index, 0u);
    EXPECT_EQ(woken_by(&event, wait, [&] { pair.fill(); }),
              (any_result{wait_status::signaled, 1, readiness::readable}));
    pair.empty();
    EXPECT_EQ(woken_by(&event, wait, [&] { kernel.set(); }),
              (any_result{wait_status::signaled, 2, readiness::signaled}));
}

TEST(WindowsSources, ReadinessStaysUntilSomebodyReads) {
    const socket_pair pair;
    auto_reset_event event;
    pair.fill();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(wait_any(event, readable(pair[1])).index, 1u);
    pair.empty();
    EXPECT_EQ(tocsin::wait_any({.until = 5ms}, event, readable(pair[1])).status, wait_status::timed_out);
}

TEST(WindowsSources, AClosedPeerIsReadable) {
    socket_pair pair;
    auto_reset_event event;
    const auto found =
        woken_by(&event, [&] { return wait_any(event, readable(pair[1])); }, [&] { pair.close(0); });
    EXPECT_EQ(found.index, 1u);
    EXPECT_TRUE(has(found.found, readiness::readable));
}

// Keeps a full connection full. Without this, the system would find more space for the connection after a while.
void fix_buffer_sizes(const socket_pair& pair) {
    const int size = 50'000;
    const auto* const plain = reinterpret_cast<const char*>(&size);
    EXPECT_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, plain, sizeof size), 0);
    EXPECT_EQ(setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, plain, sizeof size), 0);
}

// The system announces space only to a sender that it has told before that there was none.
TEST(WindowsSources, SpaceIsFoundAfterASendThatWasAcceptedWhole) {
    const socket_pair pair;
    auto_reset_event event;
    fix_buffer_sizes(pair);
    const std::vector<char> bytes(1'000);
    const auto size = static_cast<int>(bytes.size());
    std::size_t sent = 0;
    u_long on = 1;
    ASSERT_EQ(ioctlsocket(pair[1], FIONBIO, &on), 0);
    while (tocsin::wait_any({.until = 300ms}, event, writable(pair[0])).status == wait_status::signaled) {
        ASSERT_EQ(send(pair[0], bytes.data(), size, 0), size);
        sent += bytes.size();
    }
    const auto found = woken_by(
        &event, [&] { return wait_any(event, writable(pair[0])); },
        [&] {
            std::vector<char> received(sent);
            while (sent != 0) {
                const int read = recv(pair[1], received.data(), static_cast<int>(sent), 0);
                if (read > 0) sent -= static_cast<std::size_t>(read);
            }
        });
    EXPECT_EQ(found, (any_result{wait_status::signaled, 1, readiness::writable}));
}

TEST(WindowsSources, ATimerAndAThreadThatHasEnded) {
    auto_reset_event event;
    const HANDLE timer = CreateWaitableTimerW(nullptr, TRUE, nullptr);
    LARGE_INTEGER due;
    due.QuadPart = -20'000;  // 2 ms from now
    ASSERT_TRUE(SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE));
    EXPECT_EQ(wait_any(event, signaled(timer)).index, 1u);
    CloseHandle(timer);
    const auto nothing = [](void*) -> DWORD { return 0; };
    using routine = DWORD(WINAPI*)(void*);
    const HANDLE thread = CreateThread(nullptr, 0, static_cast<routine>(nothing), nullptr, 0, nullptr);
    EXPECT_EQ(wait_any(event, signaled(thread)).index, 1u);
    CloseHandle(thread);
}

TEST(WindowsSources, MoreThanSixtyFourHandlesAndSockets) {
    auto_reset_event event;
    const std::vector<kernel_event> handles(150);
    const std::vector<socket_pair> pairs(70);
    std::vector<source> sources{event};
    for (const auto& each : handles) sources.push_back(signaled(each.get()));
    for (const auto& each : pairs) sources.push_back(readable(each[1]));
    const auto wait = [&] { return wait_any(std::span<const source>(sources)); };
    EXPECT_EQ(woken_by(&event, wait, [&] { event.set(); }).index, 0u);
    EXPECT_EQ(woken_by(&event, wait, [&] { pairs[69].fill(); }).index, 220u);
    pairs[69].empty();
    EXPECT_EQ(woken_by(&event, wait, [&] { handles[149].set(); }).index, 150u);
    ResetEvent(handles[149].get());
    EXPECT_EQ(woken_by(&event, wait, [&] { handles[0].set(); }).index, 1u);
}

// The system's thread that waits for the handles beyond 64 waits for each once. Then the poll must ask it again.
TEST(WindowsSources, AHandleBeyondSixtyFourThatWasSignaledForNobodyStillWakes) {
    auto_reset_event event;
    const std::vector<kernel_event> handles(70);
    std::vector<source> sources{event};
    for (const auto& each : handles) sources.push_back(signaled(each.get()));
    any_result result{wait_status::stopped};
    thread_group threads;
    threads.start("waiter", [&] { result = wait_any(std::span<const source>(sources)); });
    until_parked(&event, 1);
    for (int i = 0; i != 3; ++i) {
        support::until_sound_asleep(threads.id(0));
        PulseEvent(handles[69].get());
    }
    support::until_sound_asleep(threads.id(0));
    handles[69].set();
    threads.join();
    EXPECT_EQ(result, (any_result{wait_status::signaled, 70, readiness::signaled}));
}

TEST(WindowsSources, ABadOneIsRefused) {
    auto_reset_event event;
    for (const source& bad : {readable(INVALID_SOCKET), signaled(INVALID_HANDLE_VALUE), readable(0x12'3454),
                              signaled(reinterpret_cast<HANDLE>(std::uintptr_t{0x12'3454}))}) {
        try {
            (void)wait_any(event, bad);
            ADD_FAILURE() << "not refused";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::bad_file_descriptor);
        }
    }
}

TEST(WindowsSources, OnlyOneThreadSleepsOnASocket) {
    const socket_pair pair;
    auto_reset_event event;
    auto_reset_event other;
    EXPECT_EQ(woken_by(
                  &event, [&] { return wait_any(event, readable(pair[1])); },
                  [&] {
                      try {
                          (void)wait_any(other, readable(pair[1]));
                          ADD_FAILURE() << "not refused";
                      } catch (const std::system_error& error) {
                          EXPECT_EQ(error.code(), std::errc::device_or_resource_busy);
                      }
                      pair.fill();
                  })
                  .index,
              1u);
}

TEST(WindowsSources, TimeoutsAreNotEarlyOnEitherClock) {
    const socket_pair pair;
    auto_reset_event event;
    const auto steady = std::chrono::steady_clock::now() + 30ms;
    EXPECT_EQ(tocsin::wait_any({.until = steady}, event, readable(pair[1])).status, wait_status::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now(), steady);
    const auto system = std::chrono::system_clock::now() + 30ms;
    EXPECT_EQ(tocsin::wait_any({.until = system}, event, readable(pair[1])).status, wait_status::timed_out);
    EXPECT_GE(std::chrono::system_clock::now(), system);
}

TEST(WindowsSources, NoSetAndNoByteIsLost) {
    const socket_pair pair;
    auto_reset_event event;
    auto_reset_event go_on;
    const int count = support::rounds(1'000, 200);
    thread_group threads;
    threads.start("setter", [&] {
        for (int i = 0; i < count; ++i) {
            if (i % 3 != 0) event.set();
            if (i % 3 != 1) pair.fill();
            go_on.wait();
        }
    });
    for (int i = 0; i < count; ++i) {
        for (int left = i % 3 == 2 ? 2 : 1; left != 0; --left) {
            if (wait_any(event, readable(pair[1])).index == 1) pair.empty();
        }
        go_on.set();
    }
    threads.join();
    EXPECT_FALSE(event.is_set());
}

TEST(WindowsSet, ReportsEventsSocketsAndHandles) {
    const socket_pair pair;
    const kernel_event kernel;
    auto_reset_event event;
    tocsin::wait_set set;
    set.add(event, 1);
    set.add(readable(pair[1]), 2);
    set.add(signaled(kernel.get()), 3);
    EXPECT_THROW(set.add(readable(pair[1]), 4), std::system_error);
    tocsin::ready_item found[4];
    EXPECT_EQ(set.wait({.until = 5ms}, found).status, wait_status::timed_out);
    thread_group threads;
    threads.start("waker", [&] { pair.fill(); });
    ASSERT_EQ(set.wait(found).count, 1u);
    EXPECT_EQ(found[0].tag, 2u);
    threads.join();
    pair.empty();
    kernel.set();
    ASSERT_EQ(set.wait(found).count, 1u);
    EXPECT_EQ(found[0].tag, 3u);
    EXPECT_TRUE(set.remove(signaled(kernel.get())));
    event.set();
    ASSERT_EQ(set.wait(found).count, 1u);
    EXPECT_EQ(found[0].tag, 1u);
    EXPECT_EQ(set.wait({.until = 5ms}, found).status, wait_status::timed_out);
}

// No fact to wait for: the next step must meet any point of another thread's poll.
void pass_time(int i) {
    const auto enough = std::chrono::steady_clock::now() + i % 20 * 50us;
    while (std::chrono::steady_clock::now() < enough) SwitchToThread();
}

// With few handles, which the poll waits for in one call, and with more than one call can take.
TEST(WindowsSet, AHandleMayBeClosedAsSoonAsItIsRemoved) {
    for (const std::size_t others : {0u, 70u}) {
        const std::vector<kernel_event> idle(others);
        auto_reset_event stop;
        tocsin::wait_set set;
        set.add(stop, 0);
        for (const auto& each : idle) set.add(signaled(each.get()), 1);
        thread_group threads;
        threads.start("waiter", [&] {
            tocsin::ready_item found[4];
            try {
                const auto result = set.wait(found);
                EXPECT_TRUE(result.count == 1 && found[0].tag == 0) << "nothing else was ready";
            } catch (const std::system_error& error) {
                ADD_FAILURE() << error.what();
            }
        });
        support::until_sound_asleep(threads.id(0));
        for (int i = 0; i != support::rounds(2'000, 300); ++i) {
            {
                const kernel_event passing;
                set.add(signaled(passing.get()), 2);
                pass_time(i);
                EXPECT_TRUE(set.remove(signaled(passing.get())));
            }
            pass_time(i + 10);  // before another handle is given its number
        }
        stop.set();
        threads.join();
    }
}

TEST(WindowsSet, ASocketMayBeWaitedForElsewhereAsSoonAsItIsRemoved) {
    const socket_pair pair;
    auto_reset_event stop;
    auto_reset_event event;
    tocsin::wait_set set;
    set.add(stop, 0);
    thread_group threads;
    threads.start("waiter", [&] {
        tocsin::ready_item found[4];
        EXPECT_EQ(set.wait(found).count, 1u);
        EXPECT_EQ(found[0].tag, 0u);
    });
    for (int i = 0; i != support::rounds(1'000, 300); ++i) {
        set.add(readable(pair[1]), 1);
        pass_time(i);
        EXPECT_TRUE(set.remove(readable(pair[1])));
        try {
            EXPECT_EQ(tocsin::wait_any({.until = 1ms}, event, readable(pair[1])).status,
                      wait_status::timed_out);
        } catch (const std::system_error& error) {
            ADD_FAILURE() << error.what();
            break;
        }
    }
    stop.set();
}

TEST(WindowsAwait, ASocketMayBeWaitedForElsewhereWhenTheWaitHasEnded) {
    const socket_pair pair;
    for (int i = 0; i != 20; ++i) {
        auto_reset_event event;
        const support::task one = [](auto& on, SOCKET socket) -> support::task {
            co_await tocsin::async_wait_any(on, readable(socket));
        }(event, pair[1]);
        std::this_thread::sleep_for(2ms);  // no fact to wait for: the library's thread sleeps on it, mostly
        event.set();
        ASSERT_TRUE(one.done());
        EXPECT_EQ(tocsin::wait_any({.until = 1ms}, event, readable(pair[1])).status, wait_status::timed_out);
    }
}

TEST(WindowsAwait, ABusySocketEndsTheWaitsForItAndNoOther) {
    const socket_pair busy;
    const socket_pair free;
    auto_reset_event event;
    const auto wait = [](SOCKET socket) -> support::task { co_await tocsin::async_wait(readable(socket)); };
    const support::task other = wait(free[1]);
    EXPECT_EQ(woken_by(
                  &event, [&] { return wait_any(event, readable(busy[1])); },
                  [&] {
                      const support::task refused = wait(busy[1]);
                      refused.join();
                      try {
                          refused.rethrow();
                          ADD_FAILURE() << "not refused";
                      } catch (const std::system_error& error) {
                          EXPECT_EQ(error.code(), std::errc::device_or_resource_busy);
                          EXPECT_NE(std::string_view(error.what()).find("source 0, descriptor"),
                                    std::string_view::npos);
                      }
                      busy.fill();
                  })
                  .index,
              1u);
    EXPECT_FALSE(other.done());
    free.fill();
    other.join();
    EXPECT_NO_THROW(other.rethrow());
}

TEST(WindowsPollable, IsAHandleThatIsSetWhileTheEventMayBe) {
    auto_reset_event event;
    tocsin::pollable watched(event);
    const HANDLE handle = reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(watched.descriptor()));
    EXPECT_EQ(WaitForSingleObject(handle, 0), DWORD{WAIT_TIMEOUT});
    event.set();
    EXPECT_EQ(WaitForSingleObject(handle, 1'000), DWORD{WAIT_OBJECT_0});
    EXPECT_TRUE(watched.try_wait());
    EXPECT_FALSE(watched.try_wait());
    EXPECT_EQ(WaitForSingleObject(handle, 0), DWORD{WAIT_TIMEOUT});
}

}  // namespace
