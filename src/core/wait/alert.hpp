// SPDX-License-Identifier: Apache-2.0
// Makes a flag (platform/poller/readable_flag.hpp) go up when something is ready, for a loop that polls the flag's
// descriptor. Views of events (src/pollable.cpp) and sets (ready_list.cpp) have one each.
//
// State: the flag, and `armed_`, which says whether the next offer is to raise the flag. A lock of the owner guards
// `armed_`.
//
// Invariants
//   alert-1  No thread raises the flag once it is closed, because the number of its descriptor may then belong to
//       another object. If the alert is armed, an offer owes a raise: under the lock it acquires the rundown
//       (core/sync/rundown.hpp) once. If no raise was owed before, it appends the node `raising_` to the release_list
//       of the offering thread. Whoever releases this node raises the flag until no raise is owed. So an alert may be
//       armed, and offered something again, while a raise is under way. A set(wake_list&) releases the node itself, and
//       does not leave it to the wake() of the list. So a raise is owed only until the release_list, or a relay of it
//       (core/lot/relay.cpp), reaches the node. The owner makes sure that no offer comes any more. Then the destructor
//       waits until no raise is owed, and closes the flag.
//
// Checked by: tests/model/pollable_model_test.cpp and wait_set_view_model_test.cpp (P12 of docs/proofs.md).
#pragma once

#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/sync/rundown.hpp"
#include "platform/poller/readable_flag.hpp"

#include <tocsin/detail/atomic.hpp>

namespace tocsin::core {

class alert final : resumable {
public:
    alert() noexcept : resumable(raise_owed), raising_(static_cast<resumable&>(*this)) {}
    alert(const alert&) = delete;
    alert& operator=(const alert&) = delete;
    // Does not wait in the child of a fork, where the threads that owe a raise don't exist.
    ~alert() {
        if (process_.is_of_this_process()) raises_.wait_until_unused();
    }

    // As in readable_flag. open() must be called first.
    int open() noexcept { return flag_.open(); }
    int descriptor() const noexcept { return flag_.descriptor(); }
    void raise() noexcept { flag_.raise(); }
    void lower() noexcept { flag_.lower(); }

    // The callers of these hold the owner's lock.
    bool is_armed() const noexcept { return armed_; }
    void arm(bool is_armed) noexcept { armed_ = is_armed; }
    // If the alert is armed, disarms it, and makes whoever releases `freed` raise the flag.
    void offer(release_list& freed) noexcept {
        if (!armed_) return;
        armed_ = false;
        if (raises_.acquire()) freed.append(raising_);
    }

private:
    static void raise_owed(resumable& which) noexcept {
        auto& self = static_cast<alert&>(which);
        do {
            self.flag_.raise();
        } while (!self.raises_.release());
    }

    wait_node raising_;  // never queued; its release calls raise_owed()
    detail::plain<bool> armed_{false};
    rundown raises_;  // one use for each raise that is owed
    platform::readable_flag flag_;
    const process_stamp process_;
};

}  // namespace tocsin::core
