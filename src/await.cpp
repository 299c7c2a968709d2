// Coroutines that wait: a multi_wait (core/wait/multi_wait.cpp) whose waiter is resumed instead of woken.
//
// State
//   The wait; a stop callback; timers for the deadline and for the timers among the sources, one for either kind
//   (core/async/timer_thread.hpp); a poll request for the descriptors (core/async/poll_thread.hpp). Each of them can
//   claim and release the waiter, as a set() can.
//   posted_  with an executor: whether the thread that released the waiter has finished handing it over.
//
// Invariants
//   await-1  Everything is begun before the waiter's word says `suspended`. After that the suspending thread touches
//       nothing: the coroutine may already be running, or gone.
//   await-2  A suspended coroutine is resumed or handed to its executor exactly once, by whoever released its waiter.
//       Or it is destroyed, by a thread that claimed the waiter, or cancelled its resumption, or found that it had been
//       handed over.
//   await-3  The coroutine does not continue before the thread that hands it over has finished doing so: the executor
//       that this thread calls may be in the coroutine's frame. And whoever destroys the coroutine can rely on it:
//       nobody hands it over afterwards.
//   await-4  Before the wait returns or is destroyed, nobody else knows of it: stop callback, timers, poll request and
//       nodes are taken back, in this order. Taking each back waits for whoever is using it.
//
// No lost wake-up: that of multi_wait, and of [suspend] in core/lot/waiter.cpp. What was handed to a wait that is
// destroyed before it continues is given back, as by another set().
//
// Memory order
//   [posted]  the thread that has handed the coroutine over releases; the coroutine acquires before it continues.
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

#include <memory>
#include <new>
#include <optional>

namespace tocsin::detail {

using core::claim;
using core::multi_wait;
using core::wait_slot;

class awaiting final : public core::resumable {
public:
    awaiting(async_wait_base& what, std::coroutine_handle<> handle) noexcept
        : resumable(released),
          what_(what),
          handle_(handle),
          first_(core::first_deadline(what.sources_, what.until_)),
          polled_(what.sources_, static_cast<platform::poll_entry*>(what.storage_.descriptors)),
          wait_(what.sources_, what.all_ ? multi_wait::mode::all : multi_wait::mode::any, empty_slots(what),
                what.storage_.buckets, this) {}
    ~awaiting() {
        if (!over_) abandon();
        std::destroy_n(static_cast<wait_slot*>(what_.storage_.slots), what_.sources_.size());
    }

    // Throws if the sources can't be waited for.
    multi_wait::progress begin();
    bool suspend() noexcept;
    // In the coroutine, once it continues.
    void finish() noexcept;
    any_result result() const;

private:
    struct end final : core::timer {
        explicit end(awaiting& of) noexcept : self(of) {}
        bool claim() noexcept override { return self.wait_.self.try_claim(core::claim::timed_out); }
        void run() noexcept override { self.wait_.self.release(nullptr); }
        awaiting& self;
    };
    // The timers of one kind among the sources of a wait for all: due when the last of them is.
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
            const core::found_source found = self.polled_.first();
            if (found) return self.wait_.self.try_claim(core::claim::signaled, found.index);
            return has_failed = self.wait_.self.try_claim(core::claim::timed_out);
        }
        void run() noexcept override { self.wait_.self.release(nullptr); }
        awaiting& self;
        bool has_failed = false;  // the poll, which ended the wait
    };
    struct stopper {
        void operator()() const noexcept { self.wait_.self.stop(); }
        awaiting& self;
    };

    static wait_slot* empty_slots(const async_wait_base& what) noexcept;
    static void released(resumable& self) noexcept;
    void post() noexcept;
    void wait_until_posted() noexcept;
    void abandon() noexcept;
    void give_back() noexcept;
    void take_back() noexcept;

    async_wait_base& what_;
    const std::coroutine_handle<> handle_;
    const deadline& first_;
    const std::uint32_t forks_ = core::forks();
    plain<bool> suspended_{false};
    bool over_ = false;
    atomic<std::uint32_t> posted_{0};
    core::descriptors polled_;
    multi_wait wait_;
    end end_{*this};
    timers timers_[2]{{*this, core::timers::of_system_clock}, {*this, core::timers::of_others}};
    descriptors descriptors_{*this};
    std::optional<core::stop_callback<stopper>> stop_;
};

