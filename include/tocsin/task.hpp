// SPDX-License-Identifier: Apache-2.0
// A type for coroutines that wait (await.hpp): small, started when it is awaited, ended by a stop token.
//
//     tocsin::task<int> answer(tocsin::manual_reset_event& ready) {
//         co_await tocsin::async_wait(ready);
//         co_return 42;
//     }
//     int main() { ... return tocsin::sync_wait(answer(ready)); }
//
//     tocsin::task<> serve(tocsin::channel<job>& jobs) {
//         const auto stop = co_await tocsin::this_stop_token;       // of whoever awaits this task
//         auto one = work(jobs);
//         auto other = watch(jobs);
//         const auto first = co_await tocsin::when_any(one, other, shutdown);     // tasks and sources
//         if (first.index == 0) use(one.result());
//     }
//
// This is one type among many: every coroutine type may await the waits of this library.
//
// With GCC 12.2, give each result of `co_await` a name before you use it in the condition of an `if` or a `while`. That
// compiler sometimes compiles `if (co_await ...)` wrongly: the coroutine hangs or crashes, with any library.
//
// A task starts when it is awaited, when sync_wait() or when_any() starts it, and not before. It is awaited once. The
// coroutine that awaits it continues in the thread in which the task ends, without growing the stack. An exception that
// leaves the task leaves the co_await, sync_wait() or result(). A task that is destroyed before it has ended destroys
// its coroutine, with the tasks that this one awaits; docs/guide.md says when a coroutine that waits may be destroyed.
// Each coroutine takes one allocation. (A compiler may leave it out.) The program ends with a message if a task
// is used that was moved from, is awaited after it has begun, or is asked for a result that it does not have.
//
// Stops
//   A task has the stop token of the coroutine that awaits it, or of the sync_wait() or when_any() that started it.
//   `co_await tocsin::this_stop_token` gives it, without suspending. A stop alone ends nothing: pass the token to
//   the waits, in their limits. So a task decides where it may be stopped, and what it does then.
#pragma once

#include <tocsin/await.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/misuse.hpp>
#include <tocsin/event.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/stop_token.hpp>
#include <tocsin/wait.hpp>

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace tocsin {

template <class T>
class task;

namespace detail {

class task_promise_base {
public:
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct end {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> frame) const noexcept {
            task_promise_base& self = frame.promise();
            if (self.awaits_ != nullptr) return self.awaits_;
            self.ended_.set();  // after which the frame may be gone
            return std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };
    end final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { thrown_ = std::current_exception(); }

    manual_reset_event& ended() noexcept { return ended_; }
    void begin(stop_token stop, std::coroutine_handle<> awaits) noexcept {
        stop_ = std::move(stop);
        awaits_ = awaits;
        begun_ = true;
    }
    bool has_begun() const noexcept { return begun_; }
    bool is_awaited() const noexcept { return awaits_ != nullptr; }
    const stop_token& stop() const noexcept { return stop_; }

protected:
    void rethrow() const {
#if defined(__cpp_exceptions)
        if (thrown_ != nullptr) std::rethrow_exception(thrown_);
#endif
    }

private:
    manual_reset_event ended_;  // set at the end, if no coroutine awaits the task
    bool begun_ = false;
    std::coroutine_handle<> awaits_ = nullptr;
    stop_token stop_;
    std::exception_ptr thrown_;
};

// The stop token of the coroutine that awaits: that of a task. Other coroutines have none.
template <class Promise>
stop_token stop_of(std::coroutine_handle<Promise> who) noexcept {
    if constexpr (std::is_base_of_v<task_promise_base, Promise>) {
        return who.promise().stop();
    } else {
        return {};
    }
}

template <class T>
class task_promise final : public task_promise_base {
public:
    task<T> get_return_object() noexcept;
    template <class Value>
        requires std::is_constructible_v<T, Value>
    void return_value(Value&& value) {
        value_.emplace(std::forward<Value>(value));
    }
    T result() {
        rethrow();
        return std::move(*value_);
    }

private:
    std::optional<T> value_;
};

template <>
class task_promise<void> final : public task_promise_base {
public:
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void result() const { rethrow(); }
};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

struct task_access;

}  // namespace detail

// co_await it in a task: `const auto stop = co_await tocsin::this_stop_token;`. In other coroutines it gives a token
// that is never stopped.
struct this_stop_token_t {
    // What `co_await` makes of it. It never suspends.
    struct awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> who) noexcept {
            token = detail::stop_of(who);
            return false;
        }
        stop_token await_resume() noexcept { return std::move(token); }

        stop_token token{};  // of the coroutine, once it has awaited
    };
    awaiter operator co_await() const noexcept { return {}; }
};
// The one object of its type.
inline constexpr this_stop_token_t this_stop_token{};

