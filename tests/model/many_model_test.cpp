// SPDX-License-Identifier: Apache-2.0
// Waits for any and for all of several events, in every interleaving of small programs. A wait for any takes exactly
// one. A wait for all takes all at one instant, and nothing before. Proofs P10 and P11 in docs/proofs.md. The program
// is built twice: with one bucket, and with two, where the two events of each program are in different buckets.
#include "support/library_model.hpp"

#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

template <class... Sources>
std::array<source, sizeof...(Sources)> those(Sources&... from) {
    return {source(from)...};
}

// Two events in different buckets, if there are two.
template <class First, class Second = First>
class pair {
    alignas(Second) std::byte memory_[16][sizeof(Second)];

public:
    explicit pair(bool first_set = false, bool second_set = false)
        : a(first_set), b(*new (in_another_bucket()) Second(second_set)) {}
    pair(const pair&) = delete;
    pair& operator=(const pair&) = delete;
    ~pair() { b.~Second(); }

    First a;
    Second& b;

private:
    void* in_another_bucket() noexcept {
        const auto bucket_of = [](const void* event) {
            return core::key_hash({event, core::wait_kind::event}).index;
        };
        std::size_t chosen = 0;
        while (core::bucket_bits != 0 && bucket_of(memory_[chosen]) == bucket_of(&a)) ++chosen;
        return memory_[chosen];
    }
};

int tokens_in(auto_reset_event& event) { return event.try_wait() ? 1 : 0; }

MODEL_TEST(any_model, TakesExactlyOneAndLeavesTheOther, holds_within, 2) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    plain<int> data_a{0};
    plain<int> data_b{0};
    std::size_t taken = 2;
    r.spawn("setter of a", [&] {
        data_a = 1;
        a.set();
    });
    r.spawn("setter of b", [&] {
        data_b = 1;
        b.set();
    });
    r.spawn("waiter", [&] {
        taken = wait_any({.spin = sleep_at_once}, those(a, b)).index;
        model::check(tells_who_is_parked(a) && tells_who_is_parked(b), "it has left both queues");
        model::check((taken == 0 ? data_a : data_b) == 1, "what its setter wrote is visible");
    });
    r.join_all();
    r.check(a.is_set() == (taken != 0) && b.is_set() == (taken != 1), "one taken, one left");
}

MODEL_TEST(any_model, ATimeoutOrStopTakesNothing, holds_within, 1) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    model::stop_source source_of_stop;
    int taken = 0;
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("stopper", [&] { source_of_stop.request_stop(); });
    r.spawn("waiter", [&] {
        const auto how = wait_any(
            {.until = some_time(), .stop = source_of_stop.get_token(), .spin = sleep_at_once}, those(a, b));
        if (how.status == wait_status::signaled) ++taken;
    });
    r.join_all();
    r.check(taken + tokens_in(a) + tokens_in(b) == 2, "two tokens in, two out");
}

// Two sets with two waiters parked release both.
MODEL_TEST(any_model, CompetesWithASingleWait, holds_within, 2) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    bool both_parked = false;
    r.spawn("any", [&] {
        (void)wait_any({.spin = sleep_at_once}, those(b, a));
        if (!both_parked) a.set();
    });
    r.spawn("single", [&] {
        a.wait(sleep_at_once);
        if (!both_parked) a.set();
    });
    r.spawn("setter", [&] {
        both_parked = parked_on(a) == 2;
        a.set();
        a.set();
    });
    r.join_all();
    r.check(!both_parked || !a.is_set(), "two tokens, two waiters");
}

MODEL_TEST(any_model, TheSameEventTwiceIsTakenOnce, holds_always) {
    auto_reset_event a;
    r.spawn("setter", [&] { a.set(); });
    r.spawn("waiter", [&] {
        const auto how = wait_any({.spin = sleep_at_once}, those(a, a));
        model::check(how.status == wait_status::signaled, "signaled");
    });
    r.join_all();
    r.check(!a.is_set(), "taken");
}

