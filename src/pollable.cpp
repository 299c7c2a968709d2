// SPDX-License-Identifier: Apache-2.0
// A pollable of an event (a latch or a token of a barrier is one, too) or of a semaphore: a flag
// (platform/poller/readable_flag.hpp) that says whether the event is set. Here and below, "event" and set() also mean a
// semaphore and its release(): a semaphore is set while a permit is free, and to take it is to take one permit.
//
// State: a subscriber's node, which is always in the event's queue (core/lot/lot.hpp); and the alert
// (core/wait/alert.hpp), which is armed, under the bucket's lock, while the next set() is to raise the flag.
//
// Invariants
//   pollable-1  Whenever the bucket's lock is free and the event is set, the pollable is not armed.
//   pollable-2  Whenever the pollable is not armed, one of three things is true: the flag is up; a thread is about to
//       raise it; or a thread is in try_wait() and will arm the pollable or raise the flag. A try_wait() that takes the
//       event leaves the flag up. A try_wait() that finds nothing lowers the flag.
//       legal: the flag is up although the event is not set. Cost: a needless try_wait(), which lowers it.
//       illegal: the event is set and the flag is down, but no thread is about to raise it and none is in try_wait().
//   pollable-3  A pollable declines every offer. (Only its try_wait() takes the event.) If the pollable was armed, the
//       offer also makes a thread raise the flag. So the pollable never deprives a waiter of the event, and a set()
//       that finds the pollable unarmed only looks at it.
//   pollable-4  No thread raises the flag once it is closed (alert-1 in core/wait/alert.hpp). An offer is a call of
//       on_wake(), under the bucket's lock. The destructor removes the pollable's node from the queue, so no offer
//       comes after that.
//
// No lost wake-up: by pollable-1 and pollable-2 together, the flag of a set event is up, or soon will be. try_wait()
// lowers the flag, and then looks at the event under the lock.
// - If a set() came before that look, the look finds the event set, and try_wait() raises the flag again.
// - If a set() comes after that look, it finds the pollable armed, and makes a thread raise the flag.
// A late raise by another thread may leave the flag up although the event is not set. The next try_wait() then lowers
// the flag.
//
// Memory order: that of the lock, and that of the event.
//
// Checked by: tests/model/pollable_model_test.cpp (P12 of docs/proofs.md), tests/unit/pollable_test.cpp,
// tests/stress/wait_set_stress_test.cpp, examples/loops.
#include "core/lot/enrol.hpp"
#include "core/lot/lot.hpp"
#include "core/sync/happens_before.hpp"
#include "core/wait/alert.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/pollable.hpp>

#include <memory>
#include <stdexcept>
#include <system_error>

namespace tocsin {

class pollable::state final : core::subscriber {
public:
    explicit state(const source& event)
        : event_(event),
          node_({event.object(), static_cast<core::wait_kind>(event.lot().wait_kind)},
                static_cast<core::subscriber&>(*this)) {
        if (const int error = alert_.open(); error != 0)
            detail::throw_or_die(std::system_error(error, platform::error_category(), "tocsin::pollable"));
        {
            core::locked_queue queue(node_.key);
            core::enrol(queue, node_, event_.lot());
            alert_.arm(!event_.lot().looks_ready(event_.object()));
            if (alert_.is_armed()) return;
        }
        alert_.raise();
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        if (process_.is_of_this_process()) (void)core::withdraw(node_, event_.lot());
    }

    int descriptor() const noexcept { return alert_.descriptor(); }

    bool try_wait() noexcept {
        const detail::lot_source& how = event_.lot();
        for (;;) {
            if (how.try_take(event_.object())) {
                core::order::after(event_.object());
                return true;  // the flag stays up until there is nothing to take
            }
            alert_.lower();
            {
                core::locked_queue queue(node_.key);
                alert_.arm(!how.looks_ready(event_.object()));
                if (alert_.is_armed()) return false;
            }
            alert_.raise();
        }
    }

private:
    core::reply on_wake(core::wait_node&, bool, core::release_list& freed) noexcept override {
        alert_.offer(freed);
        return core::reply::declined;
    }

    const source event_;
    core::wait_node node_;
    core::alert alert_;
    const core::process_stamp process_;
};

pollable::pollable(const source& event) {
    if (event.what() != source::kind::lot)
        detail::throw_or_die(
            std::invalid_argument("tocsin::pollable: only an event, a semaphore, a latch or a token of a "
                                  "barrier has a pollable, and "
                                  "no object that processes share"));
    state_ = std::make_unique<state>(event);
}

pollable::~pollable() = default;

int pollable::descriptor() const noexcept { return state_->descriptor(); }

bool pollable::try_wait() noexcept { return state_->try_wait(); }

}  // namespace tocsin
