// SPDX-License-Identifier: Apache-2.0
// A handler_thread has a queue under a lock, an event for the handler, and an event for the threads that wait for room.
//
// State
//   queue, closed, blocked   Touched only under the lock. `blocked` counts the threads that wait for room.
//   batch, position          Touched only by the handler: the jobs that it has taken, and how many it has begun.
//   ready                    Set when the queue stops being empty, and by close().
//   finished                 Set by the handler once it runs no more jobs.
//   room                     Set when a blocked thread may find room, or may find that the handler is closed.
//
// Invariants
//   handler_thread-1  Each job is in exactly one place: with its poster, in the queue, in the batch, being run by the
//       handler, or with the thread that called cancel().
//   handler_thread-2  Whenever the lock is free and the handler sleeps, one of these holds: the queue is empty; `ready`
//       is set; the thread that put a job into the empty queue is about to set `ready`.
//   handler_thread-3  Whenever the lock is free and a thread is blocked although the queue has room or is closed, one
//       of these holds: `room` is set; a thread is about to set `room`; a thread that `room` woke is on its way to the
//       lock, and will set `room` again if others are to be woken.
//   handler_thread-4  Once closed, the queue accepts no job. The handler ends when it finds the queue empty and closed,
//       or finds `cancelled` set.
//   handler_thread-5  Only the handler touches batch and position until it has set `finished`. After that, a thread
//       that holds the lock may touch them.
//   handler_thread-6  No code of a job runs under the lock: no job runs or is destroyed, and jobs are moved as bytes.
//
// No lost wake-up: `ready` and `room` remember a set that comes before the wait. As for handler_thread-3, the thread
// that `room` wakes takes the lock. If there is room and the handler is not closed, this thread puts its job into the
// queue. If others are still blocked then, and there is still room or the handler is closed, this thread sets `room`
// again. A thread that gives up at a deadline or a stop has not taken a set of `room` (event.hpp). So it need not set
// `room` again.
//
// A closed handler refuses every job and every coroutine. (What follows about coroutines holds for the functions of
// operations, too.) A refused job stays with its poster, who is told. A refused coroutine stays with the thread that
// ended its wait, and that thread resumes it (await.cpp). An accepted coroutine is a job like any other: the handler
// runs it, or cancel() hands it out. If the caller of cancel() destroys the job without running it, the job's
// destructor resumes the coroutine.
//
// A thread in send() waits on an event on its own stack. This event is set once: by the job when it has run, or by the
// job's destructor if the job was destroyed without running. Before the job runs the sender's call, it clears its own
// pointer to the sender. So the destructor of a job that has run does not touch the sender again.
//
// Memory order: the lock and the events order everything. `cancelled` is a hint. The handler may see it one job late,
// as the contract allows.
//
// Fork: the child has no handler thread. A thread of the parent may have held the lock, in the middle of a change. So
// the child's destructor touches neither the lock nor the queue nor the batch, and frees none of their memory. It does
// not even detach the thread: a thread that the child has started may have got the same handle.
//
// Why a lock and two vectors that change places, and not a lock-free list: docs/decisions/0011-handler-queue.md.
//
// Checked by: tests/unit/handler_thread_test.cpp, tests/internal/out_of_memory_test.cpp (handler_thread-3),
// tests/stress/handler_thread_stress_test.cpp.
#include "core/lot/lot.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/user_call_scope.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/operation.hpp>

#include <iterator>
#include <mutex>
#include <new>
#include <utility>