MODEL_TEST(any_model, ATimerThatEndsTheWaitTakesNoToken, holds_always) {
    auto_reset_event a;
    int taken = 0;
    r.spawn("setter", [&] { a.set(); });
    r.spawn("waiter", [&] {
        const source timer(some_time());
        const auto how = wait_any({.spin = sleep_at_once}, those(timer, a));
        if (how.index == 1) ++taken;
    });
    r.join_all();
    r.check(taken + tokens_in(a) == 1, "one token in, one out");
}

MODEL_TEST(all_model, TakesBothWhenBothAreSet, holds_within, 2) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    plain<int> data_a{0};
    plain<int> data_b{0};
    r.spawn("setter of a", [&] {
        data_a = 1;
        a.set();
    });
    r.spawn("setter of b", [&] {
        data_b = 1;
        b.set();
    });
    r.spawn("waiter", [&] {
        wait_all(a, b);
        model::check(data_a == 1 && data_b == 1, "what both setters wrote is visible");
    });
    r.join_all();
    r.check(!a.is_set() && !b.is_set(), "both are taken");
}

MODEL_TEST(all_model, AGateIsPassedAndATokenTaken, holds_within, 2) {
    pair<manual_reset_event, auto_reset_event> both;
    auto& gate = both.a;
    auto& token = both.b;
    r.spawn("setter of the gate", [&] { gate.set(); });
    r.spawn("setter of the token", [&] { token.set(); });
    r.spawn("waiter", [&] { wait_all(gate, token); });
    r.join_all();
    r.check(gate.is_set() && !token.is_set(), "passed and taken");
}

MODEL_TEST(all_model, ATimeoutOrStopTakesNothing, holds_within, 1) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    model::stop_source source_of_stop;
    bool all = false;
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("stopper", [&] { source_of_stop.request_stop(); });
    r.spawn("waiter", [&] {
        all = wait_all({.until = some_time(), .stop = source_of_stop.get_token()}, a, b) ==
              wait_status::signaled;
    });
    r.join_all();
    r.check(tokens_in(a) == !all && tokens_in(b) == !all, "all or nothing");
}

// The two events are never set at the same time.
MODEL_TEST(all_model, SetResetAndSetOfTheOtherDoesNotSatisfyIt, holds_within, 2) {
    pair<manual_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    r.spawn("setter", [&] {
        a.set();
        a.reset();
        b.set();
    });
    r.spawn("waiter", [&] {
        model::check(wait_all({.until = some_time()}, a, b) == wait_status::timed_out, "never together");
    });
    r.join_all();
}

TEST(all_model, NobodySeesOneTakenAndTheOtherNot) {
    for (const bool backwards : {false, true}) {
        holds_within(2, [backwards](run& r) {
            pair<auto_reset_event> both(true, !backwards);
            auto& a = both.a;
            auto& b = both.b;
            r.spawn("waiter", [&] { wait_all(a, b); });
            r.spawn("setter", [&] {
                if (backwards) b.set();
            });
            r.spawn("observer", [&] {
                auto_reset_event& first = backwards ? b : a;
                auto_reset_event& second = backwards ? a : b;
                if (backwards && !first.is_set()) return;
                const bool first_there = first.is_set();
                const bool second_there = second.is_set();
                model::check(first_there || !second_there, "one is seen taken, the other not");
            });
            r.join_all();
        });
    }
}

MODEL_TEST(all_model, AThreadThatFailsToTakeOneSeesTheOtherTaken, holds_within, 2) {
    pair<auto_reset_event> both(true, true);
    auto& a = both.a;
    auto& b = both.b;
    r.spawn("waiter", [&] { wait_all(a, b); });
    r.spawn("observer", [&] {
        if (a.try_wait()) return a.set();
        model::check(!b.is_set(), "one is seen taken, the other not");
    });
    r.join_all();
    r.check(!a.is_set() && !b.is_set(), "both are taken");
}

