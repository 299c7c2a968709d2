// SPDX-License-Identifier: Apache-2.0
// The contract of barrier, clause by clause: first what the standard says of std::barrier, then what tocsin adds.
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/barrier.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

using namespace std::chrono_literals;
using support::rounds;
using support::thread_group;
using support::until_parked;
using tocsin::barrier;
using tocsin::wait_status;

constinit barrier made_at_compile_time{2};

// --- the standard's clauses -----------------------------------------------------------------------------------

struct nothing {
    void operator()() noexcept {}
};

template <class Barrier, class Token = typename Barrier::arrival_token>
constexpr bool has_the_standards_shape =
    std::is_constructible_v<Barrier, std::ptrdiff_t> &&
    std::is_constructible_v<Barrier, std::ptrdiff_t, nothing> &&
    !std::is_convertible_v<std::ptrdiff_t, Barrier> && !std::is_copy_constructible_v<Barrier> &&
    !std::is_move_constructible_v<Barrier> && !std::is_copy_assignable_v<Barrier> &&
    std::is_move_constructible_v<Token> && std::is_move_assignable_v<Token> &&
    requires(Barrier& object, const Barrier& waited_for, Token token, std::ptrdiff_t number) {
        { Barrier::max() } -> std::same_as<std::ptrdiff_t>;
        { object.arrive() } -> std::same_as<Token>;
        { object.arrive(number) } -> std::same_as<Token>;
        { waited_for.wait(std::move(token)) } -> std::same_as<void>;
        { object.arrive_and_wait() } -> std::same_as<void>;
        { object.arrive_and_drop() } -> std::same_as<void>;
    };

TEST(Barrier, HasTheStandardsShape) {
    static_assert(has_the_standards_shape<std::barrier<nothing>>);
    static_assert(has_the_standards_shape<barrier<nothing>>);
    // The standard leaves these two open. A token of libc++ is a number, which can be copied.
    using token = barrier<nothing>::arrival_token;
    static_assert(!std::is_copy_constructible_v<token> && !std::is_default_constructible_v<token>);
    static_assert(std::is_constructible_v<barrier<>, std::ptrdiff_t>);
    static_assert(barrier<>::max() >= (1 << 30) - 1);
}

struct throws_when_moved {
    throws_when_moved() = default;
    throws_when_moved(throws_when_moved&&) { throw std::runtime_error("moved"); }
    void operator()() noexcept {}
};

TEST(Barrier, ItsConstructorThrowsWhatMovingTheFunctionThrows) {
    static_assert(noexcept(barrier<>(1)) && noexcept(barrier<nothing>(1)));
    static_assert(!noexcept(barrier<throws_when_moved>(1)));
    EXPECT_THROW(const barrier<throws_when_moved> made(1), std::runtime_error);
}

TEST(Barrier, APhaseEndsWithTheLastArrival) {
    barrier two(2);
    auto first = two.arrive();
    EXPECT_FALSE(two.try_wait(first));
    auto second = two.arrive();
    EXPECT_TRUE(two.try_wait(first));
    two.wait(std::move(first));
    two.wait(std::move(second));
}

TEST(Barrier, APhaseFollowsAnother) {
    barrier two(2);
    for (int i = 0; i != 5; ++i) {
        auto first = two.arrive();
        EXPECT_FALSE(two.try_wait(first)) << "phase " << i;
        two.arrive_and_wait();
        two.wait(std::move(first));
    }
}

TEST(Barrier, ArrivesManyTimesAtOnce) {
    barrier all(barrier<>::max());
    auto max = all.arrive(barrier<>::max() - 2);
    EXPECT_FALSE(all.try_wait(max));
    auto rest = all.arrive(2);
    EXPECT_TRUE(all.try_wait(max));
    EXPECT_TRUE(all.try_wait(rest));
}

TEST(Barrier, CompletesOnceAPhaseBeforeAnybodyPasses) {
    constexpr int members = 4;
    const int phases = rounds(500, 50);
    int completed = 0;  // plain: ThreadSanitizer watches it
    int written[members]{};
    const auto complete = [&]() noexcept {
        for (const int each : written) EXPECT_EQ(each, completed + 1);
        ++completed;
    };
    barrier all(members, complete);
    thread_group threads;
    threads.start_many(members, "member", [&](int which) {
        for (int i = 1; i <= phases; ++i) {
            written[which] = i;
            all.arrive_and_wait();
            EXPECT_EQ(completed, i);
        }
    });
}

TEST(Barrier, CompletesInTheThreadThatArrivesLast) {
    std::thread::id where;
    barrier two(2, [&]() noexcept { where = std::this_thread::get_id(); });
    std::thread([&] { (void)two.arrive(); }).join();
    two.arrive_and_wait();
    EXPECT_EQ(where, std::this_thread::get_id());
    (void)two.arrive();
    std::thread::id other;
    std::thread([&] {
        two.arrive_and_drop();
        other = std::this_thread::get_id();
    }).join();
    EXPECT_EQ(where, other);
}

