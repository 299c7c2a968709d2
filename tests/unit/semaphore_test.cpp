// SPDX-License-Identifier: Apache-2.0
// The contract of semaphores: first the clauses of the standard's <semaphore> in our words, then what tocsin adds. For
// semaphores as sources see semaphore_source_test.cpp.
#include "clocks.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/semaphore.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;
using steady = std::chrono::steady_clock;

constinit counting_semaphore<8> at_compile_time(3);
constinit binary_semaphore empty_at_compile_time(0);

// How many permits are free. Takes them and gives them back, so only for tests in which nobody else does anything.
template <std::ptrdiff_t Most>
int free_in(counting_semaphore<Most>& semaphore) {
    int count = 0;
    while (semaphore.try_acquire()) ++count;
    semaphore.release(count);
    return count;
}

// ---- the standard's clauses ---------------------------------------------------------------------

TEST(Semaphore, HasTheStandardsTypesAndConstants) {
    static_assert(std::is_same_v<binary_semaphore, counting_semaphore<1>>);
    static_assert(counting_semaphore<5>::max() >= 5 && binary_semaphore::max() >= 1);
    static_assert(counting_semaphore<0>::max() >= 0);
    static_assert(counting_semaphore<>::max() >= 1'000'000);
    static_assert(noexcept(counting_semaphore<5>::max()));
    static_assert(std::is_same_v<decltype(counting_semaphore<5>::max()), std::ptrdiff_t>);
    static_assert(!std::is_copy_constructible_v<binary_semaphore> &&
                  !std::is_copy_assignable_v<binary_semaphore> &&
                  !std::is_move_constructible_v<binary_semaphore>);
    static_assert(!std::is_default_constructible_v<binary_semaphore>);
    static_assert(!std::is_convertible_v<std::ptrdiff_t, binary_semaphore>, "the constructor is explicit");
    static_assert(std::is_same_v<decltype(std::declval<binary_semaphore&>().release()), void>);
    static_assert(std::is_same_v<decltype(std::declval<binary_semaphore&>().acquire()), void>);
    static_assert(std::is_same_v<decltype(std::declval<binary_semaphore&>().try_acquire()), bool>);
    static_assert(noexcept(std::declval<binary_semaphore&>().try_acquire()));
    static_assert(std::is_same_v<decltype(std::declval<binary_semaphore&>().try_acquire_for(1s)), bool>);
    static_assert(
        std::is_same_v<decltype(std::declval<binary_semaphore&>().try_acquire_until(steady::now())), bool>);
}

TEST(Semaphore, IsFourBytesThatOwnNothing) {
    static_assert(sizeof(counting_semaphore<>) == 4 && sizeof(binary_semaphore) == 4);
#if !TOCSIN_CHECKED
    static_assert(std::is_trivially_destructible_v<counting_semaphore<>>);
#endif
    EXPECT_EQ(free_in(at_compile_time), 3);
    EXPECT_FALSE(empty_at_compile_time.try_acquire());
}

TEST(Semaphore, BeginsWithTheDesiredCount) {
    for (const int desired : {0, 1, 5}) {
        counting_semaphore<5> semaphore(desired);
        EXPECT_EQ(free_in(semaphore), desired);
    }
}

TEST(Semaphore, AReleaseAddsItsUpdate) {
    counting_semaphore<10> semaphore(1);
    semaphore.release();
    EXPECT_EQ(free_in(semaphore), 2);
    semaphore.release(3);
    EXPECT_EQ(free_in(semaphore), 5);
    semaphore.release(0);
    EXPECT_EQ(free_in(semaphore), 5);
    semaphore.release(5);
    EXPECT_EQ(free_in(semaphore), 10);
}

