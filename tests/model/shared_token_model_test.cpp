// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the tokens that processes share (src/core/shared/token_queue.cpp), in which
// a thread may be killed before any of its steps. Proof P29 in docs/proofs.md.
#include "core/shared/token_queue.hpp"
#include "support/shared_model.hpp"

#include <tocsin/shared_semaphore.hpp>

#include <cstdint>
#include <initializer_list>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using core::slot_state;
using core::state_of;
using model::run;

// An event of few slots, and what its threads say that they have given and taken.
struct tokens {
    static constexpr std::uint32_t slots = 3;

    explicit tokens(std::uint32_t most = 1, std::uint32_t room = slots) : limit(most), in_use(room) {}

    detail::shared_view view() { return {object.header, object.slots, in_use, kind}; }

    void set() {
        const bool counted = core::give_token(view(), limit);
        gave[model::this_thread()] += counted ? 1 : 0;
    }
    wait_status wait(const deadline& until = deadline::never(), const stop_token* stop = nullptr) {
        const wait_status how = detail::shared_token_wait(view(), until, stop);
        took[model::this_thread()] += how == wait_status::signaled ? 1 : 0;
        return how;
    }
    bool try_wait() {
        const bool taken = detail::shared_token_try(view());
        took[model::this_thread()] += taken ? 1 : 0;
        return taken;
    }

    // Tokens that nobody has taken. Called where nothing runs.
    int left() {
        int found = 0;
        for (const detail::shared_slot& each : object.slots)
            found += state_of(each.word.load(std::memory_order_relaxed)) == slot_state::granted ? 1 : 0;
        return found + static_cast<int>(core::lower(object.header.control.load(std::memory_order_relaxed)));
    }

    // Whether what a thread has said of its tokens is what it has done to the words. A killed thread may have said
    // less, by one of each.
    bool is_balanced(int thread, bool killed) {
        int takes = 0, gives = 0;
        for (const auto& [before, after] : model::changes_by(thread, &object.header.control)) {
            const int more = static_cast<int>(core::lower(after)) - static_cast<int>(core::lower(before));
            (more < 0 ? takes : gives) += more < 0 ? -more : more;
        }
        for (detail::shared_slot& slot : object.slots) {
            for (const auto& [before, after] : model::changes_by(thread, &slot.word)) {
                takes += state_of(before) == slot_state::granted && state_of(after) != slot_state::granted;
                gives += state_of(before) != slot_state::granted && state_of(after) == slot_state::granted;
            }
        }
        const int more_takes = takes - took[thread], more_gives = gives - gave[thread];
        const int most = killed ? 1 : 0;
        return more_takes >= 0 && more_takes <= most && more_gives >= 0 && more_gives <= most;
    }
    bool are_balanced(int victim = -1) {
        bool all = true;
        for (int i = 0; i != model::max_threads; ++i) all = all && is_balanced(i, i == victim);
        return all;
    }

    // At the end: the tokens left can be taken, no more than these, and then a give and a take still work.
    void check_end(run& r, int victim = -1) {
        r.check(are_balanced(victim), "each token was given once and taken once");
        const int here = left();
        for (int i = 0; i != here; ++i) r.check(try_wait(), "a token that is left can be taken");
        r.check(left() == 0 && !try_wait(), "no token is there twice");
        set();
        r.check(wait() == wait_status::signaled && left() == 0, "the event works as before");
    }

    static constexpr detail::shared_kind kind = detail::shared_kind::auto_reset_event;
    detail::shared_object<slots> object;
    std::uint32_t limit;
    std::uint32_t in_use;
    int gave[model::max_threads] = {};
    int took[model::max_threads] = {};
};

TEST(shared_token_model, AWaitGetsItsToken) {
    holds_always_shared([](run& r) {
        tokens event(1, 2);
        r.spawn("waiter", [&] { event.wait(); });
        r.spawn("setter", [&] { event.set(); });
        r.join_all();
        event.check_end(r);
    });
}

TEST(shared_token_model, ATimeOutEatsNoToken) {
    holds_always_shared([](run& r) {
        tokens event(1, 2);
        r.spawn("waiter", [&] { (void)event.wait(some_time()); });
        r.spawn("setter", [&] { event.set(); });
        r.join_all();
        event.check_end(r);
    });
}

TEST(shared_token_model, AWaiterMayBeKilled) {
    holds_always_shared([](run& r) {
        tokens event(1, 2);
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.wait(); });
        may_be_killed(r, victim, killed);
        event.set();
        r.join_all();
        event.check_end(r, victim.number());
    });
}

// Waits until nothing runs. Returns how many tokens there are then.
int when_settled(tokens& event) {
    int left = 0;
    model::wait_until([&] {
        left = event.left();  // the newest values
        return model::others_are_blocked();
    });
    return left;
}

// Waits until nothing runs. Whoever sleeps by then gets a token, and there was none before.
void settle(run& r, tokens& event, std::initializer_list<int> waiters) {
    int left = when_settled(event);
    for (const int each : waiters) {
        for (int i = 0; i != 3 && event.took[each] == 0; ++i) {  // another may wait in front
            r.check(left == 0, "nobody sleeps while there is a token");
            event.set();
            left = when_settled(event);
        }
    }
    r.join_all();
}

