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
// Bring your own coroutine type. The wait is stored in the coroutine's frame. It allocates nothing, except that a table
// of descriptors, which all coroutines share, may have to grow. On 64-bit systems a wait takes this much of the frame:
// - A wait for one event without limits takes 168 bytes.
// - Any other wait takes about 350 bytes, and 200 for each source. If a source may be a timer or a descriptor, add 660
//   bytes. (Every argument of the type tocsin::source counts as such a source.) Otherwise, add 220 bytes if the wait
//   has limits.
//
// Coroutines queue among threads, first in, first out. The lists of parked waits (diagnose.hpp) name the thread in
// which a coroutine suspended.
//
// Where a coroutine resumes
//   A coroutine that need not wait continues where it is. Otherwise, by default, the thread that ends the wait resumes
//   the coroutine. If a set(), request_stop() or wake_list::wake() ends the wait, the coroutine resumes inside that
//   call, under no lock, after the call has released everybody else.
//   - If the thread already runs a coroutine that was resumed in this way, it resumes the second coroutine when the
//     first suspends or ends. So a chain of coroutines that wake each other does not grow the stack. But a coroutine
//     that blocks its thread delays all coroutines that the thread is still to resume.
//   - If an exception leaves a coroutine that was resumed in this way, the exception ends the program (std::terminate)
//     inside the call that ended the wait.
//   - Deadlines, timers and descriptors end a wait in a background thread of the library, so the coroutine resumes in
//     that thread. There the coroutine should be brief, or an executor should resume it elsewhere.
//
//   With `.on(executor)`, the thread that ends the wait calls executor(std::coroutine_handle<>) instead.
//   - The executor resumes the coroutine later, or in another thread. If it resumes the coroutine inside the call, the
//     program ends with a message.
//   - The executor must not throw: an exception ends the program, too.
//   - The wait refers to the executor and does not copy it. A temporary in the co_await expression lives long enough.
//   - An executor may return `bool`. False means that it refuses the coroutine and will not resume it. The coroutine
//     then resumes as without an executor. A handler_thread (handler_thread.hpp) is such an executor: once closed, it
//     refuses.
//
// Background threads
//   A wait for events and for sources of your own needs no background thread, even if it has a stop token. For other
//   waits there are up to three such threads. The library starts each of them at the first co_await that needs it:
//   - one for deadlines and timers on the steady clock, or on a clock of your own;
//   - one for deadlines and timers on the system clock;
//   - one for descriptors. This thread also needs a doorbell (fd.hpp).
//   Each of these threads then serves all waits of its kind. It sleeps while there is nothing to do, handles no
//   signals, and stays until the process ends, even during exit.
//
//   The thread for descriptors polls all descriptors for which coroutines wait. Each poll costs a step for each of
//   these descriptors. If something other than a descriptor ends a wait with descriptors, the coroutine first
//   interrupts the poll, and then continues. This costs a switch to the polling thread and back. Afterwards the library
//   does not refer to the descriptors of that wait any more.
//
//   A co_await throws std::system_error if it can't start a thread or open the doorbell, and std::bad_alloc if the
//   table of descriptors can't grow. The background threads call now() of your own clocks under a lock: now() must not
//   block or call this library.
//
// Destroying a coroutine that waits
//   Destroying the coroutine ends its wait, and nobody resumes the coroutine. The wait takes no event: if it had
//   already been given an auto-reset event, that event is set again. But a source of your own that the wait had been
//   given stays taken.
//
//   Any thread may destroy the coroutine, unless another thread might be resuming it at the same time. So it may be
//   destroyed:
//   - Without an executor: while no other thread can end the wait by a set, a stop or a timeout. That is so, for
//     instance, if the wait needs no background thread, and only the destroying thread makes its sources ready or stops
//     it. If one set() ends the waits of several coroutines, a coroutine that this set() has resumed may destroy the
//     coroutines that this set() has yet to resume.
//   - With an executor: while the executor can't be resuming the coroutine. That is so, for instance, if the executor
//     has only one thread, and that thread destroys the coroutine. When the destruction returns, no thread is handing
//     the coroutine to the executor. But a thread may have handed it over by then. In that case, remove the handle from
//     the executor's queue. (Or do not destroy the coroutine: stop the wait by a token, and let the coroutine end.)
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
//   - In the child of a fork, a coroutine that was waiting at the fork may only be destroyed.
//   - A notify function (waiting_list in source.hpp) gives its caller a wake_list. The list may contain the wait of an
//     async_wait_all(). Then the caller must call wake() on this list first. Only afterwards may it set an event of
//     that async_wait_all(), or call wake() on the list of another source of that async_wait_all().
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/event_state.hpp>
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

