// Coroutines that wait: they co_await whatever threads can wait for (wait.hpp), with the same guarantees.
//
//     task serve(int connection, tocsin::manual_reset_event& shutdown, pool& workers) {
//         co_await tocsin::async_wait(ready);
//         const auto [status, index, found] =
//             co_await tocsin::async_wait_any({.until = 5s}, shutdown, tocsin::readable(connection)).on(workers);
//         co_await tocsin::async_wait_all({.stop = token}, left_fork, right_fork);
//     }
//
// Bring your own coroutine type. The wait is stored in the coroutine's frame (about 900 bytes, and 200 for each
// source) and allocates nothing; only a table of descriptors that all coroutines share may grow. Coroutines queue among
// threads, first in, first out. The lists of parked waits (diagnose.hpp) name the thread in which the coroutine
// suspended.
//
// Where it resumes
//   A coroutine that need not wait continues where it is. Otherwise, by default, the thread that ends the wait
//   resumes it: inside the set(), request_stop() or wake() that ends it, under no lock, after that call has released
//   everybody else. If that thread already runs such a coroutine, it resumes the next one when the first suspends or
//   ends. So a chain of coroutines that wake each other does not grow the stack, and a coroutine that blocks its
//   thread delays those behind it. An exception that leaves a coroutine resumed in this way ends the program
//   (std::terminate) inside the set(). Deadlines, timers and descriptors end a wait in a background thread of the
//   library: resume elsewhere, or be brief. With `.on(executor)`, that thread calls executor(std::coroutine_handle<>)
//   instead. The executor resumes the coroutine later, or in another thread, but not inside the call (which ends the
//   program with a message). It must not throw: that ends the program, too. It is referred to, not copied; a
//   temporary will do.
//
// Background threads
//   Events, stop tokens and your own sources need none. The first co_await with a deadline or timer on the steady
//   clock (or on a clock of your own) starts a thread that serves all of these. So does the first on the system
//   clock, and the first with a descriptor, which also takes a doorbell. These threads sleep while there is nothing
//   to do, handle no signals, and stay until the process ends, even during exit. Each poll costs a step for each
//   descriptor that is waited for. If something else ends a wait with descriptors, the coroutine interrupts that poll
//   before it continues, which costs a switch to the polling thread and back. Afterwards the library does not refer to
//   the descriptors of that wait any more. A co_await throws std::system_error if it can't start a thread or open the
//   doorbell, and std::bad_alloc if the table of descriptors can't grow. These threads call now() of your own clocks
//   under a lock: it must not block or call this library.
//
// Destroying a coroutine that waits
//   This ends its wait: the wait takes nothing, and nobody resumes the coroutine. Any thread may do it, unless another
//   thread might be resuming the coroutine at the same time. Hence:
//   - Inline: where no other thread can set, stop or time out what it waits for, for instance because all of that
//     happens in this thread. Also in a coroutine that the same set() has resumed before it.
//   - With an executor: wherever the executor can't be resuming it, for instance in the executor's only thread. When
//     the destruction returns, no thread is handing it to the executor. But it may have been handed over before: then
//     take the handle out of the executor's queue (or stop the wait by a token, and let the coroutine end).
//   An auto-reset event that the wait had already been given is set again. A source of your own is not given back.
//
// Don't set such events in signal handlers: set() may resume the coroutine in the handler. In the child of a fork, a
// coroutine of the parent that waits may only be destroyed. Between notify and wake (waiting_list), a thread must not
// set or wake another source of the same async_wait_all.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>
#include <tocsin/wait.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace tocsin {
namespace detail {

class awaiting;  // src/await.cpp

// Storage for what a wait needs inside the library, in bytes. src/await.cpp checks that it is enough.
inline constexpr std::size_t async_seat_size = 128;
inline constexpr std::size_t async_wait_size = 768;

struct async_storage {
    void* slots;
    std::uint16_t* buckets;
    void* descriptors;
};

struct async_executor {
    void* object = nullptr;  // null: none
    void (*post)(void* object, std::coroutine_handle<> who) noexcept = nullptr;
};

// The part of a wait that does not depend on the number of sources.
class async_wait_base {
protected:
    async_wait_base(std::span<const source> sources, bool all, const limits& how,
                    const async_storage& storage) noexcept
        : until_(how.until), sources_(sources), storage_(storage), all_(all) {
        if (how.stop.get() != nullptr) stop_ = *how.stop.get();
    }
    async_wait_base(const async_wait_base&) = delete;
    async_wait_base& operator=(const async_wait_base&) = delete;
    ~async_wait_base() {
        if (waiting_ != nullptr) destroy();
    }

