// SPDX-License-Identifier: Apache-2.0
// The traps of docs/traps.md: mistakes that other libraries made, each with what holds here instead. These suites
// test what real threads can show; the models search every interleaving where that is needed.
//
// Tested elsewhere: 3 and 9 as costs, by the lab; 6 and 7 by the suites WaitAll (wait_test.cpp) and all_model
// (model/many_model_test.cpp); 10 for every width, by address_test.cpp; 18 by the suite Threads
// (startup_and_exit_test.cpp); 22 by internal/signal_handler_test.cpp; 23 by tests/copies. Trap 19 has no test: the
// private call is behind an option that is off, TOCSIN_APPLE_ULOCK.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "random.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#if TOCSIN_ON_POSIX
#include <sched.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using namespace support;
using namespace tocsin;

// How long two threads race for one order of their steps.
constexpr auto litmus_time = 1s;

// Waits between a few nanoseconds and a few microseconds, so that racing threads meet at a different point each time.
void dither(support::random_source& random, std::size_t max) {
    for (std::size_t i = random.below(max); i > 0; --i) asm volatile("" ::: "memory");
}

// Cache lines that two threads write in turn. A store that follows a store to each of these lines becomes visible late,
// because stores leave a processor in order. Then a missing fence shows.
struct slow_stores {
    struct alignas(64) line {
        std::atomic<int> value{0};
    };
    std::array<line, 6> lines;

    void write() {
        for (line& each : lines) each.value.store(1, std::memory_order_relaxed);
    }
};

// ---- 1: set skipped because it is set already ---------------------------------------------------

// The producer stores, then sets an event that is set already. The consumer takes the event, then looks. The consumer
// sees the store, or the set that it did not take is still there.
template <class Event>
int signals_lost_by_a_set_on_a_set_event(int count) {
    Event event;
    alignas(64) std::atomic<int> queue{0};
    alignas(64) std::atomic<int> seen{0};
    slow_stores delay;
    starting_line line(2);
    int lost = 0;
    std::atomic<bool> over{false};
    thread_group threads;
    threads.start("consumer", [&] {
        support::random_source random(100);
        while (!over.load()) {
            delay.write();
            line.arrive();
            dither(random, 100);
            if constexpr (std::is_same_v<Event, auto_reset_event>) {
                while (!event.try_wait()) {
                }
            } else {
                event.reset();
            }
            seen.store(queue.load(std::memory_order_relaxed), std::memory_order_relaxed);
            line.arrive();
        }
    });
    support::random_source random(101);
    const auto end = steady_clock::now() + litmus_time;
    for (int round = 1; !over.load(); ++round) {
        event.set();
        line.arrive();
        dither(random, 100);
        delay.write();
        queue.store(round, std::memory_order_relaxed);
        event.set();
        over.store(round == count || steady_clock::now() > end);
        line.arrive();
        if (seen.load(std::memory_order_relaxed) != round && !event.is_set()) ++lost;
        event.reset();
    }
    threads.join();
    return lost;
}

TEST(Trap01, ASetOnASetAutoResetEventIsNeverSkipped) {
    EXPECT_EQ(signals_lost_by_a_set_on_a_set_event<auto_reset_event>(rounds(60'000, 8'000)), 0);
}

TEST(Trap01, ASetOnASetManualResetEventIsNeverSkipped) {
    EXPECT_EQ(signals_lost_by_a_set_on_a_set_event<manual_reset_event>(rounds(60'000, 8'000)), 0);
}

// ---- 2: two wakes hit the same sleeper ----------------------------------------------------------

TEST(Trap02, TwoWakesReleaseTwoSleepersThoughNeitherRan) {
    if (!freezer::works) GTEST_SKIP() << "no frozen threads under this sanitizer";
    auto_reset_event event;
    std::atomic<std::uint32_t> word{0};
    std::atomic<int> results{0};
    thread_group threads;
    threads.start_many(2, "on the event", [&](int) { event.wait(), ++results; });
    threads.start_many(2, "on the address", [&](int) {
        if (tocsin::wait_on_address(&word, 0u) == tocsin::address_status::woken) ++results;
    });
    until_parked(&event, 2);
    until_parked(&word, 2);
    freezer frost;
    for (std::size_t i = 0; i < 4; ++i) {
        threads.until_asleep(i);
        frost.freeze(threads.handle(i));
    }
    event.set();
    event.set();
    EXPECT_EQ(tocsin::wake_by_address_one(&word), 1u);
    EXPECT_EQ(tocsin::wake_by_address_one(&word), 1u);
    frost.thaw();
    threads.join();
    EXPECT_EQ(results.load(), 4);
    EXPECT_FALSE(event.is_set());
}

