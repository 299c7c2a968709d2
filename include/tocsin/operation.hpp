// SPDX-License-Identifier: Apache-2.0
// Operations: a wait that calls a function when it ends, and blocks no thread until then.
//
//     auto request = tocsin::any_operation([&](tocsin::any_result how) noexcept { serve(how.index); },
//                                          {.until = 5s, .stop = token}, shutdown, tocsin::readable(connection));
//     request.start();
//     ...
//     if (request.cancel()) ...          // this call has ended the wait: the function is given `stopped`
//
//     auto forks = tocsin::all_operation([&](tocsin::wait_status how) noexcept { eat(); }, left_fork, right_fork);
//     forks.on(workers).start();         // the function is called by the executor `workers`
//
// An operation waits for the sources that wait_any() and wait_all() accept (wait.hpp), with the same guarantees. Waits
// are served first in, first out, and a wait that times out or is stopped takes nothing. Coroutines have waits of the
// same kind (await.hpp). Other interfaces can build their waits on operations: the functions for C, the senders and the
// adapters for event loops do so.
//
// An operation is stored where you put it, and is neither copied nor moved. It allocates nothing, with two exceptions.
// A wait for descriptors may have to enlarge a table, which it shares with the other waits of its driver (without a
// driver: of the background threads). A start() with more than 64 descriptors holds a block of memory while it looks at
// them. On 64-bit systems, an operation takes about 400 bytes, plus 200 for each source. A source that may be a timer
// or a descriptor adds 720 bytes, once for the operation. (An argument of the type tocsin::source is such a source.)
// Without such a source, limits add 220 bytes.
//
// The function
//   Each start() that does not throw leads to exactly one call of the function, unless the operation is destroyed
//   first. The call comes from the thread that ends the wait, under no lock. The thread releases everybody else first,
//   with one exception: request_stop() ends one wait after another. So a function that runs inside request_stop() must
//   not wait until other waits with the same token have ended. The thread that ends the wait is one of these:
//   - the thread that calls set(), release(), request_stop(), wake_list::wake() or the like, inside that call;
//   - the thread that calls cancel(), inside that call;
//   - the thread that calls start(), inside that call, if the wait is over before start() returns: a source is ready,
//     for instance, or a stop was requested;
//   - a background thread of the library (await.hpp) or, with a driver, the thread in run_due() or notify()
//     (driver.hpp), if a deadline, a timer or a descriptor ends the wait.
//   If the thread is already inside an operation's function, or in a coroutine that such a call has resumed, it calls
//   the next function once the first function has returned, or once that coroutine has suspended or ended. So a chain
//   of operations does not grow the stack. One exception: a start() that finds the wait over may call the function at
//   once, and functions of waits that end inside such a call may be called there at once, too. Up to 65 calls of one
//   operation's function may be nested in this way.
//
//   Before the call, the library makes the operation idle. The call is the library's last use of the operation. So the
//   function may start the operation again, destroy it, or let another thread do either. (The function object is part
//   of the operation. Once the operation has been destroyed or started again, the function must not use its own
//   captures.) An exception that leaves the function ends the program.
//
// With `on(executor)`, the thread that ends the wait calls executor(ended_operation) instead of the function. This is
// true inside start() and cancel(), too. The executor must see to it that the ended_operation is called once: later, in
// another thread, or inside its own call (a dispatching executor). Calling the ended_operation calls the function. When
// the executor is called and what it must not do: docs/guide.md, with "call the function" in place of "resume the
// coroutine". The executor must outlive the operation. If the function destroys the operation inside the executor's
// call, the executor must last until this call returns. The executor may return `bool`. With false, the executor
// refuses: then the thread calls the function as it would without an executor.
//
// Destroying an operation
//   The destructor of an operation that waits ends the wait, and the function is not called. What the wait had been
//   given goes back, as when a coroutine that waits is destroyed (docs/guide.md has the rule for each kind of source).
//   Any thread may destroy the operation at a time when no other thread can be about to call its function. This is the
//   rule of docs/guide.md, with "call the function" in place of "resume the coroutine". An idle operation may be
//   destroyed at any time, even in the function. Checked builds end the program if they see one of two mistakes. (1) An
//   operation without an executor is destroyed while another thread is about to call its function. (2) A non-idle
//   operation is destroyed while another thread is inside cancel(). (They do not see the second mistake in an
//   any_operation without limits for one event, semaphore, latch or barrier's token.) To end a wait that other threads
//   may be ending, call cancel(), and destroy the operation after the function's call.
//
// Restrictions
//   - In a signal handler, do not set an event for which an operation may wait: set() may call the function there.
//   - In the child of a fork, an operation that was waiting at the fork may only be destroyed. If a thread was ending
//     its wait at the fork, the child must not even destroy it.
//   - What the guide says of wake lists in notify functions (docs/guide.md, What a waiting coroutine restricts) is true
//     of an all_operation() as well.
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
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tocsin {
namespace core {
class resumable;
}

class operation_base;

// The library gives an executor this object when an operation has ended. Call it once, and it calls the operation's
// function.
// It is as small as a pointer and trivially copyable.
class ended_operation {
public:
    inline void operator()() const noexcept;

    // For an executor that keeps a pointer.
    void* address() const noexcept { return of_; }
    static ended_operation from_address(void* address TOCSIN_LIFETIMEBOUND) noexcept {
        return ended_operation(static_cast<operation_base*>(address));
    }

private:
    explicit ended_operation(operation_base* of TOCSIN_LIFETIMEBOUND) noexcept : of_(of) {}

    operation_base* of_;
};

// An executor of operations sees to it that the ended_operation is called, or returns false to refuse.
template <class T>
concept calls_operations = std::invocable<T&, ended_operation>;

// The type of `inline_executor`.
struct inline_executor_type {
    template <std::invocable Ended>
    void operator()(Ended what) const noexcept {
        what();
    }
};
// An executor that calls the function, or resumes the coroutine, inside its own call. So the thread that ends the wait
// does so at once, even inside the function of another operation or in another coroutine. Without an executor, it would
// do so only when that function has returned. Use it if a thread sleeps until the function has been called: the other
// function may wait for that thread. At sixteen such calls inside one another, the next one waits for the innermost.
inline constexpr inline_executor_type inline_executor;

// What all operations have in common, whatever they wait for and call.
class operation_base : detail::pending_base {
public:
    // Asks to end the wait. Returns true if this call has ended the wait. The wait has then taken nothing, and the
    // function is given `stopped`, as described above. Returns false if the operation is idle, or if something else has
    // ended the wait. In the second case, the function has been, is being or will be called with that other result. So
    // even after false, the caller waits for the function's call before it destroys the operation.
    // Any thread may call cancel() at any time while the operation exists, even while other threads end the wait, call
    // the function or start the operation again. A cancel() during a start() may still find the operation idle. The
    // function may be called before cancel() returns, and cancel() then no longer touches the operation. If another
    // thread is still inside start(), that thread may call the function instead.
    // Cost: if the operation is idle, a load. Otherwise, what ending the wait costs, and three atomic operations. In an
    // any_operation without limits for one event, semaphore, latch or barrier's token (not passed as a `source`), a
    // short lock takes the place of these three.
    TOCSIN_API bool cancel() noexcept;

    // Call it inside the function. Returns 0, or the system's error number if the system refused to poll the wait's
    // descriptors or if one of them was not open. (A co_await would throw this error.) The result then names a
    // descriptor, with readiness::invalid.
    int error() const noexcept { return error_; }

protected:
    using called = void (*)(operation_base& self, const any_result& how) noexcept;
    using pending_base::looks_as_listed;

    operation_base(called function TOCSIN_LIFETIMEBOUND, std::span<const source> sources, bool all,
                   detail::wait_needs needs, const limits& how, const detail::wait_storage& storage) noexcept
        : pending_base(sources, {detail::wait_form::operation, all, needs}, how, storage),
          function_(function) {}
    ~operation_base() = default;

    // Called first in the destructor of the class that has the storage.
    void stop_waiting() noexcept {
        if (busy_ || single_ != nullptr) abandon();
    }
    TOCSIN_API void start_slow(void* memory);
    TOCSIN_API void set_limits(const limits& how) noexcept;
    void serve_by(driver& which) noexcept {
        if (TOCSIN_CHECKED && busy_)
            die_of_misuse("tocsin: by() was called for an operation that has not ended\n");
        by_ = &detail::driver_access::service_of(which);
    }
    template <class Executor>
    void call_by(Executor& executor) noexcept {
        if (TOCSIN_CHECKED && busy_)
            die_of_misuse("tocsin: on() was called for an operation that has not ended\n");
        quick_left_ = 0;
        executor_.refer_to(executor,
                           [](Executor& to, void* who) { return to(ended_operation::from_address(who)); });
    }

    // Whether start() may look at the first events and call the function directly. count_quick() counts such calls,
    // because they may be nested.
    bool may_be_quick() const noexcept { return quick_left_ != 0 && (!TOCSIN_CHECKED || !busy_); }
    void count_quick() noexcept {
        quick_left_ = static_cast<std::uint8_t>(quick_left_ - 1);
        error_ = 0;
    }

private:
    friend class ended_operation;
    class early_end;
    class single;

    [[noreturn]] TOCSIN_API static void die_of_misuse(const char* message) noexcept;
    TOCSIN_API void finish() noexcept;
    TOCSIN_API void abandon() noexcept;
    void abandon_single() noexcept;
    void abandon_early_end() noexcept;
    void start_single(void* memory) noexcept;
    bool cancel_single() noexcept;
    bool has_parked_single() const noexcept;
    void end_early() noexcept;
    void take_from_executor(core::resumable& end) noexcept;
    bool enter() noexcept;
    void leave() noexcept;
    void wait_for_cancelers() noexcept;
    void check_no_cancel() const noexcept;

    static constexpr std::uint8_t quick_calls = 32;

    std::uint8_t quick_calls_left() const noexcept { return executor_.object != nullptr ? 0 : quick_calls; }

    const called function_;
    detail::atomic<std::uint32_t> cancelers_{0};  // see operation.cpp
    int error_ = 0;
    detail::plain<std::uint8_t> quick_left_{quick_calls};
    core::service* by_ = nullptr;             // null: the default
    detail::plain<single*> single_{nullptr};  // null: none has begun
    detail::plain<bool> busy_{false};         // from start() until the function's call
};

inline void ended_operation::operator()() const noexcept { of_->finish(); }

// What any_operation() and all_operation() return.
template <class Function, bool All, detail::wait_needs Needs, class... Sources>
class [[nodiscard]] operation final : public operation_base {
public:
    template <class Given>
    operation(Given&& function, const limits& how, Sources&... from)
        : operation_base(call, sources_, All, Needs, how, {memory_.slots, buckets_, memory_.descriptors}),
          function_(std::forward<Given>(function)),
          sources_{source(from)...} {}
    ~operation() { stop_waiting(); }

    // Begins the wait. If a source is ready (for an all_operation: if all are), if the deadline has passed, or if a
    // stop was requested, the wait ends at once. Otherwise the wait has begun for all its sources when start() returns.
    // Everything that the caller did before is visible to the function.
    // The operation must be idle: its function has been called as often as the operation was started. The function
    // itself may start the operation again. A further start() does not move the deadline, nor a timer among the
    // sources. For a new deadline, pass new limits.
    // Throws what wait_any() or wait_all() throw, and what a co_await that needs a background thread throws
    // (await.hpp). After an exception, the operation is idle, and its function is not called. An any_operation throws
    // nothing if it has no limits, and no source that may be a timer or a descriptor (see the top). If an argument of
    // such an operation converts to an empty source, the program ends.
    // Cost: about one try_wait() and one call of the function, if there is no executor, and the first source is an
    // event that is set and has its mode in its type. Otherwise, what a co_await of the same sources and limits costs.
    void start() noexcept(!All && Needs == detail::wait_needs::objects) {
        if constexpr (!All && leading != 0) {
            if (may_be_quick() && (Needs < detail::wait_needs::limits || looks_as_listed())) [[likely]] {
                if (const std::size_t i = take_leading(); i != any_result::npos) {
                    count_quick();
                    return call_with({wait_status::signaled, i});
                }
            }
        }
        start_slow(memory_.pending);
    }
    // The same, with these limits from now on. Copies the stop token.
    void start(const limits& how)
        requires(Needs >= detail::wait_needs::limits)
    {
        set_limits(how);
        start();
    }

    // Sets the executor. The operation refers to the executor and does not copy it. Call this while the operation is
    // idle; a checked build ends the program otherwise.
    template <class Executor>
        requires calls_operations<Executor>
    operation& on(Executor& executor TOCSIN_CAPTURED_BY_THIS) noexcept TOCSIN_LIFETIMEBOUND {
        call_by(executor);
        return *this;
    }
    // Lets the driver, instead of the default, serve the deadlines and descriptors (driver.hpp). Call it while the
    // operation is idle; a checked build ends the program otherwise.
    operation& by(driver& which TOCSIN_CAPTURED_BY_THIS) noexcept TOCSIN_LIFETIMEBOUND {
        serve_by(which);
        return *this;
    }

private:
    static constexpr std::size_t count = sizeof...(Sources);
    static constexpr std::size_t leading = detail::leading_events<Sources...>();

    static void call(operation_base& self, const any_result& how) noexcept {
        static_cast<operation&>(self).call_with(how);
    }
    void call_with(const any_result& how) noexcept {
        if constexpr (All) {
            function_(how.status);
        } else {
            function_(how);
        }
    }
    std::size_t take_leading() noexcept {
        return [this]<std::size_t... I>(std::index_sequence<I...>) noexcept {
            std::size_t taken = any_result::npos;
            const auto take = [&]<class Event>(std::size_t i, const Event*) noexcept {
                constexpr reset_mode mode = detail::mode_type<Event>::mode();
                if (!detail::event_try_wait<mode>(*static_cast<detail::event_byte*>(sources_[i].object())))
                    return false;
                taken = i;
                return true;
            };
            (void)(take(I, static_cast<const std::tuple_element_t<I, std::tuple<Sources...>>*>(nullptr)) ||
                   ...);
            return taken;
        }(std::make_index_sequence<leading>());
    }

    Function function_;
    source sources_[count];
    std::uint16_t buckets_[count];
    detail::wait_memory<count, Needs> memory_;
};

namespace detail {

template <bool All, class Function, class Result, bool Limited, class... Sources>
auto make_operation(Function&& function, const limits& how, Sources&... from) {
    using made = operation<std::decay_t<Function>, All, needs_of<Sources...>(Limited),
                           std::remove_reference_t<Sources>...>;
    static_assert(
        requires(std::decay_t<Function>& call, Result result) { call(result); },
        "tocsin: the function of an any_operation is called with an any_result, that of an "
        "all_operation with "
        "a wait_status");
    if constexpr (are_sources_of<lists::refused, All, Sources...>()) {
        return made(std::forward<Function>(function), how, from...);
    } else {
        return refused<made>();
    }
}

}  // namespace detail

// An operation that waits for the first of its sources, as wait_any() does. It copies or moves the function, copies the
// limits' stop token, and ignores the spin policy. It refers to the sources and to a time point of a clock of your own.
template <class Function, class... Sources>
auto any_operation(Function&& function, const limits& how, Sources&&... from) {
    return detail::make_operation<false, Function, any_result, true, Sources...>(
        std::forward<Function>(function), how, from...);
}
template <class Function, class... Sources>
    requires detail::no_limits_first<Sources...>
auto any_operation(Function&& function, Sources&&... from) {
    return detail::make_operation<false, Function, any_result, false, Sources...>(
        std::forward<Function>(function), limits(), from...);
}

// The same for all sources at once, as wait_all() does.
template <class Function, class... Sources>
auto all_operation(Function&& function, const limits& how, Sources&&... from) {
    return detail::make_operation<true, Function, wait_status, true, Sources...>(
        std::forward<Function>(function), how, from...);
}
template <class Function, class... Sources>
    requires detail::no_limits_first<Sources...>
auto all_operation(Function&& function, Sources&&... from) {
    return detail::make_operation<true, Function, wait_status, false, Sources...>(
        std::forward<Function>(function), limits(), from...);
}

// The alignment of the memory of a span_operation, in bytes.
inline constexpr std::size_t operation_alignment = alignof(std::max_align_t);

// An operation whose sources are known only at run time, in memory that the caller provides. It is meant for other
// languages, and for arrays of sources.
//
//     void* memory = ...;      // operation_size(n) bytes, aligned to operation_alignment
//     auto& wait = tocsin::span_operation::make(memory, false, sources, limits, function, context);
//     wait.start();
//     std::destroy_at(&wait);  // the memory may be freed after this
class span_operation final : public operation_base {
public:
    // A wait for all of the sources passes a result whose index is npos.
    using function = void (*)(void* context, const any_result& how) noexcept;

    // How many bytes an operation for this many sources takes.
    TOCSIN_API static std::size_t size(std::size_t sources) noexcept;

    // Makes an operation that waits for any of the sources, or for all. Copies the list of sources and the stop token.
    // The list must not be empty.
    TOCSIN_API static span_operation& make(void* memory, bool all, std::span<const source> sources,
                                           const limits& how, function to_call, void* context) noexcept;
    TOCSIN_API ~span_operation();

    // As for the operations above.
    TOCSIN_API void start();
    TOCSIN_API void start(const limits& how);
    template <class Executor>
        requires calls_operations<Executor>
    span_operation& on(Executor& executor TOCSIN_CAPTURED_BY_THIS) noexcept TOCSIN_LIFETIMEBOUND {
        call_by(executor);
        return *this;
    }
    // Lets the driver, instead of the default, serve the deadlines and descriptors (driver.hpp). Call it while the
    // operation is idle; a checked build ends the program otherwise.
    span_operation& by(driver& which TOCSIN_CAPTURED_BY_THIS) noexcept TOCSIN_LIFETIMEBOUND {
        serve_by(which);
        return *this;
    }

private:
    struct parts;

    span_operation(std::span<const source> sources, bool all, const limits& how,
                   const detail::wait_storage& storage, void* memory, function to_call,
                   void* context) noexcept;

    void* const memory_;
    const function to_call_;
    void* const context_;
};

// The same as span_operation::size().
inline std::size_t operation_size(std::size_t sources) noexcept { return span_operation::size(sources); }

}  // namespace tocsin
