// SPDX-License-Identifier: Apache-2.0
// Facts about threads that tests wait for (patience.hpp): whether they are parked, whether they are asleep.
#pragma once

#include "patience.hpp"

#include <tocsin/diagnose.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#if defined(_WIN32)
#include "windows_threads.hpp"
#elif defined(__EMSCRIPTEN__)
#include "wasm_threads.hpp"
#else
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace support {

#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
inline pid_t thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// The number by which the library names the calling thread.
inline std::uint64_t thread_number() { return static_cast<std::uint64_t>(thread_id()); }

// The kernel's folder about a thread of this process.
inline std::string about_thread(pid_t thread) { return "/proc/self/task/" + std::to_string(thread) + '/'; }
#endif

// The kernel's letter for the state that a file `stat` tells: R for what runs, S for what sleeps, Z for what has ended.
// 0 if it is gone.
inline char state_in(const std::string& stat) {
    std::ifstream file(stat);
    std::string line;
    if (!std::getline(file, line)) return 0;
    const auto name_end = line.rfind(')');
    return name_end == std::string::npos || name_end + 2 >= line.size() ? char{0} : line[name_end + 2];
}
// Of a thread of this process.
inline char state_of(pid_t thread) { return state_in(about_thread(thread) + "stat"); }

// Waits until exactly `count` waiters are queued on the object at `address`.
inline void until_parked(const volatile void* address, std::size_t count) {
    until("waiting for threads to be parked", [&] { return tocsin::waiting_on(address) == count; });
}

// Waits until the thread sleeps in the kernel, and has left its processor. A thread in the state S may still be on its
// way: the kernel has not yet counted the switch to another thread. On Linux, reading the file `syscall` of such a
// thread waits until it has left. (If a kernel lacks the file, the state alone counts.)
inline void until_asleep(pid_t thread) {
    until("waiting for a thread to fall asleep", [&] {
        if (state_of(thread) != 'S') return false;
        std::ifstream file(about_thread(thread) + "syscall");
        std::string call;
        return !(file >> call) || call != "running";
    });
}

// Whether another thread of this process runs, or is ready to.
#if defined(_WIN32) || defined(__EMSCRIPTEN__)
inline bool another_is_about_to_run() { return false; }  // not known
#else
inline bool another_is_about_to_run() {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
        const pid_t thread = std::stoi(each.path().filename().string());
        const char state = state_of(thread);
        const bool sleeps_or_is_gone = state == 'S' || state == 'Z' || state == 'X' || state == 0;
        if (thread != thread_id() && !sleeps_or_is_gone) return true;
    }
    return false;
}
#endif

// Waits until all other threads sleep, and not only for a moment: a thread that starts sleeps for locks, too.
inline void until_others_sleep() {
    until("waiting for the other threads to fall asleep", [] {
        for (int looks = 0; looks != 4; ++looks) {
            if (another_is_about_to_run()) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(300));  // no fact: they must stay asleep
        }
        return true;
    });
}

}  // namespace support
