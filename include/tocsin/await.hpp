// SPDX-License-Identifier: Apache-2.0
// Coroutines that wait: they co_await the sources that wait_any() and wait_all() accept (wait.hpp), with the same
// guarantees.
//
//     task serve(int connection, tocsin::manual_reset_event& shutdown, pool& workers) {
//         co_await tocsin::async_wait(ready);
//         const auto [status, index, found] =
//             co_await tocsin::async_wait_any({.until = 5s}, shutdown, tocsin::readable(connection)).on(workers);
//         co_await tocsin::async_wait_all({.stop = token}, left_fork, right_fork);
//     }
//
// Bring your own coroutine type. A wait is stored in the coroutine's frame and allocates nothing, with one exception: a
// wait for descriptors may have to enlarge a table that all such waits share. On 64-bit systems a wait takes this much
// of the frame:
// - A wait for one event without limits takes 168 bytes.
// - Any other wait takes about 350 bytes, plus 200 for each source. A source that may be a timer or a descriptor adds
//   720 bytes, once for the wait. (An argument of the type tocsin::source is such a source.) Without such a source,
//   limits add 220 bytes.
//
// Coroutines and threads that wait for the same thing queue together, first in, first out. The lists of parked waits
// (diagnose.hpp) name a coroutine's wait by the thread in which the coroutine suspended.
//
// Where a coroutine resumes
//   A coroutine that need not wait continues where it is. Otherwise, by default, the thread that ends the wait resumes
//   the coroutine. If a call such as set(), request_stop() or wake_list::wake() ends the wait, the coroutine resumes
//   inside that call, under no lock. set() and wake() release everybody else first. request_stop() ends one wait after
//   another: a coroutine may resume before the stop has reached other waits with the same token. So the coroutine must
//   not wait for these others to end.
//   - If that thread is already running a coroutine that was resumed in this way, it resumes the new one when the
//     running one suspends or ends. (After an operation's function, it does so when the function returns.) So a chain
//     of coroutines that wake each other does not grow the stack. But a coroutine that blocks its thread delays all
//     coroutines that the thread is still to resume.
//   - If an exception leaves a coroutine that was resumed in this way, the exception ends the program (std::terminate)
//     in the thread that resumed the coroutine.
//   - Without a driver (driver.hpp), deadlines, timers and descriptors end a wait in a background thread of the
//     library, so the coroutine resumes in that thread. There the coroutine should be brief, or an executor should
//     resume it elsewhere.
//
//   With `.on(executor)`, the thread that ends the wait calls executor(std::coroutine_handle<>) instead, once it has
//   released everybody else, and before it resumes coroutines that have no executor.
//   - The executor resumes the coroutine later, in another thread, or inside the call (a dispatching executor, such as
//     `[&](auto who) { asio::dispatch(strand, [who] { who.resume(); }); }`). Inside the call it may also destroy the
//     coroutine. But it must not wait there until another thread has resumed the coroutine.
//   - Inside the call the coroutine may end, and an executor that is in its frame, such as a temporary in the co_await
//     expression, is then gone. So such an executor touches nothing of itself after it has resumed the coroutine.
//   - Coroutines that resume one another in this way do not grow the stack beyond 16 such calls: from there on, an
//     executor is called when the running coroutine suspends.
//   - The executor must not throw: an exception ends the program.
//   - The wait refers to the executor and does not copy it. A temporary in the co_await expression lives long enough.
//   - An executor may return `bool`. False means that it refuses the coroutine and will not resume it. The coroutine
//     then resumes as without an executor. A handler_thread (handler_thread.hpp) is such an executor: once closed, it
//     refuses.
//
// Background threads
//   A wait without a deadline, timers and descriptors needs no background thread, even if it has a stop token. For
//   other waits that no driver serves, there are up to three such threads. The library starts each of them at the first
//   wait that needs it:
//   - one for deadlines and timers on the steady clock, or on a clock of your own;
//   - one for deadlines and timers on the system clock;
//   - one for descriptors. This thread also needs a doorbell (fd.hpp).
//   Each of these threads then serves all waits of its kind. It sleeps while there is nothing to do, and stays until
//   the process ends, even during exit. It blocks all signals while it waits. While it resumes coroutines, it has the
//   signal mask of the thread whose wait started it.
//
//   It inherits nothing else from that thread. On Linux its policy and priority, nice value, processors and timer slack
//   are those that the program's first thread had when the library was loaded: usually those with which the process was
//   started, by nice(1), chrt(1) or taskset(1), for instance. (The timer slack is that of the thread that loaded the
//   library.) There is one exception: without CAP_SYS_NICE, Linux lets no thread lower its nice value or leave
//   SCHED_IDLE. So if the first wait of a kind begins in such a thread, the background thread stays as slow as that
//   thread. If this matters, begin a short wait of each kind in an ordinary thread first. On Windows these threads have
//   the normal priority and the processors of the process.
//
//   The thread for descriptors polls all descriptors for which coroutines or operations wait without a driver. Each
//   poll costs a step for each of these descriptors. If something other than a descriptor ends a wait with descriptors
//   (an event that is set, for instance), the coroutine interrupts the poll before it continues. This costs a switch to
//   the polling thread and back. From then on the library does not refer to the descriptors of that wait any more.
//
//   A co_await throws std::system_error if it can't start a thread or open the doorbell, and std::bad_alloc if the
//   table of descriptors can't grow. The library calls now() of your own clocks under a lock: now() must not block or
//   call this library.
//
// Destroying a coroutine that waits
//   Destroying the coroutine ends its wait, and nobody resumes the coroutine. The wait takes nothing: if it had already
//   been given an auto-reset event, that event is set again, and a semaphore's permit goes back. But what the wait had
//   been given by a channel or by a source of your own stays taken.
//
//   Any thread may destroy the coroutine at a time when no other thread can be resuming it:
//   - Without an executor: while no other thread can end the wait by a set, a stop or a timeout. For instance, the wait
//     needs no background thread, and only the destroying thread makes its sources ready or stops it. There is one more
//     such time: one set() ends the waits of coroutines A and B, and has resumed A but not yet B. Then A may destroy B.
//   - With an executor: while the executor can't be resuming the coroutine. For instance, the executor has only one
//     thread, and that thread destroys the coroutine. Afterwards, remove the handle from the executor's queue: a thread
//     may have handed the coroutine over before the destruction returned. (None does so later.) Or do not destroy the
//     coroutine: stop the wait by a token, and let the coroutine end.
//   - With an executor that may refuse: while the conditions of both points above hold.
//
// A wait as part of a type of your own
//   An object that one of the functions below returns can be a member of your type, if the call of that function
//   initializes the member directly. An event_awaiter, which awaits one event, can be a base class:
//
//     class my_wait : public tocsin::event_awaiter<tocsin::auto_reset_event> {
//     public:
//         using event_awaiter::event_awaiter;
//         void await_resume() noexcept { ++waits; (void)event_awaiter::await_resume(); }
//     };
//
//   Or a co_await operator of your own returns an event_awaiter:
//
//     auto my_event::operator co_await() noexcept { return tocsin::event_awaiter(event_); }
//
// Restrictions
//   - In a signal handler, do not set an event for which a coroutine may wait: set() may resume the coroutine there.
//   - In the child of a fork, a coroutine that was waiting at the fork may only be destroyed. If a thread was ending
//     its wait at the fork, the child must not even destroy it.
//   - A notify function (waiting_list in source.hpp) returns a wake_list, on which an async_wait_all() may be. Until
//     the caller has called wake() on this list, it must not make an event, semaphore, latch or barrier of that
//     async_wait_all() ready. Nor may it call wake() on a list from another source of that async_wait_all().
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

