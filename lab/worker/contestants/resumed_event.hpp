// SPDX-License-Identifier: Apache-2.0
// An event for coroutines in the way of cppcoro's async_auto_reset_event: lock-free, one word that counts sets and
// waits, and a stack of new waits. A wait can't be cancelled. Written for the lab; cppcoro itself needs a compiler with
// the coroutines of the technical specification.
#pragma once

#include "async_waits.hpp"

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <utility>

namespace lab {

class resumed_event {
    // Low half: sets that no wait has got yet, at most one more than there are waits. High half: waits.
    static constexpr std::uint64_t one_set = 1;
    static constexpr std::uint64_t one_wait = std::uint64_t{1} << 32;
    static constexpr std::uint64_t sets(std::uint64_t state) noexcept { return state & (one_wait - 1); }
    static constexpr std::uint64_t waits(std::uint64_t state) noexcept { return state >> 32; }

    class awaiter {
    public:
        explicit awaiter(resumed_event& on) noexcept : event_(on) {}
        bool await_ready() const noexcept { return event_.try_take(); }
        void await_suspend(std::coroutine_handle<> who) noexcept {
            who_ = who;
            event_.enlist(*this);
        }
        void await_resume() const noexcept {}

    private:
        friend class resumed_event;
        resumed_event& event_;
        std::coroutine_handle<> who_;
        awaiter* next_ = nullptr;
    };

public:
    void set() noexcept {
        std::uint64_t seen = state_.load(std::memory_order_relaxed);
        do {
            if (sets(seen) > waits(seen)) return;  // set already
        } while (!state_.compare_exchange_weak(seen, seen + one_set, std::memory_order_acq_rel,
                                               std::memory_order_relaxed));
        // Whoever brings both counts above zero resumes waits, until one of the counts is zero again.
        if (sets(seen) == 0 && waits(seen) != 0) resume_waits();
    }

    class wait {
    public:
        explicit wait(resumed_event& on) : coroutine_(run(on, &ended_)) {}
        wait(const wait&) = delete;
        wait& operator=(const wait&) = delete;
        void start() { coroutine_.resume(); }
        std::uint64_t ended() const noexcept { return ended_; }

    private:
        static waiting_coroutine run(resumed_event& event, std::uint64_t* ended) {
            for (;;) {
                co_await awaiter(event);
                ++*ended;
                co_await std::suspend_always();
            }
        }

        std::uint64_t ended_ = 0;
        waiting_coroutine coroutine_;
    };

private:
    bool try_take() noexcept {
        std::uint64_t seen = state_.load(std::memory_order_relaxed);
        while (sets(seen) > waits(seen)) {
            if (state_.compare_exchange_weak(seen, seen - one_set, std::memory_order_acquire,
                                             std::memory_order_relaxed))
                return true;
        }
        return false;
    }
    void enlist(awaiter& one) noexcept {
        awaiter* head = new_.load(std::memory_order_relaxed);
        do {
            one.next_ = head;
        } while (
            !new_.compare_exchange_weak(head, &one, std::memory_order_release, std::memory_order_relaxed));
        const std::uint64_t before = state_.fetch_add(one_wait, std::memory_order_acq_rel);
        if (waits(before) == 0 && sets(before) != 0) resume_waits();
    }

    // One thread at a time: the counts are both above zero.
    void resume_waits() noexcept {
        awaiter* resumed = nullptr;
        awaiter** last = &resumed;
        std::uint64_t seen = state_.load(std::memory_order_acquire);
        do {
            const std::uint64_t count = sets(seen) < waits(seen) ? sets(seen) : waits(seen);
            for (std::uint64_t i = 0; i != count; ++i) {
                awaiter* const first = take_oldest();
                first->next_ = nullptr;
                *last = first;
                last = &first->next_;
            }
            seen = state_.fetch_sub(count * (one_set + one_wait), std::memory_order_acq_rel) -
                   count * (one_set + one_wait);
        } while (sets(seen) != 0 && waits(seen) != 0);
        while (resumed != nullptr) std::exchange(resumed, resumed->next_)->who_.resume();
    }
    awaiter* take_oldest() noexcept {
        if (oldest_ == nullptr) {
            for (awaiter* each = new_.exchange(nullptr, std::memory_order_acquire); each != nullptr;) {
                awaiter* const next = std::exchange(each->next_, oldest_);
                oldest_ = std::exchange(each, next);
            }
        }
        return std::exchange(oldest_, oldest_->next_);
    }

    std::atomic<std::uint64_t> state_{0};
    std::atomic<awaiter*> new_{nullptr};
    awaiter* oldest_ = nullptr;
};

struct hand_made_resumed {
    static constexpr contestant_info info =
        only_waits_asynchronously("coroutine_event", "lock-free coroutine event", role::peer,
                                  "co_await of an event in the way of cppcoro's async_auto_reset_event",
                                  "waits for one event only; no deadlines; a wait can't be cancelled");
    using async_event = resumed_event;
};

}  // namespace lab
