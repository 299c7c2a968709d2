// SPDX-License-Identifier: Apache-2.0
// The words of the standard's senders and receivers ([exec] in C++26) that tocsin's senders use (sender.hpp), in the
// namespace tocsin::execution. They come from the implementation that the program has, in this order:
// - the namespace that the macro TOCSIN_EXECUTION_NAMESPACE names (for instance beman::execution). Include the header
//   of that implementation first, and define the macro in the same way in all of the program;
// - stdexec, if <stdexec/execution.hpp> is found;
// - the standard library's <execution>, if it has senders (__cpp_lib_senders);
// - otherwise, or if the macro TOCSIN_EXECUTION_OWN is defined, this header itself, from the standard's text: the tags,
//   concepts and customization points below, but no algorithms. That is enough for receivers of your own.
//
// Implementations older than the standard's last change of names call the tags sender_t and operation_state_t. For
// these, define TOCSIN_EXECUTION_OLD_TAGS. Implementations that know only tag_invoke, and no member functions, don't
// work.
#pragma once

#include <tocsin/detail/config.hpp>

#include <version>

#if defined(TOCSIN_EXECUTION_OWN)
#elif defined(TOCSIN_EXECUTION_NAMESPACE)
#define TOCSIN_EXECUTION_FOUND TOCSIN_EXECUTION_NAMESPACE
#define TOCSIN_QUERIES_FOUND TOCSIN_EXECUTION_NAMESPACE
#elif __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
#define TOCSIN_EXECUTION_FOUND stdexec
#define TOCSIN_QUERIES_FOUND stdexec
#elif defined(__cpp_lib_senders)
#include <execution>
#include <stop_token>
#define TOCSIN_EXECUTION_FOUND std::execution
#define TOCSIN_QUERIES_FOUND std
#endif

#if defined(TOCSIN_EXECUTION_FOUND)

namespace tocsin::execution {

#if defined(TOCSIN_EXECUTION_OLD_TAGS)
using sender_tag = TOCSIN_EXECUTION_FOUND::sender_t;
using operation_state_tag = TOCSIN_EXECUTION_FOUND::operation_state_t;
#else
using TOCSIN_EXECUTION_FOUND::operation_state_tag;
using TOCSIN_EXECUTION_FOUND::sender_tag;
#endif
using TOCSIN_EXECUTION_FOUND::completion_signatures;
using TOCSIN_EXECUTION_FOUND::get_env;
using TOCSIN_EXECUTION_FOUND::receiver;
using TOCSIN_EXECUTION_FOUND::set_error;
using TOCSIN_EXECUTION_FOUND::set_error_t;
using TOCSIN_EXECUTION_FOUND::set_stopped;
using TOCSIN_EXECUTION_FOUND::set_stopped_t;
using TOCSIN_EXECUTION_FOUND::set_value;
using TOCSIN_EXECUTION_FOUND::set_value_t;
using TOCSIN_QUERIES_FOUND::get_stop_token;

}  // namespace tocsin::execution

#undef TOCSIN_EXECUTION_FOUND
#undef TOCSIN_QUERIES_FOUND

#else

#include <concepts>
#include <type_traits>
#include <utility>

namespace tocsin::execution {

struct sender_tag {};
struct receiver_tag {};
struct operation_state_tag {};

// A token that never asks to stop ([stoptoken.never]).
class never_stop_token {
    struct nothing {
        explicit nothing(never_stop_token, auto&&) noexcept {}
    };

public:
    template <class>
    using callback_type = nothing;

