// SPDX-License-Identifier: Apache-2.0
// tocsin's senders: each start() connects the sender again, because an operation state can be started once.
#pragma once

#include "async_waits.hpp"

#include <tocsin/sender.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

namespace lab {

// A request to stop, for one callback and one thread at a time.
class small_stop {
    struct callback_base {
        small_stop* of;
        void (*call)(callback_base&) noexcept;
    };

public:
    template <class Function>
    class callback : callback_base {
    public:
        template <class Token>
        callback(const Token& token, Function function) noexcept
            : callback_base{token.of,
                            [](callback_base& self) noexcept { static_cast<callback&>(self).function_(); }},
              function_(std::move(function)) {
            of->registered_ = this;
        }
        callback(const callback&) = delete;
        callback& operator=(const callback&) = delete;
        ~callback() { of->registered_ = nullptr; }

    private:
        Function function_;
    };
    struct token {
        template <class Function>
        using callback_type = callback<Function>;
        bool stop_requested() const noexcept { return of->is_requested_; }
        static bool stop_possible() noexcept { return true; }
        bool operator==(const token&) const = default;
        small_stop* of;
    };

    token get_token() noexcept { return {this}; }
    void renew() noexcept { is_requested_ = false; }
    void request() noexcept {
        is_requested_ = true;
        if (registered_ != nullptr) registered_->call(*registered_);
    }

private:
    callback_base* registered_ = nullptr;
    bool is_requested_ = false;
};

// A timed_wait has a deadline that is far away.
class tocsin_sent_event {
    struct environment {
        small_stop::token token;
        auto query(const tocsin::execution::get_stop_token_t&) const noexcept { return token; }
    };
    struct receiver {
        using receiver_concept = tocsin::execution::receiver_tag;
        environment get_env() const noexcept { return {stop->get_token()}; }
        void set_value(const tocsin::any_result&) && noexcept { ++*ended; }
        void set_stopped() && noexcept { ++*ended; }
        [[noreturn]] void set_error(const std::exception_ptr&) && noexcept { std::terminate(); }
        std::uint64_t* ended;
        small_stop* stop;
    };
    template <bool Limited>
    static auto sender(tocsin::auto_reset_event& event) {
        if constexpr (Limited)
            return tocsin::as_sender({.until = std::chrono::hours(1)}, event);
        else
            return tocsin::as_sender(event);
    }

public:
    void set() noexcept { event_.set(); }

    template <bool Limited>
    class wait_as {
    public:
        explicit wait_as(tocsin_sent_event& on) noexcept : event_(on.event_) {}
        wait_as(const wait_as&) = delete;
        wait_as& operator=(const wait_as&) = delete;
        void start() {
            stop_.renew();
            state_.emplace(connects{*this});
            tocsin::execution::start(state_->made);
        }
        bool cancel() noexcept {
            const std::uint64_t before = ended_;
            stop_.request();
            return ended_ != before;
        }
        std::uint64_t ended() const noexcept { return ended_; }

    private:
        using made = decltype(tocsin::execution::connect(
            sender<Limited>(std::declval<tocsin::auto_reset_event&>()), std::declval<receiver>()));
        struct connects {
            wait_as& self;
        };
        struct state {
            explicit state(connects with)
                : made(tocsin::execution::connect(sender<Limited>(with.self.event_),
                                                  receiver{&with.self.ended_, &with.self.stop_})) {}
            wait_as::made made;
        };

        tocsin::auto_reset_event& event_;
        std::uint64_t ended_ = 0;
        small_stop stop_;
        std::optional<state> state_;
    };
    using wait = wait_as<false>;
    using timed_wait = wait_as<true>;

private:
    tocsin::auto_reset_event event_;
};

struct tocsin_sender {
    static constexpr contestant_info info =
        only_waits_asynchronously("tocsin_sender", "tocsin sender", role::variant,
                                  "as_sender(event), connected for each wait; the receiver's token can stop",
                                  "the stop token is the lab's own, for one callback in one thread");
    using async_event = tocsin_sent_event;
};

}  // namespace lab
