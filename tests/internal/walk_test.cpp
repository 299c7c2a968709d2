// SPDX-License-Identifier: Apache-2.0
// How often a set looks at the waits for all of its event, and in which order it satisfies them. How often it looks at
// the other sources of such a wait.
#include "../support/facts.hpp"
#include "../support/random.hpp"
#include "../support/task.hpp"
#include "../support/threads.hpp"
#include "core/lot/lot.hpp"
#include "core/wait/multi_wait.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace {

using tocsin::async_wait;
using tocsin::async_wait_all;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::core::all_waiter;
using tocsin::core::locked_queue;
using tocsin::core::release_list;
using tocsin::core::reply;
using tocsin::core::wait_key;
using tocsin::core::wait_kind;
using tocsin::core::wait_node;

// A wait for all in the queue of a key, which counts how often it is looked at.
class counted final : public all_waiter {
public:
    counted(const wait_key& key, bool lacks_something, bool fails = false)
        : node_(key, *this), lacks_something_(lacks_something), fails_(fails) {
        locked_queue(key).append(node_);
    }
    ~counted() { leave(); }

    reply on_wake(const wait_node*) noexcept override {
        ++looks;
        return lacks_something_ ? reply::declined : reply::undecided;
    }
    bool commit(const wait_node*) noexcept override {
        if (fails_) {
            lacks_something_ = true;
            return false;
        }
        leave();
        return true;
    }
    bool is_parked() const { return node_.queued; }

    int looks = 0;

private:
    void leave() { locked_queue(node_.key).remove(node_); }

    wait_node node_;
    bool lacks_something_;
    const bool fails_;
};

class Walk : public testing::Test {
protected:
    const wait_key& key() const { return key_; }
    counted& add(bool lacks_something, bool fails = false) {
        return *all_.emplace_back(std::make_unique<counted>(key(), lacks_something, fails));
    }
    void expect_one_look_each() const {
        EXPECT_TRUE(std::ranges::all_of(all_, [](const auto& each) { return each->looks == 1; }))
            << "looks: "
            << std::transform_reduce(all_.begin(), all_.end(), 0L, std::plus<>(),
                                     [](const auto& each) { return each->looks; });
    }
    std::ptrdiff_t parked() const {
        return std::ranges::count_if(all_, [](const auto& each) { return each->is_parked(); });
    }

    std::vector<std::unique_ptr<counted>> all_;

private:
    char place_ = 0;
    const wait_key key_{&place_, wait_kind::event};
};

TEST_F(Walk, LooksOnceAtEachWhateverTheirMix) {
    constexpr int count = 2'000;
    for (const int period : {2, 3, 64, 65, count}) {
        for (int i = 0; i != count; ++i) add(i % period != 0);
        tocsin::core::satisfy_all_waiters(key());
        expect_one_look_each();
        EXPECT_EQ(parked(), count - (count + period - 1) / period);
        all_.clear();
    }
}

TEST_F(Walk, LooksOnceAtEachIfTheOlderHalfLacksSomething) {
    constexpr int count = 2'000;
    for (int i = 0; i != count; ++i) add(i < count / 2);
    tocsin::core::satisfy_all_waiters(key());
    expect_one_look_each();
    EXPECT_EQ(parked(), count / 2);
}

TEST_F(Walk, LooksOnceAtEachIfCommitsFail) {
    for (int i = 0; i != 500; ++i) add(false, i % 2 == 0);
    tocsin::core::satisfy_all_waiters(key());
    expect_one_look_each();
    EXPECT_EQ(parked(), 250);
}

