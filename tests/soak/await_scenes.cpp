// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait for what threads wait for. They run on an executor's threads, or in the thread that ends their
// wait.
#include "complaints.hpp"
#include "executor.hpp"
#include "places.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "task.hpp"
#include "waits.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>

#include <array>
#include <atomic>
#include <coroutine>
#include <memory>
#include <stop_token>
#include <vector>

namespace soak {
namespace {

using support::executor;
using support::task;
using tocsin::auto_reset_event;

// Tokens that wander through coroutines. Some coroutines are stopped and some destroyed while they wait; a token that
// had been given to a destroyed one comes back.
class troupe : public scene {
public:
    explicit troupe(support::random_source& random)
        : places_(2 + random.below(3)), threads_(some_threads(random)) {}

    void enter(crew& hands, book& counted) override {
        for (int i = 0; i < threads_; ++i) {
            hands.start(counted, "runs coroutines", [this](worker& self) { direct(self); });
        }
    }

    void check() override { places_.check(); }

private:
    struct role {
        std::stop_source stop;
        task played;
    };

    void direct(worker& self) {
        executor thread;
        std::array<role, 4> roles;
        while (!self.is_over()) {
            role& each = roles[self.random.below(roles.size())];
            if (!each.played.handle() || each.played.done()) {
                each.stop = std::stop_source();
                each.played = task();
                each.played = play(self, thread, each.stop.get_token());
            } else if (self.random.one_in(16)) {
                each.stop.request_stop();
            } else if (self.random.one_in(16)) {
                destroy(each, thread);
            }
            thread.run();
            self.done();
            if (self.random.one_in(4)) thread.wait(nanoseconds(self.random.below(50'000)));
        }
        for (auto& each : roles) destroy(each, thread);
    }

    static void destroy(role& which, executor& thread) {
        const auto handle = which.played.handle();
        if (!handle) return;
        which.played.destroy();
        thread.forget(handle);
    }

    // Runs only in the thread of its `self`, which is the executor's.
    task play(worker& self, executor& thread, std::stop_token stop) {
        while (!stop.stop_requested() && !self.is_over()) {
            const nanoseconds longest(1 + self.random.below(100'000));
            const std::size_t one = self.random.below(places_.count);
            const std::size_t other = (one + 1 + self.random.below(places_.count - 1)) % places_.count;
            bool has_one = false;
            bool has_other = false;
            switch (self.random.below(3)) {
                case 0: {
                    const auto how =
                        co_await tocsin::async_wait({.until = longest, .stop = stop}, places_[one])
                            .on(thread);
                    has_one = how == wait_status::signaled;
                    break;
                }
                case 1: {
                    const auto how = co_await tocsin::async_wait_all({.until = longest, .stop = stop},
                                                                     places_[one], places_[other])
                                         .on(thread);
                    has_one = has_other = how == wait_status::signaled;
                    break;
                }
                default: {
                    const auto how = co_await tocsin::async_wait_any({.stop = stop}, places_[one],
                                                                     tocsin::after(longest), places_[other])
                                         .on(thread);
                    const bool signaled = how.status == wait_status::signaled;
                    has_one = signaled && how.index == 0;
                    has_other = signaled && how.index == 2;
                }
            }
            if (has_one) places_.took(one, self);
            if (has_other) places_.took(other, self);
            if (has_one) places_.put_back(self);
            if (has_other) places_.put_back(self);
            self.done();
        }
    }

    places<6> places_;
    const int threads_;
};

// Coroutines that resume inside the set() of the thread that asks, among threads that wait for the same event. Each
// question is answered once, by a coroutine or by a thread.
class echoes : public scene {
public:
    explicit echoes(support::random_source& random) : askers_(1 + random.below(3)) {
        for (int i = 0; i != coroutines; ++i) tasks_.push_back(answer());
    }

    void enter(crew& hands, book& counted) override {
        for (auto& each : askers_)
            hands.start(counted, "asks", [this, &each](worker& self) { ask(self, each); });
        hands.start(counted, "answers", [this](worker& self) {
            while (!is_over_.load()) {
                wait_firmly(asked_, self);
                answer_all();
                self.done();
            }
            asked_.set();
        });
        open_ = askers_.size();
    }

    void check() override {
        for (auto& each : tasks_) expect(each.done(), "a coroutine was not resumed");
        expect(tocsin::waiting_on(&asked_) == 0, "an event has waiters but no threads");
    }

private:
    static constexpr std::size_t coroutines = 3;
    struct alignas(64) asker {
        std::atomic<bool> asks{false};
        std::atomic<unsigned> answered_by{0};
        auto_reset_event answered;
    };

    void ask(worker& self, asker& mine) {
        while (!self.is_over()) {
            mine.asks.store(true, std::memory_order_relaxed);
            self.counts.in();
            asked_.set();
            wait_firmly(mine.answered, self);
            self.counts.out();
            if (mine.answered_by.load(std::memory_order_relaxed) != self.number) self.counts.race();
            self.done(2);
        }
        // The last question ends one of the answerers, which ends the next.
        if (open_.fetch_sub(1) != 1) return;
        is_over_.store(true);
        asked_.set();
    }

    void answer_all() {
        for (auto& each : askers_) {
            if (!each.asks.exchange(false, std::memory_order_relaxed)) continue;
            each.answered_by.store(worker::current()->number, std::memory_order_relaxed);
            each.answered.set();
        }
    }

    task answer() {
        while (!is_over_.load()) {
            co_await tocsin::async_wait(asked_);
            answer_all();
        }
        asked_.set();
    }

    std::deque<asker> askers_;
    std::atomic<std::size_t> open_{0};
    std::atomic<bool> is_over_{false};
    auto_reset_event asked_;
    std::vector<task> tasks_;
};

template <class Scene>
std::unique_ptr<scene> make(support::random_source& random) {
    return std::make_unique<Scene>(random);
}

}  // namespace

std::vector<scene_kind> await_scenes() {
    return {{"coroutines: tokens", make<troupe>}, {"coroutines: echoes", make<echoes>}};
}

}  // namespace soak
