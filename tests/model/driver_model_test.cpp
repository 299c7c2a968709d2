// SPDX-License-Identifier: Apache-2.0
// A driver (src/driver.cpp): a loop that sleeps in a poll, alongside threads that set and cancel timers and requests.
// Time is not modelled. A deadline has passed either when it is set, or as soon as the wait that it limits has begun.
// Proof P23.
#include "../support/task.hpp"
#include "core/async/poll_thread.hpp"
#include "core/async/timer_thread.hpp"
#include "support/clock_by_looks.hpp"
#include "support/library_model.hpp"
#include "support/modelled_view.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

deadline now() { return deadline(std::chrono::nanoseconds(0)); }

// A loop in the thread that calls run_until(). Its sleep ends when a watched descriptor is ready, or by a ring.
class sleeping_loop {
public:
    explicit sleeping_loop(bool asks_for_the_deadline_first = false)
        : asks_for_the_deadline_first_(asks_for_the_deadline_first) {}

    core::service* service() { return &detail::driver_access::service_of(*driver_); }
    driver& its_driver() { return *driver_; }
    library_model::poller& poller() { return poller_; }

    template <class Done>
    void run_until(Done done) {
        while (!done()) {
            auto next = deadline::never();
            if (asks_for_the_deadline_first_) next = driver_->next_deadline();
            look();
            if (done()) break;
            if (!asks_for_the_deadline_first_) next = driver_->next_deadline();
            std::vector<platform::poll_entry> all;
            for (const auto& [descriptor, each] : watched_)
                all.push_back({.descriptor = descriptor, .asked = each.asked});
            const auto until = next.is_never() ? deadline::never() : now();
            if (poller_.poll(all, true, until).ready != 0) {
                for (const auto& each : all) driver_->notify(id_of(each.descriptor), each.found);
            }
            driver_->run_due();
        }
    }
    void look() {
        driver_->update([&](driver::watch each) { note(each); });
    }
    int renewals() const { return renewals_; }
    bool watches(int descriptor) const { return watched_.contains(descriptor); }
    driver::watch_id id_of(int descriptor) const { return watched_.at(descriptor).id; }
    // No thread owes a call of `changed` afterwards.
    void destroy() {
        driver_.reset();
        is_gone_ = true;
    }

private:
    struct ringing {
        sleeping_loop& self;
        void operator()() const noexcept {
            model::check(!self.is_gone_, "the driver exists");
            self.poller_.ring();
            model::check(!self.is_gone_, "the driver waits for this call");
        }
    };

    void note(driver::watch each) {
        const bool was_watched = watched_.contains(each.descriptor);
        model::check(was_watched || each.asked != readiness::none, "nothing is forgotten twice");
        model::check(was_watched || !each.renewed, "only what is watched is renewed");
        renewals_ += each.renewed ? 1 : 0;
        if (each.asked == readiness::none) {
            watched_.erase(each.descriptor);
        } else {
            watched_[each.descriptor] = each;
        }
    }

    const bool asks_for_the_deadline_first_;
    library_model::poller poller_;
    bool is_gone_ = false;
    const ringing changed_{*this};
    std::optional<driver> driver_{std::in_place, changed_};
    std::map<int, driver::watch> watched_;
    int renewals_ = 0;
};

// What both a timer and a request do here.
template <class Base>
class counted : public Base {
public:
    bool claim() noexcept override {
        model::check(!claimed_, "claimed once");
        return claimed_ = true;
    }
    void run() noexcept override {
        model::check(claimed_ && ran_.load(std::memory_order_relaxed) == 0, "claimed, and not run before");
        ran_.store(1, std::memory_order_release);
        model::futex_wake(&ran_);
    }
    bool has_run() { return ran_.load(std::memory_order_acquire) != 0; }
    void wait() {
        while (!has_run()) (void)model::futex_wait(&ran_, 0);
    }
    void take_back() {
        this->cancel();
        const bool claimed = claimed_;
        if (claimed) wait();
        model::cpu_relax();
        model::check(claimed_ == claimed, "not claimed after the cancel");
    }

private:
    bool claimed_ = false;
    model::atomic<std::uint32_t> ran_{0};
};