TEST(Barrier, ADropLowersLaterPhases) {
    int completed = 0;
    barrier three(3, [&]() noexcept { ++completed; });
    three.arrive_and_drop();
    (void)three.arrive();
    EXPECT_EQ(completed, 0) << "a drop is one arrival of the current phase";
    (void)three.arrive();
    EXPECT_EQ(completed, 1);
    (void)three.arrive(2);
    EXPECT_EQ(completed, 2) << "the next phase expects one less";
    three.arrive_and_drop();
    three.arrive_and_drop();
    EXPECT_EQ(completed, 3);
}

TEST(Barrier, ThreadsDropOneByOne) {
    constexpr int members = 4;
    std::atomic<int> passed{0};
    barrier all(members);
    thread_group threads;
    threads.start_many(members, "member", [&](int which) {
        for (int i = 0; i != which; ++i) {
            all.arrive_and_wait();
            passed.fetch_add(1);
        }
        all.arrive_and_drop();
    });
    threads.join();
    EXPECT_EQ(passed.load(), 0 + 1 + 2 + 3);
}

TEST(Barrier, AWaitWithATokenOfTheLastPhaseReturns) {
    barrier one(1);
    auto token = one.arrive();
    one.wait(std::move(token));
    auto next = one.arrive();
    one.wait(std::move(next));
}

TEST(Barrier, ReleasesEverybodyWhoWaits) {
    barrier all(5);
    thread_group threads;
    threads.start_many(4, "member",
                       [&](int which) { which % 2 == 0 ? all.arrive_and_wait() : all.wait(all.arrive()); });
    until_parked(&all, 4);
    (void)all.arrive();
    threads.join();
}

TEST(Barrier, IsMadeAtCompileTime) {
    auto first = made_at_compile_time.arrive();
    made_at_compile_time.arrive_and_wait();
    EXPECT_TRUE(made_at_compile_time.try_wait(first));
}

// --- tocsin's additions -----------------------------------------------------------------------------------------

TEST(Barrier, IsTwelveBytes) {
    static_assert(sizeof(barrier<>) == 12);
    static_assert(sizeof(barrier<nothing>) == 12);
#if !TOCSIN_CHECKED
    static_assert(std::is_trivially_destructible_v<barrier<>>);
#endif
}

TEST(Barrier, ATimedWaitSaysWhatHappenedAndKeepsTheToken) {
    barrier two(2);
    auto token = two.arrive();
    EXPECT_EQ(two.wait_for(token, 0s), wait_status::timed_out);
    EXPECT_EQ(two.wait_for(token, 2ms, tocsin::spin_policy::none()), wait_status::timed_out);
    EXPECT_EQ(two.wait_until(token, std::chrono::steady_clock::now() + 2ms), wait_status::timed_out);
    (void)two.arrive();
    EXPECT_EQ(two.wait_for(token, 0s), wait_status::signaled);
    EXPECT_EQ(two.wait_until(token, std::chrono::system_clock::now() - 1s), wait_status::signaled);
    two.wait(std::move(token));
}

TEST(Barrier, AStopEndsAWait) {
    barrier two(2);
    std::stop_source stop;
    auto token = two.arrive();
    thread_group threads;
    threads.start("stopped", [&] { EXPECT_EQ(two.wait(token, stop.get_token()), wait_status::stopped); });
    threads.start("timed",
                  [&] { EXPECT_EQ(two.wait_for(token, 1h, stop.get_token()), wait_status::stopped); });
    until_parked(&two, 2);
    stop.request_stop();
    threads.join();
    EXPECT_FALSE(two.try_wait(token));
}

TEST(Barrier, ATokenIsASource) {
    for (int phase = 0; phase != 3; ++phase) {
        static barrier two(2);
        tocsin::auto_reset_event other;
        const auto token = two.arrive();
        EXPECT_EQ(tocsin::wait_any({.until = 1ms}, other, token).status, wait_status::timed_out);
        EXPECT_EQ(tocsin::wait_all({.until = 1ms}, other, token), wait_status::timed_out);
        thread_group threads;
        threads.start("any", [&] { EXPECT_EQ(tocsin::wait_any(other, token).index, 1u); });
        std::atomic<bool> all{false};
        threads.start("all", [&] {
            EXPECT_EQ(tocsin::wait_all({.until = 1h}, other, token), wait_status::signaled);
            all = true;
        });
        until_parked(&other, 2);
        EXPECT_EQ(tocsin::wait_any(other, two.arrive()).index, 1u) << "a temporary token will do";
        support::until("the wait for any has ended", [&] { return tocsin::waiting_on(&other) == 1; });
        EXPECT_FALSE(all);
        other.set();
        threads.join();
        EXPECT_FALSE(other.is_set());
    }
}

