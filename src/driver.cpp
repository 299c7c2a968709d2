// SPDX-License-Identifier: Apache-2.0
// Drivers: a driver is a service (core/async/service.hpp) for which a loop of the user does the work of the background
// threads.
//
// State: a driver has two queues of timers, one for the steady and one for the system clock
// (core/sync/timer_queue.hpp), and the table of what the loop has to watch (core/async/watch_table.hpp). It also has
// the flag `armed_` (driver-3), and a count of the timers and requests that are set and not yet cancelled. One lock
// guards all of these.
//
// Invariants
//   driver-1  A timer that is set is in its queue, and a request that is set is in the table, until it is due or
//       cancelled. A due timer or request leaves its queue or the table and is then claimed, both in one critical
//       section of run_due() or notify(). So after cancel() there are two cases: the timer or request had been claimed
//       before and runs, or nobody will ever claim it.
//   driver-2  Timers and requests run under no lock. All timers and requests that one call has claimed run before any
//       coroutine resumes (core/lot/resume_queue.hpp). After its unlock, the call does not touch the driver, nor a
//       timer or request whose run() has been called. So what runs may set and cancel timers and requests, destroy its
//       own wait and others that have run, and call the driver again.
//   driver-3  `armed_` says that the loop may sleep without asking again. update() and next_deadline() switch it on.
//       run_due() and notify() switch it off, because the loop must ask again before it sleeps (the contract in
//       driver.hpp). A thread that undertakes to call `changed` (the function that the user gave to the driver)
//       switches it off, too. Consider a change of what to watch, or a timer that is due before the deadline that
//       next_deadline() returned last for its clock, that the loop has not been told about. Whenever the lock is free,
//       one of two things is true. Either the loop must still ask before it sleeps, because it has not asked yet, or
//       has called run_due() or notify() since. Or, since the loop last asked about such things, a thread has owed a
//       call of `changed`, and has made it or will make it. (The loop asks about changes by update(), and about
//       deadlines by next_deadline(). A driver without `changed` calls nobody: driver.hpp says for which loops it is
//       meant.) (After a cancel(), a timer may be set that is due later than the cancelled one, which the loop was told
//       about. Nobody calls `changed` for it: the loop's sleep ends at the deadline of the cancelled one, and the loop
//       then asks again.) legal: a call of `changed` although the loop has been told. Cost: the loop looks once more.
//       illegal: an earlier deadline, an armed driver, and nobody who calls `changed`.
//   driver-4  A thread that owes a call of `changed` has acquired the rundown `calls_` under the lock, and releases it
//       after the call. The destructor waits until no thread owes a call.
//   driver-5  The driver is destroyed only when no timer or request is set. A wait cancels all its parts before it
//       returns or is destroyed (pending-4), whether they have run or not. So no wait uses a driver that is gone.
//       Checked builds look at the count. If exit() destroys a static driver that waits use, its state is never freed.
//
// No lost wake-up. A thread sets a timer while the loop computes next_deadline(). Both take the lock.
// - If the thread takes the lock first, next_deadline() finds the timer.
// - If it takes the lock second, and its timer is due before what next_deadline() returned, there are three cases. In
//   the first, the thread finds the driver armed, and so owes a call. In the second, another thread has disarmed the
//   driver since next_deadline(), and owes a call or has made one. In the third, the loop has disarmed the driver by
//   run_due() or notify(), and must ask again before it sleeps. In the first two cases the call comes after
//   next_deadline(). So the call ends the sleep for which the loop uses the result. (If the call comes before this
//   sleep, the contract in driver.hpp makes the sleep end at once.) The same holds for update() and a change of what to
//   watch. It also holds if the loop calls update() and next_deadline(), in either order, and a change comes between
//   them. The first of these calls has armed the driver, so a call of `changed` is owed, and that call ends the next
//   sleep. It makes no difference that the second call arms the driver again.
//
// Descriptors. When an entry of the table loses its last use, its descriptor may be closed, and the number may soon
// name something else. So the next update() tells the loop to end its registration or, if somebody waits for the number
// again, to renew it (watch_table-2). Until then the loop may find something for the old registration, or may find that
// the descriptor is closed. It reports that with the identity of the watch, which has ended, and the report ends no
// later wait (watch_table-4). The background thread is different: its poll of a descriptor ends before cancel()
// returns (poll_thread-5). A driver can't end the loop's sleep like this: the thread that calls cancel() may be the
// loop's own, or the loop may wait for that thread.
//
// A loop that only polls a descriptor: descriptor() makes an own_loop, which watches with a poll_set. `changed` then
// also raises the own_loop's flag, and run_ready() is the round of a loop as described in driver.hpp. It lowers the
// flag first, and then makes the calls of a round, the calls that arm the driver last. So if a thread owes a call after
// these, the flag goes up after it was lowered (driver-3). The flag is also up while something is left to do: at first,
// after an error, and while there are descriptors that the poll_set has refused.
//
// Locks: no thread takes another lock while it holds the lock of this file, nor takes this lock while it holds a lock
// of the lot.
//
// Fork: the child has none of the parent's waits, and a thread of the parent may have held the lock. So in the child
// the destructor takes no lock and waits for nobody. If the lock was free at the fork, it frees the memory; if not, it
// frees nothing, because a container may be half changed. The child has no default driver (core/async/service.cpp).
//
// Several copies of the library in a process: each has a default driver of its own.
//
// Memory order: the lock orders everything but [driver-loop]: the loop's thread stores the pointer to the own_loop with
// release, and a thread that wakes the loop acquires. The rundown orders the last call of `changed` before the
// destruction.
//
// Checked by: tests/model/driver_model_test.cpp (P23 of docs/proofs.md), tests/unit/driver_test.cpp,
// tests/unit/driver_loops_test.cpp, examples/loops/driven_by_epoll.cpp.
#include "core/async/poll_thread.hpp"
#include "core/async/service.hpp"
#include "core/async/timer_thread.hpp"
#include "core/async/watch_table.hpp"
#include "core/lot/lot.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/rundown.hpp"
#include "platform/poller/poller.hpp"
#include "platform/poller/readable_flag.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/driver.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace tocsin {

