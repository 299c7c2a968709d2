// SPDX-License-Identifier: Apache-2.0
// An operation is a wait, and a function that is called at the wait's end. The wait is a single_wait
// (core/wait/single_wait.cpp) if it is a wait for any with only one source, this source is in the lot, and the
// operation's type has no room for limits (deadline, stop token), timers or descriptors. Otherwise, the wait is a
// pending_wait (pending.cpp).
//
// State
//   busy_   True while the function is still to be called. (It is false if start() calls the function directly.) The
//           thread that starts the operation touches it, then the thread that ends the operation, then the thread that
//           destroys it. Each comes after the one before it.
//   cancelers_  Counts the cancelers: the threads that have entered cancel() and not left it. Bit 0 (`admits`): a
//           cancel() may enter, because there is a wait that it may end. The bits above bit 0: how many cancelers there
//           are. Bit 31 (`owner_waits`): the thread that ends the operation sleeps until the last canceler leaves. Of
//           an operation with a single_wait, only bit 0 is in use.
//   quick_left_  How many more calls of the function start() may make directly before the next call goes through the
//           thread's resume_queue. Only start() and on() touch it.
//   If a look in start() ends a wait, there is no pending_wait. If the function can't be called at once, an early_end
//   is queued, or given to the executor, in place of a pending_wait. The same is true if a single_wait takes its source
//   instead of being queued.
//   single_  The single_wait. The first start() whose first look does not end the wait makes it, and it stays for all
//           later ones.
//
// Invariants
//   operation-1  start() admits cancelers, then suspends the wait (pending-1, single_wait-1), and then touches nothing
//       of the operation. If the wait ended before it was suspended, the thread in start() ends the operation, as if
//       this thread had released the wait.
//   operation-2  The operation admits cancelers only while its wait exists. A thread in cancel() touches the
//       pending_wait only while it is a canceler, or if it has claimed the wait. Whoever ends the operation admits no
//       further cancelers and waits until the last one has left, before the pending_wait is taken back. A single_wait
//       exists until the operation is destroyed. So whoever ends a single_wait waits for no canceler.
//   operation-3  Exactly one thread ends the operation, once for each start(). It is the thread that runs what the wait
//       was given (pending-2) or the early_end, or the thread in start() if it calls the function directly. This thread
//       makes the operation idle, and then calls the function. From the call on, the library touches nothing of the
//       operation. So the function, and any thread that it tells, may start the operation again or destroy it.
//
// Races: a cancel(), a set, a timeout and a stop each try to claim the waiter, and one of them succeeds (waiter-1). A
// canceler that has claimed the waiter leaves before it releases the waiter. The reason: the release may end the
// operation in this thread, and that end waits until the last canceler has left. Between these two steps nobody else
// can end the wait, because the waiter is claimed. If start() has not suspended the wait yet, the thread in start()
// finds the waiter released, and calls the function there.
// A canceler that has not claimed the waiter leaves, and touches nothing afterwards. The operation may then have ended,
// been destroyed, or been started again.
// For a single_wait, the lock of its bucket decides (single_wait-2): a cancel() that has withdrawn the wait has ended
// it. After this cancel() saw that it was admitted, the wait may have ended and begun again. Then the cancel() ends the
// later wait, as if the call had been made later.
//
// Destruction: the destructor of a busy operation does what the destructor of a coroutine's wait does (pending-2). It
// need not wait for cancelers: the operation must exist until a cancel() returns, unless this cancel() returns true. A
// checked build ends the program if there is a canceler of a pending_wait. (Nobody counts those of a single_wait.) If
// the operation has an early_end instead of a wait, the destructor takes the early_end out of this thread's queue, or
// waits for `posted`, and then gives back what the wait had taken.
//
// Depth of the stack: each time start() calls the function directly, it counts down quick_left_. At zero, the call goes
// through the resume_queue instead. If a call through that queue is already under way in the thread, the outermost of
// them makes this call, once the function that is running has returned. So at most 2 * quick_calls + 1 calls of one
// operation's function are nested. With a counter per thread instead, every start() would have to look at the thread's
// slots. With an executor, every call goes through the queues, which bound how deeply dispatching executors are nested
// (core/lot/resume_queue.cpp).
//
// No lost wake-up: as in pending.cpp and single_wait.cpp.
//
// Memory order
//   [canceler-admitted]  start() makes the wait before it admits cancelers, by a release. A canceler acquires when it
//       enters, so it sees the wait.
//   [canceler-left]  A canceler leaves by a release operation, and the thread that waits for cancelers acquires. So
//       what a canceler did comes before the wait is taken back.
//   If a cancel() is not admitted, it publishes nothing and learns nothing. Everything else is ordered by [suspend] and
//   [release] in core/lot/waiter.cpp, by [posted] in core/async/executor_post.hpp and, for a single_wait, by the
//   bucket's lock.
//
// Fork: in the child, the destructor takes back nothing of the wait but the stop callback, as for a coroutine
// (pending.cpp), and gives nothing back. cancel() returns false there.
//
// Several copies of the library: the queue of a thread may hold operations of other copies (core/lot/resume_queue.cpp).
// The copy that made an operation starts, ends, cancels and destroys it, because the operation's virtual functions and
// function pointers belong to that copy.
//
// Checked by: tests/model/operation_model_test.cpp (P22 of docs/proofs.md), tests/model/driver_model_test.cpp (with a
// driver: P23), tests/unit/operation_test.cpp, tests/stress/operation_stress_test.cpp, tests/fuzz, tests/soak.
#include "core/async/executor_post.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/sync/happens_before.hpp"
#include "core/wait/single_wait.hpp"
#include "pending.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/operation.hpp>