using counted_timer = counted<core::timer>;

class counted_request final : public counted<core::poll_request> {
public:
    explicit counted_request(int descriptor)
        : entry_{.descriptor = descriptor, .asked = readiness::readable} {}
    void set(core::service* by) { core::poll_request::set(std::span(&entry_, 1), by); }

private:
    platform::poll_entry entry_;
};

// Counts the threads that are done, and ends the loop's sleep for each.
class finish {
public:
    explicit finish(sleeping_loop& loop) : loop_(loop) {}
    void one() {
        done_.fetch_add(1, std::memory_order_acq_rel);
        loop_.poller().ring();
    }
    auto all(std::uint32_t count) {
        return [this, count] { return done_.load(std::memory_order_acquire) == count; };
    }

private:
    sleeping_loop& loop_;
    model::atomic<std::uint32_t> done_{0};
};

void a_timer_that_another_thread_sets_runs(bool deadline_first) {
    holds_within(2, [=](run& r) {
        sleeping_loop loop(deadline_first);
        counted_timer one;
        r.spawn("setter", [&] { one.set(now(), loop.service()); });
        loop.run_until([&] { return one.has_run(); });
        r.join_all();
        one.take_back();
    });
}

TEST(driver_model, ATimerThatAnotherThreadSetsRuns) { a_timer_that_another_thread_sets_runs(false); }

TEST(driver_model, ALoopMayAskForTheDeadlineFirst) { a_timer_that_another_thread_sets_runs(true); }

// Without `changed`: the loop knows nothing but the driver's descriptor.
class driver_view_model : public modelled_view_test {};

TEST_F(driver_view_model, ALoopThatOnlyPollsADescriptorRunsTimersOfTwoThreads) {
    for (const reports which : {reports::levels, reports::changes}) {
        holds_within(2, [which](run& r) {
            driver one;
            (void)one.descriptor();
            core::service* const by = &detail::driver_access::service_of(one);
            counted_timer all[2];
            for (counted_timer& each : all) r.spawn("setter", [&each, by] { each.set(now(), by); });
            while (!all[0].has_run() || !all[1].has_run()) {
                sleep_until_readable(which);
                while (one.run_ready() != 0 && which == reports::changes) {
                }
            }
            r.join_all();
            for (counted_timer& each : all) each.take_back();
        });
    }
}

// Only one of the two makes the loop look again.
MODEL_TEST(driver_model, TimersOfTwoThreadsRun, holds_within, 1) {
    sleeping_loop loop;
    counted_timer all[2];
    for (counted_timer& each : all) r.spawn("setter", [&] { each.set(now(), loop.service()); });
    loop.run_until([&] { return all[0].has_run() && all[1].has_run(); });
    r.join_all();
    for (counted_timer& each : all) each.take_back();
}

MODEL_TEST(driver_model, ACancelledTimerHasBeenClaimedOrNeverIs, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    r.spawn("canceler", [&] {
        counted_timer own;
        own.set(now(), loop.service());
        own.take_back();
        done.one();
    });
    loop.run_until(done.all(1));
    r.join_all();
}

// Its descriptor is ready already, and nothing else ends the loop's sleep.
MODEL_TEST(driver_model, ARequestThatAnotherThreadSetsIsWatched, holds_within, 2) {
    sleeping_loop loop;
    loop.poller().make_ready(3);
    counted_request one(3);
    r.spawn("setter", [&] { one.set(loop.service()); });
    loop.run_until([&] { return one.has_run(); });
    r.join_all();
    one.take_back();
}

MODEL_TEST(driver_model, ACancelledRequestHasBeenClaimedOrNeverIs, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    loop.poller().make_ready(3);
    r.spawn("canceler", [&] {
        for (int round = 0; round != 2; ++round) {
            counted_request own(3);
            own.set(loop.service());
            own.take_back();
        }
        done.one();
    });
    loop.run_until(done.all(1));
    r.join_all();
}

