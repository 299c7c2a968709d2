// SPDX-License-Identifier: Apache-2.0
// A call that finds no memory throws, and leaves everything as it was.
#include "facts.hpp"
#include "forms_of_new.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::handler_thread;
using tocsin::manual_reset_event;

constexpr long endless = -1;
thread_local long memory_left = endless;     // for so many allocations
thread_local long before_refusal = endless;  // after so many allocations, one is refused

// A handler frees the memory of a queue that has grown beyond 4096 jobs, so the next post has to allocate.
constexpr std::size_t capacity = 5000;

class obstacle {
public:
    void operator()() {
        begun.set();
        go.wait();
    }
    manual_reset_event begun, go;
};

void fill(handler_thread& handler, std::size_t up_to = capacity) {
    while (handler.queued() != up_to) handler.post([] {});
}

// The tests rely on it.
TEST(OutOfMemory, EveryFormOfNewIsRefused) {
    ::operator delete(::operator new(1, std::nothrow), std::size_t{1});
    ::operator delete[](::operator new[](1, std::nothrow), std::size_t{1});
    memory_left = 0;
    void* const none = ::operator new(1, std::nothrow);
    void* const no_array = ::operator new[](1, std::nothrow);
    bool threw = false;
    try {
        ::operator delete[](::operator new[](1));
    } catch (const std::bad_alloc&) {
        threw = true;
    }
    memory_left = endless;
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(no_array, nullptr);
    EXPECT_TRUE(threw);
}

// Two threads wait for space. The first that gets it finds no memory, so the second gets it, although the handler is
// busy with a job.
TEST(OutOfMemory, APostThatThrowsLeavesTheSpaceToTheNext) {
    obstacle first, second, third;
    std::atomic<bool> threw{false}, posted{false};
    tocsin::handler_options bounded;
    bounded.capacity = capacity;
    handler_thread handler(bounded);
    handler.post(std::ref(first));
    first.begun.wait();
    fill(handler, capacity - 1);
    handler.post(std::ref(second));
    first.go.set();
    second.begun.wait();  // the last of its batch
    support::until_parked(&second.go, 1);
    handler.post(std::ref(third));
    fill(handler);
    const std::size_t waiting = tocsin::parked_waits().size();
    thread_group threads;
    threads.start("has no memory", [&] {
        memory_left = 0;
        try {
            handler.post([] {});
        } catch (const std::bad_alloc&) {
            threw.store(true);
        }
        memory_left = endless;
    });
    support::until("the first to wait", [&] { return tocsin::parked_waits().size() == waiting + 1; });
    threads.start("has memory", [&] {
        handler.post([] {});
        posted.store(true);
    });
    support::until("the second to wait", [&] { return tocsin::parked_waits().size() == waiting + 2; });
    second.go.set();
    third.begun.wait();
    support::until("the second to post", [&] { return posted.load(); });
    third.go.set();
    threads.join();
    EXPECT_TRUE(threw.load());
}

// Calls `attempt` with memory for no allocation, for one, for two and so on, until it does not throw. After each throw
// calls `is_as_before`.
template <class Attempt, class Look>
void with_ever_more_memory(Attempt attempt, Look is_as_before) {
    for (long enough = 0;; ++enough) {
        memory_left = enough;
        try {
            attempt();
            memory_left = endless;
            EXPECT_GT(enough, 0) << "it allocates nothing";
            return;
        } catch (const std::bad_alloc&) {
            memory_left = endless;
        }
        is_as_before();
    }
}

TEST(OutOfMemory, AnAddThatThrowsLeavesTheSetAsItWas) {
    auto_reset_event member(true), other;
    tocsin::wait_set set;
    tocsin::ready_item items[2];
    set.add(member, 1);
    with_ever_more_memory([&] { set.add(other, 2); },
                          [&] {
                              EXPECT_FALSE(set.remove(other));
                              EXPECT_THROW(set.change(other, 3), std::system_error);
                              other.set();
                              EXPECT_EQ(set.wait(items).count, 1u);
                              EXPECT_EQ(items[0].tag, 1u);
                              EXPECT_TRUE(other.try_wait());
                              member.set();
                          });
    EXPECT_TRUE(set.remove(other));
}

TEST(OutOfMemory, AWaitForManyThatThrowsTakesNothing) {
    std::array<auto_reset_event, 40> events;
    const std::vector<tocsin::source> sources(events.begin(), events.end());
    const auto nothing_waits = [&] {
        for (const auto& each : events) EXPECT_EQ(tocsin::waiting_on(&each), 0u);
    };
    // Attempts that throw do not park.
    std::thread setter([&] {
        support::until_parked(&events[0], 1);
        events[0].set();
    });
    with_ever_more_memory([&] { (void)tocsin::wait_any(sources); }, nothing_waits);
    setter.join();
    for (auto& each : events) each.set();
    with_ever_more_memory([&] { tocsin::wait_all(sources); },
                          [&] {
                              nothing_waits();
                              for (const auto& each : events) EXPECT_TRUE(each.is_set());
                          });
    for (const auto& each : events) EXPECT_FALSE(each.is_set());
}

TEST(OutOfMemory, AViewThatCannotBeMadeLeavesTheEventAlone) {
    auto_reset_event event;
    std::optional<tocsin::pollable> watched;
    with_ever_more_memory([&] { watched.emplace(event); },
                          [&] {
                              event.set();
                              EXPECT_TRUE(event.try_wait());
                          });
    event.set();
    EXPECT_TRUE(watched->try_wait());
}

// After the first report the watchdog looks again, and finds no memory at one step or another of that look. It must not
// forget a report. The report of another wait, by the look after that, shows that the look without memory is over.
TEST(OutOfMemory, AWatchdogForgetsNoReportAndLooksAgain) {
    for (const long memory_for : {0, 1}) {
        auto_reset_event first, second;
        std::atomic<int> reports_of_first{0}, reports_of_second{0};
        thread_group threads;
        threads.start("first", [&] { first.wait(); });
        const auto watchdog =
            tocsin::report_waits_longer_than(5ms, [&](const tocsin::parked_wait& wait) noexcept {
                if (wait.address == &first && ++reports_of_first == 1) before_refusal = memory_for;
                if (wait.address == &second) ++reports_of_second;
            });
        support::until("the first report", [&] { return reports_of_first.load() != 0; });
        threads.start("second", [&] { second.wait(); });
        support::until("the second report", [&] { return reports_of_second.load() != 0; });
        EXPECT_EQ(reports_of_first.load(), 1);
        EXPECT_EQ(reports_of_second.load(), 1);
        first.set();
        second.set();
        threads.join();
    }
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
    if (memory_left == 0) throw std::bad_alloc();
    if (memory_left > 0) --memory_left;
    if (before_refusal != endless && before_refusal-- == 0) throw std::bad_alloc();
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
