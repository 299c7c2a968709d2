// Every interleaving of small programs over the lot itself: its queues, its lock, its relay. Proofs P1 to P3 in
// docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using core::claim;
using core::key;
using core::node;
using core::parking;
using core::release_list;
using core::waiter;
using model::plain;
using model::run;

// A gate of its own kind: open or not, and who waits for it; all under the bucket's lock.
struct gate {
    explicit gate(core::use what = core::use::event) : where{this, what} {}

    const key where;
    plain<bool> open{false};
};

// Passes the open gate, or parks: for ever, or (leaves) until some time.
claim pass(gate& door, bool leaves) {
    waiter self;
    node place(door.where, self, leaves);
    {
        parking lot(door.where);
        if (door.open) return claim::signaled;
        lot.append(place);
    }
    const claim how = self.sleep({leaves ? some_time() : deadline::never(), nullptr, sleep_at_once});
    if (how == claim::timed_out) parking(door.where).remove(place);
    return how;
}

// Opens it and releases those who are parked; says how many.
std::size_t open(gate& door) {
    std::size_t taken = 0;
    release_list freed;
    {
        parking lot(door.where);
        door.open = true;
        freed = lot.take(static_cast<std::size_t>(-1), taken);
    }
    freed.wake();
    return taken;
}

TEST(lot_model, TheBucketsLockExcludes) {
    holds_within(3, [](run& r) {
        core::bucket_lock lock;
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

// With more than one processor it is looked at for a while before its thread sleeps.
TEST(lot_model, TheBucketsLockExcludesWhoFoundItFreeWhileLooking) {
    processors = 2;
    holds_within(2, [](run& r) {
        core::bucket_lock lock;
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

TEST(lot_model, ALeaverIsTakenOrLeavesNeverBoth) {
    holds_always([](run& r) {
        gate door;
        claim how{};
        r.spawn("leaver", [&] { how = pass(door, true); });
        std::size_t taken = 0;
        r.spawn("opener", [&] { taken = open(door); });
        r.join_all();
        r.check(how == claim::signaled || taken == 0, "who was taken was signaled");
    });
}

TEST(lot_model, LeaversInTheMiddleLeaveTheQueueWhole) {
    holds_within(2, [](run& r) {
        gate door;
        for (const bool leaves : {false, true, false}) {
            r.spawn(leaves ? "leaver" : "stayer", [&, leaves] { (void)pass(door, leaves); });
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

TEST(lot_model, TwoUsesOfAnAddressAreTwoQueues) {
    holds_within(2, [](run& r) {
        gate door;
        const key other{door.where.address, core::use::address};
        r.spawn("passer", [&] { (void)pass(door, false); });
        r.spawn("other", [&] {
            waiter self;
            node place(other, self, true);
            parking(other).append(place);
            model::check(self.sleep({some_time(), nullptr, sleep_at_once}) == claim::timed_out,
                         "nobody wakes the other use");
            parking(other).remove(place);
        });
        r.spawn("opener", [&] { open(door); });
        r.join_all();
    });
}

}  // namespace