TEST(Semaphore, CountsToItsGreatestMax) {
    counting_semaphore<> semaphore(counting_semaphore<>::max() - 1);
    semaphore.release();
    EXPECT_THROW(semaphore.release(), std::system_error);
    EXPECT_TRUE(semaphore.try_acquire(counting_semaphore<>::max()));
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(Semaphore, TryAcquireTakesOnlyWhatIsThere) {
    counting_semaphore<2> semaphore(1);
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.release();
    EXPECT_TRUE(semaphore.try_acquire());
}

TEST(Semaphore, AcquireTakesAtOnceWhatIsThere) {
    binary_semaphore semaphore(1);
    semaphore.acquire();
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(Semaphore, AcquireBlocksUntilAReleaseAndSeesWhatCameBefore) {
    for (const bool asleep : {false, true}) {
        binary_semaphore semaphore(0);
        int data = 0;
        thread_group threads;
        threads.start("acquirer", [&] {
            semaphore.acquire();
            EXPECT_EQ(data, 42);
        });
        if (asleep) until_parked(&semaphore, 1);
        data = 42;
        semaphore.release();
        threads.join();
        EXPECT_FALSE(semaphore.try_acquire());
    }
}

TEST(Semaphore, AReleaseOfSeveralReleasesSoManyWaiters) {
    counting_semaphore<> semaphore(0);
    thread_group threads;
    threads.start_many(5, "acquirer", [&](int) { semaphore.acquire(); });
    until_parked(&semaphore, 5);
    semaphore.release(3);
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 2u);
    threads.until_finished(3);
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.release(4);
    threads.join();
    EXPECT_EQ(free_in(semaphore), 2);
}

TEST(Semaphore, ATimedAcquireEndsAtItsDeadlineAndNotBefore) {
    binary_semaphore semaphore(0);
    for (const auto longest : {1ns, 1'000'000ns, 20'000'000ns}) {
        const auto begin = steady::now();
        EXPECT_FALSE(semaphore.try_acquire_for(longest));
        EXPECT_GE(steady::now() - begin, longest);
    }
    const auto at = steady::now() + 5ms;
    EXPECT_FALSE(semaphore.try_acquire_until(at));
    EXPECT_GE(steady::now(), at);
    const auto wall = std::chrono::system_clock::now() + 5ms;
    EXPECT_FALSE(semaphore.try_acquire_until(wall));
    EXPECT_GE(std::chrono::system_clock::now(), wall);
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 0u);
}

TEST(Semaphore, ATimedAcquireTriesEvenIfItsTimeHasPassed) {
    counting_semaphore<4> semaphore(4);
    EXPECT_TRUE(semaphore.try_acquire_for(0s));
    EXPECT_TRUE(semaphore.try_acquire_for(-1h));
    EXPECT_TRUE(semaphore.try_acquire_until(steady::time_point()));
    EXPECT_TRUE(semaphore.try_acquire_until(std::chrono::system_clock::time_point::min()));
    EXPECT_FALSE(semaphore.try_acquire_for(0s));
    EXPECT_FALSE(semaphore.try_acquire_for(-1h));
    EXPECT_FALSE(semaphore.try_acquire_until(steady::time_point()));
}

TEST(Semaphore, TheLongestTimesNeverEnd) {
    binary_semaphore semaphore(0);
    thread_group threads;
    threads.start("for", [&] { EXPECT_TRUE(semaphore.try_acquire_for(std::chrono::hours::max())); });
    threads.start("until", [&] { EXPECT_TRUE(semaphore.try_acquire_until(steady::time_point::max())); });
    until_parked(&semaphore, 2);
    semaphore.release();
    semaphore.release();
    threads.join();
}

// ---- order, and exactness -----------------------------------------------------------------------

TEST(Semaphore, WaitersAreServedInTheOrderTheyQueued) {
    counting_semaphore<> semaphore(0);
    std::atomic<int> served{0};
    thread_group threads;
    for (int i = 0; i != 5; ++i) {
        threads.start([&, i] {
            semaphore.acquire(spin_policy::none());
            EXPECT_EQ(served.fetch_add(1), i);
        });
        until_parked(&semaphore, static_cast<std::size_t>(i) + 1);
    }
    for (std::size_t i = 0; i != 5; ++i) {
        semaphore.release();
        EXPECT_EQ(tocsin::waiting_on(&semaphore), 4 - i) << "handed over when release() returns";
        threads.until_finished(i + 1);
    }
}

TEST(Semaphore, APermitThatWasHandedOverIsNotThereForOthers) {
    for (int round = 0; round != rounds(100, 30); ++round) {
        binary_semaphore semaphore(0);
        thread_group threads;
        threads.start("sleeper", [&] { semaphore.acquire(spin_policy::none()); });
        until_parked(&semaphore, 1);
        semaphore.release();
        EXPECT_FALSE(semaphore.try_acquire());
        threads.join();
    }
}

// A binary semaphore counts the free permits: one that is handed over makes room for another.
TEST(Semaphore, AHandedOverPermitDoesNotCountAgainstMax) {
    binary_semaphore semaphore(0);
    thread_group threads;
    threads.start_many(2, "sleeper", [&](int) { semaphore.acquire(spin_policy::none()); });
    until_parked(&semaphore, 2);
    semaphore.release();
    semaphore.release();
    semaphore.release();
    threads.join();
    EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
}

