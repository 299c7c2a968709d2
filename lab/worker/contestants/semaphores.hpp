// SPDX-License-Identifier: Apache-2.0
// Semaphores. They count, so they work as events only where no event is set that is already set.
#pragma once

#include "../contestant.hpp"
#include "futex.hpp"  // deadline_after

#include <semaphore>

#include <semaphore.h>

namespace lab {

struct posix_semaphore {
    static constexpr contestant_info info{
        .name = "posix_semaphore",
        .label = "POSIX semaphore",
        .role = role::peer,
        .about = "sem_post and sem_wait; as a manual event a turnstile: whoever passes posts again",
        .limits = "counts: sets don't absorb each other; the turnstile lets one through at a time",
        .no_address_wait = "waits on itself only",
    };

    class semaphore {
    public:
        static constexpr bool counts = true;
        explicit semaphore(unsigned permits = 0) noexcept { sem_init(&count_, 0, permits); }
        ~semaphore() { sem_destroy(&count_); }
        semaphore(const semaphore&) = delete;
        semaphore& operator=(const semaphore&) = delete;

        void set() noexcept { sem_post(&count_); }

    protected:
        void acquire() noexcept {
            while (sem_wait(&count_) != 0) {
            }
        }
        bool try_acquire() noexcept { return sem_trywait(&count_) == 0; }

        mutable sem_t count_;
    };

    class manual_event : public semaphore {
    public:
        // Takes what is there; the caller makes sure that no thread is passing.
        void reset() noexcept {
            while (try_acquire()) {
            }
        }
        bool is_set() const noexcept {
            int count = 0;
            sem_getvalue(&count_, &count);
            return count > 0;
        }
        void wait() noexcept {
            acquire();
            set();
        }
    };

    class auto_event : public semaphore {
    public:
        void wait() noexcept { acquire(); }
        bool try_wait() noexcept { return try_acquire(); }
        bool wait_for(std::chrono::nanoseconds longest) noexcept {
            const timespec until = deadline_after(longest);
            return sem_clockwait(&count_, CLOCK_MONOTONIC, &until) == 0;
        }
    };

    // One permit, taken and given back in turn.
    class own_lock : public semaphore {
    public:
        own_lock() noexcept : semaphore(1) {}
        void lock() noexcept { acquire(); }
        void unlock() noexcept { set(); }
    };
};

template <class Semaphore>
class semaphore_as_lock {
public:
    void lock() noexcept { count_.acquire(); }
    void unlock() noexcept { count_.release(); }

private:
    Semaphore count_{1};
};

// The standard library's two, which differ only in how high they may count.
template <class Semaphore>
class semaphore_as_event {
public:
    static constexpr bool counts = true;
    void set() noexcept { count_.release(); }
    void wait() noexcept { count_.acquire(); }
    bool try_wait() noexcept { return count_.try_acquire(); }
    bool wait_for(std::chrono::nanoseconds longest) noexcept { return count_.try_acquire_for(longest); }

private:
    Semaphore count_{0};
};

struct std_binary_semaphore {
    static constexpr contestant_info info{
        .name = "std_binary_semaphore",
        .label = "std::binary_semaphore",
        .role = role::peer,
        .about = "release and acquire",
        .limits = "releasing a released one is undefined",
        .no_manual_event = "lets one through for each release",
        .no_lock = "in libstdc++, may sleep for good though a permit is free (GCC bug 104928)",
        .no_address_wait = "waits on itself only",
    };
    struct auto_event : semaphore_as_event<std::binary_semaphore> {
        static constexpr bool once_only = true;  // never set twice in a row
    };
};

struct std_counting_semaphore {
    static constexpr contestant_info info{
        .name = "std_counting_semaphore",
        .label = "std::counting_semaphore",
        .role = role::peer,
        .about = "release and acquire, counting without a stated limit",
        .limits = "counts: sets don't absorb each other",
        .no_manual_event = "lets one through for each release",
        .no_lock = "in libstdc++, may sleep for good though a permit is free (GCC bug 104928)",
        .no_address_wait = "waits on itself only",
    };
    using auto_event = semaphore_as_event<std::counting_semaphore<>>;
};

}  // namespace lab
