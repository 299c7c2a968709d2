// SPDX-License-Identifier: Apache-2.0
// A wait_set has a ready_list for its events and timers (core/wait/ready_list.cpp says why it is correct). For its
// descriptors it has a poll_set (platform/poller/poller.hpp), which is made when the first descriptor is added.
//
// A waiting thread sleeps on its waiter's word or, if there is a poll_set, in the poll_set's wait(). The thread that
// releases the waiter reads in the word how the waiting thread sleeps, and wakes that thread. If the waiting thread
// polls, the word contains the number of the poll_set's doorbell, and the releasing thread rings this doorbell.
// Doorbells and their descriptors belong to a pool (platform/poller/poller.hpp). So the releasing thread uses no
// descriptor of the wait_set itself (waiter.cpp).
//
// No thread stays asleep on its word once there is a poll_set. The waiting thread first becomes the sleeper of the
// ready_list, and then looks for a poll_set. A thread that makes a poll_set first stores it, and then has the sleeper
// look again. Both threads take the ready_list's lock: the waiting thread to become the sleeper, the other thread to
// find it. So either the waiting thread finds the poll_set, or the other thread finds the sleeper.
//
// If an event claims the waiter while a poll finds descriptors, the wait drops what the poll has found: the next poll
// finds those descriptors again. A wait throws an error only while it has taken nothing, because a token that it had
// taken would be lost.
//
// When a wait looks at descriptors. Such a look costs a system call; finding that an event is ready costs none. So a
// wait that finds events or timers ready reports them and does not look. Three kinds of waits do look:
//   - A wait that finds no event and no timer ready. The poll in which it sleeps is its look. (If the wait is over
//     before it sleeps, it polls without sleeping.)
//   - A wait with a deadline of zero: it asks for all that is ready now. (If events and timers fill `out`, the next
//     wait looks instead.)
//   - A wait after seven in a row that did not look. It looks at the descriptors first, so that they find room in
//     `out`.
// So of eight waits in a row, one reports descriptors if any are ready. If more are ready than `out` has room for,
// later waits report the others, so the poll_set passes over none. A poll counts as a look if the wait reports what the
// poll found, or if the poll found that nothing was ready. It does not count in two cases: the wait dropped what the
// poll found, or `out` has room for one result only and the poll filled this room with the doorbell. A wait_set whose
// descriptors have all been removed still has its poll_set, but its waits poll only in order to sleep.
//
// Before it sleeps, a wait looks for events again and again, if that has paid in this wait_set (core/wait/spinner.cpp).
// Each of these looks reads the number of ready members, and examines the list only if there are any. A due timer or a
// ready descriptor does not change that number. So the wait may notice either only when these looks end, up to 4 us
// late. Once the thread is the sleeper, it checks again and again whether it has been released, as the spin policy
// says. If there is a poll_set, it does not. All these looks only affect how soon the wait ends: begin_sleep() finds
// whatever they have missed.
//
// A sleep ends, at the latest, at the wait's deadline or when the earliest timer is due. In the second case the thread
// looks again at what is ready. If nothing is, because the timer has been moved or removed, for instance, the thread
// sleeps again.
//
// View. descriptor() gives the set a view for a loop that polls a descriptor (ready_list-8). From then on there is a
// poll_set, and each wait ends with arm_view(). Events and timers raise the view's flag. The descriptor stands for the
// flag, the poll_set, and the first deadlines of the timers (poll_view in poller.hpp). The poll_set's bell counts, too.
// So that a late ring ends, waits of a set with a view poll as if it had descriptors. The flag is up at first, and the
// first wait arms the view. If a wait is under way when the set gets its view, that wait may end without arm_view().
// Then the flag stays up until the next wait.
//
// Memory order
//   [set-waiter]  Only one thread at a time may wait in a wait_set. A wait ends with a release store, and the next wait
//                 begins with an acquire. So the next waiting thread sees what the last one wrote to data that only the
//                 waiting thread touches.
//   [set-poll]    The thread that makes the poll_set stores the pointer to it with release. A thread that loads the
//                 pointer acquires.
//   [set-view]    The same for the view.
//   Everything else is ordered by two locks: that of the ready_list (ready_list.cpp), and `admission_`, which add(),
//   change() and remove() take.
//
// Checked by: tests/model/wait_set_poll_model_test.cpp, wait_set_timer_model_test.cpp and wait_set_view_model_test.cpp
// (P12 of docs/proofs.md), tests/unit/wait_set_test.cpp, tests/unit/wait_timer_test.cpp,
// tests/stress/wait_set_stress_test.cpp. The ready_list has models of its own (P12, too).
#include "core/lot/relay.hpp"
#include "core/wait/diagnosed_wait.hpp"
#include "core/wait/member_table.hpp"
#include "core/wait/ready_list.hpp"
#include "core/wait/spinner.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/wait_set.hpp>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tocsin {
namespace {

using core::ready_list;
using core::source_member;
using core::timer_member;
using platform::poll_set;

// Of this many waits in a row, one looks at descriptors. The models set the number themselves, so that a few waits are
// enough to show this.
#if defined(TOCSIN_WAITS_PER_LOOK)
constexpr unsigned waits_per_look = TOCSIN_WAITS_PER_LOOK;
#else
constexpr unsigned waits_per_look = 8;
#endif

[[noreturn]] void fail(int error, const char* call, const source& one) {
    char message[80];
    if (one.what() == source::kind::descriptor) {
        std::snprintf(message, sizeof message, "tocsin::wait_set::%s: descriptor %d", call, one.descriptor());
    } else {
        std::snprintf(message, sizeof message, "tocsin::wait_set::%s: event at %p", call, one.object());
    }
    detail::throw_or_die(std::system_error(error, platform::error_category(), message));
}

void check(int error, const char* call, const source& one) {
    if (error != 0) fail(error, call, one);
}

void check(std::uint64_t tag) {
    if (tag == poll_set::no_tag)
        detail::throw_or_die(std::invalid_argument("tocsin::wait_set: the greatest number can't be a tag"));
}

[[noreturn]] void fail(int error, const char* message) {
    detail::throw_or_die(std::system_error(error, platform::error_category(), message));
}

void check(const source& one, std::uint64_t tag) {
    if (one.what() == source::kind::timer)
        detail::throw_or_die(
            std::invalid_argument("tocsin::wait_set: after() and at() can't be members: add a wait_timer"));
    if (one.what() == source::kind::custom)
        detail::throw_or_die(std::invalid_argument(
            "tocsin::wait_set: only events and descriptors can be members, and no object "
            "that processes share"));
    check(tag);
}

}  // namespace

