// SPDX-License-Identifier: Apache-2.0
// How the library's threads are scheduled on Linux. There, a new thread inherits from its maker the scheduling policy
// and priority, the nice value, the processors on which it may run, and the timer slack (by how much the kernel may
// delay its wake-ups). The maker is the thread of the user that happens to be first to need the new thread. So a thread
// that has made itself idle, or pinned itself, would slow down everybody's timers.
//
// The library's threads take what the program's first thread had when the library was loaded, that is, usually, what
// the process was started with: by nice(1), chrt(1), taskset(1) or a service manager. (The timer slack is that of the
// thread that loads the library, because the system tells no other.)
//
// What is refused stays as the maker has it. Without CAP_SYS_NICE (or a limit RLIMIT_NICE that allows it), Linux does
// not let a thread lower its nice value or leave SCHED_IDLE, not even to return to what it had before.
#pragma once

#include "platform/system/system.hpp"

#include <cstdint>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tocsin::platform {

class thread_scheduling {
public:
    // What the program's first thread has now.
    static thread_scheduling of_first_thread() noexcept {
        const errno_guard guard;
        const pid_t first = ::getpid();
        thread_scheduling result;
        result.has_policy_ =
            ::syscall(SYS_sched_getattr, first, &result.policy_, sizeof result.policy_, 0) == 0 &&
            result.policy_.policy <= SCHED_IDLE;  // later policies can't be had by a new thread
        result.has_processors_ =
            ::sched_getaffinity(first, sizeof result.processors_, &result.processors_) == 0;
        result.slack_ = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        return result;
    }

    // Makes the calling thread like that.
    void apply() const noexcept {
        const errno_guard guard;
        if (has_policy_) ::syscall(SYS_sched_setattr, 0, &policy_, 0);
        if (has_processors_) ::sched_setaffinity(0, sizeof processors_, &processors_);
        if (slack_ > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_), 0, 0, 0);
    }

    // The same for a thread that may not have run yet: what else could keep it from running soon.
    void apply_to(pthread_t thread) const noexcept {
        sched_param priority{};
        priority.sched_priority = static_cast<int>(policy_.priority);
        if (has_policy_) ::pthread_setschedparam(thread, static_cast<int>(policy_.policy), &priority);
#if defined(__GLIBC__)
        if (has_processors_) ::pthread_setaffinity_np(thread, sizeof processors_, &processors_);
#endif
    }

    // The number of processors, or 0 if the system does not say.
    unsigned processors() const noexcept {
        return has_processors_ ? static_cast<unsigned>(CPU_COUNT(&processors_)) : 0;
    }

private:
    struct attributes {  // of sched_setattr(2), which not every C library declares
        std::uint32_t size = sizeof(attributes);
        std::uint32_t policy = 0;
        std::uint64_t flags = 0;
        std::int32_t nice = 0;
        std::uint32_t priority = 0;
        std::uint64_t runtime = 0;
        std::uint64_t deadline = 0;
        std::uint64_t period = 0;
    };

    attributes policy_;
    cpu_set_t processors_{};
    int slack_ = 0;
    bool has_policy_ = false;
    bool has_processors_ = false;
};

}  // namespace tocsin::platform