// ---- 3: strangers share a slot ------------------------------------------------------------------

TEST(Trap03, WaitersOnAlignedNeighboursAreLeftAsleepByAThousandWakes) {
    constexpr std::size_t lines = 48;
    struct alignas(64) line {
        std::atomic<std::uint32_t> word{0};
        auto_reset_event event;
    };
    const auto memory = std::make_unique<std::array<line, lines + 1>>();
    thread_group threads;
    for (std::size_t i = 0; i < lines; ++i) {
        threads.start("stranger", [&, i] {
            if (i % 2 == 0) {
                (*memory)[i].event.wait();
            } else {
                (void)tocsin::wait_on_address(&(*memory)[i].word, 0u);
            }
        });
    }
    for (std::size_t i = 0; i < lines; ++i) {
        const line& each = (*memory)[i];
        if (i % 2 == 0) until_parked(&each.event, 1);
        if (i % 2 == 1) until_parked(&each.word, 1);
        support::until_sound_asleep(threads.id(i));
    }
    std::vector<long> before;
    for (std::size_t i = 0; i < lines; ++i) {
        before.push_back(support::switches_of(threads.id(i)).voluntary);
    }
    line& own = memory->back();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(tocsin::wake_by_address_all(&own.word), 0u);
        own.event.set();
        own.event.reset();
    }
    for (int i = 0; i < 50; ++i) {  // also with real hand-offs
        std::thread partner([&] { own.event.wait(); });
        own.event.set();
        partner.join();
    }
    for (std::size_t i = 0; i < lines; ++i) {
        EXPECT_EQ(support::switches_of(threads.id(i)).voluntary, before[i]);
    }
    for (std::size_t i = 0; i < lines; ++i) {
        (*memory)[i].event.set();
        tocsin::wake_by_address_all(&(*memory)[i].word);
    }
}

// ---- 4: a woken thread looks again, and may look for ever ---------------------------------------

TEST(Trap04, SetAndResetAtOnceReleaseEveryThreadThatWaited) {
    manual_reset_event event;
    for (int round = 0; round < rounds(100, 30); ++round) {
        thread_group threads;
        threads.start_many(3, "waiter", [&](int) { event.wait(); });
        until_parked(&event, 3);
        event.set();
        event.reset();
        threads.join();
        EXPECT_FALSE(event.is_set());
    }
}

// The word no longer holds what the sleeper expected, and nobody woke the sleeper. A sleeper that looked at the word in
// a loop would burn a processor from now on.
TEST(Trap04, ASleeperWhoseValueHasChangedSleepsOnWithoutBurningTime) {
    std::atomic<std::uint32_t> word{0};
    thread_group threads;
    threads.start("sleeper", [&] { (void)tocsin::wait_on_address(&word, 0u); });
    until_parked(&word, 1);
    threads.until_asleep(0);
    word.store(1);
    const auto burnt = support::cpu_time_of(threads.handle(0));
    const auto switched = support::switches_of(threads.id(0));
    std::this_thread::sleep_for(300ms);  // no fact to wait for: nothing must happen
    EXPECT_LT(support::cpu_time_of(threads.handle(0)) - burnt, 5ms);
    EXPECT_EQ(support::switches_of(threads.id(0)).voluntary, switched.voluntary);
    EXPECT_EQ(tocsin::wake_by_address_one(&word), 1u);
}

// ---- 5: a timeout eats the token ----------------------------------------------------------------

TEST(Trap05, TokensAreConservedWhileWaitsTimeOut) {
    auto_reset_event event;
    std::atomic<bool> taken{false};
    std::atomic<long> got{0};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 200);
        while (!enough.load()) {
            if (event.wait_for(nanoseconds(random.below(40'000))) == wait_status::signaled) {
                got.fetch_add(1);
                taken.store(true);
            }
        }
    });
    const long given = rounds(6000, 1500);
    for (long i = 0; i < given; ++i) {
        event.set();
        support::until("each token is taken", [&] { return taken.load(); });
        taken.store(false);
    }
    enough.store(true);
    threads.join();
    EXPECT_EQ(got.load(), given);
    EXPECT_FALSE(event.is_set());
}

