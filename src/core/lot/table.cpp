// SPDX-License-Identifier: Apache-2.0
// The table of buckets of this process: how a copy of the library finds it, and what a fork does to it. What the
// buckets contain: lot.cpp.
//
// Several copies of the library in one process: when a copy is loaded, before any thread can park, it asks for the
// table of the first copy (platform/shared_table/shared_table.hpp).
// Fork (core/sync/fork.hpp): the child's table still shows threads of the parent, none of which is parked or holds a
// lock in the child. So the copy that owns the table empties it, once in each child.
// Checked by: tests/unit/fork_test.cpp, tests/copies.
#include "core/lot/lot.hpp"
#include "core/lot/shared_layout.hpp"
#include "core/lot/wake_sample.hpp"
#include "core/sync/fork.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace tocsin::core {
namespace {

// Whether an array crowds into few buckets. The array has, on average, five addresses for each bucket, at equal
// distances. `step` is the distance times the multiplier. The hashes of the addresses lie on a circle of 2^64 numbers,
// each one step behind the last. A bucket is an arc of this circle. Suppose that some number of steps leads back to
// nearly the same place: nearer than a 25th of an arc. Then addresses that are so many steps apart share a bucket. If
// the number is small enough for the array to have 25 such addresses, the array crowds.
// Only numbers of steps that lead nearer than every smaller number matter. Euclid's algorithm finds them in order.
bool crowds(std::uint64_t step) noexcept {
    constexpr std::uint64_t max = 25;  // addresses in a bucket
    constexpr std::uint64_t near_enough = (~std::uint64_t{0} >> bucket_bits) / max;
    constexpr std::uint64_t max_steps = (std::uint64_t{5} << bucket_bits) / max;
    std::uint64_t before = 0;  // how near the number before this one led; 0 stands for the whole circle
    std::uint64_t near = step;
    std::uint64_t steps_before = 0;
    std::uint64_t steps = 1;
    while (steps <= max_steps) {
        if (near < near_enough) return true;
        const std::uint64_t times = (before != 0 ? before : ~std::uint64_t{0}) / near;
        before = std::exchange(near, before - times * near);
        steps_before = std::exchange(steps, steps_before + times * steps);
    }
    return false;
}

// Never destroyed, since waits and wakes are allowed after main.
constinit lot_table own_table{};

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

void leave_parent() noexcept {
    wake_sample::forget();
    // The copy that owns the table empties it, once in each child. This copy was loaded before all other copies that
    // use the table, so its fork handler runs first. It is never unloaded before the others.
    if (the_lot == &own_table) forget_parked();
}

struct at_load {
    at_load() noexcept {
        own_table.multiplier = multiplier_from(platform::random_number());
        constexpr std::uint64_t layout = shared_layout::number();
        the_lot = static_cast<lot_table*>(platform::adopt_first_copy(the_lot, layout));
        hash_multiplier = the_lot->multiplier;
        const in_child empties_table(child_duty::table, leave_parent);
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

std::uint64_t multiplier_from(std::uint64_t random) noexcept {
    const auto crowds_some_array = [](std::uint64_t multiplier) {
        constexpr std::uint64_t page = 4'096;
        for (std::uint64_t distance = 8; distance <= 512; distance += 8)
            if (crowds(distance * multiplier)) return true;
        return crowds(page * multiplier);
    };
    while (crowds_some_array(random | 1)) random = platform::mix(random, 0);
    return random | 1;
}

void for_each_parked(void (*look)(const wait_node&, void*), void* context) noexcept {
    for (bucket& each : the_lot->at) {
        const signal_deferral inside;
        const std::lock_guard lock(each.lock);
        for_each_queue(each, [&](const wait_node& first) {
            for (const wait_node* parked = &first; parked != nullptr; parked = node_list::next(*parked))
                look(*parked, context);
        });
    }
}

}  // namespace tocsin::core
