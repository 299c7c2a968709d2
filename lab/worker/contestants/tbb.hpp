// SPDX-License-Identifier: Apache-2.0
// oneTBB 2021.8 (Debian's): its wait on an address, of which its mutexes and queues are made. The wait isn't public,
// but nothing else in oneTBB sleeps like an event. Its bounded queue is public.
#pragma once

#include "../contestant.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/detail/_waitable_atomic.h>
#include <oneapi/tbb/mutex.h>

namespace lab {

struct onetbb {
    static constexpr contestant_info info{
        .name = "onetbb",
        .label = "oneTBB",
        .role = role::peer,
        .about =
            "adaptive_wait_on_address and notify_by_address, tbb::mutex, tbb::concurrent_bounded_queue "
            "(oneTBB 2021.8)",
        .limits = "the waits are internal to oneTBB; no timed waits; set then reset may release nobody",
        .included_from = tier::full,
    };
    using own_lock = tbb::mutex;

    template <class Word>
    class address_word {
    public:
        void store(Word value) noexcept { word_.store(value); }
        void wait(Word expected) {
            sleep_until([&] { return word_.load(std::memory_order_acquire) != expected; });
        }
        void wake_one() noexcept { tbb::detail::r1::notify_by_address_one(&word_); }
        void wake_all() noexcept { tbb::detail::r1::notify_by_address_all(&word_); }
        void add_and_wake_one() noexcept {
            word_.fetch_add(1);
            wake_one();
        }

    protected:
        template <class Predicate>
        void sleep_until(Predicate done) {
            while (!done()) tbb::detail::d1::adaptive_wait_on_address(&word_, done, 0);
        }

        std::atomic<Word> word_{0};
    };

    class manual_event : address_word<std::uint8_t> {
    public:
        void set() noexcept {
            word_.store(1);
            wake_all();
        }
        void reset() noexcept { word_.store(0, std::memory_order_relaxed); }
        bool is_set() const noexcept { return word_.load(std::memory_order_acquire) != 0; }
        void wait() { address_word::wait(0); }
    };

    class auto_event : address_word<std::uint8_t> {
    public:
        void set() noexcept {
            if (word_.exchange(1) == 0) wake_one();
        }
        bool try_wait() noexcept {
            return word_.load(std::memory_order_relaxed) != 0 &&
                   word_.exchange(0, std::memory_order_acquire) != 0;
        }
        void wait() {
            while (!try_wait()) address_word::wait(0);
        }
    };

    class item_channel {
    public:
        explicit item_channel(std::size_t capacity) {
            items_.set_capacity(static_cast<std::ptrdiff_t>(capacity));
        }
        void send(std::uint64_t item) { items_.push(item); }
        std::uint64_t receive() {
            std::uint64_t item;
            items_.pop(item);
            return item;
        }

    private:
        tbb::concurrent_bounded_queue<std::uint64_t> items_;
    };
};

}  // namespace lab