    TOCSIN_API bool ready();
    TOCSIN_API bool suspend(std::coroutine_handle<> who);
    TOCSIN_API any_result result();

    const deadline until_;
    stop_token stop_;
    async_executor executor_;

private:
    friend class awaiting;

    TOCSIN_API void destroy() noexcept;

    const std::span<const source> sources_;
    const async_storage storage_;
    const bool all_;
    any_result result_{wait_status::signaled};
    awaiting* waiting_ = nullptr;  // null if the first look ended the wait, else in `memory_`
    alignas(std::max_align_t) std::byte memory_[async_wait_size];
};

}  // namespace detail

// An executor: called with the handle, has the coroutine resumed later.
template <class T>
concept resumes_coroutines = std::invocable<T&, std::coroutine_handle<>>;

// What the functions below return. Await it at once, and once.
template <class Result, std::size_t N>
class [[nodiscard]] async_wait_op : detail::async_wait_base {
public:
    template <class... Sources>
    async_wait_op(const limits& how, bool all, Sources&... from) noexcept
        : async_wait_base(sources_, all, how, {seats_, buckets_, descriptors_}), sources_{source(from)...} {}

    // The executor resumes the coroutine.
    template <class Executor>
        requires resumes_coroutines<Executor>
    async_wait_op& on(Executor&& executor) noexcept {
        using plain = std::remove_reference_t<Executor>;
        executor_.object = const_cast<std::remove_cv_t<plain>*>(std::addressof(executor));
        executor_.post = [](void* object, std::coroutine_handle<> who) noexcept {
            (*static_cast<plain*>(object))(who);
        };
        return *this;
    }

    auto operator co_await() noexcept {
        struct awaiter {
            async_wait_op& self;

            bool await_ready() { return self.ready(); }
            bool await_suspend(std::coroutine_handle<> who) { return self.suspend(who); }
            Result await_resume() {
                if constexpr (std::is_same_v<Result, any_result>) {
                    return self.result();
                } else {
                    return self.result().status;
                }
            }
        };
        return awaiter{*this};
    }

private:
    source sources_[N];
    std::uint16_t buckets_[N];
    alignas(std::max_align_t) std::byte seats_[N * detail::async_seat_size];
    alignas(std::max_align_t) std::byte descriptors_[N * 16];
};

namespace detail {

template <class Result, class... Sources>
async_wait_op<Result, sizeof...(Sources)> make_op(const limits& how, bool all, Sources&... from) noexcept {
    if constexpr (are_sources<Sources...>()) {
        return async_wait_op<Result, sizeof...(Sources)>(how, all, from...);
    } else {
        return refused<async_wait_op<Result, sizeof...(Sources)>>();
    }
}

}  // namespace detail

// Wait like wait(), wait_any() and wait_all(); the co_await throws what those throw. They copy the stop token of the
// limits, and ignore the spin policy: a coroutine never spins. A time point of a clock of your own is not copied.
template <class Source>
    requires detail::one_by_one<Source>
async_wait_op<wait_status, 1> async_wait(const limits& how, Source&& from) noexcept {
    return detail::make_op<wait_status, Source>(how, false, from);
}
template <class Source>
    requires detail::no_limits_first<Source>
async_wait_op<wait_status, 1> async_wait(Source&& from) noexcept {
    return detail::make_op<wait_status, Source>(limits(), false, from);
}
template <class... Sources>
    requires detail::one_by_one<Sources...>
async_wait_op<any_result, sizeof...(Sources)> async_wait_any(const limits& how, Sources&&... from) noexcept {
    return detail::make_op<any_result, Sources...>(how, false, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
async_wait_op<any_result, sizeof...(Sources)> async_wait_any(Sources&&... from) noexcept {
    return detail::make_op<any_result, Sources...>(limits(), false, from...);
}
template <class... Sources>
    requires detail::one_by_one<Sources...>
async_wait_op<wait_status, sizeof...(Sources)> async_wait_all(const limits& how, Sources&&... from) noexcept {
    return detail::make_op<wait_status, Sources...>(how, true, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
async_wait_op<wait_status, sizeof...(Sources)> async_wait_all(Sources&&... from) noexcept {
    return detail::make_op<wait_status, Sources...>(limits(), true, from...);
}

}  // namespace tocsin
