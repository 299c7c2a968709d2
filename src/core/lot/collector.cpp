// How an offer to one waiter serves a thread that waits to be given something several times.
//
// The node of such a thread counts how often it is still to be given something (collector_node). The node keeps its
// place in the queue until it lacks nothing more. So nodes behind it are given nothing before that. The count changes
// only under the bucket's lock.
//
// Checked by: tests/model/semaphore_model_test.cpp (P17 of docs/proofs.md).
#include "core/lot/lot.hpp"

namespace tocsin::core {

// Returns false if the node's wait has ended otherwise, so that the last thing the node lacks is not for it.
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
