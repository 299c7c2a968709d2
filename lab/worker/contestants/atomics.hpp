// SPDX-License-Identifier: Apache-2.0
// Contestants that have an atomic with wait and notify: the standard library, and Boost.
#pragma once

#include "../contestant.hpp"

namespace lab {

// A Kind has atomic<T>, and the orders `relaxed` and `acquire` in that atomic's type.
template <class Kind>
struct atomics {
    template <class T>
    using atomic = typename Kind::template atomic<T>;

    class manual_event {
    public:
        void set() noexcept {
            state_.store(1);
            state_.notify_all();
        }
        void reset() noexcept { state_.store(0, Kind::relaxed); }
        bool is_set() const noexcept { return state_.load(Kind::acquire) != 0; }
        void wait() const noexcept { state_.wait(0, Kind::acquire); }

    private:
        atomic<int> state_{0};
    };

    class auto_event {
    public:
        void set() noexcept {
            if (state_.exchange(1) == 0) state_.notify_one();
        }
        bool try_wait() noexcept {
            return state_.load(Kind::relaxed) != 0 && state_.exchange(0, Kind::acquire) != 0;
        }
        void wait() noexcept {
            while (!try_wait()) state_.wait(0, Kind::relaxed);
        }

    private:
        atomic<int> state_{0};
    };

    template <class Word>
    class address_word {
    public:
        void store(Word value) noexcept { word_.store(value); }
        void wait(Word expected) const noexcept { word_.wait(expected, Kind::acquire); }
        void wake_one() noexcept { word_.notify_one(); }
        void wake_all() noexcept { word_.notify_all(); }
        void add_and_wake_one() noexcept {
            word_.fetch_add(1);
            word_.notify_one();
        }

    private:
        atomic<Word> word_{0};
    };

    // The locks of docs/requirements.md#waits-on-addresses, made of that wait.
    template <class Word>
    class word_lock {
    public:
        void lock() noexcept {
            while (word_.exchange(1, Kind::acquire) != 0) word_.wait(1, Kind::relaxed);
        }
        void unlock() noexcept {
            word_.store(0);
            word_.notify_one();
        }

    private:
        atomic<Word> word_{0};
    };

    template <class Word>
    class bit_lock {
    public:
        void lock() noexcept {
            for (;;) {
                const Word old = word_.fetch_or(bit, Kind::acquire);
                if ((old & bit) == 0) return;
                word_.wait(old, Kind::relaxed);
            }
        }
        void unlock() noexcept {
            word_.fetch_and(static_cast<Word>(~bit));
            word_.notify_one();
        }

    private:
        static constexpr Word bit = 1;
        atomic<Word> word_{0};
    };
};

}  // namespace lab
