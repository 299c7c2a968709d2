// SPDX-License-Identifier: Apache-2.0
// A thread that runs jobs, one after the other. Any number of threads may give it jobs.
//
//     tocsin::handler_thread owner;                          // owns some data that only it touches
//     owner.post([&] { cache.erase(key); });                 // returns at once
//     int size = owner.send([&] { return cache.size(); });   // waits for the result
//     co_await tocsin::async_wait(changed).on(owner);        // resumes the coroutine there (await.hpp)
//
// Jobs run in the order in which they were accepted, never two at the same time. Each job sees what the one before it
// did.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>
#include <tocsin/stop_token.hpp>
#include <tocsin/word_lock.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__MINGW32__) && !defined(_GLIBCXX_HAS_GTHREADS)
#error "tocsin/handler_thread.hpp needs std::thread, which the thread model win32 of MinGW-w64 does not have"
#endif

namespace tocsin {

class ended_operation;  // operation.hpp

// Thrown by send() if its call will never be run: the handler accepted no more jobs, or the job of that send() was
// destroyed without being run.
class TOCSIN_API handler_closed : public std::runtime_error {
public:
    handler_closed() : runtime_error("tocsin::handler_thread: the handler is closed") {}
    ~handler_closed() override;
};

enum class post_status : std::uint8_t {
    posted,
    full,       // try_post only
    timed_out,  // no room before the deadline passed
    stopped,    // no room before a stop was requested
    closed,     // the handler accepts no more jobs
};

// Something to run once, made from any movable callable without arguments. Small callables are stored inside the job:
// those that are trivially copyable (they hold references, pointers and numbers, say), take up to 48 bytes, and need no
// stricter alignment than a pointer. Other callables are allocated.
class job {
public:
    template <class Call>
        requires(std::invocable<std::decay_t<Call>&> && !std::same_as<std::decay_t<Call>, job>)
    job(Call&& call) {  // implicit on purpose
        using callable = std::decay_t<Call>;
        if constexpr (is_small<callable>) {
            ::new (static_cast<void*>(storage_)) callable(std::forward<Call>(call));
            what_ = &inside<callable>;
        } else {
            ::new (static_cast<void*>(storage_)) void*(new callable(std::forward<Call>(call)));
            what_ = &outside<callable>;
        }
    }
    job(job&& other) noexcept { take(other); }
    job& operator=(job&& other) noexcept {
        if (this != &other) {
            drop();
            take(other);
        }
        return *this;
    }
    ~job() { drop(); }

    // Whether the job is still to be run. A job that was run, moved from, or accepted by a handler is empty: false.
    explicit operator bool() const noexcept { return what_ != nullptr; }

    // Runs the job, then destroys the callable, even if running it throws. The job must not be empty.
    void operator()() {
        job self(std::move(*this));
        self.what_->run(self.storage_);
    }

private:
    friend class handler_thread;

    struct actions {
        void (*run)(void* storage);
        void (*drop)(void* storage) noexcept;  // or null
    };

    template <class Call>
    static constexpr bool is_small =
        sizeof(Call) <= 48 && alignof(Call) <= alignof(void*) && std::is_trivially_copyable_v<Call>;
    template <class Call>
    static constexpr actions inside{[](void* storage) { (*std::launder(static_cast<Call*>(storage)))(); },
                                    nullptr};
    template <class Call>
    static constexpr actions outside{
        [](void* storage) { (**std::launder(static_cast<Call**>(storage)))(); },
        [](void* storage) noexcept { delete *std::launder(static_cast<Call**>(storage)); }};

    job(const actions& what TOCSIN_LIFETIMEBOUND, void* pointer) noexcept : what_(&what) {
        ::new (static_cast<void*>(storage_)) void*(pointer);
    }

    void take(job& other) noexcept {
        std::memcpy(storage_, other.storage_, sizeof storage_);
        what_ = std::exchange(other.what_, nullptr);
    }
    void drop() noexcept {
        if (what_ != nullptr && what_->drop != nullptr) what_->drop(storage_);
        what_ = nullptr;
    }

