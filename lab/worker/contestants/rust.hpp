// SPDX-License-Identifier: Apache-2.0
// Contestants from the Rust world, through the C interface of ../crates: what Rust would inline is a call here.
#pragma once

#include "../contestant.hpp"
#include "monitor.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

extern "C" {
void lab_monitor_new(void*);
void lab_monitor_drop(void*);
void lab_monitor_lock(void*);
void lab_monitor_unlock(void*);
bool lab_monitor_sleep(void*, std::uint64_t nanoseconds);
void lab_monitor_wake_one(void*);
void lab_monitor_wake_all(void*);
void lab_mutex_new(void*);
void lab_mutex_drop(void*);
void lab_mutex_lock(void*);
void lab_mutex_unlock(void*);
void lab_mutex_unlock_fair(void*);
void lab_park(const void* word, std::uint32_t bytes, std::uint64_t expected);
void lab_unpark_one(const void* word);
void lab_unpark_all(const void* word);
void lab_flag_new(void*);
void lab_flag_drop(void*);
void lab_flag_set(void*, std::size_t count);
void lab_flag_reset(void*);
bool lab_flag_is_set(void*);
bool lab_flag_take(void*);
void lab_flag_wait(void*);
void lab_flag_wait_and_take(void*);
void lab_auto_new(void*);
void lab_auto_drop(void*);
void lab_auto_set(void*);
void lab_auto_wait(void*);
bool lab_auto_wait_for(void*, std::uint64_t nanoseconds);
void lab_manual_new(void*);
void lab_manual_drop(void*);
void lab_manual_set(void*);
void lab_manual_reset(void*);
bool lab_manual_is_set(void*);
void lab_manual_wait(void*);
void lab_atomic_wait(const void* word, std::uint32_t expected);
void lab_atomic_wake_one(const void* word);
void lab_atomic_wake_all(const void* word);
}

namespace lab {

// Storage for a Rust object of that size, which the crate asserts.
template <std::size_t Bytes, void (*New)(void*), void (*Drop)(void*)>
class rust_object {
public:
    rust_object() noexcept { New(storage_); }
    ~rust_object() { Drop(storage_); }
    rust_object(const rust_object&) = delete;
    rust_object& operator=(const rust_object&) = delete;

protected:
    void* it() const noexcept { return storage_; }

private:
    alignas(Bytes < 8 ? Bytes : 8) mutable std::byte storage_[Bytes];
};

class parking_lot_monitor : rust_object<16, lab_monitor_new, lab_monitor_drop> {
public:
    void lock() noexcept { lab_monitor_lock(it()); }
    void unlock() noexcept { lab_monitor_unlock(it()); }
    void sleep() noexcept { lab_monitor_sleep(it(), std::numeric_limits<std::uint64_t>::max()); }
    bool sleep_until(std::int64_t when) noexcept {
        return lab_monitor_sleep(it(), static_cast<std::uint64_t>(std::max<std::int64_t>(when - now(), 0)));
    }
    void wake_one() noexcept { lab_monitor_wake_one(it()); }
    void wake_all() noexcept { lab_monitor_wake_all(it()); }
};

struct rust_parking_lot : monitored<parking_lot_monitor> {
    static constexpr contestant_info info{
        .name = "rust_parking_lot",
        .label = "parking_lot (Rust)",
        .role = role::peer,
        .about =
            "a flag, Mutex and Condvar of parking_lot 0.12; address waits: park and unpark of "
            "parking_lot_core 0.9",
        .limits =
            "behind a C interface; re-checks after waking: set then reset may release nobody; hands over a "
            "mutex that was held for long, as parking_lot 0.13 no longer does",
        .included_from = tier::full,
    };

    class own_lock : rust_object<1, lab_mutex_new, lab_mutex_drop> {
    public:
        void lock() noexcept { lab_mutex_lock(it()); }
        void unlock() noexcept { lab_mutex_unlock(it()); }
    };

    template <class Word>
    class address_word {
    public:
        void store(Word value) noexcept { word_.store(value); }
        void wait(Word expected) const noexcept { lab_park(&word_, sizeof(Word), expected); }
        void wake_one() noexcept { lab_unpark_one(&word_); }
        void wake_all() noexcept { lab_unpark_all(&word_); }
        void add_and_wake_one() noexcept {
            word_.fetch_add(1);
            wake_one();
        }

    private:
        std::atomic<Word> word_{0};
    };
};

// Keeps the order of those who wait, as a semaphore of tocsin does.
struct rust_parking_lot_fair {
    static constexpr contestant_info info{
        .name = "rust_parking_lot_fair",
        .label = "parking_lot, fair (Rust)",
        .role = role::peer,
        .about = "Mutex of parking_lot 0.12, always released with unlock_fair: the oldest waiter gets it",
        .limits = "behind a C interface",
        .no_manual_event = "is a lock",
        .no_auto_event = "is a lock",
        .no_address_wait = "is a lock",
        .included_from = tier::full,
    };

