// SPDX-License-Identifier: Apache-2.0
// What the library says about its waiters: how many there are, of which kind, and since when.
#include "facts.hpp"
#include "next_allocation.hpp"
#include "pipe_ends.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/barrier.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/group_commit.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/source.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;

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
    support::at_next_allocation = [] {
        more.store(true);
        until_parked(&event, all);
    };
    auto listed = parked_on(&event);
    EXPECT_EQ(support::at_next_allocation, nullptr);
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

// The one wait that is parked on this address, once it is.
parked_wait the_wait_on(const volatile void* address) {
    until_parked(address, 1);
    const auto waits = parked_on(address);
    EXPECT_EQ(waits.size(), 1u);
    return waits.empty() ? parked_wait{} : waits.front();
}

TEST(ParkedWaits, TellLatchesAndBarriersFromEvents) {
    tocsin::latch latch(1);
    tocsin::barrier barrier(2);
    thread_group threads;
    threads.start("latch", [&] { latch.wait(); });
    EXPECT_EQ(the_wait_on(&latch).what, parked_wait::kind::latch);
    EXPECT_STREQ(the_wait_on(&latch).type, "latch");
    latch.count_down();

    threads.start("barrier", [&] { barrier.arrive_and_wait(); });
    EXPECT_STREQ(the_wait_on(&barrier).type, "barrier");
    barrier.arrive_and_wait();
    threads.join();

    // The next phase has the gate behind the first.
    tocsin::name_address(&barrier, "phases");
    threads.start("barrier", [&] { barrier.arrive_and_wait(); });
    const parked_wait second = the_wait_on(reinterpret_cast<const char*>(&barrier) + 1);
    EXPECT_STREQ(second.type, "barrier");
    EXPECT_EQ(second.name, "phases");
    barrier.arrive_and_wait();
    threads.join();
    tocsin::name_address(&barrier, "");
}

TEST(ParkedWaits, TellLatchesFromEventsAmongSeveralSources) {
    tocsin::latch latch(1);
    manual_reset_event event;
    thread_group threads;
    threads.start("any", [&] { (void)tocsin::wait_any(latch, event); });
    EXPECT_STREQ(the_wait_on(&latch).type, "latch");
    EXPECT_STREQ(the_wait_on(&event).type, "event");
    threads.start("all", [&] { (void)tocsin::wait_all(latch, event); });
    until_parked(&latch, 2);
    for (const parked_wait& each : parked_on(&latch)) EXPECT_STREQ(each.type, "latch");
    latch.count_down();
    event.set();
    threads.join();
}

TEST(ParkedWaits, ListSendersAndReceiversOfChannels) {
    tocsin::channel<int> empty(1);
    tocsin::channel<int> full(1);
    full.send(1);
    const auto begin = std::chrono::steady_clock::now();
    thread_group threads;
    threads.start("receiver", [&] { (void)empty.receive(); });
    threads.start("sender", [&] { full.send(2); });
    const parked_wait receiver = the_wait_on(&empty);
    const parked_wait sender = the_wait_on(&full);
    EXPECT_EQ(receiver.what, parked_wait::kind::source);
    EXPECT_STREQ(receiver.type, "channel receive");
    EXPECT_EQ(receiver.thread, threads.number(0));
    EXPECT_GE(receiver.since, begin);
    EXPECT_STREQ(sender.type, "channel send");
    EXPECT_EQ(sender.thread, threads.number(1));
    empty.send(1);
    EXPECT_EQ(waiting_on(&empty), 0u)
        << "a wait that has ended is not parked, even before its thread has run";
    (void)full.receive();
    threads.join();
    EXPECT_TRUE(parked_waits().empty());
}

// Never ready.
struct unlabelled {
    bool try_wait() noexcept { return false; }
    bool enlist(tocsin::wait_entry& entry) noexcept {
        waiting.append(entry);
        return true;
    }
    void delist(tocsin::wait_entry& entry) noexcept { waiting.remove(entry); }

    tocsin::entry_list waiting;
};
struct labelled : unlabelled {
    tocsin::source_label label() const noexcept { return {"printer", "tray"}; }
};