// The part of a wait for one event that does not depend on the event's class.
class event_awaiter_base {
protected:
    explicit event_awaiter_base(void* event TOCSIN_LIFETIMEBOUND) noexcept : object(event) {}
    event_awaiter_base(const event_awaiter_base&) = delete;
    event_awaiter_base& operator=(const event_awaiter_base&) = delete;
    ~event_awaiter_base() = default;

    event_byte& event() const noexcept { return *static_cast<event_byte*>(object); }
    bool has_parked() const noexcept { return who_ != nullptr; }
    TOCSIN_API bool suspend(const lot_source& how, std::coroutine_handle<> who, bool with_executor) noexcept;
    TOCSIN_API void finish(bool with_executor) noexcept;
    TOCSIN_API void abandon(const lot_source& how, bool with_executor) noexcept;

private:
    friend class event_awaiting;

    union {
        void* object;  // the event, until the coroutine suspends
        alignas(8) std::byte memory[async_event_size];
    };
    std::coroutine_handle<> who_;  // null, except from when the coroutine parks until it has resumed
};

// The same part, for a wait with an executor.
class event_awaiter_on_base : public event_awaiter_base {
protected:
    friend class event_awaiter_base;
    friend class event_awaiting;

    using event_awaiter_base::event_awaiter_base;

