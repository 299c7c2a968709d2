// SPDX-License-Identifier: Apache-2.0
// A wait_set with descriptors: events and a poll end the same wait (src/wait_set.cpp). Proof P12.
#include "support/library_model.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

// One descriptor, and the set's doorbell. As platform/poller/poller.hpp promises, a member that is ready when it is
// added is reported, even by a wait under way.
class modelled_poll_set final : public platform::poll_set {
public:
    modelled_poll_set() { the_one = this; }
    ~modelled_poll_set() override { the_one = nullptr; }

    int add(int, readiness, std::uint64_t tag) noexcept override {
        tag_ = tag;
        switch_on(member);
        return 0;
    }
    int change(int, readiness, std::uint64_t) noexcept override { return 0; }
    int remove(int) noexcept override {
        state_.fetch_and(~member, std::memory_order_acq_rel);
        return 0;
    }

    platform::poll_result wait(std::span<item> out, const deadline& until) noexcept override {
        for (;;) {
            const std::uint32_t seen = state_.load(std::memory_order_acquire);
            const bool hidden = rings_take_room_ && out.size() == 1 && (seen & rung) != 0;
            if (!hidden && (seen & (member | ready)) == (member | ready)) {
                out.front() = {tag_, readiness::readable};
                return {.ready = 1};
            }
            if ((seen & rung) != 0) {
                state_.fetch_and(~rung, std::memory_order_acquire);
                return {.rung = true};
            }
            if (until.which() == deadline::clock::passed) return {.timed_out = true};
            const auto how = model::futex_wait(&state_, seen, !until.is_never());
            if (how == model::futex_result::timed_out) return {.timed_out = true};
        }
    }

    platform::doorbell_id bell() const noexcept override { return 0; }

    void ring() noexcept { switch_on(rung); }
    void make_ready() noexcept { switch_on(ready); }
    // As with epoll: the bell is one of the items that a poll has room for.
    void rings_take_room() noexcept { rings_take_room_ = true; }

    static inline modelled_poll_set* the_one = nullptr;

private:
    static constexpr std::uint32_t rung = 1, member = 2, ready = 4;

    void switch_on(std::uint32_t bit) noexcept {
        state_.fetch_or(bit, std::memory_order_acq_rel);
        model::futex_wake(&state_);
    }

    std::uint64_t tag_ = 0;
    bool rings_take_room_ = false;
    model::atomic<std::uint32_t> state_{0};
};

class wait_set_poll_model : public testing::Test {
protected:
    wait_set_poll_model() {
        make_poll_set = []() -> std::unique_ptr<platform::poll_set> {
            return std::make_unique<modelled_poll_set>();
        };
        ring_poll_set = [] { modelled_poll_set::the_one->ring(); };
    }
    ~wait_set_poll_model() override {
        make_poll_set = nullptr;
        ring_poll_set = nullptr;
    }
};

constexpr int descriptor = 3;

// The thread may be anywhere between its look for a poll_set and its sleep.
MODEL_TEST_F(wait_set_poll_model, TheFirstDescriptorIsPolledByAThreadThatWaitsAlready, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    r.spawn("waiter", [&] {
        std::array<ready_item, 1> found;
        const auto how = set.wait({.spin = sleep_at_once}, found);
        model::check(how.status == wait_status::signaled && how.count == 1 && found[0].tag == 2,
                     "the descriptor");
    });
    set.add(readable(descriptor), 2);
    modelled_poll_set::the_one->make_ready();
    r.join_all();
}

// An event and the descriptor are ready at once, with space for one item: nothing is written beyond it, no token lost.
MODEL_TEST_F(wait_set_poll_model, AnEventAndADescriptorAtOnceAreReportedOnceWithinTheSpace, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    set.add(readable(descriptor), 2);
    unsigned tokens = 0;
    r.spawn("waiter", [&] {
        constexpr std::uint64_t untouched = 99;
        std::array<ready_item, 2> found{{{untouched, readiness::none}, {untouched, readiness::none}}};
        const auto how = set.wait({.spin = sleep_at_once}, std::span(found).first(1));
        model::check(how.status == wait_status::signaled && how.count == 1, "one is reported");
        model::check(found[0].tag != untouched && found[1].tag == untouched, "within the space for it");
        tokens = found[0].tag == 1 ? 1 : 0;
    });
    r.spawn("peer", [] { modelled_poll_set::the_one->make_ready(); });
    event.set();
    r.join_all();
    model::check(tokens + (event.try_wait() ? 1 : 0) == 1, "one token in, one out");
}