TEST(shared_token_model, AGiverMayBeKilled) {
    holds_always_and_settles([](run& r) {
        tokens event(1, 2);
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.set(); });
        const auto waiter = r.spawn("waiter", [&] { event.wait(); });
        may_be_killed(r, victim, killed);
        settle(r, event, {waiter.number()});
        event.check_end(r, victim.number());
    });
}

// The waiter that was killed had claimed its slot before the other fell asleep, or after.
TEST(shared_token_model, TheTokenOfAKilledWaiterReachesTheOther) {
    holds_when_drawn_and_settles([](run& r) {
        tokens event(1, 2);
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.wait(); });
        const auto waiter = r.spawn("waiter", [&] { event.wait(); });
        r.spawn("setter", [&] { event.set(); });
        may_be_killed(r, victim, killed);
        settle(r, event, {waiter.number()});
        event.check_end(r, victim.number());
    });
}

// One of the others gets a token of its own when the kernel wakes it for the token of the killed waiter.
TEST(shared_token_model, AThreadThatLeavesPassesTheNewsOfADeathOn) {
    holds_when_drawn_and_settles([](run& r) {
        tokens event;
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.wait(); });
        const auto one = r.spawn("one", [&] { event.wait(); });
        const auto two = r.spawn("two", [&] { event.wait(); });
        r.spawn("setter", [&] {
            event.set();
            event.set();
        });
        may_be_killed(r, victim, killed);
        settle(r, event, {one.number(), two.number()});
        event.check_end(r, victim.number());
    });
}

TEST(shared_token_model, AThreadThatGivesUpPassesTheNewsOfADeathOn) {
    holds_when_drawn_and_settles([](run& r) {
        tokens event;
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.wait(); });
        r.spawn("in time", [&] { (void)event.wait(some_time()); });
        const auto waiter = r.spawn("waiter", [&] { event.wait(); });
        r.spawn("setter", [&] { event.set(); });
        may_be_killed(r, victim, killed);
        settle(r, event, {waiter.number()});
        event.check_end(r, victim.number());
    });
}

TEST(shared_token_model, AStopEatsNoToken) {
    holds_within_shared(2, [](run& r) {
        tokens event(1, 2);
        model::stop_source source;
        const auto token = source.get_token();
        r.spawn("waiter", [&] { (void)event.wait(deadline::never(), &token); });
        r.spawn("setter", [&] { event.set(); });
        r.spawn("stopper", [&] { source.request_stop(); });
        r.join_all();
        event.check_end(r);
    });
}

TEST(shared_token_model, TwoSetsReleaseTwo) {
    holds_within_shared(0, [](run& r) {
        tokens event(2, 2);
        for (const char* name : {"one", "two"}) r.spawn(name, [&] { event.wait(); });
        for (const char* name : {"setter", "another"}) r.spawn(name, [&] { event.set(); });
        r.join_all();
        event.check_end(r);
    });
}

TEST(shared_token_model, ATokenPublishes) {
    holds_always_shared([](run& r) {
        tokens event(1, 2);
        model::plain<int> data{0};
        r.spawn("waiter", [&] {
            event.wait();
            model::check(data == 42, "what came before the set is visible");
        });
        r.spawn("setter", [&] {
            data = 42;
            event.set();
        });
        r.join_all();
    });
}

// The token is published although the thread that it was handed to is dead.
TEST(shared_token_model, AnInheritedTokenPublishes) {
    holds_within_shared(1, [](run& r) {
        tokens event(1, 2);
        model::plain<int> data{0};
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.wait(); });
        may_be_killed(r, victim, killed);
        r.spawn("setter", [&] {
            data = 42;
            event.set();
        });
        r.spawn("heir", [&] {
            if (event.try_wait()) model::check(data == 42, "what came before the set is visible");
        });
        r.join_all();
        event.check_end(r, victim.number());
    });
}

// With one slot, each claim is that of the slot of the dead.
TEST(shared_token_model, AWaitInADeadSlotTakesTheTokenThere) {
    holds_always_and_settles([](run& r) {
        tokens event(1, 1);
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { event.wait(); });
        may_be_killed(r, victim, killed);
        r.spawn("setter", [&] { event.set(); });
        r.join_all();
        r.check(event.are_balanced(victim.number()), "each token was given once and taken once");
        const int here = event.left();
        r.check(event.wait(some_time()) == (here != 0 ? wait_status::signaled : wait_status::timed_out),
                "a wait finds the token that the dead has left");
        r.check(event.left() == 0, "no token is there twice");
    });
}

TEST(shared_token_model, AReleaseOfSeveralMayBeKilled) {
    holds_when_drawn_and_settles([](run& r) {
        tokens permits(5);
        bool killed = false;
        const auto victim = r.spawn("victim", [&] { detail::shared_permit_release(permits.view(), 2); });
        for (const char* name : {"one", "two"}) r.spawn(name, [&] { permits.wait(); });
        may_be_killed(r, victim, killed);
        const int here = when_settled(permits);
        const int taken = permits.took[2] + permits.took[3];
        r.check(taken == 2 || here == 0, "nobody sleeps while there is a permit");
        for (int i = taken; i < 2; ++i) permits.set();
        r.join_all();
        r.check(permits.left() == 0 || killed, "no permit was released twice");
    });
}

}  // namespace
