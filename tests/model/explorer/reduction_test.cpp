// SPDX-License-Identifier: Apache-2.0
// The reductions leave no outcome out. The tests compare them with the search without reduction, on programs of which
// an earlier reduction lost runs and on random programs. With TOCSIN_PROVE in the environment there are forty times as
// many random programs.
#include <explorer/expect.hpp>
#include <explorer/random_programs.hpp>

#include <cstdlib>

namespace {

using namespace tocsin::model;
using enum std::memory_order;

constexpr reduction reductions[] = {reduction::sleep_sets, reduction::dpor};

struct comparison {
    unsigned compared = 0, too_large = 0, failing = 0;
    std::uint64_t full = 0, reduced = 0;
};

// A search ends with the first run that hangs. The reduced search must then find such a run, too.
void compare(const program& p, options how, comparison& all) {
    report r;
    how.reduce = reduction::none;
    const outcomes expected = outcomes_of(p, how, r);
    if (!r.failed && !r.complete) {
        ++all.too_large;
        return;
    }
    ++all.compared;
    all.failing += r.failed ? 1 : 0;
    all.full += r.executions;
    const bool fails = r.failed;
    how.max_executions = options{}.max_executions;
    for (const reduction each : reductions) {
        how.reduce = each;
        const outcomes found = outcomes_of(p, how, r);
        const std::string where =
            (each == reduction::dpor ? "dpor, spurious returns " : "sleep sets, spurious returns ") +
            std::to_string(how.spurious_returns) + ", timeouts " + std::to_string(how.timeouts) +
            (how.rmw_is_full_fence ? ", x86" : ", C++") + text_of(p);
        ASSERT_EQ(r.failed, fails) << where << '\n' << r.message;
        if (!fails) {
            ASSERT_TRUE(r.complete && found == expected)
                << found.size() << " of " << expected.size() << " outcomes, " << where;
        }
    }
    all.reduced += r.executions;
}

// Under both memory models, with and without spurious returns and timeouts at any point.
void compare_all(const program& p, options how, comparison& all) {
    for (const bool x86 : {false, true})
        for (const unsigned spurious : {0u, 1u})
            for (const unsigned timeouts : {0u, 1u}) {
                options now = x86 ? options::x86() : options{};
                now.relaxes = how.relaxes;
                now.max_steps = how.max_steps;
                now.max_executions = how.max_executions;
                now.spurious_returns = spurious;
                now.timeouts = timeouts;
                compare(p, now, all);
                if (testing::Test::HasFatalFailure()) return;
            }
}

// --- what was lost once ---

// The second sleep returns spuriously, at a point where its deadline could pass only because no thread was ready. An
// earlier reduction then treated the steps that follow as ordered after every earlier step.
TEST(reduction, WhatFollowsASpuriousReturnMayComeEarlier) {
    for (const reduction each : {reduction::none, reduction::sleep_sets, reduction::dpor}) {
        options how;
        how.reduce = each;
        bool seen = false;
        expect_holds(how, [&](run& r) {
            atomic<std::uint32_t> x{0}, y{0};
            futex_result first{}, second{};
            std::uint32_t read = 0;
            r.spawn("sleeper", [&] {
                first = futex_wait(&x, 0, true);
                x.store(2, release);
                second = futex_wait(&y, 0, true);
                x.store(1);
            });
            r.spawn("reader", [&] { read = x.load(relaxed); });
            r.join_all();
            seen |= first == futex_result::timed_out && second == futex_result::spurious && read == 1;
        });
        EXPECT_TRUE(seen);
    }
}

TEST(reduction, TheOtherSleeperMayBeTheFirstToLeave) {
    comparison all;
    compare_all({{{action::timed_sleep, 0, 1, relaxed}, {action::timed_sleep, 0, 2, relaxed}},
                 {{action::timed_sleep, 0, 3, relaxed},
                  {action::load, 0, 4, relaxed},
                  {action::store, 0, 5, relaxed}}},
                {}, all);
}

// A wait that finds another value touches no queue. Had it slept, its order with the two wakes would have mattered.
TEST(reduction, AWaitThatReturnsAtOnceMightHaveSlept) {
    comparison all;
    compare_all({{{action::timed_sleep, 1, 1, relaxed}, {action::exchange, 0, 2, relaxed}},
                 {{action::exchange, 0, 3, relaxed}, {action::store, 1, 4, relaxed}},
                 {{action::wake, 1, 1, relaxed}, {action::wake, 1, 1, relaxed}}},
                {}, all);
}

// A run in which a sleeper returns spuriously does not cover the run in which it never leaves.
TEST(reduction, ASpuriousReturnHidesNoHang) {
    for (const reduction each : reductions) {
        options how;
        how.reduce = each;
        expect_finds("nobody is left to wake it", how, [](run& r) {
            atomic<std::uint32_t> x{0}, y{0};
            r.spawn("forgotten", [&] { futex_wait(&x, 0); });
            r.spawn("times out", [&] { futex_wait(&y, 0, true); });
            r.join_all();
        });
    }
}

// --- what a reduction asks of a program ---

TEST(reduction, RefusesAFactThatIsTakenBack) {
    const auto body = [](run& r) {
        atomic<int> x{0};
        r.spawn("changes", [&] {
            x.store(1);
            x.store(0);
            x.store(1);
        });
        wait_until([&] { return x.load() == 1; });
        r.join_all();
    };
    expect_finds("taken back", {}, body);
    options full;
    full.reduce = reduction::none;
    expect_holds(full, body);
}

TEST(reduction, SaysThatASpinWasCut) {
    const auto body = [](run& r) {
        atomic<int> x{0};
        r.spawn("spins", [&] {
            for (int i = 0; i < 6 && x.load() == 0; ++i) cpu_relax();
        });
        r.spawn("stores", [&] { x.store(1); });
        r.join_all();
    };
    options how;
    EXPECT_TRUE(expect_holds(how, body).cut_spins);
    how.relaxes = 8;
    EXPECT_FALSE(expect_holds(how, body).cut_spins);
}

// --- random programs ---

struct family {
    const char* name;
    const actions* among;
    unsigned relaxes;
};

std::ostream& operator<<(std::ostream& to, const family& f) { return to << f.name; }

class random_programs : public testing::TestWithParam<std::tuple<family, unsigned>> {};

TEST_P(random_programs, KeepEveryOutcome) {
    const auto& [made_of, part] = GetParam();
    const unsigned count = std::getenv("TOCSIN_PROVE") != nullptr ? 400 : 10;
    options how;
    how.relaxes = made_of.relaxes;
    how.max_steps = 200;
    how.max_executions = 20'000;
    comparison all;
    for (unsigned i = 0; i < count && !HasFatalFailure(); ++i) {
        const unsigned seed = 1000 * part + i;
        const int threads = 2 + static_cast<int>(seed % 3 % 2);
        const int length = threads == 3 ? 2 : 3 + static_cast<int>(seed % 2);
        compare_all(random_program(seed, *made_of.among, threads, length), how, all);
    }
    EXPECT_GT(all.compared, all.too_large);
    std::printf(
        "  %u searches compared (%u of them find a run that hangs), %u too large; %llu executions, reduced "
        "to %llu\n",
        all.compared, all.failing, all.too_large, static_cast<unsigned long long>(all.full),
        static_cast<unsigned long long>(all.reduced));
}

INSTANTIATE_TEST_SUITE_P(reduction, random_programs,
                         testing::Combine(testing::Values(family{"memory", &memory_actions, 2},
                                                          family{"sleeping", &sleeping_actions, 2},
                                                          family{"blocking", &blocking_actions, 20},
                                                          family{"spinning", &spinning_actions, 1}),
                                          testing::Range(0u, 8u)),
                         [](const auto& each) {
                             return std::string(std::get<0>(each.param).name) +
                                    std::to_string(std::get<1>(each.param));
                         });

TEST(reduction, DrawnRunsStayWithinWhatIsPossible) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const program p = random_program(seed, memory_actions, 3, 2);
        report r;
        const outcomes all = outcomes_of(p, {}, r);
        const outcomes drawn = outcomes_of(p, options::drawn(500), r);
        for (const auto& outcome : drawn) EXPECT_TRUE(all.contains(outcome)) << "program " << seed;
    }
}

}  // namespace
