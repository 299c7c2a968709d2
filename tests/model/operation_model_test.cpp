// SPDX-License-Identifier: Apache-2.0
// Operations, in every interleaving of small programs. The function is called exactly once for each start, by whoever
// ended the wait. A cancel wins or loses. The operation is destroyed or started again as soon as its function runs.
// Proof P22 in docs/proofs.md. The thread that serves deadlines is also in timer_model_test.cpp.
#include "core/async/timer_thread.hpp"
#include "support/clock_by_looks.hpp"
#include "support/library_model.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

// A case that runs for an operation without limits, which is a single_wait, and for one with limits, a pending_wait.
// The program passes `given` to any_operation(), in front of the event.
#define MODEL_TEST_P(suite, name, holds, ...)                                             \
    template <class... Given>                                                             \
    void program_of_##name(run& r, Given... given);                                       \
    TEST(suite, name) {                                                                   \
        holds(__VA_ARGS__ __VA_OPT__(, )[](run & r) { program_of_##name(r); });           \
        holds(__VA_ARGS__ __VA_OPT__(, )[](run & r) { program_of_##name(r, limits()); }); \
    }                                                                                     \
    template <class... Given>                                                             \
    void program_of_##name(run& r, Given... given)

int tokens_in(auto_reset_event& event) { return event.try_wait() ? 1 : 0; }

// What the function has been called with. It is called in one thread after the other.
struct record {
    void operator()(any_result how) noexcept {
        calls = calls + 1;
        if (how.status == wait_status::signaled) taken = taken + 1;
        if (how.status == wait_status::stopped) stops = stops + 1;
    }
    void operator()(wait_status how) noexcept { (*this)(any_result{how}); }
    plain<int> calls{0};
    plain<int> taken{0};
    plain<int> stops{0};
};

// Holds what is to be called.
class loop {
public:
    void operator()(ended_operation one) {
        {
            const std::lock_guard held(lock_);
            ready_ = one.address();
        }
        posted_.set();
    }
    void* take() {
        const std::lock_guard held(lock_);
        void* const one = ready_;
        ready_ = nullptr;
        return one;
    }
    void wait_and_call() {
        posted_.wait(sleep_at_once);
        ended_operation::from_address(take())();
    }

private:
    core::futex_lock lock_;
    plain<void*> ready_{nullptr};
    auto_reset_event posted_;
};

MODEL_TEST_P(operation_model, ASetCallsItOnceAndPublishes, holds_always) {
    auto_reset_event event;
    plain<int> theirs{0};
    plain<int> mine{0};
    int calls = 0;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            model::check(how.status == wait_status::signaled && theirs == 1 && mine == 1, "all is visible");
            ++calls;
        },
        given..., event);
    r.spawn("setter", [&] {
        theirs = 1;
        event.set();
    });
    r.spawn("starter", [&] {
        mine = 1;
        wait.start();
    });
    r.join_all();
    r.check(calls == 1 && !event.is_set(), "called once, token taken");
}

MODEL_TEST_P(operation_model, OfACancelAndASetOneWins, holds_within, 2) {
    auto_reset_event event;
    record seen;
    plain<int> data{0};
    int won = 0;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            model::check(data == 1, "what came before the start is visible");
            seen(how);
        },
        given..., event);
    r.spawn("setter", [&] { event.set(); });
    r.spawn("canceler", [&] { won = wait.cancel() ? 1 : 0; });
    r.spawn("starter", [&] {
        data = 1;
        wait.start();
    });
    r.join_all();
    r.check(seen.calls == 1 && seen.stops == won, "called once, with what ended it");
    r.check(seen.taken + tokens_in(event) == 1, "one token in, one out");
}

MODEL_TEST_P(operation_model, OfTwoCancelsAndASetOneWins, holds_within, 2) {
    auto_reset_event event;
    record seen;
    int won = 0;
    int also_won = 0;
    auto wait = any_operation(std::ref(seen), given..., event);
    wait.start();
    r.spawn("setter", [&] { event.set(); });
    r.spawn("canceler", [&] { won = wait.cancel() ? 1 : 0; });
    r.spawn("other canceler", [&] { also_won = wait.cancel() ? 1 : 0; });
    r.join_all();
    r.check(seen.calls == 1 && seen.stops == won + also_won, "called once, with what ended it");
    r.check(seen.taken + tokens_in(event) == 1, "one token in, one out");
}

