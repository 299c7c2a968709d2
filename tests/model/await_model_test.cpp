// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait, in every interleaving of small programs. A coroutine is resumed exactly once, by whoever ended
// its wait. Where an executor resumes coroutines, they may be destroyed at any time. Proof P13 in docs/proofs.md. A
// deadline claims a wait as a stop does: operation_model_test.cpp has waits with deadlines, and timer_model_test.cpp
// the thread that serves deadlines.
#include "../support/task.hpp"
#include "support/library_model.hpp"

#include <coroutine>
#include <mutex>
#include <utility>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;
using support::task;

int tokens_in(auto_reset_event& event) { return event.try_wait() ? 1 : 0; }

// Holds what is to be resumed.
class loop {
public:
    void operator()(std::coroutine_handle<> frame) {
        {
            const std::lock_guard held(lock_);
            ready_ = frame;
        }
        posted_.set();
    }
    std::coroutine_handle<> take() {
        const std::lock_guard held(lock_);
        const auto frame = static_cast<std::coroutine_handle<>>(ready_);
        ready_ = nullptr;
        return frame;
    }
    std::coroutine_handle<> wait_and_take() {
        posted_.wait(sleep_at_once);
        return take();
    }

private:
    core::futex_lock lock_;
    plain<std::coroutine_handle<>> ready_{nullptr};
    auto_reset_event posted_;
};

// A wait for one event without limits has an awaiter of its own. With limits, even empty ones, the wait is like any
// other.
auto wait_alone(auto_reset_event& on) { return async_wait(on); }
auto wait_with_limits(auto_reset_event& on) { return async_wait(limits(), on); }

template <class Wait>
void a_set_resumes_it_once_and_publishes(Wait wait) {
    holds_always([&](run& r) {
        auto_reset_event event;
        plain<int> data{0};
        plain<int> own{0};
        int resumed = 0;
        task one;
        r.spawn("setter", [&] {
            data = 1;
            event.set();
        });
        r.spawn("coroutine", [&] {
            one = [](auto how_to, auto& on, auto& theirs, auto& mine, int& count) -> task {
                mine = 1;
                const auto how = co_await how_to(on);
                model::check(how == wait_status::signaled && theirs == 1 && mine == 1, "all is visible");
                ++count;
            }(wait, event, data, own, resumed);
        });
        r.join_all();
        r.check(resumed == 1 && !event.is_set(), "resumed once, token taken");
    });
}

TEST(await_model, ASetResumesItOnceAndPublishes) { a_set_resumes_it_once_and_publishes(wait_with_limits); }
TEST(await_model, ASetResumesAWaitForOneEventOnceAndPublishes) {
    a_set_resumes_it_once_and_publishes(wait_alone);
}

MODEL_TEST(await_model, AStopNeverEatsTheToken, holds_within, 2) {
    auto_reset_event event;
    model::stop_source stop;
    int ended = 0;
    int taken = 0;
    task one;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("coroutine", [&] {
        one = [](auto& on, auto token, int& count, int& tokens) -> task {
            if (co_await async_wait({.stop = token}, on) == wait_status::signaled) ++tokens;
            ++count;
        }(event, stop.get_token(), ended, taken);
    });
    r.join_all();
    r.check(ended == 1 && taken + tokens_in(event) == 1, "resumed once; one token in, one out");
}

int permits_in(counting_semaphore<>& of) { return of.try_acquire() ? 1 : 0; }

MODEL_TEST(await_model, AStopNeverEatsAPermit, holds_within, 2) {
    counting_semaphore<> permits(0);
    model::stop_source stop;
    plain<int> data{0};
    int ended = 0;
    int taken = 0;
    task one;
    r.spawn("releaser", [&] {
        data = 1;
        permits.release();
    });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("coroutine", [&] {
        one = [](auto& on, auto token, auto& theirs, int& count, int& tokens) -> task {
            if (co_await async_wait({.stop = token}, on) == wait_status::signaled) {
                model::check(theirs == 1, "what the releaser wrote is visible");
                ++tokens;
            }
            ++count;
        }(permits, stop.get_token(), data, ended, taken);
    });
    r.join_all();
    r.check(ended == 1 && taken + permits_in(permits) == 1, "resumed once; one permit in, one out");
}

