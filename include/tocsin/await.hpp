// Coroutines that wait: co_await of whatever threads wait for (wait.hpp), with the same guarantees.
//
//     task serve(int connection, tocsin::manual_reset_event& shutdown, pool& workers) {
//         co_await tocsin::async_wait(ready);
//         const auto [status, index, found] =
//             co_await tocsin::async_wait_any({.until = 5s}, shutdown, tocsin::readable(connection)).on(workers);
//         co_await tocsin::async_wait_all({.stop = token}, left_fork, right_fork);
//     }
//
// Bring your own coroutine type. The wait stands in the coroutine's frame (some 900 bytes, and 200 for each source)
// and allocates nothing. A coroutine queues among threads, first in, first out; the lists of who waits (diagnose.hpp)
// name the thread that it suspended in.
//
// Where it goes on
//   If it need not wait, where it is. Else, by default, in the thread that ends its wait: inside the set(),
//   request_stop() or wake() that does so, after everybody else whom that call releases has been released, under no
//   lock; if that thread runs such a coroutine already, when that one suspends or ends: so a chain of coroutines
//   that wake each other doesn't grow the stack, and a coroutine that blocks its thread holds up those behind it.
//   Deadlines, timers and descriptors end a wait in a thread of the library's: go on elsewhere, or be brief.
//   With `.on(executor)` that thread calls executor(std::coroutine_handle<>) instead, which has the coroutine resumed
//   later, or in another thread, but not inside the call (the program ends then, with a message), and must not
//   throw. The executor is referred to; a temporary will do.
//
// Threads of the library's own
//   None for events, stop tokens and sources of yours. The first co_await that meets a deadline or timer on the steady
//   clock (or one of yours) starts a thread that serves all of them; so does the first on the system clock; and the
//   first with a descriptor, which takes a doorbell as well. They sleep while nothing comes, handle no signals, and
//   stay until the process ends, also through exit. What is looked at costs a step for each descriptor waited for. A
//   wait that something else than a descriptor ends interrupts such a look before it goes on, which costs a switch to
//   that thread and back: nothing of the library's refers to its descriptors any more.
//   A co_await throws std::system_error if it can't have them. now() of a clock of yours is called there, under a
//   lock: it must not wait, nor call this library.
//
// Destroying a coroutine that waits
//   Ends its wait; it takes nothing, and will not be resumed. Any thread may, unless another might resume it at the
//   same time. Hence:
//   - inline, where no other thread can set, stop or time out what it waits for: for instance when all that happens in
//     this thread. Also in a coroutine that goes on before it, from the same set().
//   - with an executor, always, where the executor can't be resuming it: in the executor's only thread, say. When the
//     destruction returns, nobody is handing it to the executor any more; but it may have been handed over before:
//     take the handle out of the executor's queue then (or stop the wait by a token, and let it end).
//   An auto-reset event that had been given to the wait already is set again. Not so a source of yours.
//
// Not in signal handlers: set() there may resume the coroutine in the handler. In the child of a fork a coroutine of the
// parent's that waits may only be destroyed.
// Between notifying and waking (waiting_list) a thread must not set or wake another source of the same async_wait_all.
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

// Memory for what a wait needs in the library, in bytes at most.
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

// What is the same for any number of sources.
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
    awaiting* waiting_ = nullptr;  // in `memory_`, once it could not be had at once
    alignas(std::max_align_t) std::byte memory_[async_wait_size];
};

}  // namespace detail

// What can be resumed on: called with the handle, resumes it later.
template <class T>
concept resumes_coroutines = std::invocable<T&, std::coroutine_handle<>>;

// A wait that a coroutine may await, at once and once: what the functions below return.
template <class Result, std::size_t N>
class [[nodiscard]] async_wait_op : detail::async_wait_base {
public:
    template <class... Sources>
    async_wait_op(const limits& how, bool all, Sources&... from) noexcept
        : async_wait_base(sources_, all, how, {seats_, buckets_, descriptors_}), sources_{source(from)...} {}

    // Goes on where the executor has it go on.
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

// As wait(), wait_any() and wait_all(), with what they throw. The stop token of the limits is copied; a coroutine
// never spins.
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