// The function starts the operation again, once, while two threads cancel whatever is under way.
MODEL_TEST_P(operation_model, IsStartedAgainInItsFunctionWhileOthersCancel, holds_within, 2) {
    auto_reset_event event;
    plain<int> calls{0};
    void (*again)(void*) = nullptr;
    void* self = nullptr;
    auto wait = any_operation(
        [&](any_result) noexcept {
            calls = calls + 1;
            if (calls == 1) again(self);
        },
        given..., event);
    self = &wait;
    again = [](void* of) { static_cast<decltype(wait)*>(of)->start(); };
    wait.start();
    int won = 0;
    int also_won = 0;
    r.spawn("canceler", [&] {
        won += wait.cancel() ? 1 : 0;
        won += wait.cancel() ? 1 : 0;
    });
    r.spawn("other canceler", [&] { also_won = wait.cancel() ? 1 : 0; });
    r.join_all();
    while (wait.cancel()) ++won;
    r.check(tells_who_is_parked(event), "the last wait that ends turns the parked bit off");
    r.check(calls == 2 && won + also_won == 2, "called once for each start, ended by a cancel each time");
}

// A set ends the wait and the function starts the next one, while a thread cancels one of the two.
MODEL_TEST_P(operation_model, ACancelEndsTheWaitThatHasBegunAgainOrNone, holds_within, 2) {
    auto_reset_event event;
    record seen;
    int won = 0;
    void (*again)(void*) = nullptr;
    void* self = nullptr;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            seen(how);
            if (seen.calls == 1) again(self);
        },
        given..., event);
    self = &wait;
    again = [](void* of) { static_cast<decltype(wait)*>(of)->start(); };
    wait.start();
    r.spawn("setter", [&] { event.set(); });
    r.spawn("canceler", [&] { won = wait.cancel() ? 1 : 0; });
    r.join_all();
    while (wait.cancel()) ++won;
    r.check(seen.calls == 2 && seen.stops == won, "called once for each start, with what ended it");
    r.check(seen.taken + tokens_in(event) == 1, "one token in, one out");
}

MODEL_TEST(operation_model, AStopACancelAndASetNeverEatTheToken, holds_within, 1) {
    auto_reset_event event;
    model::stop_source stop;
    record seen;
    int won = 0;
    auto wait = any_operation(std::ref(seen), {.stop = stop.get_token()}, event);
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("starter", [&] {
        wait.start();
        won = wait.cancel() ? 1 : 0;
    });
    r.join_all();
    r.check(seen.calls == 1 && seen.stops >= won, "called once");
    r.check(seen.taken + tokens_in(event) == 1, "one token in, one out");
}

MODEL_TEST(operation_model, ACancelOfAWaitForAllLeavesBothOrTakesBoth, holds_within, 1) {
    auto_reset_event a;
    auto_reset_event b;
    record seen;
    auto wait = all_operation(std::ref(seen), a, b);
    wait.start();
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("canceler", [&] { (void)wait.cancel(); });
    r.join_all();
    const int taken = seen.taken;
    r.check(seen.calls == 1, "called once");
    r.check(taken + tokens_in(a) == 1 && taken + tokens_in(b) == 1, "two tokens in, two out");
}

// The function tells the thread that owns the operation, which destroys it at once.
MODEL_TEST_P(operation_model, IsDestroyedByTheThreadThatItsFunctionTells, holds_within, 2) {
    auto_reset_event event;
    auto_reset_event called;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("owner", [&] {
        auto wait = any_operation([&](any_result) noexcept { called.set(); }, given..., event);
        wait.start();
        called.wait(sleep_at_once);
    });
    r.join_all();
    r.check(!event.is_set(), "token taken");
}