// What the driver watches for itself, for a loop that only polls a descriptor. Used by the loop's thread, but for
// wake().
class driver::own_loop {
public:
    own_loop() {
        int error = flag_.open();
        if (error == 0) watched_ = platform::poller::open_poll_set(error);
        if (error == 0) view_ = watched_->open_view(flag_.descriptor(), error);
        if (error != 0)
            detail::throw_or_die(
                std::system_error(error, platform::error_category(), "tocsin::driver::descriptor"));
        if (view_ == nullptr)
            detail::throw_or_die(std::system_error(std::make_error_code(std::errc::operation_not_supported),
                                                   "tocsin::driver::descriptor"));
        flag_.raise();
    }

    int descriptor() const noexcept { return view_->descriptor(); }
    void wake() noexcept { flag_.raise(); }
    std::size_t run_round(driver& whose);

private:
    struct refused {
        watch_id id;
        readiness found;
    };

    void note(const watch& each) noexcept;

    platform::readable_flag flag_;
    std::unique_ptr<platform::poll_set> watched_;
    std::unique_ptr<platform::poll_view> view_;
    // What the poll_set has refused: the next round reports it. Has room for all changes of an update.
    std::vector<refused> refused_;
};

class driver::state final : public core::service {
public:
    state(void (*changed)(void*) noexcept, void* argument) noexcept
        : changed_(changed), argument_(argument) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        if (is_ours()) {
            core::unset_default_service(*this);
            {
                const std::lock_guard guard(lock_);
                check_unused();
            }
            calls_.wait_until_unused();
        }
        delete own_loop_.load(std::memory_order_relaxed);  // no order: no other thread uses it any more
    }

    // Whether a thread of the parent held the lock at the fork. It may have been changing the containers. These may now
    // be half changed, so they must never be freed.
    bool is_half_changed() const noexcept { return !is_ours() && !lock_.is_free_now(); }

    bool is_ours() const noexcept { return process_.is_of_this_process(); }
    // Returns true if exit() destroys a static driver that waits still use. Nobody can end these waits before, so the
    // state must be kept for them. From then on, the driver calls no code of the user.
    bool is_kept_at_exit() noexcept {
        {
            const std::lock_guard guard(lock_);
            if (uses_ == 0 || !platform::is_exiting()) return false;
            is_silent_ = true;
        }
        core::unset_default_service(*this);
        calls_.wait_until_unused();
        return true;
    }

    void set(core::timer& one, const deadline& when) noexcept override {
        {
            const std::lock_guard guard(lock_);
            ++uses_;
            if (!timers_on(core::timer_queue::clock_of(when)).insert(one, when) || !owe_call()) return;
        }
        call_changed();
    }
    void cancel(core::timer& one) noexcept override {
        const std::lock_guard guard(lock_);
        --uses_;
        timers_on(core::served_timers::clock_of(one)).remove(one);
    }
    void set(core::poll_request& one) override {
        {
            const std::lock_guard guard(lock_);
            watches_.reserve(one.descriptors());
            ++uses_;
            if (!watches_.add(one) || !owe_call()) return;
        }
        call_changed();
    }
    void cancel(core::poll_request& one) noexcept override {
        {
            const std::lock_guard guard(lock_);
            --uses_;
            if (!watches_.remove(one) || !owe_call()) return;
        }
        call_changed();
    }

    // For the loop's thread.
    own_loop* own_loop_if_any() const noexcept {
        return own_loop_.load(std::memory_order_acquire);  // [driver-loop]
    }
    own_loop& its_own_loop() {
        if (own_loop* const made = own_loop_if_any()) return *made;
        auto made = std::make_unique<own_loop>();
        own_loop_.store(made.get(), std::memory_order_release);  // [driver-loop]
        return *made.release();
    }
    std::pair<deadline, deadline> next_on_both_clocks() noexcept {
        const std::lock_guard guard(lock_);
        armed_ = true;  // driver-3
        return {steady_.next(), system_.next()};
    }

    std::size_t begin_update() noexcept {
        const std::lock_guard guard(lock_);
        armed_ = true;  // driver-3
        return watches_.changes();
    }
    bool take_change(watch& next) noexcept {
        core::watch_table::change told;
        {
            const std::lock_guard guard(lock_);
            if (!watches_.take_change(told)) return false;
        }
        next = {watch_id(told.id), told.descriptor, told.asked, told.renewed};
        return true;
    }
    deadline next_deadline() noexcept {
        const std::lock_guard guard(lock_);
        armed_ = true;  // driver-3
        const deadline steady = steady_.next();
        const deadline system = system_.next();
        return steady.remaining() <= system.remaining() ? steady : system;
    }

    std::size_t run_due(std::int64_t now) noexcept {
        core::due_calls due;
        {
            const std::lock_guard guard(lock_);
            armed_ = false;  // driver-3
            steady_.claim_due(due, now);
            system_.claim_due(due);
        }
        return due.run();  // driver-2
    }
    std::size_t notify(watch_id which, readiness found) noexcept {
        core::due_calls due;
        {
            const std::lock_guard guard(lock_);
            armed_ = false;  // driver-3
            watches_.claim_found(static_cast<std::uint64_t>(which), found, due);
        }
        return due.run();  // driver-2
    }

