// SPDX-License-Identifier: Apache-2.0
// Which arguments a wait over several sources accepts, and one compile-time message for each mistake that a caller
// makes.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/event_state.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

namespace tocsin::detail {

template <class Mode>
void takes_event(const basic_event<Mode>& event);  // never defined
template <class T>
concept event_like = requires(T& event) { takes_event(event); };

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;

template <class T>
inline constexpr bool is_time_point = std::same_as<T, deadline>;
template <class Clock, class Duration>
inline constexpr bool is_time_point<std::chrono::time_point<Clock, Duration>> = true;

// Whether a list of such objects may be meant as a list of sources.
template <class T>
concept may_be_in_a_list =
    std::convertible_to<T, source> || event_like<std::remove_cvref_t<T>> ||
    (std::is_pointer_v<std::remove_cvref_t<T>> && event_like<std::remove_pointer_t<std::remove_cvref_t<T>>>);

template <class T>
concept list_of_sources = std::convertible_to<T, std::span<const source>>;

// These concepts choose among the overloads of a wait. Where a wait takes a list of sources, the list has overloads of
// its own. A call whose first argument is limits goes to an overload that takes limits.
template <class... Arguments>
concept one_by_one = sizeof...(Arguments) != 1 || (!list_of_sources<Arguments> && ...);
template <class... Arguments>
inline constexpr bool begins_with_limits = false;
template <class First, class... Others>
inline constexpr bool begins_with_limits<First, Others...> = std::same_as<std::remove_cvref_t<First>, limits>;
template <class... Arguments>
concept no_limits_first = !begins_with_limits<Arguments...>;

// Whether a call has overloads for a list of sources, so what its message says to who passes another list.
enum class lists : bool { refused, taken };

// Whether the argument is a source. If it is not, the compiler's message says what to write instead. `Number` is the
// argument's position, which begins with 1 and does not count the limits.
template <lists Lists, std::size_t Number, class Argument>
constexpr bool is_source() {
    using type = std::remove_cvref_t<Argument>;
    constexpr bool accepted = std::is_convertible_v<Argument, source>;
    if constexpr (accepted) {
    } else if constexpr (std::same_as<type, limits>) {
        static_assert(accepted,
                      "tocsin: limits come first, once: wait_any({.until = 50ms, .stop = token}, a, b)");
    } else if constexpr (is_duration<type>) {
        static_assert(
            accepted,
            "tocsin: a duration is no source: limit the wait by wait_any({.until = 50ms}, ...), or give it a "
            "timer as a source, tocsin::after(50ms)");
    } else if constexpr (is_time_point<type>) {
        static_assert(accepted,
                      "tocsin: a time is no source: limit the wait by wait_any({.until = time}, ...), or "
                      "give it a timer "
                      "as a source, tocsin::at(time)");
    } else if constexpr (std::same_as<type, stop_token>) {
        static_assert(accepted, "tocsin: a stop token is no source: write wait_any({.stop = token}, ...)");
    } else if constexpr (std::same_as<type, spin_policy>) {
        static_assert(accepted, "tocsin: a spin policy is no source: write wait_any({.spin = policy}, ...)");
    } else if constexpr (std::is_integral_v<type>) {
        static_assert(accepted,
                      "tocsin: a number is no source: for a descriptor write tocsin::readable(number) or "
                      "tocsin::writable(number)");
    } else if constexpr (std::is_pointer_v<type>) {
        static_assert(accepted, "tocsin: a pointer is no source: write *pointer, for the object itself");
    } else if constexpr (!std::is_lvalue_reference_v<Argument> && std::is_convertible_v<type&, source>) {
        static_assert(
            accepted,
            "tocsin: nobody can set a temporary, and a wait takes none: give the event, source or transfer a "
            "name, and wait for that");
    } else if constexpr (
        requires(type& object) { object.notify_one(); } && !requires(type& object) { object.load(); }) {
        static_assert(
            accepted,
            "tocsin: a condition is no source: write condition.wait_any(lock, a, b), which waits for "
            "the condition, too (tocsin::condition has this; std::condition_variable does not)");
    } else if constexpr (event_like<type>) {
        static_assert(
            accepted,
            "tocsin: a const event can't be waited for, because a wait may take it: drop the const");
    } else if constexpr (requires(type& channel) { channel.receiving(); }) {
        static_assert(
            accepted,
            "tocsin: a channel is no source: its transfers are. Write auto next = channel.receiving(); or "
            "auto out = channel.sending(item); and wait for that");
    } else if constexpr (requires(type& barrier) { barrier.arrive_and_drop(); }) {
        static_assert(accepted,
                      "tocsin: a barrier is no source: its tokens are. Write const auto token = "
                      "barrier.arrive(); and wait "
                      "for that");
    } else if constexpr (requires(type& list) { requires may_be_in_a_list<decltype(*std::begin(list))>; }) {
        static_assert(accepted || Lists == lists::taken,
                      "tocsin: this call takes no list: write the sources one by one, or make a "
                      "tocsin::span_operation of the list (tocsin/operation.hpp)");
        static_assert(
            accepted || Lists == lists::refused,
            "tocsin: a list of sources is a std::span<const tocsin::source>, alone after the limits: make a "
            "std::vector<tocsin::source>(begin, end) of these objects, and pass that");
    } else {
        static_assert(
            accepted,
            "tocsin: this argument is no source: sources are events, semaphores, latches, wait groups, "
            "tokens "
            "of a barrier, a channel's receiving() and sending(), after(), at(), tickers, readable(), "
            "writable(), processes, signals and types with try_wait(), enlist() and delist() that are "
            "noexcept (tocsin/source.hpp)");
    }
    return accepted;
}

template <lists Lists, class... Arguments>
constexpr bool are_sources() {
    static_assert(sizeof...(Arguments) != 0, "tocsin: nothing to wait for: give at least one source");
    return sizeof...(Arguments) != 0 && []<std::size_t... Index>(std::index_sequence<Index...>) {
        return (is_source<Lists, Index + 1, Arguments>() && ...);
    }(std::index_sequence_for<Arguments...>());
}

// Whether wait_all() can never take an object of this type, as the type says itself.
template <class T>
constexpr bool says_it_does_not_stay() {
    if constexpr (requires { T::stays_ready; }) {
        return !T::stays_ready;
    } else {
        return custom_source<T>;
    }
}

// The same for a wait for all of its sources, which refuses further ones. (For lists, the wait itself does that.)
template <class Argument>
constexpr bool is_source_of_wait_for_all() {
    using type = std::remove_cvref_t<Argument>;
    constexpr bool accepted = !says_it_does_not_stay<type>();
    if constexpr (custom_source<type>) {
        static_assert(
            accepted,
            "tocsin: a wait for all takes no object that can be taken away once it is ready: wait for any "
            "instead. If an object of your type stays ready, declare that: static constexpr bool "
            "stays_ready = true; (tocsin/source.hpp)");
    } else {
        static_assert(accepted,
                      "tocsin: a wait for all takes no descriptor, process, signal or object that processes "
                      "share, because nothing keeps it ready until the last source is ready: wait for any "
                      "instead");
    }
    return accepted;
}
template <lists Lists, bool All, class... Arguments>
constexpr bool are_sources_of() {
    if constexpr (!are_sources<Lists, Arguments...>()) {
        return false;
    } else if constexpr (All) {
        return (is_source_of_wait_for_all<Arguments>() && ...);
    } else {
        return true;
    }
}

// Whether these become sources without an exception. `Arguments` are references. (Objects that processes share may be
// refused.)
template <class... Arguments>
inline constexpr bool become_sources_quietly = (std::is_nothrow_constructible_v<source, Arguments> && ...);

// The result of a call that does not compile. Never defined.
template <class Result>
Result refused();

}  // namespace tocsin::detail