TEST(ParkedWaits, AllPartsOfAWaitBeganTogether) {
    auto_reset_event first;
    manual_reset_event second;
    tocsin::channel<int> third(1);
    auto receiving = third.receiving();
    const auto begin = std::chrono::steady_clock::now();
    auto wait = tocsin::any_operation([](tocsin::any_result) noexcept {}, first, second, receiving);
    wait.start();
    const auto end = std::chrono::steady_clock::now();
    const parked_wait part = the_wait_on(&first);
    EXPECT_EQ(the_wait_on(&second).since, part.since);
    EXPECT_EQ(the_wait_on(&third).since, part.since);
    EXPECT_GE(part.since,
              begin - 1s);  // a coarse clock is late, and later still where the machine was halted
    EXPECT_LE(part.since, end);
    wait.cancel();
}

TEST(ParkedWaits, ListCustomSourcesAsTheirLabelsSay) {
    unlabelled plain;
    labelled named;
    manual_reset_event stop;
    thread_group threads;
    threads.start("waiter", [&] { (void)tocsin::wait_any(plain, named, stop); });
    until_parked(&stop, 1);
    EXPECT_STREQ(the_wait_on(&plain).type, "source");
    EXPECT_STREQ(the_wait_on(named.label().address).type, "printer");
    EXPECT_TRUE(parked_on(&named).empty());
    stop.set();
    threads.join();
    EXPECT_TRUE(parked_waits().empty());
}

TEST(ParkedWaits, ListAThreadInAWaitSetWithTheSetAndEachMember) {
    auto_reset_event one;
    tocsin::counting_semaphore<> other(0);
    tocsin::wait_set set;
    set.add(one, 1);
    set.add(other, 2);
    EXPECT_TRUE(parked_on(&one).empty()) << "nobody sleeps in the set";
    thread_group threads;
    threads.start("waiter", [&] {
        tocsin::ready_item found[1];
        (void)set.wait(found);
    });
    until_parked(&set, 1);
    const auto of_set = parked_on(&set);
    ASSERT_EQ(of_set.size(), 1u);
    EXPECT_EQ(of_set[0].what, parked_wait::kind::source);
    EXPECT_STREQ(of_set[0].type, "wait_set");
    for (const void* each : {static_cast<const void*>(&one), static_cast<const void*>(&other)}) {
        const auto of_member = parked_on(each);
        ASSERT_EQ(of_member.size(), 1u);
        EXPECT_EQ(of_member[0].thread, of_set[0].thread);
        EXPECT_EQ(of_member[0].since, of_set[0].since);
        EXPECT_EQ(of_member[0].what, each == &one ? parked_wait::kind::event : parked_wait::kind::semaphore);
        EXPECT_EQ(waiting_on(each), 0u) << "the thread counts at the set's address";
    }
    one.set();
    threads.join();
    EXPECT_EQ(waiting_on(&set), 0u);
    EXPECT_TRUE(parked_on(&one).empty());
}

TEST(ParkedWaits, ListAThreadInAGroupCommitUntilItsFlushHasEnded) {
    auto_reset_event may_end;
    tocsin::group_commit<int> log([&](const tocsin::commit_group<int>&) { may_end.wait(); });
    thread_group threads;
    threads.start("leader", [&] { (void)log.submit(1); });
    until_parked(&may_end, 1);  // it has taken its group, which the second thread cannot join any more
    threads.start("submitter", [&] { (void)log.submit(1); });
    until_parked(&log, 1);
    EXPECT_STREQ(parked_on(&log)[0].type, "group_commit");
    EXPECT_NE(parked_on(&log)[0].thread, parked_on(&may_end)[0].thread) << "the leader waits in its flush";
    may_end.set();
    until_parked(&may_end, 1);  // the second thread leads
    EXPECT_EQ(waiting_on(&log), 0u);
    may_end.set();
    threads.join();
}

#if TOCSIN_ON_POSIX

std::size_t parked_on_descriptor(int descriptor) {
    const auto all = parked_waits();
    return static_cast<std::size_t>(std::ranges::count_if(all, [&](const parked_wait& each) {
        return each.what == parked_wait::kind::descriptor && each.bit == static_cast<unsigned>(descriptor) &&
               std::string_view(each.type) == "descriptor" && each.address == nullptr;
    }));
}

