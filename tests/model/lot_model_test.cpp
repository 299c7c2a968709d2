// Every interleaving of small programs over the lot itself: its queues, its lock, its relay. Proofs P1 to P3 in
// docs/proofs.md.
#include "support/library_model.hpp"

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
    const claim how = self.sleep({cancelable ? some_time() : deadline::never(), nullptr, sleep_at_once});
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

TEST(lot_model, TheBucketsLockExcludes) {
    holds_within(3, [](run& r) {
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
    });
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

TEST(lot_model, AReleaseIsNeverMissed) {
    holds_always([](run& r) {
        gate door;
        r.spawn("passer", [&] { (void)pass(door, false); });
        r.spawn("opener", [&] { open(door); });
        r.join_all();
    });
}

TEST(lot_model, ACancelableWaitIsTakenOrTimesOutNeverBoth) {
    holds_always([](run& r) {
        gate door;
        claim how{};
        r.spawn("cancelable", [&] { how = pass(door, true); });
        std::size_t taken = 0;
        r.spawn("opener", [&] { taken = open(door); });
        r.join_all();
        r.check(how == claim::signaled || taken == 0, "a wait that was taken was signaled");
    });
}

TEST(lot_model, TimeoutsInTheMiddleLeaveTheQueueWhole) {
    holds_within(2, [](run& r) {
        gate door;
        for (const bool cancelable : {false, true, false}) {
            r.spawn(cancelable ? "cancelable" : "stays", [&, cancelable] { (void)pass(door, cancelable); });
        }
        r.spawn("opener", [&] { open(door); });
        r.join_all();
    });
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

TEST(lot_model, TwoKindsOfOneAddressAreTwoQueues) {
    holds_within(2, [](run& r) {
        gate door;
        const wait_key other{door.key.address, core::wait_kind::address};
        r.spawn("passer", [&] { (void)pass(door, false); });
        r.spawn("other", [&] {
            waiter self;
            wait_node node(other, self, true);
            locked_queue(other).append(node);
            model::check(self.sleep({some_time(), nullptr, sleep_at_once}) == claim::timed_out,
                         "nobody wakes the other kind");
            locked_queue(other).remove(node);
        });
        r.spawn("opener", [&] { open(door); });
        r.join_all();
    });
}

}  // namespace
