// SPDX-License-Identifier: Apache-2.0
// How threads of this process are scheduled on Linux, and how a thread makes itself slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>

namespace support {

inline std::set<pid_t> threads_of_this_process() {
    std::set<pid_t> all;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
        all.insert(std::stoi(each.path().filename()));
    return all;
}

struct scheduling {
    static scheduling of(pid_t thread) {
        scheduling result;
        result.policy = sched_getscheduler(thread);
        result.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
        cpu_set_t allowed;
        if (sched_getaffinity(thread, sizeof allowed, &allowed) == 0) result.processors = CPU_COUNT(&allowed);
        std::ifstream("/proc/" + std::to_string(thread) + "/timerslack_ns") >> result.slack;
        return result;
    }
    friend bool operator==(const scheduling&, const scheduling&) = default;

    int policy = -1;
    int nice = 0;
    int processors = 0;
    long slack = 0;  // in nanoseconds; 0 if the system does not tell it of another thread
};

// Whether a thread blocks all of these signals.
inline bool blocks(pid_t thread, std::initializer_list<int> signals) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("SigBlk:")) continue;
        const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
        return std::all_of(signals.begin(), signals.end(),
                           [&](int each) { return (blocked >> (each - 1) & 1) != 0; });
    }
    return false;
}

inline void slow_down() {
    prctl(PR_SET_TIMERSLACK, 2'000'000'000ul, 0, 0, 0);
    setpriority(PRIO_PROCESS, 0, 19);
    const sched_param lowest{};
    sched_setscheduler(0, SCHED_IDLE, &lowest);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int each = 0; CPU_COUNT(&allowed) > 1; ++each) CPU_CLR(each, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

// Undoes slow_down(), except that the thread keeps its one processor. Returns whether the thread may do so. (On a busy
// machine, a slow thread could take minutes for a look at other threads.)
inline bool speed_up() {
    prctl(PR_SET_TIMERSLACK, 50'000ul, 0, 0, 0);
    const sched_param none{};
    return sched_setscheduler(0, SCHED_OTHER, &none) == 0 && setpriority(PRIO_PROCESS, 0, 0) == 0;
}
inline bool may_speed_up() {
    bool may = false;
    std::thread([&] {
        slow_down();
        may = speed_up();
    }).join();
    return may;
}

}  // namespace support