// A deadline, an event and the descriptor race for one wait.
MODEL_TEST_F(wait_set_poll_model, ATimeoutLosesNeitherTokenNorDescriptor, holds_within, 1) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    set.add(readable(descriptor), 2);
    unsigned tokens = 0;
    r.spawn("waiter", [&] {
        std::array<ready_item, 2> found;
        const auto how = set.wait({.until = some_time(), .spin = sleep_at_once}, found);
        for (std::size_t i = 0; i != how.count; ++i) tokens += found[i].tag == 1 ? 1 : 0;
    });
    r.spawn("peer", [] { modelled_poll_set::the_one->make_ready(); });
    event.set();
    r.join_all();
    tokens += event.try_wait() ? 1 : 0;
    model::check(tokens == 1, "one token in, one out");
    std::array<ready_item, 1> found;
    const auto how = set.wait({.spin = sleep_at_once}, found);
    model::check(how.count == 1 && found[0].tag == 2, "the descriptor is still ready");
}

// The models let every second wait look at descriptors (TOCSIN_WAITS_PER_LOOK).
MODEL_TEST_F(wait_set_poll_model, EventsDoNotKeepADescriptorFromBeingReported, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    set.add(readable(descriptor), 2);
    modelled_poll_set::the_one->make_ready();
    r.spawn("setter", [&] {
        event.set();
        event.set();
    });
    r.spawn("waiter", [&] {
        bool seen = false;
        for (int i = 0; i != 2; ++i) {
            std::array<ready_item, 1> found;
            const auto how = set.wait({.spin = sleep_at_once}, found);
            model::check(how.count == 1, "something is ready");
            seen |= found[0].tag == 2;
        }
        model::check(seen, "one of two waits reports it");
    });
    r.join_all();
}

// A bell that was rung for a wait that had ended takes the only room of the next poll.
MODEL_TEST_F(wait_set_poll_model, ALateRingDoesNotHideADescriptor, holds_always) {
    wait_set set;
    set.add(readable(descriptor), 2);
    modelled_poll_set::the_one->make_ready();
    modelled_poll_set::the_one->rings_take_room();
    modelled_poll_set::the_one->ring();
    r.spawn("waiter", [&] {
        std::array<ready_item, 1> found;
        const deadline passed(std::chrono::nanoseconds(0));
        const auto how = set.wait({.until = passed, .spin = sleep_at_once}, found);
        model::check(how.count == 1 && found[0].tag == 2, "the descriptor");
    });
    r.join_all();
}

MODEL_TEST_F(wait_set_poll_model, ATimerWakesAThreadThatPolls, holds_within, 2) {
    wait_timer timer;
    wait_set set;
    set.add(timer, 1);
    set.add(readable(descriptor), 2);
    r.spawn("waiter", [&] {
        std::array<ready_item, 2> found;
        const auto how = set.wait({.spin = sleep_at_once}, found);
        model::check(how.status == wait_status::signaled && how.count == 1 && found[0].tag == 1, "the timer");
    });
    timer.reset(deadline(std::chrono::nanoseconds(0)));
    r.join_all();
}

// The tag of an event changes while a thread is told of it.
MODEL_TEST_F(wait_set_poll_model, ATagChangesUnderTheLock, holds_within, 2) {
    auto_reset_event event;
    wait_set set;
    set.add(event, 1);
    r.spawn("waiter", [&] {
        std::array<ready_item, 1> found;
        (void)set.wait({.spin = sleep_at_once}, found);
        model::check(found[0].tag == 1 || found[0].tag == 2, "one of its tags");
    });
    r.spawn("setter", [&] { event.set(); });
    set.change(event, 2);
    r.join_all();
}

}  // namespace