private:
    core::served_timers& timers_on(core::timer_queue::clock which) noexcept {
        return which == core::timer_queue::clock::system ? system_ : steady_;
    }

    // Called under the lock. Returns whether the caller has to call call_changed() after the unlock.
    bool owe_call() noexcept {
        if (!armed_ || is_silent_ || (changed_ == nullptr && own_loop_if_any() == nullptr)) return false;
        armed_ = false;
        (void)calls_.acquire();  // driver-4
        return true;
    }
    void call_changed() noexcept {
        if (own_loop* const ours = own_loop_if_any()) ours->wake();
        if (changed_ != nullptr) changed_(argument_);
        (void)calls_.release();
    }

    void check_unused() const noexcept {
#if TOCSIN_CHECKED
        if (uses_ == 0) return;
        char message[160];
        std::snprintf(
            message, sizeof message,
            "tocsin: driver destroyed while asynchronous waits use it: %zu deadlines, timers or lists of "
            "descriptors\n",
            static_cast<std::size_t>(uses_));
        platform::die(message);
#endif
    }

    void (*const changed_)(void*) noexcept;
    void* const argument_;
    const core::process_stamp process_;

    core::futex_lock lock_;
    detail::plain<bool> armed_{false};
    detail::plain<bool> is_silent_{false};  // during exit: `changed` may be gone
    detail::plain<std::size_t> uses_{0};    // timers and requests that are set and not yet cancelled
    core::served_timers steady_{core::timer_queue::clock::steady};
    core::served_timers system_{core::timer_queue::clock::system};
    core::watch_table watches_;
    core::rundown calls_;  // of `changed` that are owed
    detail::atomic<own_loop*> own_loop_{nullptr};
};

