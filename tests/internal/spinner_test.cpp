// SPDX-License-Identifier: Apache-2.0
// What the waits of each kind tell the history of their address (core/wait/spinner.hpp), and what they look at when.
#include "core/wait/spinner.hpp"

#include "facts.hpp"
#include "patience.hpp"
#include "platform/system/system.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using tocsin::core::history_of;
using tocsin::core::spinner;
using tocsin::core::wait_key;
using tocsin::core::wait_kind;

// Each kind below has a wait, what ends it, and the key for which the wait learns.
struct event_kind {
    tocsin::auto_reset_event event;
    void wait() { event.wait(); }
    void end() { event.set(); }
    wait_key key() const { return {&event, wait_kind::event}; }
};
struct semaphore_kind {
    tocsin::counting_semaphore<> permits{0};
    void wait() { permits.acquire(); }
    void end() { permits.release(); }
    wait_key key() const { return {&permits, wait_kind::semaphore}; }
};
struct condition_kind {
    std::mutex mutex;
    tocsin::condition changed;
    bool done = false;
    void wait() {
        std::unique_lock held(mutex);
        changed.wait(held, [&] { return done; });
        done = false;
    }
    void end() {
        {
            const std::lock_guard held(mutex);
            done = true;
        }
        changed.notify_one();
    }
    wait_key key() const { return {&changed, wait_kind::condition}; }
};
struct address_kind {
    std::atomic<std::uint32_t> word{0};
    void wait() {
        while (word.load() == 0) (void)tocsin::wait_on_address(&word, 0U);
        word = 0;
    }
    void end() {
        word = 1;
        (void)tocsin::wake_by_address_one(&word);
    }
    wait_key key() const { return {&word, wait_kind::address}; }
};
struct lock_kind {
    tocsin::word_lock<> lock;
    lock_kind() { lock.lock(); }
    ~lock_kind() { lock.unlock(); }
    void wait() { lock.lock(); }  // the next wait() waits until end()
    void end() { lock.unlock(); }
    wait_key key() const { return {&lock, wait_kind::lock_bit_0}; }
};
struct any_kind {
    std::array<tocsin::auto_reset_event, 2> events;
    void wait() { (void)tocsin::wait_any(events[0], events[1]); }
    void end() { events[1].set(); }
    wait_key key() const { return {&events[0], wait_kind::event}; }
};
struct all_kind {
    std::array<tocsin::auto_reset_event, 2> events;
    void wait() { tocsin::wait_all(events[0], events[1]); }
    void end() {
        for (auto& each : events) each.set();
    }
    wait_key key() const { return {&events[0], wait_kind::event}; }
};

template <class Kind>
class Waits : public testing::Test {};
using kinds =
    testing::Types<event_kind, semaphore_kind, condition_kind, address_kind, lock_kind, any_kind, all_kind>;
TYPED_TEST_SUITE(Waits, kinds);

bool is_measured(const wait_key& key) { return history_of(key).long_look() != 0; }

// An object whose class of addresses has not been measured yet, at the end of `made`.
template <class Kind>
Kind& make_unmeasured(std::vector<std::unique_ptr<Kind>>& made) {
    do {
        made.push_back(std::make_unique<Kind>());
    } while (is_measured(made.back()->key()));
    return *made.back();
}

// The key of a word for whose class of addresses nobody has waited yet.
wait_key unused(const std::vector<std::uint32_t>& words, wait_kind kind) {
    const auto found = std::ranges::find_if(
        words, [&](const std::uint32_t& word) { return history_of({&word, kind}).packed() == 0; });
    EXPECT_NE(found, words.end());
    return {&*found, kind};
}

TYPED_TEST(Waits, MeasureWhatAWakeUpTakes) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks, so none measures";
    std::vector<std::unique_ptr<TypeParam>> made;
    TypeParam& kind = make_unmeasured(made);
    thread_group threads;
    threads.start("waiter", [&] { kind.wait(); });
    threads.until_asleep(0);
    kind.end();
    threads.join();
    EXPECT_TRUE(is_measured(kind.key()));
}

TEST(WaitsOfManyThreads, AreMeasuredAlthoughAnotherThreadSleepsForLong) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks, so none measures";
    std::vector<std::unique_ptr<event_kind>> made;
    event_kind& longest = make_unmeasured(made);  // its first wait measures
    thread_group threads;
    threads.start("sleeps for long", [&] { longest.wait(); });
    threads.until_asleep(0);
    const auto long_enough = std::chrono::steady_clock::now() + 2ms;
    support::until("2 ms have passed", [&] { return std::chrono::steady_clock::now() >= long_enough; });
    event_kind* other = &make_unmeasured(made);
    while (history_of(other->key()).packed() != 0) other = &make_unmeasured(made);  // not of the same class
    threads.start("waiter", [&] { other->wait(); });
    threads.until_asleep(1);
    other->end();
    threads.until_finished(1);
    EXPECT_TRUE(is_measured(other->key()));
    longest.end();
    threads.join();
    EXPECT_FALSE(is_measured(longest.key())) << "its measurement was given up";
}

TEST(WaitsThatAreOverBeforeTheyQueue, EarnTheCreditForALook) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks";
    const std::vector<std::uint32_t> words(1'000);
    const wait_key key = unused(words, wait_kind::address);
    const auto never = tocsin::deadline::never();
    const tocsin::detail::wait_options options{never, nullptr, tocsin::spin_policy::adaptive()};
    const auto wait_in_vain = [&] {
        spinner looking(key, options);
        (void)(looking.before_parking([] { return false; }) || looking.while_parked([] { return false; }));
    };
    for (int waits = 0; history_of(key).looks() && waits != 100; ++waits) wait_in_vain();
    ASSERT_FALSE(history_of(key).looks());
    // A wait that looks or yields as a probe says nothing.
    for (int waits = 0; !history_of(key).looks() && waits != 100; ++waits) spinner(key, options).end_early();
    EXPECT_TRUE(history_of(key).looks());
}

