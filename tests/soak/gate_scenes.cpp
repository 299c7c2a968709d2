// SPDX-License-Identifier: Apache-2.0
// Manual events that release all their waiters at once.
#include "scene.hpp"
#include "waits.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace soak {
namespace {

// set(); reset() at a moment when all waiters are parked releases each of them. Two gates in turn: a quick thread
// reaches the second one before the first is shut.
class broadcast : public scene {
public:
    explicit broadcast(support::random_source& random) : waiters_(some_threads(random) * 2) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "setter", [this](worker& self) { open_and_shut(self); });
        for (int i = 0; i < waiters_; ++i) {
            hands.start(counted, "waiter", [this](worker& self) { pass(self); });
        }
    }

    void check() override {
        for (auto& each : gates_) {
            expect(tocsin::waiting_on(&each) == 0, "a gate has waiters but no threads");
            expect(!each.is_set(), "a gate is open after its reset");
        }
    }

private:
    void open_and_shut(worker& self) {
        for (bool last = false; !last;) {
            last = self.is_over();
            ++round_;
            tocsin::manual_reset_event& gate = gates_[round_ % 2];
            until_all_are_parked(gate);
            closing_ = last;
            passed_.store(0, std::memory_order_relaxed);
            gate.set();
            gate.reset();
            self.counts.in(static_cast<std::uint64_t>(waiters_));
            wait_firmly(all_passed_, self);
            expect(passed_.load() == waiters_, "a gate released more threads than waited at it");
            self.done(3);
        }
    }

    void until_all_are_parked(const tocsin::manual_reset_event& gate) const {
        for (int looks = 0; tocsin::waiting_on(&gate) != static_cast<std::size_t>(waiters_); ++looks) {
            if (looks < 50) {
                std::this_thread::yield();
            } else {
                std::this_thread::sleep_for(std::chrono::microseconds(20));
            }
        }
    }

    void pass(worker& self) {
        for (std::uint64_t round = 1;; ++round) {
            const wait_status how = self.timed([&] { return pass_gate(self, gates_[round % 2]); });
            expect(how == wait_status::signaled, "a wait at a gate ended without a set");
            expect(round_ == round,
                   "released in round " + std::to_string(round_) + " instead of " + std::to_string(round));
            const bool last = closing_;
            self.counts.out();
            self.counts.race();
            self.done();
            if (passed_.fetch_add(1) + 1 == waiters_) all_passed_.set();
            if (last) return;
        }
    }

    static wait_status pass_gate(worker& self, tocsin::manual_reset_event& gate) {
        switch (self.random.below(4)) {
            case 0: return gate.wait_for(std::chrono::hours(1));
            case 1: {
                const std::stop_source never;
                return gate.wait(never.get_token());
            }
            default: gate.wait(some_spin(self.random)); return wait_status::signaled;
        }
    }

    const int waiters_;
    std::array<tocsin::manual_reset_event, 2> gates_;
    tocsin::auto_reset_event all_passed_;
    std::atomic<int> passed_{0};
    std::uint64_t round_ = 0;  // plain, published by the gate
    bool closing_ = false;     // plain as well
};

}  // namespace

std::vector<scene_kind> gate_scenes() {
    return {{"manual event: broadcast", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<broadcast>(random);
             }}};
}

}  // namespace soak