// A look at a held event waits for the lock. If the event has been set again by then, the look finds that set.
MODEL_TEST(all_model, ALookThatWaitedSeesWhatALaterSetPublished, holds_within, 2) {
    pair<auto_reset_event> both(true, true);
    auto& a = both.a;
    auto& b = both.b;
    model::atomic<int> item{0};
    r.spawn("waiter", [&] {
        wait_all(b, a);  // takes b first
        item.store(1, std::memory_order_relaxed);
        a.set();
    });
    r.spawn("observer", [&] {
        if (b.is_set() || !a.is_set()) return;
        model::check(item.load(std::memory_order_relaxed) == 1, "b is taken, so a is the new one");
    });
    r.join_all();
}

// A thread that has seen one event taken knows that the other is taken, too. So if it sets the other, it adds a token.
MODEL_TEST(all_model, ASetAfterOneWasSeenTakenIsNotAbsorbed, holds_within, 2) {
    pair<auto_reset_event> both(true, true);
    auto& a = both.a;
    auto& b = both.b;
    bool again = false;
    r.spawn("waiter", [&] { wait_all(a, b); });
    r.spawn("setter", [&] {
        again = !a.is_set();
        if (again) b.set();
    });
    r.join_all();
    r.check(tokens_in(b) == (again ? 1 : 0), "a new token is there");
}

MODEL_TEST(all_model, AResetComesBeforeOrAfterAllAreTaken, holds_within, 2) {
    pair<auto_reset_event> both(true, true);
    auto& a = both.a;
    auto& b = both.b;
    bool all = false;
    bool first = false;
    r.spawn("waiter", [&] { all = wait_all({.until = some_time()}, a, b) == wait_status::signaled; });
    r.spawn("resetter", [&] {
        b.reset();
        first = a.is_set();
    });
    r.join_all();
    r.check(!(all && first), "with b reset, a is not taken");
    r.check(!b.is_set(), "reset or taken");
}

// The wait ends while a set still looks at it.
MODEL_TEST(all_model, AWaitThatTimesOutOutlivesThreadsThatLookAtIt, holds_within, 2) {
    pair<auto_reset_event> both(false, true);
    auto& a = both.a;
    auto& b = both.b;
    bool all = false;
    r.spawn("setter", [&] { a.set(); });
    r.spawn("waiter", [&] { all = wait_all({.until = some_time()}, b, a) == wait_status::signaled; });
    r.spawn("other", [&] { b.set(); });
    r.join_all();
    r.check(a.is_set() != all, "taken or there");
}

MODEL_TEST(all_model, TheWaiterSeesAsUnsetWhatItTook, holds_within, 2) {
    pair<auto_reset_event> both(false, true);
    auto& a = both.a;
    auto& b = both.b;
    plain<int> data{0};
    r.spawn("setter", [&] {
        data = 1;
        a.set();
    });
    r.spawn("waiter", [&] {
        wait_all(a, b);
        model::check(!a.is_set() && !b.is_set() && data == 1, "taken");
    });
    r.join_all();
}

// A third thread takes one token while a setter is about to give the other to the wait for both.
MODEL_TEST(all_model, AThiefTakesOneTokenAndNoneIsLost, holds_within, 2) {
    pair<auto_reset_event> both(false, true);
    auto& a = both.a;
    auto& b = both.b;
    int stolen = 0;
    bool all = false;
    r.spawn("waiter", [&] { all = wait_all({.until = some_time()}, a, b) == wait_status::signaled; });
    r.spawn("setter", [&] { a.set(); });
    r.spawn("thief", [&] { stolen = tokens_in(b); });
    r.join_all();
    r.check(tokens_in(a) == (all ? 0 : 1), "the token that was set is taken or there");
    r.check(stolen + (all ? 1 : 0) + tokens_in(b) == 1, "the other token is taken or there");
}

