// SPDX-License-Identifier: Apache-2.0
// What one step of a thread touches: enough to tell whether two steps of different threads commute.
#pragma once

#include <cstdint>

namespace tocsin::model {

struct footprint {
    std::int32_t location = -1;  // an atomic
    std::int32_t queue = -1;     // the sleepers on one address
    bool writes = false;         // writes the location
    bool sc = false;             // takes a position in the sequentially consistent order at its location
    bool everything = false;     // may look at any state
    bool fence = false;          // takes a position in the sequentially consistent order for all locations
    bool last_resort = false;    // possible only because no thread is ready: comes after every step before it
    bool queues = false;         // the sleepers on several addresses
    std::int8_t by = -1;         // the thread that makes the step
    std::int8_t ends = -1;       // the thread that this step ends
};

// Two steps that are not dependent lead to the same state in either order, and neither takes a possibility from the
// other (but see depth_first-1).
constexpr bool dependent(const footprint& a, const footprint& b) noexcept {
    if (a.everything || b.everything || a.last_resort || b.last_resort) return true;
    if (a.location >= 0 && a.location == b.location && (a.writes || b.writes || (a.sc && b.sc))) return true;
    if (a.queue >= 0 && a.queue == b.queue) return true;
    if ((a.queues && (b.queues || b.queue >= 0)) || (b.queues && a.queue >= 0)) return true;
    if ((a.ends >= 0 && a.ends == b.by) || (b.ends >= 0 && b.ends == a.by)) return true;
    return (a.fence && (b.fence || b.sc)) || (b.fence && a.sc);
}

}  // namespace tocsin::model
