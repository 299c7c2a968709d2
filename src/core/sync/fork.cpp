// SPDX-License-Identifier: Apache-2.0
// Runs the duties of a child before its fork() returns.
//
// State: how often the process has forked, and a function for each duty. The functions are entered while the objects of
// this copy of the library are initialised, before another thread can use them.
//
// Several copies of the library: each has duties of its own. The copy that owns the table (lot/table.cpp) was loaded
// first, so the system calls its handler first.
//
// Checked by: tests/unit/fork_test.cpp, tests/unit/fork_during_change_test.cpp, tests/copies. In the models, each run
// begins as the child of a fork.
#include "core/sync/fork.hpp"

#include "platform/futex/repeated_wakes.hpp"
#include "platform/futex/sleeper_table.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstddef>

namespace tocsin::core {
namespace {

constinit detail::atomic<std::uint32_t> forks_so_far{0};
using duty = void (*)() noexcept;
constinit duty duties[static_cast<std::size_t>(child_duty::names) + 1] = {};
constinit bool is_watching = false;

void begin_child() noexcept {
    forks_so_far.fetch_add(1, std::memory_order_relaxed);  // no order: the only thread
    platform::forget_thread_number();
    platform::forget_sleeper_table();
    platform::forget_repeated_wakes();
    for (const duty each : duties)
        if (each != nullptr) each();
}

}  // namespace

in_child::in_child(child_duty which, void (*how)() noexcept) noexcept {
    duties[static_cast<std::size_t>(which)] = how;
    if (is_watching) return;
    is_watching = true;
    platform::on_fork_in_child(begin_child);
}

std::uint32_t forks() noexcept {
    return forks_so_far.load(std::memory_order_relaxed);  // no order: it changes in the only thread
}

}  // namespace tocsin::core
