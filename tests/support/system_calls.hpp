// SPDX-License-Identifier: Apache-2.0
// Which system calls a piece of code makes. The code runs in a child process, which this process traces.
#pragma once

#include "facts.hpp"
#include "sanitizer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>
#include <vector>

#if defined(__linux__)
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace support {

// The numbers of the system calls that were made, in order. A thread that waits asks for its own priority once a second
// at most (docs/priorities.md). This call depends on the time, so it is left out. So is, under ThreadSanitizer, mmap():
// its runtime makes room for its history at any access. `known` is false where tracing is not permitted.
struct system_calls {
    bool known = false;
    int exit_code = -1;
    std::vector<long> numbers;

    std::size_t count(long number) const {
        std::size_t found = 0;
        for (const long each : numbers) found += each == number ? 1 : 0;
        return found;
    }

    // Calls of fstat(), by whatever name the system has it.
    std::size_t looks_at_descriptors() const {
        std::size_t found = 0;
#if defined(SYS_newfstatat)
        found += count(SYS_newfstatat);
#endif
#if defined(SYS_fstat)
        found += count(SYS_fstat);
#endif
#if defined(SYS_fstatat64)
        found += count(SYS_fstatat64);
#endif
#if defined(SYS_statx)
        found += count(SYS_statx);
#endif
        return found;
    }
};

inline void PrintTo(const system_calls& calls, std::ostream* out) {
    *out << calls.numbers.size() << " system calls:";
    for (const long each : calls.numbers) *out << ' ' << each;
}

#if !defined(__linux__)

// On other processors the calls are not known.
template <class Prepare, class Act>
system_calls system_calls_of(Prepare, Act) {
    return {};
}

#else

namespace detail {
constexpr int marker = 0x746f6373;  // an option that prctl() does not have
inline void mark() { (void)syscall(SYS_prctl, marker, 0, 0, 0, 0); }
inline bool is_left_out(long number) {
#if defined(SYS_mmap)
    if (thread_sanitizer && number == SYS_mmap) return true;
#endif
#if defined(SYS_mmap2)
    if (thread_sanitizer && number == SYS_mmap2) return true;
#endif
    return number == SYS_sched_getattr;
}
}  // namespace detail

// Runs `prepare` untraced and `act` traced, in the main thread of a child process. Threads which
// `prepare` starts are not traced. The child ends with exit code 0 unless one of them ends it.
template <class Prepare, class Act>
system_calls system_calls_of(Prepare prepare, Act act) {
    system_calls result;
    const pid_t child = fork();
    if (child == 0) {
        alarm(static_cast<unsigned>(patience().count()));
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(99);
        raise(SIGSTOP);
        prepare();
        detail::mark();
        act();
        detail::mark();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return result;
    ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    bool between_marks = false;
    result.known = true;
    for (int signal = 0;;) {
        if (ptrace(PTRACE_SYSCALL, child, nullptr, signal) != 0) break;
        waitpid(child, &status, 0);
        signal = 0;
        if (WIFEXITED(status) || WIFSIGNALED(status)) break;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            signal = WSTOPSIG(status);
            continue;
        }
        __ptrace_syscall_info info{};
        if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) {
            result.known = false;
            continue;
        }
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
        if (info.entry.nr == SYS_prctl && info.entry.args[0] == detail::marker) {
            between_marks = !between_marks;
        } else if (between_marks && !detail::is_left_out(static_cast<long>(info.entry.nr))) {
            result.numbers.push_back(static_cast<long>(info.entry.nr));
        }
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return result;
}

#endif

template <class Act>
system_calls system_calls_of(Act act) {
    return system_calls_of([] {}, act);
}

}  // namespace support

// Skips the test where tracing is not permitted.
#define REQUIRE_KNOWN_CALLS(calls) \
    if (!(calls).known) GTEST_SKIP() << "this system does not permit tracing of system calls"
