// The rest of the standard library: std::atomic's wait and notify, std::latch, std::mutex.
#pragma once

#include "../contestant.hpp"
#include "atomics.hpp"

#include <atomic>
#include <latch>
#include <mutex>

namespace lab {

struct std_kind {
    template <class T>
    using atomic = std::atomic<T>;
    static constexpr auto relaxed = std::memory_order_relaxed;
    static constexpr auto acquire = std::memory_order_acquire;
};

struct std_atomic : atomics<std_kind> {
    static constexpr contestant_info info{
        .name = "std_atomic",
        .label = "std::atomic wait",
        .role = role::peer,
        .about = "std::atomic's wait, notify_one and notify_all on an int (events) or the word asked for",
        .limits = "no timed waits; re-checks after waking: set then reset may release nobody",
    };
};

struct std_latch {
    static constexpr contestant_info info{
        .name = "std_latch",
        .label = "std::latch",
        .role = role::peer,
        .about = "a latch of one, made anew where an event would be reset",
        .limits = "works once",
        .no_auto_event = "works once",
        .no_lock = "works once",
        .no_address_wait = "waits on itself only",
    };

    class manual_event {
    public:
        void set() noexcept { latch_.count_down(); }
        bool is_set() const noexcept { return latch_.try_wait(); }
        void wait() const noexcept { latch_.wait(); }

    private:
        std::latch latch_{1};
    };
};

struct std_mutex {
    static constexpr contestant_info info{
        .name = "std_mutex",
        .label = "std::mutex",
        .role = role::peer,
        .about = "std::mutex",
        .limits = "40 bytes, whatever size the case asks for",
        .no_manual_event = "is a lock",
        .no_auto_event = "is a lock: only its owner may unlock it",
        .no_address_wait = "is a lock",
    };
    using own_lock = std::mutex;
};

}  // namespace lab
