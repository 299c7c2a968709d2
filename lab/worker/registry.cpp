#include "registry.hpp"

namespace lab {

const registry& everything() {
    static const registry all = [] {
        registry scenarios;
        add_floors(scenarios);
        add_polling(scenarios);
        add_pairs(scenarios);
        add_redundant_set(scenarios);
        add_hurdles(scenarios);
        add_broadcast(scenarios);
        add_wake_latency(scenarios);
        add_ping_pong(scenarios);
        add_producer(scenarios);
        add_futile_wait(scenarios);
        add_address_wake(scenarios);
        add_address_differs(scenarios);
        add_locks(scenarios);
        add_strangers(scenarios);
        add_fairness(scenarios);
        add_bystanders(scenarios);
        add_memory(scenarios);
        add_lot(scenarios);
        add_events(scenarios);
        add_many(scenarios);
        add_multiplexed(scenarios);
        add_group_commit(scenarios);
        add_group_wake(scenarios);
        return scenarios;
    }();
    return all;
}

}  // namespace lab