// A change that comes between update() and next_deadline() is not lost when next_deadline() finds another.
MODEL_TEST(driver_model, ARequestBesideATimer, holds_within, 1) {
    sleeping_loop loop;
    loop.poller().make_ready(3);
    counted_request request(3);
    counted_timer timer;
    r.spawn("request", [&] { request.set(loop.service()); });
    r.spawn("timer", [&] { timer.set(now(), loop.service()); });
    loop.run_until([&] { return request.has_run() && timer.has_run(); });
    r.join_all();
    request.take_back();
    timer.take_back();
}

// The loop learns that a descriptor need not be watched any more, so that it may be closed.
MODEL_TEST(driver_model, ALoopThatSleepsLearnsOfACancel, holds_within, 2) {
    sleeping_loop loop;
    counted_request one(3);
    one.set(loop.service());
    loop.look();
    model::check(loop.watches(3), "it is watched");
    r.spawn("canceler", [&] { one.cancel(); });
    loop.run_until([&] { return !loop.watches(3); });
    r.join_all();
}

// The timer runs, and its wait is over, while the thread that set it still owes a call of `changed`.
MODEL_TEST(driver_model, ADriverThatIsDestroyedWaitsForTheLastCall, holds_within, 2) {
    sleeping_loop loop;
    counted_timer one;
    (void)loop.its_driver().next_deadline();
    r.spawn("setter", [&] { one.set(now(), loop.service()); });
    while (!one.has_run()) {
        model::cpu_relax();
        loop.its_driver().run_due();
    }
    one.cancel();
    loop.destroy();
    r.join_all();
}

// While nobody waits for a descriptor, it may be closed, and its number may get a new meaning.
TEST(driver_model, ANumberThatIsWaitedForAgainIsRenewed) {
    holds_always([](run&) {
        sleeping_loop loop;
        {
            counted_request before(3);
            before.set(loop.service());
            loop.look();
            before.take_back();
        }
        counted_request after(3);
        after.set(loop.service());
        loop.look();
        model::check(loop.watches(3) && loop.renewals() == 1, "the loop registers it again");
        after.take_back();
    });
}

// Another thread ends its wait for a descriptor, which may then be closed, and begins a wait for another descriptor
// that has got the same number. Meanwhile the loop reports what it has found of the former one.
MODEL_TEST(driver_model, AReportEndsOnlyWaitsOfItsOwnWatch, holds_always) {
    sleeping_loop loop;
    counted_request before(3);
    counted_request after(3);
    before.set(loop.service());
    loop.look();
    const driver::watch_id first = loop.id_of(3);
    r.spawn("waiter", [&] {
        before.take_back();
        after.set(loop.service());
    });
    (void)loop.its_driver().notify(first, readiness::invalid);
    r.join_all();
    model::check(!after.has_run(), "the new wait has not ended");
    loop.look();
    model::check(loop.its_driver().notify(loop.id_of(3), readiness::readable) == 1, "its own report ends it");
    after.take_back();
}

MODEL_TEST(driver_model, WhoFindsTheDefaultDriverFindsItConstructed, holds_always) {
    core::set_default_service(nullptr);
    counted_timer one;
    r.spawn("waiter", [&] {
        if (core::service* const by = core::default_service()) one.set(now(), by);
    });
    driver made;
    set_default_driver(&made);
    r.join_all();
    (void)made.run_due();
    one.take_back();
}

TEST(driver_model, APostponedTimerRunsLater) {
    holds_always([](run&) {
        struct postponed final : core::timer {
            bool claim() noexcept override {
                if (++claims == 2) return true;
                postpone(now());
                return false;
            }
            void run() noexcept override { ran = true; }
            int claims = 0;
            bool ran = false;
        };
        sleeping_loop loop;
        postponed one;
        one.set(now(), loop.service());
        loop.run_until([&] { return one.ran; });
        one.cancel();
    });
}

