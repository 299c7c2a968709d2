// SPDX-License-Identifier: Apache-2.0
// A view of an event (a latch or a token of a barrier is one, too) or of a semaphore: a flag
// (platform/poller/readable_flag.hpp) that says whether the event is set. Here and below, "event" and set() also mean a
// semaphore and its release(): a semaphore is set while a permit is free, and to take it is to take one permit.
//
// State: a subscriber's node, which is always in the event's queue (core/lot/lot.hpp); and `armed_`, under the bucket's
// lock, which says whether the next set() is to raise the flag.
//
// Invariants
//   pollable-1  Whenever the bucket's lock is free and the event is set, the view is not armed.
//   pollable-2  Whenever the view is not armed, one of three things is true: the flag is up; a thread is about to raise
//       it; or a thread is in try_wait() and will arm the view or raise the flag. A try_wait() that takes the event
//       leaves the flag up. A try_wait() that finds nothing lowers the flag.
//       legal: the flag is up although the event is not set. Cost: a needless try_wait(), which lowers it.
//       illegal: the event is set and the flag is down, but no thread is about to raise it and none is in try_wait().
//   pollable-3  A view declines every offer. (Only its try_wait() takes the event.) If the view was armed, the offer
//       also makes a thread raise the flag. So the view never deprives a waiter of the event, and a set() that finds
//       the view unarmed only looks at the view.
//   pollable-4  No thread raises the flag once it is closed, because the number of its descriptor may then belong to
//       another object. An offer is a call of on_wake(), under the lock. If the view is armed, one more raise of the
//       flag is owed: on_wake() acquires the view's rundown (core/sync/rundown.hpp) once for it. If no raise was owed
//       before, on_wake() appends the node `raising_` to the release_list of the offering thread. Whoever releases this
//       node raises the flag until no raise is owed. So a view may be armed, and offered the event again, while a raise
//       is under way. A set(wake_list&) releases the node itself, and does not leave it to the wake() of the list. So a
//       raise is owed only until the release_list, or a relay of it (core/lot/relay.cpp), reaches the node. The
//       destructor removes the view's node from the queue, waits until no raise is owed, and then closes the flag.
//
// No lost wake-up: by pollable-1 and pollable-2 together, the flag of a set event is up, or soon will be. try_wait()
// lowers the flag, and then looks at the event under the lock.
// - If a set() came before that look, the look finds the event set, and try_wait() raises the flag again.
// - If a set() comes after that look, it finds the view armed, and makes a thread raise the flag.
// A late raise by another thread may leave the flag up although the event is not set. The next try_wait() then lowers
// the flag.
//
// Memory order: that of the lock, and that of the event.
//
// Checked by: tests/model/pollable_model_test.cpp (P12 of docs/proofs.md), tests/unit/pollable_test.cpp,
// tests/stress/wait_set_stress_test.cpp, examples/loops.
#include "core/lot/enrol.hpp"
#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/rundown.hpp"
#include "platform/poller/readable_flag.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/pollable.hpp>

#include <memory>
#include <stdexcept>
#include <system_error>

namespace tocsin {

class pollable::state final : core::subscriber, core::resumable {
public:
    explicit state(const source& event)
        : resumable(raise_owed),
          event_(event),
          node_({event.object(), static_cast<core::wait_kind>(event.lot().wait_kind)},
                static_cast<core::subscriber&>(*this)),
          raising_(static_cast<core::resumable&>(*this)) {
        if (const int error = flag_.open(); error != 0)
            detail::throw_or_die(std::system_error(error, platform::error_category(), "tocsin::pollable"));
        {
            core::locked_queue queue(node_.key);
            core::enrol(queue, node_, event_.lot());
            armed_ = !event_.lot().looks_ready(event_.object());
            if (armed_) return;
        }
        flag_.raise();
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        if (!process_.is_of_this_process()) return;
        (void)core::withdraw(node_, event_.lot());
        raises_.wait_until_unused();
    }

    int descriptor() const noexcept { return flag_.descriptor(); }

    bool try_wait() noexcept {
        const detail::lot_source& how = event_.lot();
        for (;;) {
            if (how.try_take(event_.object())) {
                core::order::after(event_.object());
                return true;  // the flag stays up until there is nothing to take
            }
            flag_.lower();
            {
                core::locked_queue queue(node_.key);
                armed_ = !how.looks_ready(event_.object());
                if (armed_) return false;
            }
            flag_.raise();
        }
    }

private:
    core::reply on_wake(core::wait_node&, bool, core::release_list& freed) noexcept override {
        if (!armed_) return core::reply::declined;
        armed_ = false;
        if (raises_.acquire()) freed.append(raising_);
        return core::reply::declined;
    }
    static void raise_owed(resumable& view) noexcept {
        auto& self = static_cast<state&>(view);
        do {
            self.flag_.raise();
        } while (!self.raises_.release());
    }

    const source event_;
    core::wait_node node_;
    core::wait_node raising_;  // never queued; its release calls raise_owed()
    detail::plain<bool> armed_{false};
    core::rundown raises_;  // one use for each raise that is owed
    platform::readable_flag flag_;
    const core::process_stamp process_;
};

pollable::pollable(const source& event) {
    if (event.what() != source::kind::lot)
        detail::throw_or_die(std::invalid_argument(
            "tocsin::pollable: only an event, a semaphore, a latch or a token of a barrier has a view"));
    state_ = std::make_unique<state>(event);
}

pollable::~pollable() = default;

int pollable::descriptor() const noexcept { return state_->descriptor(); }

bool pollable::try_wait() noexcept { return state_->try_wait(); }

}  // namespace tocsin
