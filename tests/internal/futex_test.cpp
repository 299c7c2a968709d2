// SPDX-License-Identifier: Apache-2.0
// What src/platform/futex/futex.hpp promises, for every backend that builds on this machine.
#include "platform/futex/futex.hpp"

#include "child.hpp"
#include "clocks.hpp"
#include "facts.hpp"
#include "pages.hpp"
#include "platform/futex/condition_wait.hpp"
#include "platform/futex/relative_sleep.hpp"
#include "platform/system/kernel_time.hpp"
#include "random.hpp"
#include "refused_calls.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sys/futex.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::rounds;
using support::thread_group;
using support::until_sound_asleep;
using tocsin::deadline;
using tocsin::platform::futex_word;
using tocsin::platform::sleep_result;
namespace platform = tocsin::platform;

#if defined(_WIN32)
using backends = testing::Types<platform::windows_futex, platform::windows_waitonaddress_futex,
                                platform::windows_srw_futex>;
#elif defined(__linux__)
// OpenBSD's kernels return an error in one of two ways (support/futexes).
template <bool ReturnsErrors>
struct openbsd_futex : platform::openbsd_futex {
    static sleep_result wait(const futex_word& word, std::uint32_t expected, const deadline& until) {
        support::futex_returns_errors = ReturnsErrors;
        return platform::openbsd_futex::wait(word, expected, until);
    }
};
using backends = testing::Types<platform::linux_futex, platform::portable_futex, platform::freebsd_futex,
                                openbsd_futex</*ReturnsErrors=*/false>, openbsd_futex<true>>;
#else
using backends = testing::Types<platform::futex, platform::portable_futex>;
#endif

template <class Backend>
class EveryFutex : public testing::Test {};
TYPED_TEST_SUITE(EveryFutex, backends);

// Waits for the word to change as callers do: a thread that returns looks again.
template <class Backend>
sleep_result wait_for_change(futex_word& word, std::uint32_t old, const deadline& until) {
    while (word.load(std::memory_order_acquire) == old) {
        if (Backend::wait(word, old, until) == sleep_result::timed_out) return sleep_result::timed_out;
    }
    return sleep_result::returned;
}

TYPED_TEST(EveryFutex, AValueThatDiffersReturnsAtOnce) {
    futex_word word{1};
    EXPECT_NE(TypeParam::wait(word, 0, deadline::never()), sleep_result::timed_out);
    EXPECT_NE(TypeParam::wait(word, 2, 1h), sleep_result::timed_out);
    EXPECT_NE(TypeParam::wait(word, 0x80000001u, system_clock::now() + 1h), sleep_result::timed_out);
}

TYPED_TEST(EveryFutex, AWakeEndsTheWait) {
    futex_word word{0};
    thread_group threads;
    threads.start("sleeper", [&] {
        EXPECT_EQ(wait_for_change<TypeParam>(word, 0, deadline::never()), sleep_result::returned);
    });
    until_sound_asleep(threads.id(0));
    EXPECT_FALSE(threads.finished(0));
    word.store(1);
    TypeParam::wake_one(&word);
    threads.join();
}

TYPED_TEST(EveryFutex, AWakeBeforeTheWaitIsNotSaved) {
    futex_word word{0};
    for (int i = 0; i < 3; ++i) TypeParam::wake_one(&word);
    EXPECT_EQ(TypeParam::wait(word, 0, 2ms), sleep_result::timed_out);
}

TYPED_TEST(EveryFutex, AChangeBeforeTheWaitIsSeen) {
    futex_word word{0};
    word.store(1);
    TypeParam::wake_one(&word);
    EXPECT_NE(TypeParam::wait(word, 0, deadline::never()), sleep_result::timed_out);
}

TYPED_TEST(EveryFutex, AWakeWakesNoMoreThanOneAndTheNextWakesTheNext) {
    futex_word word{0};
    std::atomic<std::size_t> returned{0};
    thread_group threads;
    threads.start_many(3, "sleeper", [&](int) {
        (void)TypeParam::wait(word, 0, deadline::never());
        returned.fetch_add(1);
    });
    for (std::size_t i = 0; i < 3; ++i) until_sound_asleep(threads.id(i));
    for (std::size_t wakes = 1; wakes <= 3; ++wakes) {
        TypeParam::wake_one(&word);
        support::until("one more returns", [&] { return returned.load() >= wakes; });
        EXPECT_EQ(returned.load(), wakes);
    }
}

