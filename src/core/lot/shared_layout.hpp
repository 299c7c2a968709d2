// SPDX-License-Identifier: Apache-2.0
// Several copies of the library in one process share parts of the core: the table, the nodes and waiters in it, and
// some data of each thread. A thread has this data only once, whichever copy it calls. This file computes a number from
// the layout of these parts (platform/system/layout_hash.hpp). A copy whose number differs from the first copy's uses a
// table of its own, and prints a message that says so.
#pragma once

#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/lot/subscriber.hpp"
#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"
#include "core/sync/signal_deferral.hpp"
#include "core/sync/user_call_scope.hpp"
#include "platform/system/layout_hash.hpp"

#include <cstdint>

namespace tocsin::core {

// Classes with private members declare this class a friend.
struct shared_layout {
    static constexpr std::uint64_t number() {
        // Raise the "4" when copies would no longer understand each other although all sizes and offsets are the same.
        // Examples: other states of a waiter, another order of writes, or virtual functions with another order or
        // meaning.
        platform::layout_hash all("4");
        add_table(all);
        add_node(all);
        add_waiter(all);
        add_thread(all);
        return all.value();
    }

private:
    // The layout of a node's list links, which are its first base.
    template <class Node>
    static constexpr platform::member_layout of_links() noexcept {
        return {0, sizeof(detail::list_links<Node>), alignof(detail::list_links<Node>)};
    }

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // our compilers allow offsetof with base classes
#endif
    static constexpr void add_table(platform::layout_hash& all) {
        all.add<bucket>({TOCSIN_MEMBER(bucket, lock), TOCSIN_MEMBER(bucket, queues),
                         TOCSIN_MEMBER(bucket, filter), TOCSIN_MEMBER(bucket, cursors),
                         TOCSIN_MEMBER(bucket, shared)});
        all.add(sizeof(shared_word));
        all.add<lot_table>({TOCSIN_MEMBER(lot_table, at), TOCSIN_MEMBER(lot_table, multiplier),
                            TOCSIN_MEMBER(lot_table, meetings)});
        all.add<queue_cursor>({TOCSIN_MEMBER(queue_cursor, key_), TOCSIN_MEMBER(queue_cursor, listed_),
                               TOCSIN_MEMBER(queue_cursor, at_end_), TOCSIN_MEMBER(queue_cursor, left_),
                               TOCSIN_MEMBER(queue_cursor, listed_by_), TOCSIN_MEMBER(queue_cursor, passed_),
                               TOCSIN_MEMBER(queue_cursor, following_)});
        all.add(wait_kinds);
    }

    static constexpr void add_node(platform::layout_hash& all) {
        using queue = wait_node::queue_state;
        // The key counts only up to its last member: other members of wait_node use the bytes behind that.
        constexpr std::size_t key_size = offsetof(wait_key, what) + sizeof(wait_key::what);
        all.add<wait_node>({of_links<wait_node>(),
                            {offsetof(wait_node, key), key_size, alignof(wait_key)},
                            TOCSIN_MEMBER(wait_node, owner),
                            TOCSIN_MEMBER(wait_node, what),
                            {offsetof(wait_node, what) + 1, 1, 1},  // the bits `cancelable` and `use`
                            // `index` and `urgency`
                            {offsetof(wait_node, owner) - sizeof(std::uint32_t), sizeof(std::uint32_t), 1},
                            TOCSIN_MEMBER(wait_node, queued),
                            TOCSIN_MEMBER(wait_node, queue),
                            TOCSIN_MEMBER(wait_node, origin)});
        all.add<wait_origin>({TOCSIN_MEMBER(wait_origin, thread), TOCSIN_MEMBER(wait_origin, since)});
        all.add<queue>({TOCSIN_MEMBER(queue, below), TOCSIN_MEMBER(queue, last), TOCSIN_MEMBER(queue, count),
                        TOCSIN_MEMBER(queue, cancelables), TOCSIN_MEMBER(queue, subscribers),
                        TOCSIN_MEMBER(queue, all_waiters)});
        all.add<wait_key>({TOCSIN_MEMBER(wait_key, address), TOCSIN_MEMBER(wait_key, what)});
        all.add(sizeof(subscriber)).add(sizeof(all_waiter)).add(sizeof(release_list));
    }

    static constexpr void add_waiter(platform::layout_hash& all) {
        all.add<waiter>({TOCSIN_MEMBER(waiter, then_), TOCSIN_MEMBER(waiter, word_),
                         TOCSIN_MEMBER(waiter, claim_), TOCSIN_MEMBER(waiter, others_or_word_)});
        all.add<resumable>(
            {of_links<resumable>(), TOCSIN_MEMBER(resumable, released_), TOCSIN_MEMBER(resumable, run_)});
    }

    static constexpr void add_thread(platform::layout_hash& all) {
        all.add<defer_resumes>(
            {TOCSIN_MEMBER(defer_resumes, is_outermost_), TOCSIN_MEMBER(defer_resumes, is_level_),
             TOCSIN_MEMBER(defer_resumes, has_ended_), TOCSIN_MEMBER(defer_resumes, to_resume_),
             TOCSIN_MEMBER(defer_resumes, to_hand_over_), TOCSIN_MEMBER(defer_resumes, outer_level_),
             TOCSIN_MEMBER(defer_resumes, innermost_), TOCSIN_MEMBER(defer_resumes, levels_)});
        all.add<user_call_scope>(
            {TOCSIN_MEMBER(user_call_scope, what_), TOCSIN_MEMBER(user_call_scope, left_),
             TOCSIN_MEMBER(user_call_scope, whose_), TOCSIN_MEMBER(user_call_scope, outer_)});
#if !defined(TOCSIN_MODEL) && !defined(_WIN32) && !defined(__wasm__)
        using calls = deferred_calls;
        all.add<calls>({TOCSIN_MEMBER(calls, added_), TOCSIN_MEMBER(calls, finished_),
                        TOCSIN_MEMBER(calls, made_), TOCSIN_MEMBER(calls, slots)});
        using slot = calls::slot;
        all.add<slot>({TOCSIN_MEMBER(slot, run), TOCSIN_MEMBER(slot, what), TOCSIN_MEMBER(slot, times)});
#endif
    }
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
};

}  // namespace tocsin::core
