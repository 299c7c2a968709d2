// SPDX-License-Identifier: Apache-2.0
// Waits that block no thread: those of coroutines (await.hpp) and of operations (operation.hpp), except the
// single_waits of await.cpp and operation.cpp. Such a wait is a multi_wait (core/wait/multi_wait.cpp) whose waiter is
// not woken. Instead, the thread that releases it runs what the wait was given to run. For a coroutine, that resumes
// the coroutine. For an operation, that ends the operation (operation.cpp).
//
// State
//   A pending_wait is in memory of the object that waits (below: the owner). It may have further parts. Each can claim
//   and release the waiter, as a set() can.
//   - If the wait can have limits: a stop callback, and a timer for the deadline.
//   - If timers or descriptors may be among its sources: one part for all timers on the system clock, one for those on
//     other clocks (core/async/timer_thread.hpp), and a poll request for descriptors (core/async/poll_thread.hpp). In a
//     wait for any, the timer for the deadline is set for the first of the sources' timers, if that is earlier.
//   posted  With an executor: says whether the thread that released the waiter has finished handing the wait over
//           (core/async/executor_post.hpp).
//
// Invariants
//   pending-1  A wait begins all its parts, then stores `suspended` in its waiter's word. After this, the thread that
//       has begun the wait touches nothing of it: its owner may be running, or gone. If the store fails, the wait has
//       ended, and belongs to this thread, as if this thread had released the waiter.
//   pending-2  The thread that released the waiter runs what the wait was given, or hands it to the executor, exactly
//       once. A thread that claimed the waiter, saw `posted`, or took the wait out of its own resume_queue may destroy
//       the wait.
//   pending-3  The thread that hands the wait over calls the executor, which may be in the owner's memory: a
//       coroutine's frame, say. So the owner must exist until this call is over, unless the executor itself runs the
//       wait inside the call (executor_post-2). If an executor refuses, the calling thread runs what the wait was
//       given, as without an executor.
//   pending-4  Before a wait returns or is destroyed, it takes back the stop callback, the timers, the poll request and
//       the nodes, in this order, and waits for any thread that uses one of these. After that, nobody else refers to
//       the wait.
//
// No lost wake-up: as for a multi_wait, and as for [suspend] in core/lot/waiter.cpp. A deadline may pass while the wait
// begins. begin() looks at the deadline once. If it has passed, no timer is set, and begin() itself tries to claim the
// wait, after it has queued the nodes. Otherwise the timer is set, however soon the deadline passes.
//
// If a wait is destroyed after it was given auto-reset events or permits, but before its result is used, the destructor
// gives them back, as if by another set() or release().
//
// Memory order: [release] and [suspend] in waiter.cpp and [posted] in executor_post.hpp order everything.
//
// Checked by: tests/model/await_model_test.cpp, tests/model/operation_model_test.cpp, tests/unit/await_test.cpp,
// tests/unit/operation_test.cpp, tests/stress/await_stress_test.cpp, tests/stress/operation_stress_test.cpp.
#include "pending.hpp"

#include "core/async/executor_post.hpp"
#include "core/sync/happens_before.hpp"
#include "platform/system/system.hpp"

#include <cerrno>

