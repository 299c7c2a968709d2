// SPDX-License-Identifier: Apache-2.0
// A wait_set in which one thread waits, while others take its members' tokens first and members come and go.
#include "complaints.hpp"
#include "places.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait_set.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <span>

#include <fcntl.h>
#include <unistd.h>

namespace soak {
namespace {

using tocsin::auto_reset_event;

// Tokens in places that are members; events on the heap that are members for a moment, with or without a token, and
// are destroyed as soon as they are removed; and, in half of the sets, a pipe. The wait has no deadline: it hangs if
// the set overlooks something.
class members : public scene {
public:
    explicit members(support::random_source& random)
        : places_(1 + random.below(4)), with_pipe_(random.one_in(2)) {
        for (std::size_t i = 0; i != places_.count; ++i) set_.add(places_[i], i);
        set_.add(closed_, closing);
        if (!with_pipe_) return;
        expect(pipe2(pipe_, O_NONBLOCK | O_CLOEXEC) == 0, "no pipe could be created");
        set_.add(tocsin::readable(pipe_[0]), byte_in_the_pipe);
    }
    members(const members&) = delete;
    members& operator=(const members&) = delete;
    ~members() override {
        if (!with_pipe_) return;
        set_.remove(tocsin::readable(pipe_[0]));
        close(pipe_[0]);
        close(pipe_[1]);
    }

    void enter(crew& hands, book& counted) override {
        open_ = with_pipe_ ? 3 : 2;
        hands.start(counted, "waits in a set", [this](worker& self) { wait(self); });
        hands.start(counted, "takes past a set", [this](worker& self) { take_past(self); });
        hands.start(counted, "adds and removes", [this](worker& self) { exchange_members(self); });
        if (with_pipe_) hands.start(counted, "writes for a set", [this](worker& self) { write_bytes(self); });
    }

    void check() override { places_.check(); }

private:
    static constexpr std::uint64_t closing = 100;
    static constexpr std::uint64_t byte_in_the_pipe = 101;
    static constexpr std::uint64_t for_a_moment = 102;

    void wait(worker& self) {
        while (open_.load() != 0) {
            std::array<tocsin::ready_item, 4> items;
            const auto out = std::span(items).first(1 + self.random.below(items.size()));
            const auto found = self.random.one_in(4)
                                   ? set_.wait({.until = nanoseconds(self.random.below(60'000))}, out)
                                   : self.timed([&] { return set_.wait(out); });
            self.done();
            for (const auto& each : out.first(found.count)) took(self, each.tag);
        }
    }

    void took(worker& self, std::uint64_t tag) {
        switch (tag) {
            case closing: return;
            case for_a_moment:
                self.counts.out();
                self.counts.race();
                return;
            case byte_in_the_pipe: {
                char byte;
                expect(read(pipe_[0], &byte, 1) == 1, "a pipe reported as readable holds no byte");
                self.counts.out();
                receipt_.set();
                return;
            }
            default: places_.took(tag, self); places_.put_back(self);
        }
    }

    void take_past(worker& self) {
        while (!self.is_over()) {
            const std::size_t one = self.random.below(places_.count);
            self.done();
            if (places_[one].wait_for(nanoseconds(self.random.below(30'000)), some_spin(self.random)) ==
                wait_status::signaled) {
                places_.took(one, self);
                places_.put_back(self);
            }
            support::jitter(self.random);
        }
        leave();
    }

    void exchange_members(worker& self) {
        while (!self.is_over()) {
            if (self.random.one_in(2)) {
                const std::size_t one = self.random.below(places_.count);
                expect(set_.remove(places_[one]), "a member was not in its set");
                support::jitter(self.random);
                set_.add(places_[one], one);
            } else {
                add_for_a_moment(self);
            }
            self.done(2);
        }
        leave();
    }

    void add_for_a_moment(worker& self) {
        const auto event = std::make_unique<auto_reset_event>();
        const bool at_first = self.random.one_in(2);
        if (at_first) event->set();
        set_.add(*event, for_a_moment);
        if (!at_first) event->set();
        self.counts.in();
        support::jitter(self.random);
        set_.remove(*event);
        if (event->try_wait()) self.counts.out();  // otherwise the set took it, and reports it
    }

    void write_bytes(worker& self) {
        while (!self.is_over()) {
            self.counts.in();
            expect(write(pipe_[1], "x", 1) == 1, "a pipe accepts no byte");
            wait_firmly(receipt_, self);
            self.counts.race();
            self.done(2);
        }
        leave();
    }

    void leave() {
        open_.fetch_sub(1);
        closed_.set();
    }

    places<8> places_;
    const bool with_pipe_;
    int pipe_[2] = {-1, -1};
    auto_reset_event closed_;
    auto_reset_event receipt_;
    std::atomic<int> open_{0};
    tocsin::wait_set set_;
};

}  // namespace

std::vector<scene_kind> set_scenes() {
    return {{"wait_set: members", [](support::random_source& random) -> std::unique_ptr<scene> {
                 return std::make_unique<members>(random);
             }}};
}

}  // namespace soak