TEST(Semaphore, ATimeoutNeverEatsAPermit) {
    for (int round = 0; round != rounds(300, 60); ++round) {
        binary_semaphore semaphore(0);
        int taken = 0;
        thread_group threads;
        threads.start("timed", [&] { taken = semaphore.try_acquire_for(20us) ? 1 : 0; });
        std::this_thread::sleep_for(10us);  // no fact to wait for: at about the deadline
        semaphore.release();
        threads.join();
        EXPECT_EQ(taken + (semaphore.try_acquire() ? 1 : 0), 1);
    }
}

TEST(Semaphore, MayBeDestroyedByTheThreadThatTookItsLastPermit) {
    for (int round = 0; round != rounds(300, 100); ++round) {
        auto* const semaphore = new counting_semaphore<>(0);
        thread_group threads;
        threads.start("owner", [=] {
            if (round % 3 == 0) {
                while (!semaphore->try_acquire()) std::this_thread::yield();
            } else if (round % 3 == 1) {
                semaphore->acquire(2);
            } else {
                semaphore->acquire();
            }
            delete semaphore;
        });
        if (round % 2 == 0 && round % 3 != 0) until_parked(semaphore, 1);
        semaphore->release(round % 3 == 1 ? 2 : 1);
        threads.join();
    }
}

// ---- several permits at once --------------------------------------------------------------------

TEST(SeveralPermits, AreTakenTogetherOrNotAtAll) {
    counting_semaphore<10> semaphore(3);
    EXPECT_FALSE(semaphore.try_acquire(4));
    EXPECT_EQ(free_in(semaphore), 3);
    EXPECT_TRUE(semaphore.try_acquire(3));
    EXPECT_TRUE(semaphore.try_acquire(0));
    semaphore.acquire(0);
    semaphore.release(7);
    semaphore.acquire(7);
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.release(2);
    EXPECT_FALSE(semaphore.try_acquire_for(3, 1ms));
    EXPECT_FALSE(semaphore.try_acquire_until(3, steady::now() + 1ms));
    EXPECT_EQ(free_in(semaphore), 2) << "what the waits had collected is back";
    EXPECT_TRUE(semaphore.try_acquire_for(2, 1ms));
    semaphore.release(2);
    EXPECT_TRUE(semaphore.try_acquire_until(2, steady::now()));
}

TEST(SeveralPermits, AreCollectedByTheOldestWaiter) {
    counting_semaphore<> semaphore(1);
    thread_group threads;
    const auto big = threads.start("wants 3", [&] { semaphore.acquire(3, spin_policy::none()); });
    until_parked(&semaphore, 1);
    EXPECT_FALSE(semaphore.try_acquire()) << "the waiter has collected it";
    const auto small = threads.start("wants 1", [&] { semaphore.acquire(spin_policy::none()); });
    until_parked(&semaphore, 2);
    semaphore.release();
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 2u) << "nobody overtakes the oldest";
    semaphore.release();
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 1u);
    threads.until_finished(1);
    EXPECT_TRUE(threads.finished(big));
    EXPECT_FALSE(threads.finished(small));
    semaphore.release();
}

// Two threads that each want all: if both held some, neither would get the others.
TEST(SeveralPermits, TwoThatWantSeveralDoNotDeadlock) {
    counting_semaphore<4> semaphore(0);
    thread_group threads;
    threads.start_many(2, "wants 4", [&](int) {
        semaphore.acquire(4, spin_policy::none());
        semaphore.release(4);
    });
    until_parked(&semaphore, 2);
    for (int i = 0; i != 4; ++i) semaphore.release();
    threads.join();
    EXPECT_EQ(free_in(semaphore), 4);
}

TEST(SeveralPermits, AWaitThatGivesUpHandsOnWhatItHasCollected) {
    using support::hand_clock;
    for (const bool by_stop : {false, true}) {
        counting_semaphore<> semaphore(2);
        std::stop_source stop;
        hand_clock::set(0);
        thread_group threads;
        threads.start("gives up", [&] {
            const auto how = semaphore.try_acquire_until(4, hand_clock::time_point(3ms), stop.get_token());
            EXPECT_EQ(how, by_stop ? wait_status::stopped : wait_status::timed_out);
        });
        until_parked(&semaphore, 1);
        threads.start("small 1", [&] { semaphore.acquire(); });
        threads.start("small 2", [&] { semaphore.acquire(); });
        until_parked(&semaphore, 3);
        if (by_stop) {
            stop.request_stop();
        } else {
            hand_clock::set(3);
        }
        threads.join();
        EXPECT_FALSE(semaphore.try_acquire());
    }
}