namespace tocsin::detail {

static_assert(sizeof(wait_slot) <= wait_slot_size && alignof(wait_slot) <= alignof(std::max_align_t));
static_assert(sizeof(pending_wait) <= wait_core_size && alignof(pending_wait) <= alignof(std::max_align_t));
static_assert(pending_wait::fits);
static_assert(wait_core_size % alignof(std::max_align_t) == 0 &&
              wait_limits_size % alignof(std::max_align_t) == 0);
static_assert(sizeof(platform::poll_entry) <= 16);

wait_slot* pending_wait::empty_slots(const pending_base& what) noexcept {
    auto* const slots = static_cast<wait_slot*>(what.storage_.slots);
    std::uninitialized_default_construct_n(slots, what.sources_.size());
    return slots;
}

multi_wait::progress pending_wait::begin(core::service* by) {
    if (by == nullptr && limits_ != nullptr) by = core::default_service();
    const deadline& until = base_.traits_.all ? base_.until_ : first();
    const bool ends_later = !until.has_passed();
    const deadline* last[2]{};
    for (std::size_t i = 0; mixture_ != nullptr && base_.traits_.all && i != 2; ++i) {
        last[i] = mixture_->all_timers[i].last();
        if (last[i] != nullptr) core::timer::start(*last[i], by);
    }
    if (ends_later) core::timer::start(until, by);
    if (mixture_ != nullptr && !mixture_->polled.none()) mixture_->request.set(mixture_->polled.all(), by);

    for (std::size_t i = 0; mixture_ != nullptr && base_.traits_.all && i != 2; ++i) {
        if (last[i] == nullptr) wait_.add_ready_timers(mixture_->all_timers[i].count());
    }
    const auto made = wait_.enlist();
    if (made != multi_wait::progress::waiting) return made;
    if (!ends_later && wait_.self.try_claim(claim::timed_out)) return multi_wait::progress::done;
    for (std::size_t i = 0; i != 2; ++i) {
        if (last[i] != nullptr) mixture_->all_timers[i].set(*last[i], by);
    }
    if (mixture_ != nullptr && !mixture_->polled.none()) {
        mixture_->shown.polled = mixture_->polled.all().data();
        mixture_->shown.polled_count = mixture_->polled.all().size();
        mixture_->shown.enter(source_label{core::diagnosed_sleep::polls, nullptr}, wait_.self,
                              core::wait_origin::of_suspension());
    }
    if (limits_ == nullptr) return made;
    if (ends_later) limits_->until.set(until, by);
    if (base_.stop_.stop_possible()) {
        core::order::before_registration(base_.stop_);
        limits_->stop.emplace(base_.stop_, stopper{*this});
    }
    return made;
}

bool pending_wait::suspend() noexcept {
    suspended_ = true;
    if (wait_.self.suspend()) return true;  // pending-1
    suspended_ = false;
    return false;
}

void pending_wait::end_here() noexcept {
    suspended_ = true;
    hand_over();
}

void pending_wait::released(resumable& self) noexcept { static_cast<pending_wait&>(self).hand_over(); }

void pending_wait::hand_over() noexcept {
    if (!has_executor()) return run_here();
    hand_over_here([](resumable& next) noexcept {
        auto& self = static_cast<pending_wait&>(next);
        if (!core::post(self.base_.executor_, self, self.base_.given_.who)) self.run_here();
    });
}

void pending_wait::run_here() noexcept {
    resume_here([](resumable& next) noexcept {
        auto& self = static_cast<pending_wait&>(next);
        self.run_(self.base_.given_.who);
    });
}

void pending_wait::finish() noexcept {
    if (suspended_ && has_executor()) core::wait_until_posted(base_.executor_, *this);
    take_back();
}

// Takes back all parts of the wait (pending-4).
void pending_wait::take_back() noexcept {
    over_ = true;
    const platform::errno_guard guard;
    if (limits_ != nullptr) {
        limits_->stop.reset();
        core::order::after_registration(&limits_->stop);
        limits_->until.cancel();
    }
    if (mixture_ != nullptr) {
        for (timers& each : mixture_->all_timers) each.cancel();
        mixture_->request.cancel();
        mixture_->shown.leave();
    }
    wait_.delist();
}

// Called when the object that waits is destroyed (pending-2).
void pending_wait::abandon() noexcept {
    if (!is_of_this_process()) return;
    if (suspended_ && !wait_.self.try_claim(claim::stopped)) {
        const bool was_queued = has_executor() ? cancel_in_this_thread() : cancel();
        if (!was_queued && has_executor()) {
            core::wait_until_posted(base_.executor_, *this);
        } else if (TOCSIN_CHECKED && !was_queued && base_.traits_.form == wait_form::operation) {
            platform::die(destroyed_too_early);
        }
        if (wait_.self.outcome() == claim::signaled) give_back();
    }
    take_back();
}

void pending_wait::give_back() noexcept {
    for (std::size_t i = 0; i != base_.sources_.size(); ++i) {
        if (base_.traits_.all || i == wait_.self.winner()) core::give_back(base_.sources_[i]);
    }
}

any_result pending_wait::failed(int* error, int by, std::size_t culprit) const {
    if (error != nullptr) {
        *error = by;
    } else {
        mixture_->polled.check(by, culprit);  // throws
    }
    const std::size_t entry = culprit == platform::no_culprit ? 0 : culprit;
    return {wait_status::signaled, mixture_->polled.source_of(entry), readiness::invalid};
}

any_result pending_wait::result(int* error) const {
    const any_result ended = found(error);
    if (ended.status != wait_status::signaled) return ended;
    for (std::size_t i = 0; i != base_.sources_.size(); ++i) {
        if (base_.traits_.all || i == ended.index) core::order::after(base_.sources_[i].object());
    }
    base_.note_taken(ended);
    return ended;
}

any_result pending_wait::found(int* error) const {
    switch (wait_.self.outcome()) {
        case claim::stopped: return {wait_status::stopped};
        case claim::timed_out: {
            if (mixture_ != nullptr && mixture_->request.has_failed)
                return failed(error, mixture_->request.error(), mixture_->request.culprit());
            if (base_.traits_.all) return {wait_status::timed_out};
            const std::uint32_t timer =
                mixture_ != nullptr ? mixture_->first.timer_that_passed() : multi_wait::none;
            if (timer == multi_wait::none) return {wait_status::timed_out};
            return {wait_status::signaled, timer};
        }
        default: break;
    }
    if (base_.traits_.all) return {wait_status::signaled};
    const std::uint32_t index = wait_.self.winner();
    if (base_.sources_[index].what() != source::kind::descriptor) return {wait_status::signaled, index};
    const readiness found = mixture_->polled.first().found;
    if (error == nullptr) {
        mixture_->polled.check(0, platform::no_culprit);
    } else if (has(found, readiness::invalid)) {
        *error = EBADF;
    }
    return {wait_status::signaled, index, found};
}

bool pending_base::is_stopped_first() noexcept {
    if (!stop_first_ || !stop_.stop_requested()) return false;
    std::construct_at(&result_, any_result{wait_status::stopped});
    return true;
}

bool pending_base::look() {
    const bool awaited = traits_.form == wait_form::awaited;
    if (traits_.all) {
        const char* const call = awaited ? "async_wait_all" : "all_operation";
        core::check_all(sources_, call);
        auto* const order = static_cast<std::uint32_t*>(storage_.slots);  // there are no slots yet
        std::uninitialized_default_construct_n(order, sources_.size());
        core::check_distinct(sources_, {order, sources_.size()}, call);
        return is_stopped_first();
    }
    core::check(sources_, awaited ? "async_wait_any" : "any_operation");
    if (is_stopped_first()) return true;
    core::descriptors polled(sources_, static_cast<platform::poll_entry*>(storage_.descriptors));
    const std::uint32_t begin = core::first_to_look_at(sources_, order_);
    if (const core::found_source first = core::take_first_ready(sources_, &polled, begin)) {
        core::order::after(sources_[first.index].object());
        std::construct_at(&result_, any_result{wait_status::signaled, first.index, first.found});
    } else if (stop_.stop_requested()) {
        std::construct_at(&result_, any_result{wait_status::stopped});
    } else if (until_.has_passed()) {
        std::construct_at(&result_, any_result{wait_status::timed_out});
    } else {
        return false;
    }
    return true;
}

pending_base::begun pending_base::begin(void (*run)(void* who) noexcept, void* who, core::service* by,
                                        void* memory) {
    // If something throws, takes back what has begun.
    struct attempt {
        explicit attempt(pending_base& of) noexcept : self(of) {}
        ~attempt() {
            if (!kept && self.waiting_ != nullptr) self.destroy();
        }
        pending_base& self;
        bool kept = false;
    } made(*this);
    for (;;) {
        std::construct_at(&given_, parts_of_begin{who, by});
        waiting_ = ::new (memory) pending_wait(*this, run, memory);
        const auto progress = waiting_->begin(by);
        if (progress != multi_wait::progress::retry) {
            made.kept = true;
            return progress == multi_wait::progress::waiting ? begun::waiting : begun::ended;
        }
        destroy();  // another thread took a custom source first
        if (look()) return begun::looked;
    }
}

bool pending_base::suspend(void (*run)(void* who) noexcept, void* who, void* memory) {
    return begin(run, who, given_.by, memory) == begun::waiting && waiting_->suspend();
}

void pending_base::note_taken(const any_result& how) const noexcept {
    if (traits_.needs != wait_needs::mixture) return;  // there are no tickers
    traits_.all ? core::note_taken(sources_) : core::note_taken(sources_[how.index]);
}

any_result pending_base::result() {
    if (waiting_ == nullptr) {
        if (result_.status == wait_status::signaled) note_taken(result_);
        return result_;
    }
    waiting_->finish();
    return waiting_->result(nullptr);
}

void pending_base::destroy() noexcept {
    waiting_->~pending_wait();
    waiting_ = nullptr;
}

}  // namespace tocsin::detail
