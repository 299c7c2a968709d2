// SPDX-License-Identifier: Apache-2.0
// The spin policy of the process, and the wait counters.
#include "core/sync/counters.hpp"
#include "core/wait/spinner.hpp"

#include <tocsin/spin.hpp>

#include <atomic>

namespace tocsin {

void set_spin_policy(spin_policy policy) noexcept { core::set_process_policy(policy); }
spin_policy process_spin_policy() noexcept { return core::process_policy(); }

#if TOCSIN_COUNTERS

namespace core {
namespace {
constinit std::atomic<std::uint64_t> counters[4]{};
}  // namespace

void count(counter which) noexcept {
    counters[static_cast<unsigned>(which)].fetch_add(1, std::memory_order_relaxed);  // no order: statistics
}
}  // namespace core

wait_counters read_wait_counters() noexcept {
    const auto read = [](core::counter which) {
        return core::counters[static_cast<unsigned>(which)].load(std::memory_order_relaxed);  // no order
    };
    return {read(core::counter::spun), read(core::counter::yielded), read(core::counter::slept),
            read(core::counter::woken)};
}

#endif

}  // namespace tocsin