MODEL_TEST(all_model, AThiefThatPutsTheTokenBackReleasesTheWait, holds_within, 2) {
    pair<auto_reset_event> both(false, true);
    auto& a = both.a;
    auto& b = both.b;
    r.spawn("waiter", [&] { wait_all(a, b); });
    r.spawn("setter", [&] { a.set(); });
    r.spawn("thief", [&] {
        if (b.try_wait()) b.set();
    });
    r.join_all();
    r.check(!a.is_set() && !b.is_set(), "both are taken");
}

// The same with a token that was set while the wait was queued. The event's byte still says that a wait is queued.
MODEL_TEST(all_model, AThiefThatPutsBackATokenSetDuringTheWaitReleasesTheWait, holds_within, 2) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    r.spawn("waiter", [&] { wait_all(a, b); });
    r.spawn("setter", [&] {
        b.set();
        a.set();
    });
    r.spawn("thief", [&] {
        if (b.try_wait()) b.set();
    });
    r.join_all();
    r.check(!a.is_set() && !b.is_set(), "both are taken");
}

// Two threads set three events, one of them in the order of the list. Where a look begins depends on the looks before.
MODEL_TEST(all_model, EachLookSeesAllOfThree, holds_within, 2) {
    manual_reset_event a, b, c;
    r.spawn("waiter", [&] { wait_all(a, b, c); });
    r.spawn("setter in order", [&] {
        a.set();
        b.set();
    });
    r.spawn("setter", [&] { c.set(); });
    r.join_all();
}

// A source that looks have passed is taken, and set again last.
MODEL_TEST(all_model, ATokenThatLooksHavePassedIsTakenAndSetAgain, holds_within, 1) {
    auto_reset_event a, b, c;
    r.spawn("waiter", [&] { wait_all(a, b, c); });
    r.spawn("setter in order", [&] {
        a.set();
        b.set();
        c.set();
    });
    r.spawn("thief", [&] {
        if (a.try_wait()) a.set();
    });
    r.join_all();
    r.check(!a.is_set() && !b.is_set() && !c.is_set(), "all are taken");
}

MODEL_TEST(all_model, OverlappingWaitsAreServedOneAfterTheOther, holds_within, 1) {
    pair<auto_reset_event> both(false, true);
    auto& a = both.a;
    auto& b = both.b;
    r.spawn("all a b", [&] {
        wait_all(a, b);
        b.set();
        a.set();
    });
    r.spawn("all b a", [&] {
        wait_all(b, a);
        a.set();
        b.set();
    });
    r.spawn("setter", [&] { a.set(); });
    r.join_all();
    r.check(tokens_in(a) + tokens_in(b) == 2, "put back by both");
}

MODEL_TEST(all_model, ASingleWaiterBehindItIsServedWhileItLacksSomething, holds_within, 2) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    r.spawn("all", [&] { (void)wait_all({.until = some_time()}, a, b); });
    r.spawn("single", [&] { a.wait(sleep_at_once); });
    r.spawn("setter", [&] { a.set(); });
    r.join_all();
}

// The wait for any takes one of the two events that the other wait wants. The wait that had both gives one back.
MODEL_TEST(all_model, AWaitForAnyOfTheSameIsServedBesideIt, holds_within, 1) {
    pair<auto_reset_event> both;
    auto& a = both.a;
    auto& b = both.b;
    bool all = false;
    r.spawn("setter", [&] {
        a.set();
        b.set();
    });
    r.spawn("waiter for any", [&] {
        model::check(wait_any({.spin = sleep_at_once}, those(b, a)).status == wait_status::signaled,
                     "by a set alone");
    });
    r.spawn("waiter for all", [&] {
        all = wait_all({.until = some_time()}, a, b) == wait_status::signaled;
        if (all) a.set();
    });
    r.join_all();
    r.check(tokens_in(a) + tokens_in(b) == (all ? 0 : 1), "one went to any, or three to both");
}

MODEL_TEST(all_model, TheWaiterMayDestroyTheEventsAtOnce, holds_within, 2) {
    std::optional<pair<auto_reset_event>> both(std::in_place);
    r.spawn("setter of a", [&, &a = both->a] { a.set(); });
    r.spawn("setter of b", [&, &b = both->b] { b.set(); });
    r.spawn("waiter", [&] {
        wait_all(both->a, both->b);
        both.reset();
    });
    r.join_all();
}

