// SPDX-License-Identifier: Apache-2.0
// Keys, and the nodes of the queues that the lot (lot.hpp) keeps for them.
#pragma once

#include "core/sync/probe.hpp"
#include "core/sync/wait_origin.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/event_use.hpp>
#include <tocsin/detail/intrusive_list.hpp>

#include <cstdint>

namespace tocsin::core {

class all_waiter;
class resumable;
class subscriber;
class waiter;

// What a waiter waits for at an address. Waits of different kinds on one address never meet. So when an address is
// reused for something of another kind, a late wake for its previous use does not reach the new waiters.
enum class wait_kind : std::uint8_t {
    event,
    address,
    semaphore,
    condition,
    lock_bit_0  // lock_bit_0 + n for bit n
};
inline constexpr unsigned wait_kinds = static_cast<unsigned>(wait_kind::lock_bit_0) + 64;

struct wait_key {
    // wait_key has constructors so that wait_node can keep other members in the unused bytes behind `what`. Copying a
    // key leaves those members alone.
    constexpr wait_key(const void* where, wait_kind kind) noexcept : address(where), what(kind) {}
    constexpr wait_key(const wait_key& from) noexcept : address(from.address), what(from.what) {}

    const void* address;
    wait_kind what;

    friend bool operator==(const wait_key&, const wait_key&) noexcept = default;
};

// The entry of one waiter or subscriber in one queue. A release_list (relay.hpp) consists of such nodes, too.
struct wait_node : detail::list_links<wait_node> {
    // What the node belongs to. That decides what a wake does when it reaches the node.
    enum class kind : std::uint8_t {
        waiter,      // leaves the queue; its waiter is claimed and released
        sharer,      // the same for a thread that shares a word with others (shared_word.cpp)
        delegate,    // the same for a thread that wakes sharers after its own release (shared_word.cpp)
        collector,   // the same once it has been given as often as it needs (collector_node)
        all_waiter,  // stays; its all_waiter is asked, and commits once it can have all its sources
        subscriber,  // stays; its subscriber is told
        resumable,   // never in a queue; releasing it resumes the resumable
    };

    static constexpr std::uint32_t max_index = 0xFF'FFFF;

    // A waiter may have several nodes. When the waiter is claimed, `number` says for which of its nodes. (Only the
    // lowest 24 bits of the number count.)
    wait_node(const wait_key& of, waiter& its_owner, bool can_cancel, std::uint32_t number = 0,
              detail::event_use in = {}) noexcept
        : key(of),
          what(kind::waiter),
          cancelable(can_cancel),
          use(in),
          index(number & max_index),
          owner(&its_owner) {}
    wait_node(const wait_key& of, all_waiter& its_owner, detail::event_use in = {}) noexcept
        : key(of), what(kind::all_waiter), cancelable(true), use(in), index(0), all(&its_owner) {}
    wait_node(const wait_key& of, subscriber& its_owner) noexcept
        : key(of),
          what(kind::subscriber),
          cancelable(true),
          use(detail::event_use::event),
          index(0),
          subscribed(&its_owner) {}
    explicit wait_node(resumable& next) noexcept
        : key{nullptr, wait_kind::event},
          what(kind::resumable),
          cancelable(false),
          use(detail::event_use::event),
          index(0),
          then(&next) {}

    // Whether a thread or a coroutine waits with this node.
    bool is_wait() const noexcept { return has_waiter() || what == kind::all_waiter; }
    // Whether `owner` is its waiter.
    bool has_waiter() const noexcept { return !stays() && what != kind::resumable; }
    // Called by the node's thread, before the node is queued and after wait_origin::here().
    void set_urgency_of_this_thread() noexcept { urgency = platform::known_thread_urgency() & 0xFFu; }
    // Whether the node stays in its queue when a wake reaches it.
    bool stays() const noexcept { return what == kind::all_waiter || what == kind::subscriber; }

    // The members behind the key, up to `urgency`, fit into the key's unused last bytes. That saves eight bytes in
    // every coroutine frame that holds a node.
    [[no_unique_address]] const wait_key key;
    detail::plain<kind> what;  // a waiter may become a sharer or a delegate
    // Whether the wait may also end without this queue (by a deadline, a stop, another source). If so, whoever takes
    // the node off the queue must also claim its waiter, and may find that the wait has already ended. If not, taking
    // the node off is enough. (single_wait::withdraw() takes the only node of a wait off, and so knows that the wait
    // has not ended.)
    const bool cancelable : 1;
    const detail::event_use use : 7;  // for diagnose.hpp, if the key is an event's
    // Whether the node is still in the queue. Kept up to date only for cancelable nodes (lot-2).
    detail::plain<bool> queued{false};
    const std::uint32_t index : 24;
    // How urgent the waiting thread was when it queued (platform/system/system.hpp). A node that blocks no thread has
    // the ordinary urgency. Written before the node is queued.
    std::uint32_t urgency : 8 = platform::ordinary_urgency;
    union {  // by `what`
        waiter* const owner;
        all_waiter* const all;
        subscriber* const subscribed;
        resumable* const then;
    };

    // The state of the whole queue. Only the state in the queue's first node is in use.
    struct queue_state {
        detail::plain<wait_node*> below[2]{};  // the first nodes of two other queues of the bucket (lot-7)
        detail::plain<wait_node*> last{nullptr};
        detail::plain<std::uint32_t> count{0};
        detail::plain<std::uint32_t> cancelables{0};  // and a bit: the nodes may differ in urgency (lot-9)
        static constexpr std::uint32_t differs_bit = std::uint32_t{1} << 31;
        detail::plain<std::uint32_t> subscribers{0};  // nodes that stay, including all_waiters'
        detail::plain<std::uint32_t> all_waiters{0};
    };
    queue_state queue;

    wait_origin origin;  // of a subscriber's node: nothing
};

// The node of a thread that waits until it has been given several of the same thing, such as permits of a semaphore.
struct collector_node : wait_node {
    collector_node(const wait_key& of, waiter& its_owner, bool can_cancel, std::uint32_t wanted) noexcept
        : wait_node(of, its_owner, can_cancel), missing(wanted), wanted_(wanted) {
        what = kind::collector;
    }

    // Called under the bucket's lock.
    bool has_collected() const noexcept { return missing != wanted_; }

    detail::plain<std::uint32_t>
        missing;  // how often it is still to be given something; under the bucket's lock

private:
    const std::uint32_t wanted_;
};

using node_list = detail::intrusive_list<wait_node>;

// Whether the node is a sharer's. Null: no.
inline bool is_sharer(const wait_node* node) noexcept {
    return node != nullptr && node->what == wait_node::kind::sharer;
}
// Whether the node is that of a delegate with sharers directly behind it. Null: no.
inline bool leads_sharers(const wait_node* node) noexcept {
    return node != nullptr && node->what == wait_node::kind::delegate && is_sharer(node_list::next(*node));
}

// For tracers: the node's waiter is released now, because a wake has reached the node.
inline void show_grant([[maybe_unused]] const wait_node& node) noexcept {
    TOCSIN_PROBE(grant, node.owner, node.key.address, node.key.what, node.origin.thread, node.origin.since);
}

}  // namespace tocsin::core
