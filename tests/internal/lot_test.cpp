// SPDX-License-Identifier: Apache-2.0
// The queues of the lot, seen from inside: order, counts, nodes removed from anywhere, nothing left behind.
#include "core/lot/lot.hpp"

#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "random.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

// What a wake checks before it looks into the queue: the filter bit.
bool has_filter_bit(const tocsin::core::wait_key& key) {
    return tocsin::core::may_be_waited_on(key, [] { tocsin::detail::full_fence(); });
}

using namespace std::chrono_literals;
using support::rounds;
using support::thread_group;
using tocsin::deadline;
using tocsin::core::claim;
using tocsin::core::key_hash;
using tocsin::core::locked_queue;
using tocsin::core::release_list;
using tocsin::core::wait_key;
using tocsin::core::wait_kind;
using tocsin::core::wait_node;
using tocsin::core::waiter;

// A waiter with its node, without a thread: once released, it does not sleep.
struct parked {
    parked(const wait_key& key, bool cancelable) : node(key, self, cancelable) {}
    waiter self;
    wait_node node;

    // Finishes the wait as a thread would, and returns whether it was released.
    bool finish_if_released() { return sleep(self, deadline(0s)) == claim::signaled; }
};

// Keys of different addresses that nobody looks at, all in one bucket. The addresses are drawn: how addresses at equal
// distances spread depends on the hash's secret.
class one_bucket {
public:
    explicit one_bucket(std::uint64_t number) : random_(number) {}

    wait_key next() {
        for (;;) {
            const auto drawn = static_cast<std::uintptr_t>(random_.next());
            const wait_key key{reinterpret_cast<const void*>(drawn), wait_kind::address};
            if (used_.empty()) index_ = key_hash(key).index;
            if (key_hash(key).index == index_ && used_.insert(drawn).second) return key;
        }
    }

private:
    support::random_source random_;
    std::set<std::uintptr_t> used_;
    std::size_t index_ = 0;
};

// Two keys in one bucket, with the same bit of its filter or with different bits.
std::pair<wait_key, wait_key> neighbours(bool same_filter_bit) {
    one_bucket keys(8);
    const wait_key first = keys.next();
    for (;;) {
        const wait_key second = keys.next();
        if ((key_hash(second).filter_bit() == key_hash(first).filter_bit()) == same_filter_bit)
            return {first, second};
    }
}

// Every test leaves the lot as it found it: empty.
class Lot : public testing::Test {
protected:
    void TearDown() override {
        std::size_t dirty = 0;
        for (const auto& each : tocsin::core::the_lot->at) dirty += each.is_pristine() ? 0 : 1;
        EXPECT_EQ(dirty, 0u) << "buckets with something left in them";
        std::size_t nodes = 0;
        tocsin::core::for_each_parked(
            [](const wait_node&, void* count) { ++*static_cast<std::size_t*>(count); }, &nodes);
        EXPECT_EQ(nodes, 0u);
    }

    wait_key at(std::size_t offset, wait_kind what = wait_kind::address) { return {&memory_[offset], what}; }

    parked& park(const wait_key& key, bool cancelable = false) {
        auto& made = *waiters_.emplace_back(std::make_unique<parked>(key, cancelable));
        locked_queue queue(key);
        queue.prepare_wait();
        queue.append(made.node);
        return made;
    }

    static std::vector<const wait_node*> queue_of(const wait_key& key) {
        std::vector<const wait_node*> found;
        locked_queue queue(key);
        queue.for_each([&](const wait_node& each) { found.push_back(&each); });
        EXPECT_EQ(found.empty(), queue.empty());
        return found;
    }

    static bool take_one(const wait_key& key) {
        release_list freed;
        {
            locked_queue queue(key);
            freed = queue.take_one();
        }
        const bool any = !freed.empty();
        freed.wake();
        return any;
    }

    static std::size_t take(const wait_key& key, std::size_t max) {
        std::size_t taken = 99;
        release_list freed;
        {
            locked_queue queue(key);
            freed = queue.take(max, taken);
        }
        EXPECT_EQ(freed.empty(), taken == 0);
        freed.wake();
        return taken;
    }

