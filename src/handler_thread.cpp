// A queue under a lock, an event for the handler, an event for the threads that wait for room.
//
// State
//   queue, closed, blocked   under the lock.
//   batch, position          only the handler touches them: what it has taken and is running.
//   ready                    set when the queue stops being empty, and by close().
//   room                     set when one of the blocked threads may find room, or nothing to wait for.
//
// Invariants
//   handler_thread-1  A job is in exactly one of: its poster, the queue, the batch, the thread that cancelled.
//   handler_thread-2  Whenever the lock is free and the handler sleeps, the queue is empty, or whoever made it not
//       empty is about to set `ready`, or has set it.
//   handler_thread-3  Whenever the lock is free, a thread is blocked, and the queue has room or is closed: `room` is
//       set or about to be, or a thread that it woke is on its way to the lock and will pass it on.
//   handler_thread-4  Once closed, the queue accepts nothing; the handler ends when it finds it empty and closed.
//   handler_thread-5  Only the handler touches batch and position until it has set `finished`; then whoever holds the
//       lock.
//   handler_thread-6  Under the lock no job runs, is moved by its own code, or is destroyed: a job is moved as bytes.
//
// No lost wake-up: `ready` and `room` remember a set that comes before the wait. For handler_thread-3, the thread
// that the event wakes looks under the lock. If it leaves while others are blocked and there is still room, it sets
// the event again. A thread that gives up at a deadline or a stop has not taken a set (event.hpp), and so owes none
// to another.
//
// A send waits on an event on its own stack. That event is set once: by the job when it has run, or by the job's
// destructor when it was dropped. The job forgets its sender before it runs.
//
// Memory order: everything goes through the lock and the events. `cancelled` is a hint that the handler may see one
// job late, as the contract allows.
//
// Why a lock and two vectors that change places, and not a lock-free list: docs/decisions/0011-handler-queue.md.
//
// Checked by: tests/unit/handler_thread_test.cpp, tests/internal/out_of_memory_test.cpp (handler_thread-3),
// tests/stress/handler_thread_stress_test.cpp.
#include <tocsin/detail/refuse.hpp>
#include <tocsin/handler_thread.hpp>

#include <iterator>
#include <mutex>

namespace tocsin {

namespace {
// A queue that has grown beyond this gives its memory back after its jobs have run.
constexpr std::size_t kept_capacity = 4096;

// The handler whose job this thread runs, for is_this_thread(), which may be called before `thread_` is known.
thread_local const handler_thread* handler_of_this_thread = nullptr;
}  // namespace

handler_closed::~handler_closed() = default;

handler_thread::handler_thread(handler_options options) : options_(std::move(options)) {
    if (options_.capacity == 0) {
        detail::throw_or_die(
            std::invalid_argument("tocsin::handler_thread: the capacity must be at least 1"));
    }
    thread_ = std::thread([this] { run(); });
}

handler_thread::~handler_thread() {
    close();
    thread_.join();
}

bool handler_thread::is_this_thread() const noexcept { return handler_of_this_thread == this; }

std::size_t handler_thread::queued() const noexcept {
    const std::lock_guard held(lock_);
    return queue_.size();
}

bool handler_thread::is_closed() const noexcept {
    const std::lock_guard held(lock_);
    return closed_;
}

void handler_thread::post(job&& work) { accept_or_throw(std::move(work)); }

void handler_thread::accept_or_throw(job&& work) {
    if (accept(work, deadline::never(), nullptr, true) == post_status::closed)
        detail::throw_or_die(handler_closed());
}

post_status handler_thread::try_post(job&& work) { return accept(work, deadline::never(), nullptr, false); }

post_status handler_thread::post_until(job&& work, const deadline& until, const stop_token& stop) {
    return accept(work, until, &stop, true);
}

post_status handler_thread::accept(job& work, const deadline& until, const stop_token* stop, bool wait) {
    const bool has_room_always = wait && is_this_thread();
    wait_status how = wait_status::signaled;
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
                        // No memory: the room is still there for the next thread (handler_thread-3).
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
            if (!wait) return post_status::full;
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
}

std::vector<job> handler_thread::cancel() {
    cancelled_.store(true, std::memory_order_relaxed);  // no order: a hint
    close();
    if (!is_this_thread()) finished_.wait();
    std::vector<job> left;
    const std::lock_guard held(lock_);
    left.reserve(batch_.size() - position_ + queue_.size());  // no step after it throws
    const auto next = batch_.begin() + static_cast<std::ptrdiff_t>(position_);
    left.insert(left.end(), std::make_move_iterator(next), std::make_move_iterator(batch_.end()));
    left.insert(left.end(), std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
    batch_.clear();  // of jobs that were moved out: destroys no object of the user (handler_thread-6)
    queue_.clear();
    position_ = 0;
    return left;
}

// False if nothing is left and nothing more will come.
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
        if (!batch_.empty()) return true;
        ready_.wait();
    }
}

void handler_thread::run_batch() noexcept {
    while (position_ < batch_.size() && !cancelled_.load(std::memory_order_relaxed)) {  // no order: a hint
        job next = std::move(batch_[position_++]);
        TOCSIN_TRY { next(); }
        TOCSIN_CATCH(...) {
            if (!options_.on_exception) std::terminate();  // with the exception at hand, for its message
            options_.on_exception(std::current_exception());
        }
    }
}

void handler_thread::run() noexcept {
    handler_of_this_thread = this;
    while (take_batch()) {
        run_batch();
        if (cancelled_.load(std::memory_order_relaxed)) break;  // no order: a hint
        batch_.clear();
        position_ = 0;
        if (batch_.capacity() > kept_capacity) batch_ = std::vector<job>();
    }
    finished_.set();
}

}  // namespace tocsin
