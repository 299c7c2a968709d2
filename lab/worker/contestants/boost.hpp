// Boost: waits on atomics, and what its fibers and its shared memory offer to plain threads.
#pragma once

#include "atomics.hpp"
#include "monitor.hpp"

#include <boost/atomic.hpp>
#include <boost/date_time/posix_time/posix_time_types.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/interprocess/sync/interprocess_semaphore.hpp>

namespace lab {

struct boost_kind {
    template <class T>
    using atomic = boost::atomic<T>;
    static constexpr auto relaxed = boost::memory_order_relaxed;
    static constexpr auto acquire = boost::memory_order_acquire;
};

struct boost_atomic : atomics<boost_kind> {
    static constexpr contestant_info info{
        .name = "boost_atomic",
        .label = "Boost.Atomic wait",
        .role = role::peer,
        .about = "boost::atomic's wait, notify_one and notify_all (Debian's Boost 1.74)",
        .limits = "no timed waits; re-checks after waking: set then reset may release nobody",
        .included_from = tier::full,
    };
};

// A plain thread is its own main fiber.
class boost_fiber_monitor {
public:
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void sleep() {
        std::unique_lock held(mutex_, std::adopt_lock);
        changed_.wait(held);
        held.release();
    }
    bool sleep_until(std::int64_t when) {
        const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(when)};
        std::unique_lock held(mutex_, std::adopt_lock);
        const bool in_time = changed_.wait_until(held, until) == boost::fibers::cv_status::no_timeout;
        held.release();
        return in_time;
    }
    void wake_one() { changed_.notify_one(); }
    void wake_all() { changed_.notify_all(); }

private:
    boost::fibers::mutex mutex_;
    boost::fibers::condition_variable changed_;
};

struct boost_fiber : monitored<boost_fiber_monitor> {
    static constexpr contestant_info info{
        .name = "boost_fiber",
        .label = "Boost.Fiber",
        .role = role::peer,
        .about = "a flag, boost::fibers::mutex and condition_variable between threads (Debian's Boost 1.74)",
        .limits = "each thread gets a fiber scheduler; set then reset may release nobody",
        .no_address_wait = "waits on its own condition variable only",
        .included_from = tier::full,
    };
    static constexpr std::uint64_t most_threads = 1'000;  // with 5,000 one broadcast takes minutes
    using own_lock = boost::fibers::mutex;
};

struct boost_interprocess {
    static constexpr contestant_info info{
        .name = "boost_interprocess",
        .label = "Boost.Interprocess",
        .role = role::peer,
        .about = "boost::interprocess::interprocess_semaphore (Debian's Boost 1.74)",
        .limits = "counts: sets don't absorb each other; timed waits on the wall clock, in microseconds",
        .no_manual_event = "lets one through for each post",
        .no_lock = "is measured as an event",
        .no_address_wait = "waits on itself only",
        .included_from = tier::full,
    };

    class auto_event {
    public:
        static constexpr bool counts = true;
        void set() { count_.post(); }
        void wait() { count_.wait(); }
        bool try_wait() { return count_.try_wait(); }
        bool wait_for(std::chrono::nanoseconds longest) {
            namespace time = boost::posix_time;
            const auto whole = std::chrono::ceil<std::chrono::microseconds>(longest).count();
            return count_.timed_wait(time::microsec_clock::universal_time() + time::microseconds(whole));
        }

    private:
        boost::interprocess::interprocess_semaphore count_{0};
    };
};

}  // namespace lab
