// SPDX-License-Identifier: Apache-2.0
// Asynchronous waits on an auto-reset event: tocsin's forms, and one written by hand.
#pragma once

#include "../contestant.hpp"

#include <tocsin/tocsin.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

namespace lab {

struct counts_an_end {
    void operator()(const tocsin::any_result&) const noexcept { ++*ended; }
    std::uint64_t* ended;
};

// Operations. A timed_wait has a deadline that is far away.
class tocsin_operation_event {
    template <bool Limited>
    static auto make(std::uint64_t* ended, tocsin::auto_reset_event& event) {
        if constexpr (Limited)
            return tocsin::any_operation(counts_an_end{ended}, {.until = std::chrono::hours(1)}, event);
        else
            return tocsin::any_operation(counts_an_end{ended}, event);
    }

public:
    void set() noexcept { event_.set(); }

    template <bool Limited>
    class wait_as {
    public:
        explicit wait_as(tocsin_operation_event& on) : operation_(make<Limited>(&ended_, on.event_)) {}
        void start() { operation_.start(); }
        bool cancel() noexcept { return operation_.cancel(); }
        std::uint64_t ended() const noexcept { return ended_; }

    private:
        std::uint64_t ended_ = 0;
        decltype(make<Limited>(nullptr, std::declval<tocsin::auto_reset_event&>())) operation_;
    };
    using wait = wait_as<false>;
    using timed_wait = wait_as<true>;

private:
    tocsin::auto_reset_event event_;
};

// Coroutines. A coroutine waits each time that start() resumes it. Its destruction cancels its wait, and the next
// start() makes another one.
class waiting_coroutine {
public:
    struct promise_type {
        waiting_coroutine get_return_object() noexcept {
            return waiting_coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };

    waiting_coroutine(waiting_coroutine&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    waiting_coroutine& operator=(waiting_coroutine&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~waiting_coroutine() {
        if (handle_) handle_.destroy();
    }
    void resume() const { handle_.resume(); }
    void destroy() noexcept { std::exchange(handle_, nullptr).destroy(); }
    bool exists() const noexcept { return handle_ != nullptr; }

private:
    explicit waiting_coroutine(std::coroutine_handle<> handle) noexcept : handle_(handle) {}

    std::coroutine_handle<> handle_;
};

template <class Await>
class tocsin_awaited_event {
public:
    void set() noexcept { event_.set(); }

    template <bool Limited>
    class wait_as {
    public:
        explicit wait_as(tocsin_awaited_event& on) : event_(&on.event_), coroutine_(run(event_, &ended_)) {}
        wait_as(const wait_as&) = delete;
        wait_as& operator=(const wait_as&) = delete;
        void start() {
            if (!coroutine_.exists()) coroutine_ = run(event_, &ended_);
            coroutine_.resume();
        }
        bool cancel() noexcept {
            coroutine_.destroy();
            ++ended_;
            return true;
        }
        std::uint64_t ended() const noexcept { return ended_; }

    private:
        static waiting_coroutine run(tocsin::auto_reset_event* event, std::uint64_t* ended) {
            for (;;) {
                if constexpr (Limited)
                    (void)co_await Await::on(*event, {.until = std::chrono::hours(1)});
                else
                    (void)co_await Await::on(*event);
                ++*ended;
                co_await std::suspend_always();
            }
        }

        tocsin::auto_reset_event* event_;
        std::uint64_t ended_ = 0;
        waiting_coroutine coroutine_;
    };
    using wait = wait_as<false>;
    using timed_wait = wait_as<true>;

private:
    tocsin::auto_reset_event event_;
};

struct awaits_any {
    static auto on(tocsin::auto_reset_event& event) { return tocsin::async_wait_any(event); }
    static auto on(tocsin::auto_reset_event& event, const tocsin::limits& how) {
        return tocsin::async_wait_any(how, event);
    }
};
struct awaits_one {
    static auto on(tocsin::auto_reset_event& event) { return tocsin::async_wait(event); }
    static auto on(tocsin::auto_reset_event& event, const tocsin::limits& how) {
        return tocsin::async_wait(how, event);
    }
};

// The floor of a wait that is ready: it can't wait.
class tocsin_tried_event {
public:
    static constexpr bool never_waits = true;

    void set() noexcept { event_.set(); }

    class wait {
    public:
        explicit wait(tocsin_tried_event& on) noexcept : event_(on.event_) {}
        void start() noexcept { ended_ += event_.try_wait() ? 1 : 0; }
        std::uint64_t ended() const noexcept { return ended_; }

    private:
        tocsin::auto_reset_event& event_;
        std::uint64_t ended_ = 0;
    };

private:
    tocsin::auto_reset_event event_;
};

constexpr contestant_info only_waits_asynchronously(std::string_view name, std::string_view label,
                                                    lab::role role, std::string_view about,
                                                    std::string_view limits = {}) {
    constexpr std::string_view only = "is only an asynchronous wait";
    return {.name = name,
            .label = label,
            .role = role,
            .about = about,
            .limits = limits,
            .no_manual_event = only,
            .no_auto_event = only,
            .no_lock = only,
            .no_address_wait = only,
            .no_committer = only};
}

struct tocsin_co_await {
    static constexpr contestant_info info = only_waits_asynchronously(
        "tocsin_co_await", "tocsin co_await any", role::variant, "co_await async_wait_any(event)");
    using async_event = tocsin_awaited_event<awaits_any>;
};
struct tocsin_co_await_one {
    static constexpr contestant_info info = only_waits_asynchronously(
        "tocsin_co_await_one", "tocsin co_await", role::variant, "co_await async_wait(event)");
    using async_event = tocsin_awaited_event<awaits_one>;
};
struct tocsin_try_wait {
    static constexpr contestant_info info = only_waits_asynchronously(
        "tocsin_try_wait", "tocsin try_wait", role::variant, "event.try_wait(), which never waits");
    using async_event = tocsin_tried_event;
};

}  // namespace lab