    class own_lock : rust_object<1, lab_mutex_new, lab_mutex_drop> {
    public:
        void lock() noexcept { lab_mutex_lock(it()); }
        void unlock() noexcept { lab_mutex_unlock_fair(it()); }
    };
};

struct rust_event_listener {
    static constexpr contestant_info info{
        .name = "rust_event_listener",
        .label = "event-listener (Rust)",
        .role = role::peer,
        .about = "a flag and an Event of event-listener 5.4",
        .limits = "behind a C interface; allocates at the first wait; set then reset may release nobody",
        .no_lock = "is an event",
        .no_address_wait = "waits on itself only",
        .included_from = tier::full,
    };

    using flag = rust_object<16, lab_flag_new, lab_flag_drop>;

    class manual_event : flag {
    public:
        void set() noexcept { lab_flag_set(it(), std::numeric_limits<std::size_t>::max()); }
        void reset() noexcept { lab_flag_reset(it()); }
        bool is_set() const noexcept { return lab_flag_is_set(it()); }
        void wait() noexcept { lab_flag_wait(it()); }
    };
    class auto_event : flag {
    public:
        void set() noexcept { lab_flag_set(it(), 1); }
        bool try_wait() noexcept { return lab_flag_take(it()); }
        void wait() noexcept { lab_flag_wait_and_take(it()); }
    };
};

struct rust_rsevents {
    static constexpr contestant_info info{
        .name = "rust_rsevents",
        .label = "rsevents (Rust)",
        .role = role::peer,
        .about = "AutoResetEvent and ManualResetEvent of rsevents 0.3",
        .limits = "behind a C interface; a timeout can eat a signal",
        .no_lock = "is an event",
        .no_address_wait = "waits on itself only",
        .included_from = tier::full,
    };

    class manual_event : rust_object<1, lab_manual_new, lab_manual_drop> {
    public:
        void set() noexcept { lab_manual_set(it()); }
        void reset() noexcept { lab_manual_reset(it()); }
        bool is_set() const noexcept { return lab_manual_is_set(it()); }
        void wait() noexcept { lab_manual_wait(it()); }
    };
    class auto_event : rust_object<1, lab_auto_new, lab_auto_drop> {
    public:
        void set() noexcept { lab_auto_set(it()); }
        bool try_wait() noexcept { return lab_auto_wait_for(it(), 0); }
        void wait() noexcept { lab_auto_wait(it()); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept {
            return lab_auto_wait_for(it(), static_cast<std::uint64_t>(longest.count()));
        }
    };
};

struct rust_atomic_wait {
    static constexpr contestant_info info{
        .name = "rust_atomic_wait",
        .label = "atomic-wait (Rust)",
        .role = role::peer,
        .about = "wait, wake_one and wake_all of atomic-wait 1.1 on a 4-byte word",
        .limits =
            "behind a C interface; no timed waits; set then reset may release nobody; 4-byte words only",
        .no_lock = "its words are 4 bytes wide",
        .no_address_wait = "its words are 4 bytes wide",
        .included_from = tier::full,
    };

    template <class Word>
        requires(sizeof(Word) == 4)
    class address_word {
    public:
        void store(Word value) noexcept { word_.store(value); }
        void wait(Word expected) const noexcept {
            while (word_.load(std::memory_order_acquire) == expected) lab_atomic_wait(&word_, expected);
        }
        void wake_one() noexcept { lab_atomic_wake_one(&word_); }
        void wake_all() noexcept { lab_atomic_wake_all(&word_); }
        void add_and_wake_one() noexcept {
            word_.fetch_add(1);
            wake_one();
        }

    protected:
        std::atomic<Word> word_{0};
    };

    class manual_event : address_word<std::uint32_t> {
    public:
        void set() noexcept {
            word_.store(1);
            wake_all();
        }
        void reset() noexcept { word_.store(0, std::memory_order_relaxed); }
        bool is_set() const noexcept { return word_.load(std::memory_order_acquire) != 0; }
        void wait() const noexcept { address_word::wait(0); }
    };
    class auto_event : address_word<std::uint32_t> {
    public:
        void set() noexcept {
            word_.exchange(1);
            wake_one();
        }
        bool try_wait() noexcept {
            return word_.load(std::memory_order_relaxed) != 0 &&
                   word_.exchange(0, std::memory_order_acquire) != 0;
        }
        void wait() noexcept {
            while (!try_wait()) address_word::wait(0);
        }
    };
};

}  // namespace lab
