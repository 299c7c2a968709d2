// SPDX-License-Identifier: Apache-2.0
// Waits as asynchronous operations of Asio, for every completion token: a callback, use_future, use_awaitable, deferred
// and tokens of your own.
//
//     tocsin::asio::async_wait(context, job, [](asio::error_code error, tocsin::wait_status how) { ... });
//     auto how = co_await tocsin::asio::async_wait_any(executor, {.until = 5s}, shutdown, job, asio::use_awaitable);
//     std::future<tocsin::wait_status> both = tocsin::asio::async_wait_all(executor, left, right, asio::use_future);
//
// To wait for several things, use async_wait_any(), not Asio's operator `||`. The operator waits for all of them and
// cancels the others when one has ended. If another one has ended by then, too, its result is lost: an item of a
// channel, a permit, or the signal of an auto-reset event. async_wait_any() takes one thing only.
//
// This header uses the standalone Asio, or Boost's if the macro TOCSIN_BOOST_ASIO is defined or if only Boost's is
// found. Per-operation cancellation needs a version that has cancellation slots (Asio 1.19, Boost 1.77).
//
// Each function takes an executor, an execution context or what on() returns, then optional limits, the sources, and
// last the completion token. The sources and the limits are those of wait_any() and wait_all() (wait.hpp). The token
// decides when the wait begins. With `deferred` and `use_awaitable`, it begins when the result is used. With a callback
// and `use_future`, it begins at once. The sources, and a time point of a clock of your own, must exist until the
// handler is called. The limits' stop token is copied.
//
// The handler is called with (error_code, Result), where Result is any_result for async_wait_any(), otherwise
// wait_status. The handler's associated executor, by default the given executor, calls it once. The call is never made
// inside the initiating function or inside a set().
// - Without an error, the result says how the wait ended. It is no error if the deadline has passed, or if the limits'
//   stop token has stopped the wait.
// - operation_aborted: the wait was cancelled through the token's cancellation slot (any type of cancellation). The
//   wait has then taken nothing. A cancellation that comes after the end of the wait, but before the handler's call,
//   changes nothing.
// - Another error: the system refused what the wait needs, or a descriptor was not open. A co_await (await.hpp) would
//   throw this error as a std::system_error. Other exceptions, for instance std::invalid_argument, leave the call that
//   starts the wait.
//
// While a wait is pending, the executor has outstanding work, so io_context::run() does not return. If the execution
// context is destroyed before the wait has ended, the wait ends and takes nothing. The handler is then destroyed
// without being called, as with operations of Asio. So is the handler of a wait that has ended but not called it yet:
// what that wait took stays taken. Don't destroy a context inside the function of an operation (operation.hpp) or in a
// coroutine that the library has resumed. The destruction could then wait for ever: for the end of a wait that can end
// only when that function has returned, or that coroutine has suspended.
//
// By itself, the io_context does not serve the deadlines and descriptors of these waits. The driver that you give to
// the wait does (driver.hpp), or else the default driver. If there is neither, background threads of the library do.
// The driver must outlive the wait, even if the wait ends because its context is destroyed:
//
//     tocsin::asio::async_wait(tocsin::asio::on(context).by(driver), {.until = 5s}, job, token);
//
// Cost: an operation, one allocation by the handler's associated allocator, three short locks of a mutex of the
// context, and one post() by the thread that ends the wait. A failing allocation in that post() ends the program. As
// after Asio's own operations, the handler's memory is free again before the handler is called.
#pragma once

#include <tocsin/detail/asio_waits.hpp>
#include <tocsin/detail/chosen_driver.hpp>
#include <tocsin/detail/described_wait.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/status.hpp>
#include <tocsin/wait.hpp>