// Each commit that fails costs an offer no more than the part of the walk in which it was.
TEST_F(Walk, AnOfferDoesNotBeginAgainForEachCommitThatFails) {
    constexpr int count = 1'000;
    for (int i = 0; i != count; ++i) add(i % 10 != 0, true);
    tocsin::core::queue_cursor offered(key());
    for (auto result = tocsin::core::offer_result::unfinished;
         result != tocsin::core::offer_result::declined;) {
        release_list freed;
        wait_node* undecided = nullptr;
        result = locked_queue(key()).give_to_one(freed, offered, undecided);
        EXPECT_TRUE(freed.empty());
        if (undecided != nullptr) {
            EXPECT_FALSE(undecided->all->commit(undecided));
        }
    }
    for (const auto& each : all_) ASSERT_LE(each->looks, 1 + tocsin::core::looks_per_lock / 10 + 1);
}

// The wait that is committed takes its neighbours out of the queue, at the place where the walk is.
TEST_F(Walk, ContinuesWhereItWasIfOthersLeaveMeanwhile) {
    struct remover final : all_waiter {
        remover(const wait_key& key, std::vector<std::unique_ptr<counted>>& others)
            : node(key, *this), all(others) {
            locked_queue(key).append(node);
        }
        reply on_wake(const wait_node*) noexcept override { return reply::undecided; }
        bool commit(const wait_node*) noexcept override {
            locked_queue(node.key).remove(node);
            all.erase(all.begin() + 90, all.begin() + 110);
            return true;
        }
        wait_node node;
        std::vector<std::unique_ptr<counted>>& all;
    };
    for (int i = 0; i != 100; ++i) add(true);
    remover middle(key(), all_);
    for (int i = 0; i != 100; ++i) add(true);
    add(false);
    tocsin::core::satisfy_all_waiters(key());
    expect_one_look_each();
    EXPECT_EQ(parked(), 180);
}

// Waits for both, then enters its number.
support::task pass_both(auto& one, auto& other, std::vector<std::size_t>& passed, std::size_t number) {
    co_await async_wait_all(one, other);
    passed.push_back(number);
}

TEST(AllWaiters, ASetOfAGateSatisfiesAllThatLackNothingElseInOrder) {
    constexpr std::size_t count = 500;
    manual_reset_event gate;
    std::vector<auto_reset_event> own(count);
    std::vector<std::size_t> passed;
    std::vector<support::task> tasks;
    for (std::size_t i = 0; i != count; ++i) {
        if (i % 3 == 0) own[i].set();
        tasks.push_back(pass_both(gate, own[i], passed, i));
    }
    gate.set();
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < count; i += 3) expected.push_back(i);
    EXPECT_EQ(passed, expected);
    for (std::size_t i = 0; i != count; ++i) {
        EXPECT_FALSE(own[i].is_set());
        if (i % 3 != 0) own[i].set();
    }
    EXPECT_EQ(passed.size(), count);
}

// All want one token: the oldest gets it.
TEST(AllWaiters, ASharedTokenGoesToTheOldest) {
    manual_reset_event gate;
    auto_reset_event shared;
    std::vector<std::size_t> passed;
    std::vector<support::task> tasks;
    for (std::size_t i = 0; i != 200; ++i) tasks.push_back(pass_both(gate, shared, passed, i));
    shared.set();
    gate.set();
    EXPECT_EQ(passed, std::vector<std::size_t>{0});
    for (int i = 1; i != 200; ++i) shared.set();
    EXPECT_EQ(passed.size(), 200u);
    EXPECT_TRUE(std::ranges::is_sorted(passed));
}

// A token passes many waits for all that lack something, and reaches the waiter at the end of the queue.
TEST(AllWaiters, ATokenReachesTheWaiterBehindManyThatLackSomething) {
    auto_reset_event event;
    auto_reset_event other;
    std::vector<std::size_t> passed;
    std::vector<support::task> tasks;
    for (std::size_t i = 0; i != 300; ++i) tasks.push_back(pass_both(event, other, passed, i));
    bool reached = false;
    const support::task last = [](auto& awaited, bool& done) -> support::task {
        co_await async_wait(awaited);
        done = true;
    }(event, reached);
    event.set();
    EXPECT_TRUE(reached);
    EXPECT_FALSE(event.is_set());
    for (int i = 0; i != 300; ++i) {
        event.set();
        other.set();
    }
    EXPECT_EQ(passed.size(), 300u);
}

