// SPDX-License-Identifier: Apache-2.0
// Senders for an implementation that the program names. This one has just the names that tocsin uses, and nothing that
// is tocsin's.
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace foreign {

struct sender_tag {};
struct receiver_tag {};
struct operation_state_tag {};

struct set_value_t {
    template <class Receiver, class... Values>
    void operator()(Receiver&& to, Values&&... values) const noexcept {
        std::forward<Receiver>(to).set_value(std::forward<Values>(values)...);
    }
};
struct set_error_t {
    template <class Receiver, class Error>
    void operator()(Receiver&& to, Error&& why) const noexcept {
        std::forward<Receiver>(to).set_error(std::forward<Error>(why));
    }
};
struct set_stopped_t {
    template <class Receiver>
    void operator()(Receiver&& to) const noexcept {
        std::forward<Receiver>(to).set_stopped();
    }
};
inline constexpr set_value_t set_value{};
inline constexpr set_error_t set_error{};
inline constexpr set_stopped_t set_stopped{};

struct get_env_t {
    template <class Object>
    auto operator()(const Object& of) const noexcept {
        return of.get_env();
    }
};
struct get_stop_token_t {
    template <class Env>
    auto operator()(const Env& in) const noexcept {
        return in.query(*this);
    }
};
inline constexpr get_env_t get_env{};
inline constexpr get_stop_token_t get_stop_token{};

template <class... Signatures>
struct completion_signatures {};

template <class T>
concept receiver = std::derived_from<typename T::receiver_concept, receiver_tag>;

}  // namespace foreign

#define TOCSIN_EXECUTION_NAMESPACE foreign
#include <tocsin/sender.hpp>

namespace {

using tocsin::as_sender;
using tocsin::auto_reset_event;

struct environment {
    std::stop_token query(foreign::get_stop_token_t) const noexcept { return token; }
    std::stop_token token;
};
struct receiver {
    using receiver_concept = foreign::receiver_tag;
    environment get_env() const noexcept { return {token}; }
    void set_value(tocsin::any_result) && noexcept { ++*values; }
    void set_stopped() && noexcept { ++*stops; }

    int* values;
    int* stops;
    std::stop_token token;
};

using sender = decltype(as_sender(std::declval<auto_reset_event&>()));
static_assert(std::derived_from<sender::sender_concept, foreign::sender_tag>);
static_assert(std::same_as<decltype(sender::get_completion_signatures<sender, environment>()),
                           foreign::completion_signatures<foreign::set_value_t(tocsin::any_result),
                                                          foreign::set_stopped_t()>>);

TEST(ForeignSender, CompletesThroughTheForeignWords) {
    auto_reset_event event;
    std::stop_source source;
    int values = 0;
    int stops = 0;
    for (int i = 0; i != 2; ++i) {
        auto state = as_sender(event).connect(receiver{&values, &stops, source.get_token()});
        static_assert(
            std::derived_from<decltype(state)::operation_state_concept, foreign::operation_state_tag>);
        state.start();
        if (i == 0) event.set();
        source.request_stop();
        EXPECT_EQ(values, 1);
        EXPECT_EQ(stops, i);
    }
}

}  // namespace
