// SPDX-License-Identifier: Apache-2.0
// Small random programs, to compare searches. Whatever a reduction leaves out, it must keep every outcome.
#pragma once

#include "explore.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tocsin::model {

enum class action {
    load,
    store,
    exchange,
    compare_exchange,  // from 0
    fence,
    choose,
    timed_sleep,  // once, if the word is 0, with a deadline
    wake,         // one or two
    publish,      // a store and a wake of all
    await,        // sleeps, without a deadline, until the word is not 0
    hold,         // sleeps until the word is 0, takes it, gives it back and wakes one
    look_twice,   // and relaxes in between
    spin,         // until the word is not 0
    expect,       // wait_until() a number of actions is over
};

struct operation {
    action what;
    int location;
    int value;  // never 0
    std::memory_order order;
};
using program = std::vector<std::vector<operation>>;

// What programs are made of; an action that is listed twice is drawn twice as often.
using actions = std::vector<action>;

inline const actions memory_actions = {
    action::load,  action::load,  action::load,     action::load,     action::store,
    action::store, action::store, action::exchange, action::exchange, action::compare_exchange,
    action::fence};

// Actions with a futex and deadlines. None of these programs can hang.
inline const actions sleeping_actions = {action::load,        action::load,       action::store,
                                         action::store,       action::exchange,   action::compare_exchange,
                                         action::fence,       action::wake,       action::timed_sleep,
                                         action::timed_sleep, action::timed_sleep};

// All actions but spins without a bound. About half of these programs hang in some run.
inline const actions blocking_actions = {
    action::load,       action::store,   action::exchange,    action::compare_exchange,
    action::fence,      action::wake,    action::timed_sleep, action::timed_sleep,
    action::await,      action::publish, action::publish,     action::hold,
    action::look_twice, action::expect,  action::choose};

// Actions with spins that last until somebody stores. Where nobody does, the run is a livelock.
inline const actions spinning_actions = {action::load,        action::load,     action::store,
                                         action::store,       action::exchange, action::compare_exchange,
                                         action::fence,       action::spin,     action::spin,
                                         action::timed_sleep, action::publish};

inline std::memory_order random_order(action what, std::mt19937& draw) {
    using enum std::memory_order;
    constexpr std::memory_order loads[] = {relaxed, acquire, seq_cst};
    constexpr std::memory_order stores[] = {relaxed, release, seq_cst};
    constexpr std::memory_order all[] = {relaxed, acquire, release, acq_rel, seq_cst};
    switch (what) {
        case action::load:
        case action::await:
        case action::look_twice:
        case action::spin: return loads[draw() % 3];
        case action::store:
        case action::publish: return stores[draw() % 3];
        case action::fence: return all[1 + draw() % 4];
        default: return all[draw() % 5];
    }
}

inline program random_program(unsigned seed, const actions& among, int threads, int length) {
    std::mt19937 draw(seed);
    program p(static_cast<std::size_t>(threads));
    int value = 0;
    for (auto& thread : p)
        for (int i = 0; i < length; ++i) {
            const action what = among[draw() % among.size()];
            const std::memory_order order = random_order(what, draw);
            const int next = what == action::wake ? 1 + static_cast<int>(draw() % 2) : ++value;
            thread.push_back({what, static_cast<int>(draw() % 2), next, order});
        }
    return p;
}

inline std::string text_of(const program& p) {
    constexpr const char* names[] = {
        "load",    "store", "exchange", "compare_exchange", "fence", "choose", "timed_sleep", "wake",
        "publish", "await", "hold",     "look_twice",       "spin",  "expect"};
    constexpr const char* orders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
    std::string text;
    for (const auto& thread : p) {
        text += "\n  thread:";
        for (const operation& o : thread)
            text += std::string(" ") + names[static_cast<int>(o.what)] + '(' + "xy"[o.location] + ", " +
                    std::to_string(o.value) + ", " + orders[static_cast<int>(o.order)] + ')';
    }
    return text;
}

// One action of one thread: `saw` takes what it sees, `over` counts the actions of all threads.
inline void perform(run& r, const operation& o, atomic<std::uint32_t>& at, const int& over,
                    std::vector<int>& saw) {
    const auto value = static_cast<std::uint32_t>(o.value);
    const auto note = [&](auto seen) { saw.push_back(static_cast<int>(seen)); };
    std::uint32_t expected = 0;
    switch (o.what) {
        case action::load: return note(at.load(o.order));
        case action::store: return at.store(value, o.order);
        case action::exchange: return note(at.exchange(value, o.order));
        case action::compare_exchange:
            note(at.compare_exchange_strong(expected, value, o.order));
            return note(expected);
        case action::fence: return thread_fence(o.order);
        case action::choose: return note(r.choose(2));
        case action::timed_sleep: return note(futex_wait(&at, 0, true));
        case action::wake: return note(futex_wake(&at, value));
        case action::publish: at.store(value, o.order); return note(futex_wake(&at, 8));
        case action::await:
            while (at.load(o.order) == 0) note(futex_wait(&at, 0));
            return;
        case action::hold:
            while (!at.compare_exchange_strong(expected = 0, value, o.order)) note(futex_wait(&at, expected));
            at.store(0, o.order);
            return note(futex_wake(&at));
        case action::look_twice:
            if (at.load(o.order) == 0) cpu_relax();
            return note(at.load(o.order));
        case action::spin:
            while (at.load(o.order) == 0) cpu_relax();
            return;
        case action::expect: return wait_until([&] { return over >= o.value % 3; });
    }
}

// What each thread saw, and the last values, in all runs.
using outcomes = std::set<std::vector<int>>;

inline outcomes outcomes_of(const program& p, const options& how, report& made) {
    outcomes seen;
    made = explore(how, [&](run& r) {
        atomic<std::uint32_t> x[2]{0, 0};
        std::vector<std::vector<int>> saw(p.size());
        int over = 0;
        for (std::size_t t = 0; t < p.size(); ++t)
            r.spawn("thread", [&, t] {
                for (const operation& o : p[t]) {
                    perform(r, o, x[o.location], over, saw[t]);
                    ++over;
                }
            });
        r.join_all();
        std::vector<int> all;
        for (auto& each : x) all.push_back(static_cast<int>(each.load(std::memory_order_relaxed)));
        for (const auto& each : saw) {
            all.push_back(-1);
            all.insert(all.end(), each.begin(), each.end());
        }
        seen.insert(all);
    });
    return seen;
}

}  // namespace tocsin::model
