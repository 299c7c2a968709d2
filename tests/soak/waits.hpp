// SPDX-License-Identifier: Apache-2.0
// The many ways to ask for the same wait.
#pragma once

#include "complaints.hpp"
#include "crew.hpp"

#include <tocsin/event.hpp>

#include <chrono>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>

namespace soak {

using std::chrono::nanoseconds;
using tocsin::wait_status;

inline tocsin::spin_policy some_spin(support::random_source& random) {
    switch (random.below(8)) {
        case 0: return tocsin::spin_policy::fixed(nanoseconds(random.below(20'000)));
        case 1:
        case 2:
        case 3: return tocsin::spin_policy::none();
        default: return {};
    }
}

// A stop source that its owner renews and other threads pull.
class stop_cord {
public:
    std::stop_token renew() {
        const std::lock_guard lock(mutex_);
        source_ = std::stop_source();
        return source_.get_token();
    }
    void pull() {
        std::stop_source mine(std::nostopstate);
        {
            const std::lock_guard lock(mutex_);
            mine = source_;
        }
        mine.request_stop();
    }

private:
    std::mutex mutex_;
    std::stop_source source_;
};

// Pulls one cord after another, until the act is over.
inline void pull_cords(worker& self, std::deque<stop_cord>& cords) {
    while (!self.is_over()) {
        cords[self.random.below(cords.size())].pull();
        self.done();
        std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(100)));
    }
}

// A wait that ends soon: on its own, or because another thread pulls the cord.
template <class Event>
wait_status wait_briefly(Event& event, worker& self, stop_cord& cord) {
    using std::chrono::steady_clock;
    using std::chrono::system_clock;
    auto& random = self.random;
    const nanoseconds longest(random.below(60'000));
    const auto begin = steady_clock::now();
    const auto not_early = [&](wait_status how) {
        const auto waited = steady_clock::now() - begin;
        self.counts.waited(waited);
        expect(how != wait_status::timed_out || waited >= longest, "a wait timed out early");
        return how;
    };
    const auto as_status = [](bool taken) { return taken ? wait_status::signaled : wait_status::timed_out; };
    switch (random.below(100)) {
        case 0: return event.wait_for(nanoseconds(0));
        case 1: return event.wait_until(begin - std::chrono::seconds(1));
        case 2: return event.wait_until(system_clock::now() + std::chrono::microseconds(random.below(60)));
        case 3: return not_early(event.wait_for(longest, some_spin(random)));
        case 4: return not_early(event.wait_until(begin + longest, some_spin(random)));
        case 5: return not_early(event.wait_for(longest, cord.renew()));
        case 6: {
            const std::stop_token stop = cord.renew();
            // The thread that pulls cords looks for them after the act is over: either this thread sees that it is
            // over, or that thread sees this cord.
            if (self.is_over()) return as_status(event.try_wait());
            return self.timed([&] { return event.wait(stop, some_spin(random)); });
        }
        default: return as_status(event.try_wait());
    }
}

// A wait that ends only when the event was set; a lost wake-up makes it hang, and the watchdog reports it.
template <class Event>
void wait_firmly(Event& event, worker& self) {
    auto& random = self.random;
    const auto begin = std::chrono::steady_clock::now();
    wait_status how = wait_status::timed_out;
    switch (random.below(5)) {
        case 0:
            while (how != wait_status::signaled) how = event.wait_for(nanoseconds(random.below(100'000)));
            break;
        case 1: {
            const std::stop_source never;
            how = event.wait(never.get_token());
            break;
        }
        case 2: how = event.wait_for(std::chrono::hours(24), some_spin(random)); break;
        default: event.wait(some_spin(random)); how = wait_status::signaled;
    }
    self.counts.waited(std::chrono::steady_clock::now() - begin);
    expect(how == wait_status::signaled, "a wait ended whose event was not set");
}

}  // namespace soak