MODEL_TEST(all_model, ATimerAndAnEvent, holds_within, 2) {
    auto_reset_event a;
    r.spawn("setter", [&] { a.set(); });
    r.spawn("waiter", [&] {
        const source timer(some_time());
        wait_all(timer, a);
    });
    r.join_all();
    r.check(!a.is_set(), "taken");
}

// A custom source, under a lock of its own.
class latch {
public:
    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return open_;
    }
    bool enlist(wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        if (open_) return false;
        waiting_.append(entry);
        return true;
    }
    void delist(wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(entry);
    }
    static constexpr bool stays_ready = true;

    void open() {
        wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            open_ = true;
            freed = waiting_.notify_all();
        }
        freed.wake();
    }

private:
    core::futex_lock mutex_;  // sleeps at once
    plain<bool> open_{false};
    entry_list waiting_;
};

MODEL_TEST(custom_model, WorksInAWaitForAny, holds_within, 2) {
    latch custom;
    auto_reset_event event;
    std::size_t taken = 2;
    r.spawn("opener", [&] { custom.open(); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] { taken = wait_any({.spin = sleep_at_once}, those(event, custom)).index; });
    r.join_all();
    r.check(event.is_set() == (taken == 1), "one taken");
}

MODEL_TEST(custom_model, WorksInAWaitForAll, holds_within, 2) {
    latch custom;
    auto_reset_event event;
    r.spawn("opener", [&] { custom.open(); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] { wait_all(event, custom); });
    r.join_all();
    r.check(!event.is_set(), "taken");
}

MODEL_TEST(custom_model, PublishesToAWaitForAllWhenReadyLast, holds_within, 2) {
    latch custom;
    pair<auto_reset_event> both(true, false);
    plain<int> data{0};
    r.spawn("opener", [&] {
        data = 1;
        custom.open();
    });
    r.spawn("setter", [&] { both.b.set(); });
    r.spawn("waiter", [&] {
        wait_all(both.a, custom, both.b);
        model::check(data == 1, "what its opener wrote is visible");
    });
    r.join_all();
    r.check(!both.a.is_set() && !both.b.is_set(), "taken");
}

// A custom source that hands out tokens.
class dispenser {
public:
    bool try_wait() noexcept {
        const std::lock_guard lock(mutex_);
        return take();
    }
    bool enlist(wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        if (tokens_ != 0) return false;
        waiting_.append(entry);
        return true;
    }
    void delist(wait_entry& entry) noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.remove(entry);
    }

    void give() {
        wake_list freed;
        {
            const std::lock_guard lock(mutex_);
            freed = waiting_.notify_one();
            if (freed.empty()) ++tokens_;
        }
        freed.wake();
    }

private:
    bool take() noexcept {
        if (tokens_ == 0) return false;
        --tokens_;
        return true;
    }

    core::futex_lock mutex_;  // sleeps at once
    plain<int> tokens_{0};
    entry_list waiting_;
};

MODEL_TEST(custom_model, ATokenIsTakenOrLeft, holds_within, 2) {
    dispenser tokens;
    auto_reset_event event;
    std::size_t taken = 2;
    r.spawn("giver", [&] { tokens.give(); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("waiter", [&] { taken = wait_any({.spin = sleep_at_once}, those(event, tokens)).index; });
    r.join_all();
    r.check(event.is_set() == (taken == 1) && tokens.try_wait() == (taken == 0), "one taken, one left");
}

MODEL_TEST(custom_model, ATokenPassesByAWaitThatHasEnded, holds_within, 2) {
    dispenser tokens;
    auto_reset_event event;
    bool first_has_event = false;
    r.spawn("first", [&] {
        first_has_event = wait_any({.spin = sleep_at_once}, those(event, tokens)).index == 0;
        if (!first_has_event) tokens.give();
    });
    r.spawn("second", [&] { (void)wait_any({.spin = sleep_at_once}, those(tokens)); });
    r.spawn("giver", [&] {
        event.set();
        tokens.give();
    });
    r.join_all();
    r.check(event.is_set() != first_has_event && !tokens.try_wait(), "both have one");
}

MODEL_TEST(polling_model, ASetRingsForAWaitThatPolls, holds_always) {
    poller descriptors;
    auto_reset_event event;
    plain<int> data{0};
    r.spawn("setter", [&] {
        data = 1;
        event.set();
    });
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        const auto how = wait_any({.spin = sleep_at_once}, those(descriptor, event));
        model::check(how.index == 1 && data == 1, "released, and what was written is visible");
    });
    r.join_all();
    r.check(!event.is_set(), "taken");
}

