// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait: they co_await the sources that wait_any() and wait_all() accept (wait.hpp), with the same
// guarantees. Bring your own coroutine type, or take that of task.hpp.
//
//     co_await tocsin::async_wait(ready);
//     const auto [status, index, found] =
//         co_await tocsin::async_wait_any({.until = 5s}, shutdown, tocsin::readable(connection)).on(workers);
//     co_await tocsin::async_wait_all({.stop = token}, left_fork, right_fork);
//
// Coroutines and threads that wait for the same thing queue together, first in, first out. The guide (docs/guide.md,
// Coroutines) says more: sizes in the frame, where a coroutine resumes, executors, the library's threads, destruction,
// restrictions. With GCC 12.2, name what `co_await` returns before an `if` asks it: it miscompiles `if (co_await ...)`.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/event_state.hpp>
#include <tocsin/detail/pending.hpp>
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

class event_awaiting;  // src/await.cpp

// The bytes that a wait for one event needs inside the library. src/await.cpp checks that they are enough.
inline constexpr std::size_t async_event_size = sizeof(void*) == 8 ? 152 : 112;

inline void resume_coroutine(void* frame) noexcept { std::coroutine_handle<>::from_address(frame).resume(); }

// Makes the executor resume the coroutine.
template <class Executor>
void refer_to_executor(executor_reference& from, Executor& executor) noexcept {
    from.refer_to(executor,
                  [](Executor& to, void* frame) { return to(std::coroutine_handle<>::from_address(frame)); });
}

// The part of a wait for one event that does not depend on the event's class. The executor is null if the wait has
// none.
class event_awaiter_base {
protected:
    explicit event_awaiter_base(void* event TOCSIN_LIFETIMEBOUND) noexcept : object(event) {}
    event_awaiter_base(const event_awaiter_base&) = delete;
    event_awaiter_base& operator=(const event_awaiter_base&) = delete;
    ~event_awaiter_base() = default;

    event_byte& event() const noexcept { return *static_cast<event_byte*>(object); }
    bool has_parked() const noexcept { return who_ != nullptr; }
    TOCSIN_API bool suspend(const lot_source& how, std::coroutine_handle<> who, executor_reference*) noexcept;
    TOCSIN_API void finish(executor_reference*) noexcept;
    TOCSIN_API void abandon(const lot_source& how, executor_reference*) noexcept;

private:
    friend class event_awaiting;

    union {
        void* object;  // the event, until the coroutine suspends
        alignas(8) std::byte memory[async_event_size];
    };
    std::coroutine_handle<> who_;  // null, except from when the coroutine parks until it has resumed
};

// With an executor. It adds 24 bytes, so a wait without an executor does not have it.
class event_awaiter_with_executor : public event_awaiter_base {
protected:
    friend class event_awaiting;

    using event_awaiter_base::event_awaiter_base;

    executor_reference executor_;
};

template <bool WithExecutor>
using event_awaiter_part = std::conditional_t<WithExecutor, event_awaiter_with_executor, event_awaiter_base>;

}  // namespace detail

// An executor is called with the handle of a coroutine. It sees to it that the coroutine is resumed, or returns false
// to refuse.
template <class T>
concept resumes_coroutines = std::invocable<T&, std::coroutine_handle<>>;

// The awaiter of a wait for one event without limits. Await it once. An executor resumes the coroutine, if
// `WithExecutor` says so. A class of your own can have it as a base:
//
//     class my_wait : public tocsin::event_awaiter<tocsin::auto_reset_event> {
//     public:
//         using event_awaiter::event_awaiter;
//         void await_resume() noexcept { ++waits; (void)event_awaiter::await_resume(); }
//     };
template <detail::settable_event Event, bool WithExecutor = false>
class event_awaiter : protected detail::event_awaiter_part<WithExecutor> {
public:
    explicit event_awaiter(Event& event TOCSIN_LIFETIMEBOUND) noexcept
        requires(!WithExecutor)
        : detail::event_awaiter_part<WithExecutor>(source(event).object()), mode_(mode_of(event)) {}
    template <class Executor>
        requires(WithExecutor && resumes_coroutines<Executor>)
    event_awaiter(Event& event TOCSIN_LIFETIMEBOUND, Executor& executor TOCSIN_LIFETIMEBOUND) noexcept
        : detail::event_awaiter_part<WithExecutor>(source(event).object()), mode_(mode_of(event)) {
        detail::refer_to_executor(this->executor_, executor);
    }
    ~event_awaiter() {
        if (this->has_parked()) this->abandon(how(), executor());
    }

    bool await_ready() noexcept { return detail::event_try_wait(this->event(), mode_.mode()); }
    bool await_suspend(std::coroutine_handle<> who) noexcept { return this->suspend(how(), who, executor()); }
    wait_status await_resume() noexcept {
        if (this->has_parked()) this->finish(executor());
        return wait_status::signaled;
    }

private:
    const detail::lot_source& how() const noexcept {
        return detail::event_source(mode_.mode(), detail::event_use::event, mode_.order());
    }
    detail::executor_reference* executor() noexcept {
        if constexpr (WithExecutor)
            return &this->executor_;
        else
            return nullptr;
    }

    TOCSIN_NO_UNIQUE_ADDRESS const detail::mode_type<Event> mode_;
};

// What async_wait(event) returns. It only names the event: co_await makes an event_awaiter from it.
template <detail::settable_event Event>
class [[nodiscard]] async_event_wait {
public:
    explicit async_event_wait(Event& event TOCSIN_LIFETIMEBOUND) noexcept : event_(event) {}

