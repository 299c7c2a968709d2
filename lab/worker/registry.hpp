// SPDX-License-Identifier: Apache-2.0
// Every scenario crossed with every contestant of this worker.
//
// A scenario file registers its scenario with one line, so a new scenario is one new file:
//
//     const registration<my_scenario> registered{lineup{}};
#pragma once

#include "contestant.hpp"
#include "scenario.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
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

    // In the order of these names; scenarios that it doesn't name come last, by name.
    template <class Names>
    void sort_by(const Names& order) {
        const auto key = [&](const registered_scenario& one) {
            return std::pair(std::ranges::find(order, one.info->name), one.info->name);
        };
        std::ranges::sort(scenarios_, {}, key);
    }

    // Adds a contestant that runs what another one runs: it differs in how its process is started.
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

// The registrations of all scenario files, linked before main() begins, in any order.
class any_registration {
public:
    any_registration(const any_registration&) = delete;
    any_registration& operator=(const any_registration&) = delete;

    static const any_registration* first() noexcept { return first_; }
    const any_registration* next() const noexcept { return next_; }
    void add_to(registry& all) const { add_(all); }

protected:
    explicit any_registration(void (*add)(registry&)) noexcept
        : add_(add), next_(std::exchange(first_, this)) {}
    ~any_registration() = default;

private:
    static inline constinit const any_registration* first_ = nullptr;

    void (*const add_)(registry&);
    const any_registration* const next_;
};

template <class Scenario>
class registration : any_registration {
public:
    template <class... C>
    explicit registration(contestants<C...>) noexcept
        : any_registration([](registry& all) { all.add<Scenario>(contestants<C...>{}); }) {}
};

const registry& everything();

}  // namespace lab
