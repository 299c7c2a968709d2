// Coroutines that wait. A coroutine waits with a multi_wait (core/wait/multi_wait.cpp) whose waiter is resumed instead
// of woken. To wait for one event without limits, it uses a waiter with one node instead.
//
// State
//   A wait with a multi_wait may have parts besides it. Each part can claim and release the waiter, as a set() can.
//   - If the wait can have limits: a stop callback, and a timer for the deadline.
//   - If timers or descriptors may be among its sources: one part for all timers on the system clock, one for those on
//     other clocks (core/async/timer_thread.hpp), and a poll request for descriptors (core/async/poll_thread.hpp).
//   posted  With an executor: whether the thread that released the waiter has finished handing the coroutine over.
//
// Invariants
//   await-1  A wait with a multi_wait begins all its parts, then stores `suspended` in its waiter's word. A wait for
//       one event stores `suspended` while nobody knows of it, queues its node under the bucket's lock, and frees that
//       lock. After this, the suspending thread touches nothing of the wait: the coroutine may be running, or gone.
//   await-2  The thread that released the waiter resumes the coroutine or hands it to its executor, exactly once. A
//       thread that claimed the waiter, saw `posted`, or took the coroutine out of its own resume_queue may destroy it.
//   await-3  The thread that hands the coroutine over calls the executor, which may be in the coroutine's frame. So the
//       coroutine must not continue before this call is over: even once resumed, it waits until it sees `posted`. So
//       does a thread that destroys a coroutine during this call. Hence no thread is still handing over a coroutine
//       that is gone. If an executor refuses the coroutine, the calling thread resumes it, as without an executor.
//   await-4  Before a wait returns or is destroyed, it takes back the stop callback, the timers, the poll request and
//       the nodes, in this order, and waits for any thread that uses one of these. Then nobody knows of the wait.
//
// No lost wake-up: as for a multi_wait, and as for [suspend] in core/lot/waiter.cpp. If a wait is destroyed before it
// continues, the auto-reset events that it was given are given back, as if by another set().
//
// Memory order
//   [posted]  The store of `posted` releases; the coroutine's load of it, before the coroutine continues, acquires.
//   [release] and [suspend] in waiter.cpp order everything else.
//
// Checked by: tests/model/await_model_test.cpp, tests/unit/await_test.cpp, tests/stress/await_stress_test.cpp.
#include "core/async/poll_thread.hpp"
#include "core/async/timer_thread.hpp"
#include "core/lot/lot.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/sync/activity.hpp"
#include "core/sync/stop_callback.hpp"
#include "core/wait/multi_wait.hpp"
#include "core/wait/source_list.hpp"
#include "platform/futex/futex.hpp"

#include <tocsin/await.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace tocsin::detail {

using core::claim;
using core::multi_wait;
using core::wait_slot;

namespace {

constexpr std::uint32_t posted = 1;
constexpr std::uint32_t awaited = 2;  // a thread sleeps until `posted` is stored

// Gives the coroutine to the executor. Returns false if the executor has refused it.
bool post(async_executor& to, const core::resumable& what, std::coroutine_handle<> who) noexcept {
    bool taken;
    {
        const core::activity_scope inside(core::activity::post, &what);
        taken = to.post(to.object, who);
    }
    if (to.posted.exchange(posted, std::memory_order_release) == awaited) {  // [posted]
        platform::futex::wake_one(&to.posted);                               // the address alone
    }
    return taken;
}

void wait_until_posted(async_executor& to, const core::resumable& what) noexcept {
    if (core::activity_scope::is_inside(core::activity::post, &what)) {
        platform::die(
            "tocsin: an executor resumed a coroutine inside the call that was to have it resumed\n");
    }
    std::uint32_t seen = 0;
    to.posted.compare_exchange_strong(seen, awaited,
                                      std::memory_order_relaxed);  // no order: the load after it
    while (to.posted.load(std::memory_order_acquire) != posted) {  // [posted]
        (void)platform::futex::wait(to.posted, awaited, deadline::never());
    }
}

}  // namespace

class awaiting final : public core::resumable {
public:
    // `memory` has async_wait_size(what.needs_) bytes, for this object first and then for its other parts.
    awaiting(async_wait_base& what, std::coroutine_handle<> handle, void* memory) noexcept
        : resumable(released),
          what_(what),
          handle_(handle),
          wait_(what.sources_, what.all_ ? multi_wait::mode::all : multi_wait::mode::any, empty_slots(what),
                what.storage_.buckets, this) {
        auto* const behind = static_cast<std::byte*>(memory) + async_core_size;
        if (what.needs_ >= async_needs::limits) limits_ = ::new (behind) limited(*this);
        if (what.needs_ >= async_needs::mixture) mixture_ = ::new (behind + async_limits_size) mixture(*this);
    }
    ~awaiting() {
        if (!over_) abandon();
        if (mixture_ != nullptr) mixture_->~mixture();
        if (limits_ != nullptr) limits_->~limited();
        std::destroy_n(static_cast<wait_slot*>(what_.storage_.slots), what_.sources_.size());
    }

