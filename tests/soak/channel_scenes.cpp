// SPDX-License-Identifier: Apache-2.0
// Channels: as many items must come out as went in.
#include "complaints.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/channel.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace soak {
namespace {

using tocsin::channel_status;

// Threads send to and receive from a rendezvous and a channel with slots, alone or in a wait for both. Waits may end
// early.
class items_in_transit : public scene {
public:
    explicit items_in_transit(support::random_source& random)
        : threads_(some_threads(random)), slots_(1 + random.below(4)) {}

    void enter(crew& hands, book& counted) override {
        counted_ = &counted;
        for (int i = 0; i != threads_; ++i) {
            hands.start(counted, "sender", [this](worker& self) { send(self); });
            hands.start(counted, "receiver", [this](worker& self) { receive(self); });
        }
    }

    void end() override {
        slots_.close();
        meeting_.close();
    }

    void check() override {
        ledger left;
        while (auto item = slots_.try_receive()) {
            sum_ -= *item;
            left.out();
        }
        counted_->close(left);
        expect(sum_.load() == 0, "an item of a channel is missing, or came out twice");
        expect(slots_.try_receive().status() == channel_status::closed, "a closed channel does not say so");
        expect(meeting_.try_send(1) == channel_status::closed, "a closed rendezvous does not say so");
    }

private:
    void send(worker& self) {
        while (!self.is_over()) {
            std::uint64_t item = 1 + self.random.below(1000);
            const std::uint64_t value = item;
            const nanoseconds longest(self.random.below(40'000));
            bool sent = false;
            if (self.random.one_in(2)) {
                auto to_slots = slots_.sending(item);
                auto to_meeting = meeting_.sending(item);
                const auto how = tocsin::wait_any({.until = longest}, to_meeting, to_slots, never_set_);
                sent = (how.index == 0 && to_meeting.status() == channel_status::done) ||
                       (how.index == 1 && to_slots.status() == channel_status::done);
            } else {
                auto& to = self.random.one_in(2) ? slots_ : meeting_;
                sent = to.send_for(item, longest, some_spin(self.random)) == channel_status::done;
            }
            self.done();
            if (!sent) {
                self.counts.race();
                continue;
            }
            sum_ += value;
            self.counts.in();
        }
    }

    void receive(worker& self) {
        while (!self.is_over()) {
            const nanoseconds longest(self.random.below(40'000));
            std::uint64_t value = 0;
            if (self.random.one_in(2)) {
                auto from_slots = slots_.receiving();
                auto from_meeting = meeting_.receiving();
                const auto how = tocsin::wait_any({.until = longest}, never_set_, from_slots, from_meeting);
                if (how.index == 1 && from_slots) value = *from_slots;
                if (how.index == 2 && from_meeting) value = *from_meeting;
            } else {
                auto& from = self.random.one_in(2) ? slots_ : meeting_;
                if (const auto item = from.receive_for(longest, some_spin(self.random))) value = *item;
            }
            self.done();
            if (value == 0) {
                self.counts.race();
                continue;
            }
            sum_ -= value;
            self.counts.out();
        }
    }

    const int threads_;
    book* counted_ = nullptr;
    tocsin::channel<std::uint64_t> slots_;
    tocsin::channel<std::uint64_t> meeting_{0};
    tocsin::auto_reset_event never_set_;
    std::atomic<std::uint64_t> sum_{0};  // of the items sent, less those received
};

}  // namespace

std::vector<scene_kind> channel_scenes() {
    return {{"items in transit", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<items_in_transit>(random);
             }}};
}

}  // namespace soak