    static constexpr bool stop_requested() noexcept { return false; }
    static constexpr bool stop_possible() noexcept { return false; }
    bool operator==(const never_stop_token&) const = default;
};

// An environment that answers no query. get_env() returns it for an object without a member get_env().
template <class... None>
    requires(sizeof...(None) == 0)
struct env {};

struct get_env_t {
    template <class Object>
    constexpr decltype(auto) operator()(const Object& object) const noexcept {
        if constexpr (requires { object.get_env(); }) {
            static_assert(noexcept(object.get_env()));
            return object.get_env();
        } else {
            return env<>();
        }
    }
};
inline constexpr get_env_t get_env{};
template <class Object>
using env_of_t = decltype(get_env(std::declval<Object>()));

struct get_stop_token_t {
    template <class Env>
    constexpr auto operator()(const Env& environment) const noexcept {
        if constexpr (requires { environment.query(*this); }) {
            static_assert(noexcept(environment.query(*this)));
            return environment.query(*this);
        } else {
            return never_stop_token();
        }
    }
};
inline constexpr get_stop_token_t get_stop_token{};
template <class Env>
using stop_token_of_t = decltype(get_stop_token(std::declval<Env>()));

// The three ways in which an operation ends: each calls a member function of the receiver ([exec.recv]).
template <class Receiver>
concept given_up = !std::is_lvalue_reference_v<Receiver> && !std::is_const_v<Receiver>;

struct set_value_t {
    template <given_up Receiver, class... Values>
        requires requires(Receiver&& to, Values&&... values) {
            { std::move(to).set_value(std::forward<Values>(values)...) } noexcept;
        }
    constexpr void operator()(Receiver&& to, Values&&... values) const noexcept {
        std::move(to).set_value(std::forward<Values>(values)...);
    }
};
struct set_error_t {
    template <given_up Receiver, class Error>
        requires requires(Receiver&& to, Error&& error) {
            { std::move(to).set_error(std::forward<Error>(error)) } noexcept;
        }
    constexpr void operator()(Receiver&& to, Error&& error) const noexcept {
        std::move(to).set_error(std::forward<Error>(error));
    }
};
struct set_stopped_t {
    template <given_up Receiver>
        requires requires(Receiver&& to) {
            { std::move(to).set_stopped() } noexcept;
        }
    constexpr void operator()(Receiver&& to) const noexcept {
        std::move(to).set_stopped();
    }
};
inline constexpr set_value_t set_value{};
inline constexpr set_error_t set_error{};
inline constexpr set_stopped_t set_stopped{};

// The ways in which a sender may complete ([exec.cmplsig]), as function types such as set_value_t(int).
template <class... Signatures>
struct completion_signatures {};

template <class>
inline constexpr bool lists_completions = false;
template <class... Signatures>
inline constexpr bool lists_completions<completion_signatures<Signatures...>> = true;

// How a sender completes in an environment. The sender says so by a static member function template without arguments,
// by a member function that takes the environment, or by a member type ([exec.getcomplsigs], and P2300 before it).
template <class Sender, class... Env>
consteval auto get_completion_signatures() {
    using type = std::remove_cvref_t<Sender>;
    if constexpr (requires { type::template get_completion_signatures<Sender, Env...>(); }) {
        return type::template get_completion_signatures<Sender, Env...>();
    } else if constexpr (requires(Sender&& from, Env&&... in) {
                             std::forward<Sender>(from).get_completion_signatures(std::forward<Env>(in)...);
                         }) {
        return decltype(std::declval<Sender>().get_completion_signatures(std::declval<Env>()...))();
    } else if constexpr (requires { typename type::completion_signatures; }) {
        return typename type::completion_signatures();
    }
}
template <class Sender, class... Env>
using completion_signatures_of_t = decltype(execution::get_completion_signatures<Sender, Env...>());

template <class T>
concept sender =
    std::derived_from<typename std::remove_cvref_t<T>::sender_concept, sender_tag> &&
    std::move_constructible<std::remove_cvref_t<T>> && std::constructible_from<std::remove_cvref_t<T>, T>;
template <class T, class... Env>
concept sender_in = sender<T> && lists_completions<completion_signatures_of_t<T, Env...>>;

template <class T>
concept receiver = std::derived_from<typename std::remove_cvref_t<T>::receiver_concept, receiver_tag> &&
                   std::is_nothrow_move_constructible_v<std::remove_cvref_t<T>> &&
                   std::constructible_from<std::remove_cvref_t<T>, T>;

template <class Receiver, class Signature>
inline constexpr bool accepts = false;
template <class Receiver, class Tag, class... Values>
inline constexpr bool accepts<Receiver, Tag(Values...)> = std::is_invocable_v<Tag, Receiver, Values...>;
template <class Receiver, class Completions>
inline constexpr bool accepts_all = false;
template <class Receiver, class... Signatures>
inline constexpr bool accepts_all<Receiver, completion_signatures<Signatures...>> =
    (accepts<Receiver, Signatures> && ...);
template <class T, class Completions>
concept receiver_of = receiver<T> && accepts_all<std::remove_cvref_t<T>, Completions>;

template <class T>
concept operation_state = std::derived_from<typename T::operation_state_concept, operation_state_tag> &&
                          std::is_object_v<T> && requires(T& state) {
                              { state.start() } noexcept;
                          };

struct connect_t {
    template <class Sender, class Receiver>
        requires requires(Sender&& from, Receiver&& to) {
            { std::forward<Sender>(from).connect(std::forward<Receiver>(to)) } -> operation_state;
        }
    constexpr auto operator()(Sender&& from, Receiver&& to) const {
        return std::forward<Sender>(from).connect(std::forward<Receiver>(to));
    }
};
struct start_t {
    constexpr void operator()(operation_state auto& state) const noexcept { state.start(); }
};
inline constexpr connect_t connect{};
inline constexpr start_t start{};

template <class T, class Receiver>
concept sender_to =
    sender_in<T, env_of_t<Receiver>> &&
    receiver_of<Receiver, completion_signatures_of_t<T, env_of_t<Receiver>>> &&
    requires(T&& from, Receiver&& to) { connect(std::forward<T>(from), std::forward<Receiver>(to)); };

}  // namespace tocsin::execution

#endif