    executor_reference executor_;
};

template <class Mode, class Base, bool WithExecutor>
class basic_event_awaiter : protected Base {
public:
    bool await_ready() noexcept { return event_try_wait(this->event(), mode_.mode()); }
    bool await_suspend(std::coroutine_handle<> who) noexcept {
        return this->suspend(event_source(mode_.mode(), event_use::event, mode_.order()), who, WithExecutor);
    }
    wait_status await_resume() noexcept {
        if (this->has_parked()) this->finish(WithExecutor);
        return wait_status::signaled;
    }

protected:
    explicit basic_event_awaiter(basic_event<Mode>& event) noexcept
        : Base(source(event).object()), mode_(mode_of(event)) {}
    ~basic_event_awaiter() {
        if (this->has_parked())
            this->abandon(event_source(mode_.mode(), event_use::event, mode_.order()), WithExecutor);
    }

private:
    TOCSIN_NO_UNIQUE_ADDRESS const Mode mode_;
};

}  // namespace detail

// An executor is called with the handle of a coroutine. It sees to it that the coroutine is resumed, or returns false
// to refuse.
template <class T>
concept resumes_coroutines = std::invocable<T&, std::coroutine_handle<>>;

// The awaiter of a wait for one event without limits. Await it once.
template <detail::settable_event Event>
class event_awaiter
    : public detail::basic_event_awaiter<detail::mode_type<Event>, detail::event_awaiter_base, false> {
public:
    explicit event_awaiter(Event& event TOCSIN_LIFETIMEBOUND) noexcept
        : detail::basic_event_awaiter<detail::mode_type<Event>, detail::event_awaiter_base, false>(event) {}
};

// The same, but an executor resumes the coroutine.
template <detail::settable_event Event>
class event_awaiter_on
    : public detail::basic_event_awaiter<detail::mode_type<Event>, detail::event_awaiter_on_base, true> {
public:
    template <class Executor>
        requires resumes_coroutines<Executor>
    event_awaiter_on(Event& event TOCSIN_LIFETIMEBOUND, Executor& executor TOCSIN_LIFETIMEBOUND) noexcept
        : detail::basic_event_awaiter<detail::mode_type<Event>, detail::event_awaiter_on_base, true>(event) {
        detail::refer_to_executor(this->executor_, executor);
    }
};

// What async_wait(event) returns. It only names the event: co_await makes an event_awaiter from it.
template <detail::settable_event Event>
class [[nodiscard]] async_event_wait {
public:
    explicit async_event_wait(Event& event TOCSIN_LIFETIMEBOUND) noexcept : event_(event) {}

    // Makes the executor resume the coroutine.
    template <class Executor>
        requires resumes_coroutines<Executor>
    event_awaiter_on<Event> on(Executor&& executor) const noexcept {
        return event_awaiter_on<Event>(event_, executor);
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

// The awaiter that the other functions below return. Await it once.
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
    if constexpr (are_sources_of<All, Sources...>()) {
        return op(how, All, from...);
    } else {
        return refused<op>();
    }
}

// `Argument` is the deduced type of a forwarding reference.
template <class Argument>
concept names_an_event =
    std::is_lvalue_reference_v<Argument> && settable_event<std::remove_reference_t<Argument>>;

}  // namespace detail

// A co_await of what these functions return waits like wait(), wait_any() or wait_all(), and throws what those throw.
// The functions copy the stop token of the limits, and ignore the spin policy: a coroutine never spins. They do not
// copy a time point of a clock of your own, so do not destroy the time point before the wait has ended.
template <class Source>
    requires detail::one_by_one<Source>
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
    requires detail::one_by_one<Sources...>
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
    requires detail::one_by_one<Sources...>
auto async_wait_all(const limits& how,
                    Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_op<true, wait_status, true, Sources...>(how, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto async_wait_all(Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_op<true, wait_status, false, Sources...>(limits(), from...);
}

}  // namespace tocsin