    const actions* what_ = nullptr;
    alignas(void*) unsigned char storage_[48];
};

// The queue of a handler, and what happens to exceptions.
struct handler_options {
    // How many jobs may be queued. While the queue is full, post() waits and try_post() returns `full`. The handler
    // takes all queued jobs in one step. While it runs them, the queue may fill again, so there may be up to twice as
    // many jobs in all. With the default, the queue is never full.
    std::size_t capacity = (std::numeric_limits<std::size_t>::max)();
    // Called in the handler thread with the exception that leaves a posted job, or a coroutine that a job resumes.
    // Without this function, such an exception ends the program, as if a thread's function had thrown it. An exception
    // from a job of send() goes to the thread that called send().
    std::function<void(std::exception_ptr)> on_exception;
};

class TOCSIN_API handler_thread {
public:
    // Starts the thread, which inherits what every new thread inherits from its maker: on Linux the scheduling policy
    // and priority, the nice value, the processors, the timer slack and the signal mask. A job may change them.
    // Throws std::system_error if that fails (usually EAGAIN, or EPERM where a sandbox forbids it),
    // std::invalid_argument for a capacity of 0.
    explicit handler_thread(handler_options options = {});

    // Does what join() does, and waits for the end of the thread. Must not run in the handler thread, or while another
    // thread still calls a member.
    // In the child of a fork, a handler of the parent may only be destroyed. Destroying it there neither runs nor
    // destroys its jobs.
    ~handler_thread();
    handler_thread(const handler_thread&) = delete;
    handler_thread& operator=(const handler_thread&) = delete;

    // Queues the job and returns true. While the queue is full, post() waits for room. But a post() in a job of the
    // same handler would wait for its own thread, so it never waits: it exceeds the capacity instead. An accepted job
    // sees what the caller did before. It is run once, or handed out once by cancel().
    // If the handler is closed, post() returns false, and the job remains with the caller. So a job that posts itself
    // again stops doing so when its handler is closed. Throws std::bad_alloc.
    // Cost: a short lock, and one system call if the handler sleeps. Of many posts to a sleeping handler, only one
    // wakes it. A post to a running handler wakes nothing. Allocates for a large callable, and as the queue grows.
    bool post(job&& work);

    // The same, but try_post() never waits, and post_for() and post_until() stop waiting at the deadline or when a stop
    // is requested. A job that was not accepted remains with the caller.
    [[nodiscard]] post_status try_post(job&& work);
    template <class Rep, class Period>
    [[nodiscard]] post_status post_for(job&& work, std::chrono::duration<Rep, Period> longest,
                                       const stop_token& stop = {}) {
        return post_until(std::move(work), longest, stop);
    }
    [[nodiscard]] post_status post_until(job&& work, const deadline& until, const stop_token& stop = {});

    // Runs `call` in the handler thread, and returns what it returns or throws what it throws. In a job of the same
    // handler, `call` runs at once, ahead of the queued jobs. Otherwise send() waits for room in the queue, then for
    // the result. So two handlers that send to each other at the same time wait for ever.
    // Throws handler_closed if `call` will never be run. Allocates nothing for `call`.
    // Cost: that of post(), and a sleep.
    template <class Call>
        requires std::invocable<Call&>
    std::invoke_result_t<Call&> send(Call&& call);

    // Makes the handler an executor of coroutines (await.hpp): queues a job that resumes the coroutine `who`, and
    // returns true. Never waits: if the queue is full, the call exceeds the capacity. If the handler is closed, or if
    // there is no memory for the queue to grow, returns false and will not resume the coroutine. The coroutine then
    // resumes in the thread that ended its wait. So no coroutine is lost, at whatever moment the handler closes.
    // Do not destroy a coroutine whose job is queued. To end a coroutine's wait early, use a stop token.
    bool operator()(std::coroutine_handle<> who) noexcept;
    // The same for the function of an operation (operation.hpp): the job calls the function, even if the job is
    // destroyed without being run. Do not destroy the operation before the function has been called.
    bool operator()(ended_operation who) noexcept;

    // Makes the handler accept no more jobs. The handler thread ends when it has run the queued jobs. A thread that
    // waits for room in the queue gets `closed`. Any thread may call this, even in a job. Returns at once.
    void close() noexcept;

    // Closes the handler, and waits until it runs no more jobs: all have been run, unless cancel() hands some out. In a
    // job of this handler it only closes.
    void join() noexcept;

    // Closes the handler, waits for the job that is running, and returns the jobs that have not begun, oldest first.
    // - A returned job may be that of a send(). If the caller of cancel() runs the job, that send() returns the result.
    //   If the caller destroys the job without running it, that send() throws.
    // - If a job is to resume a coroutine, the coroutine resumes when the caller runs the job, or destroys the job
    //   without running it.
    // In a job of this handler, cancel() does not wait. If cancel() throws std::bad_alloc, the next cancel() returns
    // the jobs.
    [[nodiscard]] std::vector<job> cancel();

