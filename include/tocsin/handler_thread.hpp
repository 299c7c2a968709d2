// A handler thread: any number of threads give it jobs; it runs them one after the other.
//
//     tocsin::handler_thread owner;                          // owns some data that only it touches
//     owner.post([&] { cache.erase(key); });                 // returns at once
//     int size = owner.send([&] { return cache.size(); });   // waits for the result
//     co_await tocsin::async_wait(changed).on(owner);        // resumes the coroutine there (await.hpp)
//
// Jobs run in the order in which they were accepted, never two at once. Each sees what the one before did.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/refuse.hpp>
#include <tocsin/event.hpp>
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
#include <variant>
#include <vector>

#if defined(__MINGW32__) && !defined(_GLIBCXX_HAS_GTHREADS)
#error "tocsin/handler_thread.hpp needs std::thread, which the thread model win32 of MinGW-w64 does not have"
#endif

namespace tocsin {

// Thrown by send() when the handler accepts no more jobs, or when its job was dropped.
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

// Something to run once: any movable callable without arguments. A callable of up to 48 bytes that is trivially
// copyable (references, pointers, numbers) is stored inside; others are allocated.
class job {
public:
    template <class Call>
        requires(std::invocable<std::decay_t<Call>&> && !std::same_as<std::decay_t<Call>, job>)
    job(Call&& call) {  // implicit on purpose
        using callable = std::decay_t<Call>;
        if constexpr (is_small<callable>) {
            ::new (static_cast<void*>(place_)) callable(std::forward<Call>(call));
            what_ = &inside<callable>;
        } else {
            ::new (static_cast<void*>(place_)) void*(new callable(std::forward<Call>(call)));
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

    // Whether it is still to be run: false (it is empty) once it was run, moved from, or accepted by a handler.
    explicit operator bool() const noexcept { return what_ != nullptr; }

    // Runs it, and destroys the callable even if that throws. It must not be empty.
    void operator()() {
        job self(std::move(*this));
        self.what_->run(self.place_);
    }

private:
    friend class handler_thread;

    struct operations {
        void (*run)(void* place);
        void (*drop)(void* place) noexcept;  // or null
    };

    template <class Call>
    static constexpr bool is_small =
        sizeof(Call) <= 48 && alignof(Call) <= alignof(void*) && std::is_trivially_copyable_v<Call>;
    template <class Call>
    static constexpr operations inside{[](void* place) { (*std::launder(static_cast<Call*>(place)))(); },
                                       nullptr};
    template <class Call>
    static constexpr operations outside{
        [](void* place) { (**std::launder(static_cast<Call**>(place)))(); },
        [](void* place) noexcept { delete *std::launder(static_cast<Call**>(place)); }};

    job(const operations& what, void* pointer) noexcept : what_(&what) {
        ::new (static_cast<void*>(place_)) void*(pointer);
    }

    void take(job& other) noexcept {
        std::memcpy(place_, other.place_, sizeof place_);
        what_ = std::exchange(other.what_, nullptr);
    }
    void drop() noexcept {
        if (what_ != nullptr && what_->drop != nullptr) what_->drop(place_);
        what_ = nullptr;
    }

    const operations* what_ = nullptr;
    alignas(void*) unsigned char place_[48];
};

struct handler_options {
    // How many jobs may be queued. When the queue is full, post() waits and try_post() returns `full`. The handler
    // takes the whole queue at once, so it may hold as many again. The default never fills.
    std::size_t capacity = (std::numeric_limits<std::size_t>::max)();
    // Called in the handler thread with what a posted job throws. Without it, the program ends as if a thread's
    // function had thrown. What a sent job throws goes to its sender.
    std::function<void(std::exception_ptr)> on_exception;
};

class TOCSIN_API handler_thread {
public:
    // Starts the thread. Throws std::system_error if that fails, std::invalid_argument for a capacity of 0.
    explicit handler_thread(handler_options options = {});

    // As join(). Must not run in a job of this handler, or while another thread still calls a member.
    ~handler_thread();
    handler_thread(const handler_thread&) = delete;
    handler_thread& operator=(const handler_thread&) = delete;

    // Queues the job and returns true. If a job is accepted, what the caller did before is visible to it; it is run
    // once, or handed out once by cancel(). post() waits while the queue is full. In a job of the same handler it never
    // waits, but exceeds the capacity (it would wait for itself). Returns false if the handler is closed: the job
    // remains with the caller. So a job that posts itself again ends when its handler does. Throws std::bad_alloc.
    // Cost: a short lock, and one system call if the handler sleeps. Of many posts to a sleeping handler one wakes
    // it; posts to a running one wake nothing. Allocates for a large callable, and as the queue grows.
    bool post(job&& work);

    // The same without waiting, or with a wait that has an end. A job that was not accepted remains with the caller.
    [[nodiscard]] post_status try_post(job&& work);
    template <class Rep, class Period>
    [[nodiscard]] post_status post_for(job&& work, std::chrono::duration<Rep, Period> longest,
                                       const stop_token& stop = {}) {
        return post_until(std::move(work), longest, stop);
    }
    [[nodiscard]] post_status post_until(job&& work, const deadline& until, const stop_token& stop = {});

    // Runs `call` in the handler thread, and returns what it returns or throws what it throws. In a job of the same
    // handler it runs at once, ahead of what is queued. Waits for room in the queue, then for the result: two
    // handlers that send to each other wait for ever.
    // Throws handler_closed if `call` will never be run. Allocates nothing for it.
    // Cost: that of post(), and a sleep.
    template <class Call>
        requires std::invocable<Call&>
    std::invoke_result_t<Call&> send(Call&& call);

    // An executor of coroutines (await.hpp): queues a job that resumes this one. Never waits, but exceeds the capacity.
    // Returns false, and will not resume it, if the handler is closed or there is no memory for the queue to grow;
    // the coroutine then resumes in the thread that ended its wait. So none is lost, whenever the handler closes. To
    // cancel such a wait, stop it by a token: a coroutine whose job is queued must not be destroyed.
    bool operator()(std::coroutine_handle<> who) noexcept;

    // Accepts no more jobs. The thread ends when it has run what is queued. Threads that wait for room get `closed`.
    // Any thread may call it, even a job. Returns at once.
    void close() noexcept;

    // Closes, and waits until everything has been run. In a job of this handler it only closes.
    void join() noexcept;

    // Closes, waits for the job that is under way, and returns those that have not begun, oldest first. If the caller
    // runs a sent job among them, its sender gets the result; if the caller drops it, send() throws. A job that resumes
    // a coroutine does so even if the caller drops it. In a job of this handler it waits for nothing. If it throws
    // std::bad_alloc, the next call returns the jobs.
    [[nodiscard]] std::vector<job> cancel();

    // Whether it accepts no more jobs. Cost: a short lock.
    [[nodiscard]] bool is_closed() const noexcept;
    // Whether the calling thread is the handler thread.
    [[nodiscard]] bool is_this_thread() const noexcept;
    // How many jobs are queued right now, without those that the handler has taken. Cost: a short lock.
    [[nodiscard]] std::size_t queued() const noexcept;

private:
    template <class Call>
    class sent_call;

    enum class when_full : std::uint8_t { refuse, wait, exceed };

    post_status accept(job& work, const deadline& until, const stop_token* stop, when_full full);
    bool take_batch();
    void run_batch() noexcept;
    void run() noexcept;
    void pass_on_room(bool more) noexcept;

    const handler_options options_;
    mutable word_lock<> lock_;
    std::vector<job> queue_;    // under the lock
    std::size_t blocked_ = 0;   // under the lock: how many wait for room
    bool closed_ = false;       // under the lock
    std::vector<job> batch_;    // only the handler thread touches it; under the lock once it has finished
    std::size_t position_ = 0;  // the same: the next of the batch
    detail::atomic<bool> cancelled_{false};
    auto_reset_event ready_;       // to the handler: there is something in the queue, or it was closed
    auto_reset_event room_;        // to one thread that waits for room: look again
    manual_reset_event finished_;  // the handler runs no more jobs
    std::thread thread_;
};

// A call whose sender waits, on the sender's stack.
template <class Call>
class handler_thread::sent_call {
public:
    using result = std::invoke_result_t<Call&>;

    explicit sent_call(Call& call) noexcept : call_(call) {}

    job as_job() noexcept { return job(operations, this); }

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
    using kept = std::conditional_t<
        std::is_void_v<result>, std::monostate,
        std::conditional_t<std::is_reference_v<result>, std::remove_reference_t<result>*, result>>;

    void run() noexcept {
        TOCSIN_TRY {
            if constexpr (std::is_void_v<result>) {
                std::invoke(call_);
                value_.emplace();
            } else if constexpr (std::is_reference_v<result>) {
                auto&& reference = std::invoke(call_);
                value_.emplace(std::addressof(reference));
            } else {
                value_.emplace(std::invoke(call_));
            }
        }
        TOCSIN_CATCH(...) { error_ = std::current_exception(); }
        done_.set();
    }

    static sent_call& at(void* place) noexcept { return **std::launder(static_cast<sent_call**>(place)); }
    // Once run, the sender may be gone: the job forgets it first.
    static constexpr job::operations operations{
        [](void* place) {
            sent_call& self = at(place);
            ::new (place) void*(nullptr);
            self.run();
        },
        [](void* place) noexcept {
            if (*std::launder(static_cast<sent_call**>(place)) != nullptr) at(place).done_.set();
        }};

    Call& call_;
    std::optional<kept> value_;
    std::exception_ptr error_;
    manual_reset_event done_;
};

template <class Call>
    requires std::invocable<Call&>
std::invoke_result_t<Call&> handler_thread::send(Call&& call) {
    if (is_this_thread()) return std::invoke(call);
    using callable = std::remove_reference_t<Call>;
    sent_call<callable> sent(call);
    if (!post(sent.as_job())) detail::throw_or_die(handler_closed());
    return sent.wait();
}

}  // namespace tocsin