    // Throws if the sources can't be waited for.
    multi_wait::progress begin();
    bool suspend() noexcept;
    // Called in the coroutine, once it continues.
    void finish() noexcept;
    any_result result() const;

private:
    struct end final : core::timer {
        explicit end(awaiting& of) noexcept : self(of) {}
        bool claim() noexcept override { return self.wait_.self.try_claim(core::claim::timed_out); }
        void run() noexcept override { self.wait_.self.release(nullptr); }
        awaiting& self;
    };
    // All timers of one kind among the sources of a wait for all. It is due when the last of these timers is.
    struct timers final : core::timer {
        timers(awaiting& of, core::timers which) noexcept : self(of), kind(which) {}
        const deadline* last() const noexcept { return core::last_timer(self.what_.sources_, kind); }
        std::uint32_t count() const noexcept { return core::count_timers(self.what_.sources_, kind); }
        bool claim() noexcept override {
            if (const deadline* const later = last()) {
                postpone(*later);
                return false;
            }
            self.wait_.notify_timers(count());
            return true;
        }
        void run() noexcept override { self.wait_.wake_notified(); }
        awaiting& self;
        const core::timers kind;
    };
    struct descriptors final : core::poll_request {
        explicit descriptors(awaiting& of) noexcept : self(of) {}
        bool claim() noexcept override {
            const core::found_source found = self.mixture_->polled.first();
            if (found) return self.wait_.self.try_claim(core::claim::signaled, found.index);
            return has_failed = self.wait_.self.try_claim(core::claim::timed_out);
        }
        void run() noexcept override { self.wait_.self.release(nullptr); }
        awaiting& self;
        bool has_failed = false;  // the poll has failed, and that ended the wait
    };
    struct stopper {
        void operator()() const noexcept { self.wait_.self.stop(); }
        awaiting& self;
    };

    struct limited {
        explicit limited(awaiting& of) noexcept : until(of) {}
        end until;
        std::optional<core::stop_callback<stopper>> stop;
    };
    struct mixture {
        explicit mixture(awaiting& of) noexcept
            : first(core::first_deadline(of.what_.sources_, of.what_.until_)),
              polled(of.what_.sources_, static_cast<platform::poll_entry*>(of.what_.storage_.descriptors)),
              all_timers{{of, core::timers::of_system_clock}, {of, core::timers::of_others}},
              request(of) {}
        const deadline& first;
        core::descriptors polled;
        timers all_timers[2];
        descriptors request;
    };

    static wait_slot* empty_slots(const async_wait_base& what) noexcept;
    static void released(resumable& self) noexcept;
    // When a wait for any ends at the latest: at its deadline, or at the first of its timers.
    const deadline& first() const noexcept { return mixture_ != nullptr ? mixture_->first : what_.until_; }
    bool has_executor() const noexcept { return what_.executor_.object != nullptr; }
    void abandon() noexcept;
    void give_back() noexcept;
    void take_back() noexcept;

    async_wait_base& what_;
    const std::coroutine_handle<> handle_;
    const std::uint32_t forks_ = core::forks();
    plain<bool> suspended_{false};
    bool over_ = false;
    limited* limits_ = nullptr;   // null: the wait has none
    mixture* mixture_ = nullptr;  // null: no source is a timer or a descriptor
    multi_wait wait_;

public:
    static constexpr bool fits =
        sizeof(limited) <= async_limits_size && sizeof(mixture) <= async_mixture_size;
};

static_assert(sizeof(wait_slot) <= async_seat_size && alignof(wait_slot) <= alignof(std::max_align_t));
static_assert(sizeof(awaiting) <= async_core_size && alignof(awaiting) <= alignof(std::max_align_t));
static_assert(awaiting::fits);
static_assert(async_core_size % alignof(std::max_align_t) == 0 &&
              async_limits_size % alignof(std::max_align_t) == 0);
static_assert(sizeof(platform::poll_entry) <= 16);

wait_slot* awaiting::empty_slots(const async_wait_base& what) noexcept {
    auto* const slots = static_cast<wait_slot*>(what.storage_.slots);
    std::uninitialized_default_construct_n(slots, what.sources_.size());
    return slots;
}