TEST(ParkedWaits, ListEachDescriptorThatAThreadPolls) {
    const pipe_ends one;
    const pipe_ends other;
    auto_reset_event event;
    thread_group threads;
    threads.start("poller", [&] {
        (void)tocsin::wait_any(event, tocsin::readable(one.out()), tocsin::readable(other.out()));
    });
    support::until("waiting for a poll", [&] { return parked_on_descriptor(one.out()) == 1; });
    EXPECT_EQ(parked_on_descriptor(other.out()), 1u);
    EXPECT_EQ(parked_on(&event).size(), 1u);
    const std::string text = tocsin::describe_parked_waits();
    EXPECT_NE(text.find("descriptor " + std::to_string(one.out()) + ": thread "), std::string::npos) << text;
    const std::string json = tocsin::parked_waits_as_json();
    EXPECT_NE(
        json.find("{\"type\":\"descriptor\",\"descriptor\":" + std::to_string(other.out()) + ",\"thread\":"),
        std::string::npos)
        << json;
    event.set();
    threads.join();
    EXPECT_EQ(parked_on_descriptor(one.out()), 0u);
}

TEST(ParkedWaits, ListDescriptorsForWhichOperationsWait) {
    const pipe_ends one;
    auto_reset_event event;
    {
        auto operation =
            tocsin::any_operation([](tocsin::any_result) noexcept {}, event, tocsin::readable(one.out()));
        operation.start();
        EXPECT_EQ(parked_on_descriptor(one.out()), 1u);
        event.set();
        EXPECT_EQ(parked_on_descriptor(one.out()), 0u);
        operation.start();
        EXPECT_EQ(parked_on_descriptor(one.out()), 1u);
    }
    EXPECT_EQ(parked_on_descriptor(one.out()), 0u) << "its destruction cancels the wait";
}
#endif

TEST(ParkedWaits, AreOneJsonObject) {
    EXPECT_EQ(tocsin::parked_waits_as_json(), R"({"parked_waits":[],"deadlocks":[]})");
    auto_reset_event event;
    tocsin::name_address(&event, "a \"quoted\" \\name\n");
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    char expected[200];
    std::snprintf(
        expected, sizeof expected,
        R"({"parked_waits":[{"type":"event","address":"%p","name":"a \"quoted\" \\name\u000a","thread":%llu,"seconds":)",
        static_cast<const void*>(&event), static_cast<unsigned long long>(threads.number(0)));
    const std::string text = tocsin::parked_waits_as_json();
    EXPECT_TRUE(text.starts_with(expected)) << text << "\n" << expected;
    EXPECT_TRUE(text.ends_with(R"(}],"deadlocks":[]})")) << text;
    event.set();
    threads.join();
    tocsin::name_address(&event, "");
}

// Names may have any bytes. The JSON is in UTF-8 all the same, and the text has one line for each wait.
TEST(ParkedWaits, AreInUtf8AndInLinesWhateverTheirNames) {
    const std::map<std::string, std::string> json_of_name{
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"caf\xe9", "caf\\ufffd"},                             // Latin-1
        {"\x80 \xff", "\\ufffd \\ufffd"},                      // no first bytes
        {"\xe2\x82", "\\ufffd\\ufffd"},                        // cut short
        {"\xc3(", "\\ufffd("},                                 // the second byte is missing
        {"\xc0\xaf", "\\ufffd\\ufffd"},                        // not the shortest form
        {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},             // the same
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},             // half of a pair of UTF-16
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},  // beyond the last character
        {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"},  // not the shortest form
        {"two\nlines", "two\\u000alines"},
    };
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    for (const auto& [name, json] : json_of_name) {
        tocsin::name_address(&event, name);
        const std::string text = tocsin::parked_waits_as_json();
        EXPECT_NE(text.find("\"name\":\"" + json + '"'), std::string::npos) << text;
        const std::string line = tocsin::describe_parked_waits();
        EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    }
    tocsin::name_address(&event, "");
    event.set();
    threads.join();
}

