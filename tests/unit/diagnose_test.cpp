// What the library says about its waiters: how many there are, of which kind, and since when.
#include "facts.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {
thread_local void (*at_next_allocation)() = nullptr;
}  // namespace

// (Not inlined: with only one of a pair inlined, the compiler warns of a mismatch.)
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (const auto act = std::exchange(at_next_allocation, nullptr)) act();
    if (void* const made = std::malloc(size)) return made;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* gone) noexcept { std::free(gone); }
[[gnu::noinline]] void operator delete(void* gone, std::size_t) noexcept { std::free(gone); }

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::parked_wait;
using tocsin::parked_waits;
using tocsin::waiting_on;

std::vector<parked_wait> parked_on(const volatile void* address) {
    auto all = parked_waits();
    std::erase_if(all, [&](const parked_wait& each) { return each.address != address; });
    return all;
}

TEST(WaitingOn, CountsNobodyWhereNobodyWaits) {
    auto_reset_event event;
    EXPECT_EQ(waiting_on(&event), 0u);
    EXPECT_EQ(waiting_on(nullptr), 0u);
    EXPECT_TRUE(parked_on(&event).empty());
}

TEST(WaitingOn, CountsWaitersUntilTheyAreReleased) {
    auto_reset_event event;
    std::stop_source stop;
    thread_group threads;
    for (std::size_t i = 1; i <= 5; ++i) {
        threads.start("waiter", [&] { (void)event.wait(stop.get_token()); });
        until_parked(&event, i);
        EXPECT_EQ(waiting_on(&event), i);
    }
    event.set();
    EXPECT_EQ(waiting_on(&event), 4u) << "a released thread no longer waits, even before it has run";
    stop.request_stop();
    threads.join();
    EXPECT_EQ(waiting_on(&event), 0u);
    EXPECT_EQ(event.wait_for(1ms), tocsin::wait_status::timed_out);
    EXPECT_EQ(waiting_on(&event), 0u);
}

TEST(WaitingOn, CountsWaitersOfEveryKindOnOneAddress) {
    std::atomic<std::uint32_t> word{0b11};
    thread_group threads;
    threads.start("bit 0", [&] { tocsin::bit_lock(word, 0).lock(); });
    threads.start("bit 1", [&] { tocsin::bit_lock(word, 1).lock(); });
    threads.start("address", [&] { (void)tocsin::wait_on_address(&word, 0b11u); });
    until_parked(&word, 3);
    EXPECT_EQ(tocsin::wake_by_address_all(&word), 1u) << "a wake by address is for address waits";
    until_parked(&word, 2);
    tocsin::bit_lock(word, 0).unlock();
    tocsin::bit_lock(word, 1).unlock();
    threads.join();
    EXPECT_EQ(waiting_on(&word), 0u);
}

TEST(ParkedWaits, TellKindAddressThreadAndSince) {
    const auto begin = std::chrono::steady_clock::now();
    manual_reset_event event;
    std::atomic<std::uint8_t> byte{0};
    tocsin::word_lock<> lock;
    lock.lock();
    std::atomic<std::uint16_t> bits{1u << 9};
    thread_group threads;
    threads.start("event", [&] { event.wait(); });
    threads.start("address", [&] { (void)tocsin::wait_on_address(&byte, 0); });
    threads.start("word lock", [&] { lock.lock(); });
    threads.start("bit lock", [&] { tocsin::bit_lock(bits, 9).lock(); });
    until_parked(&event, 1);
    until_parked(&byte, 1);
    until_parked(&lock, 1);
    until_parked(&bits, 1);
    const auto end = std::chrono::steady_clock::now();

    const auto expect = [&](const void* address, parked_wait::kind kind, std::size_t thread) {
        const auto waits = parked_on(address);
        ASSERT_EQ(waits.size(), 1u);
        EXPECT_EQ(waits[0].what, kind);
        EXPECT_EQ(waits[0].thread, threads.number(thread));
        EXPECT_GE(waits[0].since, begin);
        EXPECT_LE(waits[0].since, end);
        EXPECT_TRUE(waits[0].name.empty());
    };
    expect(&event, parked_wait::kind::event, 0);
    expect(&byte, parked_wait::kind::address, 1);
    expect(&lock, parked_wait::kind::lock, 2);
    expect(&bits, parked_wait::kind::lock, 3);
    EXPECT_EQ(parked_on(&bits)[0].bit, 9u);

    event.set();
    byte.store(1);
    tocsin::wake_by_address_all(&byte);
    lock.unlock();
    tocsin::bit_lock(bits, 9).unlock();
    threads.join();
    EXPECT_TRUE(parked_waits().empty());
}

