// SPDX-License-Identifier: Apache-2.0
// Tells a debugger, in numbers, where it finds the parked waits. So the debugger needs no debug information of the
// library, and it can read a release build and its core dumps. tools/gdb/tocsin_gdb.py reads these numbers;
// tests/diagnosis/gdb_test.py checks that the script and this file agree.
#include "core/wait/debugger_layout.hpp"

#include "core/lot/lot.hpp"
#include "core/sync/lock_owners.hpp"
#include "core/sync/names.hpp"
#include "core/wait/diagnosed_wait.hpp"
#include "core/wait/member_table.hpp"
#include "platform/poller/poller.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>

#if !defined(TOCSIN_MODEL)

namespace tocsin::core {

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // our compilers allow offsetof with base classes
#endif

// Each member is as wide as a pointer. The script lists the members' names in this order. Raise `version` with every
// change.
struct debugger_layout {
    std::uintptr_t version = 2;

    lot_table* const* table = &the_lot;
    std::uintptr_t buckets = std::size(decltype(lot_table::at){});
    std::uintptr_t bucket_size = sizeof(bucket);
    std::uintptr_t bucket_queues = offsetof(bucket, queues);
    std::uintptr_t node_key = offsetof(wait_node, key);  // an address, and behind it a byte: the kind
    std::uintptr_t node_what =
        offsetof(wait_node, what);  // a byte; in the next one, `use` is above the lowest bit
    std::uintptr_t node_below = offsetof(wait_node, queue) + offsetof(wait_node::queue_state, below);
    std::uintptr_t node_thread = offsetof(wait_node, origin) + offsetof(wait_origin, thread);
    std::uintptr_t node_since = offsetof(wait_node, origin) + offsetof(wait_origin, since);
    std::uintptr_t first_lock_kind = static_cast<std::uintptr_t>(wait_kind::lock_bit_0);
    std::uintptr_t all_waiter = static_cast<std::uintptr_t>(wait_node::kind::all_waiter);

    const diagnosed_list* lists = diagnosed_lists;
    std::uintptr_t list_count = std::size(diagnosed_lists);
    std::uintptr_t list_size = sizeof(diagnosed_list);
    std::uintptr_t list_first =
        offsetof(diagnosed_list, waits);  // the list's first member leads to its first wait
    std::uintptr_t diagnosed_label = offsetof(diagnosed_wait, label_);  // a string and an address
    std::uintptr_t diagnosed_thread = offsetof(diagnosed_wait, origin_) + offsetof(wait_origin, thread);
    std::uintptr_t diagnosed_since = offsetof(diagnosed_wait, origin_) + offsetof(wait_origin, since);
    std::uintptr_t diagnosed_polled = offsetof(diagnosed_sleep, polled);
    std::uintptr_t diagnosed_polled_count = offsetof(diagnosed_sleep, polled_count);
    std::uintptr_t diagnosed_members = offsetof(diagnosed_sleep, members);
    std::uintptr_t polled_size = sizeof(platform::poll_entry);  // begins with the descriptor, an int
    std::uintptr_t members_chains =
        offsetof(member_table, chains_);  // a vector: pointers to its begin and end
    std::uintptr_t member_next = offsetof(source_member, next_);
    std::uintptr_t member_key = offsetof(source_member, node_) + offsetof(wait_node, key);

    const held_bit* held = held_bits;
    const std::uint32_t* held_in_use = &held_bits_in_use;
    std::uintptr_t held_size = sizeof(held_bit);
    std::uintptr_t held_bit_word = offsetof(held_bit, word);
    std::uintptr_t held_bit_thread = offsetof(held_bit, thread);
    std::uintptr_t held_bit_number = offsetof(held_bit, bit);

    name_entry* const* names = name_chains;
    std::uintptr_t name_chain_count = std::size(name_chains);
};

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

}  // namespace tocsin::core

constinit const tocsin::core::debugger_layout tocsin_debugger_layout;

#endif