// It may be destroyed after the release has given it the permit.
MODEL_TEST(await_model, ADestroyedCoroutineGivesItsPermitBack, holds_within, 2) {
    counting_semaphore<> permits(0);
    loop executor;
    int taken = 0;
    r.spawn("releaser", [&] { permits.release(); });
    r.spawn("executor", [&] {
        task one = [](auto& on, auto& where, int& tokens) -> task {
            co_await async_wait(on).on(where);
            ++tokens;
        }(permits, executor, taken);
        one.destroy();
        (void)executor.take();
    });
    r.join_all();
    r.check(executor.take() == nullptr, "nobody has handed it over afterwards");
    r.check(taken + permits_in(permits) == 1, "one permit in, one out");
}

MODEL_TEST(await_model, AnyTakesOneAndLeavesTheOther, holds_within, 2) {
    auto_reset_event a;
    auto_reset_event b;
    std::size_t taken = 2;
    task one;
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("coroutine", [&] {
        one = [](auto& x, auto& y, auto& index) -> task {
            const any_result how = co_await async_wait_any(x, y);
            index = how.index;
        }(a, b, taken);
    });
    r.join_all();
    r.check(taken < 2 && a.is_set() == (taken != 0) && b.is_set() == (taken != 1), "one taken, one left");
}

MODEL_TEST(await_model, AllTakesBoth, holds_within, 2) {
    auto_reset_event a;
    auto_reset_event b;
    int ended = 0;
    task one;
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("coroutine", [&] {
        one = [](auto& x, auto& y, int& count) -> task {
            co_await async_wait_all(x, y);
            ++count;
        }(a, b, ended);
    });
    r.join_all();
    r.check(ended == 1 && !a.is_set() && !b.is_set(), "both are taken, once");
}

MODEL_TEST(await_model, ABroadcastReleasesThreadAndCoroutine, holds_within, 2) {
    manual_reset_event gate;
    int ended = 0;
    task one;
    r.spawn("setter", [&] { gate.set(); });
    r.spawn("coroutine", [&] {
        one = [](auto& on, int& count) -> task {
            co_await async_wait(on);
            ++count;
        }(gate, ended);
    });
    r.spawn("thread", [&] { gate.wait(sleep_at_once); });
    r.join_all();
    r.check(ended == 1, "resumed once");
}

// The executor's thread resumes the coroutine immediately, and destroys it when it has ended.
template <class Wait>
void the_executor_may_finish_it_before_its_handover_returns(Wait wait) {
    holds_within(2, [&](run& r) {
        auto_reset_event event;
        loop executor;
        int ended = 0;
        r.spawn("setter", [&] { event.set(); });
        r.spawn("executor", [&] {
            task one = [](auto how_to, auto& on, auto& where, int& count) -> task {
                co_await how_to(on).on(where);
                ++count;
            }(wait, event, executor, ended);
            if (!one.done()) executor.wait_and_take().resume();
        });
        r.join_all();
        r.check(ended == 1 && !event.is_set(), "resumed once, token taken");
    });
}

TEST(await_model, TheExecutorMayFinishACoroutineBeforeItsHandoverReturns) {
    the_executor_may_finish_it_before_its_handover_returns(wait_with_limits);
}
TEST(await_model, TheExecutorMayFinishAWaitForOneEventBeforeItsHandoverReturns) {
    the_executor_may_finish_it_before_its_handover_returns(wait_alone);
}

MODEL_TEST(await_model, AWaitForOneEventIsDestroyedAtAnyTimeThoughAnExecutorResumesIt, holds_within, 2) {
    auto_reset_event event;
    loop executor;
    int taken = 0;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("executor", [&] {
        task one = [](auto& on, auto& where, int& tokens) -> task {
            co_await async_wait(on).on(where);
            ++tokens;
        }(event, executor, taken);
        one.destroy();
        (void)executor.take();
    });
    r.join_all();
    r.check(executor.take() == nullptr, "nobody has handed it over afterwards");
    r.check(taken + tokens_in(event) == 1, "one token in, one out");
}

// Refuses what it is given.
struct refusing {
    bool operator()(std::coroutine_handle<>) { return false; }
};

MODEL_TEST(await_model, AnExecutorThatRefusesLeavesItToTheThreadThatEndsTheWait, holds_within, 2) {
    auto_reset_event event;
    manual_reset_event gate;
    refusing executor;
    int first = 0;
    int second = 0;
    task one;
    task two;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("opener", [&] { gate.set(); });
    r.spawn("coroutines", [&] {
        one = [](auto& on, auto& where, int& count) -> task {
            co_await async_wait(on).on(where);
            ++count;
        }(event, executor, first);
        two = [](auto& on, auto& where, int& count) -> task {
            co_await async_wait_any(on).on(where);
            ++count;
        }(gate, executor, second);
    });
    r.join_all();
    r.check(first == 1 && second == 1 && !event.is_set(), "each resumed once");
}