class wait_set::state {
public:
    state() = default;
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        const bool lot_is_ours = process_.is_of_this_process();
        events_.for_each([&](source_member* each) { lot_is_ours ? set_.remove(each) : delete each; });
        if (lot_is_ours) set_.remove_timers();
        delete view_.load(std::memory_order_relaxed);  // no order: no other thread uses it any more
        delete poll_.load(std::memory_order_relaxed);  // no order: no other thread uses it any more
    }

    // Whether a thread of the parent held the lock at the fork. It may have been changing the containers. These may now
    // be half changed, so they must never be freed. (The descriptors of the poll_set
    // then stay open, too.)
    bool is_half_changed() const noexcept {
        return !process_.is_of_this_process() && !admission_.is_free_now();
    }
    // Whether a thread waits in a static set that exit() destroys. Nobody can stop that thread before.
    bool is_used_at_exit() const noexcept {
        // no order: a thread that begins to wait now uses a set that is being destroyed
        return is_waited_in_.load(std::memory_order_relaxed) && platform::is_exiting();
    }

    void add(const source& one, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (one.what() == source::kind::descriptor) {
            check(poll().add(one.descriptor(), one.asked(), tag), "add", one);
            descriptors_.fetch_add(1,
                                   std::memory_order_relaxed);  // no order: a wait that comes later sees it
            return;
        }
        if (events_.find(one.object()) != nullptr) fail(EEXIST, "add", one);
        events_.reserve_one();
        auto* const joining = new source_member(set_, one, tag);
        events_.insert(*joining);
        set_.add(*joining);
    }

    void change(const source& one, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (one.what() == source::kind::descriptor) {
            poll_set* const poll = poll_if_any();
            check(poll == nullptr ? ENOENT : poll->change(one.descriptor(), one.asked(), tag), "change", one);
            return;
        }
        source_member* const found = events_.find(one.object());
        if (found == nullptr) fail(ENOENT, "change", one);
        set_.set_tag(*found, tag);
    }

    bool remove(const source& one) noexcept {
        const std::lock_guard here(admission_);
        if (one.what() == source::kind::descriptor) {
            poll_set* const poll = poll_if_any();
            if (poll == nullptr || poll->remove(one.descriptor()) != 0) return false;
            descriptors_.fetch_sub(1, std::memory_order_relaxed);  // no order: at worst a needless look
            return true;
        }
        source_member* const found = events_.find(one.object());
        if (found == nullptr) return false;
        events_.erase(*found);
        set_.remove(found);
        return true;
    }

    void add(timer_member& timer, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (timer.list() != nullptr) fail(EEXIST, "tocsin::wait_set::add: a wait_timer");
        set_.add(timer, tag);
    }

    void change(timer_member& timer, std::uint64_t tag) {
        const std::lock_guard here(admission_);
        if (timer.list() != &set_) fail(ENOENT, "tocsin::wait_set::change: a wait_timer");
        set_.set_tag(timer, tag);
    }

    int descriptor() {
        const std::lock_guard here(admission_);
        if (const view* const made = view_if_any()) return made->outside->descriptor();
        auto made = std::make_unique<view>();
        int error = made->inside.flag.open();
        if (error == 0) made->outside = poll().open_view(made->inside.flag.descriptor(), error);
        if (error != 0) fail(error, "tocsin::wait_set::descriptor");
        if (made->outside == nullptr)
            detail::throw_or_die(std::system_error(std::make_error_code(std::errc::operation_not_supported),
                                                   "tocsin::wait_set::descriptor"));
        made->inside.flag.raise();
        set_.show_to(made->inside);
        view_.store(made.get(), std::memory_order_release);  // [set-view]
        return made.release()->outside->descriptor();
    }

    bool remove(timer_member& timer) noexcept {
        const std::lock_guard here(admission_);
        if (timer.list() != &set_) return false;
        set_.remove(timer);
        return true;
    }

    // `whose` is the wait_set, for diagnosis.
    set_result wait(const wait_set* whose, std::span<ready_item> out, const detail::wait_options& options) {
        const single_waiter mine(is_waited_in_);
        view_arming after(*this);
        const set_result result = look_or_sleep(whose, out, options);
        after.found_any(result.count != 0);
        return result;
    }

