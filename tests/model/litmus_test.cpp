// SPDX-License-Identifier: Apache-2.0
// Litmus tests of the literature on the explorer's memory. Each case collects the results of all executions and
// compares them with what C++20 allows.
#include <explorer/expect.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace {

using namespace tocsin::model;
using enum std::memory_order;
using order = std::memory_order;
using result = std::vector<int>;
using results = std::set<result>;

// A case gets a run and a result to fill in after joining.
template <class Case>
results outcomes_of(const options& how, Case&& one_case) {
    results seen;
    expect_holds(how, [&](run& r) {
        result values;
        one_case(r, values);
        seen.insert(values);
    });
    return seen;
}

results store_buffering(const options& how, order store, order load, order fence = relaxed) {
    return outcomes_of(how, [=](run& r, result& out) {
        atomic<int> x{0}, y{0};
        int a = 0, b = 0;
        r.spawn("left", [&] {
            x.store(1, store);
            thread_fence(fence);
            a = y.load(load);
        });
        r.spawn("right", [&] {
            y.store(1, store);
            thread_fence(fence);
            b = x.load(load);
        });
        r.join_all();
        out = {a, b};
    });
}

TEST(litmus, StoreBufferingIsSeenUnderRelaxedAndAcquireRelease) {
    const results all{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    EXPECT_EQ(store_buffering({}, relaxed, relaxed), all);
    EXPECT_EQ(store_buffering({}, release, acquire), all);
    EXPECT_EQ(store_buffering({}, release, acquire, acq_rel), all);
    EXPECT_EQ(store_buffering(options::x86(), release, acquire), all);
}

TEST(litmus, StoreBufferingIsForbiddenBySeqCstAccessesAndByFullFences) {
    const results ordered{{0, 1}, {1, 0}, {1, 1}};
    EXPECT_EQ(store_buffering({}, seq_cst, seq_cst), ordered);
    EXPECT_EQ(store_buffering({}, relaxed, relaxed, seq_cst), ordered);
    EXPECT_EQ(store_buffering(options::x86(), seq_cst, seq_cst), ordered);
    EXPECT_EQ(store_buffering(options::x86(), relaxed, relaxed, seq_cst), ordered);
}

results dekker_with_exchange(const options& how, order o) {
    return outcomes_of(how, [=](run& r, result& out) {
        atomic<int> x{0}, y{0};
        int a = 0, b = 0;
        r.spawn("left", [&] {
            x.exchange(1, o);
            a = y.load(acquire);
        });
        r.spawn("right", [&] {
            y.exchange(1, o);
            b = x.load(acquire);
        });
        r.join_all();
        out = {a, b};
    });
}

TEST(litmus, ExchangeOrdersDekkerOnlyWhereItIsAFullFence) {
    EXPECT_TRUE(dekker_with_exchange({}, acq_rel).contains({0, 0}));
    // C++ promises no more for seq_cst: the loads are not in that order.
    EXPECT_TRUE(dekker_with_exchange({}, seq_cst).contains({0, 0}));
    EXPECT_FALSE(dekker_with_exchange(options::x86(), acq_rel).contains({0, 0}));
    EXPECT_FALSE(dekker_with_exchange(options::x86(), relaxed).contains({0, 0}));
}

results message_passing(order publish, order observe, bool fences = false) {
    return outcomes_of({}, [=](run& r, result& out) {
        atomic<int> data{0}, flag{0};
        int f = 0, d = 0;
        r.spawn("writer", [&] {
            data.store(1, relaxed);
            if (fences) thread_fence(release);
            flag.store(1, publish);
        });
        r.spawn("reader", [&] {
            f = flag.load(observe);
            if (fences) thread_fence(acquire);
            d = data.load(relaxed);
        });
        r.join_all();
        out = {f, d};
    });
}

TEST(litmus, MessagePassingNeedsReleaseAndAcquire) {
    EXPECT_TRUE(message_passing(relaxed, relaxed).contains({1, 0}));
    EXPECT_TRUE(message_passing(release, relaxed).contains({1, 0}));
    EXPECT_TRUE(message_passing(relaxed, acquire).contains({1, 0}));
    EXPECT_EQ(message_passing(release, acquire), (results{{0, 0}, {0, 1}, {1, 1}}));
    EXPECT_EQ(message_passing(relaxed, relaxed, true), (results{{0, 0}, {0, 1}, {1, 1}}));
}

// C++ allows {1, 1} under relaxed. Executions in which a load reads from a later store are not explored (see
// memory.hpp).
TEST(litmus, LoadBufferingIsNotProduced) {
    const results seen = outcomes_of({}, [](run& r, result& out) {
        atomic<int> x{0}, y{0};
        int a = 0, b = 0;
        r.spawn("left", [&] {
            a = x.load(relaxed);
            y.store(1, relaxed);
        });
        r.spawn("right", [&] {
            b = y.load(relaxed);
            x.store(1, relaxed);
        });
        r.join_all();
        out = {a, b};
    });
    EXPECT_EQ(seen, (results{{0, 0}, {0, 1}, {1, 0}}));
}

results independent_reads(const options& how, order write, order read, order fence = relaxed) {
    return outcomes_of(how, [=](run& r, result& out) {
        atomic<int> x{0}, y{0};
        int a = 0, b = 0, c = 0, d = 0;
        r.spawn("write x", [&] { x.store(1, write); });
        r.spawn("write y", [&] { y.store(1, write); });
        r.spawn("x then y", [&] {
            a = x.load(read);
            thread_fence(fence);
            b = y.load(read);
        });
        r.spawn("y then x", [&] {
            c = y.load(read);
            thread_fence(fence);
            d = x.load(read);
        });
        r.join_all();
        out = {a, b, c, d};
    });
}

TEST(litmus, IndependentReadersMayDisagreeUnlessAllIsSeqCst) {
    const result disagree{1, 0, 1, 0};
    EXPECT_TRUE(independent_reads({}, release, acquire).contains(disagree));
    EXPECT_FALSE(independent_reads({}, seq_cst, seq_cst).contains(disagree));
    EXPECT_FALSE(independent_reads({}, relaxed, relaxed, seq_cst).contains(disagree));
    EXPECT_EQ(independent_reads({}, seq_cst, seq_cst).size(), 15u);
}

results two_plus_two_writes(const options& how, order o, order fence = relaxed) {
    return outcomes_of(how, [=](run& r, result& out) {
        atomic<int> x{0}, y{0};
        r.spawn("left", [&] {
            x.store(1, o);
            thread_fence(fence);
            y.store(2, o);
        });
        r.spawn("right", [&] {
            y.store(1, o);
            thread_fence(fence);
            x.store(2, o);
        });
        r.join_all();
        out = {x.load(relaxed), y.load(relaxed)};
    });
}

TEST(litmus, TwoPlusTwoWritesMayLeaveBothFirstOnes) {
    EXPECT_TRUE(two_plus_two_writes({}, relaxed).contains({1, 1}));
    EXPECT_TRUE(two_plus_two_writes({}, release).contains({1, 1}));
    EXPECT_FALSE(two_plus_two_writes({}, seq_cst).contains({1, 1}));
    EXPECT_FALSE(two_plus_two_writes({}, relaxed, seq_cst).contains({1, 1}));
    EXPECT_FALSE(two_plus_two_writes(options::x86(), relaxed).contains({1, 1}));
}

TEST(litmus, ReadsOfOneLocationNeverGoBack) {
    const results seen = outcomes_of({}, [](run& r, result& out) {
        atomic<int> x{0};
        int a = 0, b = 0, c = 0;
        r.spawn("writer", [&] {
            x.store(1, relaxed);
            x.store(2, relaxed);
        });
        r.spawn("reader", [&] {
            a = x.load(relaxed);
            b = x.load(relaxed);
            c = x.load(relaxed);
        });
        r.join_all();
        out = {a, b, c};
    });
    EXPECT_EQ(seen.size(), 10u);  // the ascending triples of 0, 1, 2
    for (const result& s : seen) EXPECT_TRUE(std::is_sorted(s.begin(), s.end()));
}

TEST(litmus, ReadersAgreeOnTheOrderOfTwoWriters) {
    const results seen = outcomes_of({}, [](run& r, result& out) {
        atomic<int> x{0};
        int v[4]{};
        r.spawn("one", [&] { x.store(1, relaxed); });
        r.spawn("two", [&] { x.store(2, relaxed); });
        for (int i : {0, 2})
            r.spawn("reader", [&, i] {
                v[i] = x.load(relaxed);
                v[i + 1] = x.load(relaxed);
            });
        r.join_all();
        out.assign(v, v + 4);
    });
    EXPECT_TRUE(seen.contains({1, 2, 1, 2}));
    EXPECT_FALSE(seen.contains({1, 2, 2, 1}));
}

TEST(litmus, AWriterSeesItsOwnStores) {
    const results seen = outcomes_of({}, [](run& r, result& out) {
        atomic<int> x{0};
        int a = 0;
        r.spawn("one", [&] {
            x.store(1, relaxed);
            a = x.load(relaxed);
        });
        r.spawn("two", [&] { x.store(2, relaxed); });
        r.join_all();
        out = {a};
    });
    EXPECT_EQ(seen, (results{{1}, {2}}));
}

// The reader acquires a value that a third thread has made from the released one, by one read-modify-write or by a load
// and a store.
results release_sequence(bool by_rmw) {
    return outcomes_of({}, [=](run& r, result& out) {
        atomic<int> data{0}, flag{0};
        int f = 0, d = 0;
        r.spawn("writer", [&] {
            data.store(1, relaxed);
            flag.store(1, release);
        });
        r.spawn("between", [&] {
            if (by_rmw)
                flag.fetch_add(2, relaxed);
            else if (flag.load(relaxed) == 1)
                flag.store(3, relaxed);
        });
        r.spawn("reader", [&] {
            f = flag.load(acquire);
            d = data.load(relaxed);
        });
        r.join_all();
        out = {f, d};
    });
}

TEST(litmus, ReleaseSequencesGoThroughReadModifyWritesOnly) {
    EXPECT_FALSE(release_sequence(true).contains({3, 0}));
    EXPECT_TRUE(release_sequence(true).contains({3, 1}));
    EXPECT_TRUE(release_sequence(false).contains({3, 0}));
}

TEST(litmus, ReleaseSequencesEndWithAnotherStoreOfTheSameThread)  // since C++20
{
    const results seen = outcomes_of({}, [](run& r, result& out) {
        atomic<int> data{0}, flag{0};
        int f = 0, d = 0;
        r.spawn("writer", [&] {
            data.store(1, relaxed);
            flag.store(1, release);
            flag.store(2, relaxed);
        });
        r.spawn("reader", [&] {
            f = flag.load(acquire);
            d = data.load(relaxed);
        });
        r.join_all();
        out = {f, d};
    });
    EXPECT_FALSE(seen.contains({1, 0}));
    EXPECT_TRUE(seen.contains({2, 0}));
}

TEST(litmus, ReadModifyWritesLoseNothing) {
    for (const options& how : {options{}, options::x86()}) {
        const results seen = outcomes_of(how, [](run& r, result& out) {
            atomic<int> n{0};
            for (int i = 0; i < 3; ++i)
                r.spawn("adds", [&] {
                    n.fetch_add(1, relaxed);
                    int v = n.load(relaxed);
                    while (!n.compare_exchange_weak(v, v + 10, relaxed)) {
                    }
                });
            r.join_all();
            out = {n.load()};
        });
        EXPECT_EQ(seen, (results{{33}}));
    }
}

TEST(litmus, LoadAndStoreLoseIncrements) {
    const results seen = outcomes_of({}, [](run& r, result& out) {
        atomic<int> n{0};
        for (int i = 0; i < 2; ++i) r.spawn("adds", [&] { n.store(n.load() + 1); });
        r.join_all();
        out = {n.load()};
    });
    EXPECT_EQ(seen, (results{{1}, {2}}));
}

TEST(litmus, WeakCompareExchangeFailsForNoReasonWhenAsked) {
    options how;
    how.weak_failures = 1;
    const results seen = outcomes_of(how, [](run&, result& out) {
        atomic<int> n{0};
        int expected = 0;
        out = {n.compare_exchange_weak(expected, 1), n.compare_exchange_weak(expected, 2)};
    });
    EXPECT_EQ(seen, (results{{1, 0}, {0, 1}}));
}

test_body peterson(order o) {
    return [o](run& r) {
        atomic<int> wants[2]{0, 0};
        atomic<int> turn{0};
        plain<int> guarded{0};
        for (int me : {0, 1})
            r.spawn(me ? "right" : "left", [&, me] {
                wants[me].store(1, o == seq_cst ? seq_cst : release);
                turn.store(1 - me, o == seq_cst ? seq_cst : release);
                const order load = o == seq_cst ? seq_cst : acquire;
                while (wants[1 - me].load(load) == 1 && turn.load(load) == 1 - me) cpu_relax();
                ++guarded;
                wants[me].store(0, o == seq_cst ? seq_cst : release);
            });
        r.join_all();
        check(guarded == 2, "both were in");
    };
}

TEST(litmus, PetersonExcludesWithSeqCst) { expect_holds({}, peterson(seq_cst)); }

TEST(litmus, PetersonFailsWithReleaseAndAcquire) {
    expect_finds("data race", {}, peterson(acq_rel), 1000);
    expect_finds("data race", options::x86(), peterson(acq_rel), 1000);
}

}  // namespace
