// SPDX-License-Identifier: Apache-2.0
// Events on the heap, each destroyed by the thread that it has released, as soon as that thread runs.
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/event.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

namespace soak {
namespace {

template <class Event>
class one_shots : public scene {
public:
    explicit one_shots(support::random_source& random)
        : desk_(static_cast<std::size_t>(some_threads(random))), open_(desk_.size()) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "server", [this](worker& self) { serve(self); });
        for (auto& slot : desk_) {
            hands.start(counted, "client", [this, &slot](worker& self) { ask(self, slot); });
        }
    }

    void check() override {
        for (auto& slot : desk_) expect(slot.load() == nullptr, "a request was left behind");
    }

private:
    struct request {
        std::uint64_t question = 0;
        std::uint64_t answer = 0;
        Event done;
    };

    void ask(worker& self, std::atomic<request*>& slot) {
        for (std::uint64_t i = 0; !self.is_over(); ++i) {
            auto mine = std::make_unique<request>();
            mine->question = i;
            slot.store(mine.get(), std::memory_order_release);
            bell_.set();
            self.counts.in();
            support::jitter(self.random);
            if (self.random.one_in(4)) {
                while (!mine->done.try_wait()) std::this_thread::yield();
            } else {
                wait_firmly(mine->done, self);
            }
            expect(mine->answer == i + 1, "a one-shot was set before its answer was written");
            mine.reset();
            self.counts.race();
            self.done(3);
        }
        open_.fetch_sub(1);
        bell_.set();
    }

    void serve(worker& self) {
        std::size_t open = 1;
        while (open != 0) {
            wait_firmly(bell_, self);
            open = open_.load();
            for (auto& slot : desk_) {
                request* const each = slot.exchange(nullptr, std::memory_order_acquire);
                if (each == nullptr) continue;
                each->answer = each->question + 1;
                self.counts.out();
                each->done.set();
                self.done();
            }
            self.done();
        }
    }

    std::deque<std::atomic<request*>> desk_;
    std::atomic<std::size_t> open_;
    tocsin::auto_reset_event bell_;
};

template <class Event>
std::unique_ptr<scene> make(support::random_source& random) {
    return std::make_unique<one_shots<Event>>(random);
}

}  // namespace

std::vector<scene_kind> one_shot_scenes() {
    return {{"auto event: one-shots", make<tocsin::auto_reset_event>},
            {"manual event: one-shots", make<tocsin::manual_reset_event>}};
}

}  // namespace soak