    static void remove(parked& cancelled) {
        locked_queue queue(cancelled.node.key);
        queue.remove(cancelled.node);
    }

    std::vector<char> memory_ = std::vector<char>(std::size_t{1} << 21);
    std::deque<std::unique_ptr<parked>> waiters_;
};

TEST_F(Lot, IsEmptyAtTheBeginning) {
    EXPECT_TRUE(queue_of(at(0)).empty());
    EXPECT_FALSE(take_one(at(0)));
    EXPECT_EQ(take(at(0), 5), 0u);
    EXPECT_FALSE(has_filter_bit(at(0)));
}

TEST_F(Lot, TakesInTheOrderOfArrival) {
    for (const bool cancelable : {false, true}) {
        std::vector<parked*> all;
        for (int i = 0; i < 6; ++i) all.push_back(&park(at(8), cancelable));
        ASSERT_EQ(queue_of(at(8)).size(), 6u);
        for (std::size_t i = 0; i < 6; ++i) {
            EXPECT_EQ(queue_of(at(8)).front(), &all[i]->node);
            EXPECT_TRUE(take_one(at(8)));
            EXPECT_EQ(queue_of(at(8)).size(), 5 - i);
            EXPECT_TRUE(all[i]->finish_if_released());
        }
        EXPECT_FALSE(take_one(at(8)));
    }
}

TEST_F(Lot, TakesSeveralOldestFirst) {
    for (const bool cancelable : {false, true}) {
        std::vector<parked*> all;
        for (int i = 0; i < 10; ++i) all.push_back(&park(at(8), cancelable));
        EXPECT_EQ(take(at(8), 0), 0u);
        EXPECT_EQ(take(at(8), 4), 4u);
        EXPECT_EQ(queue_of(at(8)).size(), 6u);
        EXPECT_EQ(queue_of(at(8)).front(), &all[4]->node);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(all[i]->finish_if_released()) << i;
        EXPECT_EQ(take(at(8), 100), 6u);
        for (std::size_t i = 4; i < 10; ++i) EXPECT_TRUE(all[i]->finish_if_released()) << i;
    }
}

TEST_F(Lot, TakesExactlyAsManyAsThereAre) {
    for (const bool cancelable : {false, true}) {
        for (int i = 0; i < 3; ++i) park(at(8), cancelable);
        EXPECT_EQ(take(at(8), 3), 3u);
        EXPECT_EQ(take(at(8), static_cast<std::size_t>(-1)), 0u);
        for (auto& each : waiters_) EXPECT_TRUE(each->finish_if_released());
        waiters_.clear();
    }
}

TEST_F(Lot, RemovesACancelledNodeFromTheHeadTheMiddleAndTheTail) {
    for (std::size_t gone = 0; gone < 5; ++gone) {
        std::vector<parked*> all;
        for (int i = 0; i < 5; ++i) all.push_back(&park(at(16), true));
        EXPECT_TRUE(all[gone]->self.try_claim(claim::timed_out));
        remove(*all[gone]);
        remove(*all[gone]);  // once more changes nothing
        std::vector<const wait_node*> expected;
        for (std::size_t i = 0; i < 5; ++i) {
            if (i != gone) expected.push_back(&all[i]->node);
        }
        EXPECT_EQ(queue_of(at(16)), expected);
        EXPECT_EQ(take(at(16), 10), 4u);
        for (std::size_t i = 0; i < 5; ++i) {
            EXPECT_TRUE(i == gone || all[i]->finish_if_released());
        }
    }
}

TEST_F(Lot, RemovesTheOnlyNode) {
    auto& only = park(at(16), true);
    EXPECT_TRUE(only.self.try_claim(claim::stopped));
    remove(only);
    EXPECT_TRUE(queue_of(at(16)).empty());
    EXPECT_FALSE(has_filter_bit(at(16)));
    auto& next = park(at(16));
    EXPECT_TRUE(take_one(at(16)));
    EXPECT_TRUE(next.finish_if_released());
}