TEST(ParkedWaits, CarryTheNameThatWasGiven) {
    auto_reset_event event;
    tocsin::name_address(&event, "shutdown");
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    ASSERT_EQ(parked_on(&event).size(), 1u);
    EXPECT_EQ(parked_on(&event)[0].name, "shutdown");
    EXPECT_NE(tocsin::describe_parked_waits().find("'shutdown'"), std::string::npos);
    tocsin::name_address(&event, "start");
    EXPECT_EQ(parked_on(&event)[0].name, "start");
    tocsin::name_address(&event, "");
    EXPECT_EQ(parked_on(&event)[0].name, "");
    event.set();
    threads.join();
}

// The memory for the list is made between two looks. Meanwhile so many more threads park that it is too little again.
TEST(ParkedWaits, EachIsListedOnceHoweverManyCameMeanwhile) {
    static manual_reset_event event;
    static std::atomic<bool> more;
    constexpr int few = 4;
    constexpr int all = 24;
    more.store(false);
    thread_group threads;
    threads.start_many(few, "before", [](int) { event.wait(); });
    threads.start_many(all - few, "meanwhile", [](int) {
        while (!more.load()) std::this_thread::yield();
        event.wait();
    });
    until_parked(&event, few);
    at_next_allocation = [] {
        more.store(true);
        until_parked(&event, all);
    };
    auto listed = parked_on(&event);
    EXPECT_EQ(at_next_allocation, nullptr);
    EXPECT_EQ(listed.size(), static_cast<std::size_t>(all));
    std::ranges::sort(listed, {}, &parked_wait::thread);
    EXPECT_EQ(std::ranges::adjacent_find(listed, {}, &parked_wait::thread), listed.end());
    event.set();
    threads.join();
    event.reset();
}

TEST(ParkedWaits, AreDescribedOneALine) {
    EXPECT_EQ(tocsin::describe_parked_waits(), "");
    std::array<auto_reset_event, 3> events;
    thread_group threads;
    threads.start_many(3, "waiter", [&](int i) { events[static_cast<std::size_t>(i)].wait(); });
    for (auto& each : events) until_parked(&each, 1);
    const std::string text = tocsin::describe_parked_waits();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
    for (std::size_t i = 0; i < 3; ++i) {
        char address[32];
        std::snprintf(address, sizeof address, "%p", static_cast<const void*>(&events[i]));
        EXPECT_NE(text.find(std::string("event ") + address), std::string::npos) << text;
        EXPECT_NE(text.find("thread " + std::to_string(threads.number(i))), std::string::npos) << text;
    }
    for (auto& each : events) each.set();
    threads.join();
}

TEST(ParkedWaits, CanBeListedWhileThreadsComeAndGo) {
    std::array<auto_reset_event, 4> events;
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(4, "waiter", [&](int i) {
        while (!enough.load()) {
            (void)events[static_cast<std::size_t>(i)].wait_for(100us);
            events[static_cast<std::size_t>(i + 1) % 4].set();
        }
    });
    for (int i = 0; i < support::rounds(300, 50); ++i) {
        for (const auto& each : parked_waits()) {
            EXPECT_GE(each.address, static_cast<const void*>(&events.front()));
            EXPECT_LE(each.address, static_cast<const void*>(&events.back()));
        }
        (void)tocsin::describe_parked_waits();
    }
    enough.store(true);
    threads.join();
}

}  // namespace
