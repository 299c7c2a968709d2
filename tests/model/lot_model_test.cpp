// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the lot itself: its queues, its lock, its relay. Proofs P1 to P3 in
// docs/proofs.md.
#include "support/library_model.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using core::claim;
using core::locked_queue;
using core::release_list;
using core::wait_key;
using core::wait_node;
using core::waiter;
using model::plain;
using model::run;

// A gate, open or not; the waits for it are in the lot. All under the bucket's lock.
struct gate {
    explicit gate(core::wait_kind what = core::wait_kind::event) : key{this, what} {}

    const wait_key key;
    plain<bool> open{false};
};

// Passes the open gate, or parks: for ever or, if `cancelable`, until some time.
claim pass(gate& door, bool cancelable) {
    waiter self;
    wait_node node(door.key, self, cancelable);
    {
        locked_queue queue(door.key);
        if (door.open) return claim::signaled;
        queue.append(node);
    }
    const claim how = sleep(self, {cancelable ? some_time() : deadline::never(), nullptr, sleep_at_once});
    if (how == claim::timed_out) locked_queue(door.key).remove(node);
    return how;
}

// Opens it and releases all that are parked; returns how many.
std::size_t open(gate& door) {
    std::size_t taken = 0;
    release_list freed;
    {
        locked_queue queue(door.key);
        door.open = true;
        freed = queue.take(static_cast<std::size_t>(-1), taken);
    }
    freed.wake();
    return taken;
}

MODEL_TEST(lot_model, TheBucketsLockExcludes, holds_within, 3) {
    core::futex_lock lock;
    plain<int> data{0};
    for (const char* name : {"one", "two", "three"}) {
        r.spawn(name, [&] {
            lock.lock();
            data = data + 1;
            lock.unlock();
        });
    }
    r.join_all();
    r.check(data == 3, "all were inside, one after the other");
}

// With more than one processor, a thread looks at the lock for a while before it sleeps.
TEST(lot_model, TheBucketsLockExcludesAThreadThatFoundItFreeWhileLooking) {
    processors = 2;
    holds_within(2, [](run& r) {
        core::futex_lock lock;
        plain<int> data{0};
        for (const char* name : {"one", "two"}) {
            r.spawn(name, [&] {
                lock.lock();
                data = data + 1;
                lock.unlock();
            });
        }
        r.join_all();
        r.check(data == 2, "both were inside, one after the other");
    });
    processors = 1;
}

MODEL_TEST(lot_model, AReleaseIsNeverMissed, holds_always) {
    gate door;
    r.spawn("passer", [&] { (void)pass(door, false); });
    r.spawn("opener", [&] { open(door); });
    r.join_all();
}

MODEL_TEST(lot_model, ACancelableWaitIsTakenOrTimesOutNeverBoth, holds_always) {
    gate door;
    claim how{};
    r.spawn("cancelable", [&] { how = pass(door, true); });
    std::size_t taken = 0;
    r.spawn("opener", [&] { taken = open(door); });
    r.join_all();
    r.check(how == claim::signaled || taken == 0, "a wait that was taken was signaled");
}

MODEL_TEST(lot_model, TimeoutsInTheMiddleLeaveTheQueueWhole, holds_within, 2) {
    gate door;
    for (const bool cancelable : {false, true, false}) {
        r.spawn(cancelable ? "cancelable" : "stays", [&, cancelable] { (void)pass(door, cancelable); });
    }
    r.spawn("opener", [&] { open(door); });
    r.join_all();
}

TEST(lot_model, ARelayReachesEveryone) {
    for (const unsigned believed : {1u, 4u}) {
        processors = believed;
        holds_within(1, [](run& r) {
            gate door;
            for (unsigned i = 0; i != 3; ++i) r.spawn("passer", [&] { (void)pass(door, false); });
            r.spawn("opener", [&] { open(door); });
            r.join_all();
        });
    }
    processors = 1;
}