TYPED_TEST(EveryFutex, ThreeWakesInARowWakeThree) {
    futex_word word{0};
    thread_group threads;
    threads.start_many(3, "sleeper", [&](int) { (void)TypeParam::wait(word, 0, deadline::never()); });
    for (std::size_t i = 0; i < 3; ++i) until_sound_asleep(threads.id(i));
    for (int i = 0; i < 3; ++i) TypeParam::wake_one(&word);
    threads.join();
}

TYPED_TEST(EveryFutex, AWakeOfAllWakesAllOfTheWordAndNobodyElse) {
    std::array<futex_word, 2> words{};
    thread_group threads;
    threads.start_many(8, "sleeper", [&](int i) {
        (void)wait_for_change<TypeParam>(words[i < 6 ? 0 : 1], 0, deadline::never());
    });
    for (std::size_t i = 0; i < 8; ++i) until_sound_asleep(threads.id(i));
    words[0].store(1);
    TypeParam::wake_all(&words[0]);
    threads.until_finished(6);
    EXPECT_EQ(threads.finished(), 6u);
    words[1].store(1);
    TypeParam::wake_all(&words[1]);
    threads.join();
}

TYPED_TEST(EveryFutex, AWakeOfAllIsNotSavedAndGoesByTheAddressAlone) {
    futex_word word{0};
    TypeParam::wake_all(&word);
    EXPECT_EQ(TypeParam::wait(word, 0, 2ms), sleep_result::timed_out);
    TypeParam::wake_all(nullptr);
    TypeParam::wake_all(reinterpret_cast<const void*>(~std::uintptr_t{3}));
}

// Sleepers that were woken sleep again, while others time out.
TYPED_TEST(EveryFutex, NoWakeOfAllIsLostWhileSleepersReturn) {
    constexpr std::uint32_t sleepers = 4;
    futex_word word{0};
    std::atomic<std::uint32_t> acknowledged{0};
    const auto count = static_cast<std::uint32_t>(rounds(1'000, 200));
    thread_group threads;
    threads.start_many(sleepers, "sleeper", [&](int number) {
        support::random_source random(static_cast<std::uint64_t>(number) + 3);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (number == 0) {
                while (wait_for_change<TypeParam>(word, i, std::chrono::nanoseconds(random.below(60'000))) ==
                       sleep_result::timed_out) {
                }
            } else {
                (void)wait_for_change<TypeParam>(word, i, deadline::never());
            }
            acknowledged.fetch_add(1);
        }
    });
    for (std::uint32_t i = 0; i < count; ++i) {
        word.store(i + 1, std::memory_order_release);
        TypeParam::wake_all(&word);
        support::until("all see the change", [&] { return acknowledged.load() == sleepers * (i + 1); });
    }
    threads.join();
}

TYPED_TEST(EveryFutex, ATimeoutIsNeverEarlyOnItsOwnClock) {
    futex_word word{0};
    support::random_source random(1);
    for (int i = 0; i < 25; ++i) {
        const auto after = std::chrono::nanoseconds(1 + random.below(1'500'000));
        const auto steady = steady_clock::now() + after;
        EXPECT_EQ(wait_for_change<TypeParam>(word, 0, steady), sleep_result::timed_out);
        EXPECT_GE(steady_clock::now(), steady);
        const auto system = system_clock::now() + std::chrono::ceil<system_clock::duration>(after);
        EXPECT_EQ(wait_for_change<TypeParam>(word, 0, system), sleep_result::timed_out);
        EXPECT_GE(system_clock::now(), system);
        const auto slow = support::slow_clock::now() + after / 3.0;
        EXPECT_EQ(wait_for_change<TypeParam>(word, 0, slow), sleep_result::timed_out);
        EXPECT_GE(support::slow_clock::now(), slow);
    }
}

TYPED_TEST(EveryFutex, ADeadlineThatHasPassedDoesNotSleep) {
    futex_word word{0};
    EXPECT_EQ(TypeParam::wait(word, 0, 0s), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, -1h), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, steady_clock::now() - 1s), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, steady_clock::time_point{}), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, steady_clock::time_point::min()), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, system_clock::now() - 1s), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, system_clock::time_point{}), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, system_clock::time_point::min()), sleep_result::timed_out);
    EXPECT_EQ(TypeParam::wait(word, 0, support::slow_clock::now() - 1s), sleep_result::timed_out);
}