class awaiting;        // src/await.cpp
class event_awaiting;  // the same

// The bytes that a wait needs inside the library. src/await.cpp checks that they are enough.
inline constexpr std::size_t async_event_size = sizeof(void*) == 8 ? 152 : 112;
inline constexpr std::size_t async_seat_size = 128;
inline constexpr std::size_t async_core_size = 192;
inline constexpr std::size_t async_limits_size = 224;
inline constexpr std::size_t async_mixture_size = 432;

// What a wait may contain. Each value includes the values before it.
enum class async_needs : std::uint8_t {
    objects,  // events and custom sources
    limits,   // a deadline and a stop token
    mixture,  // timers and descriptors
};

constexpr std::size_t async_wait_size(async_needs what) noexcept {
    return async_core_size + (what >= async_needs::limits ? async_limits_size : 0) +
           (what >= async_needs::mixture ? async_mixture_size : 0);
}
// Events and custom sources are known by their types. An argument of the type tocsin::source may be anything.
template <class... Sources>
constexpr async_needs needs_of(bool with_limits) noexcept {
    if ((std::same_as<std::remove_cvref_t<Sources>, source> || ...)) return async_needs::mixture;
    return with_limits ? async_needs::limits : async_needs::objects;
}

struct async_storage {
    void* slots;
    std::uint16_t* buckets;
    void* descriptors;
};

// The executor of a wait, and whether the executor has been given the coroutine (src/await.cpp).
struct async_executor {
    template <class Executor>
    void refer_to(Executor& executor) noexcept {
        object = const_cast<std::remove_cv_t<Executor>*>(std::addressof(executor));
        post = [](void* to, std::coroutine_handle<> who) noexcept {
            auto& called = *static_cast<Executor*>(to);
            if constexpr (std::same_as<std::invoke_result_t<Executor&, std::coroutine_handle<>>, bool>) {
                return called(who);
            } else {
                called(who);
                return true;
            }
        };
    }

    void* object = nullptr;  // null: none
    bool (*post)(void* object, std::coroutine_handle<> who) noexcept = nullptr;
    atomic<std::uint32_t> posted{0};
};

// The part of a wait that does not depend on the number of sources.
class async_wait_base {
protected:
    async_wait_base(std::span<const source> sources, bool all, async_needs needs, const limits& how,
                    const async_storage& storage) noexcept
        : until_(how.until), sources_(sources), storage_(storage), all_(all), needs_(needs) {
        if (how.stop.get() != nullptr) stop_ = *how.stop.get();
    }
    async_wait_base(const async_wait_base&) = delete;
    async_wait_base& operator=(const async_wait_base&) = delete;
    ~async_wait_base() {
        if (waiting_ != nullptr) destroy();
    }

    TOCSIN_API bool ready();
    TOCSIN_API bool suspend(std::coroutine_handle<> who, void* memory);
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
    const async_needs needs_;
    any_result result_{wait_status::signaled};
    awaiting* waiting_ =
        nullptr;  // null if the first look ended the wait; else in the memory given to suspend()
};

// The part of a wait for one event that does not depend on the event's class.
class event_awaiter_base {
protected:
    explicit event_awaiter_base(void* event) noexcept : object(event) {}
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

    async_executor executor_;
};

// An event that can be waited for.
template <class T>
concept settable_event = requires(const T& event) { mode_of(event); };
template <settable_event Event>
using mode_type = decltype(mode_of(std::declval<const Event&>()));

