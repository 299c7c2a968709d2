// SPDX-License-Identifier: Apache-2.0
// std::stop_token, stop_source and stop_callback for model threads. One word carries the order. Each operation makes
// one read-modify-write on that word. Then it has the list for itself until its next visible operation.
#pragma once

#include "atomic.hpp"

#include <type_traits>
#include <utility>

namespace tocsin::model {

// In libstdc++ without a futex, the destructor of std::stop_callback looks whether the callback has ended, and then
// sleeps. A wake-up between these two steps is lost. While an object of this class lives, the explorer's stop_callback
// does the same.
class waits_in_two_steps {
public:
    waits_in_two_steps() noexcept { ++count; }
    ~waits_in_two_steps() { --count; }
    waits_in_two_steps(const waits_in_two_steps&) = delete;
    waits_in_two_steps& operator=(const waits_in_two_steps&) = delete;

    static inline int count = 0;
};

// How many calls of begin_repeated_wakes() have no end_repeated_wakes() yet. While there are any, a sleeper misses no
// wake-up.
inline constinit atomic<std::uint32_t> repeated_wakes{0};
void begin_repeated_wakes() noexcept;
void end_repeated_wakes() noexcept;

namespace detail {

class stop_callback_base {
public:
    virtual void run() noexcept = 0;

    stop_callback_base* next = nullptr;
    stop_callback_base* previous = nullptr;
    bool listed = false;
    bool* gone = nullptr;  // set by its destructor while it runs
    atomic<std::uint32_t> finished{0};

protected:
    ~stop_callback_base() = default;
};

class stop_state {
public:
    void retain() noexcept { ++references_; }
    void release() noexcept {
        if (--references_ == 0) delete this;
    }
    void add_source() noexcept { ++sources_; }
    void drop_source() noexcept { --sources_; }

    bool requested() const noexcept { return (word_.load(std::memory_order_acquire) & 1) != 0; }
    bool possible() const noexcept { return sources_ > 0 || requested(); }
    bool request() noexcept;
    bool enlist(stop_callback_base& c) noexcept;  // false: already requested
    void delist(stop_callback_base& c) noexcept;

    ~stop_state();

private:
    void unlink(stop_callback_base& c) noexcept;

    atomic<std::uint32_t> word_{0};  // bit 0: requested; above it a count of operations
    stop_callback_base* first_ = nullptr;
    stop_callback_base* last_ = nullptr;
    int requester_ = -1;
    long references_ = 1;
    long sources_ = 0;
};

}  // namespace detail

class stop_token {
public:
    stop_token() noexcept = default;
    stop_token(const stop_token& other) noexcept : state_(other.state_) {
        if (state_) state_->retain();
    }
    stop_token(stop_token&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    stop_token& operator=(stop_token other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~stop_token() {
        if (state_) state_->release();
    }

    bool stop_requested() const noexcept { return state_ && state_->requested(); }
    bool stop_possible() const noexcept { return state_ && state_->possible(); }
    friend bool operator==(const stop_token& a, const stop_token& b) noexcept { return a.state_ == b.state_; }

private:
    explicit stop_token(detail::stop_state* s) noexcept : state_(s) {
        if (state_) state_->retain();
    }

    detail::stop_state* state_ = nullptr;

    friend class stop_source;
    template <class F>
    friend class stop_callback;
};

class stop_source {
public:
    stop_source() : state_(new detail::stop_state) { state_->add_source(); }
    stop_source(const stop_source& other) noexcept : state_(other.state_) {
        if (!state_) return;
        state_->retain();
        state_->add_source();
    }
    stop_source(stop_source&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    stop_source& operator=(stop_source other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~stop_source() {
        if (!state_) return;
        state_->drop_source();
        state_->release();
    }

    stop_token get_token() const noexcept { return stop_token(state_); }
    bool stop_requested() const noexcept { return state_ && state_->requested(); }
    bool stop_possible() const noexcept { return state_ != nullptr; }
    bool request_stop() noexcept { return state_ && state_->request(); }

private:
    detail::stop_state* state_;
};

template <class F>
class stop_callback final : detail::stop_callback_base {
public:
    using callback_type = F;

    template <class C>
        requires std::is_constructible_v<F, C>
    explicit stop_callback(const stop_token& token, C&& f)
        : state_(token.state_), function_(std::forward<C>(f)) {
        if (!state_) return;
        state_->retain();
        if (!state_->enlist(*this)) {
            std::exchange(state_, nullptr)->release();
            run();
        }
    }

    ~stop_callback() {
        if (!state_) return;
        state_->delist(*this);
        state_->release();
    }

    stop_callback(const stop_callback&) = delete;
    stop_callback& operator=(const stop_callback&) = delete;

private:
    void run() noexcept override { std::forward<F>(function_)(); }

    detail::stop_state* state_;
    [[no_unique_address]] F function_;
};

template <class F>
stop_callback(stop_token, F) -> stop_callback<F>;

}  // namespace tocsin::model
