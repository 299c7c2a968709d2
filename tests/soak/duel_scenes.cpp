// SPDX-License-Identifier: Apache-2.0
// Two threads that act on the same object within nanoseconds of each other, and check the outcome afterwards: a set
// against a try, a timeout, a stop or a wait for any of two; two sets against a wait for both; a set against the reset
// that precedes the look at what the set announced; a wake against a timeout.
#include "complaints.hpp"
#include "scene.hpp"

#include <tocsin/address.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

namespace soak {
namespace {

using std::chrono::nanoseconds;
using tocsin::wait_status;

// Where the two threads meet before and after each duel. The first to arrive spins for a good part of a time slice, so
// that two threads that run at the same time fight some thousand duels before one is preempted.
class meeting_point {
public:
    void arrive() {
        const unsigned meeting = meetings_.load();
        if (arrived_.fetch_add(1) == 1) {
            arrived_.store(0);
            meetings_.store(meeting + 1);
            return;
        }
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned looks = 1; meetings_.load() == meeting; ++looks) {
            if (looks % 64 == 0 && std::chrono::steady_clock::now() - begin > longest_)
                std::this_thread::yield();
        }
    }

private:
    const std::chrono::microseconds longest_{std::thread::hardware_concurrency() > 1 ? 4'000 : 0};
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<unsigned> meetings_{0};
};

class duels : public scene {
public:
    void enter(crew& hands, book& counted) override {
        hands.start(counted, "gives", [this](worker& self) { give_all(self); });
        hands.start(counted, "takes", [this](worker& self) { take_all(self); });
    }

    void check() override {
        expect(!token_.is_set() && !other_token_.is_set(), "a duel left its token behind");
        expect(tocsin::waiting_on(&token_) == 0 && tocsin::waiting_on(&word_) == 0,
               "a duel has waiters but no threads");
    }

private:
    enum class kind {
        set_against_try,
        set_against_timeout,
        set_against_stop,
        set_against_any,
        sets_against_all,
        set_against_reset,
        wake_against_timeout,
        none
    };

    // Both do the same rounds; what the giver writes before the line, the taker reads after it.
    void give_all(worker& self) {
        while (now_ != kind::none) {
            now_ = draw(self);
            if (now_ == kind::set_against_stop) stop_.emplace();
            line_.arrive();
            if (now_ != kind::none) give(self);
            line_.arrive();
            self.done();
        }
    }

    kind draw(worker& self) const {
        if (self.is_over()) return kind::none;
        switch (self.random.below(16)) {
            case 0: return kind::set_against_stop;
            case 1: return kind::wake_against_timeout;
            case 2: return kind::set_against_any;
            case 3: return kind::sets_against_all;
            case 4:
            case 5: return kind::set_against_timeout;
            case 6:
            case 7:
            case 8:
            case 9: return kind::set_against_reset;
            default: return kind::set_against_try;
        }
    }

    void give(worker& self) {
        self.counts.race();
        switch (now_) {
            case kind::wake_against_timeout:
                word_.store(value_ + 1, std::memory_order_release);
                woken_ = tocsin::wake_by_address_one(&word_);
                return;
            case kind::set_against_reset:
                post_.store(posts_ + 1, std::memory_order_relaxed);
                gate_.set();
                break;
            case kind::set_against_stop:
                if (self.random.one_in(2)) {
                    stop_->request_stop();
                    token_.set();
                } else {
                    token_.set();
                    stop_->request_stop();
                }
                break;
            case kind::sets_against_all:
                token_.set();
                other_token_.set();
                self.counts.in();
                break;
            default: token_.set();
        }
        self.counts.in();
    }

    void take_all(worker& self) {
        for (;;) {
            line_.arrive();
            const kind now = now_;
            if (now == kind::wake_against_timeout) {
                const auto how =
                    tocsin::wait_on_address(&word_, value_, nanoseconds(self.random.below(3'000)));
                line_.arrive();
                expect(woken_ == (how == tocsin::address_status::woken ? 1u : 0u),
                       "a wake was counted wrongly");
                ++value_;
            } else if (now == kind::set_against_reset) {
                gate_.reset();
                const bool seen = post_.load(std::memory_order_relaxed) == posts_ + 1;
                line_.arrive();
                expect(seen || gate_.is_set(), "a set of a set event was skipped, and its post was not seen");
                gate_.set();  // as it was at the beginning
                ++posts_;
                self.counts.out();
            } else if (now != kind::none) {
                const bool taken = take(self, now);
                line_.arrive();
                const bool left = token_.try_wait();
                expect(taken != left, taken ? "one set was taken twice" : "a set was lost");
                if (now == kind::sets_against_all) {
                    expect(other_token_.try_wait() == left, "a wait for all took only one of the two");
                    self.counts.out();
                }
                self.counts.out();
            } else {
                line_.arrive();
            }
            self.done(2);
            if (now == kind::none) return;
        }
    }

    bool take(worker& self, kind now) {
        if (now == kind::set_against_try) return token_.try_wait();
        if (now == kind::set_against_stop) return token_.wait(stop_->get_token()) == wait_status::signaled;
        const nanoseconds longest(self.random.below(3'000));
        if (now == kind::set_against_any) {
            return tocsin::wait_any({.until = longest}, other_token_, token_).status == wait_status::signaled;
        }
        if (now == kind::sets_against_all) {
            return tocsin::wait_all({.until = longest}, other_token_, token_) == wait_status::signaled;
        }
        return token_.wait_for(longest) == wait_status::signaled;
    }

    meeting_point line_;
    tocsin::auto_reset_event token_;
    alignas(64) tocsin::auto_reset_event other_token_;
    alignas(64) tocsin::manual_reset_event gate_{true};
    alignas(64) std::atomic<std::uint32_t> post_{0};
    alignas(64) std::atomic<std::uint32_t> word_{0};
    // Plain, handed over at the line; the giver writes the first three, the taker the last two.
    kind now_ = kind::set_against_try;
    std::optional<std::stop_source> stop_;
    std::size_t woken_ = 0;
    std::uint32_t value_ = 0;
    std::uint32_t posts_ = 0;
};

}  // namespace

std::vector<scene_kind> duel_scenes() {
    return {{"duels of two threads",
             [](support::random_source&) -> std::unique_ptr<scene> { return std::make_unique<duels>(); }}};
}

}  // namespace soak