TEST(SeveralPermits, OneReleaseServesWaitersOfAllSizes) {
    counting_semaphore<> semaphore(0);
    thread_group threads;
    for (const int wanted : {2, 1, 3}) {
        threads.start([&semaphore, wanted] { semaphore.acquire(wanted, spin_policy::none()); });
        until_parked(&semaphore, threads.size());
    }
    semaphore.release(7);
    threads.join();
    EXPECT_EQ(free_in(semaphore), 1);
}

// ---- stops --------------------------------------------------------------------------------------

TEST(SemaphoreStop, EndsAWait) {
    counting_semaphore<> semaphore(0);
    std::stop_source stop;
    thread_group threads;
    const std::stop_token token = stop.get_token();
    threads.start([&] { EXPECT_EQ(semaphore.acquire(token), wait_status::stopped); });
    threads.start([&] { EXPECT_EQ(semaphore.acquire(2, token), wait_status::stopped); });
    threads.start([&] { EXPECT_EQ(semaphore.try_acquire_for(1h, token), wait_status::stopped); });
    threads.start(
        [&] { EXPECT_EQ(semaphore.try_acquire_until(steady::now() + 1h, token), wait_status::stopped); });
    threads.start(
        [&] { EXPECT_EQ(semaphore.try_acquire_until(2, steady::now() + 1h, token), wait_status::stopped); });
    until_parked(&semaphore, 5);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 0u);
    semaphore.release();
    EXPECT_EQ(free_in(semaphore), 1);
}

TEST(SemaphoreStop, ComesAfterAFreePermit) {
    std::stop_source stop;
    stop.request_stop();
    counting_semaphore<3> semaphore(3);
    EXPECT_EQ(semaphore.acquire(stop.get_token()), wait_status::signaled);
    EXPECT_EQ(semaphore.try_acquire_for(2, 0s, stop.get_token()), wait_status::signaled);
    EXPECT_EQ(semaphore.acquire(stop.get_token()), wait_status::stopped);
    EXPECT_EQ(semaphore.try_acquire_for(1h, stop.get_token()), wait_status::stopped);
}

// ---- system calls, policies, diagnosis ----------------------------------------------------------

TEST(Semaphore, EverySpinPolicyEndsWithThePermit) {
    for (const auto spin : {spin_policy::none(), spin_policy::adaptive(), spin_policy::fixed(50us)}) {
        binary_semaphore semaphore(0);
        thread_group threads;
        threads.start([&] {
            semaphore.acquire(spin);
            EXPECT_TRUE(semaphore.try_acquire_for(1h, spin));
            EXPECT_FALSE(semaphore.try_acquire_until(steady::now() + 1us, spin));
        });
        semaphore.release();
        until_parked(&semaphore, 1);
        semaphore.release();
        threads.join();
    }
}

#if TOCSIN_ON_POSIX
TEST(Semaphore, NeverEntersTheKernelIfNobodyNeedsToSleep) {
    const auto calls = support::system_calls_of([] {
        counting_semaphore<> semaphore(0);
        for (int i = 0; i != 100; ++i) {
            semaphore.release(3);
            semaphore.acquire();
            if (!semaphore.try_acquire(2)) _exit(1);
            if (semaphore.try_acquire() || semaphore.try_acquire_for(0s)) _exit(2);
            if (semaphore.try_acquire_until(steady::time_point())) _exit(3);
        }
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}
#endif

TEST(Semaphore, AWaitIsListedAndNamed) {
    counting_semaphore<> semaphore(0);
    tocsin::name_address(&semaphore, "connections");
    thread_group threads;
    threads.start([&] { semaphore.acquire(2); });
    until_parked(&semaphore, 1);
    const auto all = tocsin::parked_waits();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].what, tocsin::parked_wait::kind::semaphore);
    EXPECT_EQ(all[0].address, &semaphore);
    EXPECT_NE(tocsin::describe_parked_waits().find("semaphore "), std::string::npos);
    EXPECT_NE(tocsin::describe_parked_waits().find("connections"), std::string::npos);
    tocsin::name_address(&semaphore, "");
    semaphore.release(2);
}

// ---- misuse -------------------------------------------------------------------------------------