private:
    set_result look_or_sleep(const wait_set* whose, std::span<ready_item> out,
                             const detail::wait_options& options) {
        ++unlooked_;
        if (const auto ended = ready_or_over(out, options)) return *ended;
        deadline until = options.until;  // of the next sleep, which may end earlier on account of a timer
        const detail::wait_options until_first{until, options.stop, options.spin};
        core::spinner looking({&set_, core::wait_kind::event}, until_first);
        std::size_t found = 0;
        const auto take = [&]() noexcept {
            if (set_.may_have_ready()) found = set_.take_ready(out, nullptr);
            return found != 0;
        };
        if (looking.before_parking(take, poll_if_any() != nullptr)) return {wait_status::signaled, found};
        for (;;) {
            const set_result slept = sleep(whose, out, options, until, looking);
            if (slept.status != wait_status::signaled || slept.count != 0) return slept;
            if (const auto ended = ready_or_over(out, options)) return *ended;
        }
    }

    // Exists while a thread waits. Lets only one thread wait at a time.
    class single_waiter {
    public:
        explicit single_waiter(detail::atomic<bool>& taken) : taken_(taken) {
            if (taken_.exchange(true, std::memory_order_acquire))  // [set-waiter]
                detail::throw_or_die(std::logic_error("tocsin::wait_set: another thread waits in it"));
        }
        ~single_waiter() { taken_.store(false, std::memory_order_release); }  // [set-waiter]
        single_waiter(const single_waiter&) = delete;
        single_waiter& operator=(const single_waiter&) = delete;

    private:
        detail::atomic<bool>& taken_;
    };

    struct view {
        ready_list::view inside;
        std::unique_ptr<platform::poll_view> outside;
    };
    // Arms the view, if there is one, when a wait ends.
    class view_arming {
    public:
        explicit view_arming(state& of) noexcept : of_(of) {}
        ~view_arming() { of_.arm_view(found_any_); }
        view_arming(const view_arming&) = delete;
        view_arming& operator=(const view_arming&) = delete;
        void found_any(bool whether) noexcept { found_any_ = whether; }

    private:
        state& of_;
        bool found_any_ = false;
    };
    view* view_if_any() const noexcept {
        return view_.load(std::memory_order_acquire);  // [set-view]
    }
    void arm_view(bool found_any) noexcept {
        view* const to = view_if_any();
        if (to == nullptr || !set_.arm_view(found_any)) return;
        // If the deadlines can't be set, the flag makes the loop wait again, which tries again.
        if (to->outside->set_deadlines(to->inside.steady, to->inside.system) != 0) to->inside.flag.raise();
    }

    // A sleep in the poll_set, if there is one.
    class sleep_in_set final : public core::poll_sleep {
    public:
        sleep_in_set(poll_set* of, std::span<ready_item> out, unsigned& unlooked) noexcept
            : set_(of), out_(out), unlooked_(unlooked) {}
        bool has_set() const noexcept { return set_ != nullptr; }

    private:
        platform::doorbell_id bell() const noexcept override { return set_->bell(); }
        platform::poll_result poll(const deadline& until) noexcept override {
            const platform::poll_result found = set_->wait(out_, until);
            if (found.ready == 0 && !took_the_only_room(found, out_)) unlooked_ = 0;
            return found;
        }
        std::uint32_t ready_source() const noexcept override { return 0; }

        poll_set* const set_;
        const std::span<ready_item> out_;
        unsigned& unlooked_;
    };

    poll_set* poll_if_any() const noexcept {
        return poll_.load(std::memory_order_acquire);  // [set-poll]
    }

    poll_set& poll() {
        if (poll_set* const made = poll_if_any()) return *made;
        int error = 0;
        auto made = platform::poller::open_poll_set(error);
        if (made == nullptr)
            detail::throw_or_die(
                std::system_error(error, platform::error_category(), "tocsin::wait_set::add"));
        poll_.store(made.get(), std::memory_order_release);  // [set-poll]
        set_.wake();
        return *made.release();
    }

    bool has_descriptors() const noexcept {
        // no order: the wait sees what was added before it, and the poll reports what is added during it
        return poll_if_any() != nullptr &&
               (descriptors_.load(std::memory_order_relaxed) != 0 || view_if_any() != nullptr);
    }

    std::size_t look_at_descriptors(std::span<ready_item> out) {
        if (out.empty() || !has_descriptors()) return 0;
        platform::poll_result found;
        do {
            found = poll_if_any()->wait(out, std::chrono::nanoseconds(0));
        } while (took_the_only_room(found, out));  // a ring that comes late
        if (found.error != 0) fail(found.error, "tocsin::wait_set::wait");
        unlooked_ = 0;
        return found.ready;
    }

    // Whether the ring of the doorbell took all the room in `out`. A descriptor may be ready all the same.
    static bool took_the_only_room(const platform::poll_result& found, std::span<ready_item> out) noexcept {
        return found.ready == 0 && found.rung && out.size() == 1;
    }

    // Takes the events and timers that are ready. Looks at the descriptors first if that is due, and afterwards if the
    // caller wants `all` and an event or timer was ready. (If only descriptors are ready, ready_or_over() or the poll
    // in sleep() finds them.)
    std::size_t look(std::span<ready_item> out, bool all) {
        if (unlooked_ >= waits_per_look) {
            const std::size_t found = look_at_descriptors(out);
            return found + set_.take_ready(out.subspan(found), nullptr);
        }
        const std::size_t found = set_.take_ready(out, nullptr);
        if (!all || found == 0) return found;
        if (found == out.size()) unlooked_ = waits_per_look;  // the next wait looks
        TOCSIN_TRY { return found + look_at_descriptors(out.subspan(found)); }
        TOCSIN_CATCH(const std::system_error&) {
            return found;  // the next wait will fail the same way
        }
    }

    // The result of the wait, if it need not sleep.
    std::optional<set_result> ready_or_over(std::span<ready_item> out, const detail::wait_options& options) {
        const bool all = options.until.which() == deadline::clock::passed;
        if (const std::size_t found = look(out, all); found != 0)
            return set_result{wait_status::signaled, found};
        const core::claim how = core::ended_before_wait(options);
        if (how == core::claim::open) return std::nullopt;
        if (const std::size_t found = look_at_descriptors(out); found != 0)
            return set_result{wait_status::signaled, found};
        return set_result{core::status_from(how, wait_status::signaled)};
    }

    // Returns `signaled` with a count of 0 if the caller must look again. Sets `until`, the deadline of `looking`, to
    // the end of this sleep.
    set_result sleep(const wait_set* whose, std::span<ready_item> out, const detail::wait_options& options,
                     deadline& until, core::spinner& looking) {
        ready_list::sleeper self(set_);
        self.node.origin = core::wait_origin::here();
        if (!set_.begin_sleep(self, options.until)) return {wait_status::signaled};
        until = self.until;
        const core::diagnosed_here shown(source_label{"wait_set", whose}, self.waiting, self.node.origin,
                                         &events_);
        sleep_in_set polling(poll_if_any(), out, unlooked_);
        const core::claim how = polling.has_set()
                                    ? polling.sleep(self.waiting, {until, options.stop, options.spin})
                                    : looking.spin_then_sleep(self.waiting);
        set_.end_sleep(self);
        const platform::poll_result& polled = polling.found();
        if (polled.error != 0) fail(polled.error, "tocsin::wait_set::wait");
        if (how == core::claim::timed_out && self.until_timer) return {wait_status::signaled};
        if (how != core::claim::signaled) return {core::status_from(how, wait_status::signaled)};
        std::size_t found = polled.ready;
        if (found != 0) unlooked_ = 0;
        const core::member* const by = self.by;
        if (by != nullptr) out[found++] = {self.tag, readiness::none};
        if (found == 0) return {wait_status::signaled};
        return {wait_status::signaled, found + set_.take_ready(out.subspan(found), by)};
    }

    ready_list set_;
    core::futex_lock admission_;  // guards the map and the making of the poll_set; taken before other locks
    core::member_table events_;
    detail::atomic<poll_set*> poll_{nullptr};
    detail::atomic<view*> view_{nullptr};
    detail::atomic<bool> is_waited_in_{false};
    detail::atomic<std::size_t> descriptors_{0};  // how many are members
    // How many waits in a row have not looked at descriptors, this one included. Only the waiting thread touches it.
    unsigned unlooked_ = 0;
    const core::process_stamp process_;
};