// The same, but another thread cancels, and knows that the operation exists until its cancel is done.
MODEL_TEST_P(operation_model, IsDestroyedOnceItsFunctionAndACancelAreOver, holds_within, 1) {
    auto_reset_event event;
    auto_reset_event called;
    auto_reset_event canceled;
    auto_reset_event ready;
    operation_base* of = nullptr;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("canceler", [&] {
        ready.wait(sleep_at_once);
        (void)of->cancel();
        canceled.set();
    });
    r.spawn("owner", [&] {
        auto wait = any_operation([&](any_result) noexcept { called.set(); }, given..., event);
        of = &wait;
        wait.start();
        ready.set();
        called.wait(sleep_at_once);
        canceled.wait(sleep_at_once);
    });
    r.join_all();
}

// The function tells the owner, which destroys the operation while the cancel that has won may not have returned.
MODEL_TEST_P(operation_model, ACancelThatHasWonTouchesNothingAfterwards, holds_within, 2) {
    auto_reset_event event;
    auto_reset_event called;
    auto_reset_event ready;
    operation_base* of = nullptr;
    r.spawn("canceler", [&] {
        ready.wait(sleep_at_once);
        r.check(of->cancel(), "nothing else ends the wait");
    });
    r.spawn("owner", [&] {
        auto wait = any_operation([&](any_result) noexcept { called.set(); }, given..., event);
        of = &wait;
        wait.start();
        ready.set();
        called.wait(sleep_at_once);
    });
    r.join_all();
}

// The executor's thread calls the function at once, and destroys the operation.
MODEL_TEST_P(operation_model, TheExecutorMayFinishItBeforeItsHandoverReturns, holds_within, 2) {
    auto_reset_event event;
    loop executor;
    record seen;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("executor", [&] {
        auto wait = any_operation(std::ref(seen), given..., event);
        wait.on(executor).start();
        executor.wait_and_call();
    });
    r.join_all();
    r.check(seen.calls == 1 && !event.is_set(), "called once, token taken");
}

// One thread starts the operation, and may hand it over there. Another calls the function and destroys the operation.
MODEL_TEST_P(operation_model, TheExecutorMayFinishItBeforeItsStartReturns, holds_within, 2) {
    auto_reset_event event;
    loop executor;
    record seen;
    std::optional<decltype(any_operation(std::ref(seen), given..., event))> wait;
    wait.emplace(std::ref(seen), limits(given...), event);
    wait->on(executor);
    r.spawn("setter", [&] { event.set(); });
    r.spawn("starter", [&] { wait->start(); });
    r.spawn("executor", [&] {
        executor.wait_and_call();
        wait.reset();
    });
    r.join_all();
    r.check(seen.calls == 1 && !event.is_set(), "called once, token taken");
}

// The same, but the other thread destroys it without calling the function.
MODEL_TEST_P(operation_model, TheExecutorMayDestroyItBeforeItsStartReturns, holds_within, 2) {
    auto_reset_event event(true);
    auto_reset_event posted;
    record seen;
    auto executor = [&](ended_operation) { posted.set(); };
    std::optional<decltype(any_operation(std::ref(seen), given..., event))> wait;
    wait.emplace(std::ref(seen), limits(given...), event);
    wait->on(executor);
    r.spawn("starter", [&] { wait->start(); });
    r.spawn("executor", [&] {
        posted.wait(sleep_at_once);
        wait.reset();
    });
    r.join_all();
    r.check(seen.calls == 0 && event.is_set(), "the token is back");
}

// The executor's only thread destroys it while a second thread sets.
MODEL_TEST_P(operation_model, IsDestroyedAtAnyTimeThoughAnExecutorCallsIt, holds_always) {
    auto_reset_event event;
    loop executor;
    record seen;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("executor", [&] {
        {
            auto wait = any_operation(std::ref(seen), given..., event);
            wait.on(executor).start();
        }
        (void)executor.take();
    });
    r.join_all();
    r.check(executor.take() == nullptr, "nobody has handed it over afterwards");
    r.check(seen.calls == 0 && tokens_in(event) == 1, "one token in, one out");
}