TEST_F(Lot, SkipsNodesThatAreClaimedAlready) {
    auto& late = park(at(24), true);
    auto& stopped = park(at(24), true);
    auto& waiting = park(at(24), true);
    EXPECT_TRUE(late.self.try_claim(claim::timed_out));
    EXPECT_TRUE(stopped.self.try_claim(claim::stopped));
    EXPECT_TRUE(take_one(at(24)));
    EXPECT_TRUE(waiting.finish_if_released());
    EXPECT_TRUE(queue_of(at(24)).empty());
    remove(late);  // as its thread does afterwards
    remove(stopped);
    EXPECT_FALSE(take_one(at(24)));
}

TEST_F(Lot, CountsOnlyTheWaitersItReleased) {
    std::vector<parked*> all;
    for (int i = 0; i < 7; ++i) all.push_back(&park(at(24), i % 2 == 0));
    EXPECT_TRUE(all[0]->self.try_claim(claim::timed_out));
    EXPECT_TRUE(all[4]->self.try_claim(claim::timed_out));
    EXPECT_EQ(take(at(24), 2), 2u);
    EXPECT_TRUE(all[1]->finish_if_released());
    EXPECT_TRUE(all[2]->finish_if_released());
    EXPECT_EQ(take(at(24), 100), 3u);
    for (const std::size_t i : {3u, 5u, 6u}) EXPECT_TRUE(all[i]->finish_if_released());
    remove(*all[0]);
    remove(*all[4]);
}

TEST_F(Lot, ATakenNodeCanNoLongerBeClaimed) {
    auto& taken = park(at(24), true);
    EXPECT_TRUE(take_one(at(24)));
    EXPECT_FALSE(taken.self.try_claim(claim::timed_out));
    EXPECT_FALSE(taken.self.try_claim(claim::stopped));
    EXPECT_TRUE(taken.finish_if_released());
}

TEST_F(Lot, KeepsTheKindsOfOneAddressApart) {
    auto& event = park(at(32, wait_kind::event));
    auto& address = park(at(32, wait_kind::address));
    auto& lock = park(at(32, wait_kind::lock_bit_0));
    auto& other = park(at(32, static_cast<wait_kind>(static_cast<unsigned>(wait_kind::lock_bit_0) + 63)));
    EXPECT_EQ(take(at(32, wait_kind::address), 9), 1u);
    EXPECT_TRUE(address.finish_if_released());
    EXPECT_EQ(take(other.node.key, 9), 1u);
    EXPECT_TRUE(other.finish_if_released());
    EXPECT_EQ(take(at(32, wait_kind::event), 9), 1u);
    EXPECT_TRUE(event.finish_if_released());
    EXPECT_EQ(take(at(32, wait_kind::lock_bit_0), 9), 1u);
    EXPECT_TRUE(lock.finish_if_released());
}

TEST_F(Lot, KeepsSeveralQueuesInOneBucketApart) {
    for (const bool same_bit : {false, true}) {
        const auto [first, second] = neighbours(same_bit);
        std::vector<parked*> of_first;
        std::vector<parked*> of_second;
        for (int i = 0; i < 4; ++i) {
            of_first.push_back(&park(first, true));
            of_second.push_back(&park(second, true));
        }
        EXPECT_EQ(queue_of(first).size(), 4u);
        EXPECT_EQ(queue_of(second).size(), 4u);
        // Other nodes become first in the bucket's list of queues.
        EXPECT_TRUE(take_one(first));
        EXPECT_TRUE(of_first[0]->finish_if_released());
        EXPECT_TRUE(of_second[0]->self.try_claim(claim::timed_out));
        remove(*of_second[0]);
        EXPECT_EQ(queue_of(first).front(), &of_first[1]->node);
        EXPECT_EQ(queue_of(second).front(), &of_second[1]->node);
        EXPECT_EQ(take(first, 9), 3u);
        EXPECT_EQ(queue_of(second).size(), 3u);
        EXPECT_TRUE(has_filter_bit(second));
        EXPECT_EQ(has_filter_bit(first), same_bit) << "no other queue has that bit of the filter";
        EXPECT_EQ(take(second, 9), 3u);
        EXPECT_FALSE(has_filter_bit(first));
        EXPECT_FALSE(has_filter_bit(second));
        for (std::size_t i = 1; i < 4; ++i) {
            EXPECT_TRUE(of_first[i]->finish_if_released());
            EXPECT_TRUE(of_second[i]->finish_if_released());
        }
    }
}

