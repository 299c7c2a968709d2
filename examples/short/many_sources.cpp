// SPDX-License-Identifier: Apache-2.0
// Serves many events and idle timeouts in one loop. The cost of a wait doesn't grow with the idle ones.
#include <tocsin/event.hpp>
#include <tocsin/wait_set.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <span>

struct connection {
    tocsin::auto_reset_event received;
    tocsin::wait_timer idle;
};

int main() {
    using namespace std::chrono_literals;
    constexpr unsigned count = 1000;
    const auto connections = std::make_unique<connection[]>(count);
    tocsin::wait_set set;
    for (unsigned i = 0; i != count; ++i) {
        set.add(connections[i].received, 2 * i);
        set.add(connections[i].idle, 2 * i + 1);
    }
    connections[7].received.set();
    connections[9].idle.reset(20ms);

    unsigned served = 0;
    unsigned closed = 0;
    while (closed == 0) {
        tocsin::ready_item ready[64];
        const auto result = set.wait(ready);
        for (const auto& each : std::span(ready).first(result.count)) {
            const auto which = static_cast<unsigned>(each.tag) / 2;
            if (each.tag % 2 == 0) served = which;
            if (each.tag % 2 == 1) closed = which;
        }
    }
    std::printf("served connection %u, closed connection %u\n", served, closed);
    return served == 7 && closed == 9 ? 0 : 1;
}
