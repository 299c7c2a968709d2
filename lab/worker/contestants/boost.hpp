// SPDX-License-Identifier: Apache-2.0
// Boost: waits on atomics, and what its fibers and its shared memory offer to plain threads.
#pragma once

#include "atomics.hpp"
#include "monitor.hpp"

#include <bit>
#include <boost/atomic.hpp>
#include <boost/context/stack_context.hpp>
#include <boost/context/stack_traits.hpp>
#include <boost/date_time/posix_time/posix_time_types.hpp>
#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/unbuffered_channel.hpp>
#include <boost/interprocess/sync/interprocess_semaphore.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

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

// A buffered_channel's size is a power of two, and one of its slots stays empty.
class boost_fiber_channel {
public:
    static constexpr bool can_rendezvous = true;
    explicit boost_fiber_channel(std::size_t capacity) {
        if (capacity != 0) slots_.emplace(std::bit_ceil(capacity + 1));
    }
    void send(std::uint64_t item) { slots_ ? slots_->push(item) : rendezvous_.push(item); }
    std::uint64_t receive() {
        std::uint64_t item;
        slots_ ? slots_->pop(item) : rendezvous_.pop(item);
        return item;
    }

private:
    std::optional<boost::fibers::buffered_channel<std::uint64_t>> slots_;
    boost::fibers::unbuffered_channel<std::uint64_t> rendezvous_;
};

// Boost's default stack, by operator new instead of malloc, so that it is counted (measure/allocations.hpp).
struct counted_stack {
    boost::context::stack_context allocate() {
        boost::context::stack_context stack;
        stack.size = boost::context::stack_traits::default_size();
        stack.sp = static_cast<char*>(::operator new(stack.size)) + stack.size;
        return stack;
    }
    void deallocate(boost::context::stack_context& stack) noexcept {
        ::operator delete(static_cast<char*>(stack.sp) - stack.size);
    }
};

// Each start() of a wait makes a fiber, which runs at once until it waits. A set wakes one fiber, which runs when the
// caller of set() yields to it.
class boost_fiber_async_event {
public:
    class wait {
    public:
        explicit wait(boost_fiber_async_event& on) noexcept : event_(on) {}
        wait(const wait&) = delete;
        wait& operator=(const wait&) = delete;
        void start() {
            boost::fibers::fiber(boost::fibers::launch::dispatch, std::allocator_arg, counted_stack(),
                                 [this] {
                                     event_.take();
                                     ++ended_;
                                 })
                .detach();
        }
        // Lets fibers run that another thread has woken: the first yield makes them ready, the second runs them.
        std::uint64_t ended() const {
            boost::this_fiber::yield();
            boost::this_fiber::yield();
            return ended_;
        }

    private:
        boost_fiber_async_event& event_;
        std::uint64_t ended_ = 0;
    };

    void set() {
        {
            const std::scoped_lock held(mutex_);
            is_set_ = true;
        }
        changed_.notify_one();
        boost::this_fiber::yield();
    }

private:
    void take() {
        std::unique_lock held(mutex_);
        changed_.wait(held, [this] { return is_set_; });
        is_set_ = false;
    }

    boost::fibers::mutex mutex_;
    boost::fibers::condition_variable changed_;
    bool is_set_ = false;
};

struct boost_fiber : monitored<boost_fiber_monitor> {
    static constexpr contestant_info info{
        .name = "boost_fiber",
        .label = "Boost.Fiber",
        .role = role::peer,
        .about =
            "a flag, boost::fibers::mutex and condition_variable between threads; buffered_channel and "
            "unbuffered_channel; an asynchronous wait is a fiber made for it (Debian's Boost 1.74)",
        .limits =
            "each thread gets a fiber scheduler; set then reset may release nobody; a channel of capacity "
            "1,024 holds 2,047 items",
        .no_address_wait = "waits on its own condition variable only",
        .included_from = tier::full,
    };
    static constexpr std::uint64_t max_threads = 1'000;  // with 5,000 one broadcast takes minutes
    using own_lock = boost::fibers::mutex;
    using item_channel = boost_fiber_channel;
    using async_event = boost_fiber_async_event;
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

    struct between {
        using event = auto_event;
    };
};

}  // namespace lab
