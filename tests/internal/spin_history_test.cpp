// SPDX-License-Identifier: Apache-2.0
// The policy of looking before sleeping (core/wait/spin_history.hpp), on machines that the test makes up: it has the
// clock, and it decides who runs when. So every run is the same, and machines unlike this one can be tried.
#include "core/wait/spin_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>

namespace {

using tocsin::core::spin_history;
using nanoseconds = std::int64_t;

struct machine {
    nanoseconds wake;          // from the release of a sleeper until it runs
    nanoseconds answer = 100;  // from what a thread waits for until the thread that has seen it has answered
    nanoseconds fall_asleep = 600;  // from the end of the look until the thread sleeps
    nanoseconds other_wake = 0;     // the second thread's `wake`, if it differs

    friend void PrintTo(const machine& one, std::ostream* out) { *out << "wake " << one.wake; }
};

// One thread's waits for one event.
class waits {
public:
    explicit waits(nanoseconds wake) : wake_(wake) {}

    // A wait begins at `now`; what it waits for comes at `comes`. Returns when the thread runs again.
    nanoseconds wait(nanoseconds now, nanoseconds comes, const machine& on) {
        auto known = spin_history::unpacked(packed_);
        const auto advice = known.begin_wait();
        longest_ = std::max(longest_, advice.look);
        ++count_;
        const nanoseconds end_of_look = now + advice.look;
        nanoseconds runs;
        if (comes <= now || (advice.look != 0 && comes <= end_of_look)) {
            const nanoseconds took = std::max<nanoseconds>(0, comes - now);
            if (advice.look != 0) known.end_look(advice, true, took);
            cpu_ += took;
            runs = std::max(now, comes);
        } else {
            if (advice.look != 0) known.end_look(advice, false, advice.look);
            cpu_ += advice.look + on.fall_asleep;
            looked_in_vain_ += advice.look;
            if (advice.yields) known.end_yields(false, false);  // nobody else is ready to run
            if (comes <= end_of_look + on.fall_asleep) {
                known.end_early(advice);
                runs = end_of_look + on.fall_asleep;
            } else {
                if (advice.measures) {
                    known.note_wake(wake_);
                    known.note_sleep(comes - end_of_look - on.fall_asleep);
                }
                cpu_ += sleep_costs;
                runs = comes + wake_;
                ++slept_;
            }
        }
        packed_ = known.packed();
        return runs;
    }

    static constexpr nanoseconds sleep_costs = 2'000;  // of the processor, besides falling asleep
    nanoseconds longest() const { return longest_; }
    nanoseconds cpu() const { return cpu_; }
    nanoseconds looked_in_vain() const { return looked_in_vain_; }
    int slept() const { return slept_; }
    int count() const { return count_; }
    spin_history history() const { return spin_history::unpacked(packed_); }
    void forget_counts() { cpu_ = looked_in_vain_ = 0, slept_ = count_ = 0; }

private:
    std::uint64_t packed_ = 0;
    const nanoseconds wake_;
    nanoseconds longest_ = 0, cpu_ = 0, looked_in_vain_ = 0;
    int slept_ = 0, count_ = 0;
};

// Two threads that answer each other, each on a core of its own.
class pair_of_threads {
public:
    explicit pair_of_threads(machine on)
        : on_(on), first_(on.wake), second_(on.other_wake != 0 ? on.other_wake : on.wake) {}

    // Both sleep, and one is released.
    void begin_asleep() {
        first_waits_since_ = now_ - 1'000'000;
        second_waits_since_ = now_ - 1'000'000;
        answer_at_ = now_;
        first_runs_next_ = true;
    }
    // One wait of either thread: what it waits for came at answer_at_; it runs, and answers.
    void step() {
        waits& own = first_runs_next_ ? first_ : second_;
        nanoseconds& since = first_runs_next_ ? first_waits_since_ : second_waits_since_;
        const nanoseconds runs = own.wait(since, answer_at_, on_);
        now_ = runs + on_.answer;
        since = now_;  // it waits again as soon as it has answered
        answer_at_ = now_;
        first_runs_next_ = !first_runs_next_;
    }
    // The time of a round trip, averaged over some.
    nanoseconds trip(int trips) {
        const nanoseconds begin = now_;
        for (int i = 0; i != 2 * trips; ++i) step();
        return (now_ - begin) / trips;
    }
    // Nobody runs for so long. Both threads had begun to wait before.
    void disturb(nanoseconds length) {
        now_ += length;
        answer_at_ += length;
    }