static_assert(sizeof(wait_slot) <= async_seat_size && alignof(wait_slot) <= alignof(std::max_align_t));
static_assert(sizeof(awaiting) <= async_wait_size && alignof(awaiting) <= alignof(std::max_align_t));
static_assert(sizeof(platform::poll_entry) <= 16);

namespace {

constexpr std::uint32_t posted = 1;
constexpr std::uint32_t awaited = 2;  // a thread sleeps until it is posted

}  // namespace

wait_slot* awaiting::empty_slots(const async_wait_base& what) noexcept {
    auto* const slots = static_cast<wait_slot*>(what.storage_.slots);
    std::uninitialized_default_construct_n(slots, what.sources_.size());
    return slots;
}

multi_wait::progress awaiting::begin() {
    const deadline& until = what_.all_ ? what_.until_ : first_;
    const bool ends_later = !until.has_passed();
    const deadline* last[2]{};
    for (std::size_t i = 0; i != 2 && what_.all_; ++i) {
        last[i] = timers_[i].last();
        if (last[i] != nullptr) core::timer::start(*last[i]);
    }
    if (ends_later) core::timer::start(until);
    if (!polled_.none()) descriptors_.set(polled_.all());

    for (std::size_t i = 0; i != 2 && what_.all_; ++i) {
        if (last[i] == nullptr) wait_.add_ready_timers(timers_[i].count());
    }
    const auto made = wait_.enlist();
    if (made != multi_wait::progress::waiting) return made;
    if (!ends_later && wait_.self.try_claim(claim::timed_out)) return multi_wait::progress::done;
    for (std::size_t i = 0; i != 2; ++i) {
        if (last[i] != nullptr) timers_[i].set(*last[i]);
    }
    if (ends_later) end_.set(until);
    if (what_.stop_.stop_possible()) stop_.emplace(what_.stop_, stopper{*this});
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
    if (released.what_.executor_.object != nullptr) return released.post();
    released.resume_here([](resumable& next) noexcept { static_cast<awaiting&>(next).handle_.resume(); });
}

void awaiting::post() noexcept {
    {
        const core::activity_scope inside(core::activity::post, this);
        what_.executor_.post(what_.executor_.object, handle_);
    }
    if (posted_.exchange(posted, std::memory_order_release) == awaited) {  // [posted]
        platform::futex::wake_one(&posted_);                               // the address alone
    }
}

void awaiting::wait_until_posted() noexcept {
    if (core::activity_scope::is_inside(core::activity::post, this)) {
        platform::die(
            "tocsin: an executor resumed a coroutine inside the call that was to have it resumed\n");
    }
    std::uint32_t seen = 0;
    posted_.compare_exchange_strong(seen, awaited, std::memory_order_relaxed);  // no order: the load after it
    while (posted_.load(std::memory_order_acquire) != posted) {                 // [posted]
        (void)platform::futex::wait(posted_, awaited, deadline::never());
    }
}

void awaiting::finish() noexcept {
    if (suspended_ && what_.executor_.object != nullptr) wait_until_posted();
    take_back();
}

// await-4
void awaiting::take_back() noexcept {
    over_ = true;
    const platform::errno_guard guard;
    stop_.reset();
    end_.cancel();
    for (timers& each : timers_) each.cancel();
    descriptors_.cancel();
    wait_.delist();
}

// await-2: the coroutine is destroyed while it waits
void awaiting::abandon() noexcept {
    if (core::forks() != forks_) return;
    if (suspended_ && !wait_.self.try_claim(claim::stopped)) {
        if (!cancel() && what_.executor_.object != nullptr) wait_until_posted();
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
            if (descriptors_.has_failed) polled_.check(descriptors_.error(), descriptors_.culprit());
            if (what_.all_) return {wait_status::timed_out};
            const std::uint32_t timer = core::timer_that_passed(what_.sources_, first_);
            if (timer == multi_wait::none) return {wait_status::timed_out};
            return {wait_status::signaled, timer};
        }
        default: break;
    }
    if (what_.all_) return {wait_status::signaled};
    const std::uint32_t index = wait_.self.winner();
    if (what_.sources_[index].what() != source::kind::descriptor) return {wait_status::signaled, index};
    polled_.check(0, platform::no_culprit);
    return {wait_status::signaled, index, polled_.first().found};
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

bool async_wait_base::suspend(std::coroutine_handle<> handle) {
    for (;;) {
        waiting_ = ::new (memory_) awaiting(*this, handle);
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

}  // namespace tocsin::detail
