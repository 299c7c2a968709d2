// SPDX-License-Identifier: Apache-2.0
#include "registry.hpp"

#if defined(_WIN32)
#include "contestants/windows.hpp"
#endif

namespace lab {
namespace {

// How lists and reports order the scenarios.
constexpr std::string_view order[] = {
    "floors",
    "polling",
    "pairs",
    "atomic_numbers",
    "redundant_set",
    "hurdles",
    "broadcast",
    "wake_latency",
    "ping_pong",
    "producer",
    "futile_wait",
    "address_wake",
    "address_change",
    "address_differs",
    "locks",
    "strangers",
    "fairness",
    "bystanders",
    "memory",
    "lot",
    "events",
    "wait_many",
    "wait_all_at_gate",
    "multiplexed",
    "group_commit",
    "group_wake",
    "async_wait",
    "pending_operations",
    "channels",
    "select",
    "between_processes",
};

}  // namespace

const registry& everything() {
    static const registry all = [] {
        registry scenarios;
        for (const any_registration* each = any_registration::first(); each != nullptr; each = each->next())
            each->add_to(scenarios);
        scenarios.sort_by(order);
#if defined(_WIN32)
        scenarios.repeat("tocsin", tocsin_srw);
#endif
        return scenarios;
    }();
    return all;
}

}  // namespace lab