    nanoseconds now() const { return now_; }
    waits& first() { return first_; }
    waits& second() { return second_; }

private:
    machine on_;
    waits first_, second_;
    nanoseconds now_ = 10'000'000;
    nanoseconds first_waits_since_ = 0, second_waits_since_ = 0, answer_at_ = 0;
    bool first_runs_next_ = true;
};

class SpinHistory : public testing::TestWithParam<machine> {};

// Cores that wake in 2 us, and cores that take 50; threads whose cores differ.
INSTANTIATE_TEST_SUITE_P(On, SpinHistory,
                         testing::Values(machine{.wake = 2'000}, machine{.wake = 5'000},
                                         machine{.wake = 10'000}, machine{.wake = 20'000},
                                         machine{.wake = 30'000}, machine{.wake = 45'000},
                                         machine{.wake = 30'000, .answer = 400},
                                         machine{.wake = 20'000, .other_wake = 35'000},
                                         machine{.wake = 35'000, .other_wake = 20'000}));

TEST_P(SpinHistory, TwoThreadsThatBothSleepSoonBothLook) {
    pair_of_threads both(GetParam());
    both.begin_asleep();
    const nanoseconds begin = both.now();
    while (both.trip(10) > 4 * GetParam().answer && both.now() - begin < 1'000'000'000) {
    }
    EXPECT_LT(both.now() - begin, 20'000'000);
    EXPECT_LE(both.trip(1'000), 2 * GetParam().answer + 100);
}

TEST_P(SpinHistory, TwoThreadsLookAgainSoonAfterEachDisturbance) {
    pair_of_threads both(GetParam());
    both.begin_asleep();
    both.trip(10'000);
    for (int disturbance = 0; disturbance != 10; ++disturbance) {
        both.disturb(10'000'000);
        const nanoseconds begin = both.now();
        while (both.trip(10) > 4 * GetParam().answer && both.now() - begin < 1'000'000'000) {
        }
        EXPECT_LT(both.now() - begin, 20'000'000) << "disturbance " << disturbance;
        both.trip(1'000);
    }
}

TEST_P(SpinHistory, NeverLooksLongerThanItsBound) {
    pair_of_threads both(GetParam());
    both.begin_asleep();
    both.trip(100'000);
    const nanoseconds slower = std::max(GetParam().wake, GetParam().other_wake);
    const nanoseconds bound = std::min(spin_history::max_look, spin_history::wake_multiple * slower);
    EXPECT_LE(both.first().longest(), std::max(bound, spin_history::short_look));
    EXPECT_LE(both.second().longest(), std::max(bound, spin_history::short_look));
}

TEST(SpinHistoryBound, HoldsWhateverWakingHasTaken) {
    spin_history known;
    for (const nanoseconds took :
         {nanoseconds{1}, nanoseconds{900'000'000'000}, nanoseconds{-5}, nanoseconds{0}}) {
        for (int i = 0; i != 100; ++i) known.note_wake(took);
        for (int i = 0; i != 10'000; ++i) {
            const auto advice = known.begin_wait();
            ASSERT_LE(advice.look, spin_history::max_look);
            if (advice.look != 0) known.end_look(advice, i % 3 == 0, advice.look);
        }
    }
}

// How much of the processor's time waits use whose signals come at a fixed pace, compared with waits that sleep at
// once.
double cost_of_paced_waits(nanoseconds pace, const machine& on, int count) {
    waits consumer(on.wake);
    nanoseconds signal = 1'000'000;
    nanoseconds now = 0;
    const auto wait_for = [&](int times) {
        for (int i = 0; i != times; ++i) {
            now = consumer.wait(now, signal, on) + on.answer;
            signal += pace;
        }
    };
    wait_for(20'000);
    consumer.forget_counts();
    wait_for(count);
    return static_cast<double>(consumer.cpu()) /
           static_cast<double>(count * (waits::sleep_costs + on.fall_asleep));
}

TEST_P(SpinHistory, ProducersAtAFixedPaceAreHardlyLookedFor) {
    for (const nanoseconds pace :
         {nanoseconds{50'000}, nanoseconds{100'000}, nanoseconds{1'000'000}, nanoseconds{10'000'000}}) {
        EXPECT_LE(cost_of_paced_waits(pace, GetParam(), 20'000), 1.05) << "a signal each " << pace << " ns";
    }
}

TEST_P(SpinHistory, SignalsThatAreFarApartAreNotLookedForEvenAtFirst) {
    for (const nanoseconds pace : {nanoseconds{200'000}, nanoseconds{10'000'000}}) {
        waits consumer(GetParam().wake);
        nanoseconds now = 0;
        for (int i = 0; i != 5'000; ++i) now = consumer.wait(now, now + pace, GetParam());
        EXPECT_LE(consumer.looked_in_vain(), spin_history::short_look) << "a signal each " << pace << " ns";
    }
}

TEST(SpinHistoryFar, EndsWithTheNextShorterSleep) {
    spin_history known;
    while (known.looks()) known.end_look(known.begin_wait(), false, spin_history::short_look);
    known.note_wake(20'000);
    known.note_sleep(1'000'000);
    const auto looks_in = [&](int waits) {
        bool long_looks = false;
        for (int i = 0; i != waits; ++i) {
            const auto advice = known.begin_wait();
            EXPECT_TRUE(advice.look == 0 || advice.is_long);
            long_looks |= advice.is_long;
            if (advice.look != 0) known.end_look(advice, false, advice.look);
        }
        return long_looks;
    };
    EXPECT_FALSE(looks_in(10'000));
    known.note_sleep(known.long_look() + 1);
    EXPECT_FALSE(looks_in(10'000));
    known.note_sleep(known.long_look());
    EXPECT_TRUE(looks_in(32));
}

// Both threads are on one core: what a thread waits for comes only after it sleeps.
TEST_P(SpinHistory, OnOneCoreItCostsNextToNothing) {
    const machine one_core{.wake = 1'500, .fall_asleep = 600};
    waits own(one_core.wake);
    nanoseconds now = 0;
    const auto wait_for = [&](int times) {
        for (int i = 0; i != times; ++i) {
            const auto advised = own.history().begin_wait().look;
            now = own.wait(now, now + advised + one_core.fall_asleep + 1, one_core) + one_core.answer;
        }
    };
    wait_for(20'000);
    own.forget_counts();
    const nanoseconds begin = now;
    wait_for(100'000);
    EXPECT_LE(static_cast<double>(own.looked_in_vain()) / static_cast<double>(now - begin), 0.03);
}

TEST_P(SpinHistory, LeavesTheFastStateAtHardlyAnyCostWhenItNoLongerPays) {
    pair_of_threads both(GetParam());
    both.begin_asleep();
    both.trip(10'000);
    ASSERT_TRUE(both.first().history().looks());
    waits& own = both.first();
    own.forget_counts();
    nanoseconds now = both.now();
    for (int i = 0; i != 100; ++i) now = own.wait(now, now + 5'000'000, GetParam());
    EXPECT_FALSE(own.history().looks());
    // Eight short looks use up the credit. A burst follows, and then two probes, of one long look each.
    EXPECT_LE(own.looked_in_vain(), 8 * spin_history::short_look + 4 * own.history().long_look());
}

TEST(SpinHistoryCredit, ChanceAloneBringsTheProbesNoNearer) {
    const machine on{.wake = 20'000};
    waits own(on.wake);
    nanoseconds now = 0;
    std::uint32_t random = 1;
    const auto wait_for = [&](int times) {
        for (int i = 0; i != times; ++i) {
            random = random * 1'664'525 + 1'013'904'223;
            const nanoseconds pause =
                random / 65'536 % 3 == 0 ? 1'000 : 30'000 + random % 50'000;  // one in three comes at once
            now = own.wait(now, now + pause, on) + on.answer;
        }
    };
    wait_for(20'000);
    own.forget_counts();
    wait_for(100'000);
    EXPECT_LE(static_cast<double>(own.cpu()) /
                  static_cast<double>(own.count() * (waits::sleep_costs + on.fall_asleep)),
              1.05);
}

TEST(SpinHistoryCredit, AnEarlyReleaseEarnsTheCreditForOneLook) {
    spin_history known;
    known.note_wake(20'000);
    while (known.looks()) known.end_look(known.begin_wait(), false, spin_history::short_look);
    known.end_early({});
    EXPECT_TRUE(known.looks());
    const auto advice = known.begin_wait();
    EXPECT_EQ(advice.look, spin_history::short_look);
    known.end_look(advice, false, advice.look);
    known.end_early(advice);
    EXPECT_FALSE(known.looks()) << "a release after a look that found nothing says nothing";
}

TEST(SpinHistoryBurst, EndsAtOnceIfTheAnswersDoNotBecomeFaster) {
    spin_history known;
    known.note_wake(30'000);
    while (known.looks()) known.end_look(known.begin_wait(), false, spin_history::short_look);
    const auto next_long = [&] {
        auto advice = known.begin_wait();
        while (!advice.is_long) advice = known.begin_wait();
        return advice;
    };
    known.end_look(next_long(), false, 60'000);
    EXPECT_FALSE(known.begin_wait().is_long) << "a look that finds nothing ends it";

    known.end_look(next_long(), true, 35'000);
    auto advice = known.begin_wait();
    EXPECT_TRUE(advice.is_long);
    known.end_look(advice, true, 34'000);
    EXPECT_FALSE(known.begin_wait().is_long);

    known.end_look(next_long(), true, 35'000);
    known.end_look(known.begin_wait(), true, 12'000);
    advice = known.begin_wait();
    EXPECT_TRUE(advice.is_long);
    known.end_look(advice, true, 300);
    EXPECT_TRUE(known.looks());
    EXPECT_FALSE(known.begin_wait().is_long);
}

TEST(SpinHistoryBurst, WaitsUntilWakingHasBeenMeasured) {
    spin_history known;
    for (int i = 0; i != 1'000; ++i) {
        const auto advice = known.begin_wait();
        EXPECT_TRUE(advice.measures);
        EXPECT_FALSE(advice.is_long);
        if (advice.look != 0) known.end_look(advice, false, advice.look);
    }
}

// Waits between processes can't measure a wake-up.
TEST(SpinHistoryBurst, BeginsWithTheLongestLookIfWakingIsAssumed) {
    spin_history known;
    known.assume_wake();
    spin_history::advice advice;
    for (int wait = 0; wait != 64 && !advice.is_long; ++wait) {
        advice = known.begin_wait();
        known.end_look(advice, false, advice.look);
    }
    EXPECT_TRUE(advice.is_long);
    EXPECT_GT(advice.look, spin_history::max_look - 100) << "but for the unit of 64 ns";
    known.note_wake(1'000);
    const nanoseconds measured = known.long_look();
    known.assume_wake();
    EXPECT_EQ(known.long_look(), measured) << "what was measured counts";
}

TEST(SpinHistoryYields, ALateYieldEndsTheCredit) {
    spin_history known;
    EXPECT_TRUE(known.begin_wait().yields);
    known.end_yields(true, false);
    known.end_yields(true, true);
    EXPECT_FALSE(known.begin_wait().yields);
}

TEST(SpinHistoryWord, KeepsEverything) {
    spin_history known;
    std::uint32_t random = 7;
    EXPECT_EQ(known.packed(), 0u);
    for (int i = 0; i != 10'000; ++i) {
        random = random * 1'664'525 + 1'013'904'223;
        const auto advice = known.begin_wait();
        if (advice.look != 0) known.end_look(advice, random % 3 != 0, random % 60'000);
        if (random % 7 == 0) known.note_wake(random % 90'000);
        if (random % 7 == 0) known.note_sleep(random % 3 == 0 ? 1'000'000 : 0);
        if (random % 5 == 0) known.end_early(advice);
        if (advice.yields) known.end_yields(random % 2 == 0, random % 11 == 0);
        const std::uint64_t packed = known.packed();
        ASSERT_EQ(spin_history::unpacked(packed).packed(), packed);
        if (!spin_history::is_steady(packed)) continue;
        const auto steady = spin_history::steady_advice(packed);
        auto copy = known;
        const auto same = copy.begin_wait();
        ASSERT_EQ(steady.look, same.look);
        ASSERT_FALSE(same.is_long);
    }
}

}  // namespace