TEST_F(Lot, AFilterBitIsTurnedOffAgainIfNobodyParks) {
    {
        locked_queue queue(at(40));
        queue.prepare_wait();
        EXPECT_TRUE(has_filter_bit(at(40)));
    }
    EXPECT_FALSE(has_filter_bit(at(40)));
}

TEST_F(Lot, TheFilterBitIsOnWhileSomebodyIsParked) {
    auto& first = park(at(40), true);
    auto& second = park(at(40), true);
    EXPECT_TRUE(has_filter_bit(at(40)));
    EXPECT_TRUE(first.self.try_claim(claim::timed_out));
    remove(first);
    EXPECT_TRUE(has_filter_bit(at(40)));
    EXPECT_TRUE(second.self.try_claim(claim::timed_out));
    remove(second);
    EXPECT_FALSE(has_filter_bit(at(40)));
}

TEST_F(Lot, HoldsTwentyThousandNodesOnDifferentAddresses) {
    constexpr std::size_t count = 20'000;
    std::vector<parked*> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(&park(at(i * 64), i % 2 == 0));
    std::size_t nodes = 0;
    tocsin::core::for_each_parked([](const wait_node&, void* sum) { ++*static_cast<std::size_t*>(sum); },
                                  &nodes);
    EXPECT_EQ(nodes, count);
    std::size_t longest = 0;
    for (const auto& each : tocsin::core::the_lot->at) {
        std::size_t queues = 0;
        tocsin::core::for_each_queue(each, [&](const wait_node&) { ++queues; });
        longest = std::max(longest, queues);
    }
    const std::size_t average = count / std::size(tocsin::core::the_lot->at) + 1;
    EXPECT_LE(longest, 6 * average + 6) << "addresses a cache line apart crowd into few buckets";
    support::random_source random(1);
    for (std::size_t i = count; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    for (parked* each : all) {
        if (each->node.cancelable && random.one_in(2)) {
            EXPECT_TRUE(each->self.try_claim(claim::timed_out));
            remove(*each);
        } else {
            ASSERT_EQ(take(each->node.key, 2), 1u);
            EXPECT_TRUE(each->finish_if_released());
        }
    }
}

// How many queues are passed on the way to a node's queue, and on the longest way in its bucket.
std::size_t depth_of(const wait_node& first) {
    const key_hash hash(first.key);
    std::size_t depth = 0;
    const wait_node* each = tocsin::core::the_lot->at[hash.index].queues;
    for (std::uint64_t path = hash.path; each != nullptr && each != &first; ++depth, path <<= 1)
        each = each->queue.below[path >> 63];
    return depth;
}

TEST_F(Lot, HoldsManyQueuesInOneBucket) {
    const auto count = static_cast<std::size_t>(rounds(20'000, 2'000));
    one_bucket keys(9);
    std::vector<parked*> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(&park(keys.next(), i % 2 == 0));
    const auto& bucket = tocsin::core::the_lot->at[key_hash(all.front()->node.key).index];
    const auto check = [&](std::size_t expected) {
        std::size_t queues = 0;
        std::size_t steps = 0;
        std::uint64_t bits = 0;
        tocsin::core::for_each_queue(bucket, [&](const wait_node& first) {
            ++queues;
            const std::size_t depth = depth_of(first);
            ASSERT_LE(depth, 64 - tocsin::core::bucket_bits);
            steps += depth;
            bits |= key_hash(first.key).filter_bit();
        });
        EXPECT_EQ(queues, expected);
        EXPECT_LE(steps, (std::bit_width(queues) + 5) * queues) << "the tree is not balanced by chance";
        EXPECT_EQ(bucket.filter.load(), bits);
    };
    check(count);
    support::random_source random(4);
    for (std::size_t i = count; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    while (!all.empty()) {
        parked* const each = all.back();
        all.pop_back();
        if (each->node.cancelable) {
            EXPECT_TRUE(each->self.try_claim(claim::timed_out));
            remove(*each);
        } else {
            ASSERT_EQ(take(each->node.key, 2), 1u);
            EXPECT_TRUE(each->finish_if_released());
        }
        if (all.size() % (count / 8) == 0) check(all.size());
    }
}

// Whoever knew the secret could choose the paths, too.
TEST_F(Lot, StaysCheapWithTheWorstAddresses) {
    if constexpr (sizeof(void*) == 8) {
        const std::uint64_t multiplier = tocsin::core::hash_multiplier;
        std::uint64_t inverse = multiplier;  // modulo 2^64: each step doubles the number of right bits
        for (int i = 0; i < 5; ++i) inverse *= 2 - multiplier * inverse;
        ASSERT_EQ(multiplier * inverse, 1u);
        std::vector<parked*> all;
        for (std::uint64_t i = 0; i < 4'096; ++i) {
            const std::uint64_t product = i;  // a path of zeros, but for its end
            all.push_back(&park({reinterpret_cast<const void*>(product * inverse), wait_kind::event}));
            EXPECT_EQ(key_hash(all.back()->node.key).index, 0u);
        }
        for (parked* each : all) ASSERT_LE(depth_of(each->node), 64 - tocsin::core::bucket_bits);
        for (parked* each : all) {
            ASSERT_EQ(take(each->node.key, 2), 1u);
            EXPECT_TRUE(each->finish_if_released());
        }
    }
}

TEST_F(Lot, HashesWithASecretOfTheProcess) {
    EXPECT_EQ(tocsin::core::hash_multiplier, tocsin::core::the_lot->multiplier);
    EXPECT_EQ(tocsin::core::hash_multiplier % 2, 1u);
    EXPECT_NE(tocsin::core::hash_multiplier, tocsin::detail::golden_hash(1)) << "was not drawn";
}

// This must hold whichever secret is drawn. One random multiplier in 200 would fail at one of these distances.
TEST_F(Lot, SpreadsAddressesAtEqualDistances) {
    constexpr std::size_t count = 20'000;
    support::random_source random(6);
    for (int secrets = rounds(400, 200); secrets != 0; --secrets) {
        const std::uint64_t multiplier = tocsin::core::multiplier_from(random.next());
        ASSERT_EQ(multiplier % 2, 1u);
        for (const std::uint64_t distance : {8u, 24u, 64u, 4'096u}) {
            std::vector<std::uint32_t> buckets(std::size(tocsin::core::the_lot->at));
            for (std::uint64_t i = 0; i < count; ++i)
                ++buckets[i * distance * multiplier >> (64 - tocsin::core::bucket_bits)];
            ASSERT_LE(*std::max_element(buckets.begin(), buckets.end()), 6 * (count / buckets.size() + 1) + 6)
                << "distance " << distance << ", multiplier " << multiplier;
        }
    }
}

TEST_F(Lot, HoldsTwentyThousandNodesOnOneAddress) {
    constexpr std::size_t count = 20'000;
    std::vector<parked*> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(&park(at(48), true));
    support::random_source random(2);
    const auto gone =
        std::partition(all.begin(), all.end(), [&](const parked*) { return !random.one_in(3); });
    for (auto each = gone; each != all.end(); ++each) {
        EXPECT_TRUE((*each)->self.try_claim(claim::stopped));
        remove(**each);
    }
    all.erase(gone, all.end());
    std::vector<const wait_node*> left = queue_of(at(48));
    EXPECT_EQ(left.size(), all.size());
    EXPECT_EQ(take(at(48), count), left.size());
    for (const wait_node* each : left) ASSERT_TRUE(sleep(*each->owner, deadline(0s)) == claim::signaled);
}

// Random operations against a model that is a list of pointers for each key.
TEST_F(Lot, AgreesWithAListForEachKey) {
    support::random_source random(3);
    const auto [first, second] = neighbours(true);
    one_bucket crowd(9);
    const std::array<wait_key, 10> keys{first,
                                        second,
                                        at(3, wait_kind::event),
                                        wait_key{first.address, wait_kind::event},
                                        crowd.next(),
                                        crowd.next(),
                                        crowd.next(),
                                        crowd.next(),
                                        crowd.next(),
                                        crowd.next()};
    std::array<std::vector<parked*>, keys.size()> model;
    for (int step = 0; step < rounds(30'000, 6'000); ++step) {
        const auto which = random.below(keys.size());
        auto& list = model[which];
        switch (random.below(6)) {
            case 0:
            case 1:
            case 2:
                if (list.size() < 12) list.push_back(&park(keys[which], random.one_in(2)));
                break;
            case 3: {  // one is cancelled
                if (list.empty()) break;
                const auto at = static_cast<std::ptrdiff_t>(random.below(list.size()));
                parked* const cancelled = list[static_cast<std::size_t>(at)];
                if (!cancelled->node.cancelable) break;
                ASSERT_TRUE(cancelled->self.try_claim(claim::timed_out));
                remove(*cancelled);
                list.erase(list.begin() + at);
                break;
            }
            default: {
                const auto max = random.below(5);
                const auto expected = std::min<std::size_t>(max, list.size());
                ASSERT_EQ(take(keys[which], max), expected);
                for (std::size_t i = 0; i < expected; ++i) ASSERT_TRUE(list[i]->finish_if_released());
                list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(expected));
            }
        }
        std::vector<const wait_node*> expected;
        for (const parked* each : list) expected.push_back(&each->node);
        ASSERT_EQ(queue_of(keys[which]), expected);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        EXPECT_EQ(take(keys[i], 1000), model[i].size());
        for (parked* each : model[i]) EXPECT_TRUE(each->finish_if_released());
    }
}

TEST_F(Lot, ReleasesSleepingThreadsThroughOneAnother) {
    constexpr int count = 40;
    std::array<waiter, count> waiters;
    thread_group threads;
    std::atomic<int> awake{0};
    for (auto& each : waiters) {
        threads.start("sleeper", [&] {
            wait_node node(at(56), each, false);
            {
                locked_queue queue(at(56));
                queue.append(node);
            }
            EXPECT_EQ(sleep(each, deadline::never()), claim::signaled);
            awake.fetch_add(1);
        });
    }
    support::until("all are parked", [&] { return queue_of(at(56)).size() == count; });
    EXPECT_EQ(awake.load(), 0);
    EXPECT_EQ(take(at(56), 15), 15u);
    support::until("fifteen are awake", [&] { return awake.load() == 15; });
    EXPECT_EQ(queue_of(at(56)).size(), 25u);
    EXPECT_EQ(take(at(56), 1000), 25u);
    threads.join();
}

TEST_F(Lot, WaitersAreClaimedOnce) {
    for (int round = 0; round < rounds(3'000, 500); ++round) {
        waiter contested;
        std::array<bool, 2> won{};
        support::starting_line line(2);
        std::thread other([&] {
            line.arrive();
            won[1] = contested.try_claim(claim::stopped);
        });
        line.arrive();
        won[0] = contested.try_claim(claim::timed_out);
        other.join();
        ASSERT_NE(won[0], won[1]);
    }
}

#if TOCSIN_ON_POSIX
// Another thread holds the lock of a bucket in which no node is queued.
TEST_F(Lot, AForkedChildFindsTheLockOfAnEmptyBucketFree) {
    std::atomic<bool> held{false};
    const wait_key key{&held, wait_kind::address};
    std::atomic<bool> go_on{false};
    thread_group threads;
    threads.start("holder", [&] {
        const locked_queue queue(key);
        held.store(true);
        while (!go_on.load()) std::this_thread::yield();
    });
    support::until("the lock to be held", [&] { return held.load(); });
    const auto ending =
        support::ending_of_child_of_busy_parent([&] { return locked_queue(key).empty() ? 0 : 1; });
    go_on.store(true);
    threads.join();
    EXPECT_EQ(ending, "");
}
#endif

}  // namespace