TEST(Barrier, ATokenIsAMemberOfAWaitSet) {
    barrier one(2);
    tocsin::wait_set set;
    const auto token = one.arrive();
    set.add(token, 7);
    tocsin::ready_item found[2];
    EXPECT_EQ(set.wait({.until = 0s}, found).status, wait_status::timed_out);
    (void)one.arrive();
    ASSERT_EQ(set.wait({.until = 1h}, found).count, 1u);
    EXPECT_EQ(found[0].tag, 7u);
    EXPECT_TRUE(set.remove(token));
}

template <class Barrier>
support::task take_part(Barrier& in, int phases, int& passed) {
    for (int i = 0; i != phases; ++i) {
        co_await tocsin::async_wait(in.arrive());
        ++passed;
    }
}

TEST(Barrier, CoroutinesMayTakePart) {
    int passed = 0;
    int completed = 0;
    barrier three(3, [&]() noexcept { ++completed; });
    support::task first = take_part(three, 3, passed);
    support::task second = take_part(three, 3, passed);
    for (int i = 1; i <= 3; ++i) {
        EXPECT_EQ(passed, 2 * (i - 1));
        three.arrive_and_wait();
        EXPECT_EQ(passed, 2 * i);
        EXPECT_EQ(completed, i);
    }
}

TEST(Barrier, TheThreadReleasedMayDestroyIt) {
    for (int i = 0; i != rounds(2000, 100); ++i) {
        auto owned = std::make_unique<barrier<>>(3);
        barrier<>& all = *owned;
        auto token = all.arrive();
        thread_group threads;
        threads.start_many(2, "member", [&all](int) { (void)all.arrive(); });
        if (i % 2 == 0) {
            all.wait(std::move(token));
        } else {
            while (!all.try_wait(token)) std::this_thread::yield();
        }
        owned.reset();
    }
}

// --- bad input --------------------------------------------------------------------------------------------------

TEST(BarrierDeathTest, RefusesANumberThatItCannotCount) {
    std::atomic<std::ptrdiff_t> negative{-1};
    std::atomic<std::ptrdiff_t> zero{0};
    barrier two(2);
    EXPECT_DEATH_IF_SUPPORTED(barrier{negative.load()}, "tocsin: barrier at .*too small");
    EXPECT_DEATH_IF_SUPPORTED(barrier{barrier<>::max() - negative.load()}, "tocsin: barrier at .*too great");
    EXPECT_DEATH_IF_SUPPORTED((void)two.arrive(negative.load()), "tocsin: barrier at .*too small");
    EXPECT_DEATH_IF_SUPPORTED((void)two.arrive(zero.load()), "tocsin: barrier at .*too small");
}

TEST(BarrierDeathTest, RefusesMoreArrivalsThanItExpects) {
    barrier two(2);
    EXPECT_DEATH_IF_SUPPORTED((void)two.arrive(3), "tocsin: barrier at .*more arrivals than");
    barrier none(0);
    EXPECT_DEATH_IF_SUPPORTED((void)none.arrive(), "tocsin: barrier at .*more arrivals than");
    EXPECT_DEATH_IF_SUPPORTED(none.arrive_and_drop(), "tocsin: barrier at .*more threads drop than");
}

barrier<void (*)() noexcept>* completing = nullptr;

TEST(BarrierDeathTest, RefusesAnArrivalDuringTheCompletion) {
    barrier<void (*)() noexcept> one(1, []() noexcept { (void)completing->arrive(); });
    completing = &one;
    EXPECT_DEATH_IF_SUPPORTED((void)one.arrive(), "tocsin: barrier at .*more arrivals than");
}

TEST(BarrierDeathTest, RefusesATokenThatIsGone) {
    barrier one(1);
    auto token = one.arrive();
    one.wait(std::move(token));
    // NOLINTBEGIN(bugprone-use-after-move): that is the mistake
    EXPECT_DEATH_IF_SUPPORTED(one.wait(std::move(token)), "token was moved from, or waited with");
    EXPECT_DEATH_IF_SUPPORTED((void)tocsin::wait_any(token), "token was moved from, or waited with");
    // NOLINTEND(bugprone-use-after-move)
}

#if TOCSIN_CHECKED
void destroy_with_a_waiter() {
    auto* const two = new barrier(2);
    support::start_unjoined([two] { two->arrive_and_wait(); });
    until_parked(two, 1);
    delete two;
}

TEST(BarrierDeathTest, DestroyedWhileAThreadWaits) {
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter(), "tocsin: barrier at .*destroyed while threads wait");
}
#endif

}  // namespace