namespace tocsin {

namespace {
// A batch with more capacity than this gives its memory back after its jobs have run.
constexpr std::size_t kept_capacity = 4096;

}  // namespace

handler_closed::~handler_closed() = default;

handler_thread::handler_thread(handler_options options)
    : options_(std::move(options)), forks_(core::forks()) {
    if (options_.capacity == 0) {
        detail::throw_or_die(
            std::invalid_argument("tocsin::handler_thread: the capacity must be at least 1"));
    }
    TOCSIN_TRY {
        thread_ = std::thread([this] { run(); });
    }
    TOCSIN_CATCH_SYSTEM_ERROR(error) {
        detail::throw_or_die(
            std::system_error(error.code(), "tocsin::handler_thread: can't start its thread"));
    }
}

handler_thread::~handler_thread() {
    if (!core::process_stamp(forks_).is_of_this_process()) {
        new (&queue_) std::vector<job>;
        new (&batch_) std::vector<job>;
        new (&thread_) std::thread;
        return;
    }
    if (is_this_thread())
        platform::die("tocsin: handler_thread destroyed inside its own job, which it would wait for\n");
    close();
    const platform::cancellation_disabled here;
    thread_.join();
}

bool handler_thread::is_this_thread() const noexcept {
    return core::user_call_scope::is_inside(core::user_call::job, this);
}

std::size_t handler_thread::queued() const noexcept {
    const std::lock_guard held(lock_);
    return queue_.size();
}

bool handler_thread::is_closed() const noexcept {
    const std::lock_guard held(lock_);
    return closed_;
}

bool handler_thread::post(job&& work) {
    return accept(work, deadline::never(), nullptr, when_full::wait) == post_status::posted;
}

post_status handler_thread::try_post(job&& work) {
    return accept(work, deadline::never(), nullptr, when_full::refuse);
}

post_status handler_thread::post_until(job&& work, const deadline& until, const stop_token& stop) {
    return accept(work, until, &stop, when_full::wait);
}

namespace {

// `storage` holds what is to run, until the job runs it. A job that is dropped without having run also runs it.
template <auto Run>
void run_once(void* storage) {
    if (void* const who = std::exchange(*std::launder(static_cast<void**>(storage)), nullptr)) Run(who);
}
template <auto Run>
void drop_once(void* storage) noexcept {
    run_once<Run>(storage);
}

void resume(void* frame) { std::coroutine_handle<>::from_address(frame).resume(); }
void call(void* operation) { ended_operation::from_address(operation)(); }

}  // namespace

bool handler_thread::operator()(std::coroutine_handle<> who) noexcept {
    static constexpr job::actions resumption{run_once<resume>, drop_once<resume>};
    return accept_end(who.address(), resumption);
}

bool handler_thread::operator()(ended_operation who) noexcept {
    static constexpr job::actions end{run_once<call>, drop_once<call>};
    return accept_end(who.address(), end);
}

// Queues a job for a wait that has ended.
bool handler_thread::accept_end(void* who, const job::actions& how) noexcept {
    job work(how, who);
    TOCSIN_TRY {
        if (accept(work, deadline::never(), nullptr, when_full::exceed) == post_status::posted) return true;
    }
    TOCSIN_CATCH(const std::bad_alloc&) {}  // what is to run is still in `work`
    work.what_ = nullptr;
    return false;
}

post_status handler_thread::accept(job& work, const deadline& until, const stop_token* stop, when_full full) {
    const bool has_room_always = full == when_full::exceed || (full == when_full::wait && is_this_thread());
    wait_status how = wait_status::signaled;
    core::order::before(this);
    for (bool was_blocked = false;; was_blocked = true) {
        {
            std::unique_lock held(lock_);
            if (was_blocked) --blocked_;
            const bool room = has_room_always || queue_.size() < options_.capacity;
            if (closed_ || room) {
                const post_status result = closed_ ? post_status::closed : post_status::posted;
                const bool first = queue_.empty();
                if (!closed_) {
                    TOCSIN_TRY { queue_.push_back(std::move(work)); }
                    TOCSIN_CATCH(...) {
                        // There is no memory. The room is still free, for the next thread (handler_thread-3).
                        held.unlock();
                        pass_on_room(was_blocked);
                        TOCSIN_RETHROW;
                    }
                }
                const bool more = blocked_ != 0 && (closed_ || queue_.size() < options_.capacity);
                held.unlock();
                if (first && result == post_status::posted) ready_.set();
                if (was_blocked) pass_on_room(more);
                return result;
            }
            if (full == when_full::refuse) return post_status::full;
            if (how == wait_status::timed_out) return post_status::timed_out;
            if (how == wait_status::stopped) return post_status::stopped;
            ++blocked_;
        }
        how = stop != nullptr ? room_.wait_until(until, *stop) : room_.wait_until(until);
    }
}

void handler_thread::pass_on_room(bool more) noexcept {
    if (more) room_.set();
}

void handler_thread::close() noexcept {
    bool more;
    {
        const std::lock_guard held(lock_);
        closed_ = true;
        more = blocked_ != 0;
    }
    ready_.set();
    pass_on_room(more);
}

void handler_thread::join() noexcept {
    close();
    if (!is_this_thread()) finished_.wait();
    core::order::after(this);
}

std::vector<job> handler_thread::cancel() {
    cancelled_.store(true, std::memory_order_relaxed);  // no order: a hint
    close();
    if (!is_this_thread()) finished_.wait();
    core::order::after(this);
    std::vector<job> left;
    const std::lock_guard held(lock_);
    left.reserve(batch_.size() - position_ + queue_.size());  // no later step throws
    const auto next = batch_.begin() + static_cast<std::ptrdiff_t>(position_);
    left.insert(left.end(), std::make_move_iterator(next), std::make_move_iterator(batch_.end()));
    left.insert(left.end(), std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
    batch_.clear();  // its jobs were moved out, so no object of the user is destroyed (handler_thread-6)
    queue_.clear();
    position_ = 0;
    return left;
}

// Returns false if no job is left and no more will come.
bool handler_thread::take_batch() {
    for (;;) {
        bool more;
        {
            const std::lock_guard held(lock_);
            if (queue_.empty() && closed_) return false;
            batch_.swap(queue_);
            more = blocked_ != 0 && !batch_.empty();
        }
        pass_on_room(more);
        if (!batch_.empty()) {
            core::order::after(this);
            return true;
        }
        ready_.wait();
    }
}

void handler_thread::run_batch() noexcept {
    while (position_ < batch_.size() && !cancelled_.load(std::memory_order_relaxed)) {  // no order: a hint
        job next = std::move(batch_[position_++]);
        TOCSIN_TRY { next(); }
        TOCSIN_CATCH(...) {
            if (!options_.on_exception) std::terminate();  // its message can name the exception
            options_.on_exception(std::current_exception());
        }
    }
}

void handler_thread::run() noexcept {
    // is_this_thread() looks for this mark, since it may be called before `thread_` is assigned.
    const core::user_call_scope inside(core::user_call::job, this);
    while (take_batch()) {
        run_batch();
        if (cancelled_.load(std::memory_order_relaxed)) break;  // no order: a hint
        batch_.clear();
        position_ = 0;
        if (batch_.capacity() > kept_capacity) batch_ = std::vector<job>();
    }
    core::order::before(this);
    finished_.set();
}

}  // namespace tocsin