MODEL_TEST(lot_model, TwoKindsOfOneAddressAreTwoQueues, holds_within, 2) {
    gate door;
    const wait_key other{door.key.address, core::wait_kind::address};
    r.spawn("passer", [&] { (void)pass(door, false); });
    r.spawn("other", [&] {
        waiter self;
        wait_node node(other, self, true);
        locked_queue(other).append(node);
        model::check(sleep(self, {some_time(), nullptr, sleep_at_once}) == claim::timed_out,
                     "nobody wakes the other kind");
        locked_queue(other).remove(node);
    });
    r.spawn("opener", [&] { open(door); });
    r.join_all();
}

// Keys by the bits of their paths in the tree of a bucket's queues. All are in one bucket.
class keys_by_path {
public:
    // A key, not returned before, whose path begins with the upper `bits` bits of `path`. With `then_differs` the bit
    // after those differs from that of `path`.
    wait_key pick(std::uint64_t path, unsigned bits, bool then_differs) {
        for (;;) {
            model::check(used_ != sizeof places_, "there are enough places");
            const wait_key key{&places_[used_++], core::wait_kind::address};
            const std::uint64_t difference = core::key_hash(key).path ^ path;
            const bool agrees = bits == 0 || difference >> (64 - bits) == 0;
            if (agrees && (!then_differs || (difference >> (63 - bits) & 1) != 0)) return key;
        }
    }

private:
    static inline char places_[1 << 14];
    std::size_t used_ = 0;
};

// A queue of one, whose node nobody waits with.
struct queue_of_one {
    explicit queue_of_one(const wait_key& at) : key(at), node(at, self, false) {
        locked_queue queue(key);
        queue.prepare_wait();
        queue.append(node);
    }
    ~queue_of_one() { take(); }

    void take() {
        std::size_t taken = 0;
        release_list freed = locked_queue(key).take(1, taken);
        (void)freed;
        model::check(taken == (queued ? 1 : 0), "found in its place");
        queued = false;
    }
    bool has_bit() const {
        return core::may_be_waited_on(key, [] { detail::full_fence(); });
    }

    const wait_key key;
    waiter self;
    wait_node node;
    bool queued = true;
};

TEST(lot_model, AQueueThatEndsLeavesThoseBelowItInTheirPlaces) {
    for (unsigned first = 0; first != 8; ++first) {
        holds_always([first](run&) {
            keys_by_path keys;
            std::vector<std::unique_ptr<queue_of_one>> all;
            for (int i = 0; i != 8; ++i)
                all.push_back(std::make_unique<queue_of_one>(keys.pick(0, 0, false)));
            for (unsigned i = 0; i != 8; ++i) all[(first + 3 * i) % 8]->take();
        });
    }
}

TEST(lot_model, AQueueThatEndsAndJoinsAgainIsFound) {
    holds_always([](run&) {
        keys_by_path keys;
        std::vector<std::unique_ptr<queue_of_one>> all;
        for (int i = 0; i != 8; ++i) all.push_back(std::make_unique<queue_of_one>(keys.pick(0, 0, false)));
        for (const auto& each : all) {
            locked_queue queue(each->key);
            queue.remove(each->node);
            queue.append(each->node);
        }
        for (const auto& each : all) each->take();
    });
}

// A queue with the same filter bit is the last of the tree, and all queues on the way to it have other bits.
MODEL_TEST(lot_model, AFilterBitIsOnForAQueueFarBelow, holds_always) {
    keys_by_path keys;
    const wait_key leaver = keys.pick(0, 0, false);
    const std::uint64_t path = core::key_hash(leaver).path;
    constexpr unsigned bits = core::key_hash::filter_bits;
    std::vector<std::unique_ptr<queue_of_one>> above;
    for (unsigned i = 0; i != bits; ++i)
        above.push_back(std::make_unique<queue_of_one>(keys.pick(path, i, true)));
    queue_of_one stays(keys.pick(path, bits, false));
    queue_of_one(leaver).take();
    r.check(stays.has_bit(), "the bit is that of a queue below");
    stays.take();
    r.check(!stays.has_bit(), "no queue has it");
    queue_of_one first(leaver);
    for (auto& each : above) each->take();  // one that is below them moves up
    r.check(first.has_bit(), "the bit is that of a queue above");
}

}  // namespace
