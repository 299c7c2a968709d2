// SPDX-License-Identifier: Apache-2.0
// How a thread is given several of the same thing, such as three permits of a semaphore.
//
// Each offer to one waiter gives the thread one of them. The thread's node, a collector_node, counts how many the
// thread still lacks. The node keeps its place in the queue until the thread has been given the last one, or its wait
// has ended otherwise. Until then, nodes behind it are given nothing. The count changes only under the bucket's lock.
//
// Checked by: tests/model/semaphore_model_test.cpp (P17 of docs/proofs.md).
#include "core/lot/lot.hpp"

namespace tocsin::core {

// Returns false, and gives nothing, if the node lacks only one thing and its wait has ended otherwise.
bool wait_queue::give_to_waiter(wait_node& node, release_list& freed) noexcept {
    if (node.what == wait_node::kind::collector) {
        auto& missing = static_cast<collector_node&>(node).missing;
        if (missing != 1) {
            --missing;
            return true;
        }
    }
    if (!take_off(node)) return false;
    freed.append(node);
    return true;
}

}  // namespace tocsin::core
