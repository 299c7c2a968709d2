// SPDX-License-Identifier: Apache-2.0
// How a thread waits for one thing in the lot: it looks, joins the queue, sleeps, and leaves the queue if nobody has
// taken it off. Why no wake-up is lost, and what a source owes: core/lot/enrol.hpp.
//
// The waits that do not come through here say why: a wait for a lock barges, and queues again when it was woken for
// nothing (bit_lock.cpp); a wait for several things has a node in each queue (multi_wait.cpp); and a single_wait
// blocks no thread (single_wait.cpp).
#pragma once

#include "core/lot/enrol.hpp"
#include "core/wait/spinner.hpp"

namespace tocsin::core {

// What park() asks of a wait. A wait derives from this class and hides what differs. It adds `learned()`, the key for
// which the spinner learns; `node_for(self)`,
// which makes the node; and `take_or_enrol(queue, node, origin)`, which is called under the lock of the queue's bucket:
// it takes what the wait is for and returns true, or marks the source, queues the node and returns false.
struct own_wait {
    // A first look, without the lock. Returns true if it has taken what the wait is for.
    static bool look(spinner&) noexcept { return false; }
    // Called once the node is queued, under no lock.
    static void queued() noexcept {}
    // Called under the lock when the queue has become empty: clears the mark.
    static void clear() noexcept {}
    // Called under no lock when a wait that was queued has ended, and has left the queue.
    static void ended(const spinner&, const wait_node&, const waiter&, claim) noexcept {}
};

// Waits. Returns `open` if the wait took what it is for without sleeping; otherwise, why it ended.
template <class Wait>
claim park(Wait& wait, const detail::wait_options& options) noexcept {
    if (const claim over = ended_before_wait(options); over != claim::open) return over;
    spinner looking(wait.learned(), options);
    if (wait.look(looking)) return claim::open;

    waiter self;
    auto node = wait.node_for(self);
    const auto origin = wait_origin::here(options.order);
    {
        locked_queue queue(node.key);
        if (wait.take_or_enrol(queue, node, origin)) {
            looking.end_early();
            return claim::open;
        }
    }
    wait.queued();
    const claim how = looking.spin_then_sleep(self);
    if (how != claim::signaled) (void)withdraw(node, [&]() noexcept { wait.clear(); });
    wait.ended(looking, node, self, how);
    return how;
}

}  // namespace tocsin::core
