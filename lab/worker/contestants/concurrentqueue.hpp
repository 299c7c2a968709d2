// The semaphore of moodycamel's concurrentqueue 1.0.3 (Debian's).
#pragma once

#include "../contestant.hpp"

#include <cassert>  // which its header needs but doesn't include

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

}  // namespace lab
