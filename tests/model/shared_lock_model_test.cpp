// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the lock that processes share (src/shared_lock.cpp), in which a thread may
// be killed before any of its steps. Proof P31 in docs/proofs.md.
#include "support/shared_model.hpp"

#include <tocsin/shared_lock.hpp>

#include <initializer_list>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using detail::shared_lock_call;
using model::run;

// A lock of few slots, and the data that it protects.
struct locked_data {
    explicit locked_data(std::uint32_t slots = 2) : in_use(slots) {}

    detail::shared_parts parts() { return {object.header, object.slots, in_use, detail::shared_kind::lock}; }
    lock_status acquire(const deadline& until = deadline::never(),
                        shared_lock_call how = shared_lock_call::wait) {
        return detail::shared_lock_acquire(parts(), until, nullptr, how);
    }
    void repair() { detail::shared_lock_repaired(parts()); }
    void release() { detail::shared_lock_release(parts()); }

    // What is locked: two values that are equal while nobody holds the lock. A killed holder leaves them unequal.
    void work() {
        one = one + 1;
        (void)step.load(std::memory_order_relaxed);  // a kill may come here
        two = two + 1;
    }
    void one_turn() {
        const lock_status how = acquire();
        if (how == lock_status::owner_died) {
            two = one.get();
            repair();
        }
        model::check(how == lock_status::acquired || how == lock_status::owner_died, "the lock is held");
        model::check(one == two, "nobody holds the lock at the same time");
        work();
        release();
        ++turns;
    }
    // At the end the lock is free, or its owner has died.
    void check_end(run& r) {
        const lock_status how = acquire(some_time(), shared_lock_call::only_try);
        r.check(how == lock_status::acquired || how == lock_status::owner_died, "the lock can be had again");
        r.check(how == lock_status::owner_died || one == two, "whoever died in the middle is told of");
        repair();
        release();
    }

    detail::shared_object<4> object;
    std::uint32_t in_use;
    model::atomic<int> step{0};
    model::plain<int> one{0};
    model::plain<int> two{0};
    int turns = 0;
};

MODEL_TEST(shared_lock_model, OneHoldsItAtATime, holds_within_shared, 2) {
    locked_data data;
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { data.one_turn(); });
    r.join_all();
    r.check(data.turns == 2 && data.one == 2, "each had its turn");
    data.check_end(r);
}

MODEL_TEST(shared_lock_model, AHolderMayBeKilled, holds_within_shared, 2) {
    locked_data data;
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    r.spawn("other", [&] { data.one_turn(); });
    may_be_killed(r, victim, killed);
    r.join_all();
    r.check(data.turns == 2 || killed, "each had its turn");
    data.check_end(r);
}

MODEL_TEST(shared_lock_model, OfThreeAnyMayBeKilled, holds_when_drawn_and_settles) {
    locked_data data(3);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { data.one_turn(); });
    may_be_killed(r, victim, killed);
    r.join_all();
    data.check_end(r);
}

MODEL_TEST(shared_lock_model, TwoMayBeKilled, holds_when_drawn_and_settles) {
    locked_data data(3);
    bool killed[2] = {};
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    const auto another = r.spawn("another", [&] { data.one_turn(); });
    r.spawn("survivor", [&] { data.one_turn(); });
    may_be_killed(r, victim, killed[0]);
    may_be_killed(r, another, killed[1]);
    r.join_all();
    data.check_end(r);
}

// Both waiters sleep when the holder unlocks, and it may die at any step of that. The kernel then wakes one of the two
// for the death of the holder. The other may be the heir.
MODEL_TEST(shared_lock_model, AnHeirIsServedAlsoIfTheUnlockerDies, holds_when_drawn_and_settles) {
    locked_data data(3);
    bool killed = false;
    model::atomic<bool> is_held{false};
    model::atomic<bool> unlocks{false};
    const auto victim = r.spawn("victim", [&] {
        model::check(data.acquire() == lock_status::acquired, "nobody else has begun");
        is_held.store(true, std::memory_order_release);
        model::wait_until([] { return model::others_are_blocked(); });
        unlocks.store(true, std::memory_order_release);
        data.release();
    });
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            model::wait_until([&] { return is_held.load(std::memory_order_acquire); });
            data.one_turn();
        });
    }
    r.spawn("killer", [&, number = victim.number()] {
        model::wait_until([&] { return unlocks.load(std::memory_order_acquire); });
        kill_thread(number, killed);
    });
    r.join_all();
    r.check(data.turns == 2, "each had its turn");
    data.check_end(r);
}

// The holder dies. The kernel wakes one of the sleepers, which may be killed before it looks, or in its sleep.
void a_holder_and_a_sleeper_die(run& r, locked_data& data) {
    bool killed[2] = {};
    const auto holder = r.spawn("holder", [&] {
        model::check(data.acquire() == lock_status::acquired, "nobody else has begun");
        model::wait_until([] { return false; });
    });
    model::wait_until([] { return model::others_are_blocked(); });
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    r.spawn("survivor", [&] { data.one_turn(); });
    r.spawn("killer", [&, of_holder = holder.number(), of_victim = victim.number()] {
        model::wait_until([] { return model::others_are_blocked(); });
        kill_thread(of_holder, killed[0]);
        kill_thread(of_victim, killed[1]);
    });
    r.join_all();
    data.check_end(r);
}

MODEL_TEST(shared_lock_model, ADeathIsNotLostWithTheThreadThatTheKernelWakes, holds_when_drawn_and_settles) {
    locked_data data(3);
    a_holder_and_a_sleeper_die(r, data);
}