// ---- 8: touching the event after the step that releases -----------------------------------------

TEST(Trap08, AnEventOnTheWaitersStackIsACorrectOneShot) {
    std::atomic<auto_reset_event*> request{nullptr};
    const int count = rounds(20'000, 6'000);
    thread_group threads;
    threads.start("setter", [&] {
        for (int i = 0; i < count; ++i) {
            auto_reset_event* event = nullptr;
            while ((event = request.exchange(nullptr)) == nullptr) std::this_thread::yield();
            event->set();
        }
    });
    for (int i = 0; i < count; ++i) {
        auto_reset_event answer;
        request.store(&answer);
        answer.wait();
    }
    threads.join();
}

// ---- 9: serial broadcast ------------------------------------------------------------------------

// No thread of a broadcast depends on the return of another thread of the broadcast. The setter has returned before the
// last threads are awake.
TEST(Trap09, ABroadcastReleasesHundreds) {
    manual_reset_event event;
    constexpr int waiters = 300;
    for (int round = 0; round < rounds(5, 2); ++round) {
        thread_group threads;
        threads.start_many(waiters, "waiter", [&](int) { event.wait(); });
        until_parked(&event, waiters);
        event.set();
        event.reset();
        threads.join();
    }
}

// ---- 11: a periodic look, as a hedge ------------------------------------------------------------

TEST(Trap11, AnIdleWaiterIsNeverWoken) {
    manual_reset_event event;
    auto_reset_event timed;
    std::stop_source stop;
    std::atomic<std::uint64_t> wide{0};
    std::atomic<std::uint8_t> narrow{0};
    tocsin::word_lock<> lock;
    lock.lock();
    thread_group threads;
    threads.start("event", [&] { event.wait(); });
    threads.start("event, timed", [&] { (void)timed.wait_for(1h); });
    threads.start("event, system clock",
                  [&] { (void)timed.wait_until(std::chrono::system_clock::now() + 1h); });
    threads.start("event, stoppable", [&] { (void)event.wait(stop.get_token()); });
    threads.start("8 bytes", [&] { (void)tocsin::wait_on_address(&wide, std::uint64_t{0}); });
    threads.start("1 byte, timed", [&] { (void)tocsin::wait_on_address(&narrow, std::uint8_t{0}, 1h); });
    threads.start("lock", [&] { lock.lock(), lock.unlock(); });
    threads.start("lock, timed", [&] {
        if (lock.try_lock_for(1h)) lock.unlock();
    });
    until_parked(&event, 2);
    until_parked(&timed, 2);
    until_parked(&wide, 1);
    until_parked(&narrow, 1);
    until_parked(&lock, 2);
    std::vector<support::switches> switched;
    std::vector<nanoseconds> burnt;
    for (std::size_t i = 0; i < threads.size(); ++i) support::until_sound_asleep(threads.id(i));
    for (std::size_t i = 0; i < threads.size(); ++i) {
        switched.push_back(support::switches_of(threads.id(i)));
        burnt.push_back(support::cpu_time_of(threads.handle(i)));
    }
    std::this_thread::sleep_for(2300ms);  // no fact to wait for: longer than the two seconds seen elsewhere
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const auto now = support::switches_of(threads.id(i));
        EXPECT_EQ(now.voluntary, switched[i].voluntary) << i;
        EXPECT_EQ(now.forced, switched[i].forced) << i;
        EXPECT_LT(support::cpu_time_of(threads.handle(i)) - burnt[i], 1ms) << i;
    }
    event.set();
    timed.set();
    timed.set();
    tocsin::wake_by_address_all(&wide);
    tocsin::wake_by_address_all(&narrow);
    lock.unlock();
}

// ---- 12: a count in a field that is too narrow --------------------------------------------------