// Resumes the coroutine inside its call.
struct dispatching {
    void operator()(std::coroutine_handle<> frame) { frame.resume(); }
};

// Whichever thread ends a wait runs the coroutine, which waits again, in the same memory, and ends. Each coroutine sets
// the event that the other waits for.
template <class Wait>
void an_executor_resumes_inside_its_call(Wait wait) {
    holds_within(2, [&](run& r) {
        auto_reset_event a;
        auto_reset_event b;
        dispatching executor;
        plain<int> turns{0};
        const auto run_once = [](auto how_to, auto& own, auto& other, auto& where, auto& count) -> task {
            for (int i = 0; i != 2; ++i) {
                co_await how_to(own).on(where);
                count = count + 1;
                other.set();
            }
        };
        task one;
        r.spawn("coroutine", [&] { one = run_once(wait, a, b, executor, turns); });
        r.spawn("setter", [&] {
            a.set();
            b.wait(sleep_at_once);
            a.set();
            b.wait(sleep_at_once);
        });
        r.join_all();
        r.check(one.done() && turns == 2 && !a.is_set(), "resumed twice, both tokens taken");
    });
}

TEST(await_model, AnExecutorMayResumeInsideItsCall) { an_executor_resumes_inside_its_call(wait_with_limits); }
TEST(await_model, AnExecutorMayResumeAWaitForOneEventInsideItsCall) {
    an_executor_resumes_inside_its_call(wait_alone);
}

// The first call resumes the coroutine inside it. Its next wait is in the same memory, and a thread of the executor may
// finish the coroutine before the second handover returns.
template <class Wait>
void an_executor_resumes_inside_its_first_call_only(Wait wait) {
    holds_within(2, [&](run& r) {
        auto_reset_event event;
        loop queue;
        plain<bool> inside{true};
        const auto executor = [&](std::coroutine_handle<> frame) {
            if (!inside) return queue(frame);
            inside = false;
            frame.resume();
        };
        int ended = 0;
        task one = [](auto how_to, auto& on, auto& where, int& count) -> task {
            for (int i = 0; i != 2; ++i) co_await how_to(on).on(where);
            ++count;
        }(wait, event, executor, ended);
        event.set();
        r.spawn("setter", [&] { event.set(); });
        r.spawn("executor", [&] {
            queue.wait_and_take().resume();
            one.destroy();
        });
        r.join_all();
        r.check(ended == 1 && !event.is_set(), "resumed twice, both tokens taken");
    });
}

TEST(await_model, AnExecutorMayResumeInsideItsFirstCallOnly) {
    an_executor_resumes_inside_its_first_call_only(wait_with_limits);
}
TEST(await_model, AnExecutorMayResumeAWaitForOneEventInsideItsFirstCallOnly) {
    an_executor_resumes_inside_its_first_call_only(wait_alone);
}

// The executor's only thread destroys the coroutine, while a second thread sets and a third stops.
MODEL_TEST(await_model, IsDestroyedAtAnyTimeThoughAnExecutorResumesIt, holds_within, 2) {
    auto_reset_event event;
    model::stop_source stop;
    loop executor;
    int taken = 0;
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("executor", [&] {
        task one = [](auto& on, auto token, auto& where, int& tokens) -> task {
            if (co_await async_wait({.stop = token}, on).on(where) == wait_status::signaled) ++tokens;
        }(event, stop.get_token(), executor, taken);
        one.destroy();
        (void)executor.take();
    });
    r.join_all();
    r.check(executor.take() == nullptr, "nobody has handed it over afterwards");
    r.check(taken + tokens_in(event) == 1, "one token in, one out");
}

MODEL_TEST(await_model, AWaitForAllDestroyedAtAnyTimeGivesBackBoth, holds_within, 1) {
    auto_reset_event a;
    auto_reset_event b;
    loop executor;
    int taken = 0;
    r.spawn("setter of a", [&] { a.set(); });
    r.spawn("setter of b", [&] { b.set(); });
    r.spawn("executor", [&] {
        task one = [](auto& x, auto& y, auto& where, int& tokens) -> task {
            co_await async_wait_all(x, y).on(where);
            ++tokens;
        }(a, b, executor, taken);
        one.destroy();
        (void)executor.take();
    });
    r.join_all();
    r.check(taken + tokens_in(a) == 1 && taken + tokens_in(b) == 1, "two tokens in, two out");
}

}  // namespace
