// SPDX-License-Identifier: Apache-2.0
// The semaphore and the blocking queue of moodycamel's concurrentqueue 1.0.3 (Debian's).
#pragma once

#include "../contestant.hpp"

#include <cassert>  // which its header needs but doesn't include

#include <concurrentqueue/blockingconcurrentqueue.h>
#include <concurrentqueue/concurrentqueue.h>
#include <concurrentqueue/lightweightsemaphore.h>

namespace lab {

struct moodycamel_semaphore {
    static constexpr contestant_info info{
        .name = "moodycamel_semaphore",
        .label = "moodycamel semaphore",
        .role = role::peer,
        .about = "moodycamel::LightweightSemaphore of concurrentqueue 1.0.3, default spin",
        .limits = "counts: sets don't absorb each other; spins 10,000 times before each sleep",
        .no_manual_event = "lets one through for each signal",
        .no_lock = "is measured as an event",
        .no_address_wait = "waits on itself only",
        .included_from = tier::full,
    };

    class auto_event {
    public:
        static constexpr bool counts = true;
        void set() { count_.signal(); }
        void wait() {
            while (!count_.wait()) {
            }
        }
        bool try_wait() { return count_.tryWait(); }
        bool wait_for(std::chrono::nanoseconds longest) {
            return count_.wait(std::chrono::ceil<std::chrono::microseconds>(longest).count());
        }

    private:
        moodycamel::LightweightSemaphore count_;
    };
};

// A send waits for a permit of a semaphore, since the queue itself has no bound.
struct moodycamel_queue {
    static constexpr contestant_info info{
        .name = "moodycamel_queue",
        .label = "moodycamel queue",
        .role = role::peer,
        .about =
            "moodycamel::BlockingConcurrentQueue of concurrentqueue 1.0.3, bounded by a LightweightSemaphore",
        .limits = "orders only the items of one sender",
        .no_manual_event = "is a queue",
        .no_auto_event = "is a queue",
        .no_lock = "is a queue",
        .no_address_wait = "is a queue",
        .included_from = tier::full,
    };

    class item_channel {
    public:
        explicit item_channel(std::size_t capacity)
            : room_(static_cast<moodycamel::LightweightSemaphore::ssize_t>(capacity)), items_(capacity) {}
        void send(std::uint64_t item) {
            while (!room_.wait()) {
            }
            items_.enqueue(item);
        }
        std::uint64_t receive() {
            std::uint64_t item;
            items_.wait_dequeue(item);
            room_.signal();
            return item;
        }

    private:
        moodycamel::LightweightSemaphore room_;
        moodycamel::BlockingConcurrentQueue<std::uint64_t> items_;
    };
};

}  // namespace lab