// Overloads for the mistakes that no other overload matches, so that each mistake gets a message of its own. `sources`
// is how the message writes the sources.
// NOLINTBEGIN(bugprone-macro-parentheses): `result` is a type
#define TOCSIN_REFUSE_MISUSE(call, sources, list, result)                                                  \
    template <class First, class... Others>                                                                \
    result call(First&&, const limits&, Others&&...) {                                                     \
        static_assert(detail::never<First>,                                                                \
                      "tocsin: limits come first: " #call "({.until = 50ms}, " sources ")");               \
        return detail::refused<result>();                                                                  \
    }                                                                                                      \
    template <class First, class Second, class... Others>                                                  \
    result call(First&&, Second&&, const limits&, Others&&...) {                                           \
        static_assert(detail::never<First>,                                                                \
                      "tocsin: limits come first: " #call "({.until = 50ms}, " sources ")");               \
        return detail::refused<result>();                                                                  \
    }                                                                                                      \
    template <class... Others>                                                                             \
    result call(const limits&, const limits&, Others&&...) {                                               \
        static_assert(detail::never<Others...>,                                                            \
                      "tocsin: limits come once: " #call "({.until = 50ms, .stop = token}, " sources ")"); \
        return detail::refused<result>();                                                                  \
    }                                                                                                      \
    template <class Result = result>                                                                       \
    Result call(std::initializer_list<source>) {                                                           \
        static_assert(detail::never<Result>,                                                               \
                      "tocsin: write the sources without braces, " #call "(" sources ")" list);            \
        return detail::refused<result>();                                                                  \
    }
// NOLINTEND(bugprone-macro-parentheses)
