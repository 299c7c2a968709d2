// SPDX-License-Identifier: Apache-2.0
// Deadlines of coroutines: the thread that serves them (src/core/async/timer_thread.cpp) alongside threads that set and
// cancel timers. Time is not modelled: the deadlines here have passed when they are set. Proof P13.
#include "core/async/timer_thread.hpp"
#include "support/library_model.hpp"

#include <chrono>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

deadline now() { return deadline(std::chrono::nanoseconds(0)); }

class counted_timer final : public core::timer {
public:
    explicit counted_timer(int postponements = 0) : postponements_(postponements) {}

    bool claim() noexcept override {
        if (postponements_ != 0) {
            --postponements_;
            postpone(now());
            return false;
        }
        return claimed_ = true;
    }
    void run() noexcept override {
        model::check(claimed_ && ran_.load(std::memory_order_relaxed) == 0, "claimed, and not run before");
        ran_.store(1, std::memory_order_release);
        model::futex_wake(&ran_);
    }

    void wait() {
        while (ran_.load(std::memory_order_acquire) == 0) (void)model::futex_wait(&ran_, 0);
    }
    bool is_claimed() const { return claimed_; }

private:
    int postponements_;
    bool claimed_ = false;
    model::atomic<std::uint32_t> ran_{0};
};

TEST(timer_model, EachTimerRuns) {
    holds_within(2, [](run&) {
        const background_threads have;
        for (int round = 0; round != 2; ++round) {
            counted_timer one;
            core::timer::start(now());
            one.set(now());
            one.wait();
            one.cancel();
        }
    });
}

MODEL_TEST(timer_model, TimersOfTwoThreadsRun, holds_within, 2) {
    const background_threads have;
    core::timer::start(now());
    for (int i = 0; i != 2; ++i) {
        r.spawn("setter", [] {
            counted_timer own;
            own.set(now());
            own.wait();
            own.cancel();
        });
    }
    r.join_all();
}

MODEL_TEST(timer_model, ACancelledTimerHasBeenClaimedOrNeverIs, holds_within, 2) {
    const background_threads have;
    core::timer::start(now());
    r.spawn("canceler", [] {
        counted_timer own;
        own.set(now());
        own.cancel();
        const bool claimed = own.is_claimed();
        if (claimed) own.wait();
        model::cpu_relax();
        model::check(own.is_claimed() == claimed, "not claimed after the cancel");
    });
    r.spawn("setter", [] {
        counted_timer own;
        own.set(now());
        own.wait();
        own.cancel();
    });
    r.join_all();
}

// The thread sleeps until the deadline of a timer that is cancelled meanwhile. A timer that is due later, or earlier,
// is set then.
void a_timer_after_a_cancelled_one_runs(std::chrono::nanoseconds due) {
    holds_within(2, [=](run&) {
        const background_threads have;
        core::timer::start(now());
        counted_timer first;
        first.set(deadline(std::chrono::nanoseconds(1)));
        first.cancel();
        if (first.is_claimed()) first.wait();
        counted_timer own;
        own.set(deadline(due));
        own.wait();
        own.cancel();
    });
}

TEST(timer_model, ALaterTimerAfterACancelledOneRuns) {
    a_timer_after_a_cancelled_one_runs(std::chrono::nanoseconds(2));
}

TEST(timer_model, AnEarlierTimerAfterACancelledOneRuns) {
    a_timer_after_a_cancelled_one_runs(std::chrono::nanoseconds(0));
}

// What is due sets the next timer in the thread that serves both.
class repeated_timer final : public core::timer {
public:
    bool claim() noexcept override { return true; }
    void run() noexcept override {
        cancel();
        if (++runs_ == 1) {
            set(now());
            return;
        }
        done_.store(1, std::memory_order_release);
        model::futex_wake(&done_);
    }
    void wait() {
        while (done_.load(std::memory_order_acquire) == 0) (void)model::futex_wait(&done_, 0);
    }

private:
    int runs_ = 0;
    model::atomic<std::uint32_t> done_{0};
};

MODEL_TEST(timer_model, ATimerThatIsSetByADueOneRuns, holds_within, 2) {
    const background_threads have;
    core::timer::start(now());
    repeated_timer one;
    counted_timer other;
    r.spawn("setter", [&] {
        other.set(now());
        other.wait();
        other.cancel();
    });
    one.set(now());
    one.wait();
    r.join_all();
}

TEST(timer_model, APostponedTimerRunsLater) {
    holds_within(2, [](run&) {
        const background_threads have;
        counted_timer one(1);
        core::timer::start(now());
        one.set(now());
        one.wait();
        one.cancel();
    });
}

}  // namespace
