// Owners of nodes that stay in their queue when their turn comes (lot.hpp). The lot calls them under the bucket's lock.
// The arguments: pollable.cpp and ready_list.cpp for subscribers, multi_wait.cpp for all_waiters.
#pragma once

#include <cstdint>

namespace tocsin::core {

struct wait_node;
class release_list;

// What became of an offer to the waiters of a queue.
enum class reply : std::uint8_t {
    declined,   // the next one in the queue is asked
    accepted,   // taken, if the offer was exclusive; otherwise means nothing
    undecided,  // all_waiter::commit() decides
};

// Is told when what it waits for becomes ready. It is a member of a wait_set (ready_list.hpp), or a view for another
// library's loop (pollable.cpp).
class subscriber {
public:
    // `exclusive`: only one waiter can have what is offered, and `accepted` takes it away from the others. Otherwise it
    // is there for everybody. Appends to `freed` the nodes to be released because of the offer. Returns `declined` or
    // `accepted`.
    virtual reply on_wake(wait_node& node, bool exclusive, release_list& freed) noexcept = 0;

protected:
    ~subscriber() = default;
};

// Waits until it can have all of several sources at one instant (multi_wait.hpp). It is asked again whenever one of
// them has become ready for everybody to see (satisfy_all_waiters()).
class all_waiter {
public:
    // `offered`: the node of an exclusive offer, or null if the source is there for everybody. Returns `declined` or
    // `undecided`. After `undecided`, the caller must call commit() once, soon, under no lock. The all_waiter exists
    // until then.
    virtual reply on_wake(const wait_node* offered) noexcept = 0;
    // Decides an offer that was answered with `undecided`; returns whether it accepts. `offered` as in on_wake().
    virtual bool commit(const wait_node* offered) noexcept = 0;

protected:
    ~all_waiter() = default;
};

}  // namespace tocsin::core
