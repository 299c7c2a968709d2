#include "registry.hpp"

#if defined(_WIN32)
#include "contestants/windows.hpp"
#endif

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
#if !defined(_WIN32)
        add_multiplexed(scenarios);
#endif
        add_group_commit(scenarios);
        add_group_wake(scenarios);
#if defined(_WIN32)
        scenarios.repeat("tocsin", tocsin_srw);
        scenarios.repeat("tocsin", tocsin_kernel_event);
#endif
        return scenarios;
    }();
    return all;
}

}  // namespace lab
