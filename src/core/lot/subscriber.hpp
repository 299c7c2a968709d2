// SPDX-License-Identifier: Apache-2.0
// Owners of nodes that stay in their queue when a wake reaches them (lot.hpp). The lot calls them under the bucket's
// lock. Why they are correct: pollable.cpp and ready_list.cpp for subscribers, multi_wait.cpp for all_waiters.
#pragma once

#include <cstdint>

namespace tocsin::core {

struct wait_node;
struct wait_origin;
class release_list;

// The answer to an offer.
enum class reply : std::uint8_t {
    declined,   // the next waiter in the queue is asked
    accepted,   // an exclusive offer is taken; for any other offer, `accepted` means nothing
    undecided,  // all_waiter::commit() decides
};

// A subscriber is told when what it waits for becomes ready. It is a member of a wait_set (ready_list.hpp), or a
// pollable for another library's loop (pollable.cpp).
class subscriber {
public:
    // If `exclusive`, only one waiter can have what is offered, and `accepted` takes it away from the others. If not,
    // what is offered is there for everybody. Appends to `freed` the nodes that are to be released because of the
    // offer. Returns `declined` or `accepted`.
    virtual reply on_wake(wait_node& node, bool exclusive, release_list& freed) noexcept = 0;
    // For diagnosis, and under the bucket's lock, too: whether a thread sleeps whom such a wake would release. If so,
    // stores in `since` which thread, and since when.
    virtual bool sleeps([[maybe_unused]] wait_origin& since) const noexcept { return false; }

protected:
    ~subscriber() = default;
};

// An all_waiter waits until it can have all of several sources at one instant (multi_wait.hpp). Whenever one of these
// sources has become visibly ready, satisfy_all_waiters() asks the all_waiter again.
class all_waiter {
public:
    // If the offer is exclusive, `offered` is this all_waiter's node in the queue of the offered source. If the source
    // is there for everybody, `offered` is null. Returns `declined` or `undecided`. After `undecided`, the caller must
    // soon call commit(), once and under no lock. The all_waiter exists until then.
    virtual reply on_wake(const wait_node* offered) noexcept = 0;
    // Decides an offer to which on_wake() replied `undecided`. Returns whether it accepts. `offered` is as in
    // on_wake().
    virtual bool commit(const wait_node* offered) noexcept = 0;

protected:
    ~all_waiter() = default;
};

}  // namespace tocsin::core