#include <cstddef>
#include <memory>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tocsin::asio {
inline namespace TOCSIN_ASIO_FLAVOR {
namespace detail {

template <class Result>
Result result_of(const any_result& how) noexcept {
    if constexpr (std::is_same_v<Result, any_result>) {
        return how;
    } else {
        return how.status;
    }
}
template <class Result>
Result result_of(wait_status how) noexcept {
    return how;
}
inline wait_status status_of(wait_status how) noexcept { return how; }
inline wait_status status_of(const any_result& how) noexcept { return how.status; }

// A wait from the initiation to the call of its handler. Until the wait ends, nothing owns the object, but the list of
// its context knows it. When the wait ends, it posts a function object, which then owns it and runs in the handler's
// executor. If the context is shut down first, the list's owner cancels the wait and destroys the object instead.
template <class Handler, class Executor, class Wait, class Result>
class started_wait final : public known_wait {
public:
    static void start(const Executor& where, Handler&& handler, const Wait& what) {
        allocator memory(net::get_associated_allocator(handler));
        started_wait* const made = std::allocator_traits<allocator>::allocate(memory, 1);
        struct guard {
            ~guard() {
                if (made != nullptr) std::allocator_traits<allocator>::deallocate(memory, made, 1);
            }
            allocator& memory;
            started_wait* made;
        } unless_made{memory, made};
        ::new (static_cast<void*>(made)) started_wait(where, std::move(handler), what);
        unless_made.made = nullptr;
        made->begin();
    }

private:
    using allocator = typename std::allocator_traits<
        net::associated_allocator_t<Handler>>::template rebind_alloc<started_wait>;
    using handler_executor = net::associated_executor_t<Handler, Executor>;

    struct ended {
        template <class How>
        void operator()(const How& how) const noexcept {
            of->end(result_of<Result>(how));
        }
        started_wait* of;
    };

    // What is posted. If the executor drops it instead of calling it, the handler is destroyed.
    class resumption {
    public:
        using allocator_type = net::associated_allocator_t<Handler>;

        explicit resumption(started_wait* of) noexcept
            : of_(of), allocator_(net::get_associated_allocator(of->handler_)) {}
        resumption(resumption&& from) noexcept
            : of_(std::exchange(from.of_, nullptr)), allocator_(from.allocator_) {}
        resumption& operator=(resumption&&) = delete;
        ~resumption() {
            if (of_ != nullptr) of_->discard();
        }

        allocator_type get_allocator() const noexcept { return allocator_; }
        void operator()() { std::exchange(of_, nullptr)->finish(); }

    private:
        started_wait* of_;
        allocator_type allocator_;
    };

    started_wait(const Executor& where, Handler&& handler, const Wait& what)
        : handler_(std::move(handler)),
          work_(where),
          handler_work_(net::get_associated_executor(handler_, where)),
          waits_(net::use_service<known_waits>(context_of(where))),
          operation_(what.operation(ended{this})) {
        what.served_by().serve(operation_);
    }

    static net::execution_context& context_of(const Executor& where) noexcept {
        if constexpr (requires { net::query(where, net::execution::context); }) {
            return net::query(where, net::execution::context);
        } else {
            return where.context();
        }
    }

    // The slot's function runs in the handler's executor, as finish() does. So the wait still exists when the function
    // runs.
    void begin() {
        waits_.enter(*this);
        try {
#if defined(TOCSIN_ASIO_HAS_SLOTS)
            auto slot = net::get_associated_cancellation_slot(handler_);
            if (slot.is_connected()) {
                slot.assign([this](net::cancellation_type type) {
                    if (type == net::cancellation_type::none) return;
                    const bool before = std::exchange(is_cancelled_, true);
                    if (!operation_.cancel()) is_cancelled_ = before;  // it came too late
                });
            }
#endif
            operation_.start();
        } catch (const std::system_error& error) {
            error_ = error_code(error.code().value(), net::error::get_system_category());
            if (waits_.begin_leaving(*this)) leave();
        } catch (...) {
            if (!waits_.begin_leaving(*this)) throw;
            waits_.end_leaving();
            forget_slot();
            discard();
            throw;
        }
    }

    // The operation's function.
    void end(const Result& how) noexcept {
        how_ = how;
        if (const int error = operation_.error(); error != 0) {
            error_ = error_code(error, net::error::get_system_category());
        }
        if (waits_.begin_leaving(*this)) leave();
    }
    void leave() noexcept {
        known_waits& waits = waits_;
        const handler_executor to = handler_work_.get_executor();
        {
            const auto work = std::move(work_);  // the context may be gone before the handler is called
            net::post(to, resumption(this));     // this object may be gone now
        }
        waits.end_leaving();
    }
    // Called by the handler's executor.
    void finish() {
        forget_slot();
        if (is_cancelled_ && status_of(how_) == wait_status::stopped) error_ = net::error::operation_aborted;
        const error_code error = error_;
        const Result how = how_;
        const auto handler_work = std::move(handler_work_);
        Handler handler = std::move(handler_);
        discard_after(handler);
        std::move(handler)(error, how);
    }
    void forget_slot() {
#if defined(TOCSIN_ASIO_HAS_SLOTS)
        auto slot = net::get_associated_cancellation_slot(handler_);
        if (slot.is_connected()) slot.clear();
#endif
    }

    void cancel() noexcept override { (void)operation_.cancel(); }
    void discard() noexcept override {
        Handler handler = std::move(handler_);  // its destructor may need the allocator's memory
        discard_after(handler);
    }
    void discard_after(const Handler& handler) noexcept {
        allocator memory(net::get_associated_allocator(handler));
        std::destroy_at(this);
        std::allocator_traits<allocator>::deallocate(memory, this, 1);
    }

    Handler handler_;
    net::executor_work_guard<Executor> work_;
    net::executor_work_guard<handler_executor> handler_work_;
    known_waits& waits_;
    Result how_ = result_of<Result>(any_result{wait_status::stopped});
    error_code error_;
    bool is_cancelled_ = false;
    decltype(std::declval<const Wait&>().operation(std::declval<ended>())) operation_;
};

// Starts a wait for a token, perhaps later.
template <class Executor, class Result>
struct initiation {
    using executor_type = Executor;
    executor_type get_executor() const noexcept { return where; }

    template <class Handler, class Wait>
    void operator()(Handler&& handler, const Wait& what) const {
        using wait = started_wait<std::decay_t<Handler>, Executor, Wait, Result>;
        std::decay_t<Handler> own(std::forward<Handler>(handler));
        wait::start(where, std::move(own), what);
    }

    Executor where;
};

// The executor of an execution context, or the executor that is given.
template <class Where>
auto to_loop_and_driver(Where& where) noexcept {
    if constexpr (requires { where.get_executor(); }) {
        return tocsin::detail::loop_and_driver(where.get_executor());
    } else {
        return tocsin::detail::loop_and_driver(where);
    }
}
template <class Executor>
auto to_loop_and_driver(tocsin::detail::loop_and_driver<Executor> where) noexcept {
    return where;
}

// `Arguments` is a tuple of references: the sources, then the token.
template <bool All, class Result, class Limits, class Where, class Arguments, std::size_t... I>
auto start(Where& where, const limits& how, const Arguments& arguments, std::index_sequence<I...>) {
    using token = std::tuple_element_t<sizeof...(I), Arguments>;
    if constexpr (tocsin::detail::are_sources_of<tocsin::detail::lists::refused, All,
                                                 std::tuple_element_t<I, Arguments>...>()) {
        const auto at = to_loop_and_driver(where);
        using executor = std::remove_cvref_t<decltype(at.loop())>;
        auto what = tocsin::detail::keep_wait<All, Limits>(how, std::get<I>(arguments)...);
        what.serve_by(at.served_by());
        return net::async_initiate<token, void(error_code, Result)>(
            initiation<executor, Result>{at.loop()}, std::get<sizeof...(I)>(arguments), std::move(what));
    } else {
        return tocsin::detail::refused<void>();
    }
}
template <bool All, class Result, class Limits, class Where, class... Arguments>
auto start_with(Where& where, const limits& how, Arguments&&... arguments) {
    return start<All, Result, Limits>(where, how,
                                      std::forward_as_tuple(std::forward<Arguments>(arguments)...),
                                      std::make_index_sequence<sizeof...(Arguments) - 1>());
}

template <class... Arguments>
concept sources_and_token = sizeof...(Arguments) >= 2 && !tocsin::detail::begins_with_limits<Arguments...>;

}  // namespace detail

// An executor or execution context, for a wait that gets a driver: on(context).by(driver).
template <class Where>
auto on(Where&& where) {
    return detail::to_loop_and_driver(where);
}

// Waits for one source.
template <class Where, class Source, class Token>
auto async_wait(Where&& where, const limits& how, Source&& from, Token&& token) {
    return detail::start_with<false, wait_status, tocsin::detail::described_limits>(
        where, how, std::forward<Source>(from), std::forward<Token>(token));
}
template <class Where, class Source, class Token>
auto async_wait(Where&& where, Source&& from, Token&& token) {
    return detail::start_with<false, wait_status, tocsin::detail::described_no_limits>(
        where, limits(), std::forward<Source>(from), std::forward<Token>(token));
}

// Waits for the first of several sources, as wait_any() does. The token comes last.
template <class Where, class... SourcesAndToken>
    requires(sizeof...(SourcesAndToken) >= 2)
auto async_wait_any(Where&& where, const limits& how, SourcesAndToken&&... arguments) {
    return detail::start_with<false, any_result, tocsin::detail::described_limits>(
        where, how, std::forward<SourcesAndToken>(arguments)...);
}
template <class Where, class... SourcesAndToken>
    requires detail::sources_and_token<SourcesAndToken...>
auto async_wait_any(Where&& where, SourcesAndToken&&... arguments) {
    return detail::start_with<false, any_result, tocsin::detail::described_no_limits>(
        where, limits(), std::forward<SourcesAndToken>(arguments)...);
}

// Waits for all of several sources at once, as wait_all() does. The token comes last.
template <class Where, class... SourcesAndToken>
    requires(sizeof...(SourcesAndToken) >= 2)
auto async_wait_all(Where&& where, const limits& how, SourcesAndToken&&... arguments) {
    return detail::start_with<true, wait_status, tocsin::detail::described_limits>(
        where, how, std::forward<SourcesAndToken>(arguments)...);
}
template <class Where, class... SourcesAndToken>
    requires detail::sources_and_token<SourcesAndToken...>
auto async_wait_all(Where&& where, SourcesAndToken&&... arguments) {
    return detail::start_with<true, wait_status, tocsin::detail::described_no_limits>(
        where, limits(), std::forward<SourcesAndToken>(arguments)...);
}

}  // namespace TOCSIN_ASIO_FLAVOR
}  // namespace tocsin::asio

#undef TOCSIN_ASIO_FLAVOR
#undef TOCSIN_ASIO_FOUND
#undef TOCSIN_ASIO_HAS_SLOTS
