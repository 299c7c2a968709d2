// SPDX-License-Identifier: Apache-2.0
// Every interleaving of rings and sleeps over a doorbell's ring_state (src/platform/poller/doorbells.cpp). In place of
// the system's object there is a word, which each strike fills or empties. That word gives no memory order, which is
// less than systems give.
#include "explorer/futex.hpp"
#include "platform/poller/doorbells.hpp"
#include "support/library_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using namespace tocsin;
using model::atomic;
using model::run;
using namespace tocsin::library_model;

constexpr auto relaxed = std::memory_order_relaxed;

class modelled_bell {
public:
    void ring() {
        state_.ring([this](bool even) {
            // This strike may take effect before other strikes that do not happen before it.
            full_.store(even ? 1 : 0, relaxed);
            model::futex_wake(&full_);
        });
    }
    // One poll, which ends when it finds the object struck.
    void sleep() {
        const std::uint32_t struck = state_.even() ? 1 : 0;
        while (full_.load(relaxed) != struck) (void)model::futex_wait(&full_, 1 - struck);
        state_.answer();
    }

private:
    tocsin::platform::ring_state state_;
    atomic<std::uint32_t> full_{0};
};

// Each ringer gives its reasons one after the other, and rings for each. The sleeper sleeps until it has seen all
// reasons. If a ring is lost, or a late ring undoes it, the sleeper sleeps for ever.
template <std::size_t Ringers>
void all_are_heard(run& r, const std::array<int, Ringers>& rings) {
    modelled_bell bell;
    std::array<atomic<int>, Ringers> given;
    for (std::size_t i = 0; i < Ringers; ++i) {
        r.spawn("ringer " + std::to_string(i), [&, i] {
            for (int reason = 1; reason <= rings[i]; ++reason) {
                given[i].store(reason, relaxed);
                bell.ring();
            }
        });
    }
    r.spawn("sleeper", [&] {
        for (std::size_t i = 0; i < Ringers; ++i) {
            while (given[i].load(relaxed) != rings[i]) bell.sleep();
        }
    });
    r.join_all();
}

TEST(doorbell_model, EveryRingOfOneIsHeard) {
    holds_always([](run& r) { all_are_heard<1>(r, {3}); });
}

TEST(doorbell_model, EveryRingOfTwoIsHeard) {
    holds_always([](run& r) { all_are_heard<2>(r, {1, 1}); });
    holds_within(3, [](run& r) { all_are_heard<2>(r, {2, 2}); });
}

TEST(doorbell_model, EveryRingOfThreeIsHeard) {
    holds_within(2, [](run& r) { all_are_heard<3>(r, {1, 2, 1}); });
}

}  // namespace