static_assert(sizeof(timer_member) <= detail::wait_timer_size && alignof(timer_member) <= 8);

wait_timer::wait_timer() noexcept { ::new (memory_) timer_member; }

wait_timer::~wait_timer() {
    timer_member& own = member();
    if (own.list() != nullptr && own.is_of_this_process()) own.list()->remove(own);
    own.~timer_member();
}

core::timer_member& wait_timer::member() const noexcept {
    return *std::launder(reinterpret_cast<timer_member*>(memory_));
}

void wait_timer::arm(const deadline& when, std::int64_t period) noexcept {
    timer_member& own = member();
    own.list() != nullptr ? own.list()->arm(own, when, period) : own.set_deadline(when, period);
}

void wait_timer::reset(const deadline& when) noexcept { arm(when, 0); }

void wait_timer::reset_every(const deadline& first, std::chrono::nanoseconds period) {
    if (period <= std::chrono::nanoseconds(0))
        detail::throw_or_die(
            std::invalid_argument("tocsin::wait_timer: the period must be longer than zero"));
    arm(first.which() == deadline::clock::passed ? deadline(std::chrono::steady_clock::now()) : first,
        period.count());
}

std::uint64_t wait_timer::ticks() const noexcept {
    timer_member& own = member();
    return own.list() != nullptr ? own.list()->ticks(own) : own.ticks();
}