TEST(Trap12, FifteenHundredWaitersAreReleasedByFifteenHundredSets) {
    constexpr std::size_t waiters = 1500;
    const support::small_stacks stacks;
    auto_reset_event event;
    std::atomic<std::uint8_t> byte{0};
    std::atomic<std::size_t> released{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < waiters; ++i) {
        threads.emplace_back([&] {
            event.wait();
            (void)tocsin::wait_on_address(&byte, std::uint8_t{0});
            released.fetch_add(1);
        });
    }
    until_parked(&event, waiters);
    for (std::size_t i = 0; i < waiters; ++i) event.set();
    EXPECT_FALSE(event.is_set());
    until_parked(&byte, waiters);
    EXPECT_EQ(tocsin::wake_by_address_n(&byte, 1100), 1100u);
    support::until("those are released", [&] { return released.load() == 1100; });
    EXPECT_EQ(tocsin::wake_by_address_all(&byte), waiters - 1100);
    for (auto& each : threads) each.join();
    EXPECT_EQ(released.load(), waiters);
}

// ---- 13: the timeout begins again after an interruption ------------------------------------------

#if TOCSIN_ON_POSIX
TEST(Trap13, SignalsDoNotProlongATimedWait) {
    const support::signal_counter signals(SIGUSR1);
    auto_reset_event event;
    std::atomic<std::uint16_t> word{0};
    tocsin::word_lock<> lock;
    lock.lock();
    // On a busy machine, a wait may be over before the first signal: then the thread waits again.
    const auto until_signals_come = [&](auto wait) {
        const long before = signals.count();
        do {
            wait();
        } while (freezer::works && signals.count() == before);
    };
    thread_group threads;
    const auto begin = steady_clock::now();
    threads.start("event", [&] {
        until_signals_come([&] { EXPECT_EQ(event.wait_for(80ms), wait_status::timed_out); });
    });
    threads.start("event, system clock", [&] {
        until_signals_come([&] {
            const auto at = std::chrono::system_clock::now() + 80ms;
            EXPECT_EQ(event.wait_until(at), wait_status::timed_out);
            EXPECT_GE(std::chrono::system_clock::now(), at);
        });
    });
    threads.start("address", [&] {
        until_signals_come([&] {
            EXPECT_EQ(tocsin::wait_on_address(&word, std::uint16_t{0}, 80ms),
                      tocsin::address_status::timed_out);
        });
    });
    threads.start("lock", [&] { until_signals_come([&] { EXPECT_FALSE(lock.try_lock_for(80ms)); }); });
    for (std::size_t i = 0; i < 4; ++i) (void)threads.id(i);
    while (threads.finished() < 4) {  // for as long as it takes: a timeout that began again would never end
        for (std::size_t i = 0; i < 4; ++i) {
            if (!threads.finished(i)) pthread_kill(threads.handle(i), SIGUSR1);
        }
        std::this_thread::sleep_for(1ms);  // no fact to wait for: signals at intervals
        if (steady_clock::now() - begin > support::patience()) support::give_up("prolonged by signals");
    }
    EXPECT_GE(steady_clock::now() - begin, 80ms);
    threads.join();
    lock.unlock();
    EXPECT_TRUE(signals.count() > 0 || !freezer::works);
}
#endif

// ---- 14, 15, 26: a wake that sees nobody, while somebody goes to sleep --------------------------

