// An event together with a flag (platform/poller/readable_flag.hpp) that says so when the event is set.
//
// State: a subscriber's node, which stays in the event's queue (core/lot/lot.hpp). `armed`, under the bucket's lock:
// whether the next set() must raise the flag.
//
// Invariants
//   pollable-1  Whenever the bucket's lock is free: if the event is set, the pollable is not armed.
//   pollable-2  Whenever the pollable is not armed, the flag is raised, or a thread is about to raise it, or a thread
//       is in try_wait() and will arm the pollable or raise the flag. The flag stays raised while try_wait() takes; the
//       call that finds nothing lowers it.
//   pollable-3  A pollable never takes an event on its own: it declines every offer, and raises the flag if it was
//       armed. So it keeps nobody from waiting, and a set() that finds it unarmed does no more than look.
//   pollable-4  Each raise that is owed holds the rundown, acquired under the lock. The thread that owes the first is
//       given the node to do it by, and raises until none is owed. So a pollable may be armed, and offered the event
//       again, during a raise. The destructor takes the node out and waits until no raise is owed; then it closes the
//       flag. So nobody raises a stranger's descriptor.
//
// No lost wake-up: by pollable-1 and pollable-2, the flag of a set event is raised, now or in a moment. try_wait()
// lowers the flag before it looks under the lock. The look sees a set() that came before it, and the flag is raised
// again; a set() after it finds the pollable armed. A late raise of another thread may leave the flag raised for no
// reason: the next try_wait() lowers it.
//
// Memory order: the lock's, and the event's.
//
// Checked by: tests/model/pollable_model_test.cpp (P12), tests/unit/pollable_test.cpp,
// tests/stress/wait_set_stress_test.cpp, examples/loops.
#include "core/lot/lot.hpp"
#include "core/sync/rundown.hpp"
#include "platform/poller/readable_flag.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>
#include <tocsin/pollable.hpp>

#include <memory>
#include <stdexcept>
#include <system_error>

namespace tocsin {

class pollable::state final : core::subscriber {
public:
    explicit state(const source& event)
        : subscriber(false),
          event_(event),
          node_({event.object(), static_cast<core::wait_kind>(event.lot().wait_kind)}, *this),
          raising_(node_.where, *this) {
        if (const int error = flag_.open(); error != 0)
            detail::throw_or_die(std::system_error(error, platform::error_category(), "tocsin::pollable"));
        {
            core::locked_queue queue(node_.where);
            event_.lot().park(event_.object(), true);
            queue.append(node_);
            armed_ = !event_.lot().looks_ready(event_.object());
            if (armed_) return;
        }
        flag_.raise();
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        if (core::forks() != forks_) return;
        {
            core::locked_queue queue(node_.where);
            queue.remove(node_);
            if (queue.empty()) event_.lot().unpark(event_.object());
        }
        raises_.wait_until_unused();
    }

    int descriptor() const noexcept { return flag_.descriptor(); }

    bool try_wait() noexcept {
        const detail::lot_source& how = event_.lot();
        for (;;) {
            if (how.try_take(event_.object()))
                return true;  // the flag stays raised until there is nothing to take
            flag_.lower();
            {
                core::locked_queue queue(node_.where);
                armed_ = !how.looks_ready(event_.object());
                if (armed_) return false;
            }
            flag_.raise();
        }
    }

private:
    reply on_wake(core::wait_node&, bool, core::release_list& freed) noexcept override {
        if (!armed_) return reply::declined;
        armed_ = false;
        if (raises_.acquire()) freed.append(raising_);
        return reply::declined;
    }
    bool commit(const core::wait_node*) noexcept override { return false; }  // never undecided
    void ring() noexcept override {
        do {
            flag_.raise();
        } while (!raises_.release());
    }

    const source event_;
    core::wait_node node_;
    core::wait_node raising_;  // never queued: whoever releases it raises the flag
    detail::plain<bool> armed_{false};
    core::rundown raises_;  // those that are owed
    platform::readable_flag flag_;
    const std::uint32_t forks_ = core::forks();
};

pollable::pollable(const source& event) {
    if (event.what() != source::kind::lot)
        detail::throw_or_die(
            std::invalid_argument("tocsin::pollable: only an event can be looked at this way"));
    state_ = std::make_unique<state>(event);
}

pollable::~pollable() = default;

int pollable::descriptor() const noexcept { return state_->descriptor(); }

bool pollable::try_wait() noexcept { return state_->try_wait(); }

}  // namespace tocsin