// The results with which the function of an operation that a driver serves has been called. Each call ends the loop's
// sleep.
struct record {
    void operator()(any_result how) noexcept {
        calls = calls + 1;
        if (how.status == wait_status::stopped) stops = stops + 1;
        if (how.status == wait_status::signaled && how.index == 0) taken = taken + 1;
        done.one();
    }
    finish& done;
    plain<int> calls{0};
    plain<int> stops{0};
    plain<int> taken{0};
};

int tokens_in(auto_reset_event& event) { return event.try_wait() ? 1 : 0; }

// Once its function has been called, nobody uses the operation or the driver any more.
MODEL_TEST(driver_model, AnOperationEndsInItsLoopOrByASet, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event event;
    record seen{done};
    {
        auto wait = any_operation(std::ref(seen), event, readable(3));
        wait.by(loop.its_driver()).start();
        r.spawn("system", [&] { loop.poller().make_ready(3); });
        r.spawn("setter", [&] { event.set(); });
        loop.run_until(done.all(1));
    }
    loop.destroy();
    r.join_all();
    r.check(seen.calls == 1 && seen.taken + tokens_in(event) == 1, "called once; one token in, one out");
}

MODEL_TEST(driver_model, AnOperationThatAnotherThreadStartsEndsInItsLoop, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event event;
    record seen{done};
    auto wait = any_operation(std::ref(seen), event, readable(3));
    wait.by(loop.its_driver());
    r.spawn("starter", [&] {
        wait.start();
        loop.poller().make_ready(3);
    });
    loop.run_until(done.all(1));
    r.join_all();
    r.check(seen.calls == 1 && seen.taken == 0, "the loop has called the function");
}

MODEL_TEST(driver_model, OfACancelAndTheLoopOneEndsTheOperation, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event event;
    record seen{done};
    int won = 0;
    auto wait = any_operation(std::ref(seen), event, readable(3));
    wait.by(loop.its_driver()).start();
    loop.look();
    r.spawn("canceler", [&] {
        loop.poller().make_ready(3);
        won = wait.cancel() ? 1 : 0;
    });
    loop.run_until(done.all(1));
    r.join_all();
    r.check(seen.calls == 1 && seen.stops == won, "called once, with what ended it");
}

// Its function is called in the loop, and starts the operation again. Only the loop can end the second wait, too.
MODEL_TEST(driver_model, AnOperationThatIsStartedAgainKeepsItsDriver, holds_always) {
    sleeping_loop loop;
    auto_reset_event event;
    int calls = 0;
    void* self = nullptr;
    void (*again)(void*) = nullptr;
    auto wait = any_operation(
        [&](any_result) noexcept {
            if (++calls == 1) again(self);
        },
        event, readable(3));
    self = &wait;
    again = [](void* of) { static_cast<decltype(wait)*>(of)->start(); };
    wait.by(loop.its_driver()).start();
    for (int i = 1; i <= 2; ++i) {
        loop.look();
        r.check(loop.watches(3), "the driver wants it watched");
        (void)loop.its_driver().notify(loop.id_of(3), readiness::readable);
        r.check(calls == i, "the loop ends the wait");
    }
}

// ---- deadlines of operations and coroutines -----------------------------------------------------

// The deadline passes as soon as the driver has it, so the loop can end the wait from then on. The setter may be inside
// its set() when the operation and the driver are destroyed.
MODEL_TEST(driver_model, AnOperationEndsAtItsDeadlineInItsLoopOrByASet, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event event;
    record seen{done};
    clock_by_looks::looks_before_due = begins_before_its_deadline;
    {
        auto wait = any_operation(std::ref(seen), {.until = clock_by_looks::due}, event);
        wait.by(loop.its_driver()).start();
        r.spawn("setter", [&] { event.set(); });
        loop.run_until(done.all(1));
    }
    loop.destroy();
    r.join_all();
    r.check(seen.calls == 1 && seen.taken + tokens_in(event) == 1, "called once; one token in, one out");
}