template <class Mode, class Base, bool WithExecutor>
class basic_event_awaiter : protected Base {
public:
    bool await_ready() noexcept { return event_try_wait(this->event(), mode_.mode()); }
    bool await_suspend(std::coroutine_handle<> who) noexcept {
        return this->suspend(event_source(mode_.mode()), who, WithExecutor);
    }
    wait_status await_resume() noexcept {
        if (this->has_parked()) this->finish(WithExecutor);
        return wait_status::signaled;
    }

protected:
    explicit basic_event_awaiter(basic_event<Mode>& event) noexcept
        : Base(source(event).object()), mode_(mode_of(event)) {}
    ~basic_event_awaiter() {
        if (this->has_parked()) this->abandon(event_source(mode_.mode()), WithExecutor);
    }

private:
    TOCSIN_NO_UNIQUE_ADDRESS const Mode mode_;
};

}  // namespace detail

// An executor is called with the handle of a coroutine. It has the coroutine resumed later, or returns false to refuse.
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
        this->executor_.refer_to(executor);
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

    bool await_ready() { return to_.await_ready(); }
    bool await_suspend(std::coroutine_handle<> who) { return to_.await_suspend(who); }
    auto await_resume() { return to_.await_resume(); }

private:
    Awaiter& to_;
};

// The awaiter that the other functions below return. Await it once.
template <class Result, std::size_t N, detail::async_needs Needs>
class [[nodiscard]] async_wait_op : detail::async_wait_base {
public:
    template <class... Sources>
    async_wait_op(const limits& how, bool all, Sources&... from) noexcept
        : async_wait_base(sources_, all, Needs, how, {seats_, buckets_, descriptors_}),
          sources_{source(from)...} {}

    // Makes the executor resume the coroutine.
    template <class Executor>
        requires resumes_coroutines<Executor>
    referred_awaiter<async_wait_op> on(Executor&& executor) noexcept {
        executor_.refer_to(executor);
        return referred_awaiter<async_wait_op>(*this);
    }

    bool await_ready() { return ready(); }
    bool await_suspend(std::coroutine_handle<> who) { return suspend(who, memory_); }
    Result await_resume() {
        if constexpr (std::is_same_v<Result, any_result>) {
            return result();
        } else {
            return result().status;
        }
    }

private:
    static constexpr std::size_t polled = Needs == detail::async_needs::mixture ? N : 1;

    source sources_[N];
    std::uint16_t buckets_[N];
    alignas(std::max_align_t) std::byte seats_[N * detail::async_seat_size];
    alignas(std::max_align_t) std::byte descriptors_[polled * 16];
    alignas(std::max_align_t) std::byte memory_[detail::async_wait_size(Needs)];
};

namespace detail {

template <class Result, bool Limited, class... Sources>
auto make_op(const limits& how, bool all, Sources&... from) noexcept {
    using op = async_wait_op<Result, sizeof...(Sources), needs_of<Sources...>(Limited)>;
    if constexpr (are_sources<Sources...>()) {
        return op(how, all, from...);
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
auto async_wait(const limits& how, Source&& from) noexcept {
    return detail::make_op<wait_status, true, Source>(how, false, from);
}
template <class Source>
    requires detail::no_limits_first<Source>
auto async_wait(Source&& from) noexcept {
    if constexpr (detail::names_an_event<Source>) {
        return async_event_wait<std::remove_reference_t<Source>>(from);
    } else {
        return detail::make_op<wait_status, false, Source>(limits(), false, from);
    }
}
template <class... Sources>
    requires detail::one_by_one<Sources...>
auto async_wait_any(const limits& how, Sources&&... from) noexcept {
    return detail::make_op<any_result, true, Sources...>(how, false, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto async_wait_any(Sources&&... from) noexcept {
    return detail::make_op<any_result, false, Sources...>(limits(), false, from...);
}
template <class... Sources>
    requires detail::one_by_one<Sources...>
auto async_wait_all(const limits& how, Sources&&... from) noexcept {
    return detail::make_op<wait_status, true, Sources...>(how, true, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto async_wait_all(Sources&&... from) noexcept {
    return detail::make_op<wait_status, false, Sources...>(limits(), true, from...);
}

}  // namespace tocsin