#include <algorithm>
#include <memory>
#include <new>

namespace tocsin {

namespace {

// The bits of `cancelers_`.
constexpr std::uint32_t admits = 1;
constexpr std::uint32_t one_canceler = 2;
constexpr std::uint32_t owner_waits = 1u << 31;

}  // namespace

// The end of a wait that a look in start() has ended. It exists while it is queued or an executor has it.
class operation_base::early_end final : public core::resumable {
public:
    static early_end& make(operation_base& of) noexcept {
        static_assert(sizeof(early_end) <= detail::wait_slot_size &&
                      alignof(early_end) <= alignof(std::max_align_t));
        return *::new (of.unused_slots()) early_end(of);
    }
    static early_end& of(operation_base& self) noexcept {
        return *std::launder(static_cast<early_end*>(self.unused_slots()));
    }
    // False in the child of a fork, if the wait began in the parent.
    bool is_of_this_process() const noexcept { return process_.is_of_this_process(); }
    void queue() noexcept {
        resume_here([](resumable& next) noexcept { static_cast<early_end&>(next).self_.finish(); });
    }
    void hand_over() noexcept {
        hand_over_here([](resumable& next) noexcept {
            auto& end = static_cast<early_end&>(next);
            if (!core::post(end.self_.executor_, end, &end.self_)) end.queue();
        });
    }

private:
    // `released` is null, because only queue() and hand_over() make the resumable run.
    explicit early_end(operation_base& of) noexcept : resumable(nullptr), self_(of) {}

    operation_base& self_;
    const core::process_stamp process_;
};

// A wait for any of one source, without limits.
class operation_base::single final : public core::single_wait {
public:
    explicit single(operation_base& of) noexcept
        : single_wait(released, {source_of(of).object(), static_cast<core::wait_kind>(how_of(of).wait_kind)},
                      how_of(of).use),
          self_(of) {}

    static const source& source_of(const operation_base& self) noexcept { return self.sources()[0]; }
    static const detail::lot_source& how_of(const operation_base& self) noexcept {
        return source_of(self).lot();
    }

private:
    static void released(resumable& one) noexcept {
        if (static_cast<single&>(one).self_.executor_.object == nullptr) return finish_here(one);
        one.hand_over_here([](resumable& next) noexcept {
            operation_base& self = static_cast<single&>(next).self_;
            if (!core::post(self.executor_, next, &self)) finish_here(next);
        });
    }
    static void finish_here(resumable& one) noexcept {
        one.resume_here([](resumable& next) noexcept { static_cast<single&>(next).self_.finish(); });
    }

