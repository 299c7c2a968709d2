// Threads that only sleep through the run, each in another kind of wait: they may not burn anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace soak {

struct sleepers_report {
    std::size_t threads = 0;
    std::chrono::nanoseconds processor_time{0};  // of all, between falling asleep and being woken
    long wake_ups = 0;                           // how often one was switched off and on meanwhile
};

class sleepers {
public:
    sleepers();  // returns when all of them sleep
    ~sleepers();

    // Looks at what they used, wakes them, and complains if one used anything or ended otherwise.
    sleepers_report wake();

private:
    struct beds;
    std::unique_ptr<beds> beds_;
};

}  // namespace soak