multi_wait::progress awaiting::begin() {
    const deadline& until = what_.all_ ? what_.until_ : first();
    const bool ends_later = !until.has_passed();
    const deadline* last[2]{};
    for (std::size_t i = 0; mixture_ != nullptr && what_.all_ && i != 2; ++i) {
        last[i] = mixture_->all_timers[i].last();
        if (last[i] != nullptr) core::timer::start(*last[i]);
    }
    if (ends_later) core::timer::start(until);
    if (mixture_ != nullptr && !mixture_->polled.none()) mixture_->request.set(mixture_->polled.all());

    for (std::size_t i = 0; mixture_ != nullptr && what_.all_ && i != 2; ++i) {
        if (last[i] == nullptr) wait_.add_ready_timers(mixture_->all_timers[i].count());
    }
    const auto made = wait_.enlist();
    if (made != multi_wait::progress::waiting) return made;
    if (!ends_later && wait_.self.try_claim(claim::timed_out)) return multi_wait::progress::done;
    for (std::size_t i = 0; i != 2; ++i) {
        if (last[i] != nullptr) mixture_->all_timers[i].set(*last[i]);
    }
    if (limits_ == nullptr) return made;
    if (ends_later) limits_->until.set(until);
    if (what_.stop_.stop_possible()) limits_->stop.emplace(what_.stop_, stopper{*this});
    return made;
}

bool awaiting::suspend() noexcept {
    suspended_ = true;
    if (wait_.self.suspend()) return true;  // await-1
    suspended_ = false;
    return false;
}

void awaiting::released(resumable& self) noexcept {
    auto& released = static_cast<awaiting&>(self);
    if (released.has_executor() && post(released.what_.executor_, released, released.handle_)) return;
    released.resume_here([](resumable& next) noexcept { static_cast<awaiting&>(next).handle_.resume(); });
}

void awaiting::finish() noexcept {
    if (suspended_ && has_executor()) wait_until_posted(what_.executor_, *this);
    take_back();
}

// Takes back all parts of the wait (await-4).
void awaiting::take_back() noexcept {
    over_ = true;
    const platform::errno_guard guard;
    if (limits_ != nullptr) {
        limits_->stop.reset();
        limits_->until.cancel();
    }
    if (mixture_ != nullptr) {
        for (timers& each : mixture_->all_timers) each.cancel();
        mixture_->request.cancel();
    }
    wait_.delist();
}

// Called when the coroutine is destroyed while it waits (await-2).
void awaiting::abandon() noexcept {
    if (core::forks() != forks_) return;
    if (suspended_ && !wait_.self.try_claim(claim::stopped)) {
        if (!cancel() && has_executor()) wait_until_posted(what_.executor_, *this);
        if (wait_.self.outcome() == claim::signaled) give_back();
    }
    take_back();
}

void awaiting::give_back() noexcept {
    for (std::size_t i = 0; i != what_.sources_.size(); ++i) {
        const source& each = what_.sources_[i];
        const bool taken = what_.all_ || i == wait_.self.winner();
        if (taken && each.what() == source::kind::lot && each.lot().give_back != nullptr) {
            each.lot().give_back(each.object());
        }
    }
}

any_result awaiting::result() const {
    switch (wait_.self.outcome()) {
        case claim::stopped: return {wait_status::stopped};
        case claim::timed_out: {
            if (mixture_ != nullptr && mixture_->request.has_failed)
                mixture_->polled.check(mixture_->request.error(), mixture_->request.culprit());
            if (what_.all_) return {wait_status::timed_out};
            const std::uint32_t timer = core::timer_that_passed(what_.sources_, first());
            if (timer == multi_wait::none) return {wait_status::timed_out};
            return {wait_status::signaled, timer};
        }
        default: break;
    }
    if (what_.all_) return {wait_status::signaled};
    const std::uint32_t index = wait_.self.winner();
    if (what_.sources_[index].what() != source::kind::descriptor) return {wait_status::signaled, index};
    mixture_->polled.check(0, platform::no_culprit);
    return {wait_status::signaled, index, mixture_->polled.first().found};
}

bool async_wait_base::ready() {
    if (all_) {
        core::check_all(sources_, "async_wait_all");
        auto* const order = static_cast<std::uint32_t*>(storage_.slots);  // there are no slots yet
        std::uninitialized_default_construct_n(order, sources_.size());
        core::check_distinct(sources_, {order, sources_.size()}, "async_wait_all");
        return false;
    }
    core::check(sources_, "async_wait_any");
    core::descriptors polled(sources_, static_cast<platform::poll_entry*>(storage_.descriptors));
    if (const core::found_source first = core::take_first_ready(sources_, &polled)) {
        result_ = {wait_status::signaled, first.index, first.found};
    } else if (stop_.stop_requested()) {
        result_ = {wait_status::stopped};
    } else if (until_.has_passed()) {
        result_ = {wait_status::timed_out};
    } else {
        return false;
    }
    return true;
}

