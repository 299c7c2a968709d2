// SPDX-License-Identifier: Apache-2.0
// The table of buckets of this process: how a copy of the library finds it, and what a fork does to it. What the
// buckets contain: lot.cpp.
//
// Several copies of the library in one process: when a copy is loaded, before any thread can park, it asks for the
// table of the first copy (platform/shared_table/shared_table.hpp).
// Fork: the child's table still shows threads of the parent, none of which is parked or holds a lock in the child. So
// the copy that owns the table empties it, once in each child.
// Checked by: tests/unit/fork_test.cpp, tests/copies.
#include "core/lot/lot.hpp"
#include "core/lot/shared_layout.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <mutex>
#include <new>

namespace tocsin::core {
namespace {

// The golden ratio's upper bits spread consecutive and aligned addresses evenly. Of the multiplier's lower 48 bits, the
// lowest is 1, and all others are secret.
std::uint64_t draw_multiplier() noexcept {
    return detail::golden_hash(1) ^ (platform::random_number() & 0x0000'FFFF'FFFF'FFFE);
}

// Never destroyed, since waits and wakes are allowed after main.
constinit lot_table own_table{};
constinit detail::atomic<std::uint32_t> forks_so_far{0};

void forget_parked() noexcept {
    for (bucket& each : the_lot->at) {
        // The child does not write to unused buckets, so that it does not copy their pages.
        if (!each.is_pristine()) new (&each) bucket;
    }
    // A thread of the parent may seem to hold the lock. No order: the only thread.
    the_lot->meetings.store(0, std::memory_order_relaxed);
    platform::futex::after_fork();
    platform::poller::after_fork();
}

void after_fork() noexcept {
    forks_so_far.fetch_add(1, std::memory_order_relaxed);  // no order: the only thread
    platform::forget_thread_number();
    // The copy that owns the table empties it, once in each child. This copy was loaded before all other copies that
    // use the table, so its fork handler runs first. It is never unloaded before the others.
    if (the_lot == &own_table) forget_parked();
}

struct at_load {
    at_load() noexcept {
        own_table.multiplier = draw_multiplier();
        constexpr std::uint64_t layout = shared_layout::number();
        the_lot = static_cast<lot_table*>(platform::adopt_first_copy(the_lot, layout));
        hash_multiplier = the_lot->multiplier;
        platform::on_fork_in_child(after_fork);
        (void)platform::processors();  // counts them now, before any thread is pinned
    }
};
// Runs before any other code of this shared object or program.
#if defined(_MSC_VER)
#pragma init_seg(lib)
const at_load start;
#else
[[gnu::init_priority(101)]] const at_load start;
#endif

}  // namespace

constinit lot_table* the_lot = &own_table;
constinit std::uint64_t hash_multiplier = detail::golden_hash(1);

std::uint32_t forks() noexcept {
    return forks_so_far.load(std::memory_order_relaxed);  // no order: it changes in the only thread
}

void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept {
    for (bucket& each : the_lot->at) {
        const signal_deferral inside;
        const std::lock_guard lock(each.lock);
        for_each_queue(each, [&](const wait_node& first) {
            for (const wait_node* parked = &first; parked != nullptr; parked = wait_list::next(*parked))
                look(*parked, context);
        });
    }
}

}  // namespace tocsin::core