#if defined(__cpp_exceptions)
template <class Exception, class Call>
void expect_refusal(const void* semaphore, const char* part, Call call) {
    char address[32];
    std::snprintf(address, sizeof address, "%p", semaphore);
    try {
        call();
        ADD_FAILURE() << "not refused: " << part;
    } catch (const Exception& why) {
        EXPECT_NE(std::string(why.what()).find(part), std::string::npos) << why.what();
        EXPECT_NE(std::string(why.what()).find(address), std::string::npos) << why.what();
    }
}

TEST(SemaphoreRefuses, AReleaseBeyondMaxIsRefusedAndChangesNothing) {
    counting_semaphore<5> semaphore(3);
    const auto refused = [&](std::ptrdiff_t update) {
        expect_refusal<std::system_error>(&semaphore, "more than max()", [&] { semaphore.release(update); });
        EXPECT_EQ(free_in(semaphore), 3);
    };
    refused(3);
    refused(1'000'000);
    refused(std::numeric_limits<std::ptrdiff_t>::max());
    try {
        semaphore.release(3);
    } catch (const std::system_error& why) {
        EXPECT_EQ(why.code(), std::errc::value_too_large);
    }
    binary_semaphore full(1);
    EXPECT_THROW(full.release(), std::system_error);
    counting_semaphore<0> never(0);
    EXPECT_THROW(never.release(), std::system_error);
    never.release(0);
}

TEST(SemaphoreRefuses, ANegativeReleaseIsRefused) {
    counting_semaphore<5> semaphore(3);
    for (const std::ptrdiff_t bad : {std::ptrdiff_t{-1}, std::numeric_limits<std::ptrdiff_t>::min()}) {
        expect_refusal<std::invalid_argument>(&semaphore, "release", [&] { semaphore.release(bad); });
    }
    EXPECT_EQ(free_in(semaphore), 3);
}

TEST(SemaphoreRefuses, ABadReleaseIsRefusedAlsoWhileAThreadWaits) {
    counting_semaphore<5> semaphore(0);
    thread_group threads;
    threads.start([&] { semaphore.acquire(); });
    until_parked(&semaphore, 1);
    EXPECT_THROW(semaphore.release(-1), std::invalid_argument);
    EXPECT_THROW(semaphore.release(6), std::system_error);
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 1u);
    semaphore.release(0);
    EXPECT_EQ(tocsin::waiting_on(&semaphore), 1u);
    semaphore.release(5);
    threads.join();
    EXPECT_EQ(free_in(semaphore), 4);
}

TEST(SemaphoreRefuses, ANumberOfPermitsThatCannotBeTakenIsRefused) {
    counting_semaphore<5> semaphore(3);
    std::stop_source stop;
    for (const std::ptrdiff_t bad : {std::ptrdiff_t{-1}, std::ptrdiff_t{6}}) {
        using refused = std::invalid_argument;
        const auto token = stop.get_token();
        expect_refusal<refused>(&semaphore, "acquire", [&] { semaphore.acquire(bad); });
        expect_refusal<refused>(&semaphore, "acquire", [&] { (void)semaphore.acquire(bad, token); });
        expect_refusal<refused>(&semaphore, "try_acquire", [&] { (void)semaphore.try_acquire(bad); });
        expect_refusal<refused>(&semaphore, "acquire_for", [&] { (void)semaphore.try_acquire_for(bad, 1s); });
        expect_refusal<refused>(&semaphore, "acquire_for",
                                [&] { (void)semaphore.try_acquire_for(bad, 1s, token); });
        expect_refusal<refused>(&semaphore, "acquire_until",
                                [&] { (void)semaphore.try_acquire_until(bad, steady::now()); });
        expect_refusal<refused>(&semaphore, "acquire_until",
                                [&] { (void)semaphore.try_acquire_until(bad, steady::now(), token); });
    }
    EXPECT_EQ(free_in(semaphore), 3);
}

TEST(SemaphoreRefuses, AFirstCountOutOfRangeIsRefused) {
    EXPECT_THROW(counting_semaphore<5>(-1), std::invalid_argument);
    EXPECT_THROW(counting_semaphore<5>(6), std::invalid_argument);
    EXPECT_THROW(binary_semaphore(2), std::invalid_argument);
}
#endif

#if TOCSIN_CHECKED
void destroy_with_a_waiter() {
    auto* const semaphore = new binary_semaphore(0);
    support::start_unjoined([semaphore] { semaphore->acquire(); });
    until_parked(semaphore, 1);
    delete semaphore;
}

TEST(SemaphoreMisuse, DestroyingOneWithAWaiterIsNamed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter(), "counting_semaphore.*destroy.*wait");
}
#endif

}  // namespace
