// SPDX-License-Identifier: Apache-2.0
// What the explorer detects and how it reports it. reduction_test.cpp tests that its reductions leave nothing out.
#include <explorer/expect.hpp>

#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>

namespace {

using namespace tocsin::model;
using enum std::memory_order;

// --- reports ---

test_body broken_message_passing() {
    return [](run& r) {
        atomic<int> data{0}, flag{0};
        name(&data, "data");
        name(&flag, "flag");
        r.spawn("writer", [&] {
            data.store(42, relaxed);
            flag.store(1, relaxed);
        });
        r.spawn("reader", [&] {
            if (flag.load(acquire) == 1) check(data.load(relaxed) == 42, "data before flag");
        });
        r.join_all();
    };
}

TEST(report, TableNamesTheThreadTheValueAndTheSourceOfEachRead) {
    const report r = expect_finds("data before flag", {}, broken_message_passing());
    for (const char* part : {"writer", "reader", "store", "load", "data", "flag", "42", "relaxed", "acquire",
                             "STALE", "initial value, newest 42 from step", "engine_test.cpp:"})
        EXPECT_NE(r.schedule.find(part), std::string::npos) << part << " in\n" << r.schedule;
}

TEST(report, ReplayStringRepeatsTheFailure) {
    for (const options& how :
         {options{}, options::bounded(2), options::drawn(1000), options::priorities(1000)}) {
        const report first = explore(how, broken_message_passing());
        ASSERT_TRUE(first.failed);
        const report again = replay(how, first.replay, broken_message_passing());
        EXPECT_TRUE(again.failed);
        EXPECT_EQ(again.executions, 1u);
        EXPECT_EQ(again.message, first.message);
        EXPECT_EQ(again.schedule, first.schedule);
        EXPECT_EQ(again.replay, first.replay);
    }
}

TEST(report, ReplayStringOfAnotherProgramIsRefused) {
    const report r = replay({}, "r1:7*3", broken_message_passing());
    EXPECT_TRUE(r.failed);
    EXPECT_NE(r.message.find("does not repeat"), std::string::npos) << r.message;
}

TEST(report, SameSeedDrawsTheSameRuns) {
    const report a = explore(options::drawn(1000, 7), broken_message_passing());
    const report b = explore(options::drawn(1000, 7), broken_message_passing());
    EXPECT_EQ(a.replay, b.replay);
    EXPECT_EQ(a.executions, b.executions);
}

TEST(report, AnExceptionIsAFailure) {
    expect_finds("thrown by a test", {}, [](run& r) {
        r.spawn("throws", [] { throw std::runtime_error("thrown by a test"); });
        r.join_all();
    });
}

TEST(report, ExceptionsAreHandledAcrossSteps) {
    expect_holds({}, [](run& r) {
        atomic<int> n{0};
        for (int i = 0; i < 2; ++i)
            r.spawn("throws", [&, i] {
                try {
                    n.fetch_add(1);
                    throw i;
                } catch (int caught) {
                    n.fetch_add(1);
                    check(caught == i, "its own exception");
                }
            });
        r.join_all();
    });
}

TEST(report, BodiesMustJoin) {
    expect_finds("join_all", {}, [](run& r) {
        static atomic<int> n{0};
        r.spawn("left behind", [] { n.store(1); });
    });
}

TEST(report, EndlessSpinningIsALivelock) {
    expect_finds("livelock", {}, [](run& r) {
        atomic<int> never{0};
        r.spawn("spins", [&] {
            while (never.load() == 0) cpu_relax();
        });
        r.join_all();
    });
}

TEST(report, EveryStepOfTheLongestRunMayStore) {
    options how;
    how.max_steps = step_limit;
    expect_holds(how, [](run&) {
        atomic<unsigned> last{0};
        for (unsigned i = 1; i < step_limit - 1; ++i) last.store(i, relaxed);
        check(last.load(relaxed) == step_limit - 2, "the newest message");
    });
    how.max_steps = step_limit + 1;
    EXPECT_THROW(explore(how, [](run&) {}), std::invalid_argument);
}

TEST(report, HookSeesTheEndOfEveryRun) {
    static atomic<int> left_over{0};
    options how;
    how.on_execution_end = [] { return left_over.load() == 2 ? "" : "not empty"; };
    const auto body = [](run& r) {
        for (int i = 0; i < 2; ++i) r.spawn("adds", [] { left_over.fetch_add(1); });
        r.join_all();
    };
    EXPECT_TRUE(explore(how, body).exhausted());  // and starts from 0 every time
    EXPECT_EQ(left_over.load(), 0);
    how.on_execution_end = [] { return left_over.load() == 0 ? "" : "not empty"; };
    EXPECT_EQ(explore(how, body).message, "not empty");
}

// --- lifetimes and races ---

TEST(lifetime, UseAfterDestructionIsFound) {
    expect_finds("destr", {}, [](run& r) {
        auto object = std::make_unique<atomic<int>>(0);
        atomic<int>* const seen = object.get();
        r.spawn("late", [seen] { seen->store(1); });
        r.spawn("owner", [&] { object.reset(); });
        r.join_all();
    });
}

TEST(lifetime, UseOfRecycledStorageIsFound) {
    expect_finds("storage used again", {}, [](run& r) {
        alignas(atomic<int>) unsigned char storage[sizeof(atomic<int>)];
        auto* first = new (storage) atomic<int>(0);
        atomic<int> released{0}, renewed{0};
        r.spawn("late", [&, first] {
            released.store(1, release);
            while (renewed.load(relaxed) == 0) cpu_relax();
            first->load(acquire);
        });
        r.spawn("owner", [&, first] {
            while (released.load(acquire) == 0) cpu_relax();
            first->~atomic<int>();
            new (storage) atomic<int>(7);
            renewed.store(1, relaxed);
        });
        r.join_all();
    });
}

TEST(lifetime, StackObjectsComeAndGo) {
    expect_holds({}, [](run& r) {
        for (int i = 0; i < 2; ++i)
            r.spawn("local", [] {
                for (int k = 0; k < 2; ++k) {
                    atomic<int> own{k};
                    plain<int> data{k};
                    ++data;
                    check(own.fetch_add(1) == k && data == k + 1, "fresh each time");
                }
            });
        r.join_all();
    });
}

TEST(races, UnorderedPlainAccessesAreFound) {
    expect_finds("data race", {}, [](run& r) {
        plain<int> n{0};
        for (int i = 0; i < 2; ++i) r.spawn("writes", [&] { n = 1; });
        r.join_all();
    });
}

TEST(races, AWriteRacesWithAReadBeforeTheWritersOwn) {
    options once;
    once.one_schedule = true;
    expect_finds("a read by another thread", once, [](run& r) {
        plain<int> n{0};
        r.spawn("reads", [&] { check(n == 0, ""); });
        r.spawn("reads and writes", [&] { n = n + 1; });
        r.join_all();
    });
}

TEST(races, SeqCstFencesDoNotOrderPlainAccessesByThemselves) {
    expect_finds("data race", {}, [](run& r) {
        plain<int> n{0};
        for (int i = 0; i < 2; ++i)
            r.spawn("writes", [&] {
                full_fence();
                n = 1;
                full_fence();
            });
        r.join_all();
    });
}

TEST(races, WhatFollowsAReleaseIsNotPublishedByIt) {
    expect_finds("data race", {}, [](run& r) {
        plain<int> n{0};
        atomic<int> flag{0};
        r.spawn("writer", [&] {
            thread_fence(release);
            n = 1;
            flag.store(1, relaxed);
        });
        r.spawn("reader", [&] {
            if (flag.load(acquire) == 1) check(n == 1, "");
        });
        r.join_all();
    });
}

TEST(races, JoinedAndSpawnedThreadsAreOrdered) {
    expect_holds({}, [](run& r) {
        plain<int> n{0};
        n = 1;
        auto t = r.spawn("writes", [&] { n = 2; });
        t.join();
        n = 3;
        r.spawn("reads", [&] { check(n == 3, "spawned after"); });
        r.join_all();
    });
}

// The futex orders nothing; only the atomics do.
TEST(races, AWakeUpDoesNotPublish) {
    expect_finds("data race", {}, [](run& r) {
        atomic<std::uint32_t> word{0};
        plain<int> data{0};
        r.spawn("sleeper", [&] {
            while (word.load(relaxed) == 0) futex_wait(&word, 0);
            check(data == 1, "");
        });
        r.spawn("waker", [&] {
            data = 1;
            word.store(1, release);
            futex_wake(&word);
        });
        r.join_all();
    });
}

// --- sleeping ---

std::set<futex_result> results_of_a_wait(const options& how, bool timed, bool woken) {
    std::set<futex_result> seen;
    expect_holds(how, [&](run& r) {
        atomic<std::uint32_t> word{0};
        r.spawn("sleeper", [&] {
            futex_result got;
            do {
                got = futex_wait(&word, 0, timed);
                seen.insert(got);
            } while (got == futex_result::spurious);
        });
        if (woken)
            r.spawn("waker", [&] {
                word.store(1);
                futex_wake(&word);
            });
        r.join_all();
    });
    return seen;
}

TEST(sleeping, EndsInEveryWayThatItMay) {
    using enum futex_result;
    EXPECT_EQ(results_of_a_wait({}, true, true), (std::set{differed, woken, timed_out, spurious}));
    EXPECT_EQ(results_of_a_wait({}, false, true), (std::set{differed, woken, spurious}));
    options quiet;
    quiet.spurious_returns = 0;
    EXPECT_EQ(results_of_a_wait(quiet, false, true), (std::set{differed, woken}));
    quiet.timeouts = 0;  // but deadlines still pass where no thread is ready
    EXPECT_EQ(results_of_a_wait(quiet, true, false), (std::set{timed_out}));
    EXPECT_EQ(results_of_a_wait(quiet, true, true), (std::set{differed, woken}));
}

// A spurious return must not hide that no thread is going to wake the sleeper.
TEST(sleeping, SpuriousReturnsSaveNobody) {
    expect_finds("nobody is left to wake it", {}, [](run& r) {
        atomic<std::uint32_t> word{0};
        r.spawn("sleeper", [&] { futex_wait(&word, 0); });
        r.join_all();
    });
}

TEST(sleeping, AWakeReachesAsManyAsItSays) {
    options how;
    how.spurious_returns = 0;
    expect_holds(how, [](run& r) {
        atomic<std::uint32_t> word{0};
        unsigned woken = 0;
        for (int i = 0; i < 2; ++i)
            r.spawn("sleeper", [&] { woken += futex_wait(&word, 0) == futex_result::woken; });
        unsigned said = futex_wake(&word, 1);
        check(said <= 1, "one at most");
        word.store(1);
        said += futex_wake(&word, 2);
        r.join_all();
        check(woken == said, "those and no others");
    });
}

TEST(sleeping, TwoWakesReachTwoSleepers) {
    options how;
    how.spurious_returns = 0;
    expect_holds(how, [](run& r) {
        atomic<std::uint32_t> word{0};
        int going_to_sleep = 0;
        for (int i = 0; i < 2; ++i)
            r.spawn("sleeper", [&] {
                word.load(relaxed);
                ++going_to_sleep;  // the thread is asleep with the next step
                futex_wait(&word, 0);
            });
        wait_until([&] { return going_to_sleep == 2; });
        unsigned woken = futex_wake(&word) + futex_wake(&word);
        word.store(1);
        woken += futex_wake(&word, 2);
        r.join_all();
        check(woken <= 2, "no more than slept");
    });
}

TEST(sleeping, AWakeOfAnyReachesEither) {
    for (const reduction each : {reduction::none, reduction::dpor}) {
        options how;
        how.reduce = each;
        how.spurious_returns = 0;
        std::set<int> found;
        const report result = explore(how, [&](run& r) {
            atomic<std::uint32_t> word{0};
            int first = 0;
            for (const int i : {1, 2})
                r.spawn("sleeper", [&, i] {
                    if (futex_wait(&word, 0) == futex_result::woken && first == 0) first = i;
                });
            wait_until([] { return others_are_blocked(); });
            futex_wake_any_and_show(&word, sizeof word);
            wait_until([] { return others_are_blocked(); });
            found.insert(first);
            word.store(1);
            futex_wake(&word, 2);
            r.join_all();
        });
        EXPECT_TRUE(result.exhausted()) << result.text();
        EXPECT_EQ(found, (std::set<int>{1, 2}));
    }
}

TEST(sleeping, AFactThatNeverComesTrueIsADeadlock) {
    expect_finds("does not come true", {}, [](run& r) {
        atomic<int> n{0};
        r.spawn("adds", [&] { n.fetch_add(1); });
        wait_until([&] { return n.load() == 2; });
        r.join_all();
    });
}

// --- stop tokens ---

TEST(stopping, RunsEveryCallbackOnceAndWaitsForIt) {
    expect_holds({}, [](run& r) {
        stop_source source;
        atomic<int> finished{0};
        int calls = 0;
        r.spawn("stopper", [&] { source.request_stop(); });
        r.spawn("registers", [&] {
            {
                stop_callback callback(source.get_token(), [&] {
                    ++calls;
                    finished.store(1, relaxed);
                    finished.store(2, relaxed);
                });
            }
            const int seen = finished.load(relaxed);
            check(seen == 0 || seen == 2, "a callback does not run past its destructor");
        });
        r.join_all();
        check(calls <= 1 && source.stop_requested(), "");
    });
}

TEST(stopping, RunsACallbackAtOnceIfRequestedAlready) {
    expect_holds({}, [](run&) {
        stop_source source;
        check(source.request_stop() && !source.request_stop(), "one request");
        int calls = 0;
        stop_callback callback(source.get_token(), [&] { ++calls; });
        check(calls == 1, "in the constructor");
    });
}

// --- killed threads ---

// A reduced search finds what a search of all schedules finds.
TEST(killed, AThreadEndsAfterAnyOfItsStepsOrNotAtAll) {
    for (const reduction each : {reduction::none, reduction::sleep_sets, reduction::dpor}) {
        options how;
        how.reduce = each;
        std::set<std::pair<int, bool>> found;
        const report result = explore(how, [&](run& r) {
            atomic<int> steps{0};
            bool killed = false;
            const auto victim = r.spawn("victim", [&] {
                for (int i = 1; i != 4; ++i) steps.store(i, relaxed);
            });
            r.spawn("killer", [&] {
                killed = end_thread(victim.number());
                found.emplace(steps.load(relaxed), killed);
            });
            r.join_all();
        });
        EXPECT_TRUE(result.exhausted()) << result.text();
        EXPECT_EQ(found, (std::set<std::pair<int, bool>>{{0, true}, {1, true}, {2, true}, {3, false}}));
    }
}

TEST(killed, AThreadEndsInItsSleepOrIsWokenBefore) {
    for (const reduction each : {reduction::none, reduction::dpor}) {
        options how;
        how.reduce = each;
        how.spurious_returns = 0;
        std::set<int> found;
        const report result = explore(how, [&](run& r) {
            atomic<std::uint32_t> word{0};
            int passed = 0;
            const auto victim = r.spawn("victim", [&] {
                while (word.load(relaxed) == 0) futex_wait(&word, 0);
                passed += 1;
            });
            r.spawn("waiter", [&] {
                while (word.load(relaxed) == 0) futex_wait(&word, 0);
                passed += 2;
            });
            r.spawn("killer", [&] { end_thread(victim.number()); });
            word.store(1, relaxed);
            futex_wake(&word, 2);
            r.join_all();
            found.insert(passed);
        });
        EXPECT_TRUE(result.exhausted()) << result.text();
        EXPECT_EQ(found, (std::set<int>{2, 3}));
    }
}

// As futex_waitv: whoever is woken through one word stays queued on the other until it runs.
TEST(several_words, AWakeMayBeSpentOnAThreadThatIsAwake) {
    options how;
    how.spurious_returns = 0;
    const report result = explore(how, [](run& r) {
        atomic<std::uint32_t> a{0}, b{0};
        r.spawn("of both", [&] { futex_wait_any({{&a, 4, 0}, {&b, 4, 0}}); });
        r.spawn("of one", [&] { futex_wait_any({{&b, 4, 0}}); });
        wait_until([] { return others_are_blocked(); });
        futex_wake(&a, 1);
        futex_wake(&b, 1);
        r.join_all();
    });
    EXPECT_TRUE(result.failed);
    EXPECT_NE(result.message.find("of one sleeps"), std::string::npos) << result.text();
}

}  // namespace
