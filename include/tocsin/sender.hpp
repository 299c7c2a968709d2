// SPDX-License-Identifier: Apache-2.0
// Waits as senders ([exec] in C++26). They wait for any sources, and work with the algorithms of std::execution,
// stdexec or another implementation (execution.hpp says which one is used).
//
//     auto next = tocsin::as_sender({.until = 5s}, shutdown, job)
//               | stdexec::then([](tocsin::any_result how) { return how.index; });
//     stdexec::sync_wait(stdexec::when_all(tocsin::as_sender(started), tocsin::as_sender_all(left_fork, right_fork)));
//     auto first = exec::when_any(tocsin::as_sender(answer), tocsin::as_sender(tocsin::after(1s)));
//
// A sender is a description: it can be moved, copied, and started several times. It refers to its sources, to which the
// rules of wait_any() and wait_all() apply (wait.hpp). The sender copies the limits and their stop token. A time
// point of a clock of your own is not copied: the sender refers to it. A duration counts from the moment at which its
// limits or its timer are made, usually the call that makes the sender, and never from a start.
//
// The operation state contains the wait, which is an operation (operation.hpp). It allocates nothing, with the
// exceptions that operation.hpp names.
//
// How it completes
// - as_sender() completes with set_value(any_result). The result is timed_out if the limits' deadline ended the wait,
//   and stopped if the limits' stop token did. (If a stop was requested through the receiver's token, too, the sender
//   completes with set_stopped().)
// - as_sender_all() completes with set_value(), or if it has limits, with set_value(wait_status).
// - If a stop requested through the receiver's stop token has ended the wait, the sender completes with set_stopped().
//   The wait has then taken nothing. The token may be of any type. If its type says that a stop is never possible, as
//   never_stop_token does, the sender does not list set_stopped(), and the token costs nothing. If a source is ready
//   when the operation starts, the wait takes the source, even if the stop was requested before.
// - It completes with set_error(std::exception_ptr) where a wait would throw. as_sender_all() always lists this.
//   as_sender() lists it only if there are limits, or a source that may be a timer or a descriptor. (An argument of the
//   type `source` is such a source.)
//
// It completes in the thread that ends the wait: in set(), in the request to stop, in start(), or in a background
// thread of the library, as operation.hpp says. If the wait ends during start() and the receiver's token can stop, it
// may complete in start() instead. To continue elsewhere, add continues_on(scheduler).
//
// A driver can serve the deadlines and descriptors in place of the background threads (driver.hpp). It is the driver of
// the sender, as in as_sender({.until = 5s}, job).by(driver), or else the default driver, if there is one.
//
// Cost: that of an operation. With a token that can stop, one or two read-modify-writes more, and the token's callback
// if the wait is not over at once. Why this is correct is said at wait_operation_state below.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/chosen_driver.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/described_wait.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/stop_callback.hpp>
#include <tocsin/execution.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>
#include <tocsin/wait.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tocsin {
namespace detail {

template <class Env>
using token_in = std::remove_cvref_t<decltype(execution::get_stop_token(std::declval<const Env&>()))>;
template <class Receiver>
using environment_of = decltype(execution::get_env(std::declval<const Receiver&>()));

// A token whose type says that no stop is possible.
template <class Token>
concept never_stops = requires { requires std::bool_constant<(!Token::stop_possible())>::value; };

template <class Token, class Function>
struct stop_callback_of {
    using type = typename Token::template callback_type<Function>;
};
template <class Function>
struct stop_callback_of<stop_token, Function> {  // std::stop_token has a callback_type only from C++26 on
    using type = sound_stop_callback<Function>;
};

template <class Wait>
using value_signature = std::conditional_t<
    !Wait::for_all, execution::set_value_t(any_result),
    std::conditional_t<Wait::has_limits, execution::set_value_t(wait_status), execution::set_value_t()>>;

template <class Wait, bool Stops>
auto signatures_of() noexcept {
    using execution::completion_signatures;
    using value = value_signature<Wait>;
    using error = execution::set_error_t(std::exception_ptr);
    using stopped = execution::set_stopped_t();
    if constexpr (Wait::may_fail && Stops) {
        return completion_signatures<value, error, stopped>();
    } else if constexpr (Wait::may_fail) {
        return completion_signatures<value, error>();
    } else if constexpr (Stops) {
        return completion_signatures<value, stopped>();
    } else {
        return completion_signatures<value>();
    }
}

// The operation state of a sender.
//
// If the receiver's token can stop, the wait may end while the token's callback is being registered or runs. The
// callback can't be registered before the wait has begun, nor after the receiver was told of the end. The listener's
// phase decides which thread completes the sender, that is, tells the receiver:
//   begun      start() has not registered the callback yet.
//   listening  start() has registered the callback, and does not touch the state any more. The operation's function
//              completes the sender.
//   ended      The function was called. If it found `begun`, start() completes the sender. If start() sees `ended`
//              before it registers the callback, it does not register the callback.
// The thread that completes the sender first destroys the callback. The destructor waits for another thread that is
// inside the callback, that is, in cancel(). That is no deadlock, because cancel() never waits for the function. If the
// completing thread itself is inside the callback, the destructor does not wait. This is safe, because cancel() does
// not touch the operation after the function's call.
//
// Checked by: tests/model/sender_model_test.cpp, tests/unit/sender_test.cpp. Proof P25 in docs/proofs.md.
template <class Wait, class Receiver>
class wait_operation_state {
    using token = token_in<environment_of<Receiver>>;
    static constexpr bool stops = !never_stops<token>;
    using result = std::conditional_t<Wait::for_all, wait_status, any_result>;