bool async_wait_base::suspend(std::coroutine_handle<> handle, void* memory) {
    for (;;) {
        waiting_ = ::new (memory) awaiting(*this, handle, memory);
        switch (waiting_->begin()) {
            case multi_wait::progress::waiting: return waiting_->suspend();
            case multi_wait::progress::done: return false;
            case multi_wait::progress::retry: break;
        }
        destroy();  // another thread took a custom source first
        if (ready()) return false;
    }
}

any_result async_wait_base::result() {
    if (waiting_ == nullptr) return result_;
    waiting_->finish();
    return waiting_->result();
}

void async_wait_base::destroy() noexcept {
    waiting_->~awaiting();
    waiting_ = nullptr;
}

// The wait for one event. It is in the memory of an event_awaiter, which has no room for anything else.
class event_awaiting final : public core::resumable {
public:
    event_awaiting(void (*then)(resumable&) noexcept, const core::wait_key& key) noexcept
        : resumable(then), self_(this), node_(key, self_, true, core::forks()) {}

    static event_awaiting& in(event_awaiter_base& awaiter) noexcept {
        return *std::launder(reinterpret_cast<event_awaiting*>(awaiter.memory));
    }
    static void released(resumable& self) noexcept;
    static void released_to_executor(resumable& self) noexcept;

    // Returns false if it has taken the event instead. After true, the coroutine may be running (await-1).
    bool park(const lot_source& how) noexcept;
    // Called when the coroutine is destroyed while it waits (await-2).
    void abandon(const lot_source& how, async_executor* executor) noexcept;

private:
    // The awaiter in whose memory this object is.
    event_awaiter_base& awaiter() noexcept {
        static_assert(offsetof(event_awaiter_base, memory) == 0);
        return *reinterpret_cast<event_awaiter_base*>(this);
    }
    void* event() const noexcept { return const_cast<void*>(node_.key.address); }
    void withdraw(const lot_source& how) noexcept;

    core::waiter self_;
    // In other waits, a node's number says which source it is for. Here it holds forks() at the wait's start.
    core::wait_node node_;
};

static_assert(sizeof(event_awaiting) <= async_event_size && alignof(event_awaiting) <= 8);

void event_awaiting::released(resumable& self) noexcept {
    self.resume_here(
        [](resumable& next) noexcept { static_cast<event_awaiting&>(next).awaiter().who_.resume(); });
}

void event_awaiting::released_to_executor(resumable& self) noexcept {
    auto& awaiter = static_cast<event_awaiter_on_base&>(static_cast<event_awaiting&>(self).awaiter());
    if (!post(awaiter.executor_, self, awaiter.who_)) released(self);
}

bool event_awaiting::park(const lot_source& how) noexcept {
    self_.suspend_unqueued();
    core::locked_queue queue(node_.key);
    for (;;) {
        if (how.hold(event())) {
            how.take_held(event());
            return false;
        }
        if (how.mark_parked(event(), false)) {
            queue.append(node_);
            return true;
        }
    }
}

void event_awaiting::withdraw(const lot_source& how) noexcept {
    core::locked_queue queue(node_.key);
    queue.remove(node_);
    if (queue.empty()) how.clear_parked(event());
}

void event_awaiting::abandon(const lot_source& how, async_executor* executor) noexcept {
    if (core::forks() != node_.index) return;
    if (self_.try_claim(claim::stopped)) return withdraw(how);
    if (!cancel() && executor != nullptr) wait_until_posted(*executor, *this);
    if (how.give_back != nullptr) how.give_back(event());
}

bool event_awaiter_base::suspend(const lot_source& how, std::coroutine_handle<> who,
                                 bool with_executor) noexcept {
    const core::wait_key key{object, static_cast<core::wait_kind>(how.wait_kind)};
    who_ = who;
    auto* const waiting = ::new (memory)
        event_awaiting(with_executor ? event_awaiting::released_to_executor : event_awaiting::released, key);
    if (waiting->park(how)) return true;
    who_ = nullptr;
    waiting->~event_awaiting();
    return false;
}

void event_awaiter_base::finish(bool with_executor) noexcept {
    auto& waiting = event_awaiting::in(*this);
    if (with_executor) wait_until_posted(static_cast<event_awaiter_on_base&>(*this).executor_, waiting);
    waiting.~event_awaiting();
    who_ = nullptr;
}

void event_awaiter_base::abandon(const lot_source& how, bool with_executor) noexcept {
    auto& waiting = event_awaiting::in(*this);
    waiting.abandon(how, with_executor ? &static_cast<event_awaiter_on_base&>(*this).executor_ : nullptr);
    waiting.~event_awaiting();
}

}  // namespace tocsin::detail