// Only the loop can end the wait, and the loop may sleep when the operation starts. The starter may be inside its
// start() when the operation and the driver are destroyed.
MODEL_TEST(driver_model, ADeadlineOfAnOperationThatAnotherThreadStartsEndsTheLoopsSleep, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event never;
    record seen{done};
    clock_by_looks::looks_before_due = begins_before_its_deadline;
    {
        auto wait = any_operation(std::ref(seen), {.until = clock_by_looks::due}, never);
        wait.by(loop.its_driver());
        r.spawn("starter", [&] { wait.start(); });
        loop.run_until(done.all(1));
    }
    loop.destroy();
    r.join_all();
    r.check(seen.calls == 1 && seen.taken == 0 && seen.stops == 0, "its time was over");
}

MODEL_TEST(driver_model, OfACancelASetAndTheDeadlineOneEndsTheOperation, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event event;
    record seen{done};
    int won = 0;
    clock_by_looks::looks_before_due = begins_before_its_deadline;
    {
        auto wait = any_operation(std::ref(seen), {.until = clock_by_looks::due}, event);
        wait.by(loop.its_driver()).start();
        r.spawn("setter", [&] { event.set(); });
        r.spawn("canceler", [&] { won = wait.cancel() ? 1 : 0; });
        loop.run_until(done.all(1));
        r.join_all();
    }
    loop.destroy();
    r.check(seen.calls == 1 && seen.stops == won, "called once, with what ended it");
    r.check(seen.taken + tokens_in(event) == 1, "one token in, one out");
}

// The coroutine resumes in the loop, in the set or in the stop.
MODEL_TEST(driver_model, OfAStopASetAndTheDeadlineOneEndsTheCoroutine, holds_within, 2) {
    sleeping_loop loop;
    finish done(loop);
    auto_reset_event event;
    model::stop_source stop;
    record seen{done};
    support::task one;
    clock_by_looks::looks_before_due = begins_before_its_deadline;
    const auto body = [](driver& by, auto_reset_event& on, auto token, record& says) -> support::task {
        says(co_await async_wait_any({.until = clock_by_looks::due, .stop = token}, on).by(by));
    };
    r.spawn("setter", [&] { event.set(); });
    r.spawn("stopper", [&] { stop.request_stop(); });
    one = body(loop.its_driver(), event, stop.get_token(), seen);
    loop.run_until(done.all(1));
    loop.destroy();
    r.join_all();
    r.check(seen.calls == 1 && seen.taken + tokens_in(event) == 1, "resumed once; one token in, one out");
}

// One call of run_due() claims both. Whichever is called first destroys the other, which is about to be called.
MODEL_TEST(driver_model, WhoIsCalledAtItsDeadlineMayDestroyAnotherWhoseDeadlineHasPassed, holds_always) {
    struct called {
        void operator()(any_result) noexcept {
            ++calls;
            destroy_other();
        }
        int& calls;
        std::function<void()> destroy_other;
    };
    using operation =
        decltype(any_operation(std::declval<called>(), limits(), std::declval<auto_reset_event&>()));
    sleeping_loop loop;
    auto_reset_event never;
    int calls = 0;
    std::optional<operation> all[2];
    for (std::optional<operation>& each : all) {
        std::optional<operation>& other = all[&each == all ? 1 : 0];
        clock_by_looks::looks_before_due = begins_before_its_deadline;
        each.emplace(called{calls, [&other] { other.reset(); }}, limits{.until = clock_by_looks::due}, never);
        each->by(loop.its_driver()).start();
    }
    r.check(loop.its_driver().run_due() == 2, "both were due");
    r.check(calls == 1 && (!all[0] || !all[1]), "one was called, the other destroyed");
    for (std::optional<operation>& each : all) each.reset();
    loop.destroy();
}

}  // namespace