TYPED_TEST(EveryFutex, AFarDeadlineIsSleptFor) {
    const std::array<deadline, 5> far{steady_clock::now() + 24h * 365 * 200, system_clock::now() + 1h,
                                      steady_clock::time_point::max(), system_clock::time_point::max() - 1s,
                                      std::chrono::nanoseconds::max() / 2};
    for (const auto& each : far) {
        futex_word word{0};
        thread_group threads;
        threads.start("sleeper",
                      [&] { EXPECT_EQ(wait_for_change<TypeParam>(word, 0, each), sleep_result::returned); });
        until_sound_asleep(threads.id(0));
        const auto burnt = support::cpu_time_of(threads.handle(0));
        std::this_thread::sleep_for(20ms);  // no fact to wait for: nothing must happen
        EXPECT_LT(support::cpu_time_of(threads.handle(0)) - burnt, 1ms);
        word.store(1);
        TypeParam::wake_one(&word);
        threads.join();
    }
}

TYPED_TEST(EveryFutex, AWakeGoesByTheAddressAlone) {
    const auto size = support::page_size();
    void* const page = support::reserve_pages(size);
    ASSERT_NE(page, nullptr);
    support::map_pages(page, size);
    auto* const word = new (page) futex_word{0};
    TypeParam::wake_one(word);
    support::unmap_pages(page, size);
    TypeParam::wake_one(word);
    TypeParam::wake_one(nullptr);
    TypeParam::wake_one(reinterpret_cast<const void*>(~std::uintptr_t{3}));
}

TYPED_TEST(EveryFutex, AWakeLeavesOtherWordsAsleep) {
    std::array<futex_word, 16> words{};
    thread_group threads;
    threads.start_many(16, "sleeper", [&](int i) {
        (void)wait_for_change<TypeParam>(words[static_cast<std::size_t>(i)], 0, deadline::never());
    });
    for (std::size_t i = 0; i < 16; ++i) until_sound_asleep(threads.id(i));
    for (std::size_t i = 0; i < 16; ++i) {
        words[i].store(1);
        TypeParam::wake_one(&words[i]);
        threads.until_finished(i + 1);
        EXPECT_TRUE(threads.finished(i));
        EXPECT_EQ(threads.finished(), i + 1);
    }
}

#if TOCSIN_ON_POSIX
TYPED_TEST(EveryFutex, SignalsNeitherEndNorProlongAWait) {
    const support::signal_counter signals(SIGUSR1);
    futex_word word{0};
    thread_group threads;
    const auto begin = steady_clock::now();
    sleep_result ended{};
    threads.start("endless", [&] {
        errno = 77;
        while (word.load() == 0) (void)TypeParam::wait(word, 0, deadline::never());
        EXPECT_EQ(errno, 77);
    });
    threads.start("timed", [&] {
        errno = 78;
        ended = wait_for_change<TypeParam>(word, 0, 60ms);
        EXPECT_EQ(errno, 78);
    });
    (void)threads.id(0);
    (void)threads.id(1);
    while (!threads.finished(1)) {
        for (std::size_t i = 0; i < 2; ++i) pthread_kill(threads.handle(i), SIGUSR1);
        std::this_thread::sleep_for(500us);  // no fact to wait for: signals at intervals
        if (steady_clock::now() - begin > support::patience()) support::give_up("prolonged by signals");
    }
    EXPECT_EQ(ended, sleep_result::timed_out);
    EXPECT_GE(steady_clock::now() - begin, 60ms);
    word.store(1);
    TypeParam::wake_one(&word);
    threads.join();
}
#endif

#if defined(__linux__)
// `wake(word)` is called while so many threads sleep on the word.
template <class Wake>
void expect_one_system_call(int sleepers, Wake wake) {
    futex_word word{0};
    const auto calls = support::system_calls_of(
        [&] {
            for (int i = 0; i != sleepers; ++i) {
                std::atomic<pid_t> id{0};
                std::thread([&] {
                    id.store(support::thread_id());
                    (void)platform::linux_futex::wait(word, 0, deadline::never());
                    support::sleep_for_ever();
                }).detach();
                support::until("the sleeper begins", [&] { return id.load() != 0; });
                until_sound_asleep(id.load());
            }
        },
        [&] { wake(&word); });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(calls.numbers.size(), 1u) << testing::PrintToString(calls);
}

