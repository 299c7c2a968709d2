// SPDX-License-Identifier: Apache-2.0
// Threads that sleep through the whole run, each in another kind of wait; they must use no processor time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace soak {

struct sleepers_report {
    std::size_t threads = 0;
    std::chrono::nanoseconds processor_time{0};  // of all threads, from falling asleep until they are woken
    long wake_ups = 0;                           // how often any of them ran in between
};

class sleepers {
public:
    sleepers();  // returns when all of them sleep
    ~sleepers();

    // Looks at what they have used, wakes them, and complains if one has used anything or its wait ended otherwise.
    sleepers_report wake();

private:
    struct all_of_them;
    std::unique_ptr<all_of_them> all_;
};

}  // namespace soak
