// SPDX-License-Identifier: Apache-2.0
// Reports waits that take too long, while they are still waiting: for a log, or to end the program with a dump.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/diagnose.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace tocsin {

namespace detail {
struct watchdog_state;
struct watchdog_deleter {
    TOCSIN_API void operator()(watchdog_state* gone) const noexcept;
};
}  // namespace detail

// What report_waits_longer_than() returns. The reports end when this object is destroyed. The destructor waits until a
// call of the function that is under way has returned. So don't destroy the object inside that function: that ends the
// program, with a message.
class [[nodiscard]] wait_watchdog {
    friend TOCSIN_API wait_watchdog report_waits_longer_than(std::chrono::nanoseconds longest,
                                                             std::function<void(const parked_wait&)> report);
    using state = std::unique_ptr<detail::watchdog_state, detail::watchdog_deleter>;

    explicit wait_watchdog(state made) noexcept : state_(std::move(made)) {}

    state state_;
};

// Calls `report(wait)` once for each parked wait (diagnose.hpp) that has been parked for longer than `longest`:
//
//     const auto watchdog = tocsin::report_waits_longer_than(10s, [](const tocsin::parked_wait& wait) {
//         log("{} {} '{}': thread {} waits", wait.type, wait.address, wait.name, wait.thread);
//     });
//
// The report comes at most a sixteenth of `longest` late, or a millisecond, whichever is longer. Costs the waits
// nothing; docs/diagnosis.md says what the library's thread does. The function runs in that thread, under no lock, and
// may wait and wake. It must not throw: an exception ends the program. In the child of a fork, nothing is reported
// until the child makes a watchdog of its own. Throws std::bad_alloc, std::system_error if the system can't start a
// thread, and std::invalid_argument if `report` is empty.
[[nodiscard]] TOCSIN_API wait_watchdog
report_waits_longer_than(std::chrono::nanoseconds longest, std::function<void(const parked_wait&)> report);

}  // namespace tocsin
