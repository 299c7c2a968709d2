// SPDX-License-Identifier: Apache-2.0
// Descriptors of coroutines: the thread that polls them (src/core/async/poll_thread.cpp) alongside threads that set and
// cancel requests. Proof P13.
#include "core/async/poll_thread.hpp"
#include "support/library_model.hpp"

#include <optional>
#include <span>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

// It outlives every run, like the thread that sleeps in it.
library_model::poller the_poller;

class counted_request final : public core::poll_request {
public:
    explicit counted_request(int descriptor)
        : entry_{.descriptor = descriptor, .asked = readiness::readable} {}

    void set() { core::poll_request::set(std::span(&entry_, 1)); }

    bool claim() noexcept override { return claimed_ = true; }
    void run() noexcept override {
        model::check(claimed_ && entry_.found == readiness::readable, "claimed, for what was found");
        ran_.store(1, std::memory_order_release);
        model::futex_wake(&ran_);
    }

    void wait() {
        while (ran_.load(std::memory_order_acquire) == 0) (void)model::futex_wait(&ran_, 0);
    }
    // Afterwards the caller may close the descriptor.
    void take_back() {
        cancel();
        const bool claimed = claimed_;
        if (claimed) wait();
        model::check(!the_poller.polls(entry_.descriptor), "no poll names it any longer");
        model::cpu_relax();
        model::check(claimed_ == claimed && !the_poller.polls(entry_.descriptor), "no later poll names it");
    }

private:
    platform::poll_entry entry_;
    bool claimed_ = false;
    model::atomic<std::uint32_t> ran_{0};
};

MODEL_TEST(poll_request_model, ARequestRunsWhenItsDescriptorIsReady, holds_within, 2) {
    const background_threads have;
    r.spawn("peer", [] { the_poller.make_ready(); });
    counted_request one(3);
    one.set();
    one.wait();
    one.cancel();
    r.join_all();
}

// The second request's descriptor is ready already, and nothing else ends the poll.
MODEL_TEST(poll_request_model, ARequestSetDuringAPollIsPolled, holds_within, 2) {
    const background_threads have;
    counted_request first(3);
    first.set();
    r.spawn("second", [] {
        the_poller.make_ready(4);
        counted_request own(4);
        own.set();
        own.wait();
        own.cancel();
        the_poller.make_ready(3);
    });
    first.wait();
    first.cancel();
    r.join_all();
}

MODEL_TEST(poll_request_model, AfterACancelNoPollNamesTheDescriptor, holds_within, 2) {
    const background_threads have;
    r.spawn("peer", [] { the_poller.make_ready(); });
    counted_request one(3);
    one.set();
    one.take_back();
    r.join_all();
}

MODEL_TEST(poll_request_model, TwoThreadsCancelAtOnce, holds_within, 1) {
    const background_threads have;
    for (int i = 0; i != 2; ++i) {
        r.spawn("canceler", [i] {
            counted_request own(3 + i);
            own.set();
            own.take_back();
        });
    }
    r.join_all();
}

}  // namespace