thread_local std::size_t looks = 0;  // of this thread: the waiting thread looks, too, for as long as it likes

// A source of the lot that counts looks at it.
template <class Object>
struct looked_at {
    static void set(Object& object) {
        if constexpr (requires { object.set(); }) {
            object.set();
        } else {
            object.release();
        }
    }
    static tocsin::source count_looks_at(Object& object) {
        static const tocsin::detail::lot_source original = tocsin::source(object).lot();
        static const tocsin::detail::lot_source counting = [] {
            tocsin::detail::lot_source made = original;
            made.looks_ready = [](const void* at) noexcept {
                ++looks;
                return original.looks_ready(at);
            };
            return made;
        }();
        return {&object, counting};
    }
};

struct unset_semaphore : tocsin::counting_semaphore<> {
    unset_semaphore() : counting_semaphore(0) {}
};

enum class set_order { of_the_list, reverse, random, every_other_first };

std::vector<std::size_t> indices_in(set_order order, std::size_t count) {
    std::vector<std::size_t> made(count);
    std::iota(made.begin(), made.end(), std::size_t{0});
    support::random_source random(34);
    switch (order) {
        case set_order::of_the_list: break;
        case set_order::reverse: std::ranges::reverse(made); break;
        case set_order::random:
            for (std::size_t i = count; i > 1; --i) std::swap(made[i - 1], made[random.below(i)]);
            break;
        case set_order::every_other_first:
            std::ranges::stable_partition(made, [](std::size_t i) { return i % 2 != 0; });
            break;
    }
    return made;
}

template <class Object>
class SetsOfAWaitForAll : public testing::Test {
protected:
    using looked = looked_at<Object>;
    static constexpr std::size_t count = 1'000;

    // `wait` begins a wait for all of the sources, and then calls the function that sets them. (multi_wait-7 has the
    // number: a set in the order of the list would otherwise look at all sources before it.)
    void expect_few_looks(const auto& wait) {
        for (const set_order order :
             {set_order::of_the_list, set_order::reverse, set_order::random, set_order::every_other_first}) {
            std::vector<Object> objects(count);
            std::vector<tocsin::source> sources;
            for (Object& each : objects) sources.push_back(looked::count_looks_at(each));
            wait(sources, [&] {
                looks = 0;
                for (const std::size_t i : indices_in(order, count)) looked::set(objects[i]);
                EXPECT_GE(looks, count - 1);  // so looks are counted
                EXPECT_LE(looks, 4 * count) << "order " << static_cast<int>(order);
            });
        }
    }
};
using kinds_of_the_lot = testing::Types<manual_reset_event, auto_reset_event, unset_semaphore>;
TYPED_TEST_SUITE(SetsOfAWaitForAll, kinds_of_the_lot);

TYPED_TEST(SetsOfAWaitForAll, LookAtEachSourceFourTimesAtMostWhateverTheirOrder) {
    this->expect_few_looks([](const auto& sources, const auto& set_all) {
        support::thread_group threads;
        threads.start("waits for all", [&] { tocsin::wait_all(std::span(sources)); });
        support::until_parked(sources.back().object(), 1);
        threads.until_asleep(0);  // it looks no more
        set_all();
        threads.join();
    });
}

TYPED_TEST(SetsOfAWaitForAll, OfASpanOperationLookAtEachSourceFourTimesAtMostWhateverTheirOrder) {
    this->expect_few_looks([](const auto& sources, const auto& set_all) {
        const auto memory = std::make_unique<std::byte[]>(tocsin::span_operation::size(sources.size()));
        bool passed = false;
        auto& wait = tocsin::span_operation::make(
            memory.get(), true, sources, {},
            [](void* told, const tocsin::any_result&) noexcept { *static_cast<bool*>(told) = true; },
            &passed);
        wait.start();
        set_all();
        EXPECT_TRUE(passed);
        std::destroy_at(&wait);
    });
}

}  // namespace