template <class T = void>
class [[nodiscard]] task {
public:
    static_assert(!std::is_reference_v<T>, "tocsin: a task returns an object: let it return a pointer");

    using promise_type = detail::task_promise<T>;

    task(task&& from) noexcept : frame_(std::exchange(from.frame_, nullptr)) {}
    task& operator=(task&& from) noexcept {
        std::swap(frame_, from.frame_);
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }

    // For a task that when_any() has started, and not a coroutine that awaits it: whether it has ended.
    [[nodiscard]] bool has_ended() const noexcept { return promise().ended().is_set(); }
    // Moves the result out, or throws what has left the task. The task must have ended, started by when_any().
    T result() {
        if (promise().is_awaited()) refuse("its result went to the coroutine that has awaited it");
        if (!has_ended()) refuse("result() was called before it has ended");
        return promise().result();
    }

    // Starts the task. The coroutine that awaits it continues when the task has ended. Await a task once.
    struct awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> who) noexcept {
            frame.promise().begin(detail::stop_of(who), who);
            return frame;
        }
        T await_resume() { return frame.promise().result(); }

        std::coroutine_handle<promise_type> frame;  // of the task
    };
    awaiter operator co_await() noexcept {
        if (promise().has_begun()) refuse("it was awaited, but has begun before");
        return {frame_};
    }

private:
    friend promise_type;
    friend detail::task_access;

    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    [[noreturn]] void refuse(const char* reason) const noexcept {
        detail::die_of_misuse("task", this, reason);
    }
    promise_type& promise() const noexcept {
        if (!frame_) refuse("it was moved from");
        return frame_.promise();
    }

    std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

struct task_access {
    template <class T>
    static manual_reset_event& ended(const task<T>& of) noexcept {
        return of.promise().ended();
    }
    template <class T>
    static void start(const task<T>& one, stop_token stop) {
        if (one.promise().is_awaited()) one.refuse("a coroutine has awaited it before");
        if (one.promise().has_begun()) return;
        one.promise().begin(std::move(stop), nullptr);
        one.frame_.resume();
    }
};

}  // namespace detail

// Starts the task in this thread, and sleeps until the task has ended, in whatever thread that is. Returns the task's
// result, or throws what has left it. Don't call it in a coroutine: the thread may be the one that the task needs.
template <class T>
T sync_wait(task<T>&& one, const stop_token& stop = {}) {
    task<T> mine(std::move(one));  // so that its coroutine is gone when this call returns
    detail::task_access::start(mine, stop);
    detail::task_access::ended(mine).wait();
    return mine.result();
}
template <class T>
T sync_wait(task<T>& one, const stop_token& stop = {}) {
    static_assert(!detail::is_task<std::remove_reference_t<decltype(one)>>,
                  "tocsin: sync_wait() takes the task over: write sync_wait(std::move(task))");
    return sync_wait(std::move(one), stop);
}

// Starts those tasks that have not begun, and waits for the first of the tasks and sources: for a task until it has
// ended, for a source as async_wait_any() does. Then it requests a stop of the tasks that it has started, waits until
// they have all ended, and returns which was the first. `index` counts the arguments from zero. Call result() of a task
// afterwards, also to see its exception. If a stop of the awaiting task is requested, when_any() stops the tasks, too,
// and the status says `stopped`, unless one of the arguments was first. Tasks are passed as objects that have a name,
// and exist until when_any() has ended. The tasks' waits must take their stop token. A task that ignores it holds
// when_any() up until it ends.
template <class... Arguments>
task<any_result> when_any(Arguments&... of) {
    const stop_token outer = co_await this_stop_token;
    std::stop_source stop;
    const auto start = [&](auto& one) {
        if constexpr (detail::is_task<std::remove_cvref_t<decltype(one)>>)
            detail::task_access::start(one, stop.get_token());
    };
    (start(of), ...);
    const auto source_of = [](auto& one) noexcept -> source {
        if constexpr (detail::is_task<std::remove_cvref_t<decltype(one)>>) {
            return source(detail::task_access::ended(one));
        } else {
            return source(one);
        }
    };
    any_result first{wait_status::stopped};
    std::exception_ptr failed;
    TOCSIN_TRY { first = co_await async_wait_any({.stop = outer}, source_of(of)...); }
    TOCSIN_CATCH(...) { failed = std::current_exception(); }
    stop.request_stop();
    std::array<source, sizeof...(Arguments)> all{source_of(of)...};
    constexpr std::array<bool, sizeof...(Arguments)> is_task{
        detail::is_task<std::remove_cvref_t<Arguments>>...};
    for (std::size_t i = 0; i != all.size(); ++i) {
        if (is_task[i]) co_await async_wait(all[i]);
    }
#if defined(__cpp_exceptions)
    if (failed != nullptr) std::rethrow_exception(failed);
#endif
    co_return first;
}

}  // namespace tocsin
