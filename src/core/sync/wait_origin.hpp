// SPDX-License-Identifier: Apache-2.0
// Which thread waits, and since when: what diagnose.hpp, a debugger and tracers show of each wait.
#pragma once

#include "core/sync/lock_owners.hpp"
#include "platform/system/system.hpp"

#include <tocsin/queue_order.hpp>

#include <chrono>
#include <cstdint>

namespace tocsin::core {

// All nodes and entries of a wait have the same origin. Reading the clock takes longer than queueing a node. So a wait
// makes its origin once, and before it takes a lock (a bit_lock's wait: under the bucket's lock). A wait that blocks no
// thread does not even read the exact clock.
// No other wait of the thread has the same `since`, however soon one follows the other. So both members together tell a
// wait from all others (src/watchdog.cpp).
struct wait_origin {
    std::uint64_t thread = 0;
    std::int64_t since = 0;  // in ticks of the steady clock

    // The origin of a wait that the calling thread begins now. Also learns how urgent the thread is (lot-9 in lot.cpp).
    static wait_origin here(queue_order order = queue_order::arrival) noexcept {
        if (order == queue_order::priority) platform::forget_thread_urgency();  // asks the system each time
        const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
        (void)platform::thread_urgency(now);
        return begun_at(now);
    }
    // The same for a wait that blocks no thread: `since` may be up to 10 ms too early.
    static wait_origin of_suspension() noexcept { return begun_at(platform::recent_time()); }

private:
    static wait_origin begun_at(std::int64_t since) noexcept {
        wait_origin made;
        made.thread = number_of_waiting_thread();
        made.since = platform::unique_time(since);
        return made;
    }
};

}  // namespace tocsin::core
