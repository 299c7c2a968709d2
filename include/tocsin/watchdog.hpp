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

// Calls `report(wait)` once for each parked wait (diagnose.hpp) that has been parked for longer than `longest`.
//
//     const auto watchdog = tocsin::report_waits_longer_than(10s, [](const tocsin::parked_wait& wait) {
//         log("{} {} '{}': thread {} waits", wait.type, wait.address, wait.name, wait.thread);
//     });
//
// Cost: none for the waits, which note when they were parked in any case. The first call starts a thread of the
// library, which all watchdogs share and which lives as long as the process. The thread looks at all parked waits when
// the oldest wait that it has not reported yet becomes too old, or once in `longest` if nothing waits. It looks at most
// 16 times in `longest`, and at most once in a millisecond. In addition, it looks whenever a watchdog begins or ends,
// and when another watchdog needs a look. A look costs what parked_waits() costs.
// Precision: a wait is reported at the earliest when it is older than `longest`. It is reported at the latest after a
// further sixteenth of `longest` (or a millisecond, if that is longer), plus the time of a look and of the reports
// before this one. A wait that ends between these two moments may stay unreported. For a coroutine or an operation,
// both moments may come up to 10 ms earlier, because parked_wait::since may be too early by that much.
//
// The function runs in the library's thread, under no lock, and may wait and wake. (await.hpp says how such a thread is
// scheduled.) It must not throw: an exception ends the program. In the child of a fork, nothing is reported until the
// child makes a watchdog of its own. Throws std::bad_alloc, std::system_error if the system can't start a thread, and
// std::invalid_argument if `report` is empty.
[[nodiscard]] TOCSIN_API wait_watchdog
report_waits_longer_than(std::chrono::nanoseconds longest, std::function<void(const parked_wait&)> report);

}  // namespace tocsin
