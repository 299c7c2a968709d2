// SPDX-License-Identifier: Apache-2.0
// Threads that live for one call. Some set an event in their last step.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"

#include <tocsin/event.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace soak {
namespace {

// Sets the event in the destructor of a thread-local object.
struct last_will {
    tocsin::auto_reset_event* event = nullptr;
    ~last_will() {
        if (event != nullptr) event->set();
    }
};
thread_local last_will will;

class short_lives : public scene {
public:
    explicit short_lives(support::random_source&) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "parent of short lives", [this](worker& self) {
            while (!self.is_over()) bear(self);
        });
    }

    void check() override { expect(!token_.is_set(), "a short life's token was left behind"); }

private:
    void bear(worker& self) {
        std::atomic<bool> taken{false};
        std::vector<std::thread> lives;
        const auto take = [&] {
            token_.wait();
            taken.store(true);
        };
        const auto give = [this, at_exit = self.random.one_in(2)] {
            if (at_exit) {
                will.event = &token_;
            } else {
                token_.set();
            }
        };
        const bool giver_first = self.random.one_in(2);
        if (giver_first) lives.emplace_back(give);
        lives.emplace_back(take);
        if (!giver_first) lives.emplace_back(give);
        crew::threads_started() += lives.size();
        self.counts.in();
        self.timed([&] {
            for (auto& each : lives) each.join();
            return true;
        });
        expect(taken.load(), "a short life ended without its token");
        self.counts.out();
        self.counts.race();
        self.done(2);
    }

    tocsin::auto_reset_event token_;
};

}  // namespace

std::vector<scene_kind> short_life_scenes() {
    return {{"threads of one call", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<short_lives>(random);
             }}};
}

}  // namespace soak