// A cancel was inside the first wait when that wait ended. The second wait ends as soon as it begins, and the operation
// is destroyed before its function is called for that wait. A checked build must not see the first cancel any more.
MODEL_TEST(operation_model, IsDestroyedInItsSecondWaitAfterACancelOfTheFirst, holds_within, 1) {
    manual_reset_event a;
    manual_reset_event b(true);
    auto_reset_event canceled;
    auto_reset_event ready;
    loop executor;
    record seen;
    operation_base* of = nullptr;
    r.spawn("setter", [&] { a.set(); });
    r.spawn("canceler", [&] {
        ready.wait(sleep_at_once);
        (void)of->cancel();
        canceled.set();
    });
    r.spawn("executor", [&] {
        auto wait = all_operation(std::ref(seen), a, b);
        of = &wait;
        wait.on(executor).start();
        ready.set();
        executor.wait_and_call();
        canceled.wait(sleep_at_once);
        a.set();
        wait.start();
        (void)executor.take();
    });
    r.join_all();
    r.check(seen.calls == 1, "called for the first wait only");
}

struct refusing {
    bool operator()(ended_operation) { return false; }
};

MODEL_TEST_P(operation_model, AnExecutorThatRefusesLeavesItToTheThreadThatEndsTheWait, holds_within, 2) {
    auto_reset_event event;
    refusing executor;
    record seen;
    int won = 0;
    auto wait = any_operation(std::ref(seen), given..., event);
    wait.on(executor);
    r.spawn("setter", [&] { event.set(); });
    r.spawn("canceler", [&] { won = wait.cancel() ? 1 : 0; });
    r.spawn("starter", [&] { wait.start(); });
    r.join_all();
    r.check(seen.calls == 1 && seen.stops == won, "called once, with what ended it");
}

// ---- deadlines ----------------------------------------------------------------------------------

// An operation with a deadline, and what its function has been called with.
class timed_operation {
public:
    explicit timed_operation(int looks) {
        clock_by_looks::looks_before_due = looks;
        if (looks == begins_before_its_deadline) core::timer::start(clock_by_looks::due);
        wait_ = std::make_unique<operation>(called{*this}, limits{.until = clock_by_looks::due}, event);
    }
    void start() { wait_->start(); }
    bool cancel() { return wait_->cancel(); }
    // Destroys the operation as soon as its function has been called.
    void finish(run& r, int canceled, int sets) {
        over_.wait(sleep_at_once);
        wait_.reset();
        r.check(seen_.calls == 1 && seen_.stops == canceled, "called once, with what ended it");
        r.check(seen_.taken + tokens_in(event) == sets, "as many tokens out as in");
    }

    auto_reset_event event;

private:
    struct called {
        timed_operation& self;
        void operator()(any_result how) noexcept {
            self.seen_(how);
            self.over_.set();
        }
    };

    using operation =
        decltype(any_operation(std::declval<called>(), limits(), std::declval<auto_reset_event&>()));

    record seen_;
    manual_reset_event over_;
    std::unique_ptr<operation> wait_;
};

TEST(operation_model, ADeadlineEndsItIfNothingElseDoes) {
    // Not in drawn runs: there is only this thread, and the one that serves deadlines.
    explore_both("bounded", model::options::bounded(1), [](run& r) {
        const background_threads have;
        timed_operation timed(begins_before_its_deadline);
        timed.start();
        timed.finish(r, 0, 0);
    });
    holds_always([](run& r) {
        timed_operation timed(begins_at_its_deadline);
        timed.start();
        timed.finish(r, 0, 0);
    });
}

MODEL_TEST(operation_model, OfADeadlineAtItsBeginAndASetOneEndsIt, holds_always) {
    timed_operation timed(begins_at_its_deadline);
    r.spawn("setter", [&] { timed.event.set(); });
    timed.start();
    r.join_all();
    timed.finish(r, 0, 1);
}

MODEL_TEST(operation_model, OfADeadlineACancelAndASetOneEndsIt, holds_within, 1) {
    const background_threads have;
    timed_operation timed(begins_before_its_deadline);
    int won = 0;
    r.spawn("setter", [&] { timed.event.set(); });
    r.spawn("canceler", [&] { won = timed.cancel() ? 1 : 0; });
    timed.start();
    r.join_all();
    timed.finish(r, won, 1);
}

}  // namespace