MODEL_TEST(shared_lock_model, ADeathIsNotLostWhereAllSlotsHaveBeenOwned, holds_when_drawn_and_settles) {
    locked_data data(3);
    for (auto& each : data.object.slots) each.owner.store(core::free_again, std::memory_order_relaxed);
    a_holder_and_a_sleeper_die(r, data);
}

// As above. A thread that claims a slot that nobody has owned makes the others look again, and may be killed, too. The
// heir's word must then still have the mark of the unlocker.
MODEL_TEST(shared_lock_model, AnHeirIsServedAlsoIfAClaimDiesWithTheUnlocker, holds_when_drawn_and_settles) {
    locked_data data(4);
    bool killed[2] = {};
    model::atomic<bool> unlocks{false};
    const auto holder = r.spawn("holder", [&] {
        model::check(data.acquire() == lock_status::acquired, "nobody else has begun");
        model::wait_until([&] { return unlocks.load(std::memory_order_acquire); });
        data.release();
    });
    model::wait_until(model::others_are_blocked);
    for (const char* name : {"one", "two"}) r.spawn(name, [&] { data.one_turn(); });
    model::wait_until(model::others_are_blocked);
    const auto claims = r.spawn("claims", [&] { data.one_turn(); });
    // no order: what a fact loads is the newest value
    r.spawn("killer of the holder", [&, victim = holder.number()] {
        model::wait_until(
            [&] { return (data.object.header.control.load(std::memory_order_relaxed) & 0xFF) != 1; });
        kill_thread(victim, killed[0]);
    });
    r.spawn("killer of the claim", [&, victim = claims.number()] {
        model::wait_until([&] {
            return data.object.slots[3].owner.load(std::memory_order_relaxed) != 0 ||
                   model::others_are_blocked();
        });
        kill_thread(victim, killed[1]);
    });
    unlocks.store(true, std::memory_order_release);
    r.join_all();
    data.check_end(r);
}

// A waiter dies. Another thread claims its slot, only to try, while the holder looks for an heir.
MODEL_TEST(shared_lock_model, ATryInTheSlotOfADeadWaiterLeavesTheLockToTheOther,
           holds_when_drawn_and_settles) {
    locked_data data(3);
    bool killed = false;
    model::atomic<bool> unlocks{false};
    const auto may_go = [&] { return unlocks.load(std::memory_order_acquire); };
    r.spawn("holder", [&] {
        model::check(data.acquire() == lock_status::acquired, "nobody else has begun");
        model::wait_until(may_go);
        data.release();
    });
    model::wait_until(model::others_are_blocked);
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    model::wait_until(model::others_are_blocked);
    r.spawn("survivor", [&] { data.one_turn(); });
    model::wait_until(model::others_are_blocked);
    kill_thread(victim.number(), killed);
    r.spawn("tries", [&] {
        const lock_status how = data.acquire(some_time(), shared_lock_call::only_try);
        if (how == lock_status::busy) return;
        if (how == lock_status::owner_died) data.repair();
        data.release();
    });
    unlocks.store(true, std::memory_order_release);
    r.join_all();
    data.check_end(r);
}

// A thread dies while it claims a slot that nobody has owned, perhaps before it has told those who sleep. The next
// owner of the slot is told of the holder's death, and is killed before it looks, or in its sleep.
MODEL_TEST(shared_lock_model, ASlotThatADeadThreadHadBegunToClaimIsWatched, holds_when_drawn_and_settles) {
    locked_data data(4);
    bool killed[3] = {};
    const auto holder = r.spawn("holder", [&] {
        model::check(data.acquire() == lock_status::acquired, "nobody else has begun");
        model::wait_until([] { return false; });
    });
    model::wait_until([] { return model::others_are_blocked(); });
    const auto claims = r.spawn("claims", [&] { data.one_turn(); });
    const auto victim = r.spawn("victim", [&] {
        model::wait_until([&] { return killed[0]; });
        data.one_turn();
    });
    r.spawn("survivor", [&] { data.one_turn(); });
    may_be_killed(r, claims, killed[0]);
    r.spawn("killer of two", [&, of_holder = holder.number(), of_victim = victim.number()] {
        model::wait_until([] { return model::others_are_blocked(); });
        kill_thread(of_holder, killed[1]);
        kill_thread(of_victim, killed[2]);
    });
    r.join_all();
    data.check_end(r);
}

MODEL_TEST(shared_lock_model, AThreadThatGivesUpLeavesTheLockToTheOther, holds_when_drawn_and_settles) {
    locked_data data(3);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    r.spawn("in time", [&] {
        const lock_status how = data.acquire(some_time());
        if (how == lock_status::timed_out) return;
        if (how == lock_status::owner_died) {
            data.two = data.one.get();
            data.repair();
        }
        data.work();
        data.release();
    });
    r.spawn("survivor", [&] { data.one_turn(); });
    may_be_killed(r, victim, killed);
    r.join_all();
    data.check_end(r);
}

// A holder that was told of a death and has not repaired loses the lock for all, also for those who wait.
MODEL_TEST(shared_lock_model, ALostLockReleasesAllWhoWait, holds_when_drawn_and_settles) {
    locked_data data(3);
    bool killed = false;
    const auto victim = r.spawn("victim", [&] { data.one_turn(); });
    for (const char* name : {"one", "two"}) {
        r.spawn(name, [&] {
            const lock_status how = data.acquire();
            if (how == lock_status::lost) return;
            model::check(how != lock_status::owner_died || killed, "nobody is told of a death without one");
            data.release();
        });
    }
    may_be_killed(r, victim, killed);
    r.join_all();
}

}  // namespace