TEST(LinuxFutex, AWakeIsOneSystemCall) { expect_one_system_call(1, platform::linux_futex::wake_one); }

TEST(LinuxFutex, AWakeOfAllIsOneSystemCall) { expect_one_system_call(3, platform::linux_futex::wake_all); }

TEST(LinuxFutex, ASleepIsOneSystemCall) {
    const auto calls = support::system_calls_of([] {
        futex_word word{0};
        (void)platform::linux_futex::wait(word, 0, 20ms);
        (void)platform::linux_futex::wait(word, 0, 0s);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(calls.numbers.size(), 1u) << testing::PrintToString(calls);
}

#if defined(SYS_futex_time64)
// Kernels before 5.1 have no calls with 64 bits of seconds, and older filters of system calls forbid them. A wait that
// took the error for a wake would loop without end.
TEST(LinuxFutex, WaitsWhereTheCallWith64BitTimeIsRefused) {
    constexpr int no_filter = 77;
    for (const int error : support::refusals) {
        const auto ending = support::ending_of_child([error] {
            if (!support::refuse_call(SYS_futex_time64, error)) return no_filter;
            futex_word word{0};
            const auto end = steady_clock::now() + 20ms;
            if (wait_for_change<platform::linux_futex>(word, 0, end) != sleep_result::timed_out) return 1;
            if (steady_clock::now() < end) return 2;
            thread_group threads;
            threads.start("far deadline", [&word] {
                (void)wait_for_change<platform::linux_futex>(word, 0, system_clock::time_point::max() - 1s);
            });
            until_sound_asleep(threads.id(0));
            word.store(1);
            platform::linux_futex::wake_one(&word);
            threads.join();
            return 0;
        });
        if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
        EXPECT_EQ(ending, "") << error;
    }
}
#endif
#endif

TYPED_TEST(EveryFutex, ErrnoIsPreserved) {
    futex_word word{0};
    // ETIMEDOUT, because the wait must not take an older value of errno for an error of its own.
    for (const int value : {0, 4242, ETIMEDOUT}) {
        errno = value;
        EXPECT_NE(TypeParam::wait(word, 1, deadline::never()), sleep_result::timed_out);
        EXPECT_NE(TypeParam::wait(word, 1, 24h), sleep_result::timed_out);
        (void)TypeParam::wait(word, 0, 100us);
        (void)TypeParam::wait(word, 0, 0s);
        TypeParam::wake_one(&word);
        TypeParam::wake_all(&word);
        EXPECT_EQ(errno, value);
    }
}

TYPED_TEST(EveryFutex, ASleeperBurnsNoTime) {
    futex_word word{0};
    thread_group threads;
    threads.start("sleeper", [&] { (void)wait_for_change<TypeParam>(word, 0, deadline::never()); });
    until_sound_asleep(threads.id(0));
    const auto burnt = support::cpu_time_of(threads.handle(0));
    const auto switched = support::switches_of(threads.id(0));
    std::this_thread::sleep_for(200ms);  // no fact to wait for: nothing must happen
    EXPECT_LT(support::cpu_time_of(threads.handle(0)) - burnt, 1ms);
    EXPECT_EQ(support::switches_of(threads.id(0)).voluntary, switched.voluntary);
    word.store(1);
    TypeParam::wake_one(&word);
}

// A thread looks and falls asleep in one step, so no wake is lost in between.
TYPED_TEST(EveryFutex, NoWakeIsLostInAPingPong) {
    futex_word there{0};
    futex_word back{0};
    const auto count = static_cast<std::uint32_t>(rounds(20'000, 4'000));
    thread_group threads;
    threads.start("answers", [&] {
        for (std::uint32_t i = 0; i < count; ++i) {
            (void)wait_for_change<TypeParam>(there, i, deadline::never());
            back.store(i + 1, std::memory_order_release);
            TypeParam::wake_one(&back);
        }
    });
    for (std::uint32_t i = 0; i < count; ++i) {
        there.store(i + 1, std::memory_order_release);
        TypeParam::wake_one(&there);
        (void)wait_for_change<TypeParam>(back, i, deadline::never());
    }
    threads.join();
}

TYPED_TEST(EveryFutex, NoWakeIsLostWhileTimeoutsRaceWithIt) {
    futex_word word{0};
    std::atomic<std::uint32_t> acknowledged{0};
    const auto count = static_cast<std::uint32_t>(rounds(3'000, 800));
    thread_group threads;
    threads.start("sleeper", [&] {
        support::random_source random(2);
        for (std::uint32_t i = 0; i < count; ++i) {
            while (wait_for_change<TypeParam>(word, i, std::chrono::nanoseconds(random.below(60'000))) ==
                   sleep_result::timed_out) {
            }
            acknowledged.store(i + 1, std::memory_order_release);
        }
    });
    for (std::uint32_t i = 0; i < count; ++i) {
        word.store(i + 1, std::memory_order_release);
        TypeParam::wake_one(&word);
        support::until("the change is seen", [&] { return acknowledged.load() == i + 1; });
    }
    threads.join();
}

// Parts of the backends for systems that we do not have.
TEST(RelativeSleep, NeverDoesNotPassWhateverTheSystemSays) {
    const auto ended = tocsin::platform::sleep_in_slices(deadline::never(), [](std::int64_t nanoseconds) {
        EXPECT_EQ(nanoseconds, tocsin::platform::no_end);
        return sleep_result::timed_out;
    });
    EXPECT_EQ(ended, sleep_result::returned);
}

TEST(RelativeSleep, LooksAtTheDeadlineAgainWhenASliceEndsAndSleepsNoLongerThanItLasts) {
    int slices = 0;
    const auto until_third = [&slices](std::int64_t longest) {
        return [&slices, longest](std::int64_t nanoseconds) {
            EXPECT_EQ(nanoseconds, longest);
            return ++slices % 3 == 0 ? sleep_result::returned : sleep_result::timed_out;
        };
    };
    using namespace tocsin::platform;
    EXPECT_EQ(sleep_in_slices(steady_clock::now() + 24h, until_third(longest_sleep)), sleep_result::returned);
    EXPECT_EQ(sleep_in_slices(system_clock::now() + 24h, until_third(longest_unaware_of_set_clock)),
              sleep_result::returned);
    EXPECT_EQ(slices, 6);
}

// A clock that can be set. A wait on a condition variable does not follow it: as on some systems, the length of a sleep
// is computed once, when it begins.
struct clock_to_set {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock_to_set>;
    static constexpr bool is_steady = false;

    static time_point now() noexcept {
        return time_point(steady_clock::now().time_since_epoch() + ahead.load());
    }

    inline static std::atomic<duration> ahead{};
};

TEST(ConditionWait, AClockThatIsSetForwardIsNoticed) {
    std::mutex mutex;
    std::condition_variable wake;
    const auto end = (clock_to_set::now() + 24h).time_since_epoch();
    thread_group threads;
    threads.start("sleeper", [&] {
        std::unique_lock lock(mutex);
        EXPECT_FALSE(
            tocsin::platform::wait_until<clock_to_set>(wake, lock, end.count(), [] { return false; }));
        EXPECT_GE(clock_to_set::now().time_since_epoch(), end);
    });
    until_sound_asleep(threads.id(0));
    clock_to_set::ahead.store(24h);
    threads.join();
}

// A slice on a clock that can be set lasts a second.
TEST(ConditionWait, TheEndOfASliceIsNotThatOfTheWait) {
    std::mutex mutex;
    std::condition_variable wake;
    const auto end = (clock_to_set::now() + 1100ms).time_since_epoch();
    std::unique_lock lock(mutex);
    EXPECT_FALSE(tocsin::platform::wait_until<clock_to_set>(wake, lock, end.count(), [] { return false; }));
    EXPECT_GE(clock_to_set::now().time_since_epoch(), end);
}

TEST(KernelTime, ATimeTooLateFor32BitsOfSecondsIsCut) {
    struct short_time {
        std::int32_t tv_sec;
        long tv_nsec;
    };
    using namespace tocsin::platform;
    constexpr std::int64_t end = 0x8000'0000 * nanoseconds_a_second;
    EXPECT_TRUE(fits<short_time>(end - 1));
    EXPECT_EQ(time_of<short_time>(end - 1).tv_sec, 0x7FFF'FFFF);
    EXPECT_EQ(time_of<short_time>(end - 1).tv_nsec, 999'999'999);
    EXPECT_FALSE(fits<short_time>(end));
    EXPECT_EQ(time_of<short_time>(2 * end + 5).tv_sec, 0x7FFF'FFFF);
    EXPECT_EQ(time_of<short_time>(-1).tv_sec, 0);
    EXPECT_EQ(time_of<short_time>(-1).tv_nsec, 0);
}

}  // namespace