bool wait_timer::is_armed() const noexcept {
    timer_member& own = member();
    return own.list() != nullptr ? own.list()->is_armed(own) : !own.when().is_never();
}

wait_set::wait_set() : state_(std::make_unique<state>()) {}

wait_set::~wait_set() {
    if (state_->is_half_changed() || state_->is_used_at_exit()) new (&state_) std::unique_ptr<state>;
}

void wait_set::add(const source& what, std::uint64_t tag) {
    check(what, tag);
    state_->add(what, tag);
}

void wait_set::change(const source& what, std::uint64_t tag) {
    check(what, tag);
    state_->change(what, tag);
}

bool wait_set::remove(const source& what) noexcept { return state_->remove(what); }

void wait_set::add(wait_timer& timer, std::uint64_t tag) {
    check(tag);
    state_->add(timer.member(), tag);
}

void wait_set::change(wait_timer& timer, std::uint64_t tag) {
    check(tag);
    state_->change(timer.member(), tag);
}

bool wait_set::remove(wait_timer& timer) noexcept { return state_->remove(timer.member()); }

set_result wait_set::wait(const limits& how, std::span<ready_item> out) {
    if (out.empty())
        detail::throw_or_die(std::invalid_argument("tocsin::wait_set: no room for what is ready"));
    if (detail::is_stopped_first(how)) return {wait_status::stopped};
    return state_->wait(this, out, detail::options_of(how));
}

int wait_set::descriptor() { return state_->descriptor(); }

set_result wait_set::wait(std::span<ready_item> out) { return wait({}, out); }

}  // namespace tocsin