    // The end of the handler, as a source: ready once the handler is closed and runs no more jobs, and then for ever.
    // wait_any(), wait_all(), a wait_set, a pollable and co_await take it. A wait that finds the source ready sees what
    // every job has done. The handler has then run all accepted jobs, or cancel() hands out the others. The handler's
    // thread may still have to return: the destructor joins it. Before that, it only resumes coroutines, and calls
    // functions of operations, that waited for this source without an executor. A source closes nothing, so it is not
    // ready before somebody calls close(), join() or cancel(). A job of this handler that waits for the source waits
    // for ever. The source refers to the handler, which must outlive every wait for it. Cost: that of a
    // manual_reset_event.
    source ended() & noexcept TOCSIN_LIFETIMEBOUND { return finished_; }

    // Whether the handler accepts no more jobs. Cost: a short lock.
    [[nodiscard]] bool is_closed() const noexcept;
    // Whether the calling thread is the handler thread.
    [[nodiscard]] bool is_this_thread() const noexcept;
    // How many jobs are queued right now, without those that the handler has taken. Cost: a short lock.
    [[nodiscard]] std::size_t queued() const noexcept;

private:
    template <class Call>
    class sent_call;

    enum class when_full : std::uint8_t { refuse, wait, exceed };

    bool accept_end(void* who, const job::actions& how) noexcept;
    post_status accept(job& work, const deadline& until, const stop_token* stop, when_full full);
    bool take_batch();
    void run_batch() noexcept;
    void run() noexcept;
    void pass_on_room(bool more) noexcept;

    const handler_options options_;
    const std::uint32_t forks_;  // tells the destructor that it runs in the child of a fork
    mutable word_lock<> lock_;
    std::vector<job> queue_;    // under the lock
    std::size_t blocked_ = 0;   // under the lock: how many threads wait for room
    bool closed_ = false;       // under the lock
    std::vector<job> batch_;    // the handler thread's alone; once `finished_` is set, under the lock
    std::size_t position_ = 0;  // the same: the next job of the batch
    detail::atomic<bool> cancelled_{false};
    auto_reset_event ready_;       // tells the handler that the queue has a job, or that it was closed
    auto_reset_event room_;        // tells one thread that waits for room to look again
    manual_reset_event finished_;  // the handler runs no more jobs
    std::thread thread_;
};

// The call of one send(), on the stack of the sender, which waits for it.
template <class Call>
class handler_thread::sent_call {
public:
    using result = std::invoke_result_t<Call&>;

    explicit sent_call(Call& call TOCSIN_LIFETIMEBOUND) noexcept : call_(call) {}

    job as_job() noexcept { return job(actions, this); }

    result wait() {
        done_.wait();
        if (error_ != nullptr) std::rethrow_exception(error_);
        if (!value_) detail::throw_or_die(handler_closed());
        if constexpr (std::is_reference_v<result>) {
            return static_cast<result>(**value_);
        } else if constexpr (!std::is_void_v<result>) {
            return *std::move(value_);
        }
    }

private:
    struct nothing {};  // as std::monostate, without the cost of <variant>
    using kept = std::conditional_t<
        std::is_void_v<result>, nothing,
        std::conditional_t<std::is_reference_v<result>, std::remove_reference_t<result>*, result>>;

    void run() noexcept {
        TOCSIN_TRY {
            if constexpr (std::is_void_v<result>) {
                call_();
                value_.emplace();
            } else if constexpr (std::is_reference_v<result>) {
                auto&& reference = call_();
                value_.emplace(std::addressof(reference));
            } else {
                value_.emplace(call_());
            }
        }
        TOCSIN_CATCH(...) { error_ = std::current_exception(); }
        done_.set();
    }

    static sent_call& at(void* storage) noexcept { return **std::launder(static_cast<sent_call**>(storage)); }
    // When the call has run, the sender may return, and then this object is gone. So the job forgets the object before
    // it runs the call.
    static constexpr job::actions actions{[](void* storage) {
                                              sent_call& self = at(storage);
                                              ::new (storage) void*(nullptr);
                                              self.run();
                                          },
                                          [](void* storage) noexcept {
                                              if (*std::launder(static_cast<sent_call**>(storage)) != nullptr)
                                                  at(storage).done_.set();
                                          }};

    Call& call_;
    std::optional<kept> value_;
    std::exception_ptr error_;
    manual_reset_event done_;
};

template <class Call>
    requires std::invocable<Call&>
std::invoke_result_t<Call&> handler_thread::send(Call&& call) {
    if (is_this_thread()) return call();
    using callable = std::remove_reference_t<Call>;
    sent_call<callable> sent(call);
    if (!post(sent.as_job())) detail::throw_or_die(handler_closed());
    return sent.wait();
}

}  // namespace tocsin
