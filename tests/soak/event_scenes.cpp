// SPDX-License-Identifier: Apache-2.0
// Events that hand over tokens and ring bells.
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/event.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

namespace soak {
namespace {

// Tokens that wander: each is always in one of its places, or in one thread's hands. Every wait may end early, so a
// token that a timeout or a stop has lost is missing at the end, and one that was given twice shows at once.
class wandering_tokens : public scene {
public:
    explicit wandering_tokens(support::random_source& random)
        : tokens_(1 + random.below(3)), cords_(static_cast<std::size_t>(some_threads(random) + 1)) {}

    void enter(crew& hands, book& counted) override {
        for (auto& each : tokens_) each.places[0].set();
        for (std::size_t i = 0; i < cords_.size(); ++i) {
            hands.start(counted, "wanderer", [this, i](worker& self) { wander(self, cords_[i]); });
        }
        hands.start(counted, "pulls cords", [this](worker& self) { pull(self); });
    }

    void end() override {
        for (auto& each : cords_) each.pull();
    }

    void check() override {
        for (auto& each : tokens_) {
            int left = 0;
            for (auto& place : each.places) {
                left += place.try_wait() ? 1 : 0;
                expect(tocsin::waiting_on(&place) == 0, "a place of a token has waiters but no threads");
            }
            expect(left == 1, "a token is there " + std::to_string(left) + " times");
        }
    }

private:
    struct token {
        std::array<tocsin::auto_reset_event, 3> places;
        std::atomic<int> holders{0};
        unsigned last_holder = 0;  // written by the thread that holds the token
    };

    void wander(worker& self, stop_cord& mine) {
        while (!self.is_over()) {
            token& wanted = tokens_[self.random.below(tokens_.size())];
            auto& place = wanted.places[self.random.below(wanted.places.size())];
            if (wait_briefly(place, self, mine) == wait_status::signaled) {
                self.counts.out();
                expect(wanted.holders.fetch_add(1, std::memory_order_relaxed) == 0, "two hold one token");
                if (wanted.last_holder != self.number) self.counts.race();
                wanted.last_holder = self.number;
                wanted.holders.fetch_sub(1, std::memory_order_relaxed);
                self.counts.in();
                wanted.places[self.random.below(wanted.places.size())].set();
                self.done();
            }
            self.done();
            if (self.random.one_in(32)) support::jitter(self.random);
        }
    }

    void pull(worker& self) {
        while (!self.is_over()) {
            cords_[self.random.below(cords_.size())].pull();
            self.done();
            std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(100)));
        }
    }

    std::deque<token> tokens_;
    std::deque<stop_cord> cords_;
};

// Consumes the ring of the bell: the wait has done so for one kind; the other needs a reset before the reader looks.
void take_bell(tocsin::auto_reset_event&) {}
void take_bell(tocsin::manual_reset_event& bell) { bell.reset(); }

// Several threads post, each by a plain store into a slot of its own, and ring; the reader is woken, and looks into the
// slots only then. Each poster waits for its receipt, so it hangs if a set was skipped or did not publish its post.
template <class Bell>
class mailbox : public scene {
public:
    explicit mailbox(support::random_source& random) : slots_(1 + random.below(4)), open_(slots_.size()) {}

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "reader", [this](worker& self) { read(self); });
        for (auto& each : slots_) {
            hands.start(counted, "poster", [this, &each](worker& self) { post(self, each); });
        }
    }

    void check() override {
        for (auto& each : slots_) {
            expect(each.read == each.posted.load(), "a mailbox holds a post that was not read");
            expect(!each.receipt.is_set(), "a receipt was given twice");
        }
    }

private:
    struct alignas(64) slot {
        std::atomic<std::uint64_t> posted{0};
        std::uint64_t read = 0;  // written by the reader
        tocsin::auto_reset_event receipt;
    };

    void post(worker& self, slot& mine) {
        for (std::uint64_t number = 1; !self.is_over(); ++number) {
            mine.posted.store(number, std::memory_order_relaxed);
            bell_.set();
            self.counts.in();
            support::jitter(self.random);
            wait_firmly(mine.receipt, self);
            self.counts.race();
            self.done(2);
        }
        open_.fetch_sub(1, std::memory_order_relaxed);
        bell_.set();
    }

    void read(worker& self) {
        std::size_t open = 1;
        while (open != 0) {
            wait_firmly(bell_, self);
            take_bell(bell_);
            open = open_.load(std::memory_order_relaxed);
            for (auto& each : slots_) {
                const std::uint64_t posted = each.posted.load(std::memory_order_relaxed);
                if (posted == each.read) continue;
                expect(posted == each.read + 1, "a post was overwritten before it was read");
                each.read = posted;
                self.counts.out();
                self.counts.race();
                each.receipt.set();
                self.done();
            }
            self.done();
        }
    }

    Bell bell_;
    std::deque<slot> slots_;
    std::atomic<std::size_t> open_;
};

template <class Scene>
std::unique_ptr<scene> make(support::random_source& random) {
    return std::make_unique<Scene>(random);
}

}  // namespace

std::vector<scene_kind> event_scenes() {
    return {{"auto event: tokens", make<wandering_tokens>},
            {"auto event: mailbox", make<mailbox<tocsin::auto_reset_event>>},
            {"manual event: mailbox", make<mailbox<tocsin::manual_reset_event>>}};
}

}  // namespace soak
