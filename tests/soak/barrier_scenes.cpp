// SPDX-License-Identifier: Apache-2.0
// Threads that go from phase to phase at a barrier, and in each phase count a new latch down.
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/barrier.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace soak {
namespace {

class phases : public scene {
public:
    explicit phases(support::random_source& random)
        : members_(some_threads(random)), barrier_(members_, completion{this}) {}

    void enter(crew& hands, book& counted) override {
        for (int i = 0; i != members_; ++i) {
            hands.start(counted, "member", [this](worker& self) { take_part(self); });
        }
    }

    void check() override {
        expect(latch_->try_wait(), "a latch is closed after all have counted");
        expect(tocsin::waiting_on(&barrier_) == 0, "a barrier has waiters but no threads");
    }

private:
    struct completion {
        phases* of;
        void operator()() const noexcept { of->complete(); }
    };

    // Alone: all members have arrived, and none has passed.
    void complete() noexcept {
        expect(counted_.exchange(0, std::memory_order_relaxed) == (latch_ ? members_ : 0),
               "a thread passed a latch or a barrier early");
        ++phase_;
        last_ = is_over_.load(std::memory_order_relaxed);
        latch_ = std::make_unique<tocsin::latch>(members_);
    }

    void take_part(worker& self) {
        for (std::uint64_t phase = 1;; ++phase) {
            support::jitter(self.random);
            if (self.is_over()) is_over_.store(true, std::memory_order_relaxed);
            self.counts.in();
            self.timed([&] { return pass(self); });
            expect(phase_ == phase, "a barrier's phase ended twice, or not at all");
            self.counts.out();
            self.counts.race();
            const bool last = last_;
            counted_.fetch_add(1, std::memory_order_relaxed);
            self.timed([&] { return count_down(self); });
            expect(counted_.load(std::memory_order_relaxed) == members_, "a latch opened early");
            self.done(2);
            if (last) return;
        }
    }

    wait_status pass(worker& self) {
        switch (self.random.below(4)) {
            case 0: {
                const auto token = barrier_.arrive();
                while (barrier_.wait_for(token, nanoseconds(self.random.below(50'000))) !=
                       wait_status::signaled) {
                }
                break;
            }
            case 1: return tocsin::wait_any(barrier_.arrive()).status;
            case 2: barrier_.wait(barrier_.arrive(), some_spin(self.random)); break;
            default: barrier_.arrive_and_wait(some_spin(self.random)); break;
        }
        return wait_status::signaled;
    }

    // The completion function destroys the latch when all have passed it, and the last call of count_down() may still
    // be on its way out.
    wait_status count_down(worker& self) {
        tocsin::latch& all = *latch_;
        if (self.random.one_in(2)) {
            all.arrive_and_wait(1, some_spin(self.random));
            return wait_status::signaled;
        }
        all.count_down();
        return tocsin::wait_all({.until = std::chrono::hours(1)}, all);
    }

    const int members_;
    tocsin::barrier<completion> barrier_;
    std::atomic<bool> is_over_{false};
    std::atomic<int> counted_{0};
    std::unique_ptr<tocsin::latch> latch_;  // plain, published by the barrier
    std::uint64_t phase_ = 0;               // plain as well
    bool last_ = false;                     // plain as well
};

std::unique_ptr<scene> make_phases(support::random_source& random) {
    return std::make_unique<phases>(random);
}

}  // namespace

std::vector<scene_kind> barrier_scenes() { return {{"barrier: phases", make_phases}}; }

}  // namespace soak