MODEL_TEST(polling_model, ADescriptorThatIsReadyTakesNoToken, holds_within, 2) {
    poller descriptors;
    auto_reset_event event;
    std::size_t taken = 2;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("writer", [&] { descriptors.make_ready(); });
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        taken = wait_any({.spin = sleep_at_once}, those(descriptor, event)).index;
    });
    r.join_all();
    r.check(event.is_set() == (taken == 0), "one taken");
}

MODEL_TEST(polling_model, OfWhatIsReadyAtTheStartTheFirstIsReported, holds_always) {
    poller descriptors;
    descriptors.make_ready();
    auto_reset_event event(true);
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        const auto how = wait_any({.spin = sleep_at_once}, those(descriptor, event));
        model::check(how.index == 0, "the descriptor is the first");
    });
    r.join_all();
    r.check(event.is_set(), "not taken");
}

MODEL_TEST(polling_model, ADescriptorThatIsReadyIsReportedAlthoughTheWaitIsOverAlready, holds_always) {
    poller descriptors;
    descriptors.make_ready();
    auto_reset_event event;
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        const deadline passed(std::chrono::nanoseconds(0));
        const auto how = wait_any({.until = passed, .spin = sleep_at_once}, those(descriptor, event));
        model::check(how.index == 0, "ready at the start");
    });
    r.join_all();
}

MODEL_TEST(polling_model, ADescriptorThatIsReadyIsReportedAlthoughAStopEndsTheWait, holds_always) {
    poller descriptors;
    descriptors.make_ready();
    auto_reset_event event;
    model::stop_source source_of_stop;
    r.spawn("stopper", [&] { source_of_stop.request_stop(); });
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        const auto how =
            wait_any({.stop = source_of_stop.get_token(), .spin = sleep_at_once}, those(descriptor, event));
        model::check(how.index == 0, "ready at the start");
    });
    r.join_all();
}

// wait-5 (src/wait.cpp).
MODEL_TEST(polling_model, TwoWaitsInARowDoNotPassOverADescriptorThatIsReady, holds_within, 2) {
    poller descriptors;
    descriptors.make_ready();
    auto_reset_event event;
    std::size_t index[2] = {};
    r.spawn("setter", [&] {
        event.set();
        event.set();
    });
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        for (auto& each : index) each = wait_any({.spin = sleep_at_once}, those(descriptor, event)).index;
    });
    r.join_all();
    r.check(index[0] == 0 || index[1] == 0, "one of them reports it");
}

MODEL_TEST(polling_model, ATimeoutOrStopTakesNothing, holds_within, 1) {
    poller descriptors;
    auto_reset_event event;
    model::stop_source source_of_stop;
    int taken = 0;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { source_of_stop.request_stop(); });
    r.spawn("waiter", [&] {
        const source descriptor(0, readiness::readable);
        const auto how =
            wait_any({.until = some_time(), .stop = source_of_stop.get_token(), .spin = sleep_at_once},
                     those(event, descriptor));
        if (how.status == wait_status::signaled) ++taken;
    });
    r.join_all();
    r.check(taken + tokens_in(event) == 1, "one token in, one out");
}

}  // namespace
