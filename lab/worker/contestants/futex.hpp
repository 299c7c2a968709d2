// SPDX-License-Identifier: Apache-2.0
// Three events made of the bare futex: one makes the system call every time, one only when somebody waits, and one has
// each woken thread wake the next.
#pragma once

#include "../contestant.hpp"
#include "../measure/clock.hpp"
#include "../measure/futex.hpp"

namespace lab {

// The absolute deadline of a timed wait that starts now.
inline timespec deadline_after(std::chrono::nanoseconds longest) noexcept {
    return timespec_of(now() + longest.count());
}

struct raw_futex {
    static constexpr contestant_info info{
        .name = "raw_futex",
        .label = "raw futex",
        .role = role::peer,
        .about = "a futex word; every set, wake and unlock makes the system call",
        .limits = "re-checks after waking: set then reset may release nobody; 4-byte words only",
        .no_lock = "a futex is 4 bytes wide, and a bit of it can't be waited for exactly",
        .no_address_wait = "a futex is 4 bytes wide",
    };

    class manual_event {
    public:
        void set() noexcept {
            word_.store(1, std::memory_order_release);
            futex_wake(word_);
        }
        void reset() noexcept { word_.store(0, std::memory_order_relaxed); }
        bool is_set() const noexcept { return word_.load(std::memory_order_acquire) != 0; }
        void wait() const noexcept {
            while (!is_set()) futex_wait(word_, 0);
        }

    private:
        futex_word word_{0};
    };

    class auto_event {
    public:
        void set() noexcept {
            word_.exchange(1, std::memory_order_release);
            futex_wake(word_, 1);
        }
        bool try_wait() noexcept {
            return word_.load(std::memory_order_relaxed) != 0 &&
                   word_.exchange(0, std::memory_order_acquire) != 0;
        }
        void wait() noexcept {
            while (!try_wait()) futex_wait(word_, 0);
        }
        bool wait_for(std::chrono::nanoseconds longest) noexcept {
            if (try_wait()) return true;
            if (longest.count() <= 0) return false;
            const timespec until = deadline_after(longest);
            while (futex_wait(word_, 0, &until)) {
                if (try_wait()) return true;
            }
            return try_wait();
        }

    private:
        futex_word word_{0};
    };

    template <class Word>
        requires(sizeof(Word) == 4)
    class address_word {
    public:
        void store(Word value) noexcept { word_.store(value); }
        void wait(Word expected) const noexcept {
            if (word_.load(std::memory_order_acquire) == expected) futex_wait(word_, expected);
        }
        void wake_one() noexcept { futex_wake(word_, 1); }
        void wake_all() noexcept { futex_wake(word_); }
        void add_and_wake_one() noexcept {
            word_.fetch_add(1);
            wake_one();
        }

    private:
        futex_word word_{0};
    };

    // The lock of docs/requirements.md#waits-on-addresses, made of the system call.
    template <class Word>
        requires(sizeof(Word) == 4)
    class word_lock {
    public:
        void lock() noexcept {
            while (word_.exchange(1, std::memory_order_acquire) != 0) futex_wait(word_, 1);
        }
        void unlock() noexcept {
            word_.store(0, std::memory_order_release);
            futex_wake(word_, 1);
        }

    private:
        futex_word word_{0};
    };
};

struct tracked_futex {
    static constexpr contestant_info info{
        .name = "tracked_futex",
        .label = "tracked futex",
        .role = role::peer,
        .about = "a futex word that remembers whether somebody waits; no system call otherwise",
        .limits = "re-checks after waking: set then reset may release nobody; 4-byte words only",
        .no_lock = "a futex is 4 bytes wide, and a bit of it can't be waited for exactly",
        .no_address_wait = "the word belongs to its user, so it can't also record whether somebody waits",
    };

    class manual_event {
    public:
        void set() noexcept {
            if (word_.exchange(set_state, std::memory_order_acq_rel) == waiting) futex_wake(word_);
        }
        void reset() noexcept {
            std::uint32_t seen = set_state;
            word_.compare_exchange_strong(seen, unset, std::memory_order_relaxed);
        }
        bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == set_state; }
        void wait() noexcept {
            std::uint32_t seen = word_.load(std::memory_order_acquire);
            while (seen != set_state) {
                if (seen == waiting || word_.compare_exchange_strong(seen, waiting))
                    futex_wait(word_, waiting);
                seen = word_.load(std::memory_order_acquire);
            }
        }

    private:
        static constexpr std::uint32_t unset = 0, set_state = 1, waiting = 2;
        futex_word word_{unset};
    };

    class auto_event {
    public:
        void set() noexcept {
            word_.exchange(1);
            if (waiters_.load() != 0) futex_wake(word_, 1);
        }
        bool try_wait() noexcept {
            return word_.load(std::memory_order_relaxed) != 0 &&
                   word_.exchange(0, std::memory_order_acquire) != 0;
        }
        void wait() noexcept {
            if (try_wait()) return;
            waiters_.fetch_add(1);
            while (!try_wait()) futex_wait(word_, 0);
            waiters_.fetch_sub(1, std::memory_order_relaxed);
        }
        bool wait_for(std::chrono::nanoseconds longest) noexcept {
            if (try_wait()) return true;
            if (longest.count() <= 0) return false;
            const timespec until = deadline_after(longest);
            waiters_.fetch_add(1);
            bool taken = try_wait();
            while (!taken && futex_wait(word_, 0, &until)) taken = try_wait();
            waiters_.fetch_sub(1, std::memory_order_relaxed);
            return taken || try_wait();
        }

    private:
        futex_word word_{0};
        std::atomic<std::uint32_t> waiters_{0};
    };

    // 0 free, 1 taken, 2 taken and perhaps waited for.
    template <class Word>
        requires(sizeof(Word) == 4)
    class word_lock {
    public:
        void lock() noexcept {
            std::uint32_t seen = 0;
            if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
            while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(word_, 2);
        }
        void unlock() noexcept {
            if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1);
        }

    private:
        futex_word word_{0};
    };
};

struct futex_relay {
    static constexpr contestant_info info{
        .name = "futex_relay",
        .label = "futex relay of one",
        .role = role::peer,
        .about = "the setter wakes one thread, and each woken thread wakes the next",
        .limits = "a thread that is slow to run delays all behind it; a reset breaks the chain",
        .no_auto_event = "a relay is about waking many",
    };

    class manual_event {
    public:
        void set() noexcept {
            word_.store(1, std::memory_order_release);
            futex_wake(word_, 1);
        }
        void reset() noexcept { word_.store(0, std::memory_order_relaxed); }
        bool is_set() const noexcept { return word_.load(std::memory_order_acquire) != 0; }
        void wait() noexcept {
            if (is_set()) return;
            do {
                futex_wait(word_, 0);
            } while (!is_set());
            futex_wake(word_, 1);
        }

    private:
        futex_word word_{0};
    };
};

}  // namespace lab