TEST(AShortLook, ReadsTheClockAfterEachTry) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks";
    const std::vector<std::uint32_t> words(1'000);
    const auto never = tocsin::deadline::never();
    const tocsin::detail::wait_options options{never, nullptr, tocsin::spin_policy::adaptive()};
    spinner looking(unused(words, wait_kind::address), options);
    ASSERT_TRUE(looking.looks_before_parking());
    int tries = 0;
    const auto slow = [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // no fact to wait for: a slow try
        return ++tries == 100;
    };
    EXPECT_FALSE(looking.before_parking(slow, true));
    EXPECT_LE(tries, 2)
        << "one ends the look, which lasts microseconds; the clock may have been read first after it";
}

TEST(WaitsForLatches, LearnForTheirThread) {
    const tocsin::latch first(1);
    const tocsin::latch second(1);
    using tocsin::core::learned_for;
    using tocsin::detail::event_use;
    const auto learned = [](const void* object, event_use use) {
        return learned_for({object, wait_kind::event}, use).address;
    };
    EXPECT_EQ(learned(&first, event_use::latch), learned(&second, event_use::latch));
    EXPECT_EQ(learned(&first, event_use::event), &first);
    EXPECT_EQ(learned(&first, event_use::barrier), &first);
    const void* elsewhere = nullptr;
    thread_group threads;
    threads.start("other", [&] { elsewhere = learned(&first, event_use::latch); });
    threads.join();
    EXPECT_NE(learned(&first, event_use::latch), elsewhere);
}

// Lets a queued thread hand its permit on at once, until threads yield before they queue. (A thread that loses its
// processor within the use makes the use too long.)
void teach_brief_uses(const wait_key& semaphore, const tocsin::detail::wait_options& options) {
    support::until("threads yield before they queue", [&] {
        const spinner looking(semaphore, options);
        looking.begin_use();
        spinner::end_use(semaphore);
        spinner next(semaphore, options);
        bool yielded = false;
        (void)next.yield_before_parking([&] { return yielded = true; });
        return yielded;
    });
}

TEST(WaitsForPermits, LookOnceTheyAreQueuedIfTheyHaveYieldedBefore) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks";
    const std::vector<std::uint32_t> words(1'000);
    const wait_key semaphore = unused(words, wait_kind::semaphore);
    const auto never = tocsin::deadline::never();
    const tocsin::detail::wait_options options{never, nullptr, tocsin::spin_policy::adaptive()};
    {
        spinner looking(semaphore, options);
        int looks = 0;
        EXPECT_FALSE(looking.yield_before_parking([] { return true; })) << "nothing says that uses are brief";
        EXPECT_TRUE(looking.before_parking([&] { return ++looks != 0; })) << "a new history has some credit";
        EXPECT_EQ(looks, 1);
    }
    teach_brief_uses(semaphore, options);
    spinner looking(semaphore, options);
    EXPECT_FALSE(looking.yield_before_parking([] { return false; }));
    EXPECT_FALSE(looking.before_parking([] { return true; }));
    EXPECT_TRUE(looking.while_parked([] { return true; }));
}

TEST(WaitsForAll, LookBeforeTheySleep) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks";
    std::vector<all_kind> made(1'000);
    const auto unused =
        std::ranges::find_if(made, [](const all_kind& each) { return history_of(each.key()).packed() == 0; });
    ASSERT_NE(unused, made.end());
    ASSERT_TRUE(history_of(unused->key()).looks());
    unused->events[1].set();
    thread_group threads;
    threads.start("waiter", [&] { tocsin::wait_all(unused->events[0], unused->events[1]); });
    support::until_parked(&unused->events[0], 1);
    threads.until_asleep(0);  // so it has looked
    EXPECT_FALSE(history_of(unused->key()).looks())
        << "a look that finds nothing costs the credit of a new history";
    unused->events[0].set();
    threads.join();
}

// A custom source that is ready once it has been asked three times.
struct slow_source {
    static bool try_take(void* object) noexcept { return ++static_cast<slow_source*>(object)->tries == 3; }
    static bool enlist(void* object, tocsin::wait_entry&) noexcept {
        static_cast<slow_source*>(object)->enlisted = true;
        return false;
    }
    static void delist(void*, tocsin::wait_entry&) noexcept {}
    static void give_back(void*) noexcept {}
    static constexpr tocsin::source::operations stays{try_take, enlist, delist, false, nullptr, give_back};
    static constexpr tocsin::source::operations meets{try_take, enlist, delist, false};

    int tries = 0;
    bool enlisted = false;
};

TEST(WaitsForCustomSources, LookBeforeTheyQueueIfWhatIsThereStays) {
    if (tocsin::platform::processors() == 1) GTEST_SKIP() << "no wait looks";
    std::vector<slow_source> made(1'000);
    const auto unused = std::ranges::find_if(
        made, [](const slow_source& each) { return history_of({&each, wait_kind::event}).packed() == 0; });
    ASSERT_NE(unused, made.end());
    EXPECT_EQ(tocsin::wait_any(tocsin::source(&*unused, slow_source::stays)).index, 0u);
    EXPECT_FALSE(unused->enlisted);
    *unused = {};
    EXPECT_EQ(tocsin::wait_any(tocsin::source(&*unused, slow_source::meets)).index, 0u);
    EXPECT_TRUE(unused->enlisted) << "two threads that meet would both look";
}

}  // namespace
