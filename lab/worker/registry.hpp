// Every scenario crossed with every contestant of this worker.
#pragma once

#include "contestant.hpp"
#include "scenario.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace lab {

template <class... C>
struct contestants {};

struct pairing {
    const contestant_info* contestant;
    std::string (*refuses)(const parameters&);
    void (*check)(context&);
    void (*run)(context&);
};

struct registered_scenario {
    const scenario_info* info;
    std::vector<pairing> pairings;
};

class registry {
public:
    template <class Scenario, class... C>
    void add(contestants<C...>) {
        registered_scenario entry{&Scenario::info(), {}};
        (entry.pairings.push_back(cross<Scenario, C>()), ...);
        scenarios_.push_back(std::move(entry));
        if (contestants_.empty()) (contestants_.push_back(&C::info), ...);
    }

    // Whatever a contestant runs, once more under another name: it differs in how the process was started.
    void repeat(std::string_view contestant, const contestant_info& as) {
        for (registered_scenario& each : scenarios_) {
            const auto is_it = [&](const pairing& one) { return one.contestant->name == contestant; };
            const auto found = std::ranges::find_if(each.pairings, is_it);
            if (found == each.pairings.end()) continue;
            pairing again = *found;
            again.contestant = &as;
            each.pairings.push_back(again);
        }
        contestants_.push_back(&as);
    }

    const std::vector<registered_scenario>& scenarios() const noexcept { return scenarios_; }
    const std::vector<const contestant_info*>& contestants_known() const noexcept { return contestants_; }

private:
    template <class Scenario, class C>
    static pairing cross() {
        return {&C::info, &Scenario::template refuses<C>, &Scenario::template check<C>,
                &Scenario::template run<C>};
    }

    std::vector<registered_scenario> scenarios_;
    std::vector<const contestant_info*> contestants_;
};

// In scenarios/: each file adds its own.
void add_floors(registry&);
void add_polling(registry&);
void add_hurdles(registry&);
void add_pairs(registry&);
void add_redundant_set(registry&);
void add_broadcast(registry&);
void add_wake_latency(registry&);
void add_ping_pong(registry&);
void add_producer(registry&);
void add_futile_wait(registry&);
void add_address_wake(registry&);
void add_address_differs(registry&);
void add_locks(registry&);
void add_strangers(registry&);
void add_fairness(registry&);
void add_bystanders(registry&);
void add_memory(registry&);
void add_lot(registry&);
void add_events(registry&);
void add_many(registry&);
void add_multiplexed(registry&);
void add_group_commit(registry&);
void add_group_wake(registry&);

const registry& everything();

}  // namespace lab