void driver::own_loop::note(const watch& each) noexcept {
    const auto tag = static_cast<std::uint64_t>(each.id);
    if (each.asked == readiness::none || each.renewed) (void)watched_->remove(each.descriptor);
    if (each.asked == readiness::none) return;
    int error = watched_->change(each.descriptor, each.asked, tag);
    if (error != 0) error = watched_->add(each.descriptor, each.asked, tag);
    if (error == 0) return;
    const readiness found = error == EPERM   ? each.asked
                            : error == EBADF ? readiness::invalid
                                             : readiness::error;
    refused_.push_back({each.id, found});  // there is room
}

std::size_t driver::own_loop::run_round(driver& whose) {
    flag_.lower();
    // Whatever goes wrong below, the loop makes another round.
    bool again = true;
    struct raise_if {
        bool& needed;
        platform::readable_flag& flag;
        ~raise_if() {
            if (needed) flag.raise();
        }
    } const at_end{again, flag_};
    std::size_t ended = 0;
    for (const refused& each : std::exchange(refused_, {})) ended += whose.notify(each.id, each.found);
    std::array<ready_item, 64> ready;
    const platform::poll_result polled = watched_->wait(ready, std::chrono::nanoseconds(0));
    for (const ready_item& each : std::span(ready).first(polled.ready))
        ended += whose.notify(watch_id(each.tag), each.found);
    ended += whose.run_due();
    std::size_t changes = whose.begin_update();
    refused_.reserve(changes);
    for (watch next; changes != 0 && whose.take_change(next); --changes) note(next);
    const auto [steady, system] = whose.state_->next_on_both_clocks();
    const int error = view_->set_deadlines(steady, system);
    again = error != 0 || polled.error != 0 || !refused_.empty();
    return ended;
}

driver::driver(void (*changed)(void*) noexcept, void* argument)
    : state_(std::make_unique<state>(changed, argument)) {}

driver::~driver() {
    if (state_->is_half_changed() || (state_->is_ours() && state_->is_kept_at_exit()))
        new (&state_) std::unique_ptr<state>;
}

deadline driver::next_deadline() noexcept { return state_->next_deadline(); }

int driver::poll_timeout() noexcept {
    const deadline next = next_deadline();
    if (next.is_never()) return -1;
    constexpr std::int64_t nanoseconds_in_one = 1'000'000;
    const std::int64_t left = next.remaining();
    const std::int64_t rounded_up = left / nanoseconds_in_one + (left % nanoseconds_in_one != 0 ? 1 : 0);
    return static_cast<int>(std::min<std::int64_t>(rounded_up, std::numeric_limits<int>::max()));
}

std::size_t driver::run_due() noexcept { return state_->run_due(core::timer_queue::no_limit); }

std::size_t driver::run_due(std::chrono::steady_clock::time_point now) noexcept {
    using std::chrono::nanoseconds;
    return state_->run_due(std::chrono::duration_cast<nanoseconds>(now.time_since_epoch()).count());
}

std::size_t driver::notify(watch_id which, readiness found) noexcept { return state_->notify(which, found); }

std::size_t driver::begin_update() noexcept { return state_->begin_update(); }

bool driver::take_change(watch& next) noexcept { return state_->take_change(next); }

int driver::descriptor() { return state_->its_own_loop().descriptor(); }

std::size_t driver::run_ready() {
    own_loop* const ours = state_->own_loop_if_any();
    return ours != nullptr ? ours->run_round(*this) : 0;
}

core::service& detail::driver_access::service_of(driver& which) noexcept { return *which.state_; }

void set_default_driver(driver* which) noexcept {
    core::set_default_service(which != nullptr ? &detail::driver_access::service_of(*which) : nullptr);
}

}  // namespace tocsin