    // Makes the executor resume the coroutine.
    template <class Executor>
        requires resumes_coroutines<Executor>
    event_awaiter<Event, true> on(Executor&& executor) const noexcept {
        return event_awaiter<Event, true>(event_, executor);
    }
    // Such a wait has no deadline and no descriptor, so no driver serves it.
    const async_event_wait& by(driver&) const noexcept { return *this; }
    event_awaiter<Event> operator co_await() const noexcept { return event_awaiter<Event>(event_); }

private:
    Event& event_;
};

// An awaiter that passes everything on to another awaiter. (A reference to that awaiter would not do: if a call returns
// an awaiter by reference, GCC 12 copies the awaiter.)
template <class Awaiter>
class [[nodiscard]] referred_awaiter {
public:
    explicit referred_awaiter(Awaiter& to TOCSIN_LIFETIMEBOUND) noexcept : to_(to) {}

    // These do what the members of the other awaiter do.
    template <class Executor>
        requires resumes_coroutines<Executor>
    referred_awaiter on(Executor&& executor) noexcept {
        return to_.on(executor);
    }
    referred_awaiter by(driver& which) noexcept { return to_.by(which); }

    bool await_ready() { return to_.await_ready(); }
    bool await_suspend(std::coroutine_handle<> who) { return to_.await_suspend(who); }
    auto await_resume() { return to_.await_resume(); }

private:
    Awaiter& to_;
};

// The awaiter that the other functions below return. Await it once. It can be a member of your class, if a call of
// one of them initializes the member directly.
template <class Result, std::size_t N, detail::wait_needs Needs>
class [[nodiscard]] async_wait_op : detail::pending_base {
public:
    template <class... Sources>
    async_wait_op(const limits& how, bool all,
                  Sources&... from) noexcept(detail::become_sources_quietly<Sources&...>)
        : pending_base(sources_, {detail::wait_form::awaited, all, Needs}, how,
                       {memory_.slots, buckets_, memory_.descriptors}),
          sources_{source(from)...} {}

    // Makes the executor resume the coroutine.
    template <class Executor>
        requires resumes_coroutines<Executor>
    referred_awaiter<async_wait_op> on(Executor&& executor) noexcept {
        detail::refer_to_executor(executor_, executor);
        return referred_awaiter<async_wait_op>(*this);
    }

    // Lets the driver, instead of the default, serve the deadlines and descriptors (driver.hpp).
    referred_awaiter<async_wait_op> by(driver& which TOCSIN_LIFETIMEBOUND) noexcept {
        given_.by = &detail::driver_access::service_of(which);
        return referred_awaiter<async_wait_op>(*this);
    }

    bool await_ready() { return look(); }
    bool await_suspend(std::coroutine_handle<> who) {
        return suspend(detail::resume_coroutine, who.address(), memory_.pending);
    }
    Result await_resume() {
        if constexpr (std::is_same_v<Result, any_result>) {
            return result();
        } else {
            return result().status;
        }
    }

private:
    source sources_[N];
    std::uint16_t buckets_[N];
    detail::wait_memory<N, Needs> memory_;
};

namespace detail {

template <bool All, class Result, bool Limited, class... Sources>
auto make_op(const limits& how, Sources&... from) noexcept(become_sources_quietly<Sources&...>) {
    using op = async_wait_op<Result, sizeof...(Sources), needs_of<Sources...>(Limited)>;
    if constexpr (are_sources_of<lists::refused, All, Sources...>()) {
        return op(how, All, from...);
    } else {
        return refused<op>();
    }
}

// `Argument` is the deduced type of a forwarding reference.
template <class Argument>
concept names_an_event =
    std::is_lvalue_reference_v<Argument> && settable_event<std::remove_reference_t<Argument>>;

// What a call that does not compile returns, so that a co_await of it adds no message.
template <class Result>
using refused_op = async_wait_op<Result, 1, wait_needs::objects>;

}  // namespace detail

// A co_await of what these functions return waits like wait(), wait_any() or wait_all(), and throws what those throw.
// It also throws std::system_error if it can't start a thread or open the doorbell (fd.hpp), and std::bad_alloc if the
// table of descriptors, which all such waits share, can't grow. It allocates nothing else.
// The functions copy the stop token of the limits, and ignore the spin policy: a coroutine never spins. They do not
// copy a time point of a clock of your own, so do not destroy the time point before the wait has ended. The library
// calls now() of your own clocks under a lock: now() must not block or call this library. The functions take no list of
// sources: span_operation (operation.hpp) does.
template <class Source>
auto async_wait(const limits& how, Source&& from) noexcept(detail::become_sources_quietly<Source&>) {
    return detail::make_op<false, wait_status, true, Source>(how, from);
}
template <class Source>
    requires detail::no_limits_first<Source>
auto async_wait(Source&& from) noexcept(detail::become_sources_quietly<Source&>) {
    if constexpr (detail::names_an_event<Source>) {
        return async_event_wait<std::remove_reference_t<Source>>(from);
    } else {
        return detail::make_op<false, wait_status, false, Source>(limits(), from);
    }
}
template <class... Sources>
auto async_wait_any(const limits& how,
                    Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_op<false, any_result, true, Sources...>(how, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto async_wait_any(Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_op<false, any_result, false, Sources...>(limits(), from...);
}
template <class... Sources>
auto async_wait_all(const limits& how,
                    Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_op<true, wait_status, true, Sources...>(how, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto async_wait_all(Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_op<true, wait_status, false, Sources...>(limits(), from...);
}

TOCSIN_REFUSE_MISUSE(async_wait, "a", "", detail::refused_op<wait_status>)
TOCSIN_REFUSE_MISUSE(async_wait_any, "a, b", "", detail::refused_op<any_result>)
TOCSIN_REFUSE_MISUSE(async_wait_all, "a, b", "", detail::refused_op<wait_status>)

}  // namespace tocsin
