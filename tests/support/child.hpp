// SPDX-License-Identifier: Apache-2.0
// A child process that must end well, for tests of fork, of exit, and of one processor.
#pragma once

#include "facts.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#if TOCSIN_ON_POSIX
namespace support {

// Whether the child's only thread sleeps in the kernel. Linux only.
inline bool is_asleep(pid_t child) { return state_in("/proc/" + std::to_string(child) + "/stat") == 'S'; }
// Whether the child has ended, and nobody has waited for it yet. Linux only.
inline bool is_over(pid_t child) { return state_in("/proc/" + std::to_string(child) + "/stat") == 'Z'; }

// Waits for a child process and returns how it ended, in words: "" for exit code 0. Kills a child that hangs.
inline std::string ending_of(pid_t child) {
    const auto begin = std::chrono::steady_clock::now();
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() - begin > patience()) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return "hangs";
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) == 0) return "";
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

// Runs `body` in a forked child, whose exit code is what `body` returns. Returns how the child ended. Other threads may
// run at the moment of the fork.
template <class Body>
std::string ending_of_child_of_busy_parent(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    return ending_of(child);
}

// The same, and under AddressSanitizer all other threads sleep at the moment of the fork. A thread that just starts (a
// background thread of the library, for instance) allocates, and up to GCC 13 that allocator does not care for forks:
// the child would find its locks taken for ever.
template <class Body>
std::string ending_of_child(Body body) {
    if (address_sanitizer) until_others_sleep();
    return ending_of_child_of_busy_parent(std::move(body));
}

}  // namespace support
#endif
