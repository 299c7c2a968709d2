// SPDX-License-Identifier: Apache-2.0
// Semaphores whose permits must all be there in the end.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace soak {
namespace {

// Threads take one permit or several, alone or with an event, and give them back. Every wait may end early.
class permits_of_all_sizes : public scene {
public:
    explicit permits_of_all_sizes(support::random_source& random)
        : cords_(static_cast<std::size_t>(some_threads(random) + 1)) {}

    void enter(crew& hands, book& counted) override {
        for (std::size_t i = 0; i < cords_.size(); ++i) {
            hands.start(counted, "permit taker", [this, i](worker& self) { work(self, cords_[i]); });
        }
        hands.start(counted, "pulls cords", [this](worker& self) { pull_cords(self, cords_); });
    }

    void end() override {
        for (auto& each : cords_) each.pull();
    }

    void check() override {
        expect(tocsin::waiting_on(&free_) == 0, "a semaphore has waiters but no threads");
        expect(inside_.load() == 0 && free_.try_acquire(max), "a permit of a semaphore is missing");
        expect(!free_.try_acquire(), "a semaphore has a permit too many");
    }

private:
    static constexpr int max = 4;

    void work(worker& self, stop_cord& mine) {
        while (!self.is_over()) {
            const int wanted = 1 + static_cast<int>(self.random.below(max));
            const int taken = take(self, mine, wanted);
            self.done();
            if (taken == 0) {
                self.counts.race();
                continue;
            }
            const auto number = static_cast<std::uint64_t>(taken);
            self.counts.out(number);
            expect(inside_.fetch_add(taken, std::memory_order_relaxed) + taken <= max,
                   "more permits are out than a semaphore has");
            if (self.random.one_in(4)) support::jitter(self.random);
            inside_.fetch_sub(taken, std::memory_order_relaxed);
            self.counts.in(number);
            if (self.random.one_in(2)) {
                free_.release(taken);
            } else {
                for (int i = 0; i != taken; ++i) free_.release();
            }
            self.done();
        }
    }

    // Returns how many permits it took.
    int take(worker& self, stop_cord& mine, int wanted) {
        auto& random = self.random;
        const nanoseconds longest(random.below(40'000));
        switch (random.below(6)) {
            case 0: return free_.try_acquire(wanted) ? wanted : 0;
            case 1: {
                const auto begin = std::chrono::steady_clock::now();
                const bool taken = free_.try_acquire_for(wanted, longest, some_spin(random));
                expect(taken || std::chrono::steady_clock::now() - begin >= longest,
                       "a wait for permits timed out early");
                return taken ? wanted : 0;
            }
            case 2: {
                const std::stop_token stop = mine.renew();
                if (self.is_over()) return 0;  // as in wait_briefly()
                return self.timed([&] { return free_.acquire(wanted, stop, some_spin(random)); }) ==
                               wait_status::signaled
                           ? wanted
                           : 0;
            }
            case 3: return tocsin::wait_any({.until = longest}, never_set_, free_).index == 1 ? 1 : 0;
            case 4:
                return tocsin::wait_all({.until = longest}, always_set_, free_) == wait_status::signaled ? 1
                                                                                                         : 0;
            default:
                self.timed([&] { return free_.acquire(wanted, some_spin(random)), true; });
                return wanted;
        }
    }

    std::deque<stop_cord> cords_;
    tocsin::counting_semaphore<max> free_{max};
    tocsin::auto_reset_event never_set_;
    tocsin::manual_reset_event always_set_{true};
    std::atomic<int> inside_{0};
};

}  // namespace

std::vector<scene_kind> semaphore_scenes() {
    return {{"permits of all sizes", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<permits_of_all_sizes>(random);
             }}};
}

}  // namespace soak