    struct ended {
        void operator()(const result& how) const noexcept { of->end(how); }
        wait_operation_state* of;
    };
    struct canceller {
        void operator()() const noexcept { (void)of->operation_.cancel(); }
        wait_operation_state* of;
    };
    enum class phase : std::uint8_t { begun, listening, ended };
    // What is needed only if the token can stop.
    struct listener {
        plain<result> how{result()};
        std::optional<typename stop_callback_of<token, canceller>::type> callback;
        atomic<phase> at{phase::begun};
    };
    struct no_listener {};

public:
    using operation_state_concept = execution::operation_state_tag;

    wait_operation_state(const Wait& what, Receiver&& to) noexcept
        : receiver_(std::move(to)), operation_(what.operation(ended{this})) {
        what.served_by().serve(operation_);
    }
    wait_operation_state(const wait_operation_state&) = delete;
    wait_operation_state& operator=(const wait_operation_state&) = delete;

    void start() & noexcept {
        TOCSIN_TRY { operation_.start(); }
        TOCSIN_CATCH(...) { return fail(std::current_exception()); }
        if constexpr (stops) {
            auto& [how, callback, at] = listener_;
            if (at.load(std::memory_order_acquire) == phase::ended) return complete(how);  // [sender-ended]
            callback.emplace(stop_token_of_receiver(), canceller{this});
            // [sender-listening] releases the callback; [sender-ended] acquires the result
            if (at.exchange(phase::listening, std::memory_order_acq_rel) == phase::ended) finish();
        }
    }

private:
    token stop_token_of_receiver() const noexcept {
        return execution::get_stop_token(execution::get_env(receiver_));
    }

    // The operation's function.
    void end(const result& how) noexcept {
        if constexpr (stops) {
            listener_.how = how;
            // [sender-ended] releases the result; [sender-listening] acquires the callback
            if (listener_.at.exchange(phase::ended, std::memory_order_acq_rel) == phase::listening) finish();
        } else {
            complete(how);
        }
    }
    void finish() noexcept {
        listener_.callback.reset();
        complete(listener_.how);
    }
    void complete(const result how) noexcept {
        if constexpr (Wait::may_fail) {
            if (const int error = operation_.error(); error != 0) {
                return fail(std::make_exception_ptr(std::system_error(
                    error, std::system_category(), "tocsin: a sender's wait for descriptors")));
            }
        }
        if constexpr (stops) {
            if (status_of(how) == wait_status::stopped && stop_token_of_receiver().stop_requested()) {
                return execution::set_stopped(std::move(receiver_));
            }
        }
        if constexpr (Wait::for_all && !Wait::has_limits) {
            execution::set_value(std::move(receiver_));
        } else {
            execution::set_value(std::move(receiver_), result(how));
        }
    }
    void fail(std::exception_ptr why) noexcept {
        if constexpr (Wait::may_fail) {
            execution::set_error(std::move(receiver_), std::move(why));
        } else {
            std::terminate();  // not reached: such a wait does not throw
        }
    }
    static wait_status status_of(wait_status how) noexcept { return how; }
    static wait_status status_of(const any_result& how) noexcept { return how.status; }

    Receiver receiver_;
    TOCSIN_NO_UNIQUE_ADDRESS std::conditional_t<stops, listener, no_listener> listener_;
    decltype(std::declval<const Wait&>().operation(std::declval<ended>())) operation_;
};

// What as_sender() and as_sender_all() return.
template <class Wait>
class [[nodiscard]] wait_sender {
public:
    using sender_concept = execution::sender_tag;

    explicit wait_sender(const Wait& what) noexcept : what_(what) {}

    // Returns a sender of the same wait whose deadlines and descriptors the driver serves, instead of the default. The
    // driver must outlive each operation state that this sender makes.
    wait_sender by(driver& which TOCSIN_LIFETIMEBOUND) const noexcept {
        chosen_driver chosen;
        chosen.choose(which);
        wait_sender other(*this);
        other.what_.serve_by(chosen);
        return other;
    }

    // The first form is that of the standard, the second that of P2300 before it.
    template <class Self, class Env>
    static consteval auto get_completion_signatures() {
        return signatures_of<Wait, !never_stops<token_in<Env>>>();
    }
    template <class Env>
    auto get_completion_signatures(const Env&) const noexcept {
        return signatures_of<Wait, !never_stops<token_in<Env>>>();
    }

    template <execution::receiver Receiver>
    auto connect(Receiver to) const noexcept {
        return wait_operation_state<Wait, Receiver>(what_, std::move(to));
    }

private:
    Wait what_;
};

template <bool All, class Limits, class... Arguments>
auto make_sender(const limits& how, Arguments&... from) noexcept(become_sources_quietly<Arguments&...>) {
    if constexpr (are_sources_of<lists::refused, All, Arguments...>()) {
        return wait_sender(keep_wait<All, Limits>(how, from...));
    } else {
        return refused<void>();
    }
}

}  // namespace detail

// A sender that waits for the first of its sources, as wait_any() does.
template <class... Sources>
auto as_sender(const limits& how, Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_sender<false, detail::described_limits, Sources...>(how, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto as_sender(Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_sender<false, detail::described_no_limits, Sources...>(limits(), from...);
}

// A sender that waits for all of its sources at once, as wait_all() does.
template <class... Sources>
auto as_sender_all(const limits& how,
                   Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_sender<true, detail::described_limits, Sources...>(how, from...);
}
template <class... Sources>
    requires detail::no_limits_first<Sources...>
auto as_sender_all(Sources&&... from) noexcept(detail::become_sources_quietly<Sources&...>) {
    return detail::make_sender<true, detail::described_no_limits, Sources...>(limits(), from...);
}

}  // namespace tocsin