    operation_base& self_;
};

void operation_base::die_of_misuse(const char* message) noexcept { platform::die(message); }

void operation_base::start_slow(void* memory) {
    if (TOCSIN_CHECKED && busy_) platform::die("tocsin: an operation was started that has not ended\n");
    error_ = 0;
    if (is_for_one_in_the_lot()) return start_single(memory);
    if (look()) return end_early();
    const auto run = [](void* who) noexcept { static_cast<operation_base*>(who)->finish(); };
    const begun how = begin(run, this, by_, memory);
    if (how == begun::looked) return end_early();
    busy_ = true;
    quick_left_ = quick_calls_left();
    executor_.posted.store(0, std::memory_order_relaxed);  // no order: nobody else knows of the wait
    if (how == begun::waiting) {
        cancelers_.store(admits, std::memory_order_release);  // [canceler-admitted]
        if (waiting_->suspend()) return;                      // operation-1
    }
    waiting_->end_here();
}

void operation_base::start_single(void* memory) noexcept {
    static_assert(sizeof(single) <= detail::wait_core_size && alignof(single) <= alignof(std::max_align_t));
    std::construct_at(&result_, any_result{wait_status::signaled, 0});
    if (core::take_if_ready(single::source_of(*this))) {
        core::order::after(single::source_of(*this).object());
        return end_early();
    }
    if (single_ == nullptr || !single_->is_of_this_process()) single_ = ::new (memory) single(*this);
    const std::uint8_t quick_left = quick_left_;
    quick_left_ = quick_calls_left();
    busy_ = true;
    executor_.posted.store(0, std::memory_order_relaxed);  // no order: nobody else knows of the wait
    cancelers_.store(admits, std::memory_order_release);   // [canceler-admitted]
    if (single_->park(single::how_of(*this))) return;      // operation-1
    cancelers_.store(0, std::memory_order_relaxed);        // no order: there is nothing to cancel
    busy_ = false;
    quick_left_ = quick_left;
    end_early();
}

// For an operation that is busy, or about to be finished.
bool operation_base::has_parked_single() const noexcept {
    // no order: this thread ends the operation, or destroys it
    return single_ != nullptr && (cancelers_.load(std::memory_order_relaxed) & admits) != 0;
}

// A look in start() has ended the wait.
void operation_base::end_early() noexcept {
    const any_result how = result_;
    if (quick_left_ != 0) {
        count_quick();
        if (how.status == wait_status::signaled) note_taken(how);
        return function_(*this, how);
    }
    quick_left_ = quick_calls_left();
    busy_ = true;
    auto& end = early_end::make(*this);
    executor_.posted.store(0, std::memory_order_relaxed);  // no order: nobody else knows of the wait
    executor_.object == nullptr ? end.queue() : end.hand_over();
}

void operation_base::finish() noexcept {
    if (TOCSIN_CHECKED && !busy_) platform::die("tocsin: an ended_operation was called that is over\n");
    any_result how{wait_status::signaled};
    if (waiting_ != nullptr) {
        wait_for_cancelers();
        waiting_->finish();
        how = waiting_->result(&error_);
        destroy();
    } else if (has_parked_single()) {
        cancelers_.store(0, std::memory_order_relaxed);  // no order: saves later cancels a lock
        if (executor_.object != nullptr) core::wait_until_posted(executor_, *single_);
        how = single_->outcome() == core::claim::stopped ? any_result{wait_status::stopped} : result_;
    } else {
        auto& end = early_end::of(*this);
        if (executor_.object != nullptr) core::wait_until_posted(executor_, end);
        how = result_;
        if (how.status == wait_status::signaled) note_taken(how);
        end.~early_end();
    }
    busy_ = false;
    function_(*this, how);  // operation-3
}

bool operation_base::cancel() noexcept {
    if (is_for_one_in_the_lot()) return cancel_single();
    if (!enter()) return false;
    detail::pending_wait* const wait = waiting_;
    const bool won = wait->try_stop();
    leave();
    if (won) wait->end_stopped();
    return won;
}

bool operation_base::cancel_single() noexcept {
    if ((cancelers_.load(std::memory_order_acquire) & admits) == 0) return false;  // [canceler-admitted]
    if (!single_->is_of_this_process() || !single_->withdraw(single::how_of(*this))) return false;
    single_->end_stopped();
    return true;
}

bool operation_base::enter() noexcept {
    std::uint32_t seen = cancelers_.load(std::memory_order_relaxed);  // no order: the exchange below
    do {
        if ((seen & admits) == 0) return false;
    } while (!cancelers_.compare_exchange_weak(seen, seen + one_canceler,
                                               std::memory_order_acquire,  // [canceler-admitted]
                                               std::memory_order_relaxed));  // no order: tried again, or idle
    return true;
}

void operation_base::leave() noexcept {
    const std::uint32_t before =
        cancelers_.fetch_sub(one_canceler, std::memory_order_release);                   // [canceler-left]
    if (before == (owner_waits | one_canceler)) platform::futex::wake_one(&cancelers_);  // the address alone
}

// Admits no further cancelers. Afterwards there is no canceler.
void operation_base::wait_for_cancelers() noexcept {
    // no order: the wait has ended inside start(), which admitted nobody
    if ((cancelers_.load(std::memory_order_relaxed) & admits) == 0) return;
    if (cancelers_.fetch_sub(admits, std::memory_order_acquire) == admits) return;  // [canceler-left]
    std::uint32_t seen =
        cancelers_.fetch_or(owner_waits, std::memory_order_acquire) | owner_waits;  // [canceler-left]
    while (seen != owner_waits) {
        (void)platform::futex::wait(cancelers_, seen, deadline::never());
        seen = cancelers_.load(std::memory_order_acquire);  // [canceler-left]
    }
    cancelers_.store(0, std::memory_order_relaxed);  // no order: nobody enters now
}

void operation_base::abandon() noexcept {
    if (waiting_ != nullptr) {
        if (TOCSIN_CHECKED && waiting_->is_of_this_process()) check_no_cancel();
        return destroy();
    }
    if (busy_) has_parked_single() ? abandon_single() : abandon_early_end();
    if (single_ != nullptr) single_->~single();
}

void operation_base::abandon_single() noexcept {
    if (!single_->is_of_this_process() || single_->withdraw(single::how_of(*this))) return;
    take_from_executor(*single_);
    if (single_->outcome() == core::claim::signaled) core::give_back(single::source_of(*this));
}

void operation_base::abandon_early_end() noexcept {
    auto& end = early_end::of(*this);
    if (!end.is_of_this_process()) return;
    take_from_executor(end);
    if (result_.status == wait_status::signaled) core::give_back(sources()[result_.index]);
    end.~early_end();
}

// Called when the operation is destroyed after its wait has ended, and before its function is called.
void operation_base::take_from_executor(core::resumable& end) noexcept {
    const bool was_queued = executor_.object != nullptr ? end.cancel_in_this_thread() : end.cancel();
    if (!was_queued && executor_.object != nullptr) {
        core::wait_until_posted(executor_, end);
    } else if (TOCSIN_CHECKED && !was_queued) {
        platform::die(detail::destroyed_too_early);
    }
}

void operation_base::check_no_cancel() const noexcept {
    const std::uint32_t seen = cancelers_.load(std::memory_order_relaxed);  // no order: only a check
    if ((seen & ~admits) != 0)
        platform::die("tocsin: an operation was destroyed while another thread was inside cancel()\n");
}

void operation_base::set_limits(const limits& how) noexcept {
    if (TOCSIN_CHECKED && busy_) platform::die("tocsin: an operation was started that has not ended\n");
    limit(how);
}

// Where the parts of a span_operation are, in bytes from its beginning.
struct span_operation::parts {
    static constexpr std::size_t rounded(std::size_t size) noexcept {
        return (size + operation_alignment - 1) / operation_alignment * operation_alignment;
    }