// In each round one thread looks and goes to sleep, and another changes the word and wakes the first. No round may
// hang, whatever the memory order of that store. The test adjusts the waker's delay until about half of the waits find
// the change and half must be woken, because then the two threads meet.
void change_and_wake_against_look_and_sleep(std::memory_order order, spin_policy policy, int count) {
    alignas(64) std::atomic<std::uint32_t> word{0};
    alignas(64) std::atomic<int> slept{0};
    slow_stores delay;
    starting_line line(2);
    thread_group threads;
    std::atomic<bool> over{false};
    threads.start("sleeper", [&] {
        while (!over.load()) {
            delay.write();
            line.arrive();
            while (word.load(std::memory_order_relaxed) == 0) {
                const auto how = tocsin::wait_on_address(&word, 0u, tocsin::deadline::never(), policy);
                if (how == tocsin::address_status::woken) slept.fetch_add(1);
            }
            line.arrive();
        }
    });
    support::random_source random(301);
    std::int64_t pause = 100;
    const auto end = steady_clock::now() + litmus_time;
    int done = 0;
    while (!over.load()) {
        word.store(0);
        const int before = slept.load();
        line.arrive();
        dither(random, 50);
        for (std::int64_t left = pause; left > 0; --left) asm volatile("" ::: "memory");
        delay.write();
        word.store(1, order);
        tocsin::wake_by_address_one(&word);
        over.store(++done == count || steady_clock::now() > end);
        line.arrive();
        pause = std::clamp<std::int64_t>(pause + (slept.load() == before ? 8 : -8), 0, 20'000);
    }
    threads.join();
    std::printf("%d of %d were woken\n", slept.load(), done);
}

TEST(Trap14, AWakeAfterARelaxedStoreIsNeverSkipped) {
    change_and_wake_against_look_and_sleep(std::memory_order_relaxed, spin_policy::none(),
                                           rounds(15'000, 3'000));
}

TEST(Trap15, AWakeAfterASequentiallyConsistentStoreIsNeverSkipped) {
    change_and_wake_against_look_and_sleep(std::memory_order_seq_cst, spin_policy(), rounds(8'000, 2'000));
}

TEST(Trap26, AWakeAfterAReleaseStoreIsNeverSkipped) {
    change_and_wake_against_look_and_sleep(std::memory_order_release, spin_policy::none(),
                                           rounds(15'000, 3'000));
}

TEST(Trap14, AnEventsSetIsNeverSkippedWhileAWaiterGoesToSleep) {
    auto_reset_event there;
    auto_reset_event back;
    const int count = rounds(15'000, 3'000);
    thread_group threads;
    threads.start("answers", [&] {
        support::random_source random(302);
        for (int i = 0; i < count; ++i) {
            there.wait(spin_policy::none());
            dither(random, 300);
            back.set();
        }
    });
    support::random_source random(303);
    for (int i = 0; i < count; ++i) {
        there.set();
        dither(random, 300);
        back.wait(spin_policy::none());
    }
    threads.join();
    EXPECT_FALSE(there.is_set());
    EXPECT_FALSE(back.is_set());
}

// ---- 16, 17: spinning and napping instead of sleeping -------------------------------------------

#if TOCSIN_ON_POSIX
// A wait makes only one system call, to sleep. It takes no nap before that, does not poll, and yields seldom.
TEST(Trap17, AWaitSleepsOnceAndTakesNoNaps) {
    for (const auto longest : {nanoseconds(50us), nanoseconds(2ms), nanoseconds(40ms)}) {
        const auto calls = support::system_calls_of([&] {
            auto_reset_event event;
            if (event.wait_for(longest) != wait_status::timed_out) _exit(1);
        });
        REQUIRE_KNOWN_CALLS(calls);
        EXPECT_EQ(calls.exit_code, 0);
        for (const long nap :
             {long{SYS_nanosleep}, long{SYS_clock_nanosleep}, long{SYS_ppoll}, long{SYS_pselect6}}) {
            EXPECT_EQ(calls.count(nap), 0u) << testing::PrintToString(calls);
        }
        EXPECT_LE(calls.count(SYS_sched_yield), 16u) << testing::PrintToString(calls);
        EXPECT_LE(calls.count(SYS_futex), 3u) << testing::PrintToString(calls);
    }
}
#endif

TEST(Trap16, AFutileSleeperBurnsNoTime) {
    auto_reset_event event;
    thread_group threads;
    threads.start("sleeper", [&] { event.wait(); });
    until_parked(&event, 1);
    threads.until_asleep(0);
    const auto before = support::cpu_time_of(threads.handle(0));
    std::this_thread::sleep_for(300ms);  // no fact to wait for: nothing must happen
    EXPECT_LT(support::cpu_time_of(threads.handle(0)) - before, 1ms);
    event.set();
}

// ---- 20: counts beyond an int -------------------------------------------------------------------

TEST(Trap20, AWakeOfMoreThanAnIntHoldsWakesAll) {
    std::atomic<std::uint32_t> word{0};
    thread_group threads;
    threads.start_many(6, "waiter", [&](int) { (void)tocsin::wait_on_address(&word, 0u); });
    until_parked(&word, 6);
    EXPECT_EQ(tocsin::wake_by_address_n(&word, std::numeric_limits<std::size_t>::max()), 6u);
    threads.join();
}

// ---- 21: spinning on what a thread of lower priority holds --------------------------------------

#if TOCSIN_ON_POSIX
// An urgent thread and an ordinary one share one processor and one event. If the urgent thread spun on a lock that the
// ordinary one holds, it would use up all the processor's time.
TEST(Trap21, AnUrgentThreadNeverSpinsOnAnOrdinaryOne) {
    auto_reset_event event;
    std::atomic<std::uint32_t> word{0};
    std::atomic<bool> permitted{true};
    std::atomic<bool> enough{false};
    const auto pin = [] {
        cpu_set_t all;
        cpu_set_t one;
        sched_getaffinity(0, sizeof all, &all);
        CPU_ZERO(&one);
        for (int processor = CPU_SETSIZE - 1; processor >= 0; --processor) {
            if (!CPU_ISSET(processor, &all)) continue;
            CPU_SET(processor, &one);
            break;
        }
        return sched_setaffinity(0, sizeof one, &one) == 0;
    };
    nanoseconds urgent_time{};
    thread_group threads;
    threads.start("ordinary", [&] {
        if (!pin()) permitted.store(false);
        support::random_source random(400);
        while (!enough.load()) {
            event.set();
            (void)event.wait_for(nanoseconds(random.below(3'000)));
            (void)tocsin::wait_on_address(&word, 0u, nanoseconds(random.below(3'000)));
            tocsin::wake_by_address_all(&word);
        }
    });
    threads.start("urgent", [&] {
        sched_param priority{};
        priority.sched_priority = 1;
        if (!pin() || pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) != 0) {
            permitted.store(false);
        } else {
            support::random_source random(401);
            const auto before = support::cpu_time_of(pthread_self());
            for (int i = 0; i < rounds(1500, 400); ++i) {
                (void)event.wait_for(nanoseconds(50'000 + random.below(200'000)));
                event.set();
                (void)tocsin::wait_on_address(&word, 0u, nanoseconds(50'000));
                tocsin::wake_by_address_all(&word);
            }
            urgent_time = support::cpu_time_of(pthread_self()) - before;
        }
        enough.store(true);
    });
    threads.join();
    if (!permitted.load()) GTEST_SKIP() << "no permission for real-time priorities";
    EXPECT_LT(urgent_time, rounds(1, 4) * 700ms);
}
#endif

// ---- 24: a reset right after the wait is dropped ------------------------------------------------

TEST(Trap24, AResetRightAfterTheWaitIsEffective) {
    manual_reset_event there;
    manual_reset_event back;
    const int count = rounds(15'000, 3'000);
    long value = 0;
    thread_group threads;
    threads.start("answers", [&] {
        for (int i = 0; i < count; ++i) {
            there.wait();
            there.reset();
            ++value;
            back.set();
        }
    });
    for (int i = 0; i < count; ++i) {
        there.set();
        back.wait();
        back.reset();
        ASSERT_FALSE(back.is_set());
        ASSERT_FALSE(there.is_set());
        ASSERT_EQ(value, i + 1);
    }
    threads.join();
}

TEST(Trap24, ASetRightAfterTheResetIsEffective) {
    manual_reset_event event;
    for (int i = 0; i < rounds(200, 60); ++i) {
        thread_group threads;
        threads.start_many(2, "waiter", [&](int) {
            event.wait();
            event.reset();
            event.set();
        });
        until_parked(&event, 2);
        event.set();
        threads.join();
        ASSERT_TRUE(event.is_set());
        event.reset();
    }
}

// ---- 25: one set delivered twice ----------------------------------------------------------------

TEST(Trap25, OneSetIsDeliveredOnce) {
    auto_reset_event event;
    std::atomic<long> delivered{0};
    std::atomic<bool> enough{false};
    thread_group threads;
    threads.start_many(3, "consumer", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 500);
        while (!enough.load()) {
            bool mine = true;
            switch (random.below(3)) {
                case 0: mine = event.try_wait(); break;
                case 1:
                    mine = event.wait_for(nanoseconds(random.below(30'000))) == wait_status::signaled;
                    break;
                default: mine = event.wait_for(5ms) == wait_status::signaled;
            }
            if (mine) delivered.fetch_add(1);
            if (!mine && random.one_in(4)) std::this_thread::yield();
        }
    });
    const long count = rounds(20'000, 4'000);
    for (long i = 1; i <= count; ++i) {
        event.set();
        support::until("a set arrives", [&] { return delivered.load() >= i; });
        ASSERT_EQ(delivered.load(), i);
    }
    enough.store(true);
    threads.join();
    EXPECT_EQ(delivered.load(), count);
    EXPECT_FALSE(event.is_set());
}

}  // namespace
