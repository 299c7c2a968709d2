// SPDX-License-Identifier: Apache-2.0
// Designs of ours that lost, kept so that the choice can be measured again.
#pragma once

#include "../contestant.hpp"
#include "../measure/futex.hpp"

#include <cstdint>
#include <mutex>
#include <utility>

namespace lab {

// Four bytes instead of one and no table: the number of sleepers is kept beside the state.
struct rejected_futex_word {
    static constexpr contestant_info info{
        .name = "rejected_futex_word",
        .label = "(futex on the event)",
        .role = role::rejected,
        .about = "the event is a kernel futex: the set bit and the number of waiters in one word",
        .limits =
            "re-checks after waking: set then reset may release nobody; 4 bytes; each arrival disturbs "
            "those about to sleep",
        .no_lock = "was a design of the events",
        .no_address_wait = "was a design of the events",
        .included_from = tier::full,
    };

    class event {
    public:
        event() = default;
        event(const event&) = delete;
        event& operator=(const event&) = delete;

    protected:
        static constexpr std::uint32_t set_bit = 1, waiter = 2;

        // Woken threads look again.
        void set_and_wake(int count) noexcept {
            if (word_.fetch_or(set_bit) >= waiter) futex_wake(word_, count);
        }
        template <class Take>
        void sleep_until(Take take) noexcept {
            if (take()) return;
            word_.fetch_add(waiter);
            while (!take()) {
                const std::uint32_t seen = word_.load();
                if ((seen & set_bit) == 0) futex_wait(word_, seen);
            }
            word_.fetch_sub(waiter, std::memory_order_relaxed);
        }

        futex_word word_{0};
    };

    class manual_event : event {
    public:
        void set() noexcept { set_and_wake(INT_MAX); }
        void reset() noexcept { word_.fetch_and(~set_bit, std::memory_order_relaxed); }
        bool is_set() const noexcept { return (word_.load(std::memory_order_acquire) & set_bit) != 0; }
        void wait() noexcept {
            sleep_until([this] { return is_set(); });
        }
    };

    class auto_event : event {
    public:
        void set() noexcept { set_and_wake(1); }
        bool try_wait() noexcept {
            return (word_.load(std::memory_order_relaxed) & set_bit) != 0 &&
                   (word_.fetch_and(~set_bit, std::memory_order_acquire) & set_bit) != 0;
        }
        void wait() noexcept {
            sleep_until([this] { return try_wait(); });
        }
    };
};

// Hands the set to waiters as tocsin does, but the setter itself makes the system call for every waiter.
struct rejected_one_by_one {
    static constexpr contestant_info info{
        .name = "rejected_one_by_one",
        .label = "(set wakes one by one)",
        .role = role::rejected,
        .about = "set() takes the waiters off a list and wakes each through a futex of its own",
        .limits = "the setter is held for a system call a waiter; the list is in the event",
        .no_lock = "was a design of the events",
        .no_address_wait = "was a design of the events",
        .included_from = tier::full,
    };

    class event {
    public:
        event() = default;
        event(const event&) = delete;
        event& operator=(const event&) = delete;

    protected:
        struct waiter {
            futex_word released{0};
            waiter* next = nullptr;
        };

        // Called under the lock; releases it and sleeps.
        void sleep(std::unique_lock<std::mutex>& held) noexcept {
            waiter self;
            *last_ = &self;
            last_ = &self.next;
            held.unlock();
            while (self.released.load(std::memory_order_acquire) == 0) futex_wait(self.released, 0);
        }
        // Called under the lock.
        waiter* take_first() noexcept {
            waiter* const taken = first_;
            if (taken != nullptr && (first_ = taken->next) == nullptr) last_ = &first_;
            return taken;
        }
        waiter* take_all() noexcept {
            last_ = &first_;
            return std::exchange(first_, nullptr);
        }
        // The waiter may be gone as soon as it is released.
        static void release(waiter& one) noexcept {
            one.released.store(1, std::memory_order_release);
            futex_wake(one.released, 1);
        }

        std::mutex mutex_;
        waiter* first_ = nullptr;
        waiter** last_ = &first_;
        std::atomic<bool> set_{false};
    };

    class manual_event : event {
    public:
        void set() noexcept {
            waiter* next;
            {
                const std::scoped_lock held(mutex_);
                set_.store(true, std::memory_order_release);
                next = take_all();
            }
            while (next != nullptr) release(*std::exchange(next, next->next));
        }
        void reset() noexcept { set_.store(false, std::memory_order_relaxed); }
        bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }
        void wait() noexcept {
            if (is_set()) return;
            std::unique_lock held(mutex_);
            if (!is_set()) sleep(held);
        }
    };

    class auto_event : event {
    public:
        void set() noexcept {
            waiter* released;
            {
                const std::scoped_lock held(mutex_);
                if (set_.load(std::memory_order_relaxed)) return;
                released = take_first();
                if (released == nullptr) set_.store(true, std::memory_order_relaxed);
            }
            if (released != nullptr) release(*released);
        }
        bool try_wait() noexcept {
            if (!set_.load(std::memory_order_relaxed)) return false;
            const std::scoped_lock held(mutex_);
            return set_.exchange(false, std::memory_order_relaxed);
        }
        void wait() noexcept {
            std::unique_lock held(mutex_);
            if (!set_.exchange(false, std::memory_order_relaxed)) sleep(held);
        }
    };
};

}  // namespace lab