    explicit constexpr parts(std::size_t count) noexcept
        : sources(rounded(sizeof(span_operation))),
          slots(sources + rounded(count * sizeof(source))),
          descriptors(slots + rounded(count * detail::wait_slot_size)),
          buckets(descriptors + rounded(count * 16)),
          wait(buckets + rounded(count * sizeof(std::uint16_t))),
          size(wait + detail::wait_memory_size(detail::wait_needs::mixture)) {}

    std::size_t sources;
    std::size_t slots;
    std::size_t descriptors;
    std::size_t buckets;
    std::size_t wait;
    std::size_t size;
};

std::size_t span_operation::size(std::size_t sources) noexcept { return parts(sources).size; }

span_operation& span_operation::make(void* memory, bool all, std::span<const source> sources,
                                     const limits& how, function to_call, void* context) noexcept {
    const parts at(sources.size());
    auto* const begin = static_cast<std::byte*>(memory);
    auto* const copies = reinterpret_cast<source*>(begin + at.sources);
    std::uninitialized_copy(sources.begin(), sources.end(), copies);
    const detail::wait_storage storage{begin + at.slots, reinterpret_cast<std::uint16_t*>(begin + at.buckets),
                                       begin + at.descriptors};
    return *::new (memory)
        span_operation({copies, sources.size()}, all, how, storage, begin + at.wait, to_call, context);
}

span_operation::span_operation(std::span<const source> sources, bool all, const limits& how,
                               const detail::wait_storage& storage, void* memory, function to_call,
                               void* context) noexcept
    : operation_base(
          [](operation_base& self, const any_result& result) noexcept {
              const auto& operation = static_cast<span_operation&>(self);
              operation.to_call_(operation.context_, result);
          },
          sources, all, detail::wait_needs::mixture, how, storage),
      memory_(memory),
      to_call_(to_call),
      context_(context) {}

span_operation::~span_operation() { stop_waiting(); }

void span_operation::start() { start_slow(memory_); }

void span_operation::start(const limits& how) {
    set_limits(how);
    start_slow(memory_);
}

}  // namespace tocsin