// Chooses a locale whose numbers have a decimal comma, and returns whether there is one.
bool choose_decimal_comma() {
    for (const char* const name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de-DE"}) {
        // musl takes any name, and keeps the point.
        if (std::setlocale(LC_NUMERIC, name) != nullptr && *std::localeconv()->decimal_point == ',')
            return true;
    }
#if defined(__GLIBC__)
    // None is installed. So this makes one, in the form in which localedef writes it (seen with glibc 2.36).
    const struct {
        std::uint32_t head[8] = {
            0x20031115 ^ LC_NUMERIC, 6, 32, 34, 36, 40, 44, 48};  // fields begin at 32, 34 ...
        char point[2] = {','};
        char between_groups[2] = {'.'};
        char grouping[4] = {3, 3};
        std::uint32_t wide[2] = {',', '.'};
        char code[8] = "UTF-8";
    } numeric;
    std::string folder = testing::TempDir() + "/tocsin_XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return false;
    std::filesystem::create_directory(folder + "/comma");
    std::ofstream(folder + "/comma/LC_NUMERIC", std::ios::binary)
        .write(reinterpret_cast<const char*>(&numeric), sizeof numeric);
    setenv("LOCPATH", folder.c_str(), 1);
    const bool chosen = std::setlocale(LC_NUMERIC, "comma") != nullptr;
    unsetenv("LOCPATH");
    std::filesystem::remove_all(folder);
    return chosen;
#else
    return false;
#endif
}

// JSON and the text have a decimal point, whatever the program's locale has.
TEST(ParkedWaits, WriteSecondsWithAPointInEveryLocale) {
    if (!choose_decimal_comma()) GTEST_SKIP() << "there is no locale with a decimal comma";
    char number[8];
    std::snprintf(number, sizeof number, "%.1f", 1.5);
    EXPECT_STREQ(number, "1,5");
    auto_reset_event event;
    thread_group threads;
    threads.start("waiter", [&] { event.wait(); });
    until_parked(&event, 1);
    const std::string json = tocsin::parked_waits_as_json();
    const std::string text = tocsin::describe_parked_waits();
    std::setlocale(LC_NUMERIC, "C");
    EXPECT_TRUE(std::regex_search(json, std::regex(R"("seconds":-?(0|[1-9]\d*)\.\d{3}\})"))) << json;
    EXPECT_TRUE(std::regex_search(text, std::regex(R"(, for -?\d+\.\d{3} s)"))) << text;
    event.set();
    threads.join();
}

parked_wait wait_of(std::uint64_t thread, std::uint64_t owner) {
    parked_wait result{};
    result.what = parked_wait::kind::lock;
    result.thread = thread;
    result.owner = owner;
    return result;
}

TEST(Deadlocks, AreCyclesAmongOwners) {
    using cycles = std::vector<std::vector<std::uint64_t>>;
    EXPECT_EQ(tocsin::deadlocks({}), cycles());
    EXPECT_EQ(tocsin::deadlocks({wait_of(1, 2), wait_of(2, 3), wait_of(4, 0)}), cycles());
    EXPECT_EQ(tocsin::deadlocks({wait_of(1, 2), wait_of(2, 3), wait_of(3, 2), wait_of(5, 1)}),
              cycles({{2, 3}}));
    EXPECT_EQ(tocsin::deadlocks({wait_of(7, 7), wait_of(1, 2), wait_of(2, 1)}), cycles({{1, 2}, {7}}));
}

#if TOCSIN_CHECKED
TEST(Deadlocks, AreFoundWhereTheOwnersOfLocksAreKnown) {
    tocsin::word_lock<> one;
    std::atomic<std::uint32_t> bits{0};
    tocsin::bit_lock other(bits, 5);
    std::atomic<int> held{0};
    thread_group threads;
    manual_reset_event freed;
    threads.start("one first", [&] {
        const std::lock_guard outer(one);
        ++held;
        while (held.load() != 2) std::this_thread::yield();
        while (!freed.is_set()) {
            if (other.try_lock_for(1s)) other.unlock();
        }
    });
    threads.start("other first", [&] {
        const std::lock_guard outer(other);
        ++held;
        while (held.load() != 2) std::this_thread::yield();
        while (!freed.is_set()) {
            if (one.try_lock_for(1s)) one.unlock();
        }
    });
    auto found = tocsin::deadlocks(parked_waits());
    while (found.empty()) found = tocsin::deadlocks(parked_waits());
    ASSERT_EQ(found.size(), 1u);
    std::ranges::sort(found[0]);
    std::vector expected{threads.number(0), threads.number(1)};
    std::ranges::sort(expected);
    EXPECT_EQ(found[0], expected);
    std::string text;
    while (text.find("deadlock: thread ") == std::string::npos) text = tocsin::describe_parked_waits();
    EXPECT_NE(text.find(", held by thread " + std::to_string(threads.number(0))), std::string::npos) << text;
    freed.set();
    threads.join();
    EXPECT_TRUE(tocsin::deadlocks(parked_waits()).empty());
}
#endif

}  // namespace
